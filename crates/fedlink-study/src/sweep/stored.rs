//! What the folder of an experiment holds: its finished runs, put together or judged without running
//! anything.

use super::cell::CellFiles;
use super::data::{differences, digest_differences};
use super::folder::{frozen, frozen_any, read_data};
use super::plan::Plan;
use super::runner::Done;
use crate::error::Error;
use crate::experiment::{AnyExperiment, BoundExperiment, Cell, ClaimsFile, Experiment, PanelResult};
use crate::verdicts::Verdicts;
use fedlink::parts::Parts;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Those of `cells` whose numbers are in `folder`, and the indices of those that are not there. It is an
/// error if two of them were made with different data.
pub fn finished_runs(cells: &[Cell], folder: &Path) -> Result<(Vec<Done>, Vec<usize>), Error> {
    let (mut done, mut missing) = (Vec::new(), Vec::new());
    let facts = read_data(folder)?;
    let mut data: BTreeMap<String, String> =
        facts.into_iter().map(|(name, fact)| (name, fact.sha256)).collect();
    for (index, cell) in cells.iter().enumerate() {
        let files = CellFiles::new(folder, &cell.config);
        let Some(cell) = files.read()? else {
            missing.push(index);
            continue;
        };
        if let Some(differences) = digest_differences(&cell.data, &data) {
            return Err(Error::OtherData { path: files.finished(), differences });
        }
        data.extend(cell.data);
        done.push(Done { index, resumed_from: 0, result: cell.result, makers: cell.makers });
    }
    Ok((done, missing))
}

/// The experiment of `folder` with all its finished runs, for runs that were made share by share. It is an
/// error if some are missing, unless `partial`, or if all are. Data sets are looked for in `data_folders`.
pub fn merge(
    folder: &Path,
    data_folders: &[PathBuf],
    partial: bool,
    parts: &Parts,
) -> Result<(Plan, Vec<Done>), Error> {
    let experiment = frozen(folder)?.ok_or_else(|| Error::NoExperiment(folder.into()))?;
    let plan = Plan::new(experiment, data_folders, parts)?;
    if let Some(differences) = differences(&read_data(folder)?, &plan.data) {
        return Err(Error::OtherData { path: folder.into(), differences });
    }
    let (runs, missing) = finished_runs(&plan.cells, folder)?;
    if runs.is_empty() || (!missing.is_empty() && !partial) {
        let missing = missing.iter().map(|&index| plan.label(&plan.cells[index])).collect();
        return Err(Error::MissingRuns { path: folder.into(), missing, of: plan.cells.len() });
    }
    Ok((plan, runs))
}

/// The claims of an experiment, judged by what is in its folder.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Verified {
    /// Whether each claim holds, and by how much.
    pub verdicts: Verdicts,
    /// Runs that are not finished; none of the curves of the bound, which are computed again.
    pub missing: usize,
    /// Runs, or curves of the bound, of the experiment.
    pub of: usize,
}

/// Judges the claims of the experiment in `folder`, or those of `claims`, by what is there. It is an error if
/// nothing is claimed.
///
/// Runs of the system are read from their files. Curves of the bound follow from `config.toml` alone: they
/// are computed again, draw by draw, and must be those of `results.csv`.
pub fn verify(folder: &Path, claims: Option<&ClaimsFile>) -> Result<Verified, Error> {
    match frozen_any(folder)?.ok_or_else(|| Error::NoExperiment(folder.into()))? {
        AnyExperiment::Simulation(mut experiment) => {
            claims.map_or(Ok(()), |claims| experiment.claim_as(claims))?;
            verify_runs(folder, &experiment)
        }
        AnyExperiment::Bound(mut experiment) => {
            if let Some(claims) = claims.filter(|claims| claims.expects()) {
                return Err(Error::OtherKind { name: claims.name.clone(), path: folder.into() });
            }
            claims.map_or(Ok(()), |claims| experiment.claim_as(claims))?;
            verify_bound(folder, &experiment)
        }
        AnyExperiment::Theorem(_) => Err(Error::ClaimsNothing(folder.into())),
    }
}

fn verify_runs(folder: &Path, experiment: &Experiment) -> Result<Verified, Error> {
    let (curves, cells) = (experiment.curves()?, experiment.cells()?);
    let (runs, missing) = finished_runs(&cells, folder)?;
    let runs = runs.iter().map(|done| (cells[done.index].curve, &done.result));
    let verdicts = Verdicts::new(experiment, &curves, runs)?;
    if verdicts.is_empty() {
        return Err(Error::ClaimsNothing(folder.into()));
    }
    Ok(Verified { verdicts, missing: missing.len(), of: cells.len() })
}

fn verify_bound(folder: &Path, experiment: &BoundExperiment) -> Result<Verified, Error> {
    if experiment.claims().is_empty() {
        return Err(Error::ClaimsNothing(folder.into()));
    }
    let (panels, verdicts) = experiment.run()?;
    check_bound_table(&folder.join("results.csv"), &panels)?;
    let of = panels.iter().map(|panel| panel.curves.len()).sum();
    Ok(Verified { verdicts, missing: 0, of })
}

/// Whether `results.csv` of a figure of the bound holds these curves, every mean to the last digit.
fn check_bound_table(path: &Path, panels: &[PanelResult]) -> Result<(), Error> {
    let text = std::fs::read(path).map_err(Error::file("read", path))?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(&text[..]);
    let different = |what: String| Error::NotReproduced { path: path.into(), what };
    let damaged = |problem: csv::Error| different(problem.to_string());
    let header = reader.headers().map_err(damaged)?.clone();
    let column = |name: &str| header.iter().position(|known| known == name);
    let (Some(round), Some(loss)) = (column("round"), column("loss_bound")) else {
        return Err(different("it has no columns round and loss_bound".into()));
    };
    let mut lines = reader.records();
    for PanelResult { panel, curves } in panels {
        for curve in curves {
            for (t, computed) in curve.losses.iter().enumerate() {
                let line = lines.next().transpose().map_err(damaged)?.unwrap_or_default();
                let (written_round, written) = (line.get(round), line.get(loss));
                if written_round != Some(&t.to_string()) || written != Some(&computed.mean.to_string()) {
                    let written = written.unwrap_or("nothing");
                    return Err(different(format!(
                        "{} of panel {} after {t} rounds is {}, but {written} is written",
                        curve.label, panel.name, computed.mean
                    )));
                }
            }
        }
    }
    if lines.next().is_some() {
        return Err(different("it has more lines than the experiment has".into()));
    }
    Ok(())
}
