//! All devices training side by side.
//!
//! Updates stream: a worker trains a device, notes the one number it reports, and offers the update to a set that
//! keeps the best. Memory is of order (K + threads)·d; only per-device optimiser state or error feedback, where
//! they are switched on, take M·d.

use crate::adversary::Adversary;
use crate::compress::{Compressor, Feedback, Scratch, SparseUpdate, compressor};
use crate::config::{Config, ConfigError};
use crate::error::Error;
use crate::learn::aggregate::{Aggregate, OfSize};
use crate::learn::kernels::norm;
use crate::learn::local_training::TrainingScratch;
use crate::learn::optimizer::{OptimizerState, StateMode};
use crate::learn::task::Work;
use crate::learner::Learner;
use crate::pool::Pool;
use crate::radio::Channels;
use crate::rng::{Purpose, Stream, stream};
use crate::schedule::ReportKind;
use crate::units::{Bits, DeviceId};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError};

/// The devices: their data, how they train, and what each remembers from round to round.
pub struct Fleet {
    pub(crate) learner: Learner,
    /// The run's seed.
    seed: u64,
    pub(crate) compressor: Box<dyn Compressor>,
    feedback: Feedback,
    /// n, for the report of what could be sent if alone.
    symbols: u64,
    aggregate: Aggregate,
    /// Those of the devices that are hostile, if any.
    pub(crate) adversary: Option<Adversary>,
    /// One for each device if it remembers anything, else none.
    memories: Vec<Mutex<Memory>>,
    keeps_optimizer: bool,
    workers: Pool<Worker>,
    updates: Pool<Vec<f32>>,
    sent: Pool<SparseUpdate>,
}

/// What a device remembers between rounds.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    optimizer: OptimizerState,
    /// What it still owes the server (error feedback).
    residual: Vec<f32>,
}

/// What a worker reuses from device to device.
struct Worker {
    training: Option<TrainingScratch>,
    optimizer: OptimizerState,
    compression: Scratch,
    compressed: SparseUpdate,
}

/// What came out of training.
pub(crate) struct Trained {
    /// What each candidate reports.
    pub reports: Vec<f32>,
    /// Devices that trained.
    pub count: usize,
    /// Mean training loss over them, as [`Aggregate`] says; 0 if there is none.
    pub loss: f64,
    kept: Vec<Kept>,
}

struct Kept {
    report: f32,
    device: DeviceId,
    update: Vec<f32>,
}

impl Kept {
    /// Larger reports first, ties to the lower device.
    fn order(&self, other: &Self) -> Ordering {
        other.report.total_cmp(&self.report).then(self.device.cmp(&other.device))
    }
}

impl Fleet {
    /// The devices that `config` describes, with their parts of the work, and a compressor of one's own if given.
    pub(crate) fn new(
        config: &Config,
        work: Work,
        own: Option<Box<dyn Compressor>>,
    ) -> Result<Self, ConfigError> {
        let learner = Learner::new(config, work)?;
        let feedback = config.compress.feedback;
        let keeps_optimizer = config.learn.state == StateMode::Keep && !learner.starts().is_empty();
        let remembering = if keeps_optimizer || feedback != Feedback::Off { config.data.devices } else { 0 };
        Ok(Self {
            learner,
            seed: config.run.seed,
            compressor: own.unwrap_or_else(|| compressor(config.compress.scheme)),
            feedback,
            symbols: config.radio.symbols,
            aggregate: config.learn.aggregate,
            adversary: Adversary::new(config),
            memories: (0..remembering).map(|_| Mutex::default()).collect(),
            keeps_optimizer,
            workers: Pool::new(),
            updates: Pool::new(),
            sent: Pool::new(),
        })
    }

    /// What the devices remember.
    pub(crate) fn memories(&self) -> &[Mutex<Memory>] {
        &self.memories
    }

    /// Whether these memories could be those of this fleet.
    pub(crate) fn fits(&self, memories: &[Mutex<Memory>]) -> bool {
        let (dim, slots) = (self.learner.dim(), self.learner.starts().len());
        let fits = |memory: &Mutex<Memory>| {
            let Memory { optimizer, residual } = &*lock(memory);
            let whole = |vector: &Vec<f32>| vector.len() == dim;
            (optimizer.slots.is_empty() || optimizer.slots.len() == slots)
                && optimizer.slots.iter().all(whole)
                && (residual.is_empty() || whole(residual))
        };
        memories.len() == self.memories.len() && memories.iter().all(fits)
    }

    /// Takes up memories that [fit](Fleet::fits).
    pub(crate) fn remember(&mut self, memories: Vec<Mutex<Memory>>) {
        self.memories = memories;
    }

    /// Whether a device's training this round changes what it does in a later one even if it sends nothing.
    /// If not, training those that cannot be scheduled would be work for nobody.
    pub(crate) fn everyone_must_train(&self) -> bool {
        self.keeps_optimizer || self.feedback == Feedback::Always
    }

    /// How many of the candidates' updates are kept until selection. One that was not kept can be had again by
    /// training again, unless the device has moved on.
    pub(crate) fn kept_updates(&self, candidates: usize, k: usize) -> usize {
        if self.memories.is_empty() { k } else { candidates }
    }

    /// Vectors of the size of θ that the devices remember once all have trained.
    pub(crate) fn remembered_vectors(&self) -> usize {
        let slots = if self.keeps_optimizer { self.learner.starts().len() } else { 0 };
        self.memories.len() * (slots + usize::from(self.feedback != Feedback::Off))
    }

    /// Trains the devices that must train this round and keeps the updates of the `k` candidates with the
    /// largest reports.
    pub(crate) fn train(
        &self,
        theta: &[f32],
        round: u64,
        candidates: &[DeviceId],
        kind: ReportKind,
        channels: &Channels,
        k: usize,
    ) -> Result<Trained, Error> {
        let keep = self.kept_updates(candidates.len(), k);
        let best = Mutex::new(Vec::with_capacity(keep + 1));
        let train_candidate = |device: DeviceId| {
            let mut update = self.updates.take(|| vec![0.0; theta.len()]);
            let (loss, report) = self.workers.with(
                || self.worker(),
                |worker| {
                    let loss = self.train_one(theta, round, device, worker, &mut update);
                    let report =
                        self.report(kind, &update, channels.capacity(device), (round, device), worker);
                    (loss, report)
                },
            );
            if !loss.value.is_finite() || !report.is_finite() {
                self.updates.give(update);
                return Err(device);
            }
            let report = match &self.adversary {
                Some(hostile) if kind != ReportKind::Nothing => hostile.report(device, report),
                _ => report,
            };
            let mut best = best.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(spare) = offer(&mut best, keep, Kept { report, device, update }) {
                self.updates.give(spare);
            }
            Ok((loss, report))
        };
        let results: Vec<Result<(OfSize, f32), DeviceId>> = self.for_each(candidates, train_candidate);
        let mut losses = Vec::with_capacity(results.len());
        let mut reports = Vec::with_capacity(results.len());
        for result in results {
            let (loss, report) = result.map_err(|device| diverged(round, device))?;
            losses.push(loss);
            reports.push(report);
        }
        if self.everyone_must_train() {
            losses.extend(self.train_the_others(theta, round, candidates)?);
        }
        let kept = best.into_inner().unwrap_or_else(PoisonError::into_inner);
        let loss = if losses.is_empty() { 0.0 } else { self.aggregate.mean(&losses) };
        Ok(Trained { reports, count: losses.len(), loss, kept })
    }

    /// Trains the devices that are no candidates, for what they remember; their updates go nowhere.
    fn train_the_others(
        &self,
        theta: &[f32],
        round: u64,
        candidates: &[DeviceId],
    ) -> Result<Vec<OfSize>, Error> {
        let mut waiting = vec![true; self.memories.len()];
        candidates.iter().for_each(|device| waiting[device.index()] = false);
        let others: Vec<DeviceId> = (0..waiting.len()).filter(|&m| waiting[m]).map(DeviceId::new).collect();
        let losses: Vec<OfSize> = self.for_each(&others, |device| {
            let mut update = self.updates.take(|| vec![0.0; theta.len()]);
            let make = || self.worker();
            let loss = self.workers.with(make, |w| self.train_one(theta, round, device, w, &mut update));
            self.updates.give(update);
            loss
        });
        match losses.iter().position(|loss| !loss.value.is_finite()) {
            Some(place) => Err(diverged(round, others[place])),
            None => Ok(losses),
        }
    }

    /// Trains devices side by side, or one after the other if the task wants it so; results are in their order.
    fn for_each<R: Send>(&self, devices: &[DeviceId], train: impl Fn(DeviceId) -> R + Sync) -> Vec<R> {
        if self.learner.in_turn() {
            return devices.iter().map(|&device| train(device)).collect();
        }
        devices.par_iter().map(|&device| train(device)).collect()
    }

    /// One device's local training: Δ, plus what it still owed, goes to `update`. Returns its loss.
    fn train_one(
        &self,
        theta: &[f32],
        round: u64,
        device: DeviceId,
        worker: &mut Worker,
        update: &mut [f32],
    ) -> OfSize {
        let mut memory = self.memories.get(device.index()).map(lock);
        let optimizer = match &mut memory {
            Some(memory) if self.keeps_optimizer => {
                if memory.optimizer.slots.is_empty() {
                    memory.optimizer = self.learner.fresh_state();
                }
                &mut memory.optimizer
            }
            _ => {
                self.learner.reset(&mut worker.optimizer);
                &mut worker.optimizer
            }
        };
        let loss = self.learner.train(theta, (round, device), optimizer, &mut worker.training, update);
        if let Some(memory) = &mut memory {
            update.iter_mut().zip(&memory.residual).for_each(|(delta, owed)| *delta += owed);
            if self.feedback == Feedback::Always {
                // As if it were not scheduled; if it is, `settle` takes off what was sent.
                memory.residual.clear();
                memory.residual.extend_from_slice(update);
            }
        }
        loss
    }

    /// The number a candidate reports.
    fn report(
        &self,
        kind: ReportKind,
        update: &[f32],
        capacity: f64,
        (round, device): (u64, DeviceId),
        worker: &mut Worker,
    ) -> f32 {
        let norm = norm(update) as f32;
        match kind {
            // Nothing is sent, but a broken update must be noticed all the same.
            ReportKind::Nothing if norm.is_finite() => 0.0,
            ReportKind::Nothing | ReportKind::Norm => norm,
            ReportKind::QuantisedNorm if !norm.is_finite() => norm,
            ReportKind::QuantisedNorm => {
                let alone = Bits(self.symbols as f64 * capacity);
                let q = self.compressor.largest_q(update.len(), alone);
                let mut chance = self.chance(round, device);
                let Worker { compression, compressed, .. } = worker;
                self.compressor.compress(update, q, &mut chance, compression, compressed);
                worker.compressed.norm()
            }
        }
    }

    /// The update of a scheduled device: the one that was kept, or trained once more.
    pub(crate) fn update_of(
        &self,
        trained: &mut Trained,
        theta: &[f32],
        round: u64,
        device: DeviceId,
    ) -> Vec<f32> {
        if let Some(place) = trained.kept.iter().position(|kept| kept.device == device) {
            return trained.kept.swap_remove(place).update;
        }
        let mut update = self.updates.take(|| vec![0.0; theta.len()]);
        self.workers
            .with(|| self.worker(), |worker| self.train_one(theta, round, device, worker, &mut update));
        update
    }

    /// What the update of each of the scheduled `devices` counts in θ(t+1).
    pub(crate) fn shares(&self, devices: &[DeviceId]) -> Vec<f32> {
        self.aggregate.shares(devices.len(), |i| self.learner.size_of(devices[i]))
    }

    /// Memory for a Δ̂.
    pub(crate) fn spare(&self) -> SparseUpdate {
        self.sent.take(SparseUpdate::default)
    }

    /// Δ̂(q) of the update of a device in a round.
    pub(crate) fn compress(
        &self,
        update: &[f32],
        q: usize,
        round: u64,
        device: DeviceId,
        sent: &mut SparseUpdate,
    ) {
        let mut chance = self.chance(round, device);
        self.workers.with(
            || self.worker(),
            |worker| self.compressor.compress(update, q, &mut chance, &mut worker.compression, sent),
        );
    }

    /// What compression leaves to chance. A device that compresses twice in a round, once for its report and once
    /// for the air, makes the same choices, so that what it reports is a foretaste of what it sends.
    fn chance(&self, round: u64, device: DeviceId) -> Stream {
        stream(self.seed, Purpose::Sparsify, round, u64::from(device.0))
    }

    /// After `sent` has gone out: the device notes what it still owes, and the memory of both is free.
    pub(crate) fn settle(&self, device: DeviceId, update: Vec<f32>, sent: SparseUpdate) {
        if self.feedback != Feedback::Off {
            let mut memory = lock(&self.memories[device.index()]);
            memory.residual.clear();
            memory.residual.extend_from_slice(&update);
            sent.add_to(&mut memory.residual, -1.0);
        }
        self.updates.give(update);
        self.sent.give(sent);
    }

    /// Whether what a device does depends on what it did before.
    pub(crate) fn remembers(&self) -> bool {
        !self.memories.is_empty()
    }

    /// Δ of one device that remembers nothing, and its loss.
    pub(crate) fn update(&self, theta: &[f32], round: u64, device: DeviceId) -> (Vec<f32>, f64) {
        let mut update = vec![0.0; theta.len()];
        let make = || self.worker();
        let loss = self.workers.with(make, |w| self.train_one(theta, round, device, w, &mut update));
        (update, loss.value)
    }

    /// What the device would report of `update` over a link of that capacity.
    pub(crate) fn report_of(
        &self,
        kind: ReportKind,
        update: &[f32],
        capacity: f64,
        at: (u64, DeviceId),
    ) -> f32 {
        self.workers.with(|| self.worker(), |worker| self.report(kind, update, capacity, at, worker))
    }

    /// Frees what was kept of devices that were not scheduled.
    pub(crate) fn release(&self, trained: Trained) {
        trained.kept.into_iter().for_each(|kept| self.updates.give(kept.update));
    }

    fn worker(&self) -> Worker {
        Worker {
            training: self.learner.scratch(),
            optimizer: self.learner.fresh_state(),
            compression: Scratch::default(),
            compressed: SparseUpdate::default(),
        }
    }
}

fn lock(memory: &Mutex<Memory>) -> std::sync::MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

fn diverged(round: u64, device: DeviceId) -> Error {
    Error::Diverged { round: round + 1, device: device.0 }
}

/// Takes `new` into `best` if it is among the first `most`; returns the memory of what is not kept.
fn offer(best: &mut Vec<Kept>, most: usize, new: Kept) -> Option<Vec<f32>> {
    let place = best.partition_point(|kept| kept.order(&new).is_lt());
    best.insert(place, new);
    if best.len() > most { best.pop().map(|kept| kept.update) } else { None }
}
