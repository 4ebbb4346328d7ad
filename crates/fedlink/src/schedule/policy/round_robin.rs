//! Round robin: all devices in turn.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::{Bias, Policy, Selection, Trains, View};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<RoundRobin>();

/// The devices (tK + i) mod M, i < K, of one random order that is the same in all rounds, with equal shares
/// of bits.
///
/// Source: the RR policy of Yang, Liu, Quek and Poor, *Scheduling Policies for Federated Learning in Wireless
/// Networks* (2019), with a random order in place of groups by index. A device that may not send loses its
/// turn. Invariants: in any M consecutive rounds each device is scheduled exactly K times, so that with P =
/// M·P̄/K each spends P̄ on average, as the paper's power constraint requires. No state but the round number.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {}

impl PartConfig for RoundRobin {
    type Part = dyn Policy;
    const NAME: &'static str = "round-robin";
    const FAMILY: &'static str = "fairness";
    const MEANING: &'static str = "every device in turn, in one random order, equal bits";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for RoundRobin {}

impl Policy for RoundRobin {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        let mut order = view.everyone();
        view.fixed_rng(0).shuffle(&mut order);
        let devices = order.len();
        // t·K, or less where K falls.
        let first = (view.turns % devices.max(1) as u128) as usize;
        let turn = |i: usize| order[(first + i) % devices];
        let mut chosen: Vec<DeviceId> = (0..view.k.min(devices)).map(turn).collect();
        chosen.sort_unstable();
        chosen
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::OverRounds, Trains::Scheduled)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;

    #[test]
    fn in_any_m_rounds_every_device_has_k_turns() {
        for (m, k) in [(1, 1), (5, 2), (12, 3), (12, 5), (40, 7), (9, 9)] {
            let bench = Bench::new(m, k);
            let turns: Vec<Vec<DeviceId>> =
                (0..3 * m as u64).map(|t| bench.at(t, |view| RoundRobin {}.candidates(view))).collect();
            for window in turns.windows(m) {
                let mut times = vec![0; m];
                window.iter().flatten().for_each(|device| times[device.index()] += 1);
                assert!(times.iter().all(|&count| count == k), "M = {m}, K = {k}: {times:?}");
            }
        }
    }

    #[test]
    fn the_order_is_the_seed_s_and_not_that_of_the_indices() {
        let first = |seed| Bench::new(40, 1).seeded(seed).at(0, |view| RoundRobin {}.candidates(view));
        let orders: std::collections::BTreeSet<_> = (0..40).map(first).collect();
        assert!(orders.len() > 10, "{} different first devices over 40 seeds", orders.len());
    }
}
