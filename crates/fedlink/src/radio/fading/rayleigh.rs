//! Rayleigh block fading.

use super::{Fading, FadingFacts, Multipath, Propagation};
use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn Fading> = Entry::of::<RayleighConfig>();

/// `[radio.rayleigh]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct RayleighConfig {}

impl PartConfig for RayleighConfig {
    type Part = dyn Fading;
    const NAME: &'static str = "rayleigh";
    const MEANING: &'static str = "Rayleigh block fading: gain ~ Exp(1), independent over devices and rounds";

    fn facts(&self) -> FadingFacts {
        FadingFacts { exponential: true, ..FadingFacts::AMPLITUDES }
    }

    fn build(self, scope: &Scope, propagation: &Propagation) -> Result<Box<dyn Fading>, ConfigError> {
        propagation.check()?;
        if propagation.is_plain() {
            return Ok(Box::new(Rayleigh { seed: scope.seed }));
        }
        Ok(Box::new(Multipath::new(0.0, scope, propagation)?))
    }
}

/// h ~ CN(0,1), independent over devices and rounds, constant within a round; so g = |h|² ~ Exp(1).
///
/// Source: section II-B of the paper. Invariants: g ≥ 0 and finite; mean 1, variance 1; the largest of M has
/// mean `1 + 1/2 + … + 1/M`. With several antennas, correlation over rounds or delays it is [`Multipath`]
/// without a line of sight.
///
/// ```
/// use fedlink::radio::fading::{Fading, Rayleigh};
/// use fedlink::base::units::DeviceId;
/// let fading = Rayleigh { seed: 0 };
/// assert!(fading.gain(0, DeviceId(3)) > 0.0);
/// assert_eq!(fading.gain(7, DeviceId(3)), fading.gain(7, DeviceId(3)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rayleigh {
    /// The run's seed.
    pub seed: u64,
}

impl Fading for Rayleigh {
    fn gain(&self, t: u64, device: DeviceId) -> f64 {
        stream(self.seed, Purpose::Channel, t, u64::from(device.0)).exponential()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Memory;
    use super::super::tests::{gains, kolmogorov};
    use super::*;

    #[test]
    fn gains_are_exponential_with_mean_one() {
        // Kolmogorov–Smirnov against 1 − e^{−g}: the 99.99 % point of √N·D is 2.23.
        let gains = (0..500).flat_map(|t| gains(&Rayleigh { seed: 3 }, t, 40)).collect();
        let distance = kolmogorov(gains, |g| 1.0 - f64::exp(-g));
        assert!(distance < 2.23, "√N·D = {distance}");
    }

    #[test]
    fn the_best_of_m_gains_has_the_harmonic_number_as_its_mean() {
        let (devices, rounds) = (40, 20_000);
        let best = |t| gains(&Rayleigh { seed: 5 }, t, devices).into_iter().fold(0.0, f64::max);
        let mean = (0..rounds).map(best).sum::<f64>() / rounds as f64;
        let harmonic: f64 = (1..=devices).map(|i| 1.0 / i as f64).sum();
        let variance: f64 = (1..=devices).map(|i| 1.0 / (i * i) as f64).sum();
        let slack = 4.0 * (variance / rounds as f64).sqrt();
        assert!((mean - harmonic).abs() < slack, "{mean} is not within {slack} of {harmonic}");
    }

    #[test]
    fn fading_is_independent_over_rounds_and_devices() {
        // Correlation of neighbors in time and in space: zero within four standard errors.
        let table: Vec<Vec<f64>> = (0..2000).map(|t| gains(&Rayleigh { seed: 9 }, t, 8)).collect();
        let mut in_time = 0.0;
        let mut in_space = 0.0;
        let mut pairs = 0.0;
        for t in 1..table.len() {
            for m in 1..8 {
                in_time += (table[t][m] - 1.0) * (table[t - 1][m] - 1.0);
                in_space += (table[t][m] - 1.0) * (table[t][m - 1] - 1.0);
                pairs += 1.0;
            }
        }
        let slack = 4.0 / f64::sqrt(pairs);
        assert!((in_time / pairs).abs() < slack && (in_space / pairs).abs() < slack);
    }

    #[test]
    fn the_registered_law_keeps_its_draws_unless_an_option_is_set() {
        let build = |propagation: &Propagation| {
            let scope = Scope { seed: 7, ..Scope::default() };
            gains(&*ENTRY.build(&toml::Table::new(), &scope, propagation).unwrap(), 3, 40)
        };
        let plain: Vec<f64> = (0..40).map(|m| stream(7, Purpose::Channel, 3, m).exponential()).collect();
        assert_eq!(build(&Propagation::default()), plain);
        let memory = Memory::GaussMarkov { correlation: 0.0 };
        assert_ne!(build(&Propagation { memory, ..Propagation::default() }), plain);
    }
}
