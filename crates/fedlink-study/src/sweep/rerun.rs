//! Stored runs made again, to check that their numbers are the same.

use super::data::differences;
use super::freeze::{frozen, read_data};
use super::plan::Plan;
use super::process::Process;
use super::run_files::RunFiles;
use super::runner::processes_text;
use super::stored_run::StoredRun;
use crate::error::Error;
use fedlink::parts::Parts;
use fedlink::record::Row;
use sha2::{Digest, Sha256};
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
}

/// The difference between a run that was made again and the stored one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Difference {
    /// The digest of the new run, with the round of the first row that is another if only rows are.
    pub repeated: String,
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
        let mut simulation = plan.simulation(run)?;
        while simulation.rounds_done() < run.spec.run.rounds {
            match pool.install(|| simulation.step()) {
                Ok(_) => {}
                Err(fedlink::Error::Diverged { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let (stored, repeated) = (found.result.outcome.digest, simulation.outcome().digest);
        // The digest covers the rounds and not the rows: compare the rows too.
        let round = first_difference(&found.result.rows, simulation.rows());
        let repeated = match round.filter(|_| stored == repeated) {
            Some(round) => format!("{repeated}, but another row of round {round}"),
            None => repeated,
        };
        let difference = (stored != repeated).then(|| Difference {
            repeated,
            stored_by: processes_text(&found.processes),
            repeated_by: Process::here(pool.current_num_threads()).text(),
        });
        let rerun = Rerun { name: files.name(), label: plan.sweep.label(run), stored, difference };
        let go_on = each(&rerun);
        reruns.push(rerun);
        if !go_on {
            break;
        }
    }
    Ok(reruns)
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
    let words = |row: &Row| {
        let columns = fedlink::record::ROW_COLUMNS.iter();
        let metrics = row.metrics.iter().map(|(name, value)| format!("{name} {value}"));
        columns.map(|column| (column.value)(row).text()).chain(metrics).collect::<Vec<String>>()
    };
    words(a) == words(b)
}
