//! Training by samples a second.

use super::{Compute, ComputeMaterial, Load, PerDevice};
use crate::registry::{ConfigError, Entry, Key, PartConfig, Scope, key};
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};

/// The entry of this model.
pub const ENTRY: Entry<dyn Compute> = Entry::of::<RateConfig>();

/// `[clock.rate]`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RateConfig {
    /// Samples a second.
    pub samples_per_s: PerDevice,
}

impl Default for RateConfig {
    fn default() -> Self {
        Self { samples_per_s: PerDevice::Between([10.0, 100.0]) }
    }
}

impl PartConfig for RateConfig {
    type Part = dyn Compute;
    const NAME: &'static str = "rate";
    const MEANING: &'static str = "samples that a device trains on in a second";
    const KEYS: &'static [Key] = &[key(
        "samples_per_s",
        "samples that a device trains on in a second",
        "> 0, or [low, high]: uniform over devices",
    )];

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        self.samples_per_s.check("samples_per_s")
    }

    fn build(self, scope: &Scope, _: &ComputeMaterial) -> Result<Box<dyn Compute>, ConfigError> {
        Ok(Box::new(SampleRate { samples_per_s: self.samples_per_s, seed: scope.seed }))
    }
}

/// t = S/r, S samples at r a second, as in client selection by deadline (U(10, 100) there, as we read it).
#[derive(Clone, Copy, Debug)]
pub struct SampleRate {
    /// r.
    pub samples_per_s: PerDevice,
    /// The run's seed.
    pub seed: u64,
}

impl Compute for SampleRate {
    fn seconds(&self, device: DeviceId, load: &Load) -> f64 {
        load.samples / self.samples_per_s.of(self.seed, device, 4)
    }
}
