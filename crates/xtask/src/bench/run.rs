//! One run of one program, and its line of JSON.

use super::{Options, output_of};
use anyhow::{Context, anyhow, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Seconds after which a run counts as hung.
const PATIENCE: &str = "3600";

/// The keys of the task that all peers share; see `bench/peers/workload.py`.
const WORKLOAD: &[&str] = &[
    "data.dataset=mnist",
    "data.devices=40",
    "data.samples_per_device=1000",
    "learn.model=mlp",
    "learn.hidden=[256]",
    "learn.local_steps=3",
    "learn.batch=64",
    "learn.optimizer=adam",
    "learn.rate=1e-3",
    "radio.symbols=5000",
    "run.evaluate_every=10",
];

/// Where things are.
pub struct Bench {
    pub root: PathBuf,
    data: PathBuf,
    /// The folder of this measurement's raw runs.
    pub runs: PathBuf,
    /// fedlink's program that times rounds.
    program: PathBuf,
}

/// What a run printed.
#[derive(Clone, Debug, Deserialize)]
pub struct Measurement {
    pub versions: BTreeMap<String, String>,
    /// Median over the rounds after warm-up.
    pub seconds_per_round: f64,
    /// Every round, evaluation included where it was due.
    pub seconds: Vec<f64>,
    pub accuracy: Option<f64>,
    /// Bytes.
    pub peak_memory: Option<u64>,
    #[serde(default)]
    pub note: String,
}

/// What fedlink is asked to run.
pub struct Task<'a> {
    /// What the raw run is called.
    pub name: &'a str,
    /// Keys beyond those of the workload.
    pub keys: &'a [&'a str],
    pub rounds: u64,
    pub warmup: u64,
    pub threads: u64,
    pub seed: u64,
}

impl Bench {
    /// Builds fedlink as it is now and opens a folder for the raw runs.
    pub fn new(root: &Path, options: &Options) -> anyhow::Result<Self> {
        let root = root.to_path_buf();
        crate::run(Command::new(crate::cargo_path()).args(["build", "--quiet", "--release"]))?;
        let data = crate::data_folder()?;
        if !data.join("mnist").is_dir() {
            bail!("FEDLINK_DATA is {}, which holds no folder mnist", data.display());
        }
        let build = ["build", "--quiet", "--release", "--package", "fedlink", "--example", "bench_round"];
        crate::run(Command::new(crate::cargo_path()).args(build))?;
        let program = root.join("target/release/examples/bench_round");
        let runs = root.join("bench/runs").join(output_of("date", &["-u", "+%Y-%m-%dT%H%M%SZ"]));
        std::fs::create_dir_all(&runs).with_context(|| format!("cannot make {}", runs.display()))?;
        eprintln!("{} runs of each, {} rounds", options.repetitions, options.rounds);
        Ok(Self { root, data, runs, program })
    }

    /// Runs fedlink.
    pub fn fedlink(&self, task: &Task) -> anyhow::Result<Measurement> {
        let mut command = vec![self.program.display().to_string()];
        command.extend(Self::common(task.rounds, task.warmup, task.threads, task.seed));
        command.extend(["--task".into(), task.name.into()]);
        for key in WORKLOAD.iter().chain(task.keys) {
            command.extend(["--set".into(), (*key).into()]);
        }
        let name = format!("fedlink-{}-{}", task.name, task.seed);
        self.run(&name, &command).with_context(|| format!("fedlink cannot run {}", task.name))
    }

    /// The arguments that fedlink's program and every peer's script take.
    pub fn common(rounds: u64, warmup: u64, threads: u64, seed: u64) -> Vec<String> {
        [("--rounds", rounds), ("--warmup", warmup), ("--threads", threads), ("--seed", seed)]
            .into_iter()
            .flat_map(|(name, value)| [name.to_owned(), value.to_string()])
            .collect()
    }

    /// Runs a command, keeps the last line that it prints as `NAME.json` and reads it. A run of the same name
    /// does not overwrite one before it.
    pub fn run(&self, name: &str, command: &[String]) -> anyhow::Result<Measurement> {
        eprintln!("… {name}");
        // `timeout` ends the whole process group, so that no server of a peer outlives it.
        let output = Command::new("timeout")
            .args(["--kill-after=60", PATIENCE])
            .args(command)
            .env("FEDLINK_DATA", &self.data)
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .output()
            .context("cannot start `timeout`")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let tail: Vec<&str> = said.lines().rev().take(15).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            bail!("{} ended with {}:\n{}", command.join(" "), output.status, tail.join("\n"));
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        let line =
            printed.lines().next_back().ok_or_else(|| anyhow!("{} printed nothing", command.join(" ")))?;
        let measured: Measurement =
            serde_json::from_str(line).with_context(|| format!("{name} printed {line:?}"))?;
        let mut kept = self.runs.join(format!("{name}.json"));
        let mut again = 2;
        while kept.exists() {
            kept = self.runs.join(format!("{name}-{again}.json"));
            again += 1;
        }
        std::fs::write(kept, line)?;
        eprintln!("  {:.2} ms a round", 1e3 * measured.seconds_per_round);
        Ok(measured)
    }
}

/// The middle value; of two, their mean.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n => f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]),
    }
}

/// The mean; not a number if there is none.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 8.0]), 3.0);
        assert!(median([]).is_nan());
    }

    #[test]
    fn a_line_of_a_peer_is_read() {
        let line = r#"{"peer": "jax", "task": "bn2-c", "versions": {"jax": "1"}, "rounds": 2, "warmup": 1,
            "threads": 2, "seed": 0, "seconds_per_round": 0.5, "seconds": [1.0, 0.5], "accuracy": 0.9, "note": ""}"#;
        let measured: Measurement = serde_json::from_str(line).unwrap();
        assert_eq!(
            (measured.seconds_per_round, measured.accuracy, measured.peak_memory),
            (0.5, Some(0.9), None)
        );
    }
}
