//! Rician block fading: a line of sight and scatter.

use super::Fading;
use crate::registry::{ConfigError, Entry, Key, PartConfig, Scope, key, number};
use crate::rng::{Purpose, stream};
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};

/// The entry of this law.
pub const ENTRY: Entry<dyn Fading> = Entry::of::<RicianConfig>();

/// `[radio.rician]`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RicianConfig {
    /// Power of the line of sight over that of the scatter, a ratio (not dB).
    pub k_factor: f64,
}

impl Default for RicianConfig {
    fn default() -> Self {
        Self { k_factor: 1.0 }
    }
}

impl PartConfig for RicianConfig {
    type Part = dyn Fading;
    const NAME: &'static str = "rician";
    const MEANING: &'static str =
        "Rician block fading: a line of sight of radio.rician.k_factor times the scatter's power";
    const KEYS: &'static [Key] = &[key(
        "k_factor",
        "power of the line of sight over that of the scatter, as a ratio (9 dB are 7.94)",
        "0 (Rayleigh) ..= 1e12",
    )];

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        number("k_factor", self.k_factor, |k| (0.0..=1e12).contains(&k), "a number in 0..=1e12")
    }

    fn build(self, scope: &Scope, (): &()) -> Result<Box<dyn Fading>, ConfigError> {
        Ok(Box::new(Rician { seed: scope.seed, k_factor: self.k_factor }))
    }
}

/// h = √(κ/(κ+1)) + CN(0, 1/(κ+1)) with the K-factor κ (the letter K is taken), independent
/// over devices and rounds.
///
/// 2(κ+1)·g follows a noncentral χ² law with two degrees of freedom and noncentrality 2κ. Source: Rice
/// (1944); any text on fading channels. Invariants: g ≥ 0 and finite; mean 1; variance (1+2κ)/(1+κ)²; κ = 0
/// has the law of Rayleigh fading (not its draws), κ → ∞ is no fading.
///
/// ```
/// use fedlink::radio::fading::{Fading, Rician};
/// use fedlink::units::DeviceId;
/// let nearly_static = Rician { seed: 0, k_factor: 1e12 };
/// assert!((nearly_static.gain(0, DeviceId(0)) - 1.0).abs() < 1e-4);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rician {
    /// The run's seed.
    pub seed: u64,
    /// κ, a ratio ≥ 0.
    pub k_factor: f64,
}

impl Fading for Rician {
    fn gain(&self, t: u64, device: DeviceId) -> f64 {
        let mut stream = stream(self.seed, Purpose::Channel, t, u64::from(device.0));
        let direct = libm::sqrt(self.k_factor / (self.k_factor + 1.0));
        // Each of the two parts of CN(0, s) has variance s/2.
        let deviation = libm::sqrt(0.5 / (self.k_factor + 1.0));
        let in_phase = direct + deviation * stream.normal();
        let quadrature = deviation * stream.normal();
        in_phase * in_phase + quadrature * quadrature
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::gains;
    use super::*;

    const FACTORS: [f64; 5] = [0.0, 0.3, 1.0, 7.94, 100.0];

    fn sample(k_factor: f64) -> Vec<f64> {
        (0..1000).flat_map(|t| gains(&Rician { seed: 4, k_factor }, t, 40)).collect()
    }

    #[test]
    fn mean_and_variance_are_those_of_the_noncentral_chi_squared_law() {
        for k in FACTORS {
            let gains = sample(k);
            let count = gains.len() as f64;
            let mean = gains.iter().sum::<f64>() / count;
            let variance = gains.iter().map(|g| (g - 1.0).powi(2)).sum::<f64>() / count;
            let truth = (1.0 + 2.0 * k) / (1.0 + k).powi(2);
            assert!((mean - 1.0).abs() < 5.0 * (truth / count).sqrt(), "κ = {k}: mean {mean}");
            // The fourth central moment of a noncentral χ² with two degrees of freedom and noncentrality λ is
            // 12·(2 + 2λ)² + 48·(2 + 4λ), in units of (2(κ+1))⁻⁴.
            let (lambda, scale) = (2.0 * k, (2.0 * (k + 1.0)).powi(4));
            let fourth = (3.0 * (2.0 * (2.0 + 2.0 * lambda)).powi(2) + 48.0 * (2.0 + 4.0 * lambda)) / scale;
            let slack = 5.0 * ((fourth - truth * truth) / count).sqrt();
            assert!((variance - truth).abs() < slack, "κ = {k}: variance {variance}, not {truth} ± {slack}");
        }
    }

    /// P(g ≤ x) = Σ_j Poisson(j; κ)·P(Gamma(1 + j, 1) ≤ (κ+1)·x): a Poisson mixture of gamma
    /// laws, summed in full.
    fn cdf(k: f64, x: f64) -> f64 {
        let y = (k + 1.0) * x;
        let (mut poisson, mut tail_term) = ((-k).exp(), (-y).exp());
        let (mut gamma_cdf, mut total) = (1.0 - tail_term, 0.0);
        for j in 0..600 {
            total += poisson * gamma_cdf;
            poisson *= k / f64::from(j + 1);
            tail_term *= y / f64::from(j + 1);
            gamma_cdf -= tail_term;
        }
        total
    }

    #[test]
    fn gains_follow_the_distribution_function() {
        // Kolmogorov–Smirnov: the 99.99 % point of √N·D is 2.23.
        for k in FACTORS {
            let mut gains = sample(k);
            gains.sort_by(f64::total_cmp);
            let count = gains.len() as f64;
            let far = |(i, g): (usize, &f64)| {
                let cdf = cdf(k, *g);
                (cdf - i as f64 / count).abs().max((cdf - (i + 1) as f64 / count).abs())
            };
            let distance = gains.iter().enumerate().map(far).fold(0.0, f64::max);
            assert!(distance * count.sqrt() < 2.23, "κ = {k}: √N·D = {}", distance * count.sqrt());
        }
    }

    #[test]
    fn the_distribution_function_of_the_test_is_the_exponential_one_without_a_line_of_sight() {
        for x in [0.01, 0.5, 1.0, 4.0] {
            assert!((cdf(0.0, x) - (1.0 - f64::exp(-x))).abs() < 1e-14);
        }
        // The density (κ+1)·e^(−κ−(κ+1)g)·I₀(2√(κ(κ+1)g)) integrated by mpmath at κ = 7.94 from 0 to 1.
        assert!((cdf(7.94, 1.0) - 0.547_948_507_665_142_3).abs() < 1e-12, "{}", cdf(7.94, 1.0));
    }
}
