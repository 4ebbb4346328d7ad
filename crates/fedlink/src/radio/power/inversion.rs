//! Channel inversion: a constant SNR at the server.

use super::{LinkGain, PowerFacts, PowerMaterial, PowerPolicy};
use crate::base::state::Persist;
use crate::base::units::{DeviceId, Power, from_db};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this policy.
pub const ENTRY: Entry<dyn PowerPolicy> = Entry::of::<InversionConfig>();

/// `[radio.inversion]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct InversionConfig {
    /// SNR at the server, dB
    #[key(default = 0.0, range = "-300 ..= 300")]
    pub snr_db: f64,
    /// fading gain below which a device stays silent
    #[key(default = 0.2, range = "≥ 0")]
    pub threshold: f64,
}

impl PartConfig for InversionConfig {
    type Part = dyn PowerPolicy;
    const NAME: &'static str = "inversion";
    const MEANING: &'static str = "as much as makes the SNR at the server constant; silent in a deep fade";

    fn facts(&self) -> PowerFacts {
        PowerFacts { average: false, ..PowerFacts::default() }
    }

    fn build(self, _: &Scope, material: &PowerMaterial) -> Result<Box<dyn PowerPolicy>, ConfigError> {
        Ok(Box::new(Inversion { snr: from_db(self.snr_db), threshold: self.threshold, material: *material }))
    }
}

/// P = ρ·σ²/(β·g), at most the maximum; 0 if g < g_th.
///
/// Without a maximum and a threshold the mean power over Rayleigh fading is infinite; with the threshold it
/// is ρ·(σ²/β)·E₁(g_th).
///
/// ```
/// use fedlink::radio::power::{LinkGain, PowerMaterial, PowerPolicy, inversion::Inversion};
/// use fedlink::base::units::{DeviceId, Power};
/// let mut material = PowerMaterial::default();
/// material.noise = 1.0;
/// let policy = Inversion { snr: 10.0, threshold: 0.1, material };
/// assert_eq!(policy.power(DeviceId(0), LinkGain::new(0.5, 1.0)), Power(20.0));
/// assert_eq!(policy.power(DeviceId(0), LinkGain::new(0.05, 1.0)), Power(0.0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Inversion {
    /// ρ, a ratio.
    pub snr: f64,
    /// g_th.
    pub threshold: f64,
    /// The quantities that all power policies use.
    pub material: PowerMaterial,
}

impl Persist for Inversion {}

impl PowerPolicy for Inversion {
    fn power(&self, _: DeviceId, link: LinkGain) -> Power {
        if link.gain <= 0.0 || link.gain < self.threshold * link.mean_gain {
            return Power(0.0);
        }
        let power = self.snr * self.material.noise / link.gain;
        // A gain near the smallest float would need a power without bound.
        if power.is_finite() { self.material.capped(power) } else { Power(self.material.max.unwrap_or(0.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};
    use crate::radio::math::exponential_integral;

    #[test]
    fn the_mean_power_over_rayleigh_fading_is_the_exponential_integral_of_the_threshold() {
        let material = PowerMaterial { noise: 2.0, ..PowerMaterial::default() };
        for threshold in [0.01, 0.1, 0.5] {
            let policy = Inversion { snr: 3.0, threshold, material };
            let mut rng = stream(1, Purpose::Test, 0, 0);
            let n = 400_000;
            let powers: Vec<f64> = (0..n)
                .map(|_| {
                    policy.power(DeviceId(0), LinkGain { gain: 4.0 * rng.exponential(), mean_gain: 4.0 }).0
                })
                .collect();
            let mean = powers.iter().sum::<f64>() / f64::from(n);
            let variance = powers.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / f64::from(n);
            let truth = 3.0 * 2.0 / 4.0 * exponential_integral(threshold);
            assert!((mean - truth).abs() < 4.0 * (variance / f64::from(n)).sqrt(), "{mean} {truth}");
        }
    }

    #[test]
    fn the_maximum_is_kept_and_nothing_is_infinite() {
        let material = PowerMaterial { noise: 1.0, max: Some(7.0), ..PowerMaterial::default() };
        let policy = Inversion { snr: 10.0, threshold: 0.0, material };
        let power = |gain| policy.power(DeviceId(0), LinkGain { gain, mean_gain: 1.0 }).0;
        assert_eq!((power(0.0), power(f64::from_bits(1)), power(1.0), power(2.0)), (0.0, 7.0, 7.0, 5.0));
    }
}
