//! Weights by the interval between a device's updates.

use super::{Aggregator, Contribution, Delta, equal_shares, weighted_sum};
use crate::base::state::{MAX_COUNT, Persist, State, StateError};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use serde::{Deserialize, Serialize};

/// The entry of this rule.
pub const ENTRY: Entry<dyn Aggregator> = Entry::of::<ByIntervalConfig>();

/// `[learn.by-interval]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ByIntervalConfig {
    /// rounds after which a gap ends even if the device took no part
    #[key(default = 50, range = "1 ..= 1e9")]
    pub cutoff: u64,
}

impl PartConfig for ByIntervalConfig {
    type Part = dyn Aggregator;
    const NAME: &'static str = "by-interval";
    const MEANING: &'static str =
        "each update counts ω/M, ω the mean gap in rounds between the updates of its device (FedAU)";

    fn build(self, scope: &Scope, (): &()) -> Result<Box<dyn Aggregator>, ConfigError> {
        Ok(Box::new(ByInterval { cutoff: self.cutoff, gaps: vec![Gaps::default(); scope.devices as usize] }))
    }
}

/// Δ̄ = Σ (ω_m/M)·Δ̂_m: ω_m is the mean of the gaps between the updates of device m in the rounds before, 1
/// as long as there is none. A gap ends when the device's update arrives, or after `cutoff` rounds.
///
/// It corrects any policy after the fact: a device that takes part in a share q of the rounds has ω ≈ 1/q, so
/// that ω/M·q is 1/M for all. Weights do not add up to 1 in a round. Policies that give weights of their own
/// (`optimal`, `importance`, `lyapunov` …) keep them. Source: Wang and Ji, *A Lightweight Method for Tackling
/// Unknown Participation Statistics in Federated Averaging* (2024), after its abstract and as we read it; the
/// cut-off is ours to choose. Invariants: 1 ≤ ω ≤ cutoff. State: three numbers per device.
#[derive(Clone, Debug)]
pub struct ByInterval {
    cutoff: u64,
    gaps: Vec<Gaps>,
}

/// The gaps of one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Gaps {
    /// Rounds of all gaps that have ended.
    sum: u64,
    /// The number of those intervals.
    count: u64,
    /// Rounds since the last one ended.
    running: u64,
}

impl Gaps {
    /// ω.
    fn mean(self) -> f64 {
        if self.count == 0 { 1.0 } else { self.sum as f64 / self.count as f64 }
    }
}

impl Persist for ByInterval {
    fn save(&self) -> State {
        State::of(&self.gaps)
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        let gaps: Vec<Gaps> = state.read()?;
        if gaps.len() != self.gaps.len() {
            return Err(StateError(format!(
                "it has gaps of {} devices, not of {}",
                gaps.len(),
                self.gaps.len()
            )));
        }
        if gaps.iter().any(|gap| gap.sum > MAX_COUNT || gap.count > gap.sum || gap.running >= self.cutoff) {
            return Err(StateError("its gaps cannot be".into()));
        }
        self.gaps = gaps;
        Ok(())
    }
}

impl Aggregator for ByInterval {
    fn weights(&self, devices: usize, _: &dyn Fn(usize) -> usize) -> Vec<f32> {
        equal_shares(devices)
    }

    fn weights_of(&self, devices: &[DeviceId], _: &dyn Fn(usize) -> usize) -> Vec<f32> {
        let everybody = self.gaps.len() as f64;
        devices.iter().map(|device| (self.gaps[device.index()].mean() / everybody) as f32).collect()
    }

    fn aggregate<'a>(&mut self, contributions: &[Contribution<'a>], _: usize) -> Delta<'a> {
        weighted_sum(contributions)
    }

    fn observe(&mut self, arrived: &[DeviceId]) {
        let mut took_part = vec![false; self.gaps.len()];
        arrived.iter().for_each(|device| took_part[device.index()] = true);
        for (gap, took_part) in self.gaps.iter_mut().zip(took_part) {
            gap.running += 1;
            if took_part || gap.running == self.cutoff {
                gap.sum += gap.running;
                gap.count += 1;
                gap.running = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};
    use proptest::prelude::*;

    fn rule(devices: usize, cutoff: u64) -> ByInterval {
        ByInterval { cutoff, gaps: vec![Gaps::default(); devices] }
    }

    /// ω of device 0 after it took part as given.
    fn omega(took_part: &[bool], cutoff: u64) -> f64 {
        let mut rule = rule(1, cutoff);
        for &part in took_part {
            rule.observe(if part { &[DeviceId(0)] } else { &[] });
        }
        rule.gaps[0].mean()
    }

    #[test]
    fn a_device_that_takes_part_every_p_rounds_has_exactly_p() {
        for p in 1..20u64 {
            let mut rule = rule(3, 50);
            for t in 1..=p * 7 {
                rule.observe(if t % p == 0 { &[DeviceId(1)] } else { &[] });
                if t >= p {
                    assert_eq!(rule.gaps[1].mean(), p as f64);
                }
            }
            let weights = rule.weights_of(&[DeviceId(1)], &|_| 1);
            assert_eq!(weights, [(p as f64 / 3.0) as f32]);
        }
    }

    #[test]
    fn a_device_that_never_takes_part_has_the_cutoff_and_one_at_the_start_counts_once() {
        assert_eq!(omega(&[], 50), 1.0);
        assert_eq!(omega(&[false; 49], 50), 1.0);
        assert_eq!(omega(&[false; 50], 50), 50.0);
        assert_eq!(omega(&[false; 500], 50), 50.0);
    }

    proptest! {
        /// Against a loop over the definition: the lengths of the pieces into which rounds of taking part,
        /// and the cut-off, divide the history.
        #[test]
        fn the_mean_gap_is_that_of_the_definition(
            history in prop::collection::vec(any::<bool>(), 0..200),
            cutoff in 1u64..12,
        ) {
            let (mut pieces, mut length) = (Vec::new(), 0u64);
            for &part in &history {
                length += 1;
                if part || length == cutoff {
                    pieces.push(length as f64);
                    length = 0;
                }
            }
            let mean = pieces.iter().sum::<f64>() / pieces.len() as f64;
            let expected = if pieces.is_empty() { 1.0 } else { mean };
            prop_assert!((omega(&history, cutoff) - expected).abs() < 1e-12);
            prop_assert!((1.0..=cutoff as f64).contains(&omega(&history, cutoff)));
        }
    }

    #[test]
    fn a_device_that_takes_part_by_chance_has_one_over_its_rate_and_counts_one_in_m() {
        // Geometric gaps: mean 1/q, variance (1 − q)/q². With N rounds there are about N·q gaps.
        let rounds = 40_000u64;
        for (i, q) in [0.05, 0.2, 0.5, 0.9].into_iter().enumerate() {
            let mut rng = stream(4, Purpose::Test, i as u64, 0);
            let mut rule = rule(8, 1_000_000_000);
            let mut counted = 0.0;
            for _ in 0..rounds {
                let part = rng.uniform() < q;
                if part {
                    counted += f64::from(rule.weights_of(&[DeviceId(0)], &|_| 1)[0]);
                }
                rule.observe(if part { &[DeviceId(0)] } else { &[] });
            }
            let deviation = ((1.0 - q) / (q * q)).sqrt() / (rounds as f64 * q).sqrt();
            assert!((rule.gaps[0].mean() - 1.0 / q).abs() < 4.0 * deviation, "q = {q}");
            // Weight times rate of taking part: 1/M for every rate. The first rounds, with few gaps, weigh
            // little.
            assert!(
                (counted / rounds as f64 * 8.0 - 1.0).abs() < 0.05,
                "q = {q}: {}",
                counted / rounds as f64
            );
        }
    }

    #[test]
    fn a_saved_state_continues_and_one_of_another_run_is_refused() {
        let mut whole = rule(2, 5);
        (0..3).for_each(|_| whole.observe(&[DeviceId(1)]));
        let mut resumed = rule(2, 5);
        resumed.load(whole.save()).unwrap();
        assert_eq!(resumed.gaps, whole.gaps);
        assert!(rule(3, 5).load(whole.save()).is_err());
        let wrong = State::of(&vec![Gaps { sum: 0, count: 0, running: 9 }; 2]);
        assert!(rule(2, 5).load(wrong).is_err());
    }
}
