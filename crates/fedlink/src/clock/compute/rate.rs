//! Training by samples per second.

use super::{Compute, ComputeMaterial, Load, PerDevice};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this model.
pub const ENTRY: Entry<dyn Compute> = Entry::of::<RateConfig>();

/// `[clock.rate]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct RateConfig {
    /// samples that a device trains on in a second
    #[key(default = PerDevice::Between([10.0, 100.0]), allowed = "> 0, or [low, high]: uniform over devices")]
    pub samples_per_s: PerDevice,
}

impl PartConfig for RateConfig {
    type Part = dyn Compute;
    const NAME: &'static str = "rate";
    const MEANING: &'static str = "samples that a device trains on in a second";

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
