//! The numbers of runs, and their tables: `results.csv`, `summary.json`, and one for people.

use crate::claims::{CurveKeys, TARGET};
use crate::error::Error;
use crate::experiment::Curve;
use crate::statistics::{Estimate, estimate, instability, mean_height};
use crate::table::table as plain_table;
use fedlink::config::{Config, ScheduleConfig};
use fedlink::record::{Outcome, ROW_COLUMNS, Row};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// All rounds done.
    Finished,
    /// Ended early by Ctrl-C.
    Interrupted,
    /// Ended early because its numbers were no longer finite; the message names the round and the device.
    Diverged(String),
}

/// One seed of a curve.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// `run.seed` of this run.
    pub seed: u64,
    /// A row for each evaluated round.
    pub rows: Vec<Row>,
    /// The run in numbers.
    pub outcome: Outcome,
    /// How it ended.
    pub status: Status,
    /// Wall-clock time in seconds, other runs beside it included.
    pub seconds: f64,
}

impl RunResult {
    /// The mean height of the accuracy curve.
    pub fn area(&self) -> Option<f64> {
        let points: Vec<(f64, f64)> =
            self.rows.iter().map(|row| (row.round as f64, row.test_accuracy)).collect();
        mean_height(&points)
    }

    /// How restless the accuracy ends.
    pub fn instability(&self) -> Option<f64> {
        let accuracies: Vec<f64> = self.rows.iter().map(|row| row.test_accuracy).collect();
        instability(&accuracies)
    }

    /// The first evaluated round that meets the target.
    pub fn at_target(&self) -> Option<&Row> {
        self.rows.iter().find(|row| row.test_accuracy >= TARGET)
    }
}

/// A curve with its runs, one for each seed.
#[derive(Clone, Debug)]
pub struct CurveResult {
    /// What distinguishes it from the other curves.
    pub label: String,
    /// Its value of every swept key.
    pub keys: CurveKeys,
    /// Its configuration, at the first seed.
    pub config: Config,
    /// Mean distance of the devices' class mixes from the overall one, at the first seed.
    pub heterogeneity: f64,
    /// One for each seed.
    pub runs: Vec<RunResult>,
}

/// The runs under the curves they belong to; a curve none of whose runs was begun is left out.
pub fn gather(curves: &[Curve], heterogeneity: &[f64], runs: Vec<(usize, RunResult)>) -> Vec<CurveResult> {
    let mut results: Vec<CurveResult> = curves
        .iter()
        .zip(heterogeneity)
        .map(|(curve, &heterogeneity)| CurveResult {
            label: curve.label.clone(),
            keys: curve.keys.clone(),
            heterogeneity,
            config: curve.config.clone(),
            runs: Vec::new(),
        })
        .collect();
    for (curve, run) in runs {
        results[curve].runs.push(run);
    }
    results.retain(|curve| !curve.runs.is_empty());
    results
}

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
    final_accuracy: Option<f64>,
    final_accuracy_interval: Ends,
    best_accuracy: Option<f64>,
    best_accuracy_interval: Ends,
    final_loss: Option<f64>,
    rounds_to_80: Option<f64>,
    rounds_to_80_interval: Ends,
    bits_to_80: Option<f64>,
    bits_to_80_interval: Ends,
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
    excluded_devices: f64,
    worst_average_power: f64,
    heterogeneity: f64,
    digest: String,
    runs: Vec<RunSummary<'a>>,
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

impl Status {
    /// Whether the run will do no more rounds.
    pub fn has_ended(&self) -> bool {
        *self != Self::Interrupted
    }

    /// As it stands in `summary.json`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Diverged(_) => "diverged",
        }
    }
}

impl CurveResult {
    /// Mean and interval over the seeds; none if a seed has no value.
    pub fn over_seeds(&self, value: impl Fn(&RunResult) -> Option<f64>) -> Option<Estimate> {
        let values: Option<Vec<f64>> = self.runs.iter().map(value).collect();
        values.map(estimate)
    }

    /// The mean over the seeds; none if a seed has no value.
    fn mean(&self, value: impl Fn(&Outcome) -> Option<f64>) -> Option<f64> {
        let values: Option<Vec<f64>> = self.runs.iter().map(|run| value(&run.outcome)).collect();
        values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn mean_of(&self, value: impl Fn(&Outcome) -> f64) -> f64 {
        self.mean(|outcome| Some(value(outcome))).unwrap_or(f64::NAN)
    }

    /// An estimate over the seeds for every evaluated round that all of them have reached.
    pub fn by_row(&self, value: impl Fn(&Row) -> f64) -> Vec<Estimate> {
        let reached = self.runs.iter().map(|run| run.rows.len()).min().unwrap_or(0);
        (0..reached).map(|i| estimate(self.runs.iter().map(|run| value(&run.rows[i])))).collect()
    }

    /// The share of rounds in which each device was scheduled, mean over the seeds.
    pub fn scheduled_shares(&self) -> Vec<f64> {
        let share = |m: usize| {
            let often =
                |run: &RunResult| f64::from(run.outcome.scheduled[m]) / run.outcome.rounds.max(1) as f64;
            self.runs.iter().map(often).sum::<f64>() / self.runs.len() as f64
        };
        (0..self.config.data.devices as usize).map(share).collect()
    }

    /// The average power of each device, mean over the seeds.
    pub fn average_powers(&self) -> Vec<f64> {
        let mean = |m: usize| {
            let of = |run: &RunResult| run.outcome.average_power.get(m).copied().unwrap_or(0.0);
            self.runs.iter().map(of).sum::<f64>() / self.runs.len() as f64
        };
        (0..self.config.data.devices as usize).map(mean).collect()
    }

    fn worst_power(&self) -> f64 {
        self.runs.iter().map(|run| run.outcome.worst_average_power.0).fold(0.0, f64::max)
    }

    /// The status of the run that ended worst.
    pub fn status(&self) -> &Status {
        let badness = |status: &Status| match status {
            Status::Finished => 0,
            Status::Interrupted => 1,
            Status::Diverged(_) => 2,
        };
        let statuses = self.runs.iter().map(|run| &run.status);
        statuses.max_by_key(|status| badness(status)).expect("a curve has runs")
    }

    /// The run's digest, or the digests of all seeds one after the other.
    fn digest(&self) -> String {
        let digests: Vec<&str> = self.runs.iter().map(|run| run.outcome.digest.as_str()).collect();
        digests.join("+")
    }
}

/// `summary.json`.
pub fn json(results: &[CurveResult]) -> Result<String, Error> {
    let summaries: Vec<CurveSummary> = results.iter().map(CurveSummary::new).collect();
    Ok(serde_json::to_string_pretty(&summaries)? + "\n")
}

impl<'a> CurveSummary<'a> {
    fn new(curve: &'a CurveResult) -> Self {
        let split = |estimate: Option<Estimate>| {
            let known = estimate.filter(|estimate| estimate.half_width.is_finite());
            let ends = known.map(|Estimate { mean, half_width }| [mean - half_width, mean + half_width]);
            (estimate.map(|estimate| estimate.mean), ends)
        };
        let (final_accuracy, final_accuracy_interval) =
            split(curve.over_seeds(|run| run.outcome.final_accuracy));
        let (best_accuracy, best_accuracy_interval) =
            split(curve.over_seeds(|run| run.outcome.best_accuracy));
        let at_target = |value: fn(&Row) -> f64| split(curve.over_seeds(|run| run.at_target().map(value)));
        let (rounds_to_80, rounds_to_80_interval) = at_target(|row| row.round as f64);
        let (bits_to_80, bits_to_80_interval) = at_target(|row| row.total_bits);
        let (area_under_curve, area_under_curve_interval) = split(curve.over_seeds(RunResult::area));
        let (instability, instability_interval) = split(curve.over_seeds(RunResult::instability));
        Self {
            curve: &curve.label,
            policy: &curve.config.schedule.policy,
            k: curve.config.schedule.k,
            swept: curve.keys.iter().map(|(key, value)| (key.as_str(), typed(value))).collect(),
            status: curve.status().name(),
            rounds: curve.runs.iter().map(|run| run.outcome.rounds).min().unwrap_or(0),
            final_accuracy,
            final_accuracy_interval,
            best_accuracy,
            best_accuracy_interval,
            final_loss: curve.mean(|outcome| outcome.final_loss),
            rounds_to_80,
            rounds_to_80_interval,
            bits_to_80,
            bits_to_80_interval,
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
            excluded_devices: curve.mean_of(|outcome| outcome.excluded.len() as f64),
            worst_average_power: curve.worst_power(),
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

/// The swept keys that have a column of their own in `results.csv`: all but policy and K,
/// which are always there.
pub fn swept_columns(results: &[CurveResult]) -> Vec<&str> {
    let keys = results.first().into_iter().flat_map(|curve| &curve.keys).map(|(key, _)| key.as_str());
    keys.filter(|key| !["schedule.policy", "schedule.k"].contains(key)).collect()
}

impl CurveResult {
    /// The curve's value of a swept key, as it is written.
    pub fn swept(&self, key: &str) -> &str {
        self.keys.iter().find(|(own, _)| own == key).map_or("", |(_, value)| value)
    }
}

/// `results.csv`: a row for each evaluated round of each run.
pub fn csv(results: &[CurveResult]) -> Result<Vec<u8>, Error> {
    let swept = swept_columns(results);
    let metrics = metric_columns(results);
    let names = ROW_COLUMNS.iter().map(|column| column.name);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let before = ["curve", "policy", "k"].into_iter().chain(swept.iter().copied()).chain(["seed"]);
    writer.write_record(before.chain(names).chain(metrics.iter().map(String::as_str)))?;
    for curve in results {
        let ScheduleConfig { policy, k, .. } = &curve.config.schedule;
        let k = k.to_string();
        for run in &curve.runs {
            let seed = run.seed.to_string();
            for row in &run.rows {
                let swept = swept.iter().map(|key| curve.swept(key));
                let before =
                    [curve.label.as_str(), policy, &k].into_iter().chain(swept).chain([seed.as_str()]);
                let values = ROW_COLUMNS.iter().map(|column| (column.value)(row).text());
                let metric = |name: &String| {
                    let found = row.metrics.iter().find(|(known, _)| known == name);
                    found.map_or_else(String::new, |(_, value)| value.to_string())
                };
                let values = before.map(str::to_owned).chain(values).chain(metrics.iter().map(metric));
                writer.write_record(values)?;
            }
        }
    }
    writer.into_inner().map_err(|error| Error::Table(error.to_string()))
}

/// The names of further metrics that tasks measured, in the order in which they first appear.
pub fn metric_columns(results: &[CurveResult]) -> Vec<String> {
    let rows = results.iter().flat_map(|curve| &curve.runs).flat_map(|run| &run.rows);
    let mut names: Vec<String> = Vec::new();
    for (name, _) in rows.flat_map(|row| &row.metrics) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// The table at the end of a run.
pub fn table(results: &[CurveResult]) -> String {
    let header = [
        "curve",
        "final",
        "best",
        "rounds to 80 %",
        "bits/round",
        "mean q",
        "worst power",
        "digest",
        "status",
    ];
    let dash = || "–".to_owned();
    let percent = |value: Option<f64>| value.map_or_else(dash, |share| format!("{:.2} %", 100.0 * share));
    let row = |curve: &CurveResult| {
        let to_80 = curve.mean(|outcome| outcome.rounds_to_80.map(|round| round as f64));
        let digest = match &curve.runs[..] {
            [run] => run.outcome.digest[..12].to_owned(),
            runs => format!("{} seeds", runs.len()),
        };
        vec![
            curve.label.clone(),
            percent(curve.mean(|outcome| outcome.final_accuracy)),
            percent(curve.mean(|outcome| outcome.best_accuracy)),
            to_80.map_or_else(dash, |rounds| format!("{rounds:.0}")),
            format!("{:.0}", curve.mean_of(|outcome| outcome.bits_per_round)),
            format!("{:.0}", curve.mean_of(|outcome| outcome.mean_q)),
            format!("{:.2}", curve.worst_power()),
            digest,
            curve.status().name().to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = results.iter().map(row).collect();
    let mut text = plain_table(&header, &rows);
    text += "worst power: average power of the device that was scheduled most, against radio.power\n";
    for curve in results {
        let lost = [
            ("could not be decoded", curve.mean_of(|outcome| outcome.undecodable_transmissions as f64)),
            (
                "contradicted reports and were dropped",
                curve.mean_of(|outcome| outcome.flagged_transmissions as f64),
            ),
        ];
        for (what, uploads) in lost.into_iter().filter(|(_, uploads)| *uploads > 0.0) {
            let _ = writeln!(text, "{}: {uploads:.1} uploads a run {what}", curve.label);
        }
        let excluded = curve.mean_of(|outcome| outcome.excluded.len() as f64);
        if excluded > 0.0 {
            let _ = writeln!(text, "{}: {excluded:.1} devices a run were excluded", curve.label);
        }
        for run in &curve.runs {
            if let Status::Diverged(message) = &run.status {
                let _ = writeln!(text, "{} (seed {}): {message}", curve.label, run.seed);
            }
        }
    }
    text
}
