//! Random: K devices at random.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::Quantity;
use crate::schedule::sampling::uniform;
use crate::schedule::{Bias, Policy, Selection, Trains, View};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<Random>();

/// A uniformly random set of K of the devices that may send, with equal shares of bits (`w_m = 1`).
///
/// A partial Fisher–Yates shuffle on the stream of (seed, round). No device reports, only the K train.
/// Invariants: every device is included with probability K/M, every pair with K(K−1)/(M(M−1)), so that the
/// mean update of the K is an unbiased estimate of that of all M. The baseline of McMahan et al.,
/// *Communication-Efficient Learning of Deep Networks from Decentralized Data* (2017), with K fixed.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Random {}

impl PartConfig for Random {
    type Part = dyn Policy;
    const NAME: &'static str = "random";
    const FAMILY: &'static str = "unbiased";
    const MEANING: &'static str = "K devices uniformly at random, equal bits";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for Random {}

impl Policy for Random {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        let devices = view.eligible();
        let probability = view.k.min(devices.len()) as f64 / devices.len().max(1) as f64;
        view.note_each(Quantity::Probability, &devices, |_| probability);
        uniform(devices, view.k, &mut view.rng(0))
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Unbiased, Trains::Scheduled)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;

    #[test]
    fn pairs_are_included_equally_often_at_forty_devices() {
        let (m, k, rounds) = (40usize, 10usize, 4000u64);
        let bench = Bench::new(m, k);
        let (mut single, mut pair) = (vec![0u32; m], 0u32);
        for t in 0..rounds {
            let chosen = bench.at(t, |view| Random {}.candidates(view));
            assert_eq!(chosen.len(), k);
            chosen.iter().for_each(|device| single[device.index()] += 1);
            pair += u32::from(chosen.contains(&DeviceId(3)) && chosen.contains(&DeviceId(17)));
        }
        let near = |count: u32, p: f64| {
            let (mean, deviation) = (rounds as f64 * p, (rounds as f64 * p * (1.0 - p)).sqrt());
            assert!((f64::from(count) - mean).abs() < 4.5 * deviation, "{count} of {mean} ± {deviation}");
        };
        single.iter().for_each(|&count| near(count, k as f64 / m as f64));
        near(pair, (k * (k - 1)) as f64 / (m * (m - 1)) as f64);
    }

    #[test]
    fn the_shuffle_visits_every_pair_of_five_exactly_equally_often() {
        // Two out of five take an integer below 5 and one below 4: all 20 outcomes,
        // through the library's shuffle.
        let mut pairs = std::collections::BTreeMap::new();
        for first in 0..5u64 {
            for second in 0..4u64 {
                let (mut devices, mut integers) = ([0, 1, 2, 3, 4], [first, second].into_iter());
                crate::base::rng::shuffle_prefix_by(&mut devices, 2, |bound| {
                    integers.next().filter(|integer| *integer < bound).expect("two integers")
                });
                let mut pair = [devices[0], devices[1]];
                pair.sort_unstable();
                *pairs.entry(pair).or_insert(0) += 1;
            }
        }
        // K(K−1)/(M(M−1)) = 2 of 20 for each of the ten pairs.
        assert_eq!(pairs.len(), 10);
        assert!(pairs.values().all(|&count| count == 2));
    }

    #[test]
    fn all_devices_are_chosen_where_k_is_m_and_none_that_may_not_send() {
        let bench = Bench::new(7, 7);
        assert_eq!(bench.at(3, |view| Random {}.candidates(view)), DeviceId::all(7).collect::<Vec<_>>());
        let bench = Bench::new(7, 3).excluding(&[0, 2, 5]);
        for t in 0..50 {
            let chosen = bench.at(t, |view| Random {}.candidates(view));
            assert!(chosen.iter().all(|device| ![0, 2, 5].contains(&device.0)), "{chosen:?}");
        }
    }

    #[test]
    fn another_seed_or_round_is_another_choice() {
        let chosen = |seed, t| Bench::new(40, 5).seeded(seed).at(t, |view| Random {}.candidates(view));
        assert_eq!(chosen(1, 4), chosen(1, 4));
        assert_ne!(chosen(1, 4), chosen(2, 4));
        assert_ne!(chosen(1, 4), chosen(1, 5));
        assert_ne!(chosen(1, 5), chosen(2, 4), "a later seed is not an earlier one shifted by a round");
    }
}
