//! Training takes no time.

use super::{Compute, ComputeMaterial, Load};
use crate::registry::{ConfigError, Entry, PartConfig, Scope};
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};

/// The entry of this model.
pub const ENTRY: Entry<dyn Compute> = Entry::of::<NoCompute>();

/// Training takes no time and no energy: only the radio is counted.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoCompute {}

impl PartConfig for NoCompute {
    type Part = dyn Compute;
    const NAME: &'static str = "none";
    const MEANING: &'static str = "training takes no time and no energy";

    fn build(self, _: &Scope, _: &ComputeMaterial) -> Result<Box<dyn Compute>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Compute for NoCompute {
    fn seconds(&self, _: DeviceId, _: &Load) -> f64 {
        0.0
    }
}
