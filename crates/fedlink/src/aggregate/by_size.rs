//! The mean in which every training sample has the same weight.

use super::{Aggregator, Contribution, Delta, size_shares, weighted_sum};
use crate::base::state::Persist;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this rule.
pub const ENTRY: Entry<dyn Aggregator> = Entry::of::<BySize>();

/// Δ̄ = Σ (n_m/Σ_j n_j)·Δ̂_m, n_m being the training samples of a scheduled device.
///
/// ```
/// use fedlink::aggregate::{Aggregator, BySize};
/// let sizes = [30, 10];
/// assert_eq!(BySize {}.weights(2, &|i| sizes[i]), [0.75, 0.25]);
/// ```
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct BySize {}

impl PartConfig for BySize {
    type Part = dyn Aggregator;
    const NAME: &'static str = "by-size";
    const MEANING: &'static str = "the mean over the K devices, each counting by its number of samples";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Aggregator>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for BySize {}

impl Aggregator for BySize {
    fn weights(&self, devices: usize, samples: &dyn Fn(usize) -> usize) -> Vec<f32> {
        size_shares(devices, samples)
    }

    fn aggregate<'a>(&mut self, contributions: &[Contribution<'a>], _: usize) -> Delta<'a> {
        weighted_sum(contributions)
    }

    fn by_size(&self) -> bool {
        true
    }
}
