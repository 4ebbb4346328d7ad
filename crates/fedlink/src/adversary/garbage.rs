//! Garbage: random bytes.

use super::{Air, Attack};
use crate::registry::{ConfigError, Entry, PartConfig, Scope};
use crate::rng::{Purpose, stream};
use crate::state::Persist;
use serde::{Deserialize, Serialize};

/// The entry of this attack.
pub const ENTRY: Entry<dyn Attack> = Entry::of::<Garbage>();

/// Sends uniformly random bits, as many as its budget holds.
///
/// Most are no payload of the round's format. A few decode by accident, to arbitrary values up to 10³⁸.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Garbage {}

impl PartConfig for Garbage {
    type Part = dyn Attack;
    const NAME: &'static str = "garbage";
    const MEANING: &'static str = "sends random bytes";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Attack>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for Garbage {}

impl Attack for Garbage {
    fn payload(&mut self, air: &Air, index: usize) -> Option<Vec<u8>> {
        let mut rng = stream(air.seed, Purpose::Adversary, air.t, u64::from(air.devices[index].0));
        Some((0..air.room[index] / 8).map(|_| rng.bits() as u8).collect())
    }

    fn acts_on_bytes(&self) -> bool {
        true
    }
}
