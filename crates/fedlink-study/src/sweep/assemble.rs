//! From the numbers of all runs to the tables that people and programs read.

use super::cell::CellFiles;
use super::log::LogRounds;
use super::maker::mixed;
use super::plan::Plan;
use super::runner::Done;
use crate::error::Error;
use crate::output::OutputFolder;
use crate::results::{self, CurveResult, Unfinished};
use crate::split::Splits;
use crate::summary;
use crate::verdicts::Verdicts;
use fedlink::record::TRANSMISSION_COLUMNS;
use std::path::Path;

/// The numbers of all runs, put together.
#[non_exhaustive]
pub struct Assembled {
    /// The curves that have at least one run.
    pub curves: Vec<CurveResult>,
    /// The runs that have no end; none of them is in a mean that holds one that has.
    pub unfinished: Vec<Unfinished>,
    /// `summary.json`.
    pub summary: String,
    /// What the experiment claims, judged.
    pub verdicts: Verdicts,
    /// How the data were split.
    pub splits: Splits,
    /// How many runs the experiment has.
    pub of: usize,
    /// In what the makers of the runs differ so that their numbers may.
    pub notes: Vec<String>,
}

impl Assembled {
    /// Puts the runs of a plan together. A run that was interrupted is not averaged with those that have
    /// ended: it is shown only where no run of its curve has, and no claim is judged by it.
    pub fn new(plan: &Plan, runs: &[Done]) -> Result<Self, Error> {
        let mut splits = Splits::default();
        let mut heterogeneity = Vec::new();
        for curve in &plan.curves {
            let dataset = &plan.datasets()[&curve.config.data.dataset];
            heterogeneity.push(splits.add(&curve.label, &curve.config, dataset, &plan.parts)?);
        }
        let curve_of = |done: &Done| plan.cells[done.index].curve;
        let has_ended = |done: &Done| done.result.status.has_ended();
        let by_curve = runs.iter().map(|done| (curve_of(done), done.result.clone())).collect();
        let whole = plan.experiment.shortened();
        let (curves, unfinished) = results::gather(&plan.curves, &heterogeneity, whole, by_curve);
        let summary = summary::json(&curves)?;
        let judged = runs.iter().filter(|done| has_ended(done)).map(|done| (curve_of(done), &done.result));
        let verdicts = Verdicts::new(&plan.experiment, &plan.curves, judged)?;
        let notes = mixed(runs.iter().map(|done| &done.makers[..]));
        Ok(Self { curves, unfinished, summary, verdicts, splits, of: plan.cells.len(), notes })
    }

    /// What is shown at the end: the table of curves, and the verdicts.
    pub fn text(&self) -> String {
        let mut text = results::table(&self.curves) + &self.unfinished_text();
        if !self.verdicts.is_empty() {
            text.extend(["\n", &self.verdicts.text()]);
        }
        for note in &self.notes {
            text.extend(["\n", note, "\n"]);
        }
        text
    }

    /// The runs that have not ended, on a line; nothing if all have.
    pub fn unfinished_text(&self) -> String {
        const LISTED: usize = 10;
        let mut names: Vec<String> = self.unfinished.iter().take(LISTED).map(ToString::to_string).collect();
        if self.unfinished.len() > LISTED {
            names.push(format!("{} more", self.unfinished.len() - LISTED));
        }
        if names.is_empty() {
            return String::new();
        }
        let (missing, of) = (self.unfinished.len(), self.of);
        format!("{missing} of {of} runs are missing: {}\n", names.join(", "))
    }

    /// Writes `results.csv`, `summary.json`, `split.json` and, if something is claimed, `claims.json`. The
    /// manifest, which records that the folder is complete, comes last:
    /// [`write_manifest`](super::write_manifest).
    pub fn write(&self, folder: &OutputFolder) -> Result<(), Error> {
        folder.write("results.csv", results::csv(&self.curves)?)?;
        folder.write("summary.json", &self.summary)?;
        self.splits.write(folder)?;
        if !self.verdicts.is_empty() {
            folder.write("claims.json", self.verdicts.json()?)?;
        }
        Ok(())
    }
}

impl Plan {
    /// `rounds.csv`: the logs of these runs, those that `which` names, as one table, `curve`, the swept keys
    /// and `seed` before the columns of a [transmission](TRANSMISSION_COLUMNS).
    pub fn round_log(&self, runs: &[Done], folder: &Path, which: LogRounds) -> Result<Vec<u8>, Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let keys: Vec<&str> = self
            .curves
            .first()
            .map_or_else(Vec::new, |curve| curve.keys.iter().map(|(key, _)| key.as_str()).collect());
        let columns = TRANSMISSION_COLUMNS.iter().map(|column| column.name);
        writer.write_record(["curve"].into_iter().chain(keys).chain(["seed"]).chain(columns))?;
        for done in runs {
            let cell = &self.cells[done.index];
            let path = CellFiles::new(folder, &cell.config).rounds(which);
            let cannot = |_| Error::NoRoundLog(path.clone());
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(&path).map_err(cannot)?;
            let seed = cell.config.run.seed.to_string();
            for line in reader.records() {
                let curve = &self.curves[cell.curve];
                let swept = curve.keys.iter().map(|(_, value)| value.as_str());
                let before = [curve.label.as_str()].into_iter().chain(swept).chain([seed.as_str()]);
                writer.write_record(before.chain(&line.map_err(cannot)?))?;
            }
        }
        writer.into_inner().map_err(|error| Error::Table(error.to_string()))
    }
}
