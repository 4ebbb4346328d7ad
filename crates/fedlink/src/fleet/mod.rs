//! All devices: they train, report, compress and send.
//!
//! Updates stream: a worker trains a device, notes the few numbers it reports, and offers the update to a set
//! that keeps the best. Memory is of order (K + threads)·d; only per-device task state or error feedback,
//! where they are switched on, take M·d.

mod encoder;
mod send;

pub use encoder::{Encoder, Message};
pub use send::Sent;

use crate::adversary::Adversary;
use crate::compress::{Encoded, Feedback};
use crate::error::Error;
use crate::kernels::norm;
use crate::learn::task::{Cohorts, DeviceState, Job, Task, TaskError};
use crate::parallel::prelude::*;
use crate::pool::Pool;
use crate::record::Training;
use crate::schedule::Reports;
use crate::server::Call;
use crate::state::MAX_COUNT;
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// The devices: how they train, and what each keeps from round to round.
pub struct Fleet {
    task: Arc<dyn Task>,
    encoder: Encoder,
    feedback: Feedback,
    wire: bool,
    /// Whether all updates are kept until selection.
    keeps_all: bool,
    /// Whether a device's loss counts by its number of samples in the mean.
    by_size: bool,
    /// Those of the devices that are adversarial, if any.
    adversary: Option<Adversary>,
    /// One for each device if it keeps anything, else none.
    states: Vec<Mutex<PersistentState>>,
    updates: Pool<Vec<f32>>,
    encoded: Pool<Encoded>,
    payloads: Pool<Vec<u8>>,
}

/// What a [`Fleet`] is made of.
pub struct FleetParts {
    /// What the devices learn.
    pub task: Arc<dyn Task>,
    /// M.
    pub devices: usize,
    /// How updates are compressed, reported and written.
    pub encoder: Encoder,
    /// What becomes of the part of an update that was not sent.
    pub feedback: Feedback,
    /// Whether updates are sent as bytes.
    pub wire: bool,
    /// Whether a device's loss counts by its number of samples in the mean.
    pub by_size: bool,
    /// The adversarial devices, if any.
    pub adversary: Option<Adversary>,
}

/// What a device keeps between rounds.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct PersistentState {
    task: DeviceState,
    /// The part of its updates that was not sent (error feedback); empty or d entries.
    residual: Vec<f32>,
}

/// What came out of training.
pub struct Trained {
    /// What each candidate reports.
    pub reports: Reports,
    /// Devices that trained, and their mean loss.
    pub training: Training,
    /// Who trained.
    pub devices: Vec<DeviceId>,
    kept: Vec<Kept>,
}

struct Kept {
    rank: f32,
    device: DeviceId,
    update: Vec<f32>,
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
    /// The devices made of `parts`.
    pub fn new(parts: FleetParts) -> Self {
        let FleetParts { task, devices, encoder, feedback, wire, by_size, adversary } = parts;
        let keeps = task.state_vectors().is_some() || feedback != Feedback::Off;
        Self {
            encoder,
            feedback,
            wire,
            keeps_all: false,
            by_size,
            adversary,
            states: (0..if keeps { devices } else { 0 }).map(|_| Mutex::default()).collect(),
            task,
            updates: Pool::new(),
            encoded: Pool::new(),
            payloads: Pool::new(),
        }
    }

    /// What the devices learn.
    pub fn task(&self) -> &dyn Task {
        &*self.task
    }

    /// Whether a device's update depends on earlier rounds too: its task keeps state, or
    /// there is error feedback.
    pub fn keeps_state(&self) -> bool {
        !self.states.is_empty()
    }

    pub(crate) fn states(&self) -> &[Mutex<PersistentState>] {
        &self.states
    }

    pub(crate) fn adversary(&self) -> Option<&Adversary> {
        self.adversary.as_ref()
    }

    pub(crate) fn adversary_mut(&mut self) -> Option<&mut Adversary> {
        self.adversary.as_mut()
    }

    /// Whether these states could be those of this fleet, with models of `dim` entries.
    pub(crate) fn fits(&self, states: &[Mutex<PersistentState>], dim: usize) -> bool {
        let vectors = self.task.state_vectors();
        let fits = |state: &Mutex<PersistentState>| {
            let PersistentState { task, residual } = &*lock(state);
            let whole = |vector: &Vec<f32>| vector.len() == dim;
            task.steps <= MAX_COUNT
                && (task.vectors.is_empty() || vectors == Some(task.vectors.len()))
                && task.vectors.iter().all(whole)
                && (residual.is_empty() || whole(residual))
        };
        states.len() == self.states.len() && states.iter().all(fits)
    }

    /// Restores states that [fit](Fleet::fits).
    pub(crate) fn restore(&mut self, states: Vec<Mutex<PersistentState>>) {
        self.states = states;
    }

    /// Whether a device's training this round changes what it does in a later one even if it sends nothing.
    /// If not, training those that cannot be scheduled would be work for nobody.
    pub(crate) fn everyone_must_train(&self) -> bool {
        self.task.state_vectors().is_some() || self.feedback == Feedback::Always
    }

    /// Keeps the updates of all candidates until selection, for who compares them.
    pub(crate) fn keep_all(&mut self) {
        self.keeps_all = true;
    }

    /// How many of the candidates' updates are kept until selection. One that was not kept can be had again
    /// by training again, unless the device has moved on.
    pub(crate) fn kept_updates(&self, candidates: usize, k: usize) -> usize {
        if self.states.is_empty() && !self.keeps_all { k.min(candidates) } else { candidates }
    }

    /// Vectors of the size of θ that the devices keep once all have trained.
    pub(crate) fn state_vectors(&self) -> usize {
        let task = self.task.state_vectors().unwrap_or(0);
        self.states.len() * (task + usize::from(self.feedback != Feedback::Off))
    }

    /// Trains the devices that must train this round, of those that are `present`, and keeps the updates of the
    /// candidates with the largest first reports, up to K of them (all, if devices keep state).
    pub fn train(
        &self,
        theta: &[f32],
        call: &Call,
        present: impl Fn(DeviceId) -> bool,
    ) -> Result<Trained, Error> {
        let keep = self.kept_updates(call.candidates.len(), call.k);
        let best = Mutex::new(Vec::with_capacity(keep + 1));
        let results = self.train_all(theta, call.t, &call.candidates, |index, device, loss, update| {
            let result = self.report(call, index, device, loss, &update);
            let rank = result.as_ref().map_or(0.0, |answers| answers.first().copied().unwrap_or(0.0));
            let mut best = best.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(spare) = offer(&mut best, keep, Kept { rank, device, update }) {
                self.updates.give(spare);
            }
            result.map(|answers| (loss, answers))
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
        let training = Training { devices: losses.len(), loss: self.mean_loss(&losses) };
        let devices = losses.into_iter().map(|(device, _)| device).collect();
        Ok(Trained { reports, training, devices, kept })
    }

    /// Trains the devices that are no candidates, for the state that they keep; their updates go nowhere.
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
            // A residual that is not finite would spoil the device's later updates.
            let broken = self.feedback == Feedback::Always && !norm(&update).is_finite();
            self.updates.give(update);
            if broken { Err(diverged(call.t, device)) } else { Ok((device, loss)) }
        })
    }

    /// Trains `devices` and hands each one's index, loss and update to `finish`; results are in their order,
    /// and of several errors the first counts.
    fn train_all<R: Send>(
        &self,
        theta: &[f32],
        t: u64,
        devices: &[DeviceId],
        finish: impl Fn(usize, DeviceId, f64, Vec<f32>) -> Result<R, Error> + Sync,
    ) -> Result<Vec<R>, Error> {
        let finish = |index: usize, loss: Result<f64, TaskError>, mut update: Vec<f32>| {
            let device = devices[index];
            let loss = loss.map_err(|problem| Error::Task { round: t + 1, device: device.0, problem })?;
            if !loss.is_finite() {
                self.updates.give(update);
                return Err(diverged(t, device));
            }
            self.add_residual(device, &mut update);
            finish(index, device, loss, update)
        };
        let buffer = || self.updates.take(|| vec![0.0; theta.len()]);
        match self.task.cohorts() {
            Cohorts::SideBySide => {
                let indices: Vec<usize> = (0..devices.len()).collect();
                let train = |&index: &usize| {
                    let mut update = buffer();
                    let loss = self.with_state(devices[index], |state| {
                        self.task.train(Job { t, device: devices[index], theta, state, update: &mut update })
                    });
                    finish(index, loss, update)
                };
                let results: Vec<Result<R, Error>> = indices.par_iter().map(train).collect();
                results.into_iter().collect()
            }
            Cohorts::Of(size) => {
                let mut results = Vec::with_capacity(devices.len());
                for (cohort, members) in devices.chunks(size.max(1)).enumerate() {
                    let mut updates: Vec<Vec<f32>> = members.iter().map(|_| buffer()).collect();
                    let losses = self.train_cohort(theta, t, members, &mut updates);
                    for (i, (loss, update)) in losses.into_iter().zip(updates).enumerate() {
                        results.push(finish(cohort * size.max(1) + i, loss, update)?);
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
        updates: &mut [Vec<f32>],
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
        let jobs: Vec<Job> = members
            .iter()
            .zip(&mut states)
            .zip(updates)
            .map(|((&device, state), update)| Job { t, device, theta, state: keeps.then_some(state), update })
            .collect();
        let mut losses = self.task.train_cohort(jobs);
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

    /// Lends the task's state of a device to `train`, if it keeps any.
    fn with_state<R>(&self, device: DeviceId, train: impl FnOnce(Option<&mut DeviceState>) -> R) -> R {
        if self.task.state_vectors().is_none() {
            return train(None);
        }
        train(Some(&mut lock(&self.states[device.index()]).task))
    }

    /// Adds the residual of the device to Δ.
    fn add_residual(&self, device: DeviceId, update: &mut [f32]) {
        if self.feedback == Feedback::Off {
            return;
        }
        let mut state = lock(&self.states[device.index()]);
        update.iter_mut().zip(&state.residual).for_each(|(delta, residual)| *delta += residual);
        if self.feedback == Feedback::Always {
            // As if it were not scheduled; if it is, `settle` takes off what was sent.
            state.residual.clear();
            state.residual.extend_from_slice(update);
        }
    }

    /// What the candidate at `index` answers to everything that is asked.
    fn report(
        &self,
        call: &Call,
        index: usize,
        device: DeviceId,
        loss: f64,
        update: &[f32],
    ) -> Result<Vec<f32>, Error> {
        let answers =
            self.encoder.answers(&call.asks, (update, loss), call.alone[index], (call.t, device))?;
        Ok(match &self.adversary {
            Some(adversary) => answers.into_iter().map(|honest| adversary.report(device, honest)).collect(),
            None => answers,
        })
    }

    /// How the devices compress, report and write.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Mean training loss, weighted as the server weighs updates.
    fn mean_loss(&self, losses: &[(DeviceId, f64)]) -> f64 {
        if losses.is_empty() {
            return 0.0;
        }
        if !self.by_size {
            return losses.iter().map(|(_, loss)| loss).sum::<f64>() / losses.len() as f64;
        }
        let sizes: Vec<usize> = losses.iter().map(|(device, _)| self.task.samples(*device)).collect();
        let total: usize = sizes.iter().sum();
        losses.iter().zip(&sizes).map(|((_, loss), &size)| loss * size as f64).sum::<f64>() / total as f64
    }

    /// The updates of the scheduled `devices`: those that were kept, the others trained once more.
    fn updates_of(
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

    /// After the uploads have gone out: each device whose upload was `delivered` keeps its residual (one whose upload
    /// was lost is as one that was not scheduled), and all memory of the round is free.
    pub fn settle(&self, trained: Trained, sent: Vec<Sent>, delivered: &[bool]) {
        for (Sent { device, update, own, payload, .. }, delivered) in sent.into_iter().zip(delivered) {
            if self.feedback != Feedback::Off && *delivered {
                let mut state = lock(&self.states[device.index()]);
                state.residual.clear();
                state.residual.extend_from_slice(&update);
                own.add_to(&mut state.residual, -1.0);
            }
            self.updates.give(update);
            self.encoded.give(own);
            self.payloads.give(payload);
        }
        trained.kept.into_iter().for_each(|kept| self.updates.give(kept.update));
    }

    /// Δ of one device that keeps no state, and its loss.
    pub fn update(&self, theta: &[f32], t: u64, device: DeviceId) -> Result<(Vec<f32>, f64), Error> {
        let mut result = self.train_all(theta, t, &[device], |_, _, loss, update| Ok((update, loss)))?;
        result.pop().ok_or_else(|| diverged(t, device))
    }
}

fn lock(state: &Mutex<PersistentState>) -> std::sync::MutexGuard<'_, PersistentState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn diverged(t: u64, device: DeviceId) -> Error {
    Error::Diverged { round: t + 1, device: device.0 }
}

/// Takes `new` into `best` if it is among the first `max`; returns the memory of what is not kept.
fn offer(best: &mut Vec<Kept>, max: usize, new: Kept) -> Option<Vec<f32>> {
    let index = best.partition_point(|kept| kept.order(&new).is_lt());
    best.insert(index, new);
    if best.len() > max { best.pop().map(|kept| kept.update) } else { None }
}
