//! Power of choice: the largest losses among some devices drawn at random.

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys, within};
use crate::schedule::sampling::successive;
use crate::schedule::{Ask, Bias, Policy, Reports, Schedule, Selection, Trains, View, largest_indices_by};
use serde::{Deserialize, Serialize};

/// The entry of this policy.
pub const ENTRY: Entry<dyn Policy> = Entry::of::<PowerOfChoiceConfig>();

/// The losses that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Variant {
    /// Those that the d devices report in this round, of their mini-batches.
    #[default]
    CpowD,
    /// Those that the server remembers of the last time a device trained; no device reports before selection.
    RpowD,
}

/// `[schedule.power-of-choice]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct PowerOfChoiceConfig {
    /// devices that are drawn
    #[key(allowed = "schedule.k ..= data.devices", derived = "2K, at most M")]
    pub d: u64,
    /// which losses are compared
    #[key(allowed = "\"cpow-d\" (reported, of a mini-batch) | \"rpow-d\" (remembered, no report)")]
    pub variant: Variant,
}

impl PartConfig for PowerOfChoiceConfig {
    type Part = dyn Policy;
    const NAME: &'static str = "power-of-choice";
    const FAMILY: &'static str = "loss";
    const MEANING: &'static str =
        "the K largest losses among d devices drawn in proportion to their samples, equal bits";

    fn derive(&mut self, scope: &Scope) {
        if self.d == 0 {
            self.d = scope.k.saturating_mul(2).min(scope.devices);
        }
    }

    fn resolve(&mut self, scope: &Scope) -> Result<(), ConfigError> {
        within("d", self.d, scope.k..=scope.devices, " (from schedule.k to data.devices)")
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Policy>, ConfigError> {
        Ok(Box::new(PowerOfChoice { d: self.d as usize, variant: self.variant }))
    }
}

/// d devices are drawn without replacement, in proportion to their samples; the K of them with the largest
/// local loss are scheduled. d = K is `random` (for equal sizes), d = M the largest losses.
///
/// Source: Cho, Wang and Joshi, *Towards Understanding Biased Client Selection in Federated Learning* (2022).
/// The loss of `cpow-d` is the mean over the mini-batches of the local training; `rpow-d` counts a device
/// that never trained as one of infinite loss. Public code sorts the drawn devices and then indexes all
/// devices with the result, or draws without regard to size.
#[derive(Clone, Copy, Debug)]
pub struct PowerOfChoice {
    /// d, K ≤ d ≤ M.
    pub d: usize,
    /// The losses that are compared.
    pub variant: Variant,
}

impl PowerOfChoice {
    /// The d devices that are drawn, ascending.
    fn drawn(&self, view: &View) -> Vec<DeviceId> {
        let devices = view.eligible();
        let sizes: Vec<f64> = devices.iter().map(|&device| view.samples(device) as f64).collect();
        let mut drawn: Vec<DeviceId> =
            successive(&sizes, self.d, &mut view.rng(0)).into_iter().map(|i| devices[i]).collect();
        drawn.sort_unstable();
        drawn
    }
}

impl Persist for PowerOfChoice {}

impl Policy for PowerOfChoice {
    fn candidates(&mut self, view: &View) -> Vec<DeviceId> {
        let drawn = self.drawn(view);
        if self.variant == Variant::CpowD {
            return drawn;
        }
        let loss = |i: usize| view.devices.last_loss(drawn[i]).map_or(f64::INFINITY, f64::from);
        let value = |i: usize| (loss(i), view.links.gain(drawn[i]));
        largest_indices_by(&drawn, view.k, value).into_iter().map(|i| drawn[i]).collect()
    }

    fn asks(&self) -> &[Ask] {
        &[Ask::Loss]
    }

    fn selection(&self) -> Selection {
        let trains = match self.variant {
            Variant::CpowD => Trains::Some,
            Variant::RpowD => Trains::Scheduled,
        };
        Selection::new(Bias::Biased, trains)
    }

    fn select(&mut self, view: &View, reports: &Reports) -> Schedule {
        let value = |row: usize| (f64::from(reports.first(row)), view.links.gain(reports.devices[row]));
        let rows = largest_indices_by(&reports.devices, view.k, value);
        Schedule::equal(rows.into_iter().map(|row| reports.devices[row]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, devices};
    use super::*;

    #[test]
    fn ranks_are_chosen_with_their_closed_form_probabilities() {
        // M = 10, d = 4, K = 2, equal sizes: Σ_(j<K) C(r−1, j)·C(M−r, d−1−j)/C(M, d).
        let truth = [0.4, 0.4, 0.366_667, 0.309_524, 0.238_095, 0.161_905, 0.090_476, 0.033_333, 0.0, 0.0];
        let bench = Bench::new(10, 2).with_equal_sizes();
        let losses: Vec<f32> = (0..10).map(|m| 10.0 - m as f32).collect();
        let rounds = 20_000;
        let mut counts = [0u32; 10];
        for t in 0..rounds {
            let schedule = bench.at(t, |view| {
                let mut policy = PowerOfChoice { d: 4, variant: Variant::CpowD };
                let drawn = policy.candidates(view);
                assert_eq!(drawn.len(), 4);
                let values = drawn.iter().map(|device| losses[device.index()]).collect();
                policy.select(view, &Reports::new(drawn, 1, values))
            });
            devices(&schedule).iter().for_each(|&m| counts[m] += 1);
        }
        for (count, p) in counts.iter().zip(truth) {
            let n = rounds as f64;
            let slack = 4.0 * (n * p * (1.0 - p)).sqrt() + 1e-2;
            assert!((f64::from(*count) - n * p).abs() <= slack, "{counts:?}");
        }
    }

    #[test]
    fn remembered_losses_need_no_report_and_the_unknown_come_first() {
        let mut bench = Bench::new(5, 2);
        for (m, loss) in [(0, 1.0), (1, 5.0), (3, 2.0), (4, 3.0)] {
            bench.note_loss(m, loss);
        }
        let mut policy = PowerOfChoice { d: 5, variant: Variant::RpowD };
        assert_eq!(bench.at(0, |view| policy.candidates(view)), [DeviceId(1), DeviceId(2)]);
    }
}
