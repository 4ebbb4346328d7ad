//! Optimal sampling by norms.

use crate::registry::{ConfigError, Entry, Key, PartConfig, Scope, key};
use crate::schedule::sampling::{Target, systematic};
use crate::schedule::{Ask, Pick, Policy, Reports, Schedule, Share, View};
use crate::state::Persist;
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<Optimal>();

/// K devices drawn with the probabilities that minimize the variance of an unbiased estimate; each update counts π/p.
///
/// With u_m = π_m·‖Δ_m‖ ascending and l the largest integer with 0 < K + l − M ≤ Σ_(i≤l) u_(i)/u_(l):
/// p_(i) = (K + l − M)·u_(i)/Σ_(j≤l) u_(j) for i ≤ l, else 1. It minimizes Σ u²/p subject to Σ p = K, p ≤ 1. Bits are in
/// proportion to ‖Δ‖·π/p. Exactly K are drawn (Madow's systematic sampling), where the source flips coins.
///
/// Source: Chen, Horváth and Richtárik, *Optimal Client Sampling for Federated Learning* (2022). Unbiased is the selection;
/// the whole is so only with an unbiased compressor. Public code gives one device too many the formula of small norms, and
/// with it probabilities above 1.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Optimal {
    /// What each device should count.
    pub target: Target,
}

impl PartConfig for Optimal {
    type Part = dyn Policy;
    const NAME: &'static str = "optimal";
    const FAMILY: &'static str = "unbiased";
    const MEANING: &'static str =
        "K devices drawn by their norms with the least variance; unbiased: each update counts π/p";
    const KEYS: &'static [Key] =
        &[key("target", "π, what each device should count", "\"equal\" | \"by-size\"")];

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

/// The probabilities for u ≥ 0, finite, and K; all 1 where there are no more than K devices, equal where all u are 0.
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
    let mut order: Vec<usize> = (0..m).collect();
    order.sort_by(|&a, &b| u[a].total_cmp(&u[b]).then(a.cmp(&b)));
    let mut sums = Vec::with_capacity(m);
    order.iter().fold(0.0, |sum, &i| {
        sums.push(sum + u[i]);
        sum + u[i]
    });
    let fits = |l: &usize| {
        let (free, last) = ((k + l - m) as f64, u[order[l - 1]]);
        last > 0.0 && free * last <= sums[l - 1] * (1.0 + 1e-15)
    };
    let l = (m - k + 1..=m).rev().find(fits).unwrap_or(m - k + 1);
    let (free, sum) = ((k + l - m) as f64, sums[l - 1]);
    let mut p = vec![1.0; m];
    for &i in &order[..l] {
        p[i] = if sum > 0.0 { (free * u[i] / sum).min(1.0) } else { free / l as f64 };
    }
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

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        let devices = &reports.devices;
        let targets = self.target.weights(devices, view.links.devices(), |device| view.samples(device));
        let norm = |row: usize| f64::from(reports.first(row)).max(0.0);
        let u: Vec<f64> = (0..devices.len()).map(|row| targets[row] * norm(row)).collect();
        let p = probabilities(&u, view.k);
        let mut rng = view.rng(0);
        let mut order: Vec<usize> = (0..devices.len()).collect();
        rng.shuffle(&mut order);
        let pick = |row: usize| {
            let share = targets[row] / p[row];
            Pick { device: devices[row], bit_weight: share * norm(row), share: Share::Weight(share) }
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

    proptest! {
        /// The conditions of Karush, Kuhn and Tucker: u/p equal where p < 1, and at least that where p = 1.
        #[test]
        fn the_probabilities_are_optimal(u in prop::collection::vec(0.001..100.0f64, 2..12), k in 1usize..11) {
            let k = k.min(u.len() - 1);
            let p = probabilities(&u, k);
            prop_assert!((p.iter().sum::<f64>() - k as f64).abs() < 1e-9);
            prop_assert!(p.iter().all(|&p| p > 0.0 && p <= 1.0));
            let free: Vec<f64> = u.iter().zip(&p).filter(|(_, p)| **p < 1.0 - 1e-12).map(|(u, p)| u / p).collect();
            let full: Vec<f64> = u.iter().zip(&p).filter(|(_, p)| **p >= 1.0 - 1e-12).map(|(u, p)| u / p).collect();
            for ratio in &free {
                prop_assert!((ratio / free[0] - 1.0).abs() < 1e-9);
            }
            if let Some(first) = free.first() {
                prop_assert!(full.iter().all(|ratio| *ratio >= first * (1.0 - 1e-9)), "{u:?} {p:?}");
            }
        }
    }

    #[test]
    fn what_the_updates_count_is_unbiased_over_the_draws() {
        // Σ share over many rounds: each device counts 1/M on average.
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
                let Share::Weight(share) = pick.share else { panic!("a share of its own") };
                sums[pick.device.index()] += share;
            }
        }
        for (sum, p) in sums.iter().zip(&p) {
            let deviation = (1.0 / 6.0 / p) * (p * (1.0 - p) / rounds as f64).sqrt();
            assert!((sum / rounds as f64 - 1.0 / 6.0).abs() < 4.5 * deviation + 1e-12, "{sums:?}");
        }
    }
}
