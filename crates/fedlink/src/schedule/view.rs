//! The information that a policy may read.

use super::Notes;
use crate::base::rng::{Purpose, Stream, stream};
use crate::base::units::{DeviceId, Power};
use crate::radio::{CapacityAt, Known};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The server's knowledge when it schedules a round. New facts are new fields.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct View<'a> {
    /// The round, counted from 0.
    pub t: u64,
    /// The largest number of devices that may be scheduled.
    pub k: usize,
    /// d, the entries of an update.
    pub dim: usize,
    /// n, the symbols of a round.
    pub symbols: u64,
    /// Seconds of a symbol; none without a bandwidth.
    pub symbol_s: Option<f64>,
    /// P̄, the average power a device may spend, in the unit of the noise variance.
    pub average_power: Power,
    /// σ², the noise variance.
    pub noise: f64,
    /// The server's knowledge of the uplink.
    pub links: &'a Known,
    /// The table of all devices.
    pub devices: &'a DeviceTable,
    /// Σ K over the rounds before this one.
    pub(crate) turns: u128,
    pub(crate) uplink: &'a dyn CapacityAt,
    pub(crate) known_of: &'a Facts,
    pub(crate) samples: &'a (dyn Fn(DeviceId) -> usize + Send + Sync),
    pub(crate) seed: u64,
    /// Set where the round is logged.
    pub(crate) notes: Option<&'a Notes>,
}

impl View<'_> {
    /// All devices that may send, ascending.
    pub fn eligible(&self) -> Vec<DeviceId> {
        DeviceId::all(self.links.devices()).filter(|device| self.devices.may_send(*device)).collect()
    }

    /// All M devices, ascending.
    pub fn everyone(&self) -> Vec<DeviceId> {
        DeviceId::all(self.links.devices()).collect()
    }

    /// C_m if `k` devices were scheduled in this round, at least 1, each with the power that this leaves it;
    /// that of a run with K = `k`, to the last bit.
    pub fn capacity_at(&self, device: DeviceId, k: usize) -> f64 {
        self.uplink.capacity_at(self.t, self.links, device, k)
    }

    /// Seconds that a device is expected to train, as the clock has it without the jitter of a round; none
    /// without a clock that counts them.
    pub fn train_s(&self, device: DeviceId) -> Option<f64> {
        self.known_of.train_s.get(device.index()).copied()
    }

    /// The number of samples of each class that a device reported to the server; none if unknown.
    pub fn label_counts(&self, device: DeviceId) -> Option<Vec<u32>> {
        self.known_of.labels.as_ref().and_then(|labels| labels(device))
    }

    /// The number of training samples of a device.
    pub fn samples(&self, device: DeviceId) -> usize {
        (self.samples)(device)
    }

    /// Random numbers for this round, a function of (seed, t, `label`): another label is another stream.
    pub fn rng(&self, label: u64) -> Stream {
        stream(self.seed, Purpose::Schedule, self.t, label)
    }

    /// Random numbers that are the same in all rounds of a run, a function of (seed, `label`).
    pub fn fixed_rng(&self, label: u64) -> Stream {
        stream(self.seed, Purpose::Schedule, u64::MAX, label)
    }
}

/// The number of samples of each class that a device holds, where it is known.
pub type LabelCounts = Arc<dyn Fn(DeviceId) -> Option<Vec<u32>> + Send + Sync>;

/// Facts of the devices that a server knows before the first round.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Facts {
    /// Seconds that each device is expected to train; empty: unknown.
    pub train_s: Vec<f64>,
    /// The labels of each device; none: unknown.
    pub labels: Option<LabelCounts>,
}

/// The server's table of all devices, one column for each quantity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceTable {
    /// The number of rounds in which it was scheduled.
    scheduled: Vec<u32>,
    /// Rounds done when it was scheduled last, that round included; 0: never.
    last: Vec<u64>,
    /// The loss that it reported last; NaN: none yet, or the policy requests none.
    last_loss: Vec<f32>,
    /// Whether it may send in this round.
    may_send: Vec<bool>,
}

impl DeviceTable {
    pub(crate) fn new(devices: usize) -> Self {
        Self {
            scheduled: vec![0; devices],
            last: vec![0; devices],
            last_loss: Vec::new(),
            may_send: vec![true; devices],
        }
    }

    /// Whether every column is of `devices` entries, which those of a state that was read need not be.
    pub(crate) fn is_of(&self, devices: usize) -> bool {
        let Self { scheduled, last, last_loss, may_send } = self;
        [scheduled.len(), last.len(), may_send.len()] == [devices; 3]
            && [0, devices].contains(&last_loss.len())
    }

    /// M.
    pub fn len(&self) -> usize {
        self.scheduled.len()
    }

    /// Whether there is no device.
    pub fn is_empty(&self) -> bool {
        self.scheduled.is_empty()
    }

    /// The number of rounds in which a device was scheduled so far.
    pub fn scheduled(&self, device: DeviceId) -> u32 {
        self.scheduled[device.index()]
    }

    /// The number of rounds in which each device was scheduled so far.
    pub fn all_scheduled(&self) -> &[u32] {
        &self.scheduled
    }

    /// Age of a device before round `t`: rounds since it was scheduled last, 0 if that was the round before,
    /// `t` if it never was.
    pub fn age(&self, device: DeviceId, t: u64) -> u64 {
        t.saturating_sub(self.last[device.index()])
    }

    /// The loss that a device reported last, if the policy requests losses and it has reported one.
    pub fn last_loss(&self, device: DeviceId) -> Option<f32> {
        self.last_loss.get(device.index()).copied().filter(|loss| !loss.is_nan())
    }

    /// Whether a device may send in this round: it is there, not excluded, and within its participation cap.
    pub fn may_send(&self, device: DeviceId) -> bool {
        self.may_send[device.index()]
    }

    pub(crate) fn set_may_send(&mut self, device: usize, may: bool) {
        self.may_send[device] = may;
    }

    pub(crate) fn note_scheduled(&mut self, device: DeviceId, t: u64) {
        let m = device.index();
        self.scheduled[m] = self.scheduled[m].saturating_add(1);
        self.last[m] = t + 1;
    }

    pub(crate) fn note_loss(&mut self, device: DeviceId, loss: f32) {
        if self.last_loss.is_empty() {
            self.last_loss = vec![f32::NAN; self.scheduled.len()];
        }
        self.last_loss[device.index()] = loss;
    }
}
