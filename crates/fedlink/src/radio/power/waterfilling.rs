//! Waterfilling over time.

use super::queue::QueueConfig;
use super::{LinkGain, PowerMaterial, PowerPolicy};
use crate::base::state::Persist;
use crate::base::units::{DeviceId, Power};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys, parts_with};
use crate::radio::fading::Fading;
use crate::radio::math::exponential_integral;

/// The entry of this policy.
pub const ENTRY: Entry<dyn PowerPolicy> = Entry::of::<WaterfillingConfig>();

/// `[radio.waterfilling]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct WaterfillingConfig {}

impl PartConfig for WaterfillingConfig {
    type Part = dyn PowerPolicy;
    const NAME: &'static str = "waterfilling";
    const MEANING: &'static str =
        "more power the better the channel is, none in a deep fade; Rayleigh fading only";

    fn build(self, _: &Scope, material: &PowerMaterial) -> Result<Box<dyn PowerPolicy>, ConfigError> {
        if material.rayleigh {
            return Ok(Box::new(Waterfilling { material: *material }));
        }
        let problem = format!(
            "is \"{}\", whose level is known only for Rayleigh fading with one antenna and exact channel \
             knowledge; write {}, or radio.power_policy = \"{}\", which learns from the energy that was \
             spent",
            Self::NAME,
            parts_with::<dyn Fading>(|facts| facts.exponential),
            QueueConfig::NAME
        );
        Err(ConfigError::new("radio.power_policy", problem))
    }
}

/// P(g) = P·(1/γ₀ − 1/γ)⁺ with γ = β·g·P/σ², P = M·P̄/K, and the level γ₀ at which the mean power is P.
///
/// For Rayleigh fading of mean SNR γ̄, x = γ₀/γ̄ solves e^(−x)/x − E₁(x) = γ̄, and the capacity is
/// log2(e)·E₁(x). Source: Goldsmith and Varaiya (1997), as we read it. The mean holds for a device whose gain
/// is Exp(1) when it sends; under a policy that picks good channels it spends more.
#[derive(Clone, Copy, Debug)]
pub struct Waterfilling {
    /// The quantities that all power policies use.
    pub material: PowerMaterial,
}

/// γ₀/γ̄ of Rayleigh fading with mean SNR `mean`: the root of e^(−x)/x − E₁(x) = mean.
///
/// ```
/// let x = fedlink::radio::power::waterfilling::level(4.0);
/// assert!((4.0 * x - 0.6301575863969079).abs() < 1e-12);
/// ```
pub fn level(mean: f64) -> f64 {
    // The left side falls from +∞ to 0: bisection on ln x, a fixed number of times.
    let excess = |x: f64| libm::exp(-x) / x - exponential_integral(x) - mean;
    let (mut low, mut high) = (-700.0f64, 7.0f64);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if excess(libm::exp(middle)) > 0.0 { low = middle } else { high = middle }
    }
    libm::exp(0.5 * (low + high))
}

impl Persist for Waterfilling {}

impl PowerPolicy for Waterfilling {
    fn power(&self, device: DeviceId, link: LinkGain) -> Power {
        self.power_at(self.material.k, device, link)
    }

    fn power_at(&self, k: usize, _: DeviceId, link: LinkGain) -> Power {
        let power = self.material.fair_share_at(k);
        let snr = |gain: f64| gain * power / self.material.noise;
        let (now, mean) = (snr(link.gain), snr(link.mean_gain));
        if now <= 0.0 || mean <= 0.0 {
            return Power(0.0);
        }
        let level = level(mean) * mean;
        self.material.capped((power * (1.0 / level - 1.0 / now)).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};

    #[test]
    fn the_level_is_the_one_of_the_tables() {
        // By mpmath: the root of e^(−x)/x − E₁(x) = γ̄, times γ̄.
        let known = [
            (0.1, 0.116_614_267_374_146_94),
            (1.0, 0.393_773_845_045_199_13),
            (4.0, 0.630_157_586_396_907_9),
            (40.0, 0.904_500_569_933_207_6),
        ];
        for (mean, truth) in known {
            assert!((level(mean) * mean - truth).abs() < 1e-12, "{mean}: {}", level(mean) * mean);
        }
    }

    #[test]
    fn the_mean_power_is_the_one_that_may_be_spent_and_the_capacity_the_closed_form() {
        let material =
            PowerMaterial { devices: 4, k: 2, average: 0.5, noise: 0.25, ..PowerMaterial::default() };
        let policy = Waterfilling { material };
        let (n, mut rng) = (400_000, stream(2, Purpose::Test, 0, 0));
        let (mut powers, mut bits) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let gain = rng.exponential();
            let power = policy.power(DeviceId(0), LinkGain { gain, mean_gain: 1.0 }).0;
            powers.push(power);
            bits.push((1.0 + gain * power / 0.25).log2());
        }
        let near = |values: &[f64], truth: f64| {
            let mean = values.iter().sum::<f64>() / f64::from(n);
            let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
            assert!((mean - truth).abs() < 4.0 * (variance / f64::from(n)).sqrt(), "{mean} {truth}");
        };
        near(&powers, 1.0);
        // γ̄ = 4: log2(e)·E₁(x), by mpmath.
        near(&bits, 2.052_1);
        // The closed form itself to more digits.
        assert!((exponential_integral(level(4.0)) * std::f64::consts::LOG2_E - 2.0521).abs() < 5e-5);
    }
}
