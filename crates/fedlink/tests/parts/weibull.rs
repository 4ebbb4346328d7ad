//! Weibull block fading.

use fedlink::base::rng::{Purpose, stream};
use fedlink::base::units::DeviceId;
use fedlink::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use fedlink::radio::fading::{Fading, FadingFacts, Propagation};

/// The entry of this law.
pub const ENTRY: Entry<dyn Fading> = Entry::of::<WeibullConfig>();

/// `[radio.weibull]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct WeibullConfig {
    /// shape of the gain: 1 is Rayleigh fading, larger shapes fade less
    #[key(default = 2.0, range = "0.5 ..= 100")]
    pub shape: f64,
}

impl PartConfig for WeibullConfig {
    type Part = dyn Fading;
    const NAME: &'static str = "weibull";
    const MEANING: &'static str = "Weibull block fading: a gain of shape radio.weibull.shape and mean 1";

    fn facts(&self) -> FadingFacts {
        let mut facts = FadingFacts::GAINS;
        // The density of the gain is s·g^(s−1)·… near 0.
        facts.deep_fades = self.shape <= 1.0;
        facts
    }

    fn build(self, scope: &Scope, propagation: &Propagation) -> Result<Box<dyn Fading>, ConfigError> {
        propagation.check()?;
        propagation
            .refuse_amplitudes(Self::NAME, "which is a law of the gain and has no complex amplitude")?;
        Ok(Box::new(Weibull { seed: scope.seed, shape: self.shape, antennas: propagation.antennas }))
    }
}

/// g = Σ_a E_a^{1/s}/Γ(1 + 1/s) over the antennas, with E_a ~ Exp(1), independent over devices and rounds.
///
/// Source: Weibull (1951). Invariants: g ≥ 0 and finite; the mean is the number of antennas; s = 1 is
/// Rayleigh fading.
pub struct Weibull {
    /// The seed of the run.
    pub seed: u64,
    /// s.
    pub shape: f64,
    /// The number of antennas.
    pub antennas: usize,
}

impl Fading for Weibull {
    fn gain(&self, t: u64, device: DeviceId) -> f64 {
        let mut rng = stream(self.seed, Purpose::Channel, t, u64::from(device.0));
        let sum: f64 = (0..self.antennas).map(|_| libm::pow(rng.exponential(), 1.0 / self.shape)).sum();
        sum / libm::tgamma(1.0 + 1.0 / self.shape)
    }

    fn antennas(&self) -> usize {
        self.antennas
    }
}
