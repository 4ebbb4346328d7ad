//! Training takes no time.

use super::{Compute, ComputeFacts, ComputeMaterial, Load};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this model.
pub const ENTRY: Entry<dyn Compute> = Entry::of::<NoCompute>();

/// Training takes no time and no energy: only the radio is counted.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct NoCompute {}

impl PartConfig for NoCompute {
    type Part = dyn Compute;
    const NAME: &'static str = "none";
    const MEANING: &'static str = "training takes no time and no energy";

    fn facts(&self) -> ComputeFacts {
        ComputeFacts { takes_time: false, ..ComputeFacts::default() }
    }

    fn build(self, _: &Scope, _: &ComputeMaterial) -> Result<Box<dyn Compute>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Compute for NoCompute {
    fn seconds(&self, _: DeviceId, _: &Load) -> f64 {
        0.0
    }
}
