//! Local training of a round: the devices that train, and the updates that are kept until selection.

use super::{Fleet, lock};
use crate::base::kernels::norm;
use crate::base::parallel::prelude::*;
use crate::base::units::DeviceId;
use crate::error::Error;
use crate::learn::correction::Adjustment;
use crate::learn::task::{Cohorts, DeviceState, Job, Losses, TaskError};
use crate::record::Training;
use crate::schedule::Reports;
use crate::system::device::Sender;
use crate::system::server::Call;
use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError};

/// The results of training.
pub struct Trained {
    /// The report of each candidate.
    pub reports: Reports,
    /// Devices that trained, and their mean loss.
    pub training: Training,
    /// The devices that trained.
    pub devices: Vec<DeviceId>,
    pub(super) kept: Vec<Kept>,
}

pub(super) struct Kept {
    rank: f32,
    device: DeviceId,
    pub update: Vec<f32>,
}

impl Trained {
    /// The updates that are kept until selection.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (DeviceId, &[f32])> {
        self.kept.iter().map(|kept| (kept.device, kept.update.as_slice()))
    }
}

impl Kept {
    /// Larger first reports first, ties to the lower device.
    fn order(&self, other: &Self) -> Ordering {
        other.rank.total_cmp(&self.rank).then(self.device.cmp(&other.device))
    }
}

impl Fleet {
    /// Trains the devices that must train in this round and are `present`, and keeps the updates of the
    /// candidates with the largest first reports, up to K of them (all, if devices keep state or the policy
    /// selects otherwise and there is room).
    pub fn train(
        &self,
        theta: &[f32],
        call: &Call,
        present: impl Fn(DeviceId) -> bool,
    ) -> Result<Trained, Error> {
        self.acknowledge(call);
        let keep = self.kept_updates(call.candidates.len(), call.k, theta.len());
        let best = Mutex::new(Vec::with_capacity(keep + 1));
        let results = self.train_all(theta, call.t, &call.candidates, |index, device, loss, update| {
            let result = self.report(call, index, &update, loss);
            let rank = result.as_ref().map_or(0.0, |answers| answers.first().copied().unwrap_or(0.0));
            let mut best = best.lock().unwrap_or_else(PoisonError::into_inner);
            let new = Kept { rank, device, update };
            if keep >= call.candidates.len() {
                best.push(new);
            } else if let Some(spare) = offer(&mut best, keep, new) {
                self.updates.give(spare);
            }
            result.map(|answers| (loss.mean, answers))
        })?;
        let (mut losses, mut answers) = (Vec::new(), Vec::new());
        for (&device, (loss, row)) in call.candidates.iter().zip(results) {
            losses.push((device, loss));
            answers.extend(row);
        }
        if self.everyone_must_train() {
            losses.extend(self.train_the_others(theta, call, present)?);
        }
        let kept = best.into_inner().unwrap_or_else(PoisonError::into_inner);
        let reports = Reports::new(call.candidates.clone(), call.asks.len(), answers);
        let samples = |device| self.by_size.then(|| self.task.samples(device));
        let training = Training::of(losses.iter().map(|&(device, loss)| (loss, samples(device))));
        let devices = losses.into_iter().map(|(device, _)| device).collect();
        Ok(Trained { reports, training, devices, kept })
    }

    /// Trains the devices that are no candidates, for the state that they keep; their updates are discarded.
    fn train_the_others(
        &self,
        theta: &[f32],
        call: &Call,
        present: impl Fn(DeviceId) -> bool,
    ) -> Result<Vec<(DeviceId, f64)>, Error> {
        let mut waiting: Vec<bool> = DeviceId::all(self.states.len()).map(present).collect();
        call.candidates.iter().for_each(|device| waiting[device.index()] = false);
        let others: Vec<DeviceId> = DeviceId::all(waiting.len()).filter(|m| waiting[m.index()]).collect();
        self.train_all(theta, call.t, &others, |_, device, loss, update| {
            // A residual that is not finite would corrupt the device's later updates.
            let broken = self.feedback.everyone_trains() && !norm(&update).is_finite();
            self.updates.give(update);
            if broken { Err(diverged(call.t, device)) } else { Ok((device, loss.mean)) }
        })
    }

    /// Trains `devices` and passes the index, loss and update of each to `finish`; results are in the order
    /// of the devices, and of several errors the first counts.
    fn train_all<R: Send>(
        &self,
        theta: &[f32],
        t: u64,
        devices: &[DeviceId],
        finish: impl Fn(usize, DeviceId, Losses, Vec<f32>) -> Result<R, Error> + Sync,
    ) -> Result<Vec<R>, Error> {
        let finish = |index: usize, loss: Result<f64, TaskError>, rms: Option<f64>, mut update: Vec<f32>| {
            let device = devices[index];
            let loss = loss.map_err(|problem| Error::Task { round: t + 1, device: device.0, problem })?;
            if !loss.is_finite() {
                self.updates.give(update);
                return Err(diverged(t, device));
            }
            self.prepare(t, device, &mut update);
            finish(index, device, Losses::new(loss, rms), update)
        };
        let buffer = || self.updates.take(|| vec![0.0; theta.len()]);
        match self.task.cohorts() {
            Cohorts::SideBySide => {
                let train = |(index, &device): (usize, &DeviceId)| {
                    let (mut update, mut rms) = (buffer(), None);
                    let linear = self.corrections.linear(device, buffer);
                    let adjustment = self.adjustment(&linear);
                    let loss = self.with_state(device, |state| {
                        let rms_loss = &mut rms;
                        self.task.train(Job {
                            t,
                            device,
                            theta,
                            state,
                            adjustment,
                            update: &mut update,
                            rms_loss,
                        })
                    });
                    self.give_back(linear);
                    // An error is much larger than the result, and there is one of each for every device.
                    finish(index, loss, rms, update).map_err(Box::new)
                };
                let results: Vec<Result<R, Box<Error>>> = devices.par_iter().enumerate().map(train).collect();
                results.into_iter().collect::<Result<_, _>>().map_err(|error| *error)
            }
            Cohorts::Of(size) => {
                let mut results = Vec::with_capacity(devices.len());
                for (cohort, members) in devices.chunks(size.max(1)).enumerate() {
                    let mut updates: Vec<Vec<f32>> = members.iter().map(|_| buffer()).collect();
                    let mut squares = vec![None; members.len()];
                    let losses = self.train_cohort(theta, t, members, (&mut updates, &mut squares));
                    for (i, ((loss, update), rms)) in losses.into_iter().zip(updates).zip(squares).enumerate()
                    {
                        results.push(finish(cohort * size.max(1) + i, loss, rms, update)?);
                    }
                }
                Ok(results)
            }
        }
    }

    /// One cohort, each device with its state.
    fn train_cohort(
        &self,
        theta: &[f32],
        t: u64,
        members: &[DeviceId],
        (updates, squares): (&mut [Vec<f32>], &mut [Option<f64>]),
    ) -> Vec<Result<f64, TaskError>> {
        let keeps = self.task.state_vectors().is_some();
        let mut states: Vec<DeviceState> = members
            .iter()
            .map(|device| {
                if keeps {
                    std::mem::take(&mut lock(&self.states[device.index()]).task)
                } else {
                    DeviceState::default()
                }
            })
            .collect();
        let buffer = || self.updates.take(|| vec![0.0; theta.len()]);
        let linear: Vec<Vec<f32>> =
            members.iter().map(|&device| self.corrections.linear(device, buffer)).collect();
        let own = states.iter_mut().zip(updates.iter_mut().zip(squares)).zip(&linear);
        let jobs: Vec<Job> = members
            .iter()
            .zip(own)
            .map(|(&device, ((state, (update, rms_loss)), linear))| {
                let (state, adjustment) = (keeps.then_some(state), self.adjustment(linear));
                Job { t, device, theta, state, adjustment, update, rms_loss }
            })
            .collect();
        let mut losses = self.task.train_cohort(jobs);
        linear.into_iter().for_each(|linear| self.give_back(linear));
        if keeps {
            for (device, state) in members.iter().zip(states) {
                lock(&self.states[device.index()]).task = state;
            }
        }
        if losses.len() != members.len() {
            let problem = format!("its cohort of {} gave {} results", members.len(), losses.len());
            losses = members.iter().map(|_| Err(TaskError(problem.clone()))).collect();
        }
        losses
    }

    /// The term that is added to a device's gradients.
    fn adjustment<'a>(&self, linear: &'a [f32]) -> Adjustment<'a> {
        Adjustment { linear, proximal: self.corrections.proximal() }
    }

    /// Returns the memory of a linear term, if it has any.
    fn give_back(&self, linear: Vec<f32>) {
        if !linear.is_empty() {
            self.updates.give(linear);
        }
    }

    /// Lends the task's state of a device to `train`, if it keeps any.
    fn with_state<R>(&self, device: DeviceId, train: impl FnOnce(Option<&mut DeviceState>) -> R) -> R {
        if self.task.state_vectors().is_none() {
            return train(None);
        }
        train(Some(&mut lock(&self.states[device.index()]).task))
    }

    /// Turns Δ into the vector that the device reports on and compresses.
    fn prepare(&self, t: u64, device: DeviceId, update: &mut [f32]) {
        if self.feedback.vectors() == 0 {
            return;
        }
        lock(&self.states[device.index()]).residual.prepare(&*self.feedback, t, update);
    }

    /// Passes to each candidate the round of the last upload in the server's state of it.
    fn acknowledge(&self, call: &Call) {
        for (device, &round) in call.candidates.iter().zip(&call.acknowledged) {
            lock(&self.states[device.index()]).residual.acknowledge(round);
        }
    }

    /// The answers of the candidate at `index`.
    fn report(&self, call: &Call, index: usize, update: &[f32], loss: Losses) -> Result<Vec<f32>, Error> {
        let request = call.request(index);
        let answers = self.encoder.answers(&request, update, loss)?;
        let device = request.sender.device;
        Ok(match &self.adversary {
            Some(adversary) => answers.into_iter().map(|honest| adversary.report(device, honest)).collect(),
            None => answers,
        })
    }

    /// The updates of the scheduled `devices`: those that were kept, the others trained once more.
    pub(super) fn updates_of(
        &self,
        trained: &mut Trained,
        theta: &[f32],
        t: u64,
        devices: &[DeviceId],
    ) -> Result<Vec<Vec<f32>>, Error> {
        let mut take = |device: &DeviceId| {
            let index = trained.kept.iter().position(|kept| kept.device == *device)?;
            Some(trained.kept.swap_remove(index).update)
        };
        let mut updates: Vec<Option<Vec<f32>>> = devices.iter().map(&mut take).collect();
        let missing: Vec<usize> = (0..devices.len()).filter(|&i| updates[i].is_none()).collect();
        let again: Vec<DeviceId> = missing.iter().map(|&i| devices[i]).collect();
        let trained_again = self.train_all(theta, t, &again, |_, _, _, update| Ok(update))?;
        missing.into_iter().zip(trained_again).for_each(|(i, update)| updates[i] = Some(update));
        Ok(updates.into_iter().flatten().collect())
    }

    /// Δ of one device that keeps no state, and its loss.
    pub fn update(&self, theta: &[f32], t: u64, device: DeviceId) -> Result<(Vec<f32>, f64), Error> {
        let mut result = self.train_all(theta, t, &[device], |_, _, loss, update| Ok((update, loss.mean)))?;
        result.pop().ok_or_else(|| diverged(t, device))
    }
}

fn diverged(t: u64, device: DeviceId) -> Error {
    Sender { t, device }.diverged()
}

/// Adds `new` to `best` if it is among the first `max`; returns the memory of the update that is not kept.
fn offer(best: &mut Vec<Kept>, max: usize, new: Kept) -> Option<Vec<f32>> {
    let index = best.partition_point(|kept| kept.order(&new).is_lt());
    best.insert(index, new);
    if best.len() > max { best.pop().map(|kept| kept.update) } else { None }
}
