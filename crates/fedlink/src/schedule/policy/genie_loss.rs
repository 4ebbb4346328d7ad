//! The genie that tries every update on the training set.

use super::genie_align::chosen;
use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::{Bias, Genie, Policy, Reports, Schedule, Selection, Trains, View};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<GenieLoss>();

/// A selection by knowledge that no server has: K devices, each the one whose Δ̂ lowers the training loss of
/// all data the most.
///
/// Devices are added one by one: the one that makes the loss of θ + (c/K)·Σ_(S∪m) Δ̂ the smallest, c the
/// server rate and each Δ̂ at 1/K of the round. K·M evaluations of the whole training set in a round. It
/// bounds the gain of any choice by the present round alone; the simulator computes it, and on real nodes it
/// is refused.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct GenieLoss {}

impl PartConfig for GenieLoss {
    type Part = dyn Policy;
    const NAME: &'static str = "genie-loss";
    const MEANING: &'static str = "no server can know this: one by one the device whose Δ̂ lowers the \
        training loss most; simulations only";
    const FAMILY: &'static str = "reference";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for GenieLoss {}

impl Policy for GenieLoss {
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
        Some(Genie::Loss)
    }
}
