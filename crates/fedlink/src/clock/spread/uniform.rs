//! Factors uniform between two numbers.

use super::Spread;
use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys, number};

/// The entry of this law.
pub const ENTRY: Entry<dyn Spread> = Entry::of::<UniformConfig>();

/// `[clock.uniform]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct UniformConfig {
    /// the smallest factor of a training time
    #[key(default = 0.5, range = "> 0")]
    pub low: f64,
    /// the largest factor of a training time
    #[key(default = 2.0, allowed = "≥ clock.uniform.low")]
    pub high: f64,
}

impl PartConfig for UniformConfig {
    type Part = dyn Spread;
    const NAME: &'static str = "uniform";
    const MEANING: &'static str = "training times multiplied by a factor uniform between two numbers";

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        number("high", self.high, |x| x >= self.low, "a finite number, at least clock.uniform.low")
    }

    fn build(self, scope: &Scope, (): &()) -> Result<Box<dyn Spread>, ConfigError> {
        Ok(Box::new(Uniform { low: self.low, high: self.high, seed: scope.seed }))
    }
}

/// U(low, high), drawn once for each device.
#[derive(Clone, Copy, Debug)]
pub struct Uniform {
    /// The smallest factor.
    pub low: f64,
    /// The largest factor.
    pub high: f64,
    /// The run's seed.
    pub seed: u64,
}

impl Spread for Uniform {
    fn factor(&self, device: DeviceId) -> f64 {
        stream(self.seed, Purpose::Compute, u64::MAX, u64::from(device.0)).between(self.low, self.high)
    }
}
