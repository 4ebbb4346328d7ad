//! The state of the devices under a correction.

use super::{AddUpdate, Correction};
use crate::base::state::{Persist, State, StateError};
use crate::base::units::DeviceId;
use std::sync::{Arc, Mutex, PoisonError};

/// The devices' side of a correction: the vector of each device, and the last broadcast vector of the
/// server.
pub(crate) struct DeviceCorrections {
    rule: Arc<dyn Correction>,
    /// One per device if the rule keeps state, else none; empty before its first upload, which means all
    /// zeros.
    own: Vec<Mutex<Vec<f32>>>,
    control: Vec<f32>,
    /// The vector of a device that has not sent yet.
    zeros: Vec<f32>,
}

impl DeviceCorrections {
    pub(crate) fn new(rule: Arc<dyn Correction>, devices: usize, dim: usize) -> Self {
        let (devices, dim) = if rule.keeps_state() { (devices, dim) } else { (0, 0) };
        let own = (0..devices).map(|_| Mutex::default()).collect();
        Self { rule, own, control: vec![0.0; dim], zeros: vec![0.0; dim] }
    }

    /// Whether there is a correction, and state to keep.
    pub(crate) fn keeps_state(&self) -> bool {
        !self.own.is_empty()
    }

    /// Vectors of the size of θ that the devices keep once all have sent.
    pub(crate) fn state_vectors(&self) -> usize {
        self.own.len()
    }

    /// μ.
    pub(crate) fn proximal(&self) -> f32 {
        self.rule.proximal()
    }

    /// Sets the vector that the server broadcasts with θ(t); an empty one means zeros.
    pub(crate) fn set_control(&mut self, control: &[f32]) {
        if self.keeps_state() {
            self.control.copy_from_slice(if control.is_empty() { &self.zeros } else { control });
        }
    }

    /// The vector that `device` adds to its gradients, in the memory of d numbers that `buffer` provides;
    /// empty if there is none.
    pub(crate) fn linear(&self, device: DeviceId, buffer: impl FnOnce() -> Vec<f32>) -> Vec<f32> {
        let Some(own) = self.own.get(device.index()) else { return Vec::new() };
        let own = own.lock().unwrap_or_else(PoisonError::into_inner);
        let mut linear = buffer();
        let own = if own.is_empty() { &self.zeros } else { &*own };
        self.rule.write_linear(own, &self.control, &mut linear);
        linear
    }

    /// Updates the state after `update`, the upload of `device` with steps of the given length, arrived.
    pub(crate) fn settle(&self, device: DeviceId, update: AddUpdate, length: f64) {
        let Some(own) = self.own.get(device.index()) else { return };
        let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
        own.resize(self.zeros.len(), 0.0);
        self.rule.settle_device(&mut own, &self.control, update, length);
    }
}

impl Persist for DeviceCorrections {
    fn save(&self) -> State {
        if self.keeps_state() { State::of(&self.own) } else { State::default() }
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        if !self.keeps_state() {
            return if state.is_empty() { Ok(()) } else { Err(StateError("it keeps no state".into())) };
        }
        let own: Vec<Mutex<Vec<f32>>> = state.read()?;
        let fits = |own: &Mutex<Vec<f32>>| {
            [0, self.zeros.len()].contains(&own.lock().unwrap_or_else(PoisonError::into_inner).len())
        };
        if own.len() != self.own.len() || !own.iter().all(fits) {
            return Err(StateError("its vectors are not those of this run".into()));
        }
        self.own = own;
        Ok(())
    }
}
