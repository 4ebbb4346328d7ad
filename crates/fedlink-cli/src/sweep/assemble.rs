//! From the numbers of all runs to the files that people read.

use super::cell::CellFiles;
use super::log;
use super::manifest::manifest;
use super::plan::Plan;
use super::runner::Done;
use crate::output::OutputFolder;
use crate::panels::panels;
use crate::plots::{self, file_name};
use crate::report::Report;
use crate::results::{self, CurveResult};
use crate::split::Splits;
use crate::verdicts::Verdicts;
use crate::{latex, parquet};
use anyhow::Context;
use fedlink_study::experiment::Cell;
use std::path::Path;
use std::time::Duration;

/// What is written beside the usual files, and what the manifest tells of the process.
pub struct Extras {
    pub log_rounds: bool,
    pub latex: bool,
    pub threads: usize,
    pub wall: Duration,
}

/// Those of `cells` whose numbers are in `folder`, and the places of those that are not there.
pub fn finished_cells(cells: &[Cell], folder: &Path) -> anyhow::Result<(Vec<Done>, Vec<usize>)> {
    let (mut done, mut missing) = (Vec::new(), Vec::new());
    for (place, cell) in cells.iter().enumerate() {
        match CellFiles::new(folder, place).finished(&cell.config)? {
            Some(result) => done.push(Done { place, resumed_from: 0, result }),
            None => missing.push(place),
        }
    }
    Ok((done, missing))
}

/// The numbers of all runs, put together.
pub struct Assembled {
    pub curves: Vec<CurveResult>,
    /// `summary.json`.
    pub summary: String,
    pub verdicts: Verdicts,
}

impl Assembled {
    /// What is printed at the end: the table of curves, and the verdicts.
    pub fn text(&self) -> String {
        let table = results::table(&self.curves);
        if self.verdicts.is_empty() { table } else { format!("{table}\n{}", self.verdicts.text()) }
    }
}

/// Writes every file but the manifest, then the manifest.
pub fn assemble(
    plan: &Plan,
    runs: &[Done],
    folder: &OutputFolder,
    extras: &Extras,
) -> anyhow::Result<Assembled> {
    let mut splits = Splits::default();
    let mut heterogeneity = Vec::new();
    for curve in &plan.curves {
        let dataset = &plan.datasets()[&curve.config.data.dataset];
        heterogeneity.push(splits.add(&curve.label, &curve.config, dataset)?);
    }
    let by_curve = runs.iter().map(|done| (plan.cells[done.place].curve, done.result.clone())).collect();
    let results = results::gather(&plan.curves, &heterogeneity, by_curve);
    let experiment = &plan.experiment;
    folder.write("results.csv", results::csv(&results)?)?;
    folder.write("results.parquet", parquet::write(&parquet::result_columns(&results))?)?;
    if extras.log_rounds {
        let log = round_log(plan, runs, folder.path())?;
        folder.write("rounds.parquet", parquet::write(&log::columns(&log)?)?)?;
        folder.write("rounds.csv", log)?;
    }
    if extras.latex {
        folder.write("results.tex", latex::table(&results))?;
        folder.write("accuracy.tex", latex::picture(&results))?;
        for panel in panels(&results) {
            folder
                .write(&format!("accuracy-{}.tex", file_name(&panel.name)), latex::picture(&panel.curves))?;
        }
    }
    let summary = results::json(&results)?;
    folder.write("summary.json", &summary)?;
    plots::write(&experiment.name, &results, folder)?;
    splits.write(folder)?;
    let judged = runs.iter().map(|done| (plan.cells[done.place].curve, &done.result));
    let verdicts = Verdicts::new(experiment, &plan.curves, judged)?;
    if !verdicts.is_empty() {
        folder.write("claims.json", verdicts.json()?)?;
    }
    let mut report = Report::new(&experiment.name, experiment.to_toml()?, &results, splits.first());
    report.claims = verdicts.for_report();
    folder.write("report.html", report.html())?;
    folder.write("manifest.json", manifest(plan, runs, extras.threads, extras.wall)?)?;
    Ok(Assembled { curves: results, summary, verdicts })
}

/// The logs of all runs as one table.
fn round_log(plan: &Plan, runs: &[Done], folder: &Path) -> anyhow::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["curve", "seed"].iter().chain(&log::COLUMNS))?;
    for done in runs {
        let cell = &plan.cells[done.place];
        let path = CellFiles::new(folder, done.place).rounds;
        let cannot = || format!("cannot read {}; run with --log-rounds", path.display());
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).from_path(&path).with_context(cannot)?;
        let seed = cell.config.run.seed.to_string();
        for line in reader.records() {
            let line = line.with_context(cannot)?;
            writer.write_record([plan.curves[cell.curve].label.as_str(), &seed].into_iter().chain(&line))?;
        }
    }
    Ok(writer.into_inner()?)
}
