//! An error-free downlink that takes no time.

use super::{Downlink, DownlinkMaterial};
use crate::radio::Radio;
use crate::registry::{ConfigError, Entry, PartConfig, Scope};
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};

/// The entry of this model.
pub const ENTRY: Entry<dyn Downlink> = Entry::of::<Ideal>();

/// 0 seconds, as in the paper.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ideal {}

impl PartConfig for Ideal {
    type Part = dyn Downlink;
    const NAME: &'static str = "ideal";
    const MEANING: &'static str = "the model reaches all devices at once";

    fn build(self, _: &Scope, _: &DownlinkMaterial) -> Result<Box<dyn Downlink>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Downlink for Ideal {
    fn seconds(&self, _: u64, _: f64, _: &[DeviceId], _: &Radio) -> f64 {
        0.0
    }
}
