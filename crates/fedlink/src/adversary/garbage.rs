//! Garbage: random bytes.

use super::{Attack, Traffic};
use crate::base::rng::{Purpose, stream};
use crate::base::state::Persist;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this attack.
pub const ENTRY: Entry<dyn Attack> = Entry::of::<Garbage>();

/// Sends uniformly random bits, up to its budget.
///
/// Most are not a payload of the round's format. A few decode by accident, to arbitrary values up to
/// 10³⁸.
#[keys]
#[derive(Clone, Copy, Debug)]
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
    fn payload(&mut self, traffic: &Traffic, index: usize) -> Option<Vec<u8>> {
        let device = traffic.devices[index].0.into();
        let mut rng = stream(traffic.seed, Purpose::Adversary, traffic.t, device);
        Some((0..traffic.room[index] / 8).map(|_| rng.bits() as u8).collect())
    }

    fn acts_on_bytes(&self) -> bool {
        true
    }
}
