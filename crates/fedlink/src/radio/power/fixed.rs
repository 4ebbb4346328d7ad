//! One power for all, whatever K is.

use super::{LinkGain, PowerMaterial, PowerPolicy};
use crate::base::state::Persist;
use crate::base::units::{DeviceId, Power};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this policy.
pub const ENTRY: Entry<dyn PowerPolicy> = Entry::of::<FixedConfig>();

/// `[radio.fixed]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct FixedConfig {}

impl PartConfig for FixedConfig {
    type Part = dyn PowerPolicy;
    const NAME: &'static str = "fixed";
    const MEANING: &'static str = "radio.power (or power_dbm) while it sends, for every K";

    fn build(self, _: &Scope, material: &PowerMaterial) -> Result<Box<dyn PowerPolicy>, ConfigError> {
        Ok(Box::new(Fixed { power: material.capped(material.average) }))
    }
}

/// P is the configured power, for any number of devices that share the round.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// P.
    pub power: Power,
}

impl Persist for Fixed {}

impl PowerPolicy for Fixed {
    fn power(&self, _: DeviceId, _: LinkGain) -> Power {
        self.power
    }
}
