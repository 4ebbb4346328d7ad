//! Seconds and joules of a curve, as means over its seeds.

use crate::tables::results::{CurveResult, RunResult};
use fedlink::record::{Energy, Phases};

/// The names of the phases of a round, in their order.
pub const PHASES: [&str; 4] = ["downlink", "training before selection", "reports", "uplink"];

/// The kinds of energy of a device, in their order.
pub const KINDS: [&str; 5] = ["training", "sending reports", "sending updates", "receiving", "waiting"];

/// The seconds of the phases, in the order of [`PHASES`].
pub fn by_phase(phases: &Phases) -> [f64; 4] {
    [phases.down_s, phases.train_s, phases.report_s, phases.up_s]
}

/// The joules of the kinds, in the order of [`KINDS`].
pub fn by_kind(energy: &Energy) -> [f64; 5] {
    [energy.compute_j, energy.report_j, energy.transmit_j, energy.receive_j, energy.idle_j]
}

impl CurveResult {
    /// Seconds per round by phase, mean over the rounds and seeds; none if a seed has no units.
    pub fn phases_per_round(&self) -> Option<[f64; 4]> {
        self.per_round(|run| run.outcome.phases.as_ref().map(by_phase))
    }

    /// Joules of all devices per round by kind, mean over the rounds and seeds; none if a seed has no units.
    pub fn energy_per_round(&self) -> Option<[f64; 5]> {
        self.per_round(|run| run.outcome.energy.as_ref().map(by_kind))
    }

    fn per_round<const N: usize>(&self, parts: impl Fn(&RunResult) -> Option<[f64; N]>) -> Option<[f64; N]> {
        let mut mean = [0.0; N];
        for run in &self.runs {
            let share = 1.0 / (self.runs.len() as f64 * run.outcome.rounds.max(1) as f64);
            mean.iter_mut().zip(parts(run)?).for_each(|(sum, part)| *sum += part * share);
        }
        (!self.runs.is_empty()).then_some(mean)
    }

    /// Joules of each device in all rounds by kind; empty without units. With several seeds the devices of
    /// each seed are sorted by descending total, and the means are by rank.
    pub fn device_energy(&self) -> Vec<[f64; 5]> {
        let of_run = |run: &RunResult| -> Vec<Energy> {
            let mut devices = run.outcome.device_energy.clone();
            if self.runs.len() > 1 {
                devices.sort_by(|a, b| b.total().total_cmp(&a.total()));
            }
            devices
        };
        let runs: Vec<Vec<Energy>> = self.runs.iter().map(of_run).collect();
        let devices = runs.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |rank: usize| {
            let mut mean = [0.0; 5];
            for run in &runs {
                mean.iter_mut().zip(by_kind(&run[rank])).for_each(|(sum, j)| *sum += j / runs.len() as f64);
            }
            mean
        };
        (0..devices).map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{curve_of, with_units};

    #[test]
    fn phases_and_kinds_are_means_over_rounds_and_seeds() {
        let mut curve = with_units(curve_of("bc", &[&[0.5], &[0.6]]));
        assert_eq!(curve_of("bc", &[&[0.5]]).phases_per_round(), None);
        let close = |ours: &[f64], expected: &[f64]| {
            ours.len() == expected.len() && ours.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12)
        };
        assert!(close(&curve.phases_per_round().unwrap(), &[0.05, 0.1, 0.02, 0.08]));
        assert!(close(&curve.energy_per_round().unwrap(), &[1.5, 0.1, 0.9, 0.3, 0.2]));
        // The second seed trains three times as long: the mean is twice as long.
        curve.runs[1].outcome.phases.as_mut().unwrap().train_s *= 3.0;
        assert!(close(&curve.phases_per_round().unwrap(), &[0.05, 0.2, 0.02, 0.08]));
    }

    #[test]
    fn devices_of_several_seeds_are_averaged_by_rank() {
        let mut curve = with_units(curve_of("bc", &[&[0.5], &[0.6]]));
        let energy = |compute_j: f64| Energy { compute_j, ..Energy::default() };
        curve.runs[0].outcome.device_energy = vec![energy(1.0), energy(4.0)];
        curve.runs[1].outcome.device_energy = vec![energy(6.0), energy(3.0)];
        assert_eq!(curve.device_energy(), [[5.0, 0.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0, 0.0]]);
        curve.runs.pop();
        assert_eq!(curve.device_energy()[0][0], 1.0);
        assert!(curve_of("bc", &[&[0.5]]).device_energy().is_empty());
    }
}
