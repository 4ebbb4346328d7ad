//! Optimal sampling by norms.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::Quantity;
use crate::schedule::sampling::{Target, systematic};
use crate::schedule::{Ask, Bias, Pick, Policy, Reports, Schedule, Selection, Trains, View, Weight};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<Optimal>();

/// K devices drawn with the probabilities that minimize the variance of an unbiased estimate; each update
/// counts π/p.
///
/// With u_m = π_m·‖Δ_m‖ ascending and l the largest integer with 0 < K + l − M ≤ Σ_(i≤l) u_(i)/u_(l):
/// p_(i) = (K + l − M)·u_(i)/Σ_(j≤l) u_(j) for i ≤ l, else 1. It minimizes Σ u²/p subject to Σ p = K, p ≤ 1.
/// Bits are in proportion to ‖Δ‖·π/p. Exactly K are drawn (Madow's systematic sampling), where the source
/// samples independently.
///
/// Source: Chen, Horváth and Richtárik, *Optimal Client Sampling for Federated Learning* (2022). Unbiased is
/// the selection; the whole is so only with an unbiased compressor. Public code gives one device too many the
/// formula of small norms, and with it probabilities above 1.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Optimal {
    /// π, weight of each device in the objective
    #[key(allowed = "\"equal\" | \"by-size\"")]
    pub target: Target,
}

impl PartConfig for Optimal {
    type Part = dyn Policy;
    const NAME: &'static str = "optimal";
    const FAMILY: &'static str = "unbiased";
    const MEANING: &'static str =
        "K devices drawn by their norms with the least variance; unbiased: each update counts π/p";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

/// The probabilities for u ≥ 0, finite, and K; all 1 where there are no more than K devices, equal where all
/// u are 0.
///
/// ```
/// let p = fedlink::schedule::policy::optimal::probabilities(&[1.0, 1.0, 1.0, 10.0], 2);
/// assert_eq!(p[3], 1.0);
/// assert!((p[0] - 1.0 / 3.0).abs() < 1e-15);
/// ```
pub fn probabilities(u: &[f64], k: usize) -> Vec<f64> {
    let m = u.len();
    if k >= m {
        return vec![1.0; m];
    }
    let largest = u.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return vec![k as f64 / m as f64; m];
    }
    // Scaled, so that no sum overflows.
    let u: Vec<f64> = u.iter().map(|u| u / largest).collect();
    // Only the k largest can have p = 1: they alone are sorted.
    let ascending = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    let mut order: Vec<(f64, usize)> = u.iter().copied().zip(0..).collect();
    let (_, first, _) = order.select_nth_unstable_by(m - k, ascending);
    let first = *first;
    order.drain(..m - k);
    order.sort_unstable_by(ascending);
    // The sum of the others runs in the order of the devices, which no sorting changes.
    let is_smaller = |pair: &(f64, usize)| ascending(pair, &first).is_lt();
    let mut sum: f64 = u.iter().copied().zip(0..).filter(is_smaller).map(|(u, _)| u).sum();
    let sums: Vec<f64> = order.iter().map(|(u, _)| (sum += u, sum).1).collect();
    // The number of the k that have the formula of small norms: the largest for which no p is above 1.
    let fits = |free: &usize| {
        let last = order[free - 1].0;
        last > 0.0 && *free as f64 * last <= sums[free - 1] * (1.0 + 1e-15)
    };
    let free = (1..=k).rev().find(fits).unwrap_or(1);
    let sum = sums[free - 1];
    let small = |u: f64| {
        if sum > 0.0 { (free as f64 * u / sum).min(1.0) } else { free as f64 / (m - k + free) as f64 }
    };
    let mut p: Vec<f64> = u.into_iter().map(small).collect();
    order[free..].iter().for_each(|&(_, i)| p[i] = 1.0);
    p
}

impl Persist for Optimal {}

impl Policy for Optimal {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        view.everyone()
    }

    fn asks(&self) -> &[Ask] {
        &[Ask::Norm]
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Unbiased, Trains::Everyone).with_weights()
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        let devices = &reports.devices;
        let targets = self.target.weights(devices, view.links.devices(), |device| view.samples(device));
        let norm = |row: usize| f64::from(reports.first(row)).max(0.0);
        let u: Vec<f64> = (0..devices.len()).map(|row| targets[row] * norm(row)).collect();
        let p = probabilities(&u, view.k);
        view.note_each(Quantity::Probability, devices, |row| p[row]);
        let mut rng = view.rng(0);
        let mut order: Vec<usize> = (0..devices.len()).collect();
        rng.shuffle(&mut order);
        let pick = |row: usize| {
            let weight = targets[row] / p[row];
            Pick { device: devices[row], bit_weight: weight * norm(row), weight: Weight::Own(weight) }
        };
        Schedule { picks: systematic(&p, &order, rng.uniform()).into_iter().map(pick).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_probabilities_are_those_of_the_worked_examples() {
        let close = |u: &[f64], k: usize, truth: &[f64]| {
            for (got, wanted) in probabilities(u, k).iter().zip(truth) {
                assert!((got - wanted).abs() < 1e-12, "{u:?}: {got} {wanted}");
            }
        };
        let third = 1.0 / 3.0;
        close(&[1.0, 1.0, 1.0, 10.0], 2, &[third, third, third, 1.0]);
        close(&[1.0, 2.0, 3.0, 4.0], 2, &[0.2, 0.4, 0.6, 0.8]);
        close(&[1.0, 2.0, 3.0, 10.0], 2, &[1.0 / 6.0, third, 0.5, 1.0]);
        close(&[0.0; 4], 2, &[0.5; 4]);
        close(&[3.0, 1.0], 2, &[1.0, 1.0]);
    }

    #[test]
    fn the_probabilities_are_those_of_a_search_in_fifty_digits() {
        // By bisection on λ of p = min(1, λ·u) in decimal arithmetic of fifty digits, elsewhere.
        let truth = [0.952_380_952_380_952_4, 0.190_476_190_476_190_5, 0.095_238_095_238_095_24, 1.0];
        let p = probabilities(&[5.0, 1.0, 0.5, 8.0, 2.0, 2.0], 3);
        for (got, wanted) in p.iter().zip(truth.into_iter().chain([0.380_952_380_952_380_95; 2])) {
            assert!((got - wanted).abs() < 1e-15, "{p:?}");
        }
        let p = probabilities(&[9.0, 0.3, 7.0, 0.6, 0.1, 4.0, 0.2], 4);
        for (got, wanted) in p.iter().zip([1.0, 0.25, 1.0, 0.5, 1.0 / 12.0, 1.0, 1.0 / 6.0]) {
            assert!((got - wanted).abs() < 1e-15, "{p:?}");
        }
    }

    #[test]
    fn the_mean_over_all_draws_is_the_mean_of_the_updates() {
        // p = 1/8, 2/8, 4/8, 1/8, 1: the drawn set is constant in every eighth of U, in every order.
        let (u, deltas) = ([1.0, 2.0, 4.0, 1.0, 50.0], [3.0, -1.0, 0.25, 8.0, -5.5]);
        let p = probabilities(&u, 2);
        let mut orders = vec![vec![]];
        for _ in 0..5 {
            let longer = |order: &Vec<usize>| -> Vec<Vec<usize>> {
                let left = (0..5).filter(|i| !order.contains(i));
                left.map(|i| [&order[..], &[i]].concat()).collect()
            };
            orders = orders.iter().flat_map(longer).collect();
        }
        assert_eq!(orders.len(), 120);
        let mut mean = 0.0;
        for order in &orders {
            for eighth in 0..8 {
                let drawn = systematic(&p, order, (f64::from(eighth) + 0.5) / 8.0);
                mean += drawn.iter().map(|&i| deltas[i] / (5.0 * p[i])).sum::<f64>() / (8.0 * 120.0);
            }
        }
        assert!((mean - deltas.iter().sum::<f64>() / 5.0).abs() < 1e-12, "{mean}");
    }

    proptest! {
        /// The conditions of Karush, Kuhn and Tucker: u/p equal where p < 1, and at least that where p = 1.
        #[test]
        fn the_probabilities_are_optimal(
            u in prop::collection::vec(0.001..100.0f64, 2..12),
            k in 1usize..11,
        ) {
            let k = k.min(u.len() - 1);
            let p = probabilities(&u, k);
            prop_assert!((p.iter().sum::<f64>() - k as f64).abs() < 1e-9);
            prop_assert!(p.iter().all(|&p| p > 0.0 && p <= 1.0));
            let (free, full): (Vec<_>, Vec<_>) = u.iter().zip(&p).partition(|(_, p)| **p < 1.0 - 1e-12);
            let ratios = |some: Vec<(&f64, &f64)>| some.iter().map(|(u, p)| *u / *p).collect::<Vec<f64>>();
            let (free, full) = (ratios(free), ratios(full));
            for ratio in &free {
                prop_assert!((ratio / free[0] - 1.0).abs() < 1e-9);
            }
            if let Some(first) = free.first() {
                prop_assert!(full.iter().all(|ratio| *ratio >= first * (1.0 - 1e-9)), "{u:?} {p:?}");
            }
        }
    }

    #[test]
    fn the_weights_of_updates_are_unbiased_over_the_draws() {
        // Σ weight over many rounds: each device counts 1/M on average.
        let bench = Bench::new(6, 2);
        let norms = [1.0f32, 2.0, 3.0, 4.0, 0.5, 7.0];
        let rounds = 40_000u64;
        let mut sums = [0.0; 6];
        let p = probabilities(&norms.map(f64::from), 2);
        for t in 0..rounds {
            let schedule = bench.at(t, |view| {
                let mut policy = Optimal::default();
                let candidates = policy.candidates(view);
                policy.select(view, &Reports::new(candidates, 1, norms.to_vec()))
            });
            assert_eq!(schedule.picks.len(), 2);
            for pick in schedule.picks {
                let Weight::Own(weight) = pick.weight else { panic!("a weight of its own") };
                sums[pick.device.index()] += weight;
            }
        }
        for (sum, p) in sums.iter().zip(&p) {
            let deviation = (1.0 / 6.0 / p) * (p * (1.0 - p) / rounds as f64).sqrt();
            assert!((sum / rounds as f64 - 1.0 / 6.0).abs() < 4.5 * deviation + 1e-12, "{sums:?}");
        }
    }
}
