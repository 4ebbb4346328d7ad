//! Factors uniform between two numbers.

use super::Spread;
use crate::registry::{ConfigError, Entry, Key, PartConfig, Scope, key, number};
use crate::rng::{Purpose, stream};
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};

/// The entry of this law.
pub const ENTRY: Entry<dyn Spread> = Entry::of::<UniformConfig>();

/// `[clock.uniform]`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct UniformConfig {
    /// The smallest factor.
    pub low: f64,
    /// The largest factor.
    pub high: f64,
}

impl Default for UniformConfig {
    fn default() -> Self {
        Self { low: 0.5, high: 2.0 }
    }
}

impl PartConfig for UniformConfig {
    type Part = dyn Spread;
    const NAME: &'static str = "uniform";
    const MEANING: &'static str = "training times multiplied by a factor uniform between two numbers";
    const KEYS: &'static [Key] = &[
        key("low", "the smallest factor of a training time", "> 0"),
        key("high", "the largest factor of a training time", "≥ clock.uniform.low"),
    ];

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        number("low", self.low, |x| x > 0.0, "a finite number above 0")?;
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
