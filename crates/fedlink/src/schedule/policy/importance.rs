//! Importance and channel.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::Quantity;
use crate::schedule::priced::probabilities;
use crate::schedule::sampling::{Target, des_raj, successive};
use crate::schedule::{Ask, Bias, Pick, Policy, Reports, Schedule, Selection, Trains, View, Weight};
use serde::{Deserialize, Serialize};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<Importance>();

/// The price of a bad channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Price {
    /// Upload time: a bad channel makes a device less likely.
    #[default]
    Time,
    /// The variance of a compressor whose error falls with its bits: a bad channel makes a device *more*
    /// likely, since only its 1/p keeps the estimate unbiased.
    Variance,
}

/// K devices drawn one after another with p_m = u_m·√(ρ/((1−ρ)·T_m + λ)), λ such that Σ p = 1; each update
/// counts its weight by Des Raj, so that the selection is unbiased.
///
/// p minimizes ρ·Σ u²/p + (1−ρ)·Σ p·T, u = π‖Δ‖ over its sum and T_m ∝ 1/C_m the upload time over its mean,
/// so that both sums are about 1 and ρ means the same whatever the norms are. Source: after Ren, He, Wen, Yu,
/// Huang and Guo, *Scheduling for Cellular Federated Edge Learning with Importance and Channel Awareness*
/// (2020), as we read it; with n symbols per round T is a price, not a duration. `price = "variance"` has no
/// time term, and u²/C in place of u². Equal bits. Invariant: scaling all norms changes nothing.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Importance {
    /// ρ, weight of the variance against the time
    #[key(default = 0.5, range = "> 0 and ≤ 1")]
    pub rho: f64,
    /// price of a bad channel
    #[key(default = Price::Time, allowed = "\"time\" | \"variance\" (of the compressor)")]
    pub price: Price,
    /// π, weight of each device in the objective
    #[key(default = Target::Equal, allowed = "\"equal\" | \"by-size\"")]
    pub target: Target,
}

impl PartConfig for Importance {
    type Part = dyn Policy;
    const NAME: &'static str = "importance";
    const FAMILY: &'static str = "unbiased";
    const MEANING: &'static str =
        "devices drawn by norm against upload time; unbiased: each update counts its weight";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Importance {
    /// The probabilities of the first draw.
    fn first_draw(&self, u: &[f64], capacities: &[f64]) -> Vec<f64> {
        let time = |capacity: f64| if capacity > 0.0 { (1.0 / capacity).min(1e100) } else { 1e100 };
        let times: Vec<f64> = capacities.iter().map(|&capacity| time(capacity)).collect();
        let mean = (times.iter().sum::<f64>() / times.len().max(1) as f64).max(f64::MIN_POSITIVE);
        match self.price {
            Price::Time => {
                // Over its sum, as times are over their mean: the least Σ u²/p is 1 then, whatever the norms.
                let sum: f64 = u.iter().sum();
                let scale = if sum > 0.0 && sum.is_finite() { libm::sqrt(self.rho) / sum } else { 1.0 };
                let u: Vec<f64> = u.iter().map(|u| u * scale).collect();
                let prices: Vec<f64> = times.iter().map(|time| (1.0 - self.rho) * time / mean).collect();
                probabilities(&u, &prices, 1)
            }
            Price::Variance => {
                let u: Vec<f64> = u.iter().zip(&times).map(|(u, time)| u * libm::sqrt(time / mean)).collect();
                probabilities(&u, &vec![0.0; u.len()], 1)
            }
        }
    }
}

impl Persist for Importance {}

impl Policy for Importance {
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
        if devices.is_empty() {
            return Schedule::default();
        }
        let targets = self.target.weights(devices, view.links.devices(), |device| view.samples(device));
        let u: Vec<f64> =
            (0..devices.len()).map(|row| targets[row] * f64::from(reports.first(row)).max(0.0)).collect();
        let capacities: Vec<f64> = devices.iter().map(|&device| view.links.capacity(device)).collect();
        let p = self.first_draw(&u, &capacities);
        let drawn = successive(&p, view.k, &mut view.rng(0));
        view.note_each(Quantity::Probability, devices, |row| p[row]);
        let positions = drawn.iter().zip(1u32..).map(|(&row, position)| (devices[row], f64::from(position)));
        view.note(Quantity::Order, positions);
        let pairs: Vec<(f64, f64)> = drawn.iter().map(|&row| (targets[row], p[row])).collect();
        let weight = |(row, weight): (usize, f64)| Pick {
            device: devices[row],
            bit_weight: 1.0,
            // A device with p = 0 that is drawn for lack of others has weight 0.
            weight: Weight::Own(if weight.is_finite() { weight } else { 0.0 }),
        };
        let mut picks: Vec<Pick> = drawn.into_iter().zip(des_raj(&pairs)).map(weight).collect();
        picks.sort_unstable_by_key(|pick| pick.device);
        Schedule { picks }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;
    use crate::schedule::sampling::tests::ordered;

    #[test]
    fn with_nothing_but_the_variance_p_is_in_proportion_to_the_norms() {
        let p =
            Importance { rho: 1.0, ..Importance::default() }.first_draw(&[1.0, 3.0, 4.0], &[9.0, 1.0, 0.1]);
        for (got, wanted) in p.iter().zip([0.125, 0.375, 0.5]) {
            assert!((got - wanted).abs() < 1e-12);
        }
        // A compressor's variance makes the bad channel more likely, in proportion to 1/√C.
        let variance = Importance { price: Price::Variance, ..Importance::default() };
        let p = variance.first_draw(&[1.0, 1.0], &[4.0, 1.0]);
        assert!((p[1] / p[0] - 2.0).abs() < 1e-9, "{p:?}");
    }

    #[test]
    fn the_probabilities_are_the_best_of_a_grid() {
        let (u, capacities, rho) = ([0.2, 0.5, 0.4], [2.0, 0.5, 1.0], 0.6);
        let p = Importance { rho, ..Importance::default() }.first_draw(&u, &capacities);
        let times = capacities.map(|c| 1.0 / c);
        let mean = times.iter().sum::<f64>() / 3.0;
        let value = |p: [f64; 3]| -> f64 {
            // u over its sum, 1.1.
            (0..3).map(|i| rho * (u[i] / 1.1).powi(2) / p[i] + (1.0 - rho) * p[i] * times[i] / mean).sum()
        };
        let best = value([p[0], p[1], p[2]]);
        for i in 1..100 {
            for j in 1..100 - i {
                let (a, b) = (f64::from(i) / 100.0, f64::from(j) / 100.0);
                assert!(value([a, b, 1.0 - a - b]) >= best - 1e-12);
            }
        }
    }

    #[test]
    fn the_mean_over_all_ordered_draws_is_the_weighted_mean_of_the_updates() {
        let (u, capacities) = ([0.2, 0.5, 0.4, 1.3, 0.05], [2.0, 0.5, 1.0, 3.0, 0.1]);
        let targets = [0.1, 0.3, 0.25, 0.15, 0.2];
        for price in [Price::Time, Price::Variance] {
            let p = Importance { price, ..Importance::default() }.first_draw(&u, &capacities);
            for k in 1..=5 {
                let mut mean = [0.0; 5];
                for (drawn, probability) in ordered(&p, k) {
                    let pairs: Vec<(f64, f64)> = drawn.iter().map(|&i| (targets[i], p[i])).collect();
                    for (&i, weight) in drawn.iter().zip(des_raj(&pairs)) {
                        mean[i] += probability * weight;
                    }
                }
                let off = mean.iter().zip(targets).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(off < 1e-12, "{price:?}, K = {k}: {mean:?}");
            }
        }
    }

    #[test]
    fn the_probabilities_meet_the_conditions_of_the_minimum_and_do_not_depend_on_the_unit_of_norms() {
        let (u, capacities, rho) = ([0.2, 0.5, 0.4, 1.3, 0.05], [2.0, 0.5, 1.0, 3.0, 0.1], 0.3);
        let importance = Importance { rho, ..Importance::default() };
        let p = importance.first_draw(&u, &capacities);
        let times = capacities.map(|c| 1.0 / c);
        let (sum, mean) = (u.iter().sum::<f64>(), times.iter().sum::<f64>() / 5.0);
        let level = |i: usize| rho * (u[i] / sum / p[i]).powi(2) - (1.0 - rho) * times[i] / mean;
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12 && p.iter().all(|p| *p < 1.0), "{p:?}");
        assert!((1..5).all(|i| (level(i) - level(0)).abs() < 1e-9), "{p:?}");
        assert_eq!(importance.first_draw(&u.map(|u| u / 1024.0), &capacities), p);
    }

    #[test]
    fn the_weights_of_updates_are_unbiased_over_the_draws() {
        let bench = Bench::with_gains(&[1.0, 5.0, 0.2, 3.0], 2);
        let norms = [1.0f32, 2.0, 3.0, 0.7];
        let rounds = 40_000u64;
        let (mut sums, mut squares) = ([0.0; 4], [0.0; 4]);
        for t in 0..rounds {
            let schedule = bench.at(t, |view| {
                let mut policy = Importance::default();
                let candidates = policy.candidates(view);
                policy.select(view, &Reports::new(candidates, 1, norms.to_vec()))
            });
            for pick in schedule.picks {
                let Weight::Own(weight) = pick.weight else { panic!("a weight of its own") };
                sums[pick.device.index()] += weight;
                squares[pick.device.index()] += weight * weight;
            }
        }
        let n = rounds as f64;
        for (sum, square) in sums.iter().zip(&squares) {
            let (mean, variance) = (sum / n, square / n - (sum / n).powi(2));
            assert!((mean - 0.25).abs() < 4.5 * (variance / n).sqrt(), "{sums:?}");
        }
    }
}
