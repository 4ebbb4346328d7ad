//! No correction.

use super::Correction;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this correction.
pub const ENTRY: Entry<dyn Correction> = Entry::of::<NoCorrection>();

/// Local steps follow the gradient of the device's own loss, as in the paper and in `FedAvg`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct NoCorrection {}

impl PartConfig for NoCorrection {
    type Part = dyn Correction;
    const NAME: &'static str = "none";
    const MEANING: &'static str = "no correction";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Correction>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Correction for NoCorrection {
    fn corrects(&self) -> bool {
        false
    }
}
