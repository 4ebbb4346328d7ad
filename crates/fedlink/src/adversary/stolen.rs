//! Stolen: another device's payload.

use super::{Attack, Traffic};
use crate::base::state::{Persist, State, StateError};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this attack.
pub const ENTRY: Entry<dyn Attack> = Entry::of::<Stolen>();

/// Sends the payload of another device: of the next one in the schedule of this round or, if no other
/// device sends, the last payload that it overheard. If it has overheard none yet, it sends its own.
///
/// As with a replay, a payload made for another budget is rarely valid in this one. If all devices have
/// the same budget, as with BC, the payload is a valid second copy of an honest update; only its sender
/// is wrong.
#[keys]
#[derive(Clone, Debug)]
pub struct Stolen {
    #[serde(skip)]
    overheard: Vec<u8>,
}

impl PartConfig for Stolen {
    type Part = dyn Attack;
    const NAME: &'static str = "stolen";
    const MEANING: &'static str = "sends the payload of another device";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Attack>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for Stolen {
    fn save(&self) -> State {
        State::of(&self.overheard)
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        self.overheard = state.read()?;
        Ok(())
    }
}

impl Attack for Stolen {
    fn payload(&mut self, traffic: &Traffic, index: usize) -> Option<Vec<u8>> {
        let after = (index + 1..traffic.payloads.len()).chain(0..index);
        let other = after.map(|i| &traffic.payloads[i]).find(|payload| !payload.is_empty());
        other.or(Some(&self.overheard)).filter(|payload| !payload.is_empty()).cloned()
    }

    fn listen(&mut self, traffic: &Traffic) {
        if let Some(last) = traffic.payloads.iter().rev().find(|payload| !payload.is_empty()) {
            self.overheard.clone_from(last);
        }
    }

    fn acts_on_bytes(&self) -> bool {
        true
    }
}
