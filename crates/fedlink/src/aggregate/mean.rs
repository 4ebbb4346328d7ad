//! The mean over the scheduled devices.

use super::{Aggregator, Contribution, Delta, equal_shares, weighted_sum};
use crate::base::state::Persist;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this rule.
pub const ENTRY: Entry<dyn Aggregator> = Entry::of::<Mean>();

/// Δ̄ = (1/K)·Σ Δ̂_m over the K scheduled devices, as in the paper.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Mean {}

impl PartConfig for Mean {
    type Part = dyn Aggregator;
    const NAME: &'static str = "mean";
    const MEANING: &'static str = "the mean over the K devices: each counts 1/K";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Aggregator>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for Mean {}

impl Aggregator for Mean {
    fn is_equal_mean(&self) -> bool {
        true
    }

    fn weights(&self, devices: usize, _: &dyn Fn(usize) -> usize) -> Vec<f32> {
        equal_shares(devices)
    }

    fn aggregate<'a>(&mut self, contributions: &[Contribution<'a>], _: usize) -> Delta<'a> {
        weighted_sum(contributions)
    }
}
