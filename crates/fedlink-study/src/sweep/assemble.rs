//! From the numbers of all runs to the tables that people and programs read.

use super::data::chance;
use super::log::{LogRounds, check_log};
use super::plan::Plan;
use super::process::differing;
use super::register::read_register;
use super::run_files::RunFiles;
use super::runner::Done;
use super::twice::irreproducible;
use crate::claims::Verdicts;
use crate::error::Error;
use crate::folder::output::OutputFolder;
use crate::summary;
use crate::tables::csv::{distinct_keys, guarded};
use crate::tables::results::{self, CurveResult, Unfinished};
use crate::tables::split::Splits;
use fedlink::base::files;
use std::io::BufReader;
use std::path::Path;

/// The numbers of all runs, put together.
#[non_exhaustive]
pub struct Assembled {
    /// The curves that have at least one run.
    pub curves: Vec<CurveResult>,
    /// The runs that have not ended; no mean mixes them with runs that have.
    pub unfinished: Vec<Unfinished>,
    /// `summary.json`.
    pub summary: String,
    /// The verdicts on the claims.
    pub verdicts: Verdicts,
    /// The splits of the data.
    pub splits: Splits,
    /// The number of runs of the sweep.
    pub of: usize,
    /// The differences between the processes of the runs that may change their numbers.
    pub notes: Vec<String>,
}

impl Assembled {
    /// Puts the runs of a plan together. An interrupted run is not averaged with runs that have ended: it is
    /// shown only if no run of its curve has ended, and no claim is judged by it.
    pub fn new(plan: &Plan, runs: &[Done]) -> Result<Self, Error> {
        let mut splits = Splits::default();
        let mut heterogeneity = Vec::new();
        for curve in &plan.sweep.curves {
            // A custom task has no data set that could be split.
            let dataset = plan.datasets().get(&curve.spec.data.dataset);
            let split = dataset.map(|dataset| splits.add(&curve.label, &curve.spec, dataset)).transpose()?;
            heterogeneity.push(split.unwrap_or(f64::NAN));
        }
        let curve_of = |done: &Done| plan.sweep.runs[done.index].curve;
        let has_ended = |done: &Done| done.result.status.has_ended();
        let by_curve = runs.iter().map(|done| (curve_of(done), done.result.clone())).collect();
        let (curves, unfinished) = results::gather(&plan.sweep, &heterogeneity, by_curve);
        let summary = summary::json(&curves)?;
        let judged = runs.iter().filter(|done| has_ended(done)).map(|done| (curve_of(done), &done.result));
        let verdicts = Verdicts::new(&plan.sweep, |spec| chance(&plan.data, spec), judged)?;
        let notes = differing(runs.iter().map(|done| &done.processes[..]));
        Ok(Self { curves, unfinished, summary, verdicts, splits, of: plan.sweep.runs.len(), notes })
    }

    /// Adds what `folder` notes besides the runs: marks the claims that were added or changed after the first
    /// run, and names the custom parts that are not the same in every run.
    pub fn register(&mut self, plan: &Plan, folder: &Path) -> Result<(), Error> {
        if let Some(register) = read_register(folder)? {
            self.verdicts.register(&register, plan.sweep.experiment.all_claims());
        }
        self.notes.extend(irreproducible(folder)?);
        Ok(())
    }

    /// The text at the end: the table of curves and the verdicts.
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

    /// A line with the runs that have not ended; empty if all have.
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

    /// Writes `results.csv`, `summary.json`, `split.json` and, if there are claims, `claims.json`. The
    /// manifest, which records that the folder is complete, is written last, by
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

/// `rounds.csv` of a sweep.
#[non_exhaustive]
pub struct RoundTable {
    /// Its content.
    pub csv: Vec<u8>,
    /// The number of logs in it.
    pub logs: usize,
    /// The number of logs without a seal: their lines are counted, and their numbers are not vouched for.
    pub unsealed: usize,
}

impl RoundTable {
    /// A sentence about the logs without a seal, if there are any.
    pub fn note(&self) -> Option<String> {
        let Self { logs, unsealed, .. } = self;
        (*unsealed > 0).then(|| {
            format!(
                "logs of rounds that are not sealed: {unsealed} of {logs} (an earlier version began them, or \
                 their runs are not finished); their lines are counted, and their numbers are not checked"
            )
        })
    }
}

impl Plan {
    /// `rounds.csv`: the logs of these runs as one table, each checked against the seal of its run. `curve`,
    /// the swept keys and `seed` precede the columns of a
    /// [transmission](fedlink::record::TRANSMISSION_COLUMNS).
    pub fn round_log(&self, runs: &[Done], folder: &Path, which: LogRounds) -> Result<RoundTable, Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let keys = distinct_keys(self.sweep.curves.iter().map(|curve| &curve.keys));
        let columns = which.columns();
        writer.write_record(
            ["curve"].into_iter().chain(keys.iter().copied()).chain(["seed"]).chain(columns.iter().copied()),
        )?;
        let mut unsealed = 0;
        for done in runs {
            let run = &self.sweep.runs[done.index];
            let files = RunFiles::new(folder, &run.spec);
            let (path, outcome) = (files.rounds(which), &done.result.outcome);
            let stored = done.logs.get(which.ending()).cloned();
            let seal = stored.or_else(|| files.seal_at(which, outcome.rounds));
            unsealed += usize::from(seal.is_none());
            check_log(&path, which, outcome, seal.as_ref())?;
            let file = files::open(&path).map_err(Error::file("read", &path))?;
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(BufReader::new(file));
            let seed = run.spec.run.seed.to_string();
            let curve = &self.sweep.curves[run.curve];
            let own = |key: &&str| curve.keys.iter().find(|(own, _)| own == key);
            let swept = keys.iter().map(|key| own(key).map_or("", |(_, value)| value.as_str()));
            let before: Vec<_> =
                [curve.label.as_str()].into_iter().chain(swept).chain([seed.as_str()]).map(guarded).collect();
            for line in reader.records() {
                let line = line?;
                // A log of version 0.2 has fewer columns.
                let missing = columns.len().saturating_sub(line.len());
                let fields = line.iter().chain(std::iter::repeat_n("", missing));
                writer.write_record(before.iter().map(AsRef::as_ref).chain(fields))?;
            }
        }
        let csv = writer.into_inner().map_err(|error| Error::Table(error.to_string()))?;
        Ok(RoundTable { csv, logs: runs.len(), unsealed })
    }
}
