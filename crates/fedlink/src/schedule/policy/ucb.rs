//! A bandit: upper confidence bounds on the channel.

use crate::base::state::{Persist, State, StateError};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::{Quantity, RoundRecord};
use crate::schedule::{Bias, Policy, Reports, Schedule, Selection, Trains, View, largest_indices_by};
use serde::{Deserialize, Serialize};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<UcbConfig>();

/// `[schedule.ucb]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct UcbConfig {
    /// β, weight of a queue of promised turns; 0: none
    #[key(default = 0.0, range = "0 ..= 1")]
    pub fairness: f64,
    /// φ, promised share of a device's turns K/M
    #[key(default = 0.5, range = "0 ..= 1")]
    pub guarantee: f64,
    /// bits a symbol at and below which the reward is 0
    #[key(default = 0.5, range = "> 0")]
    pub slowest: f64,
}

impl PartConfig for UcbConfig {
    type Part = dyn Policy;
    const NAME: &'static str = "ucb";
    const FAMILY: &'static str = "channel";
    const MEANING: &'static str =
        "upper confidence bounds on what the channel was when a device sent; no CSI; equal bits";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(Ucb { config: self, arms: Vec::new() }))
    }
}

/// The K largest ȳ_m + √((K+1)·ln t/z_m), every device once first; with β > 0 the K largest (1−β)·ŷ_m +
/// β·D_m, ŷ = min(1, ȳ + √(2·ln t/z)), D_m ← max(0, D_m + φ·K/M − x_m).
///
/// ȳ is the mean reward over z plays, the reward 1 − τ/τ_max with the time of a bit τ = 1/C, τ_max =
/// 1/`slowest`. The policy uses a device's channel only in rounds in which it sent, which helps where mean
/// links differ; with equal links it is a slow round robin. Source: after Xia, Quek, Guo, Wen, Yang and Zhu,
/// *Multi-Armed Bandit-Based Client Scheduling for Federated Learning* (2020), as we read it. Invariant with
/// β = 1: a device's share of turns is at least φ·K/M − D_m(T)/T.
#[derive(Clone, Debug)]
pub struct Ucb {
    config: UcbConfig,
    arms: Vec<Arm>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Arm {
    plays: u64,
    reward: f64,
    queue: f64,
}

impl Ucb {
    fn index(&self, arm: &Arm, t: u64, k: usize) -> f64 {
        let UcbConfig { fairness, .. } = self.config;
        let (plays, ln_t) = (arm.plays as f64, libm::log(t.max(1) as f64));
        let mean = if arm.plays > 0 { arm.reward / plays } else { 0.0 };
        if fairness > 0.0 {
            let bound = if arm.plays > 0 { (mean + libm::sqrt(2.0 * ln_t / plays)).min(1.0) } else { 1.0 };
            return (1.0 - fairness) * bound + fairness * arm.queue;
        }
        if arm.plays == 0 { f64::INFINITY } else { mean + libm::sqrt((k as f64 + 1.0) * ln_t / plays) }
    }
}

impl Persist for Ucb {
    fn save(&self) -> State {
        State::of(&self.arms)
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        let arms: Vec<Arm> = state.read()?;
        if arms.iter().any(|arm| !(arm.reward.is_finite() && arm.queue.is_finite())) {
            return Err(StateError("its rewards are not finite".into()));
        }
        self.arms = arms;
        Ok(())
    }
}

impl Policy for Ucb {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        self.arms.resize(view.links.devices(), Arm::default());
        let devices = view.eligible();
        // The present channel is not used; ties go to the lower device number.
        let value = |i: usize| (self.index(&self.arms[devices[i].index()], view.t, view.k), 0.0);
        view.note_each(Quantity::Score, &devices, |i| value(i).0);
        view.note_each(Quantity::Queue, &devices, |i| self.arms[devices[i].index()].queue);
        largest_indices_by(&devices, view.k, value).into_iter().map(|i| devices[i]).collect()
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::Biased, Trains::Scheduled)
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        let promised = self.config.guarantee * view.k as f64 / view.links.devices().max(1) as f64;
        self.arms.iter_mut().for_each(|arm| arm.queue += promised);
        Schedule::equal(reports.devices.iter().copied())
    }

    fn observe(&mut self, outcome: &RoundRecord) {
        for sent in &outcome.transmissions {
            if let Some(arm) = self.arms.get_mut(sent.device.index()) {
                let time = if sent.capacity > 0.0 { self.config.slowest / sent.capacity } else { 1.0 };
                arm.plays += 1;
                arm.reward += (1.0 - time).max(0.0);
                arm.queue -= 1.0;
            }
        }
        self.arms.iter_mut().for_each(|arm| arm.queue = arm.queue.max(0.0));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{counts, run_policy};
    use super::*;

    fn ucb(fairness: f64) -> Ucb {
        Ucb { config: UcbConfig { fairness, ..UcbConfig::default() }, arms: Vec::new() }
    }

    #[test]
    fn every_device_is_played_once_first_and_then_the_better_one_more_often() {
        // of_devices records a capacity of 1 for all, so that rewards are equal here.
        let schedules = run_policy(&mut ucb(0.0), &vec![vec![1.0; 7]; 70], 2);
        let first = counts(&schedules[..4], 7);
        assert!(first.iter().all(|&n| n >= 1), "{first:?}");
        assert!(counts(&schedules, 7).iter().all(|&n| n >= 10), "{:?}", counts(&schedules, 7));
    }

    #[test]
    fn the_index_is_the_formula() {
        let arm = Arm { plays: 4, reward: 2.0, queue: 0.5 };
        let plain = ucb(0.0).index(&arm, 9, 2);
        assert!((plain - (0.5 + (3.0 * 9f64.ln() / 4.0).sqrt())).abs() < 1e-12);
        let fair = ucb(0.25).index(&arm, 9, 2);
        let bound = (0.5 + (2.0 * 9f64.ln() / 4.0).sqrt()).min(1.0);
        assert!((fair - (0.75 * bound + 0.25 * 0.5)).abs() < 1e-12);
    }

    #[test]
    fn with_queues_alone_no_device_is_behind_its_promised_share() {
        let (m, k, rounds) = (10, 2, 200);
        let mut policy = ucb(1.0);
        let schedules = run_policy(&mut policy, &vec![vec![1.0; m]; rounds], k);
        for (count, arm) in counts(&schedules, m).iter().zip(&policy.arms) {
            let promised = 0.5 * k as f64 / m as f64;
            assert!(f64::from(*count) / rounds as f64 >= promised - arm.queue / rounds as f64 - 1e-12);
        }
    }
}
