//! The same energy in a round for every K.

use super::{LinkGain, PowerFacts, PowerMaterial, PowerPolicy};
use crate::base::state::Persist;
use crate::base::units::{DeviceId, Power};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this policy.
pub const ENTRY: Entry<dyn PowerPolicy> = Entry::of::<EqualEnergyConfig>();

/// `[radio.equal-energy]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct EqualEnergyConfig {}

impl PartConfig for EqualEnergyConfig {
    type Part = dyn PowerPolicy;
    const NAME: &'static str = "equal-energy";
    const MEANING: &'static str =
        "a scheduled device spends (M/K)·P̄·n in its symbols: a round radiates the same for every K";

    fn facts(&self) -> PowerFacts {
        PowerFacts { fixed_airtime: true, ..PowerFacts::default() }
    }

    fn build(self, _: &Scope, material: &PowerMaterial) -> Result<Box<dyn PowerPolicy>, ConfigError> {
        Ok(Box::new(EqualEnergy { material: *material }))
    }
}

/// E = (M/K)·P̄·n symbol energies for each scheduled device, so P_m = E/n_m, at most the maximum.
///
/// The bits of a device are n_m·log2(1 + γ·n/n_m), γ the SNR at M·P̄/K: concave in n_m. Invariants: a round
/// radiates M·P̄·n for every K (where no maximum is met); at K = 1 it is the rule of the paper.
#[derive(Clone, Copy, Debug)]
pub struct EqualEnergy {
    /// The common knowledge of all policies; M·P̄/K, at most the maximum, is spent over all n symbols.
    pub material: PowerMaterial,
}

impl Persist for EqualEnergy {}

impl PowerPolicy for EqualEnergy {
    fn power(&self, device: DeviceId, link: LinkGain) -> Power {
        self.power_at(self.material.k, device, link)
    }

    fn power_at(&self, k: usize, _: DeviceId, _: LinkGain) -> Power {
        self.material.capped(self.material.fair_share_at(k))
    }

    fn keeps_energy(&self) -> bool {
        true
    }
}
