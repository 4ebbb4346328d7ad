//! The mean over the updates that were used.

use fedlink::aggregate::{Aggregator, Contribution, Delta};
use fedlink::base::state::Persist;
use fedlink::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this rule.
pub const ENTRY: Entry<dyn Aggregator> = Entry::of::<ReceivedMean>();

/// Δ̄ = (1/U)·Σ Δ̂_m over the U updates that were used. `[learn.received-mean]` has no keys.
///
/// Unlike with `mean`, devices that were silent, or whose upload was dropped, do not make the step shorter.
/// Weights that a policy sets (`Weight::Own`) are not used. Invariants: the step of updates that agree is
/// that update; without updates the step is 0.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ReceivedMean {}

impl PartConfig for ReceivedMean {
    type Part = dyn Aggregator;
    const NAME: &'static str = "received-mean";
    const MEANING: &'static str = "the mean over the updates that were used, with equal weights";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Aggregator>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for ReceivedMean {}

impl Aggregator for ReceivedMean {
    fn weights(&self, devices: usize, _: &dyn Fn(usize) -> usize) -> Vec<f32> {
        vec![1.0 / devices as f32; devices]
    }

    fn aggregate<'a>(&mut self, contributions: &[Contribution<'a>], _: usize) -> Delta<'a> {
        let weight = 1.0 / contributions.len() as f32;
        Delta::Sum(contributions.iter().map(|one| (one.update, weight * one.factor)).collect())
    }
}
