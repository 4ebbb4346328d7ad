//! No fading at all.

use super::Fading;
use crate::registry::{ConfigError, Entry, PartConfig, Scope};
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};

/// The entry of this law.
pub const ENTRY: Entry<dyn Fading> = Entry::of::<ConstantConfig>();

/// `[radio.static]` has no keys.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantConfig {}

impl PartConfig for ConstantConfig {
    type Part = dyn Fading;
    const NAME: &'static str = "static";
    const MEANING: &'static str = "no fading: gain 1 for every device in every round";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Fading>, ConfigError> {
        Ok(Box::new(Constant))
    }
}

/// g = 1: links differ by their mean gains alone.
///
/// Invariants: mean 1, variance 0; the limit of [`Rician`](super::Rician) fading as its K-factor grows.
#[derive(Clone, Copy, Debug)]
pub struct Constant;

impl Fading for Constant {
    fn gain(&self, _: u64, _: DeviceId) -> f64 {
        1.0
    }
}
