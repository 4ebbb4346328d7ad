//! The same time in every round.

use super::Jitter;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn Jitter> = Entry::of::<Steady>();

/// Factor 1.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Steady {}

impl PartConfig for Steady {
    type Part = dyn Jitter;
    const NAME: &'static str = "steady";
    const MEANING: &'static str = "a device trains for the same time in every round";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Jitter>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Jitter for Steady {
    fn factor(&self, _: u64, _: DeviceId) -> f64 {
        1.0
    }
}
