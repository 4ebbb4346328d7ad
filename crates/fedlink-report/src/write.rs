//! A complete folder of results.

use crate::error::Error;
use crate::report::Report;
use crate::{latex, parquet, plots};
use fedlink_study::output::OutputFolder;
use fedlink_study::sweep::{Assembled, Done, LogRounds, Plan, RoundTable, write_manifest};
use std::time::Duration;

/// The optional files, and the facts about the process that the manifest records.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The kind of `rounds.csv` and `rounds.parquet` to write; the runs must have been logged so.
    pub log_rounds: LogRounds,
    /// Whether to write `results.tex` and `accuracy.tex`.
    pub latex: bool,
    /// Threads that trained.
    pub threads: usize,
    /// Wall-clock time of the runs.
    pub wall: Duration,
}

impl WriteOptions {
    /// Neither `rounds.csv` nor LaTeX.
    pub fn new(threads: usize, wall: Duration) -> Self {
        Self { log_rounds: LogRounds::Off, latex: false, threads, wall }
    }
}

/// Writes everything that `runs` of a plan have to show: `results.csv`, `results.parquet`, `summary.json`,
/// `split.json`, `claims.json`, `plots/`, `report.html`, and last of all `manifest.json`, which records
/// whether the folder is complete.
pub fn write_all(
    plan: &Plan,
    runs: &[Done],
    folder: &OutputFolder,
    options: &WriteOptions,
) -> Result<Assembled, Error> {
    // One process at a time, so that the files of a folder belong together.
    let _lock = folder.lock()?;
    let mut assembled = Assembled::new(plan, runs)?;
    // The logs are checked before anything is written.
    let log = || plan.round_log(runs, folder.path(), options.log_rounds);
    let log = options.log_rounds.is_on().then(log).transpose()?;
    assembled.notes.extend(log.as_ref().and_then(RoundTable::note));
    assembled.register(plan, folder.path())?;
    let (curves, experiment) = (&assembled.curves, &plan.sweep.experiment);
    assembled.write(folder)?;
    folder.write("results.parquet", parquet::write(&parquet::result_columns(curves))?)?;
    if let Some(RoundTable { csv, .. }) = log {
        folder.write("rounds.parquet", parquet::write(&parquet::round_log_columns(&csv)?)?)?;
        folder.write("rounds.csv", csv)?;
    }
    if options.latex {
        folder.write("results.tex", latex::table(curves))?;
        for plots::AccuracyChart { file, chart, curves } in plots::accuracy_charts(&experiment.name, curves) {
            folder.write(&format!("{file}.tex"), latex::plot(&chart, &curves))?;
        }
    }
    plots::write(&experiment.name, curves, &assembled.splits, folder)?;
    let toml = plan.sweep.to_toml().to_owned();
    let mut report = Report::new(&experiment.name, toml, curves, assembled.splits.first());
    report.add_verdicts(&assembled.verdicts);
    let unfinished = assembled.unfinished_text();
    report.notes.extend((!unfinished.is_empty()).then(|| unfinished.trim_end().to_owned()));
    for note in &assembled.notes {
        report.generated_by.extend(["; ", note]);
    }
    folder.write("report.html", report.html())?;
    write_manifest(folder, plan, runs, &assembled.notes, (options.threads, options.wall))?;
    Ok(assembled)
}
