//! Rician block fading: a line of sight and scatter.

use super::estimate::complex_normal;
use super::{Fading, FadingFacts, Multipath, Propagation};
use crate::base::rng::{Purpose, Stream, stream};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn Fading> = Entry::of::<RicianConfig>();

/// `[radio.rician]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct RicianConfig {
    /// power of the line of sight over that of the scatter, as a ratio (9 dB are 7.94)
    #[key(default = 1.0, range = "0 ..= 1e12 (0: Rayleigh)")]
    pub k_factor: f64,
}

impl PartConfig for RicianConfig {
    type Part = dyn Fading;
    const NAME: &'static str = "rician";
    const MEANING: &'static str =
        "Rician block fading: a line of sight of radio.rician.k_factor times the scatter's power";

    fn facts(&self) -> FadingFacts {
        FadingFacts::AMPLITUDES
    }

    fn build(self, scope: &Scope, propagation: &Propagation) -> Result<Box<dyn Fading>, ConfigError> {
        propagation.check()?;
        if propagation.is_plain() {
            return Ok(Box::new(Rician { seed: scope.seed, k_factor: self.k_factor }));
        }
        Ok(Box::new(Multipath::new(self.k_factor, scope, propagation)?))
    }
}

/// h = √(κ/(κ+1)) + CN(0, 1/(κ+1)) with the K-factor κ (the letter K is taken), independent
/// over devices and rounds.
///
/// 2(κ+1)·g follows a noncentral χ² law with two degrees of freedom and noncentrality 2κ. Source: Rice
/// (1944); any text on fading channels. Invariants: g ≥ 0 and finite; mean 1; variance (1+2κ)/(1+κ)²; κ = 0
/// has the law of Rayleigh fading (not its draws), κ → ∞ is no fading. With several antennas, correlation
/// over rounds or delays it is [`Multipath`].
///
/// ```
/// use fedlink::radio::fading::{Fading, Rician};
/// use fedlink::base::units::DeviceId;
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

impl Rician {
    /// The line of sight, √(κ/(κ+1)).
    fn direct(&self) -> f64 {
        libm::sqrt(self.k_factor / (self.k_factor + 1.0))
    }

    /// The scatter, CN(0, 1/(κ+1)): real and imaginary part.
    fn scatter(&self, t: u64, device: DeviceId) -> [f64; 2] {
        let mut stream = stream(self.seed, Purpose::Channel, t, u64::from(device.0));
        // Each of the two parts of CN(0, s) has variance s/2.
        let deviation = libm::sqrt(0.5 / (self.k_factor + 1.0));
        let in_phase = deviation * stream.normal();
        [in_phase, deviation * stream.normal()]
    }
}

impl Fading for Rician {
    fn gain(&self, t: u64, device: DeviceId) -> f64 {
        let [scatter, quadrature] = self.scatter(t, device);
        let in_phase = self.direct() + scatter;
        in_phase * in_phase + quadrature * quadrature
    }

    /// The line of sight is known; the scatter s is estimated as ŝ ~ CN((1−ε)s, ε(1−ε)/(κ+1)).
    fn estimate(&self, t: u64, device: DeviceId, error: f64, rng: &mut Stream) -> f64 {
        if error == 0.0 {
            return self.gain(t, device);
        }
        let deviation = libm::sqrt(error * (1.0 - error) / (self.k_factor + 1.0));
        let ([re, im], [w, v]) = (self.scatter(t, device), complex_normal(rng));
        let in_phase = self.direct() + (1.0 - error) * re + deviation * w;
        let quadrature = (1.0 - error) * im + deviation * v;
        in_phase * in_phase + quadrature * quadrature
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{gains, kolmogorov, near_mean};
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
        for k in FACTORS {
            let distance = kolmogorov(sample(k), |g| cdf(k, g));
            assert!(distance < 2.23, "κ = {k}: √N·D = {distance}");
        }
    }

    #[test]
    fn an_estimate_misses_a_part_of_the_scatter_alone() {
        for (k, error) in [(0.0, 0.1), (1.0, 0.3), (9.0, 0.9)] {
            let fading = Rician { seed: 6, k_factor: k };
            let pair = |m: u32| {
                let mut rng = stream(6, Purpose::CsiError, 1, u64::from(m));
                (fading.gain(1, DeviceId(m)), fading.estimate(1, DeviceId(m), error, &mut rng))
            };
            let pairs: Vec<(f64, f64)> = (0..40_000).map(pair).collect();
            // ĥ is Rician of mean power (κ + 1 − ε)/(κ + 1), and Cov(g, ĝ) = (1−ε)(1−ε + 2κ)/(κ+1)².
            let mean = (k + 1.0 - error) / (k + 1.0);
            near_mean(pairs.iter().map(|(_, seen)| *seen), mean, "mean");
            let covariance = (1.0 - error) * (1.0 - error + 2.0 * k) / (k + 1.0).powi(2);
            near_mean(pairs.iter().map(|(g, seen)| (g - 1.0) * (seen - mean)), covariance, "covariance");
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
