//! Results made up for the tests of this crate and of those that show results: formulas, not measurements.

use crate::tables::results::{CurveResult, RunResult, Status};
use fedlink::base::units::{DeviceId, Power};
use fedlink::parts::Parts;
use fedlink::record::{Energy, Outcome, Phases, Row};
use fedlink::spec::Config;

/// Two curves of three seeds and one of a single seed, with labels that trouble careless writers.
pub fn results() -> Vec<CurveResult> {
    vec![curve("bc k=1", 3, 50), curve("50 % & {a_b}\\c, \"x\"", 3, 120), curve("bn2-c", 1, 20)]
}

/// A curve that rises with its evaluations, a little higher for each seed.
pub fn curve(label: &str, seeds: u64, evaluations: u64) -> CurveResult {
    let accuracy = |seed: u64, i: u64| {
        let (t, height) = (i as f64 + 1.0, 0.8 + 0.01 * (label.len() as u64 % 9 + seed) as f64);
        height * t / (t + 2.0) + 0.01 * (t * 0.9 + seed as f64).sin()
    };
    let runs = |seed| (0..evaluations).map(|i| accuracy(seed, i)).collect::<Vec<f64>>();
    let runs: Vec<Vec<f64>> = (0..seeds).map(runs).collect();
    curve_of(label, &runs.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// A curve with these accuracies, evaluated every ten rounds, for each seed.
pub fn curve_of(label: &str, accuracies: &[&[f64]]) -> CurveResult {
    let mut config = Config::default();
    config.schedule.k = label.len().max(1) as u64;
    config.data.devices = config.data.devices.max(config.schedule.k);
    let runs = accuracies.iter().enumerate().map(|(seed, run)| run_of(seed as u64, run)).collect();
    CurveResult {
        label: label.into(),
        keys: Vec::new(),
        spec: config.resolve(&Parts::default()).expect("it is valid"),
        heterogeneity: 0.25,
        runs,
        unfinished: Vec::new(),
        shortened: None,
        goals: Vec::new(),
    }
}

/// Changes the configuration of a curve.
pub fn change(curve: &mut CurveResult, change: impl FnOnce(&mut Config)) {
    let mut config = curve.spec.config().clone();
    change(&mut config);
    curve.spec = config.resolve(&Parts::default()).expect("it is valid");
}

/// The same curve in physical units: a quarter of a second and 3 joules per round, a tenth of it by device 0,
/// 2 outages and a late upload per run.
pub fn with_units(mut curve: CurveResult) -> CurveResult {
    change(&mut curve, |config| config.radio.bandwidth_hz = Some(1e6));
    for run in &mut curve.runs {
        let rounds = run.outcome.rounds as f64;
        for row in &mut run.rows {
            row.total_seconds = Some(0.25 * row.round as f64);
            (row.down_s, row.train_s, row.report_s, row.up_s) =
                (Some(0.05), Some(0.1), Some(0.02), Some(0.08));
            row.total_joules = Some(3.0 * row.round as f64);
            (row.compute_j, row.report_j, row.transmit_j) = (Some(1.5), Some(0.1), Some(0.9));
            (row.receive_j, row.idle_j) = (Some(0.3), Some(0.2));
            row.worst_device_joules = Some(0.3 * row.round as f64);
        }
        let mut phases = Phases::default();
        (phases.down_s, phases.train_s) = (0.05 * rounds, 0.1 * rounds);
        (phases.report_s, phases.up_s) = (0.02 * rounds, 0.08 * rounds);
        let joules = |share: f64| Energy {
            compute_j: 1.5 * rounds * share,
            report_j: 0.1 * rounds * share,
            transmit_j: 0.9 * rounds * share,
            receive_j: 0.3 * rounds * share,
            idle_j: 0.2 * rounds * share,
        };
        run.outcome.phases = Some(phases);
        run.outcome.energy = Some(joules(1.0));
        let devices = run.outcome.scheduled.len();
        let others = 0.9 / (devices as f64 - 1.0);
        run.outcome.device_energy = (0..devices).map(|m| joules(if m == 0 { 0.1 } else { others })).collect();
        (run.outcome.outages, run.outcome.late) = (2, 1);
        // Watts: 7.8 dBm are 6.03 mW.
        run.outcome.average_power = vec![0.005; devices];
        run.outcome.worst_average_power = Power(0.01);
    }
    curve
}

fn run_of(seed: u64, accuracies: &[f64]) -> RunResult {
    let row = |(i, &test_accuracy): (usize, &f64)| {
        let t = (i + 1) as f64;
        let mut row = Row::default();
        row.round = 10 * (i as u64 + 1);
        row.test_accuracy = test_accuracy;
        row.test_loss = 2.3 / t;
        row.train_loss = 2.1 / t + 1e-17;
        row.bits = 1e5 / 3.0;
        row.total_bits = 1e6 / 3.0 * t;
        row.mean_q = 4321.5;
        row.silent_devices = seed;
        row.wire_bits = Some(1e5 / 3.0 + 7.0);
        row.undecodable = 2 * seed;
        row.flagged = 3 * seed;
        row
    };
    let rows: Vec<Row> = accuracies.iter().enumerate().map(row).collect();
    let mut outcome = Outcome::default();
    outcome.rounds = 10 * rows.len() as u64;
    outcome.final_accuracy = accuracies.last().copied();
    outcome.best_accuracy = accuracies.iter().copied().reduce(f64::max);
    outcome.final_loss = rows.last().map(|row| row.test_loss);
    outcome.target = 0.8;
    outcome.rounds_to_target = rows.iter().find(|row| row.test_accuracy >= 0.8).map(|row| row.round);
    outcome.bits_per_round = 1e5 / 3.0;
    outcome.mean_q = 4321.5;
    outcome.silent_transmissions = seed;
    outcome.worst_average_power = Power(1.5);
    outcome.worst_device = DeviceId(3);
    outcome.average_power = vec![0.5; 40];
    outcome.scheduled = vec![1; 40];
    outcome.wire_bits_per_round = Some(1e5 / 3.0 + 7.0);
    outcome.undecodable_transmissions = 2 * seed;
    outcome.flagged_transmissions = 3 * seed;
    outcome.excluded = vec![DeviceId(3)];
    outcome.digest = "0".repeat(64);
    RunResult { seed, rows, outcome, status: Status::Finished, seconds: 0.0 }
}
