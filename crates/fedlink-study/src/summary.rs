//! `summary.json`: every curve in numbers.

use crate::error::Error;
use crate::experiment::Shortened;
use crate::results::{CurveResult, RunResult, Status};
use crate::statistics::Estimate;
use fedlink::record::{Outcome, Row};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The ends of a 95 % interval; none for one seed.
type Ends = Option<[f64; 2]>;

/// A curve in `summary.json`: means over its seeds, and every run.
#[derive(Serialize)]
struct CurveSummary<'a> {
    curve: &'a str,
    policy: &'a str,
    k: u64,
    swept: BTreeMap<&'a str, Value>,
    status: &'static str,
    rounds: u64,
    /// Seeds that the means are over.
    seeds: usize,
    /// Seeds that have no end yet.
    unfinished_seeds: Vec<u64>,
    /// How the curve was shortened, if it was.
    shortened: Option<Shortened>,
    target: f64,
    final_accuracy: Option<f64>,
    final_accuracy_interval: Ends,
    best_accuracy: Option<f64>,
    best_accuracy_interval: Ends,
    final_loss: Option<f64>,
    rounds_to_target: Option<f64>,
    rounds_to_target_interval: Ends,
    bits_to_target: Option<f64>,
    bits_to_target_interval: Ends,
    /// Seconds and joules, where the radio has units.
    #[serde(flatten)]
    costs: Option<CostSummary>,
    area_under_curve: Option<f64>,
    area_under_curve_interval: Ends,
    instability: Option<f64>,
    instability_interval: Ends,
    bits_per_round: f64,
    mean_q: f64,
    silent_transmissions: f64,
    wire_bits_per_round: Option<f64>,
    undecodable_transmissions: f64,
    flagged_transmissions: f64,
    /// Uploads that did not arrive, where the radio has units or there are any.
    #[serde(flatten)]
    lost: Option<LostSummary>,
    excluded_devices: f64,
    /// The largest ε of the seeds, where there is a guarantee.
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon: Option<f64>,
    budget_used: Option<f64>,
    at_highest_level: Option<f64>,
    worst_average_power: f64,
    worst_average_power_interval: Ends,
    evenness: f64,
    evenness_interval: Ends,
    heterogeneity: f64,
    digest: String,
    runs: Vec<RunSummary<'a>>,
}

/// What a curve costs: means over its seeds, with their intervals.
#[derive(Serialize)]
struct CostSummary {
    seconds_to_target: Option<f64>,
    seconds_to_target_interval: Ends,
    joules_to_target: Option<f64>,
    joules_to_target_interval: Ends,
    total_seconds: Option<f64>,
    total_seconds_interval: Ends,
    total_joules: Option<f64>,
    total_joules_interval: Ends,
    worst_device_joules: Option<f64>,
    worst_device_joules_interval: Ends,
}

impl CostSummary {
    fn new(curve: &CurveResult) -> Self {
        let target = curve.config.run.target;
        let at_target = |value: fn(&Row) -> Option<f64>| {
            split(curve.over_seeds(|run| run.at_target(target).and_then(value)))
        };
        let in_all = |value: fn(&Outcome) -> Option<f64>| split(curve.over_seeds(|run| value(&run.outcome)));
        let (seconds_to_target, seconds_to_target_interval) = at_target(|row| row.total_seconds);
        let (joules_to_target, joules_to_target_interval) = at_target(|row| row.total_joules);
        let (total_seconds, total_seconds_interval) = in_all(Outcome::seconds);
        let (total_joules, total_joules_interval) = in_all(Outcome::joules);
        let (worst_device_joules, worst_device_joules_interval) = in_all(Outcome::worst_device_joules);
        Self {
            seconds_to_target,
            seconds_to_target_interval,
            joules_to_target,
            joules_to_target_interval,
            total_seconds,
            total_seconds_interval,
            total_joules,
            total_joules_interval,
            worst_device_joules,
            worst_device_joules_interval,
        }
    }
}

#[derive(Serialize)]
struct LostSummary {
    outages: f64,
    late: f64,
}

impl LostSummary {
    fn new(curve: &CurveResult) -> Option<Self> {
        let outages = curve.mean_of(|outcome| outcome.outages as f64);
        let late = curve.mean_of(|outcome| outcome.late as f64);
        (curve.has_costs() || outages > 0.0 || late > 0.0).then_some(Self { outages, late })
    }
}

/// A mean and the ends of its interval.
fn split(estimate: Option<Estimate>) -> (Option<f64>, Ends) {
    let known = estimate.filter(|estimate| estimate.half_width.is_finite());
    let ends = known.map(|Estimate { mean, half_width }| [mean - half_width, mean + half_width]);
    (estimate.map(|estimate| estimate.mean), ends)
}

#[derive(Serialize)]
struct RunSummary<'a> {
    seed: u64,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

/// `summary.json`.
pub fn json(results: &[CurveResult]) -> Result<String, Error> {
    let summaries: Vec<CurveSummary> = results.iter().map(CurveSummary::new).collect();
    Ok(serde_json::to_string_pretty(&summaries)? + "\n")
}

impl<'a> CurveSummary<'a> {
    fn new(curve: &'a CurveResult) -> Self {
        let (final_accuracy, final_accuracy_interval) =
            split(curve.at_the_end(|run| run.outcome.final_accuracy));
        let (best_accuracy, best_accuracy_interval) =
            split(curve.at_the_end(|run| run.outcome.best_accuracy));
        let target = curve.config.run.target;
        let at_target =
            |value: fn(&Row) -> f64| split(curve.over_seeds(|run| run.at_target(target).map(value)));
        let (rounds_to_target, rounds_to_target_interval) = at_target(|row| row.round as f64);
        let (bits_to_target, bits_to_target_interval) = at_target(|row| row.total_bits);
        let (area_under_curve, area_under_curve_interval) = split(curve.at_the_end(RunResult::area));
        let (instability, instability_interval) = split(curve.at_the_end(RunResult::instability));
        let of_devices = curve.device_use();
        let (_, worst_average_power_interval) = split(Some(of_devices.highest_power));
        let (_, evenness_interval) = split(Some(of_devices.evenness));
        Self {
            curve: &curve.label,
            policy: &curve.config.schedule.policy,
            k: curve.config.schedule.k,
            swept: curve.keys.iter().map(|(key, value)| (key.as_str(), typed(value))).collect(),
            status: curve.status().name(),
            rounds: curve.runs.iter().map(|run| run.outcome.rounds).min().unwrap_or(0),
            seeds: curve.runs.len(),
            unfinished_seeds: curve.unfinished.iter().map(|run| run.seed).collect(),
            shortened: curve.shortened,
            target,
            final_accuracy,
            final_accuracy_interval,
            best_accuracy,
            best_accuracy_interval,
            final_loss: curve.at_the_end(|run| run.outcome.final_loss).map(|loss| loss.mean),
            rounds_to_target,
            rounds_to_target_interval,
            bits_to_target,
            bits_to_target_interval,
            costs: curve.has_costs().then(|| CostSummary::new(curve)),
            area_under_curve,
            area_under_curve_interval,
            instability,
            instability_interval,
            bits_per_round: curve.mean_of(|outcome| outcome.bits_per_round),
            mean_q: curve.mean_of(|outcome| outcome.mean_q),
            silent_transmissions: curve.mean_of(|outcome| outcome.silent_transmissions as f64),
            wire_bits_per_round: curve.mean(|outcome| outcome.wire_bits_per_round),
            undecodable_transmissions: curve.mean_of(|outcome| outcome.undecodable_transmissions as f64),
            flagged_transmissions: curve.mean_of(|outcome| outcome.flagged_transmissions as f64),
            lost: LostSummary::new(curve),
            excluded_devices: curve.mean_of(|outcome| outcome.excluded.len() as f64),
            epsilon: curve.epsilon(),
            budget_used: curve.mean(|outcome| outcome.budget_used),
            at_highest_level: curve.mean(|outcome| outcome.at_highest_level),
            worst_average_power: of_devices.highest_power.mean,
            worst_average_power_interval,
            evenness: of_devices.evenness.mean,
            evenness_interval,
            heterogeneity: curve.heterogeneity,
            digest: curve.digest(),
            runs: curve.runs.iter().map(RunSummary::new).collect(),
        }
    }
}

impl<'a> RunSummary<'a> {
    fn new(run: &'a RunResult) -> Self {
        let message = match &run.status {
            Status::Diverged(message) => Some(message.as_str()),
            _ => None,
        };
        Self { seed: run.seed, status: run.status.name(), message, outcome: &run.outcome }
    }
}

/// A swept value as JSON has it: a number, a list, a truth value, and text for anything else.
fn typed(written: &str) -> Value {
    serde_json::from_str(written).unwrap_or_else(|_| Value::from(written))
}
