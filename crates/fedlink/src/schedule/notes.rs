//! The numbers that a policy decides by, noted for logs.

use super::View;
use crate::base::units::DeviceId;
use crate::record::{Decision, Quantity};
use std::sync::{Mutex, PoisonError};

/// The notes of a round, by device.
#[derive(Debug, Default)]
pub struct Notes(Mutex<Vec<Decision>>);

impl Notes {
    /// Empty notes about so many devices.
    pub fn new(devices: usize) -> Self {
        Self(Mutex::new(vec![Decision::default(); devices]))
    }

    /// The notes so far.
    pub fn decisions(&self) -> Vec<Decision> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl View<'_> {
    /// Whether the round is logged, so that [`View::note`] keeps what it is given.
    pub fn is_logged(&self) -> bool {
        self.notes.is_some()
    }

    /// Notes numbers that the policy decides by in this round: `--log-rounds all` writes them, and
    /// [`RoundRecord::details`](crate::record::RoundRecord::details) has them. Nothing is computed where the
    /// round is not logged.
    pub fn note(&self, quantity: Quantity, values: impl IntoIterator<Item = (DeviceId, f64)>) {
        let Some(Notes(decisions)) = self.notes else { return };
        let mut decisions = decisions.lock().unwrap_or_else(PoisonError::into_inner);
        for (device, value) in values {
            if let Some(decision) = decisions.get_mut(device.index()) {
                decision.note(quantity, value);
            }
        }
    }

    /// As [`View::note`], of `devices` one value each.
    pub fn note_each(&self, quantity: Quantity, devices: &[DeviceId], value: impl Fn(usize) -> f64) {
        self.note(quantity, devices.iter().enumerate().map(|(index, device)| (*device, value(index))));
    }
}
