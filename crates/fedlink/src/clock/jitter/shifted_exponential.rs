//! A shortest time and an exponential delay.

use super::Jitter;
use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn Jitter> = Entry::of::<ShiftedExponentialConfig>();

/// `[clock.shifted-exponential]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ShiftedExponentialConfig {
    /// the mean delay is 1/rate times the shortest training time
    #[key(default = 1.0, range = "> 0")]
    pub rate: f64,
}

impl PartConfig for ShiftedExponentialConfig {
    type Part = dyn Jitter;
    const NAME: &'static str = "shifted-exponential";
    const MEANING: &'static str = "training times multiplied by 1 + Exp(1)/rate, drawn in every round";

    fn build(self, scope: &Scope, (): &()) -> Result<Box<dyn Jitter>, ConfigError> {
        Ok(Box::new(ShiftedExponential { rate: self.rate, seed: scope.seed }))
    }
}

/// 1 + E/μ with E ~ Exp(1): a training takes its shortest time and an exponential delay.
///
/// Source: after Shi et al., as we read it. Invariants: at least 1, mean 1 + 1/μ; the largest of K has mean
/// 1 + H_K/μ with the harmonic number H_K.
///
/// ```
/// use fedlink::clock::jitter::{Jitter, shifted_exponential::ShiftedExponential};
/// use fedlink::base::units::DeviceId;
/// assert!(ShiftedExponential { rate: 2.0, seed: 0 }.factor(3, DeviceId(1)) >= 1.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ShiftedExponential {
    /// μ.
    pub rate: f64,
    /// The run's seed.
    pub seed: u64,
}

impl Jitter for ShiftedExponential {
    fn factor(&self, t: u64, device: DeviceId) -> f64 {
        1.0 + stream(self.seed, Purpose::Compute, t, u64::from(device.0)).exponential() / self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_k_waits_for_the_harmonic_number() {
        let (rate, k, rounds) = (1.5, 10, 20_000);
        let law = ShiftedExponential { rate, seed: 7 };
        let slowest = |t| DeviceId::all(k).map(|device| law.factor(t, device)).fold(0.0, f64::max);
        let mean = (0..rounds).map(slowest).sum::<f64>() / rounds as f64;
        let harmonic: f64 = (1..=k).map(|i| 1.0 / i as f64).sum();
        let variance: f64 = (1..=k).map(|i| 1.0 / (i * i) as f64).sum::<f64>() / rate / rate;
        let slack = 4.0 * (variance / rounds as f64).sqrt();
        assert!((mean - 1.0 - harmonic / rate).abs() < slack, "{mean}");
    }
}
