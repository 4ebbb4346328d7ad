//! The record of a measurement: the machine, and a line for every run.

use super::EVALUATE_EVERY;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The file of all runs, one line of JSON for each, and the file on the machine.
pub const RUNS: &str = "runs.jsonl";
pub const MACHINE: &str = "machine.json";

/// The timed work.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub enum Work {
    /// Whole BN2-C rounds: channel, training, D-SGD at q*, choice, slots, D-SGD, aggregation.
    #[serde(rename = "bn2-c")]
    Bn2C,
    /// The same training of all devices, the mean of their whole updates, a fresh optimizer in every
    /// round.
    #[serde(rename = "fedavg")]
    FedAvg,
}

/// The machine, the time and the options of a measurement.
#[derive(Debug, Deserialize, Serialize)]
pub struct Machine {
    pub date: String,
    pub cpu: String,
    pub cores: usize,
    /// Cores that other work kept busy before the first run and before each repetition; the largest
    /// number.
    pub load: Option<f64>,
    pub commit: String,
    pub threads: u64,
    /// The first rounds of a run, which are not counted.
    pub warmup: u64,
}

/// A kept run: of the peer `beside`, or of fedlink right before it.
#[derive(Debug, Deserialize, Serialize)]
pub struct Line {
    pub beside: String,
    pub work: Work,
    pub repetition: u64,
    /// The error of a first try that was repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried: Option<String>,
    #[serde(flatten)]
    pub outcome: Outcome,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    Measured(Measurement),
    Failed { program: String, error: String },
}

/// The output of a program.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Measurement {
    pub program: String,
    pub versions: BTreeMap<String, String>,
    pub rounds: u64,
    pub threads: u64,
    pub seed: u64,
    /// The time of every round, including its evaluation if there is one.
    pub seconds: Vec<f64>,
    /// The accuracy on the test set after the last round.
    pub accuracy: f64,
}

impl Work {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Work::Bn2C => "BN2-C",
            Work::FedAvg => "FedAvg",
        }
    }
}

impl Measurement {
    /// Seconds per round with its share of the evaluations: the median, over the stretches from one
    /// evaluation to the next, of their mean. NaN if no stretch remains after the warm-up.
    pub fn round(&self, warmup: u64) -> f64 {
        let counted = self.seconds.get(warmup as usize..).unwrap_or_default();
        median(counted.chunks_exact(EVALUATE_EVERY as usize).map(mean).collect())
    }
}

/// The files of a folder.
pub fn read(folder: &Path) -> anyhow::Result<(Machine, Vec<Line>)> {
    let text = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let machine = serde_json::from_str(&text(MACHINE)?).with_context(|| format!("{MACHINE} is damaged"))?;
    let lines = text(RUNS)?
        .lines()
        .enumerate()
        .map(|(i, line)| serde_json::from_str(line).with_context(|| format!("{RUNS}, line {}", i + 1)))
        .collect::<anyhow::Result<_>>()?;
    Ok((machine, lines))
}

/// The middle value; of two, their mean.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n => f64::midpoint(values[(n - 1) / 2], values[n / 2]),
    }
}

/// The mean; NaN without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 8.0]), 3.0);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn the_time_of_a_round_includes_evaluation_and_excludes_warm_up() {
        let evaluated = |round: f64| [vec![round; 9], vec![round + 5.0]].concat();
        let seconds = [vec![100.0; 10], evaluated(1.0), evaluated(7.0), evaluated(2.0)].concat();
        let run = Measurement {
            program: "p".into(),
            versions: BTreeMap::new(),
            rounds: 40,
            threads: 1,
            seed: 0,
            seconds,
            accuracy: 0.5,
        };
        assert_eq!(run.round(10), 2.5);
        assert!(run.round(40).is_nan());
        assert!(run.round(50).is_nan());
    }

    #[test]
    fn lines_of_runs_and_of_failures_are_distinguished() {
        let run = r#"{"beside": "jax", "work": "bn2-c", "repetition": 1, "program": "jax",
            "versions": {"jax": "1"}, "rounds": 2, "threads": 2, "seed": 0, "seconds": [1.0, 0.5],
            "accuracy": 0.9}"#;
        let line: Line = serde_json::from_str(run).unwrap();
        assert!(matches!(&line.outcome, Outcome::Measured(run) if run.seconds == [1.0, 0.5]));
        let failure =
            r#"{"beside": "pfl", "work": "fedavg", "repetition": 0, "program": "pfl", "error": "no pip"}"#;
        let line: Line = serde_json::from_str(failure).unwrap();
        assert!(matches!(&line.outcome, Outcome::Failed { error, .. } if error == "no pip"));
        let again: Line = serde_json::from_str(&serde_json::to_string(&line).unwrap()).unwrap();
        assert_eq!((again.beside.as_str(), again.work), ("pfl", Work::FedAvg));
    }
}
