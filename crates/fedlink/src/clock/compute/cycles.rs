//! Training by processor cycles.

use super::{Compute, ComputeFacts, ComputeMaterial, Load, PerDevice};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this model.
pub const ENTRY: Entry<dyn Compute> = Entry::of::<CyclesConfig>();

/// `[clock.cycles]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct CyclesConfig {
    /// c, processor cycles of a sample
    #[key(default = PerDevice::Between([1e4, 3e4]), allowed = "> 0, or [low, high]: uniform over devices")]
    pub per_sample: PerDevice,
    /// f, cycles a second
    #[key(default = PerDevice::Same(2e9), allowed = "> 0, or [low, high]: uniform over devices")]
    pub hz: PerDevice,
}

impl PartConfig for CyclesConfig {
    type Part = dyn Compute;
    const NAME: &'static str = "cycles";
    const MEANING: &'static str = "cycles of a sample over the processor's frequency; joules are κ·cycles·f²";

    fn facts(&self) -> ComputeFacts {
        ComputeFacts { own_joules: true, ..ComputeFacts::default() }
    }

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        self.per_sample.check("per_sample")?;
        self.hz.check("hz")
    }

    fn build(self, scope: &Scope, material: &ComputeMaterial) -> Result<Box<dyn Compute>, ConfigError> {
        let Self { per_sample, hz } = self;
        Ok(Box::new(Cycles { per_sample, hz, kappa: material.kappa, seed: scope.seed }))
    }
}

/// t = c·S/f and E = κ·c·S·f².
///
/// Source: the model of most wireless papers, c ~ U(1, 3)·10⁴ and f = 2 GHz after Yang et al., as we read it.
/// It does not depend on the trained model: for a network of d weights c cycles correspond to 6·d operations.
/// Some write α/2 for κ. Invariants: half the frequency takes twice the time and a quarter of the energy.
///
/// ```
/// use fedlink::clock::compute::{Compute, Load, PerDevice, cycles::Cycles};
/// use fedlink::base::units::DeviceId;
/// let phone = Cycles { per_sample: PerDevice::Same(2e4), hz: PerDevice::Same(2e9), kappa: 1e-28, seed: 0 };
/// let load = Load { samples: 192.0, flops_per_sample: 0.0 };
/// assert!((phone.seconds(DeviceId(0), &load) - 1.92e-3).abs() < 1e-15);
/// assert!((phone.joules(DeviceId(0), &load).unwrap() - 1.536e-3).abs() < 1e-15);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cycles {
    /// c.
    pub per_sample: PerDevice,
    /// f, Hz.
    pub hz: PerDevice,
    /// κ.
    pub kappa: f64,
    /// The run's seed.
    pub seed: u64,
}

impl Compute for Cycles {
    fn seconds(&self, device: DeviceId, load: &Load) -> f64 {
        self.per_sample.of(self.seed, device, 2) * load.samples / self.hz.of(self.seed, device, 3)
    }

    fn joules(&self, device: DeviceId, load: &Load) -> Option<f64> {
        let hz = self.hz.of(self.seed, device, 3);
        Some(self.kappa * self.per_sample.of(self.seed, device, 2) * load.samples * hz * hz)
    }

    fn has_joules(&self) -> bool {
        true
    }
}
