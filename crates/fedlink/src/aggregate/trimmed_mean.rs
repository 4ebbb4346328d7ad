//! The mean of every entry without its extremes.

use super::entrywise::entry_by_entry;
use super::{Aggregator, Contribution, Delta, equal_shares};
use crate::base::state::Persist;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this rule.
pub const ENTRY: Entry<dyn Aggregator> = Entry::of::<TrimmedMean>();

/// The mean of every entry over all K devices without its largest and smallest ⌊trim·K⌋ values; as with the
/// [median](super::Median), a device that did not send an entry has the value zero there.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct TrimmedMean {
    /// share of the values that is left out at each end
    #[key(default = 0.1, range = "≥ 0 and < 0.5")]
    pub trim: f64,
}

impl PartConfig for TrimmedMean {
    type Part = dyn Aggregator;
    const NAME: &'static str = "trimmed-mean";
    const MEANING: &'static str =
        "the mean of each entry without the ⌊learn.trimmed-mean.trim·K⌋ largest and smallest values";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Aggregator>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for TrimmedMean {}

impl Aggregator for TrimmedMean {
    fn weights(&self, devices: usize, _: &dyn Fn(usize) -> usize) -> Vec<f32> {
        equal_shares(devices)
    }

    fn aggregate<'a>(&mut self, contributions: &[Contribution<'a>], k: usize) -> Delta<'a> {
        let cut = ((self.trim * k as f64) as usize).min((k.max(1) - 1) / 2);
        entry_by_entry(contributions, k, |sorted| {
            let rest = &sorted[cut..k - cut];
            (rest.iter().map(|&x| f64::from(x)).sum::<f64>() / rest.len() as f64) as f32
        })
    }
}
