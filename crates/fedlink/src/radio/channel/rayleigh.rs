//! Rayleigh block fading.

use super::Channel;
use crate::rng::{Purpose, stream};

/// h ~ CN(0,1), independent over devices and rounds, constant within a round; so g = |h|² ~ Exp(1).
///
/// Source: section II-B of the paper. Invariants: g ≥ 0 and finite; the mean is 1; the largest of M has mean
/// `1 + 1/2 + … + 1/M`.
///
/// ```
/// use fedlink::radio::channel::{Channel, Rayleigh};
/// let gains = Rayleigh { seed: 0 }.gains(0, 40);
/// assert_eq!(gains.len(), 40);
/// assert_eq!(gains, Rayleigh { seed: 0 }.gains(0, 40));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rayleigh {
    /// The run's seed.
    pub seed: u64,
}

impl Channel for Rayleigh {
    fn gains(&self, round: u64, devices: usize) -> Vec<f64> {
        (0..devices as u64).map(|m| stream(self.seed, Purpose::Channel, round, m).exponential()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_exponential_with_mean_one() {
        // Kolmogorov–Smirnov against 1 − e^{−g}: the 99.99 % point of √N·D is 2.23.
        let mut gains: Vec<f64> = (0..500).flat_map(|t| Rayleigh { seed: 3 }.gains(t, 40)).collect();
        gains.sort_by(f64::total_cmp);
        let count = gains.len() as f64;
        let distance = gains
            .iter()
            .enumerate()
            .map(|(i, g)| {
                let cdf = 1.0 - (-g).exp();
                (cdf - i as f64 / count).abs().max((cdf - (i + 1) as f64 / count).abs())
            })
            .fold(0.0, f64::max);
        assert!(distance * count.sqrt() < 2.23, "√N·D = {}", distance * count.sqrt());
    }

    #[test]
    fn the_best_of_m_gains_has_the_harmonic_number_as_its_mean() {
        let (devices, rounds) = (40, 20_000);
        let best = |t| Rayleigh { seed: 5 }.gains(t, devices).into_iter().fold(0.0, f64::max);
        let mean = (0..rounds).map(best).sum::<f64>() / rounds as f64;
        let harmonic: f64 = (1..=devices).map(|i| 1.0 / i as f64).sum();
        let variance: f64 = (1..=devices).map(|i| 1.0 / (i * i) as f64).sum();
        let slack = 4.0 * (variance / rounds as f64).sqrt();
        assert!((mean - harmonic).abs() < slack, "{mean} is not within {slack} of {harmonic}");
    }

    #[test]
    fn fading_is_independent_over_rounds_and_devices() {
        // Correlation of neighbours in time and in space: zero within four standard errors.
        let table: Vec<Vec<f64>> = (0..2000).map(|t| Rayleigh { seed: 9 }.gains(t, 8)).collect();
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
}
