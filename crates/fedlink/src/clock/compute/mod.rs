//! The duration of local training, one file for each model of it.

crate::register! {
    /// All models of computation.
    COMPUTES: dyn Compute;
    none,
    flops,
    cycles,
    rate,
    file,
}

use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, Kind};
use serde::{Deserialize, Serialize};

/// The amount of work of one local training.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Samples, every step's batch counted: τ·batch.
    pub samples: f64,
    /// Floating-point operations of a sample, forward and backward.
    pub flops_per_sample: f64,
}

/// A model of computation: seconds, and joules where the model has them.
///
/// Invariants: pure in (seed, device); finite and ≥ 0; proportional to the samples.
pub trait Compute: Send + Sync {
    /// Seconds of one training of a device of ordinary speed.
    fn seconds(&self, device: DeviceId, load: &Load) -> f64;

    /// Joules of it; none: its seconds times `energy.compute_w`.
    fn joules(&self, _device: DeviceId, _load: &Load) -> Option<f64> {
        None
    }

    /// Whether the model has joules of its own, so that `energy.compute_w` has no effect and `energy.kappa`
    /// has.
    fn has_joules(&self) -> bool {
        false
    }
}

/// The material of a model of computation, besides its own table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ComputeMaterial {
    /// κ, effective switched capacitance: joules are κ·cycles·f² (`energy.kappa`).
    pub kappa: f64,
}

/// Facts of a model of training times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComputeFacts {
    /// Whether training takes time.
    pub takes_time: bool,
    /// Whether it gives the joules of a training itself, by `energy.kappa`; otherwise `energy.compute_w`
    /// does.
    pub own_joules: bool,
}

impl Default for ComputeFacts {
    fn default() -> Self {
        Self { takes_time: true, own_joules: false }
    }
}

impl Kind for dyn Compute {
    type Material = ComputeMaterial;
    type Facts = ComputeFacts;
    const PLURAL: &'static str = "models of computation";
    const KEY: &'static str = "clock.compute";
    const TABLE: &'static str = "clock";

    fn entries() -> &'static [Entry<Self>] {
        COMPUTES
    }
}

/// A number of each device: the same for all, or uniform between two.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be a number, or two: [low, high]")]
#[non_exhaustive]
pub enum PerDevice {
    /// The same for all.
    Same(f64),
    /// Uniform in [low, high), drawn once for each device.
    Between([f64; 2]),
}

impl PerDevice {
    /// Refuses any value but a number above 0, or two of them in order. The limits are far beyond any
    /// processor; products of several such numbers stay finite.
    pub(crate) fn check(self, key: &str) -> Result<(), ConfigError> {
        const ALLOWED: std::ops::RangeInclusive<f64> = 1e-30..=1e30;
        let good = |x: f64| ALLOWED.contains(&x);
        let (ok, text) = match self {
            Self::Same(x) => (good(x), format!("{x:?}")),
            Self::Between([low, high]) => {
                (good(low) && good(high) && low <= high, format!("[{low:?}, {high:?}]"))
            }
        };
        if ok {
            return Ok(());
        }
        let problem = format!("is {text}, but must be a number in 1e-30..=1e30, or [low, high] of such");
        Err(ConfigError::new(key, problem))
    }

    /// The number of a device; `label` distinguishes the numbers that are drawn for it.
    pub(crate) fn of(self, seed: u64, device: DeviceId, label: u64) -> f64 {
        match self {
            Self::Same(x) => x,
            Self::Between([low, high]) => {
                stream(seed, Purpose::Compute, u64::MAX - label, u64::from(device.0)).between(low, high)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::Config;

    #[test]
    fn no_number_of_a_processor_or_of_its_energy_makes_a_cost_infinite() {
        let of = |key: &str, value: &str| {
            let text = format!(
                "radio.bandwidth_hz = 1e6\nradio.uplink_s = 0.01\nradio.snr_db = 10.0\n\
                 clock.compute = \"cycles\"\n{key} = {value}"
            );
            Config::from_toml(&text).and_then(|config| config.validate()).map_err(|error| error.to_string())
        };
        for key in ["clock.cycles.hz", "clock.cycles.per_sample", "energy.kappa", "energy.idle_w"] {
            let error = of(key, "1e308").unwrap_err();
            assert!(error.contains(&format!("{key}: is 1e308, but must be")), "{error}");
            assert_eq!(of(key, "1e-3"), Ok(()), "{key}");
        }
        assert!(of("clock.cycles.hz", "[1e9, 1e308]").is_err() && of("clock.cycles.hz", "0.0").is_err());
        // The largest that are allowed.
        let joules: f64 = 1e30 * 1e30 * f64::from(u32::MAX) * 1e60;
        assert!(joules.is_finite());
    }
}
