//! Stored runs made again, to check that their numbers are the same.

use super::data::differences;
use super::freeze::{frozen, read_data};
use super::log::{Lines, LogRounds, check_log, file_seal};
use super::plan::Plan;
use super::process::Process;
use super::run_files::RunFiles;
use super::runner::processes_text;
use super::stored_run::{StoredRun, outcome_fields};
use crate::error::Error;
use crate::experiment::Run;
use crate::tables::results::{RunResult, Status};
use fedlink::learn::fairness::WORST_DEVICE;
use fedlink::parts::Parts;
use fedlink::record::Row;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// A stored run that was made again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rerun {
    /// Its name in the folder of the runs.
    pub name: String,
    /// Its label in the sweep.
    pub label: String,
    /// The stored digest.
    pub stored: String,
    /// The difference, if there is one.
    pub difference: Option<Difference>,
    /// The parts that could not be compared because another version stored the run.
    pub notes: Vec<String>,
}

/// The difference between a run that was made again and the stored one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Difference {
    /// The digest of the new run, with the first difference if the digest is the stored one.
    pub repeated: String,
    /// Every part that differs, with both values.
    pub parts: Vec<String>,
    /// The processes of the stored run.
    pub stored_by: String,
    /// The process of the new run.
    pub repeated_by: String,
}

/// Makes `count` finished runs of the experiment in `folder` again, chosen at random by `seed`; all if there
/// are fewer. `each` is called after every run; false ends the loop. Data sets are searched in
/// `data_folders`.
pub fn rerun(
    folder: &Path,
    data_folders: &[PathBuf],
    parts: &Parts,
    count: usize,
    seed: u64,
    pool: &rayon::ThreadPool,
    each: &mut dyn FnMut(&Rerun) -> bool,
) -> Result<Vec<Rerun>, Error> {
    let plan = Plan::new(frozen(folder, parts)?, data_folders)?;
    if let Some(differences) = differences(&read_data(folder)?, &plan.data) {
        return Err(Error::OtherData { path: folder.into(), differences });
    }
    let mut stored: Vec<(usize, RunFiles, StoredRun)> = Vec::new();
    for (index, run) in plan.sweep.runs.iter().enumerate() {
        let files = RunFiles::new(folder, &run.spec);
        if let Some(found) = files.read()? {
            stored.push((index, files, found));
        }
    }
    if stored.is_empty() {
        let missing = plan.sweep.runs.iter().map(|run| plan.sweep.label(run)).collect();
        return Err(Error::MissingRuns { path: folder.into(), missing, of: plan.sweep.runs.len() });
    }
    // A repeatable choice: the runs whose names have the lowest digests with the seed.
    stored.sort_by_key(|(_, files, _)| <[u8; 32]>::from(Sha256::digest(format!("{seed} {}", files.name()))));
    stored.truncate(count);
    let mut reruns = Vec::new();
    for (index, files, found) in stored {
        let run = &plan.sweep.runs[index];
        let (repeated, logs) = repeat(&plan, run, &files, &found, pool)?;
        let mut compared = compare(&found, &repeated);
        compare_logs(&files, &found, &logs, &mut compared)?;
        let (stored, digest) = (found.result.outcome.digest, repeated.result.outcome.digest);
        let first = compared.parts.first().filter(|_| stored == digest);
        let shown = first.map_or_else(|| digest.clone(), |first| format!("{digest}, but {first}"));
        let difference = (!compared.parts.is_empty()).then(|| Difference {
            repeated: shown,
            parts: compared.parts,
            stored_by: processes_text(&found.processes),
            repeated_by: Process::here(pool.current_num_threads()).text(),
        });
        let (name, label) = (files.name(), plan.sweep.label(run));
        let rerun = Rerun { name, label, stored, difference, notes: compared.notes };
        let go_on = each(&rerun);
        reruns.push(rerun);
        if !go_on {
            break;
        }
    }
    Ok(reruns)
}

/// The lines of the logs of a run that was made again, for each log that is there.
type NewLogs = Vec<(LogRounds, Lines)>;

/// Makes a stored run again, with its logs of rounds. The result is as it would be read from its file.
fn repeat(
    plan: &Plan,
    run: &Run,
    files: &RunFiles,
    stored: &StoredRun,
    pool: &rayon::ThreadPool,
) -> Result<(StoredRun, NewLogs), Error> {
    let mut simulation = plan.simulation(run)?;
    let is_there = |which: &LogRounds| files.rounds(*which).symlink_metadata().is_ok();
    let kinds = [LogRounds::Sent, LogRounds::All].into_iter().filter(is_there);
    let mut logs: NewLogs = kinds.map(|which| (which, Lines::default())).collect();
    simulation.log_all_devices(logs.iter().any(|(which, _)| *which == LogRounds::All));
    let mut status = Status::Finished;
    while simulation.rounds_done() < run.spec.run.rounds {
        match pool.install(|| simulation.step()) {
            Ok(record) => {
                for (which, lines) in &mut logs {
                    lines.add_round(&record, *which == LogRounds::All)?;
                }
            }
            Err(error @ fedlink::Error::Diverged { .. }) => {
                status = Status::Diverged(error.to_string());
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let repeated = StoredRun {
        label: stored.label.clone(),
        config_digest: stored.config_digest.clone(),
        rounds: run.spec.run.rounds,
        data: plan.data_digests(run),
        processes: Vec::new(),
        logs: stored.logs.clone(),
        unstored: Vec::new(),
        result: RunResult {
            seed: run.spec.run.seed,
            rows: simulation.rows().to_vec(),
            outcome: simulation.outcome(),
            status,
            seconds: 0.0,
        },
    };
    let text = repeated.to_text(&run.spec)?;
    Ok((StoredRun::from_bytes(&files.finished(), text.as_bytes())?, logs))
}

/// The comparison of a stored run with the same run made again.
#[derive(Default)]
struct Compared {
    /// Every part that differs.
    parts: Vec<String>,
    /// The parts that could not be compared.
    notes: Vec<String>,
}

/// The fields of an outcome that hold sentences, which versions may word differently.
const SENTENCES: [&str; 2] = ["warnings", "privacy"];

/// Compares all of a stored run that tables, claims and pages are made of.
fn compare(stored: &StoredRun, repeated: &StoredRun) -> Compared {
    let mut compared = Compared::default();
    let (was, is) = (&stored.result, &repeated.result);
    let by_another =
        stored.processes.last().is_some_and(|process| process.fedlink != env!("CARGO_PKG_VERSION"));
    if was.outcome.digest != is.outcome.digest {
        compared.parts.push("another digest".into());
    }
    if let Some(round) = first_difference(&was.rows, &is.rows) {
        compared.parts.push(format!("another row of round {round}"));
    }
    let differs = |name: &str, was: &dyn Display, is: &dyn Display| {
        format!("{name} is {} there and {} when made again", shortened(was), shortened(is))
    };
    match (&was.status, &is.status) {
        (Status::Diverged(was), Status::Diverged(is)) if was != is => {
            let list = if by_another { &mut compared.notes } else { &mut compared.parts };
            list.push(differs("message", was, is));
        }
        (was, is) if was.name() != is.name() => {
            compared.parts.push(differs("status", &was.name(), &is.name()));
        }
        _ => {}
    }
    let data = |run: &StoredRun| serde_json::to_string(&run.data).unwrap_or_default();
    if stored.data != repeated.data {
        compared.parts.push(differs("data", &data(stored), &data(repeated)));
    }
    let (stored_fields, fields) = (outcome_fields(&was.outcome), outcome_fields(&is.outcome));
    let names: BTreeSet<&String> = stored_fields.keys().chain(fields.keys()).collect();
    for name in names.into_iter().filter(|name| *name != "digest") {
        let (was, is) = (stored_fields.get(name), fields.get(name));
        let shown = |value: Option<&Value>| value.unwrap_or(&Value::Null).to_string();
        let difference = || differs(&format!("outcome.{name}"), &shown(was), &shown(is));
        if was == is {
            // The same.
        } else if by_another && stored.unstored.contains(name) {
            compared.notes.push(format!("outcome.{name} is not stored"));
        } else if by_another && SENTENCES.contains(&name.as_str()) && same_numbers(was, is) {
            compared.notes.push(format!("outcome.{name} is worded differently"));
        } else {
            compared.parts.push(difference());
        }
    }
    compared
}

/// Whether two values are the same but for the words of their texts. The number of sentences may differ.
fn same_numbers(a: Option<&Value>, b: Option<&Value>) -> bool {
    let is_sentence = |value: &Value| value.is_string();
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.len() == b.len() && a.iter().all(|(name, value)| same_numbers(Some(value), b.get(name)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => a == b || a.iter().chain(b).all(is_sentence),
        (a, b) => a == b,
    }
}

/// Compares the logs of a run with those that it gives when it is made again.
fn compare_logs(
    files: &RunFiles,
    stored: &StoredRun,
    logs: &NewLogs,
    compared: &mut Compared,
) -> Result<(), Error> {
    for (which, lines) in logs {
        let path = files.rounds(*which);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (seal, made) = (stored.logs.get(which.ending()), lines.seal());
        // A log that was begun and not continued does not belong to the results: no table is made of it.
        if seal.is_none()
            && let Err(problem) = check_log(&path, *which, &stored.result.outcome, None)
        {
            compared.notes.push(format!("a log without a seal: {problem}"));
        } else {
            match file_seal(&path, made.lines)? {
                Some(found) if found == made => {}
                found => compared.parts.push(format!(
                    "another log {name}: {} lines there and {} when made again, with other content",
                    found.map_or_else(|| "too many".into(), |found| found.lines.to_string()),
                    made.lines
                )),
            }
        }
    }
    Ok(())
}

/// A value for a message.
fn shortened(value: &dyn Display) -> String {
    const MAX: usize = 80;
    let text = value.to_string();
    let mut shown: String = text.chars().take(MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// The round of the first of the rows that are not the same.
fn first_difference(stored: &[Row], repeated: &[Row]) -> Option<u64> {
    let differing = stored.iter().zip(repeated).find(|(a, b)| !same_row(a, b)).map(|(a, _)| a);
    let common = stored.len().min(repeated.len());
    let more = || stored[common..].first().or_else(|| repeated[common..].first());
    differing.or_else(more).map(|row| row.round)
}

/// Whether two rows are the same to the bit, NaN being NaN.
pub(super) fn same_row(a: &Row, b: &Row) -> bool {
    // Versions before 0.3 did not record it; it follows from other metrics.
    let is_new = |name: &str| {
        name == WORST_DEVICE && [a, b].iter().any(|row| row.metrics.iter().all(|(known, _)| known != name))
    };
    let words = |row: &Row| {
        let columns = fedlink::record::ROW_COLUMNS.iter();
        let metrics = row.metrics.iter().filter(|(name, _)| !is_new(name));
        let metrics = metrics.map(|(name, value)| format!("{name} {value}"));
        columns.map(|column| (column.value)(row).text()).chain(metrics).collect::<Vec<String>>()
    };
    words(a) == words(b)
}
