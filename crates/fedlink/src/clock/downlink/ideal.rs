//! An error-free downlink that takes no time.

use super::{Downlink, DownlinkFacts, DownlinkMaterial};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::radio::Radio;

/// The entry of this model.
pub const ENTRY: Entry<dyn Downlink> = Entry::of::<Ideal>();

/// 0 seconds, as in the paper.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Ideal {}

impl PartConfig for Ideal {
    type Part = dyn Downlink;
    const NAME: &'static str = "ideal";
    const MEANING: &'static str = "the model reaches all devices at once";

    fn facts(&self) -> DownlinkFacts {
        DownlinkFacts { takes_time: false, ..DownlinkFacts::default() }
    }

    fn build(self, _: &Scope, _: &DownlinkMaterial) -> Result<Box<dyn Downlink>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Downlink for Ideal {
    fn seconds(&self, _: u64, _: f64, _: &[DeviceId], _: &Radio) -> f64 {
        0.0
    }
}
