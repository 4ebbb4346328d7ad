//! Diverse devices: facility location over the updates that were received last.

use crate::base::state::{Persist, State, StateError};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::RoundRecord;
use crate::schedule::received::LastUpdates;
use crate::schedule::{
    Bias, Entries, Pick, Policy, Reports, Schedule, Selection, Trains, View, Weight, largest_indices_by,
};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<DivFlConfig>();

/// `[schedule.divfl]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct DivFlConfig {}

impl PartConfig for DivFlConfig {
    type Part = dyn Policy;
    const NAME: &'static str = "divfl";
    const FAMILY: &'static str = "diversity";
    const MEANING: &'static str =
        "K devices whose last updates are nearest to those of all; each counts for the devices it stands for";

    fn build(self, scope: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(DivFl { last: LastUpdates::new(scope.devices as usize) }))
    }
}

/// Minimizes Σ_m min_(j∈S) ‖Δ̂_m − Δ̂_j‖ over the sets of K devices, greedily: first the smallest sum of
/// distances, then the largest drop. Device j has the weight γ_j/M, γ_j the number of devices whose nearest
/// in S it is. Equal bits.
///
/// The distances are those between the last updates that the server received of each device (all present
/// updates would have to be sent for others); a device that was never scheduled is picked first, of several
/// that of the larger gain. The weight of a device without a known update, or of one where nothing of S is
/// known, is shared equally. Source: Balakrishnan et al., *Diverse Client Selection for Federated Learning
/// via Submodular Maximization* (2022), as we read it; their released code averages by samples in place of γ.
///
/// Invariants: Σ γ = M; the drop of the cost is at least 1 − 1/e of the largest one; of equal updates no
/// second one is picked before every other update is. No device reports, only the K train. State: the last
/// update of every device, up to M·d numbers, and M² distances; a round takes O(K·M) distances and O(M²)
/// steps.
#[derive(Clone, Debug)]
pub struct DivFl {
    last: LastUpdates,
}

/// An upper bound on the decrease of the cost by a device; the largest comes first, of equals the lower
/// device.
#[derive(PartialEq)]
struct Gain {
    drop: f64,
    device: usize,
    /// The number of picks that it was computed for.
    picks: usize,
}

impl Eq for Gain {}

impl PartialOrd for Gain {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Gain {
    fn cmp(&self, other: &Self) -> Ordering {
        self.drop.total_cmp(&other.drop).then(other.device.cmp(&self.device))
    }
}

impl DivFl {
    /// Up to `count` of `pool` that lie nearest to the updates of `everyone`, in the order of the picks.
    fn greedy(&self, everyone: &[usize], pool: &[usize], count: usize) -> Vec<usize> {
        let sum = |&j: &usize| everyone.iter().map(|&m| self.last.distance(m, j)).sum::<f64>();
        let sums: Vec<f64> = pool.iter().map(sum).collect();
        let smaller = |&a: &usize, &b: &usize| sums[a].total_cmp(&sums[b]).then(pool[a].cmp(&pool[b]));
        let Some(first) = (0..pool.len()).min_by(smaller).filter(|_| count > 0) else { return Vec::new() };
        let mut picks = vec![pool[first]];
        let mut nearest: Vec<f64> = everyone.iter().map(|&m| self.last.distance(m, picks[0])).collect();
        // Drops only become smaller, so that one which was computed for fewer picks is a bound.
        let others = pool.iter().filter(|&&device| device != picks[0]);
        let mut heap: BinaryHeap<Gain> =
            others.map(|&device| Gain { drop: f64::INFINITY, device, picks: 0 }).collect();
        while picks.len() < count
            && let Some(best) = heap.pop()
        {
            if best.picks < picks.len() {
                let less = |(&m, &now): (&usize, &f64)| (now - self.last.distance(m, best.device)).max(0.0);
                let drop = everyone.iter().zip(&nearest).map(less).sum();
                heap.push(Gain { drop, picks: picks.len(), ..best });
                continue;
            }
            picks.push(best.device);
            for (&m, now) in everyone.iter().zip(&mut nearest) {
                *now = now.min(self.last.distance(m, best.device));
            }
        }
        picks
    }

    /// γ of each of `scheduled`: the number of the M devices that it represents.
    fn represented(&self, scheduled: &[DeviceId]) -> Vec<f64> {
        let mut counts = vec![0.0; scheduled.len()];
        let known: Vec<usize> = (0..scheduled.len()).filter(|&i| self.last.is_known(scheduled[i])).collect();
        let mut nobody = 0.0;
        for device in DeviceId::all(self.last.devices()) {
            let distance = |i: usize| self.last.distance(device.index(), scheduled[i].index());
            let nearest = match scheduled.iter().position(|picked| *picked == device) {
                // A picked device represents itself; of equal distances the first pick counts.
                Some(own) => Some(own),
                None if !self.last.is_known(device) => None,
                None => known.iter().copied().min_by(|&a, &b| distance(a).total_cmp(&distance(b))),
            };
            match nearest {
                Some(i) => counts[i] += 1.0,
                None => nobody += 1.0,
            }
        }
        let each = nobody / scheduled.len().max(1) as f64;
        counts.iter().map(|count| count + each).collect()
    }
}

impl Persist for DivFl {
    fn save(&self) -> State {
        self.last.save()
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        self.last.load(&state)
    }
}

impl Policy for DivFl {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        self.last.refresh();
        let (known, new): (Vec<DeviceId>, Vec<DeviceId>) =
            view.eligible().into_iter().partition(|device| self.last.is_known(*device));
        let first = largest_indices_by(&new, view.k, |i| (view.links.gain(new[i]), 0.0));
        let mut chosen: Vec<DeviceId> = first.into_iter().map(|i| new[i]).collect();
        let index = |device: &DeviceId| device.index();
        let everyone: Vec<usize> =
            view.everyone().iter().filter(|device| self.last.is_known(**device)).map(index).collect();
        let pool: Vec<usize> = known.iter().map(index).collect();
        let rest = self.greedy(&everyone, &pool, view.k - chosen.len());
        chosen.extend(rest.into_iter().map(DeviceId::new));
        chosen.sort_unstable();
        chosen
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Biased, Trains::Scheduled).with_weights()
    }

    fn select(&mut self, _: &View, reports: &Reports) -> Schedule {
        let counts = self.represented(&reports.devices);
        let pick = |(&device, count): (&DeviceId, f64)| {
            let weight = Weight::Own(count / self.last.devices() as f64);
            Pick { device, bit_weight: 1.0, weight }
        };
        Schedule { picks: reports.devices.iter().zip(counts).map(pick).collect() }
    }

    fn receive(&mut self, device: DeviceId, update: &dyn Entries) {
        self.last.receive(device, update);
    }

    fn observe(&mut self, outcome: &RoundRecord) {
        outcome.transmissions.iter().for_each(|sent| self.last.note_scheduled(sent.device));
    }

    fn state_numbers(&self, devices: u64, dim: u64) -> u128 {
        LastUpdates::numbers(devices, dim)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;
    use crate::schedule::received::tests::Dense;
    use proptest::prelude::*;

    fn divfl(vectors: &[Vec<f32>]) -> DivFl {
        let mut policy = DivFl { last: LastUpdates::new(vectors.len()) };
        for (device, vector) in DeviceId::all(vectors.len()).zip(vectors) {
            policy.receive(device, &Dense(vector));
        }
        policy
    }

    fn distance(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum::<f64>().sqrt()
    }

    fn cost(vectors: &[Vec<f32>], set: &[usize]) -> f64 {
        let nearest =
            |m: &Vec<f32>| set.iter().map(|&j| distance(m, &vectors[j])).fold(f64::INFINITY, f64::min);
        vectors.iter().map(nearest).sum()
    }

    fn vectors() -> impl Strategy<Value = Vec<Vec<f32>>> {
        // Few values, so that there are duplicates.
        let entry = prop_oneof![Just(0.0f32), Just(1.0), Just(5.0), -3.0..3.0f32];
        prop::collection::vec(prop::collection::vec(entry, 2), 1..=9)
    }

    proptest! {
        #[test]
        fn the_greedy_set_drops_the_cost_by_at_least_1_minus_1_over_e_of_the_best(
            vectors in vectors(),
            k in 1usize..=5,
        ) {
            let (m, k) = (vectors.len(), k.min(vectors.len()));
            let mut policy = divfl(&vectors);
            let chosen = Bench::new(m, k).at(3, |view| policy.candidates(view));
            let set: Vec<usize> = chosen.iter().map(|device| device.index()).collect();
            prop_assert_eq!(set.len(), k);
            // d₀: the cost if the nearest of every device were as far as the two farthest.
            let far = (0..m).flat_map(|a| (0..m).map(move |b| (a, b)));
            let far = far.map(|(a, b)| distance(&vectors[a], &vectors[b])).fold(0.0, f64::max);
            let none = far * m as f64;
            let subsets = (1u32..1 << m).filter(|mask| mask.count_ones() as usize == k);
            let best = subsets
                .map(|mask| cost(&vectors, &(0..m).filter(|i| (mask >> i) & 1 == 1).collect::<Vec<_>>()))
                .fold(f64::INFINITY, f64::min);
            let share = 1.0 - (-1f64).exp();
            let dropped = none - cost(&vectors, &set);
            prop_assert!(dropped >= share * (none - best) - 1e-9, "{:?} {:?}", vectors, set);
        }

        /// The lazy evaluation selects the same devices as one that recomputes every drop.
        #[test]
        fn it_picks_as_the_plain_greedy_rule(vectors in vectors(), k in 1usize..=9) {
            let (m, k) = (vectors.len(), k.min(vectors.len()));
            let mut policy = divfl(&vectors);
            policy.last.refresh();
            let all: Vec<usize> = (0..m).collect();
            let picks = policy.greedy(&all, &all, k);
            let mut plain: Vec<usize> = Vec::new();
            while plain.len() < k {
                let with = |j: usize| cost(&vectors, &[&plain[..], &[j]].concat());
                let least = (0..m).filter(|j| !plain.contains(j)).map(with).fold(f64::INFINITY, f64::min);
                let next = picks[plain.len()];
                prop_assert!(with(next) <= least + 1e-9, "{:?} {:?} then {}", vectors, plain, next);
                plain.push(next);
            }
        }

        #[test]
        fn duplicates_wait_for_every_other_update_and_the_shares_add_up_to_1(
            vectors in vectors(),
            k in 1usize..=9,
        ) {
            let (m, k) = (vectors.len(), k.min(vectors.len()));
            let mut policy = divfl(&vectors);
            let (chosen, schedule) = Bench::new(m, k).at(3, |view| {
                let chosen = policy.candidates(view);
                (chosen.clone(), policy.select(view, &Reports::new(chosen, 0, vec![])))
            });
            let distinct = |rows: &[usize]| {
                let is_new = |i: &usize| !rows[..*i].iter().any(|b| vectors[rows[*i]] == vectors[*b]);
                (0..rows.len()).filter(is_new).count()
            };
            let set: Vec<usize> = chosen.iter().map(|device| device.index()).collect();
            prop_assert_eq!(distinct(&set), k.min(distinct(&(0..m).collect::<Vec<_>>())), "{:?}", vectors);
            let weight = |pick: &Pick| match pick.weight {
                Weight::Own(weight) => weight * m as f64,
                Weight::Rule => f64::NAN,
            };
            let counts: Vec<f64> = schedule.picks.iter().map(weight).collect();
            prop_assert!((counts.iter().sum::<f64>() - m as f64).abs() < 1e-9);
            prop_assert!(counts.iter().all(|count| (count - count.round()).abs() < 1e-9), "{:?}", counts);
        }
    }

    #[test]
    fn a_device_that_never_sent_comes_first_and_represents_itself() {
        let mut policy = DivFl { last: LastUpdates::new(5) };
        let bench = Bench::with_gains(&[1.0, 9.0, 5.0, 7.0, 2.0], 2);
        assert_eq!(bench.at(0, |view| policy.candidates(view)), [DeviceId(1), DeviceId(3)]);
        for (device, value) in [(1, 1.0), (3, 1.5), (2, 9.0)] {
            policy.receive(DeviceId(device), &Dense(&[value]));
        }
        // No upload of device 0 arrived, so its update counts as 0; 4 is new.
        policy.observe(&RoundRecord::of_devices(1, &[DeviceId(0)]));
        let schedule = bench.at(1, |view| {
            let chosen = policy.candidates(view);
            policy.select(view, &Reports::new(chosen, 0, vec![]))
        });
        // Updates 0, 1, 9, 1.5: the sums of distances are 11.5, 9.5, 24.5 and 9.5.
        let weights: Vec<(u32, Weight)> =
            schedule.picks.iter().map(|pick| (pick.device.0, pick.weight)).collect();
        assert_eq!(weights, [(1, Weight::Own(0.8)), (4, Weight::Own(0.2))]);
    }
}
