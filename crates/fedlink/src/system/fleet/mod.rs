//! All devices: they train, report, compress and send.
//!
//! Updates stream: a worker trains a device, notes the few numbers it reports, and offers the update to a set
//! that keeps the best. Memory is of order (K + threads)·d; only per-device task state or error feedback,
//! where they are switched on, take M·d, and a policy that does not schedule the largest reports takes as
//! much while that is little: so no device trains twice.

mod send;

pub use send::Sent;

use crate::adversary::Adversary;
use crate::base::buffers::Pool;
use crate::base::kernels::norm;
use crate::base::memory;
use crate::base::parallel::prelude::*;
use crate::base::state::{MAX_COUNT, Persist, State, StateError};
use crate::base::units::DeviceId;
use crate::compress::{Encoded, ErrorFeedback};
use crate::error::Error;
use crate::learn::correction::{Adjustment, Correction, DeviceCorrections, NoCorrection};
use crate::learn::task::{Cohorts, DeviceState, Job, Losses, Task, TaskError};
use crate::record::Training;
use crate::schedule::Reports;
use crate::system::device::{Encoder, Residual, Sender};
use crate::system::server::Call;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// The devices: how they train, and what each keeps from round to round.
pub struct Fleet {
    task: Arc<dyn Task>,
    encoder: Encoder,
    feedback: Box<dyn ErrorFeedback>,
    wire: bool,
    /// Which updates are kept until selection.
    keeps: Keeps,
    /// Whether a device's loss counts by its number of samples in the mean.
    by_size: bool,
    /// Those of the devices that are adversarial, if any.
    adversary: Option<Adversary>,
    /// What `learn.correction` adds to gradients.
    corrections: DeviceCorrections,
    /// One for each device if it keeps anything, else none.
    states: Vec<Mutex<PersistentState>>,
    updates: Pool<Vec<f32>>,
    encoded: Pool<Encoded>,
    payloads: Pool<Vec<u8>>,
}

/// What a [`Fleet`] is made of.
#[non_exhaustive]
pub struct FleetParts {
    /// What the devices learn.
    pub task: Arc<dyn Task>,
    /// M.
    pub devices: usize,
    /// How updates are compressed, reported and written.
    pub encoder: Encoder,
    /// What becomes of the part of an update that was not sent.
    pub feedback: Box<dyn ErrorFeedback>,
    /// Whether updates are sent as bytes.
    pub wire: bool,
    /// Whether a device's loss counts by its number of samples in the mean.
    pub by_size: bool,
    /// The adversarial devices, if any.
    pub adversary: Option<Adversary>,
}

/// Which of the candidates' updates are kept until selection, where devices keep no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// The K of the largest first reports, which will be scheduled.
    LargestReports,
    /// All, as long as that takes little memory, so that nobody trains twice; otherwise those K.
    WhatFits,
    /// All, for who compares them.
    All,
}

/// What a device keeps between rounds.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct PersistentState {
    task: DeviceState,
    residual: Residual,
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
        let keeps = task.state_vectors().is_some() || feedback.vectors() > 0;
        Self {
            encoder,
            feedback,
            wire,
            keeps: Keeps::LargestReports,
            by_size,
            adversary,
            corrections: DeviceCorrections::new(Arc::new(NoCorrection {}), devices, 0),
            states: (0..if keeps { devices } else { 0 }).map(|_| Mutex::default()).collect(),
            task,
            updates: Pool::new(),
            encoded: Pool::new(),
            payloads: Pool::new(),
        }
    }

    /// The same devices, their local steps on a model of `dim` entries corrected by `rule`.
    #[must_use]
    pub fn with_correction(mut self, rule: Arc<dyn Correction>, devices: usize, dim: usize) -> Self {
        self.corrections = DeviceCorrections::new(rule, devices, dim);
        self
    }

    /// Takes what the server broadcasts with θ(t) for the correction of local steps.
    pub fn set_control(&mut self, control: &[f32]) {
        self.corrections.set_control(control);
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

    /// Whether these states could be those of this fleet, with models of `dim` entries.
    pub(crate) fn fits(&self, states: &[Mutex<PersistentState>], dim: usize) -> bool {
        let (vectors, kept) = (self.task.state_vectors(), self.feedback.vectors());
        let fits = |state: &Mutex<PersistentState>| {
            let PersistentState { task, residual, .. } = &*lock(state);
            let whole = |vector: &Vec<f32>| vector.len() == dim;
            task.steps <= MAX_COUNT
                && (task.vectors.is_empty() || vectors == Some(task.vectors.len()))
                && task.vectors.iter().all(whole)
                && (residual.vectors.is_empty() || (kept > 0 && residual.vectors.len() == kept * dim))
        };
        states.len() == self.states.len() && states.iter().all(fits)
    }

    /// The state of the adversarial devices and that of the correction, if it keeps any.
    pub(crate) fn saved(&self) -> State {
        let adversary = self.adversary.as_ref().map(Persist::save).unwrap_or_default();
        if self.corrections.keeps_state() {
            return State::of(&(adversary, self.corrections.save()));
        }
        adversary
    }

    /// Restores what [`Fleet::saved`] gave; a failure changes nothing.
    pub(crate) fn load(&mut self, state: State) -> Result<(), StateError> {
        let (adversary, corrections) =
            if self.corrections.keeps_state() { state.read()? } else { (state, State::default()) };
        let before = self.corrections.save();
        let named = |error: StateError| StateError(format!("learn.correction: {error}"));
        self.corrections.load(corrections).map_err(named)?;
        let result = self.adversary.as_mut().map_or(Ok(()), |one| one.load(adversary));
        if result.is_err() {
            let _ = self.corrections.load(before);
        }
        result
    }

    /// Restores states that [fit](Fleet::fits).
    pub(crate) fn restore(&mut self, states: Vec<Mutex<PersistentState>>) {
        self.states = states;
    }

    /// Whether a device's training this round changes what it does in a later one even if it sends nothing.
    /// If not, training those that cannot be scheduled would be work for nobody.
    pub(crate) fn everyone_must_train(&self) -> bool {
        self.task.everyone_trains() || self.feedback.everyone_trains()
    }

    /// Keeps these updates until selection.
    pub(crate) fn keep(&mut self, keeps: Keeps) {
        self.keeps = keeps;
    }

    /// How many of the candidates' updates of `dim` numbers are kept until selection. One that was not kept
    /// can be had again by training again, unless the device has moved on.
    pub(crate) fn kept_updates(&self, candidates: usize, k: usize, dim: usize) -> usize {
        let all = match self.keeps {
            Keeps::LargestReports => false,
            Keeps::WhatFits => memory::holds_updates(candidates, dim),
            Keeps::All => true,
        };
        if all || !self.states.is_empty() { candidates } else { k.min(candidates) }
    }

    /// Vectors of the size of θ that the devices keep once all have trained.
    pub(crate) fn state_vectors(&self) -> usize {
        let task = self.task.state_vectors().unwrap_or(0);
        let own = self.states.len() * (task + self.feedback.vectors());
        own.saturating_add(self.corrections.state_vectors())
    }

    /// Trains the devices that must train this round, of those that are `present`, and keeps the updates of
    /// the candidates with the largest first reports, up to K of them (all, if devices keep state or the
    /// policy selects otherwise and there is room).
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
            let broken = self.feedback.everyone_trains() && !norm(&update).is_finite();
            self.updates.give(update);
            if broken { Err(diverged(call.t, device)) } else { Ok((device, loss.mean)) }
        })
    }

    /// Trains `devices` and hands each one's index, loss and update to `finish`; results are in their order,
    /// and of several errors the first counts.
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

    /// What is added to a device's gradients.
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

    /// Turns Δ into what the device reports on and compresses.
    fn prepare(&self, t: u64, device: DeviceId, update: &mut [f32]) {
        if self.feedback.vectors() == 0 {
            return;
        }
        lock(&self.states[device.index()]).residual.prepare(&*self.feedback, t, update);
    }

    /// Gives each candidate the round of the last upload that the server's state of it holds.
    fn acknowledge(&self, call: &Call) {
        for (device, &round) in call.candidates.iter().zip(&call.acknowledged) {
            lock(&self.states[device.index()]).residual.acknowledge(round);
        }
    }

    /// Whether an upload changes a device's state only if the server uses it, and not already if it arrives.
    pub fn waits_for_use(&self) -> bool {
        self.feedback.state_decay().is_some()
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

    /// How the devices compress, report and write.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
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

    /// After the uploads of round `t` have gone out: each device whose upload was `delivered` changes its
    /// state (one whose upload was lost is as one that was not scheduled), and all memory of the round is
    /// free. With error feedback that [waits for use](Fleet::waits_for_use), `delivered` are the uploads that
    /// the server used.
    pub fn settle(&self, t: u64, trained: Trained, sent: Vec<Sent>, delivered: &[bool]) {
        for (Sent { device, update, own, spent, payload, .. }, delivered) in sent.into_iter().zip(delivered) {
            if self.corrections.keeps_state()
                && *delivered
                && spent.level > 0
                && let Some(steps) = self.task.local_steps(t, device)
            {
                let add = |target: &mut [f32], scale: f32| own.add_to(target, scale);
                self.corrections.settle(device, &add, steps.length());
            }
            if self.feedback.vectors() > 0 && *delivered {
                lock(&self.states[device.index()]).residual.settle(&*self.feedback, t, &update, &own);
            }
            self.updates.give(update);
            self.encoded.give(own);
            self.payloads.give(payload);
        }
        trained.kept.into_iter().for_each(|kept| self.updates.give(kept.update));
    }

    /// Δ of one device that keeps no state, and its loss.
    pub fn update(&self, theta: &[f32], t: u64, device: DeviceId) -> Result<(Vec<f32>, f64), Error> {
        let mut result = self.train_all(theta, t, &[device], |_, _, loss, update| Ok((update, loss.mean)))?;
        result.pop().ok_or_else(|| diverged(t, device))
    }
}

fn lock(state: &Mutex<PersistentState>) -> std::sync::MutexGuard<'_, PersistentState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn diverged(t: u64, device: DeviceId) -> Error {
    Sender { t, device }.diverged()
}

/// Takes `new` into `best` if it is among the first `max`; returns the memory of what is not kept.
fn offer(best: &mut Vec<Kept>, max: usize, new: Kept) -> Option<Vec<f32>> {
    let index = best.partition_point(|kept| kept.order(&new).is_lt());
    best.insert(index, new);
    if best.len() > max { best.pop().map(|kept| kept.update) } else { None }
}
