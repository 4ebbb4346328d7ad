//! Replay: an old payload again.

use super::{Air, Attack};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Sends its first payload again whenever it is scheduled.
///
/// Both ends of the wire take q from the round's budget. A payload made for another q is read as something else, and
/// almost always as nothing valid.
#[derive(Debug, Default)]
pub struct Replay {
    /// The first payload of every hostile device that has sent one.
    first: Mutex<BTreeMap<u32, Vec<u8>>>,
}

impl Attack for Replay {
    fn payload(&self, air: &Air, place: usize) -> Option<Vec<u8>> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = first.entry(air.devices[place].0).or_insert_with(|| air.payloads[place].clone());
        Some(kept.clone())
    }

    fn state(&self) -> Vec<u8> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        postcard::to_stdvec(&*first).expect("numbers and bytes can be written")
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.first = Mutex::new(postcard::from_bytes(state).map_err(|error| error.to_string())?);
        Ok(())
    }
}
