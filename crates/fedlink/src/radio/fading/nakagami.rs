//! Nakagami block fading.

use super::{Fading, FadingFacts, Propagation};
use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn Fading> = Entry::of::<NakagamiConfig>();

/// `[radio.nakagami]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct NakagamiConfig {
    /// the inverse of the gain's variance: 1 has the law of Rayleigh fading, more fades less
    #[key(default = 1.0, range = "0.5 ..= 1e9")]
    pub shape: f64,
}

impl PartConfig for NakagamiConfig {
    type Part = dyn Fading;
    const NAME: &'static str = "nakagami";
    const MEANING: &'static str = "Nakagami block fading: gain ~ Gamma of shape radio.nakagami.shape";

    fn facts(&self) -> FadingFacts {
        FadingFacts { deep_fades: self.shape <= 1.0, ..FadingFacts::GAINS }
    }

    fn build(self, scope: &Scope, propagation: &Propagation) -> Result<Box<dyn Fading>, ConfigError> {
        propagation.check()?;
        propagation
            .refuse_amplitudes(Self::NAME, "which is a law of the gain and has no complex amplitude")?;
        Ok(Box::new(Nakagami { seed: scope.seed, shape: self.shape, antennas: propagation.antennas }))
    }
}

/// g = Σ_{i≤N} g_i with g_i ~ Gamma(μ, 1/μ) of shape μ ≥ ½ (the letter m is the device's), independent
/// over antennas, devices and rounds.
///
/// Source: Nakagami (1960), after any text on fading channels. g ~ Gamma(Nμ, 1/μ). Invariants: g ≥ 0 and
/// finite; mean N, variance N/μ; μ = 1 has the law of Rayleigh fading (not its draws); μ = (κ+1)²/(2κ+1) has
/// the variance of Rician fading with K-factor κ; μ → ∞ is no fading. Correlation over rounds and a delay
/// profile are refused: the law has no complex amplitude. An estimate takes the amplitudes for Gaussian.
///
/// ```
/// use fedlink::radio::fading::{Fading, Nakagami};
/// use fedlink::base::units::DeviceId;
/// let nearly_static = Nakagami { seed: 0, shape: 1e9, antennas: 1 };
/// assert!((nearly_static.gain(0, DeviceId(0)) - 1.0).abs() < 1e-3);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Nakagami {
    /// The run's seed.
    pub seed: u64,
    /// μ.
    pub shape: f64,
    /// N.
    pub antennas: usize,
}

impl Fading for Nakagami {
    fn gain(&self, t: u64, device: DeviceId) -> f64 {
        let mut rng = stream(self.seed, Purpose::Channel, t, u64::from(device.0));
        (0..self.antennas).map(|_| libm::exp(rng.ln_gamma(self.shape)) / self.shape).sum()
    }

    fn antennas(&self) -> usize {
        self.antennas
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{gains, kolmogorov, near_mean};
    use super::super::{Memory, Profile};
    use super::*;
    use crate::base::units::Power;
    use crate::radio::link::capacity;
    use toml::Table;

    fn sample(shape: f64, antennas: usize) -> Vec<f64> {
        (0..1000).flat_map(|t| gains(&Nakagami { seed: 4, shape, antennas }, t, 40)).collect()
    }

    #[test]
    fn mean_and_variance_are_those_of_the_gamma_law() {
        for shape in [0.5, 1.0, 2.5, 40.0] {
            for antennas in [1, 3] {
                let (gains, n) = (sample(shape, antennas), antennas as f64);
                near_mean(gains.iter().copied(), n, &format!("μ = {shape}, N = {antennas}: mean"));
                let squares = gains.iter().map(|g| (g - n).powi(2));
                near_mean(squares, n / shape, &format!("μ = {shape}, N = {antennas}: variance"));
            }
        }
    }

    #[test]
    fn gains_follow_the_distribution_function() {
        let distance = kolmogorov(sample(1.0, 1), |g| 1.0 - f64::exp(-g));
        assert!(distance < 2.23, "μ = 1: √N·D = {distance}");
        // Gamma(½, 2) is χ² of one degree of freedom; two antennas of it make an exponential of mean 2.
        let distance = kolmogorov(sample(0.5, 1), |g| libm::erf(f64::sqrt(g / 2.0)));
        assert!(distance < 2.23, "μ = ½: √N·D = {distance}");
        let distance = kolmogorov(sample(0.5, 2), |g| 1.0 - f64::exp(-g / 2.0));
        assert!(distance < 2.23, "μ = ½, N = 2: √N·D = {distance}");
    }

    #[test]
    fn ergodic_capacities_are_the_closed_form() {
        // log2(e)·e^(μ/γ)·Σ_{k≤μ} E_k(μ/γ), with scipy's expn.
        let frozen = [
            (4.0, 2.0, 2.108_434_337_222_951_3),
            (4.0, 3.0, 2.175_247_144_706_48),
            (40.0, 5.0, 5.217_049_656_576_693),
        ];
        for (snr, shape, truth) in frozen {
            let capacities = sample(shape, 1).into_iter().map(|gain| capacity(gain, Power(snr), 1.0));
            near_mean(capacities, truth, &format!("γ = {snr}, μ = {shape}"));
        }
    }

    #[test]
    fn keys_that_need_complex_amplitudes_are_refused() {
        let build = |propagation: &Propagation| {
            ENTRY.build(&Table::new(), &Scope::default(), propagation).err().map(|error| error.to_string())
        };
        let with = |memory| Propagation { memory, ..Propagation::default() };
        assert_eq!(build(&Propagation { antennas: 4, ..Propagation::default() }), None);
        let message = build(&with(Memory::GaussMarkov { correlation: 0.5 })).unwrap();
        assert!(
            message.starts_with("radio.correlation: has no effect on radio.fading = \"nakagami\""),
            "{message}"
        );
        let message = build(&with(Memory::Doppler { hertz: 5.0, period_s: 1.0 })).unwrap();
        assert!(message.starts_with("radio.speed_kmh: has no effect"), "{message}");
        let profile = Profile::exponential(1e-7).ok();
        let message = build(&Propagation { profile, ..Propagation::default() }).unwrap();
        assert!(message.starts_with("radio.profile: has no effect"), "{message}");
        let shape = Table::from_iter([("shape".to_owned(), toml::Value::Float(0.4))]);
        let message = ENTRY.resolve(&shape, &Scope::default()).unwrap_err().to_string();
        assert_eq!(message, "radio.nakagami.shape: is 0.4, but must be in 0.5..=1e9");
    }
}
