//! The median of every entry.

use super::entrywise::entry_by_entry;
use super::{Aggregator, Contribution, Delta, equal_shares};
use crate::base::state::Persist;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this rule.
pub const ENTRY: Entry<dyn Aggregator> = Entry::of::<Median>();

/// The middle value of every entry over all K devices, or the mean of the two middle ones; a device that did
/// not send an entry has the value zero there, and so has one that was silent or was dropped.
///
/// It is unmoved by fewer than half of the values in an entry, whatever these are. But sparse updates meet in
/// few entries: **where fewer than half of the devices send an entry, its median is zero**, and with the
/// supports of D-SGD at q/d of a few percent that is almost everywhere. The rule is for updates that are sent
/// nearly whole.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Median {}

impl PartConfig for Median {
    type Part = dyn Aggregator;
    const NAME: &'static str = "median";
    const MEANING: &'static str =
        "the middle value of each entry; zero where fewer than half of the devices send it";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Aggregator>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for Median {}

impl Aggregator for Median {
    fn weights(&self, devices: usize, _: &dyn Fn(usize) -> usize) -> Vec<f32> {
        equal_shares(devices)
    }

    fn aggregate<'a>(&mut self, contributions: &[Contribution<'a>], k: usize) -> Delta<'a> {
        entry_by_entry(contributions, k, |sorted| {
            let (lower, upper) = (sorted[(k - 1) / 2], sorted[k / 2]);
            f64::midpoint(f64::from(lower), f64::from(upper)) as f32
        })
    }
}
