//! The finished runs in a folder, put together or judged without doing any run.

use super::data::{chance, differences, digest_differences};
use super::freeze::{frozen, frozen_source, read_data};
use super::plan::Plan;
use super::register::read_register;
use super::run_files::RunFiles;
use super::runner::Done;
use crate::claims::Verdicts;
use crate::error::Error;
use crate::experiment::{ClaimsFile, FileKind, Run, Source};
use crate::theory::{BoundExperiment, PanelResult};
use fedlink::base::files;
use fedlink::parts::Parts;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The finished runs in `folder`, and the indices of those of `runs` that are missing there. It is an error
/// if two finished runs used different data.
pub fn finished_runs(runs: &[Run], folder: &Path) -> Result<(Vec<Done>, Vec<usize>), Error> {
    let (mut done, mut missing) = (Vec::new(), Vec::new());
    let facts = read_data(folder)?;
    let mut data: BTreeMap<String, String> =
        facts.into_iter().map(|(name, fact)| (name, fact.sha256)).collect();
    for (index, run) in runs.iter().enumerate() {
        let files = RunFiles::new(folder, &run.spec);
        let Some(run) = files.read()? else {
            missing.push(index);
            continue;
        };
        if let Some(differences) = digest_differences(&run.data, &data) {
            return Err(Error::OtherData { path: files.finished(), differences });
        }
        data.extend(run.data);
        done.push(Done {
            index,
            resumed_from: 0,
            result: run.result,
            processes: run.processes,
            logs: run.logs,
        });
    }
    Ok((done, missing))
}

/// The plan of the sweep in `folder` with its finished runs, which were done share by share. It is an error
/// if some are missing, unless `partial`, or if all are. Data sets are searched in `data_folders`.
pub fn merge(
    folder: &Path,
    data_folders: &[PathBuf],
    partial: bool,
    parts: &Parts,
) -> Result<(Plan, Vec<Done>), Error> {
    let plan = Plan::new(frozen(folder, parts)?, data_folders)?;
    if let Some(differences) = differences(&read_data(folder)?, &plan.data) {
        return Err(Error::OtherData { path: folder.into(), differences });
    }
    let (runs, missing) = finished_runs(&plan.sweep.runs, folder)?;
    if runs.is_empty() || (!missing.is_empty() && !partial) {
        let missing = missing.iter().map(|&index| plan.sweep.label(&plan.sweep.runs[index])).collect();
        return Err(Error::MissingRuns { path: folder.into(), missing, of: plan.sweep.runs.len() });
    }
    Ok((plan, runs))
}

/// The claims of an experiment, judged by the results in its folder.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Verified {
    /// The verdict on each claim.
    pub verdicts: Verdicts,
    /// Runs that are not finished; 0 for curves of the bound, which are computed again.
    pub missing: usize,
    /// Runs, or curves of the bound, of the experiment.
    pub of: usize,
}

/// Judges the claims of the experiment in `folder`, or those of `claims`, by the results there. It is an
/// error if there are no claims.
///
/// Runs of the system are read from their files. Curves of the bound follow from `config.toml` alone: they
/// are computed again, draw by draw, and must be those of `results.csv`.
pub fn verify(folder: &Path, claims: Option<&ClaimsFile>) -> Result<Verified, Error> {
    let source = frozen_source(folder)?.ok_or_else(|| Error::NoExperiment(folder.into()))?;
    match source.kind() {
        FileKind::System => verify_runs(folder, claims),
        FileKind::Bound => verify_bound(folder, &source, claims),
        FileKind::Theorem => Err(Error::ClaimsNothing(folder.into())),
    }
}

fn verify_runs(folder: &Path, claims: Option<&ClaimsFile>) -> Result<Verified, Error> {
    let mut sweep = frozen(folder, &Parts::default())?;
    claims.map_or(Ok(()), |claims| sweep.claim_as(claims))?;
    let (runs, missing) = finished_runs(&sweep.runs, folder)?;
    let runs = runs.iter().map(|done| (sweep.runs[done.index].curve, &done.result));
    let data = read_data(folder)?;
    let mut verdicts = Verdicts::new(&sweep, |spec| chance(&data, spec), runs)?;
    if let Some(register) = read_register(folder)? {
        verdicts.register(&register, sweep.experiment.all_claims());
    }
    if verdicts.is_empty() {
        return Err(Error::ClaimsNothing(folder.into()));
    }
    Ok(Verified { verdicts, missing: missing.len(), of: sweep.runs.len() })
}

fn verify_bound(folder: &Path, source: &Source, claims: Option<&ClaimsFile>) -> Result<Verified, Error> {
    let mut experiment = BoundExperiment::read(source)?;
    if let Some(claims) = claims {
        if claims.expects() {
            return Err(Error::OtherKind { name: claims.name.clone(), path: folder.into() });
        }
        experiment.claim_as(claims)?;
    }
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
    /// The most bytes of a line but for its labels.
    const LINE: u64 = 1 << 12;
    let lines: usize =
        panels.iter().flat_map(|panel| &panel.curves).map(|curve| 1 + curve.losses.len()).sum();
    let text = files::read(path, (1 + lines as u64) * LINE).map_err(Error::file("read", path))?;
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
