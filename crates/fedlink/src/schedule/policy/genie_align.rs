//! The genie that compares all updates with their mean.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::{Bias, Genie, Pick, Policy, Reports, Schedule, Selection, Trains, View};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<GenieAlign>();

/// A selection by knowledge that no server has: the K devices whose compressed updates together point best
/// along the mean of all updates.
///
/// With every Δ_m and every Δ̂_m at hand (each at 1/K of the round) the set S maximizes
/// (bᵀ1_S)²/(1_SᵀG1_S) for bᵀ1_S > 0, b_m = ⟨Δ̂_m, Δ̄⟩, G_mj = ⟨Δ̂_m, Δ̂_j⟩, Δ̄ = (1/M)·ΣΔ_m: the largest
/// decrease of ‖Δ̄ − s·ΣΔ̂‖² over all steps s. All sets are tried where there are no more than 10⁵; else
/// devices are added one by one, the best first, and then exchanged as long as that gains. Bits are in
/// proportion to capacity, so that each has 1/K of the symbols. It bounds the gain of any choice by the
/// present round alone. The simulator computes it; on real nodes it is rejected.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct GenieAlign {}

impl PartConfig for GenieAlign {
    type Part = dyn Policy;
    const NAME: &'static str = "genie-align";
    const MEANING: &'static str = "no server can know this: the K devices whose Δ̂ point best along the \
                                   mean of all Δ; simulations only";
    const FAMILY: &'static str = "reference";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for GenieAlign {}

impl Policy for GenieAlign {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        view.everyone()
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Biased, Trains::Everyone)
    }

    /// Only those that the simulator chose answer.
    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        chosen(view, reports)
    }

    fn genie(&self) -> Option<Genie> {
        Some(Genie::Align)
    }
}

/// Those that answered, up to K, with bits in proportion to capacity: equal symbols.
pub(super) fn chosen(view: &View, reports: &Reports) -> Schedule {
    let devices = reports.devices.iter().take(view.k);
    let pick = |&device: &DeviceId| Pick::new(device, view.links.capacity(device).min(f64::MAX));
    Schedule { picks: devices.map(pick).collect() }
}
