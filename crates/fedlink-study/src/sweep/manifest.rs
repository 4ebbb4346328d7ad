//! `manifest.json`: how and where the numbers in a folder were made. It is written last and records whether
//! they are complete.

use super::data::DataFacts;
use super::plan::Plan;
use super::process::{Process, now};
use super::register::read_register;
use super::runner::Done;
use super::sources::{PartEntry, entries};
use crate::claims::Register;
use crate::error::Error;
use crate::folder::output::OutputFolder;
use fedlink::base::files;
use fedlink::record::hexadecimal;
use fedlink::spec::identity::config_digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

#[derive(Serialize)]
struct Manifest<'a> {
    experiment: &'a str,
    /// Whether every run of the experiment is in the results.
    complete: bool,
    /// The runs that are not.
    missing: Vec<String>,
    /// The differences between the processes of the runs, and the logs without a seal.
    notes: &'a [String],
    /// The process that put the results together; it need not have done a run.
    writer: Process,
    written: String,
    /// Wall-clock time of the process that wrote it, in seconds.
    wall_seconds: f64,
    data: &'a DataFacts,
    /// The custom parts, with the digests of their texts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<String, PartEntry>,
    /// The claims at the first run, and those that were added or changed later; null without claims.
    claims: Option<Register>,
    runs: Vec<RunEntry<'a>>,
}

#[derive(Serialize)]
struct RunEntry<'a> {
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
    /// The processes that did its rounds, in their order.
    #[serde(rename = "makers")]
    processes: &'a [Process],
}

/// Writes `manifest.json`: the runs behind the results in `folder`, and the processes that did each of them.
/// `notes` are those of the [assembled](super::Assembled) results; the writing process has `threads` and has
/// taken the `wall`-clock time. It is the last file of a folder.
pub fn write_manifest(
    folder: &OutputFolder,
    plan: &Plan,
    runs: &[Done],
    notes: &[String],
    (threads, wall): (usize, Duration),
) -> Result<(), Error> {
    let run = |done| {
        let done: &Done = done;
        let run = &plan.sweep.runs[done.index];
        RunEntry {
            curve: &plan.sweep.curves[run.curve].label,
            seed: run.spec.run.seed,
            config: hexadecimal(&config_digest(&run.spec)),
            data: plan.data_digests(run),
            status: done.result.status.name(),
            rounds: done.result.outcome.rounds,
            digest: &done.result.outcome.digest,
            resumed_from: done.resumed_from,
            processes: &done.processes,
        }
    };
    let missing = missing(plan, runs);
    let manifest = Manifest {
        experiment: &plan.sweep.experiment.name,
        complete: missing.is_empty(),
        missing,
        notes,
        writer: Process::here(threads),
        written: now(),
        wall_seconds: wall.as_secs_f64(),
        data: &plan.data,
        parts: entries(folder.path(), &plan.sweep)?,
        claims: read_register(folder.path())?.filter(|register| !register.is_empty()),
        runs: runs.iter().map(run).collect(),
    };
    folder.write("manifest.json", serde_json::to_string_pretty(&manifest)? + "\n")
}

/// The labels of the runs of a plan that have not ended.
pub(super) fn missing(plan: &Plan, runs: &[Done]) -> Vec<String> {
    let ended = |index: usize| runs.iter().any(|done| done.index == index && done.result.status.has_ended());
    let runs = plan.sweep.runs.iter().enumerate().filter(|(index, _)| !ended(*index));
    runs.map(|(_, run)| plan.sweep.label(run)).collect()
}

/// The only field that is read back.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Completeness {
    complete: serde_json::Value,
}

impl Completeness {
    fn is_complete(&self) -> bool {
        self.complete == true
    }
}

/// Whether the manifest in `folder` records a complete sweep. Memory does not grow with the file.
pub fn is_complete(folder: &Path) -> bool {
    let file = files::open(&folder.join("manifest.json"));
    let read = |file| serde_json::from_reader::<_, Completeness>(BufReader::new(file));
    file.is_ok_and(|file| read(file).is_ok_and(|manifest| manifest.is_complete()))
}

/// Whether the content of a manifest records a complete sweep; false for any other content.
pub fn records_complete(content: &[u8]) -> bool {
    serde_json::from_slice::<Completeness>(content).is_ok_and(|manifest| manifest.is_complete())
}
