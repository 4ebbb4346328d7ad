//! What the folder of an experiment holds: its finished runs, put together or judged without running anything.

use super::cell::CellFiles;
use super::folder::frozen;
use super::plan::Plan;
use super::runner::Done;
use crate::error::Error;
use crate::experiment::{Cell, Experiment};
use crate::verdicts::Verdicts;
use std::path::{Path, PathBuf};

/// Those of `cells` whose numbers are in `folder`, and the indices of those that are not there.
pub fn finished_runs(cells: &[Cell], folder: &Path) -> Result<(Vec<Done>, Vec<usize>), Error> {
    let (mut done, mut missing) = (Vec::new(), Vec::new());
    for (index, cell) in cells.iter().enumerate() {
        match CellFiles::new(folder, index).finished(&cell.config)? {
            Some(result) => done.push(Done { index, resumed_from: 0, result }),
            None => missing.push(index),
        }
    }
    Ok((done, missing))
}

/// The experiment of `folder` with all its finished runs, for runs that were made share by share. It is an error if
/// some are missing, unless `partial`, or if all are. Data sets are looked for in `data_folders`.
pub fn merge(folder: &Path, data_folders: &[PathBuf], partial: bool) -> Result<(Plan, Vec<Done>), Error> {
    let experiment = frozen(folder)?.ok_or_else(|| Error::NoExperiment(folder.into()))?;
    let plan = Plan::new(experiment, data_folders)?;
    let (runs, missing) = finished_runs(&plan.cells, folder)?;
    if runs.is_empty() || (!missing.is_empty() && !partial) {
        let missing = missing.iter().map(|&index| plan.label(&plan.cells[index])).collect();
        return Err(Error::MissingRuns { path: folder.into(), missing, of: plan.cells.len() });
    }
    Ok((plan, runs))
}

/// The claims of an experiment, judged by the runs in its folder.
pub struct Verified {
    /// A verdict on each.
    pub verdicts: Verdicts,
    /// Runs that are not finished.
    pub missing: usize,
    /// Runs of the experiment.
    pub of: usize,
}

/// Judges the claims of the experiment in `folder`, or those of `claims`, by the finished runs there. It is an error
/// if nothing is claimed.
pub fn verify(folder: &Path, claims: Option<&Experiment>) -> Result<Verified, Error> {
    let mut experiment = frozen(folder)?.ok_or_else(|| Error::NoExperiment(folder.into()))?;
    let (curves, cells) = (experiment.curves()?, experiment.cells()?);
    if let Some(other) = claims {
        experiment.claim_as(other)?;
    }
    let (runs, missing) = finished_runs(&cells, folder)?;
    let runs = runs.iter().map(|done| (cells[done.index].curve, &done.result));
    let verdicts = Verdicts::new(&experiment, &curves, runs)?;
    if verdicts.is_empty() {
        return Err(Error::ClaimsNothing(folder.into()));
    }
    Ok(Verified { verdicts, missing: missing.len(), of: cells.len() })
}
