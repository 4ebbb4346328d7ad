//! The variation of speeds over devices, one file for each law.

crate::register! {
    /// All laws of devices' speeds.
    SPREADS: dyn Spread;
    equal,
    uniform,
    lognormal,
    classes,
}

use crate::base::units::DeviceId;
use crate::parts::{Entry, Kind};

/// The factor of a device's training time, the same in all rounds.
///
/// Invariants: pure in (seed, device); finite and above 0.
pub trait Spread: Send + Sync {
    /// The factor of a device.
    fn factor(&self, device: DeviceId) -> f64;
}

impl Kind for dyn Spread {
    type Material = ();
    type Facts = ();
    const PLURAL: &'static str = "spreads of devices' speeds";
    const KEY: &'static str = "clock.spread";
    const TABLE: &'static str = "clock";

    fn entries() -> &'static [Entry<Self>] {
        SPREADS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::Parts;
    use crate::spec::Config;

    fn factors(toml: &str, devices: usize) -> Vec<f64> {
        let spec = Config::from_toml(toml).unwrap().resolve(&Parts::default()).unwrap();
        let spread = spec.parts().spread.build(&spec.scope(), &()).unwrap();
        DeviceId::all(devices).map(|device| spread.factor(device)).collect()
    }

    /// A clock under which a spread has an effect.
    const TIMED: &str = "[radio]\nbandwidth_hz = 1e6\n[clock]\ncompute = \"flops\"\n";

    #[test]
    fn factors_have_the_means_and_variances_of_their_laws() {
        let n = 20_000;
        let moments = |factors: &[f64]| {
            let mean = factors.iter().sum::<f64>() / n as f64;
            (mean, factors.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64)
        };
        let (mean, variance) = moments(&factors(
            &format!("{TIMED}spread = \"uniform\"\n[clock.uniform]\nlow = 0.5\nhigh = 2.0"),
            n,
        ));
        assert!((mean - 1.25).abs() < 4.0 * (1.5f64.powi(2) / 12.0 / n as f64).sqrt(), "{mean}");
        assert!((variance / (1.5f64.powi(2) / 12.0) - 1.0).abs() < 0.05, "{variance}");
        let (mean, variance) =
            moments(&factors(&format!("{TIMED}spread = \"lognormal\"\n[clock.lognormal]\nsigma = 0.6"), n));
        // A log-normal number exp(σZ − σ²/2) has mean 1 and variance e^(σ²) − 1.
        let truth = 0.36f64.exp() - 1.0;
        assert!((mean - 1.0).abs() < 4.0 * (truth / n as f64).sqrt(), "{mean}");
        assert!((variance / truth - 1.0).abs() < 0.2, "{variance}");
        let classes =
            factors(&format!("{TIMED}spread = \"classes\"\n[clock.classes]\nfactors = [1.0, 3.0]"), 5);
        assert_eq!(classes, [1.0, 3.0, 1.0, 3.0, 1.0]);
        assert_eq!(factors("", 3), [1.0; 3]);
    }

    #[test]
    fn bad_factors_are_refused_by_their_key() {
        let cases = [
            ("uniform", "low = 0.0", "clock.uniform.low"),
            ("uniform", "low = 3.0", "clock.uniform.high"),
            ("lognormal", "sigma = -1.0", "clock.lognormal.sigma"),
            ("classes", "factors = []", "clock.classes.factors"),
            ("classes", "factors = [1.0, 0.0]", "clock.classes.factors"),
        ];
        for (name, keys, key) in cases {
            let text = format!("{TIMED}spread = \"{name}\"\n[clock.{name}]\n{keys}");
            let error = Config::from_toml(&text).unwrap_err();
            assert!(error.key.ends_with(key), "{text}: {error}");
        }
    }
}
