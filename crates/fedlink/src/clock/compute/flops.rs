//! Training by floating-point operations.

use super::{Compute, ComputeMaterial, Load, PerDevice};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this model.
pub const ENTRY: Entry<dyn Compute> = Entry::of::<FlopsConfig>();

/// `[clock.flops]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct FlopsConfig {
    /// floating-point operations that a device does in a second, in effect
    #[key(default = PerDevice::Same(1e9), allowed = "> 0, or [low, high]: uniform over devices")]
    pub per_s: PerDevice,
}

impl PartConfig for FlopsConfig {
    type Part = dyn Compute;
    const NAME: &'static str = "flops";
    const MEANING: &'static str =
        "floating-point operations of the model over those a device does in a second";

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        self.per_s.check("per_s")
    }

    fn build(self, scope: &Scope, _: &ComputeMaterial) -> Result<Box<dyn Compute>, ConfigError> {
        Ok(Box::new(Flops { per_s: self.per_s, seed: scope.seed }))
    }
}

/// t = F·S/r: F operations a sample (2 a weight forward, 4 backward, for dense layers 6·d), S samples, r
/// operations a second.
///
/// ```
/// use fedlink::clock::compute::{Compute, Load, PerDevice, flops::Flops};
/// use fedlink::base::units::DeviceId;
/// let phone = Flops { per_s: PerDevice::Same(1e9), seed: 0 };
/// let load = Load { samples: 192.0, flops_per_sample: 1e6 };
/// assert_eq!(phone.seconds(DeviceId(0), &load), 0.192);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Flops {
    /// r.
    pub per_s: PerDevice,
    /// The run's seed.
    pub seed: u64,
}

impl Compute for Flops {
    fn seconds(&self, device: DeviceId, load: &Load) -> f64 {
        load.flops_per_sample * load.samples / self.per_s.of(self.seed, device, 1)
    }
}
