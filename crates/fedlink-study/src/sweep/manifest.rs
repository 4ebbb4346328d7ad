//! `manifest.json`: how and where the numbers in a folder were made. Written last: it records whether they
//! are complete.

use super::data::DataFacts;
use super::maker::{Maker, mixed, now};
use super::plan::Plan;
use super::runner::Done;
use crate::error::Error;
use crate::output::OutputFolder;
use fedlink::identity::config_digest;
use fedlink::record::hexadecimal;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

#[derive(Serialize)]
struct Manifest<'a> {
    experiment: &'a str,
    /// Whether every run of the experiment is in the results.
    complete: bool,
    /// The runs that are not.
    missing: Vec<String>,
    /// In what the makers of the runs differ.
    notes: Vec<String>,
    /// The process that put the results together, which need not have made a run.
    writer: Maker,
    written: String,
    /// Wall-clock time of the process that wrote it, in seconds.
    wall_seconds: f64,
    data: &'a DataFacts,
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    curve: &'a str,
    seed: u64,
    /// Digest of the run's configuration.
    config: String,
    /// Digests of its data.
    data: BTreeMap<String, String>,
    status: &'static str,
    rounds: u64,
    digest: &'a str,
    /// Rounds that an earlier process had done.
    resumed_from: u64,
    /// Who made it, in the order of the rounds.
    makers: &'a [Maker],
}

/// Writes `manifest.json`: which runs the results in `folder` are made of, and what made each of them. The
/// process that writes it has `threads` and has taken the `wall`-clock time. It is the last file of a folder.
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
            data: plan.data_digests(cell),
            status: done.result.status.name(),
            rounds: done.result.outcome.rounds,
            digest: &done.result.outcome.digest,
            resumed_from: done.resumed_from,
            makers: &done.makers,
        }
    };
    let missing = missing(plan, runs);
    let manifest = Manifest {
        experiment: &plan.experiment.name,
        complete: missing.is_empty(),
        missing,
        notes: mixed(runs.iter().map(|done| &done.makers[..])),
        writer: Maker::here(threads),
        written: now(),
        wall_seconds: wall.as_secs_f64(),
        data: &plan.data,
        runs: runs.iter().map(run).collect(),
    };
    folder.write("manifest.json", serde_json::to_string_pretty(&manifest)? + "\n")
}

/// The labels of the runs of a plan that have not ended.
pub(super) fn missing(plan: &Plan, runs: &[Done]) -> Vec<String> {
    let ended = |index: usize| runs.iter().any(|done| done.index == index && done.result.status.has_ended());
    let cells = plan.cells.iter().enumerate().filter(|(index, _)| !ended(*index));
    cells.map(|(_, cell)| plan.label(cell)).collect()
}

/// Whether the manifest in `folder` records a complete run.
pub fn is_complete(folder: &Path) -> bool {
    records_complete(&std::fs::read(folder.join("manifest.json")).unwrap_or_default())
}

/// Whether the content of a manifest records a complete run. What is no manifest records nothing.
pub fn records_complete(content: &[u8]) -> bool {
    let manifest: serde_json::Value = serde_json::from_slice(content).unwrap_or_default();
    manifest["complete"] == true
}
