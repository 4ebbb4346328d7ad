//! Log-normal factors.

use super::Spread;
use crate::registry::{ConfigError, Entry, Key, PartConfig, Scope, key, number};
use crate::rng::{Purpose, stream};
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};

/// The entry of this law.
pub const ENTRY: Entry<dyn Spread> = Entry::of::<LognormalConfig>();

/// `[clock.lognormal]`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct LognormalConfig {
    /// σ of the logarithm.
    pub sigma: f64,
}

impl Default for LognormalConfig {
    fn default() -> Self {
        Self { sigma: 0.6 }
    }
}

impl PartConfig for LognormalConfig {
    type Part = dyn Spread;
    const NAME: &'static str = "lognormal";
    const MEANING: &'static str = "training times multiplied by a log-normal factor of mean 1";
    const KEYS: &'static [Key] =
        &[key("sigma", "standard deviation of the factor's natural logarithm", "0 ..= 10")];

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        number("sigma", self.sigma, |x| (0.0..=10.0).contains(&x), "a number in 0..=10")
    }

    fn build(self, scope: &Scope, (): &()) -> Result<Box<dyn Spread>, ConfigError> {
        Ok(Box::new(Lognormal { sigma: self.sigma, seed: scope.seed }))
    }
}

/// exp(σZ − σ²/2) with a standard normal Z of each device: mean 1. Public traces of phones are modeled so, as
/// we read them.
#[derive(Clone, Copy, Debug)]
pub struct Lognormal {
    /// σ.
    pub sigma: f64,
    /// The run's seed.
    pub seed: u64,
}

impl Spread for Lognormal {
    fn factor(&self, device: DeviceId) -> f64 {
        let normal = stream(self.seed, Purpose::Compute, u64::MAX, u64::from(device.0)).normal();
        libm::exp(self.sigma * normal - 0.5 * self.sigma * self.sigma)
    }
}
