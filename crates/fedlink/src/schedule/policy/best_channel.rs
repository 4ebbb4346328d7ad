//! BC: best channel.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::{Bias, Policy, Selection, Trains, View, largest};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<BestChannel>();

/// BC: the K devices with the largest gain g, each with an equal share of bits (`w_m = 1`).
///
/// No device reports, and only the K selected devices train. Source: section IV-A of the paper.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct BestChannel {}

impl PartConfig for BestChannel {
    type Part = dyn Policy;
    const NAME: &'static str = "bc";
    const FAMILY: &'static str = "channel";
    const MEANING: &'static str = "best channel: the K largest gains, equal bits";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for BestChannel {}

impl Policy for BestChannel {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        largest(&view.everyone(), view.k, |m| view.links.gains[m])
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::OverRounds, Trains::Scheduled).by_channel(true)
    }
}
