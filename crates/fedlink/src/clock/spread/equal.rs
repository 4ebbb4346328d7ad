//! All devices are equally fast.

use super::Spread;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn Spread> = Entry::of::<Equal>();

/// Factor 1 for all.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Equal {}

impl PartConfig for Equal {
    type Part = dyn Spread;
    const NAME: &'static str = "equal";
    const MEANING: &'static str = "all devices are equally fast";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Spread>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Spread for Equal {
    fn factor(&self, _: DeviceId) -> f64 {
        1.0
    }
}
