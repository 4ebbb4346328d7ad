//! The paper's rule: a scheduled device spends the power that it saved while others sent.

use super::{LinkGain, PowerFacts, PowerMaterial, PowerPolicy};
use crate::base::state::Persist;
use crate::base::units::{DeviceId, Power};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this policy.
pub const ENTRY: Entry<dyn PowerPolicy> = Entry::of::<FairShareConfig>();

/// `[radio.fair-share]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct FairShareConfig {}

impl PartConfig for FairShareConfig {
    type Part = dyn PowerPolicy;
    const NAME: &'static str = "fair-share";
    const MEANING: &'static str =
        "P = M·P̄/K while it sends, as in the paper; a round radiates less the larger K is";

    fn facts(&self) -> PowerFacts {
        PowerFacts { shares_power: true, ..PowerFacts::default() }
    }

    fn build(self, _: &Scope, material: &PowerMaterial) -> Result<Box<dyn PowerPolicy>, ConfigError> {
        Ok(Box::new(FairShare { material: *material }))
    }
}

/// P = M·P̄/K in the symbols of a scheduled device.
///
/// Source: section II-B of the paper. A round radiates n·M·P̄/K symbol energies, so that K = 10 has a tenth
/// of the energy of K = 1; [`EqualEnergy`](super::equal_energy::EqualEnergy) has the same for every K.
#[derive(Clone, Copy, Debug)]
pub struct FairShare {
    /// The quantities that all power policies use.
    pub material: PowerMaterial,
}

impl Persist for FairShare {}

impl PowerPolicy for FairShare {
    fn power(&self, device: DeviceId, link: LinkGain) -> Power {
        self.power_at(self.material.k, device, link)
    }

    fn power_at(&self, k: usize, _: DeviceId, _: LinkGain) -> Power {
        self.material.capped(self.material.fair_share_at(k))
    }
}
