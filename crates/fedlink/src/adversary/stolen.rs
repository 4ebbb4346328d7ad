//! Stolen: another device's payload.

use super::{Air, Attack};
use std::sync::{Mutex, PoisonError};

/// Sends what another device sends: the payload of the next one in the schedule of this round, or, if nobody else
/// sends, the last payload that it heard on the air. If it has heard none yet, it sends its own.
///
/// As with a replay, a payload made for another budget is rarely valid in its own. Where all have the same budget, as
/// with BC, it is a second copy of an honest update, and nothing is wrong with it but its sender.
#[derive(Debug, Default)]
pub struct Stolen {
    heard: Mutex<Vec<u8>>,
}

impl Attack for Stolen {
    fn payload(&self, air: &Air, place: usize) -> Option<Vec<u8>> {
        let after = (place + 1..air.payloads.len()).chain(0..place);
        let other = after.map(|i| &air.payloads[i]).find(|payload| !payload.is_empty());
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        other.or(Some(&*heard)).filter(|payload| !payload.is_empty()).cloned()
    }

    fn listen(&self, air: &Air) {
        if let Some(last) = air.payloads.iter().rev().find(|payload| !payload.is_empty()) {
            self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone_from(last);
        }
    }

    fn state(&self) -> Vec<u8> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.heard = Mutex::new(state.to_vec());
        Ok(())
    }
}
