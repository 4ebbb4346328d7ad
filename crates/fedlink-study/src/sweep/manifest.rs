//! `manifest.json`: how and where the numbers in a folder were made. Written last: it records whether they
//! are complete.

use super::plan::Plan;
use super::runner::Done;
use crate::error::Error;
use crate::output::OutputFolder;
use fedlink::checkpoint::config_digest;
use fedlink::record::hexadecimal;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, SystemTime};

#[derive(Serialize)]
struct Manifest<'a> {
    experiment: &'a str,
    /// Whether every run of the experiment is in the results.
    complete: bool,
    fedlink: &'static str,
    written: String,
    /// Wall-clock time of the process that wrote it, in seconds.
    wall_seconds: f64,
    threads: usize,
    host: Host,
    datasets: Vec<Data<'a>>,
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct Host {
    os: &'static str,
    architecture: &'static str,
    processor: Option<String>,
    cores: usize,
    /// The instructions that the kernels used: digests may differ from one set to another.
    instruction_set: String,
}

#[derive(Serialize)]
struct Data<'a> {
    name: &'a str,
    sha256: String,
}

#[derive(Serialize)]
struct Run<'a> {
    curve: &'a str,
    seed: u64,
    /// SHA-256 of the run's complete configuration.
    config: String,
    status: &'static str,
    rounds: u64,
    digest: &'a str,
    /// Wall-clock time in seconds, with other runs beside it; for a run in several parts, of its last one.
    seconds: f64,
    /// Rounds that an earlier process had done.
    resumed_from: u64,
}

/// Writes `manifest.json`: which runs the results in `folder` are made of, by which program, on which
/// machine, with how many `threads` and in which `wall`-clock time. It is the last file of a folder.
pub fn write_manifest(
    folder: &OutputFolder,
    plan: &Plan,
    runs: &[Done],
    threads: usize,
    wall: Duration,
) -> Result<(), Error> {
    let run = |done| {
        let done: &Done = done;
        let cell = &plan.cells[done.index];
        Run {
            curve: &plan.curves[cell.curve].label,
            seed: cell.config.run.seed,
            config: hexadecimal(&config_digest(&cell.config)),
            status: done.result.status.name(),
            rounds: done.result.outcome.rounds,
            digest: &done.result.outcome.digest,
            seconds: done.result.seconds,
            resumed_from: done.resumed_from,
        }
    };
    let ended = runs.iter().filter(|done| done.result.status.has_ended()).count();
    let manifest = Manifest {
        experiment: &plan.experiment.name,
        complete: ended == plan.cells.len(),
        fedlink: env!("CARGO_PKG_VERSION"),
        written: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        wall_seconds: wall.as_secs_f64(),
        threads,
        host: Host {
            os: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
            processor: processor(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            instruction_set: fedlink::kernels::instruction_set().to_string(),
        },
        datasets: plan.datasets().iter().map(|(name, data)| Data { name, sha256: data.digest() }).collect(),
        runs: runs.iter().map(run).collect(),
    };
    folder.write("manifest.json", serde_json::to_string_pretty(&manifest)? + "\n")
}

/// Whether the manifest in `folder` records a complete run.
pub fn is_complete(folder: &Path) -> bool {
    let text = std::fs::read(folder.join("manifest.json")).unwrap_or_default();
    let manifest: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    manifest["complete"] == true
}

/// The processor's name where the system has it.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
