//! Log-normal factors.

use super::Spread;
use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn Spread> = Entry::of::<LognormalConfig>();

/// `[clock.lognormal]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct LognormalConfig {
    /// standard deviation of the factor's natural logarithm
    #[key(default = 0.6, range = "0 ..= 10")]
    pub sigma: f64,
}

impl PartConfig for LognormalConfig {
    type Part = dyn Spread;
    const NAME: &'static str = "lognormal";
    const MEANING: &'static str = "training times multiplied by a log-normal factor of mean 1";

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
