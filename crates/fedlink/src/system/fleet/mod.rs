//! All devices: they train, report, compress and send.
//!
//! Updates stream: a worker trains a device, keeps the few numbers that it reports, and offers the update to
//! a set that keeps the best. Memory is of order (K + threads)·d; only per-device task state or error
//! feedback, where they are on, take M·d. Under a policy that does not schedule the largest reports M·d is
//! used as long as it is small, so that no device trains twice.

mod saved;
mod send;
mod train;

pub use send::Sent;
pub use train::Trained;

use crate::adversary::Adversary;
use crate::base::buffers::Pool;
use crate::base::memory;
use crate::compress::{Encoded, ErrorFeedback};
use crate::learn::correction::{Correction, DeviceCorrections, NoCorrection};
use crate::learn::task::Task;
use crate::system::device::{Encoder, PersistentState};
use std::sync::{Arc, Mutex, PoisonError};

/// The devices: their training, and the state that each keeps from round to round.
pub struct Fleet {
    task: Arc<dyn Task>,
    encoder: Encoder,
    feedback: Box<dyn ErrorFeedback>,
    wire: bool,
    /// The updates that are kept until selection.
    keeps: Keeps,
    /// Whether the mean loss weights a device by its number of samples.
    by_size: bool,
    /// The adversarial devices, if any.
    adversary: Option<Adversary>,
    /// The terms that `learn.correction` adds to gradients.
    corrections: DeviceCorrections,
    /// One per device if devices keep state, otherwise empty.
    states: Vec<Mutex<PersistentState>>,
    updates: Pool<Vec<f32>>,
    encoded: Pool<Encoded>,
    payloads: Pool<Vec<u8>>,
}

/// The components of a [`Fleet`].
pub(crate) struct FleetParts {
    /// The task of the devices.
    pub task: Arc<dyn Task>,
    /// M.
    pub devices: usize,
    /// The compression, the reports and the encoding of updates.
    pub encoder: Encoder,
    /// The rule for the part of an update that was not sent.
    pub feedback: Box<dyn ErrorFeedback>,
    /// Whether updates are sent as bytes.
    pub wire: bool,
    /// Whether the mean loss weights a device by its number of samples.
    pub by_size: bool,
    /// The adversarial devices, if any.
    pub adversary: Option<Adversary>,
}

/// The candidates' updates that are kept until selection, where devices keep no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// The K of the largest first reports, which will be scheduled.
    LargestReports,
    /// All, as long as that takes little memory, so that no device trains twice; otherwise those K.
    WhatFits,
    /// All, for a comparison of all updates.
    All,
}

impl Fleet {
    /// The devices made of `parts`.
    pub(crate) fn new(parts: FleetParts) -> Self {
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
    pub(crate) fn with_correction(mut self, rule: Arc<dyn Correction>, devices: usize, dim: usize) -> Self {
        self.corrections = DeviceCorrections::new(rule, devices, dim);
        self
    }

    /// Receives the server's broadcast besides θ(t), for the correction of local steps.
    pub(crate) fn set_control(&mut self, control: &[f32]) {
        self.corrections.set_control(control);
    }

    /// The task of the devices.
    pub fn task(&self) -> &dyn Task {
        &*self.task
    }

    /// Whether a device's update depends on earlier rounds too: its task keeps state, or there is error
    /// feedback.
    pub fn keeps_state(&self) -> bool {
        !self.states.is_empty()
    }

    /// Whether training in this round changes a later round of a device that sends nothing. If not, the
    /// training of devices that cannot be scheduled would have no effect.
    pub(crate) fn everyone_must_train(&self) -> bool {
        self.task.everyone_trains() || self.feedback.everyone_trains()
    }

    /// Keeps these updates until selection.
    pub(crate) fn keep(&mut self, keeps: Keeps) {
        self.keeps = keeps;
    }

    /// The number of candidates whose updates of `dim` numbers are kept until selection. Training again
    /// restores an update that was not kept, unless the device has moved on.
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

    /// Whether an upload changes a device's state only if the server uses it, and not as soon as it arrives.
    pub(crate) fn waits_for_use(&self) -> bool {
        self.feedback.state_decay().is_some()
    }

    /// The compression, the reports and the encoding of the devices.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Ends round `t` after its uploads: each device whose upload was `delivered` changes its state (a device
    /// whose upload was lost is treated as one that was not scheduled), and all memory of the round is
    /// released. With error feedback that waits for use, `delivered` are the uploads that the server used.
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
}

fn lock(state: &Mutex<PersistentState>) -> std::sync::MutexGuard<'_, PersistentState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
