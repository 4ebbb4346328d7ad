//! The same devices in every round.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::sampling::uniform;
use crate::schedule::{Bias, Policy, Selection, Trains, View};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<Fixed>();

/// The same K devices, drawn once, in every round, with equal bits: a lower reference, which shows the value
/// of the other devices' data.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Fixed {}

impl PartConfig for Fixed {
    type Part = dyn Policy;
    const NAME: &'static str = "fixed";
    const FAMILY: &'static str = "reference";
    const MEANING: &'static str = "the same K devices, drawn once, in every round: a floor to compare with";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for Fixed {}

impl Policy for Fixed {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        uniform(view.everyone(), view.k, &mut view.fixed_rng(1))
    }

    fn selection(&self) -> Selection {
        Selection { always_the_same: true, ..Selection::new(Bias::Biased, Trains::Scheduled) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;

    #[test]
    fn the_devices_are_the_same_in_all_rounds_and_others_under_another_seed() {
        let chosen = |seed, t| Bench::new(40, 5).seeded(seed).at(t, |view| Fixed {}.candidates(view));
        assert_eq!(chosen(1, 0), chosen(1, 99));
        assert_ne!(chosen(1, 0), chosen(2, 0));
        assert_eq!(chosen(1, 0).len(), 5);
    }
}
