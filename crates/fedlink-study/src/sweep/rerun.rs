//! Stored runs made again, to see whether they come out the same.

use super::cell::CellFiles;
use super::data::differences;
use super::folder::{frozen, read_data};
use super::format::StoredCell;
use super::maker::Maker;
use super::plan::Plan;
use super::runner::makers_text;
use crate::error::Error;
use fedlink::parts::Parts;
use fedlink::record::Row;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// A stored run that was made again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rerun {
    /// Its name in `cells/`.
    pub cell: String,
    /// What tells it from the others.
    pub label: String,
    /// The stored digest.
    pub stored: String,
    /// The difference, if there is one.
    pub difference: Option<Difference>,
}

/// How a run that was made again is not the stored one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Difference {
    /// The digest of the new run, with the round of the first row that is another if only rows are.
    pub repeated: String,
    /// Who made the stored one.
    pub stored_by: String,
    /// Who made the new one.
    pub repeated_by: String,
}

/// Makes `count` finished runs of the experiment in `folder` again, chosen at random by `seed`; all if there
/// are fewer. Every one is handed to `each` when it is done, which says whether to go on. Data sets are
/// looked for in `data_folders`.
pub fn rerun(
    folder: &Path,
    data_folders: &[PathBuf],
    parts: &Parts,
    count: usize,
    seed: u64,
    pool: &rayon::ThreadPool,
    each: &mut dyn FnMut(&Rerun) -> bool,
) -> Result<Vec<Rerun>, Error> {
    let experiment = frozen(folder)?.ok_or_else(|| Error::NoExperiment(folder.into()))?;
    let plan = Plan::new(experiment, data_folders, parts)?;
    if let Some(differences) = differences(&read_data(folder)?, &plan.data) {
        return Err(Error::OtherData { path: folder.into(), differences });
    }
    let mut stored: Vec<(usize, CellFiles, StoredCell)> = Vec::new();
    for (index, cell) in plan.cells.iter().enumerate() {
        let files = CellFiles::new(folder, &cell.config);
        if let Some(found) = files.read()? {
            stored.push((index, files, found));
        }
    }
    if stored.is_empty() {
        let missing = plan.cells.iter().map(|cell| plan.label(cell)).collect();
        return Err(Error::MissingRuns { path: folder.into(), missing, of: plan.cells.len() });
    }
    // A choice that anybody can repeat: those whose names have the lowest digests with the seed.
    stored.sort_by_key(|(_, files, _)| <[u8; 32]>::from(Sha256::digest(format!("{seed} {}", files.name()))));
    stored.truncate(count);
    let mut reruns = Vec::new();
    for (index, files, found) in stored {
        let cell = &plan.cells[index];
        let mut simulation = plan.simulation(cell)?;
        while simulation.rounds_done() < cell.config.run.rounds {
            match pool.install(|| simulation.step()) {
                Ok(_) => {}
                Err(fedlink::Error::Diverged { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let (stored, repeated) = (found.result.outcome.digest, simulation.outcome().digest);
        // Rows are not in the digest, which is of all rounds: they must be those of the rounds too.
        let round = first_difference(&found.result.rows, simulation.rows());
        let repeated = match round.filter(|_| stored == repeated) {
            Some(round) => format!("{repeated}, but another row of round {round}"),
            None => repeated,
        };
        let difference = (stored != repeated).then(|| Difference {
            repeated,
            stored_by: makers_text(&found.makers),
            repeated_by: Maker::here(pool.current_num_threads()).text(),
        });
        let rerun = Rerun { cell: files.name(), label: plan.label(cell), stored, difference };
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
