//! Replay: an old payload, sent again.

use super::{Attack, Traffic};
use crate::base::state::{Persist, State, StateError};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use std::collections::BTreeMap;

/// The entry of this attack.
pub const ENTRY: Entry<dyn Attack> = Entry::of::<Replay>();

/// Sends its first payload again whenever it is scheduled.
///
/// Both ends of the wire take q from the round's budget. A payload made for another q decodes to other
/// entries, and is almost never valid.
#[keys]
#[derive(Clone, Debug)]
pub struct Replay {
    /// The first payload of every adversarial device that has sent one.
    #[serde(skip)]
    first: BTreeMap<u32, Vec<u8>>,
}

impl PartConfig for Replay {
    type Part = dyn Attack;
    const NAME: &'static str = "replay";
    const MEANING: &'static str = "sends its first payload again and again";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Attack>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for Replay {
    fn save(&self) -> State {
        State::of(&self.first)
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        self.first = state.read()?;
        Ok(())
    }
}

impl Attack for Replay {
    fn payload(&mut self, traffic: &Traffic, index: usize) -> Option<Vec<u8>> {
        let device = traffic.devices[index].0;
        let kept = self.first.entry(device).or_insert_with(|| traffic.payloads[index].clone());
        Some(kept.clone())
    }

    fn acts_on_bytes(&self) -> bool {
        true
    }
}
