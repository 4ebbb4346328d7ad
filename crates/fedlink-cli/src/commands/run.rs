//! `fedlink run`: run an experiment, show its progress, write its results.

use super::{create, out, resume, theory_run};
use crate::args::RunOptions;
use crate::custom::PartLoader;
use crate::failure::Exit;
use crate::interrupt;
use crate::progress::{Progress, duration};
use crate::remedy::Stopped;
use anyhow::bail;
use fedlink_report::chart::cdf;
use fedlink_report::figure::Figure;
use fedlink_report::{WriteOptions, write_all};
use fedlink_study::Error as StudyError;
use fedlink_study::claims::Undecidable;
use fedlink_study::data_folders;
use fedlink_study::experiment::{Experiment, FileKind, Source, Sweep};
use fedlink_study::output::OutputFolder;
use fedlink_study::sweep::{
    FolderState, Forecast, Irreproducible, Plan, RunForecast, RunState, RunStatus, Runner, folder_state,
    forecast, freeze, has_all_runs, make_twice, note_irreproducible, rounds_saved, run_states, unfinished,
};
use fedlink_study::table::table;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The folder of results without `--out`.
const RESULTS: &str = "results";

pub fn run(options: &RunOptions, loader: &dyn PartLoader) -> anyhow::Result<Exit> {
    let parts = loader.load(&options.parts)?;
    let name = options.experiment.as_deref().unwrap_or("demo");
    let source = Source::open(name)?;
    match source.kind() {
        FileKind::Bound => return theory_run::bound(&source, options),
        FileKind::Theorem => return theory_run::theorem(&source, options),
        FileKind::System => {}
    }
    let mut experiment = Experiment::read(&source, &parts)?;
    // `--quick` precedes the settings, which may change the values that it has set.
    if options.quick {
        if !experiment.has_quick() {
            bail!("--quick: {name} has no [quick] section; use --set run.rounds=… instead");
        }
        experiment.apply_quick()?;
    }
    super::apply(&options.settings, |key, value| experiment.set(key, value))?;
    experiment.add_unnamed(&parts)?;
    if let Some(seeds) = options.seeds {
        experiment.set("run.seeds", &seeds.to_string())?;
    }
    simulate(experiment.expand(&parts)?, options)
}

/// Does the runs of a sweep.
fn simulate(sweep: Sweep, options: &RunOptions) -> anyhow::Result<Exit> {
    let started = Instant::now();
    interrupt::listen()?;
    interrupt::quit_until_saving("stopped before the first round; nothing was written".into());
    let target = target(options, &sweep.experiment);
    if options.resumes() {
        // Before the data are loaded, so that a folder of another experiment is refused at once.
        folder_state(&target, &sweep)?;
    } else {
        sweep.check_effects()?;
    }
    let folders = data_folders(options.data_dir.as_deref());
    let plan =
        if options.dry_run { Plan::for_estimate(sweep, &folders)? } else { Plan::new(sweep, &folders)? };
    for name in plan.stand_ins() {
        errln!("note: data set \"{name}\" is not there; the estimate is of generated data of its size");
    }
    print_cautions(&plan, options.tables.quiet);
    let threads = options.threads.map_or_else(default_threads, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let indices = options.share.map_or_else(|| plan.longest_first(), |share| plan.share(share));
    if options.dry_run {
        // A new folder contains nothing to read.
        let states = if target.exists() { run_states(&target, &plan.sweep) } else { Vec::new() };
        let state = |index: usize| states.get(index).map(|status| &status.state);
        let (done, left): (Vec<usize>, Vec<usize>) =
            indices.iter().partition(|&&index| matches!(state(index), Some(RunState::Done { .. })));
        let saved = |index: usize| match state(index) {
            None | Some(RunState::Waiting { begun: false }) => 0,
            _ => rounds_saved(&plan, &target, index),
        };
        let rounds: BTreeMap<usize, u64> = left.iter().map(|&index| (index, saved(index))).collect();
        let loading = started.elapsed().as_secs_f64();
        let forecast = forecast(&plan, &left, &|index| rounds[&index], &pool)?;
        let others = loading + plotting_seconds(plan.sweep.curves.len())?;
        out!("{}", forecast_text(&forecast, &states, &rounds, others))?;
        for Undecidable { name, reason, .. } in plan.sweep.undecidable()? {
            outln!("claim {name:?} cannot be decided: {reason}")?;
        }
        if !done.is_empty() {
            outln!("{} of {} runs are done already in {}", done.len(), indices.len(), target.display())?;
        }
        return Ok(Exit::Done);
    }

    let irreproducible = make_twice(&plan, &indices, &pool)?;
    if !options.nondeterministic {
        Irreproducible::refuse(&irreproducible)?;
    }
    for found in irreproducible.iter().filter(|_| !options.tables.quiet) {
        errln!("note: {found}");
    }
    interrupt::save_first();
    let folder = if options.resumes() {
        super::note_left_aside(&target)?;
        OutputFolder::open(&target).map_err(|error| out(error, " or add"))?
    } else {
        create(&target, options.force)?
    };
    let replaced = folder.replaced().map(Path::to_owned);
    let work = Work {
        plan: &plan,
        indices: &indices,
        pool: &pool,
        target: &target,
        started,
        irreproducible: &irreproducible,
    };
    super::naming(replaced, || work.fill(folder, options))
}

/// The runs of a sweep that are to be done.
struct Work<'a> {
    plan: &'a Plan,
    indices: &'a [usize],
    pool: &'a rayon::ThreadPool,
    target: &'a Path,
    started: Instant,
    /// The runs that were not the same when they were made twice.
    irreproducible: &'a [Irreproducible],
}

impl Work<'_> {
    /// Does the runs and writes the results.
    fn fill(&self, folder: OutputFolder, options: &RunOptions) -> anyhow::Result<Exit> {
        let Self { plan, indices, pool, target, started, irreproducible } = *self;
        if freeze(folder.path(), plan)? == FolderState::Grown && !options.tables.quiet {
            errln!("{} has grown: runs that are there are kept", target.display());
        }
        note_irreproducible(folder.path(), irreproducible)?;
        let progress = Progress::new(plan, indices, options.tables.quiet);
        let mut runner = Runner::new(plan, folder.path(), pool);
        runner.checkpoint_every = options.checkpoint_every.unwrap_or(runner.checkpoint_every);
        runner.log_rounds = options.tables.log_rounds.unwrap_or_default();
        runner.keep_state = options.keep_state;
        (runner.observer, runner.stop) = (&progress, &interrupt::stop_requested);
        let resume = || resume::command(options, target);
        let _page = options.watch.then(|| super::watch::beside(target)).transpose()?;
        let runs = runner.run_logged(indices);
        let runs = runs.map_err(|error| Stopped { error, resume: resume() })?;
        if let Some(share) = options.share {
            let ended = runs.iter().filter(|done| done.result.status.has_ended()).count();
            if !options.tables.quiet {
                outln!(
                    "share {share}: {ended} of {} runs done; `fedlink merge {}` puts all shares together",
                    indices.len(),
                    target.display()
                )?;
            }
            if interrupt::stop_requested() {
                errln!("stopped; resume with `{}`", resume());
                return Ok(Exit::Interrupted);
            }
            return Ok(Exit::Done);
        }
        if runs.is_empty() {
            errln!("stopped before the first round; resume with `{}`", resume());
            return Ok(Exit::Interrupted);
        }
        // Another process may have grown the sweep: then there are more runs to put together.
        let now = match folder_state(target, &plan.sweep) {
            Err(StudyError::OtherExperiment { .. }) if has_all_runs(target, &plan.sweep)? => {
                FolderState::Grown
            }
            Ok(now @ (FolderState::Same | FolderState::Grown)) => now,
            _ => return Err(StudyError::FolderChanged(target.to_owned()).into()),
        };
        if now == FolderState::Grown {
            errln!("{0} has grown meanwhile; `fedlink merge {0}` puts all runs together", target.display());
            return Ok(if interrupt::stop_requested() { Exit::Interrupted } else { Exit::Done });
        }
        let mut write = WriteOptions::new(pool.current_num_threads(), started.elapsed());
        (write.log_rounds, write.latex) =
            (options.tables.log_rounds.unwrap_or_default(), options.tables.latex);
        let assembled = write_all(plan, &runs, &folder, &write)?;
        let exit = Exit::after(&assembled.curves, interrupt::stop_requested());
        // An unfinished run does not remove the folder that it replaces.
        let replaced = folder.replaced().map(Path::to_owned);
        let written = if exit == Exit::Interrupted { target.to_owned() } else { folder.finish()? };
        if exit == Exit::Interrupted {
            let replaced = replaced.map_or_else(String::new, |path| {
                format!("; the folder that it replaces is in {}", path.display())
            });
            errln!("stopped{replaced}; resume with `{}`", resume());
        }
        if options.tables.json {
            out!("{}", assembled.summary)?;
        } else if !options.tables.quiet {
            out!("\n{}", assembled.text())?;
            outln!("\n{} in {:.1} s", written.display(), started.elapsed().as_secs_f64())?;
            outln!("  report.html, plots/, results.csv, summary.json, split.json, config.toml")?;
        }
        Ok(exit)
    }
}

/// Prints the cautions about the settings.
fn print_cautions(plan: &Plan, quiet: bool) {
    for caution in plan.cautions().iter().filter(|_| !quiet) {
        errln!("note: {caution}");
    }
}

/// Plots of a folder of results, and further ones of each curve.
const PLOTS: (usize, usize) = (8, 2);

/// Seconds for the plots of so many curves, by the time that one takes.
fn plotting_seconds(curves: usize) -> anyhow::Result<f64> {
    let values: Vec<f64> = (0..200).map(f64::from).collect();
    let plot = cdf("", "value", &[("a curve".to_owned(), None, values)]);
    // The first one loads fonts.
    plot.png()?;
    let started = Instant::now();
    plot.svg();
    plot.png()?;
    let (all, of_curve) = PLOTS;
    Ok(started.elapsed().as_secs_f64() * (all + of_curve * curves) as f64)
}

/// The text of `--dry-run`; `others` are the seconds for the data and the plots.
fn forecast_text(
    forecast: &Forecast,
    states: &[RunStatus],
    saved: &BTreeMap<usize, u64>,
    others: f64,
) -> String {
    let megabytes = |bytes: u64| format!("{:.0} MB", bytes as f64 / 1e6);
    let row = |run: &RunForecast| {
        vec![
            (run.index + 1).to_string(),
            run.label.clone(),
            match states.get(run.index).map(|status| &status.state) {
                Some(RunState::Running(progress)) => {
                    format!("round {}, {}", progress.round, progress.holder())
                }
                Some(RunState::Waiting { begun: true }) => format!("round {}", saved[&run.index]),
                Some(RunState::Failed { .. }) => "failed".into(),
                _ => "–".into(),
            },
            run.rounds.to_string(),
            run.trained.to_string(),
            duration(run.seconds),
            megabytes(run.bytes),
        ]
    };
    let rows: Vec<Vec<String>> = forecast.runs.iter().map(row).collect();
    format!(
        "{}{} runs, {} at a time on {} threads: about {}, about {} at most (training data {})\n",
        table(&["run", "curve", "so far", "rounds", "devices training", "time", "memory"], &rows),
        rows.len(),
        forecast.at_once,
        forecast.threads,
        duration(forecast.seconds + others),
        megabytes(forecast.peak_bytes),
        megabytes(forecast.data_bytes)
    )
}

/// The folder of the results.
fn target(options: &RunOptions, experiment: &Experiment) -> PathBuf {
    let base = Path::new(RESULTS);
    let resumed = || options.resume.then(|| unfinished(base, &experiment.name)).flatten();
    let free = || OutputFolder::free_name(base, &experiment.name);
    options.out.clone().or_else(resumed).unwrap_or_else(free)
}

pub(super) fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
