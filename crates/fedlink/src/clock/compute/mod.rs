//! How long local training takes, one file for each model of it.

crate::register! {
    /// All models of computation.
    COMPUTES: dyn Compute;
    none,
    flops,
    cycles,
    rate,
    file,
}

use crate::registry::{ConfigError, Entry, Kind};
use crate::rng::{Purpose, stream};
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};

/// What one local training processes.
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

/// What a model of computation is built from besides its own table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ComputeMaterial {
    /// κ, effective switched capacitance: joules are κ·cycles·f² (`energy.kappa`).
    pub kappa: f64,
}

impl Kind for dyn Compute {
    type Material = ComputeMaterial;
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
    /// Refuses what is not a finite number above 0, or two of them in order.
    pub(crate) fn check(self, key: &str) -> Result<(), ConfigError> {
        let good = |x: f64| x.is_finite() && x > 0.0;
        let (ok, text) = match self {
            Self::Same(x) => (good(x), x.to_string()),
            Self::Between([low, high]) => {
                (good(low) && good(high) && low <= high, format!("[{low}, {high}]"))
            }
        };
        if ok {
            return Ok(());
        }
        let problem = format!("is {text}, but must be a finite number above 0, or [low, high] of such");
        Err(ConfigError::new(key, problem))
    }

    /// The number of a device; `label` tells apart what is drawn for it.
    pub(crate) fn of(self, seed: u64, device: DeviceId, label: u64) -> f64 {
        match self {
            Self::Same(x) => x,
            Self::Between([low, high]) => {
                stream(seed, Purpose::Compute, u64::MAX - label, u64::from(device.0)).between(low, high)
            }
        }
    }
}
