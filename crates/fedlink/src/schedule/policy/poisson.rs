//! Poisson: every device is sampled independently.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::Quantity;
use crate::schedule::sampling::uniform;
use crate::schedule::{Bias, Pick, Policy, Reports, Sampling, Schedule, Selection, Trains, View, Weight};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<PoissonConfig>();

/// `[schedule.poisson]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct PoissonConfig {
    /// q, the probability with which a device is scheduled in a round
    #[key(range = "> 0 and ≤ 1", derived = "K/2M")]
    pub rate: f64,
}

impl PartConfig for PoissonConfig {
    type Part = dyn Policy;
    const NAME: &'static str = "poisson";
    const FAMILY: &'static str = "unbiased";
    const MEANING: &'static str =
        "every device sampled independently, at most K, each in a slot of n/K symbols; amplifies privacy";

    fn derive(&mut self, scope: &Scope) {
        if self.rate == 0.0 {
            self.rate = scope.k as f64 / (2.0 * scope.devices as f64);
        }
    }

    fn build(self, scope: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(Poisson { rate: self.rate, devices: scope.devices, k: scope.k }))
    }
}

/// Every device with probability q, independently of the others: Poisson sampling, which amplifies
/// differential privacy (`docs/privacy.md`).
///
/// A scheduled device has n/K symbols, for any number of scheduled devices, and the weight 1/(q·M), so that
/// no upload depends on the draws of other devices, and the step is an unbiased estimate of the mean update
/// of all M where K = M. If more than K devices are drawn, a uniformly random K of them are scheduled:
/// sampling is then no longer exactly Poisson, with a probability that the accountant charges, and the step
/// lacks the updates of the others. In some rounds no device is scheduled. No device reports, only the
/// scheduled train. Invariant: where K = M every set of devices has the probability q^k·(1−q)^(M−k). Sampling
/// of McMahan, Ramage, Talwar, Zhang, *Learning Differentially Private Recurrent Language Models* (2018).
#[derive(Clone, Copy, Debug)]
pub struct Poisson {
    /// q.
    pub rate: f64,
    /// M.
    pub devices: u64,
    /// K.
    pub k: u64,
}

impl Persist for Poisson {}

impl Policy for Poisson {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        let mut rng = view.rng(0);
        view.note(Quantity::Probability, view.everyone().into_iter().map(|device| (device, self.rate)));
        // Every device has its own draw, so that it does not depend on which others may send.
        let mut chosen: Vec<DeviceId> =
            view.everyone().into_iter().filter(|_| rng.uniform() < self.rate).collect();
        chosen.retain(|device| view.devices.may_send(*device));
        if chosen.len() > view.k { uniform(chosen, view.k, &mut view.rng(1)) } else { chosen }
    }

    fn selection(&self) -> Selection {
        let bias = if self.k == self.devices { Bias::Unbiased } else { Bias::Biased };
        Selection::new(bias, Trains::Scheduled).with_weights()
    }

    fn select(&mut self, _: &View, reports: &Reports) -> Schedule {
        let weight = Weight::Own(1.0 / (self.rate * self.devices as f64));
        let picks = reports.devices.iter().map(|&device| Pick { weight, ..Pick::new(device, 1.0) });
        Schedule { picks: picks.collect() }
    }

    fn sampling(&self) -> Sampling {
        Sampling::Poisson { rate: self.rate }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Bench;
    use super::*;
    use crate::parts::Keys as _;

    #[test]
    fn devices_come_alone_and_in_pairs_as_often_as_independent_coins() {
        let (m, rate, rounds) = (40usize, 0.25, 4000u64);
        let bench = Bench::new(m, m);
        let mut policy = Poisson { rate, devices: m as u64, k: m as u64 };
        let (mut single, mut pair, mut sizes) = (vec![0u32; m], 0u32, 0.0);
        for t in 0..rounds {
            let chosen = bench.at(t, |view| policy.candidates(view));
            chosen.iter().for_each(|device| single[device.index()] += 1);
            pair += u32::from(chosen.contains(&DeviceId(3)) && chosen.contains(&DeviceId(17)));
            sizes += (chosen.len() as f64 - rate * m as f64).powi(2);
        }
        let near = |count: u32, p: f64| {
            let (mean, deviation) = (rounds as f64 * p, (rounds as f64 * p * (1.0 - p)).sqrt());
            assert!((f64::from(count) - mean).abs() < 4.5 * deviation, "{count} of {mean} ± {deviation}");
        };
        single.iter().for_each(|&count| near(count, rate));
        near(pair, rate * rate);
        // The number of devices has the variance M·q·(1−q) of a binomial law; its variance over the rounds
        // within 4.5 deviations of 2σ⁴/rounds.
        let variance = m as f64 * rate * (1.0 - rate);
        assert!((sizes / rounds as f64 - variance).abs() < 4.5 * variance * (2.0 / rounds as f64).sqrt());
    }

    #[test]
    fn the_draw_of_a_device_does_not_depend_on_the_eligible_others() {
        let (all, fewer) = (Bench::new(12, 12), Bench::new(12, 12).excluding(&[2, 7]));
        let mut policy = Poisson { rate: 0.5, devices: 12, k: 12 };
        for t in 0..50 {
            let mut with = all.at(t, |view| policy.candidates(view));
            with.retain(|device| ![2, 7].contains(&device.0));
            assert_eq!(with, fewer.at(t, |view| policy.candidates(view)));
        }
    }

    #[test]
    fn no_more_than_k_are_scheduled_and_shares_make_the_step_unbiased() {
        let bench = Bench::new(9, 2);
        let mut policy = Poisson { rate: 0.9, devices: 9, k: 2 };
        let mut seen = [false; 9];
        for t in 0..100 {
            let chosen = bench.at(t, |view| policy.candidates(view));
            assert!(chosen.len() <= 2 && chosen.is_sorted());
            chosen.iter().for_each(|device| seen[device.index()] = true);
        }
        assert_eq!(seen, [true; 9]);
        // E[Σ weight·Δ] over all 2⁴ sets of four coins, against the mean.
        let (rate, deltas) = (0.3f64, [1.0, -2.0, 5.0, 7.5]);
        let bench = Bench::new(4, 4);
        let mut policy = Poisson { rate, devices: 4, k: 4 };
        let mut expected = 0.0;
        for set in 0..16u32 {
            let devices: Vec<DeviceId> = DeviceId::all(4).filter(|m| set & (1 << m.0) != 0).collect();
            let probability = rate.powi(devices.len() as i32) * (1.0 - rate).powi(4 - devices.len() as i32);
            let schedule = bench.at(0, |view| policy.select(view, &Reports::new(devices, 0, Vec::new())));
            let step: f64 = schedule
                .picks
                .iter()
                .map(|pick| match pick.weight {
                    Weight::Own(weight) => weight * deltas[pick.device.index()],
                    Weight::Rule => panic!("it has weights of its own"),
                })
                .sum();
            expected += probability * step;
        }
        assert!((expected - deltas.iter().sum::<f64>() / 4.0).abs() < 1e-12, "{expected}");
    }

    #[test]
    fn the_default_rate_is_half_of_the_rate_that_fills_the_slots() {
        let scope = Scope { devices: 40, k: 10, ..Scope::default() };
        let mut config = PoissonConfig::default();
        config.derive(&scope);
        assert_eq!(config.rate, 0.125);
        for rate in [0.0, -0.1, 1.5, f64::NAN] {
            let error = PoissonConfig { rate }.check().unwrap_err().to_string();
            assert!(error.contains("> 0 and ≤ 1"), "{error}");
        }
    }
}
