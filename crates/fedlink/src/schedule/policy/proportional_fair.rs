//! Proportional fairness.

use crate::base::state::{Persist, State, StateError};
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::record::{Quantity, RoundRecord};
use crate::schedule::{Bias, Policy, Selection, Trains, View, largest_indices_by};
use serde::{Deserialize, Serialize};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<ProportionalFairConfig>();

/// The quantity that is compared with its own average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Measure {
    /// The rate that a device was served with: 0 where it was not scheduled.
    #[default]
    Rate,
    /// The gain of its channel, scheduled or not.
    Snr,
}

/// `[schedule.proportional-fair]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ProportionalFairConfig {
    /// β, factor of the average from round to round
    #[key(default = 0.98, range = "≥ 0 and < 1")]
    pub beta: f64,
    /// the quantity that is compared with its average
    #[key(default = Measure::Rate, allowed = "\"rate\" (as served) | \"snr\" (of the channel)")]
    pub measure: Measure,
}

impl PartConfig for ProportionalFairConfig {
    type Part = dyn Policy;
    const NAME: &'static str = "proportional-fair";
    const FAMILY: &'static str = "fairness";
    const MEANING: &'static str = "the K largest ratios of present rate to average served rate, equal bits";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        let Self { beta, measure } = self;
        Ok(Box::new(ProportionalFair { beta, measure, averages: Vec::new(), now: Vec::new() }))
    }
}

/// The K largest C_m(t)/T_m(t−1) with equal bits; T_m(t) = β·T_m(t−1) + (1−β)·C_m(t)·x_m(t), x_m = 1 if
/// scheduled.
///
/// With `measure = "snr"` it is g_m/ḡ_m, the average being over all rounds: the PF of Yang, Liu, Quek and
/// Poor (2019), as we read it. T_m(0) = C_m(1), so that in the first round all ratios are 1; ties go to the
/// larger gain. Invariants: devices' rates may be scaled each by its own factor without a change; symmetric
/// links are served equally often.
#[derive(Clone, Debug)]
pub struct ProportionalFair {
    beta: f64,
    measure: Measure,
    /// T; empty before the first round.
    averages: Vec<f64>,
    /// The measure in this round.
    now: Vec<f64>,
}

impl Persist for ProportionalFair {
    fn save(&self) -> State {
        State::of(&self.averages)
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        let averages: Vec<f64> = state.read()?;
        if averages.iter().any(|average| !(average.is_finite() && *average >= 0.0)) {
            return Err(StateError("its averages are not finite".into()));
        }
        self.averages = averages;
        Ok(())
    }
}

impl Policy for ProportionalFair {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        self.now = match self.measure {
            Measure::Rate => view.links.capacities.clone(),
            Measure::Snr => view.links.gains.clone(),
        };
        if self.averages.len() != self.now.len() {
            self.averages.clone_from(&self.now);
        }
        let devices = view.eligible();
        let ratio = |i: usize| {
            let m = devices[i].index();
            match (self.now[m], self.averages[m]) {
                (now, average) if average > 0.0 => (now / average).min(f64::MAX),
                (now, _) if now > 0.0 => f64::MAX,
                _ => 0.0,
            }
        };
        let value = |i: usize| (ratio(i), view.links.gain(devices[i]));
        view.note_each(Quantity::Score, &devices, |i| value(i).0);
        largest_indices_by(&devices, view.k, value).into_iter().map(|i| devices[i]).collect()
    }

    fn selection(&self) -> Selection {
        Selection::new(Bias::OverRounds, Trains::Scheduled).by_channel(true)
    }

    fn observe(&mut self, outcome: &RoundRecord) {
        let mut served = vec![self.measure == Measure::Snr; self.averages.len()];
        outcome.transmissions.iter().for_each(|sent| served[sent.device.index()] = true);
        for (m, average) in self.averages.iter_mut().enumerate() {
            let now = if served[m] { self.now.get(m).copied().unwrap_or(0.0) } else { 0.0 };
            *average = (self.beta * *average + (1.0 - self.beta) * now).min(f64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{counts, run_policy, run_with_rates};
    use super::*;
    use crate::base::rng::{Purpose, stream};

    fn policy(measure: Measure) -> ProportionalFair {
        ProportionalFair { beta: 0.98, measure, averages: Vec::new(), now: Vec::new() }
    }

    /// Gains of each round: exponential ones times each device's mean.
    fn gains(rounds: u64, means: &[f64]) -> Vec<Vec<f64>> {
        let of = |t| {
            means
                .iter()
                .enumerate()
                .map(move |(m, mean)| mean * stream(1, Purpose::Test, t, m as u64).exponential())
        };
        (0..rounds).map(|t| of(t).collect()).collect()
    }

    #[test]
    fn rates_may_be_scaled_each_by_its_own_factor_without_a_change() {
        let gains = gains(300, &[1.0, 0.3, 2.0, 1.0, 5.0, 1.0]);
        let own = run_policy(&mut policy(Measure::Rate), &gains, 2);
        // Powers of two, so that it is exact.
        let rates = [4.0, 1.0, 0.25, 1024.0, 2.0, 0.5];
        assert_eq!(run_with_rates(&mut policy(Measure::Rate), &gains, &rates, 2), own);
    }

    #[test]
    fn symmetric_links_are_served_equally_often() {
        let rounds = 4000;
        let counts = counts(&run_policy(&mut policy(Measure::Rate), &gains(rounds, &[1.0; 10]), 2), 10);
        let (mean, deviation) = (rounds as f64 * 0.2, (rounds as f64 * 0.2 * 0.8).sqrt());
        assert!(counts.iter().all(|&n| (f64::from(n) - mean).abs() < 4.0 * deviation), "{counts:?}");
    }

    #[test]
    fn twenty_decibels_of_path_loss_starve_no_device() {
        let mut means = [1.0; 10];
        means[5..].fill(0.01);
        for measure in [Measure::Rate, Measure::Snr] {
            let counts = counts(&run_policy(&mut policy(measure), &gains(4000, &means), 2), 10);
            // Each within a tenth of K/M in the sum over a half; BC would never schedule the weak half.
            let weak: u32 = counts[5..].iter().sum();
            assert!((f64::from(weak) / 8000.0 - 0.5).abs() < 0.1, "{measure:?}: {counts:?}");
        }
    }

    #[test]
    fn the_snr_measure_does_not_depend_on_the_mean_gain_of_a_device() {
        let near = run_policy(&mut policy(Measure::Snr), &gains(500, &[1.0; 6]), 2);
        let scaled = run_policy(&mut policy(Measure::Snr), &gains(500, &[1.0, 4.0, 0.25, 16.0, 1.0, 0.5]), 2);
        // In the first round all ratios are 1, and the larger gain decides.
        assert_eq!(near[1..], scaled[1..]);
    }
}
