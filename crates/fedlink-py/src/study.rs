//! Experiments as the `fedlink` command runs them: sweeps, claims, folders.

use crate::config::flat;
use crate::errors::{exception, report_exception};
use crate::parts::{Part, Raised, collect};
use crate::simulation::json;
use crate::table::{Table, rounds};
use fedlink::parts::Parts;
use fedlink::spec::ConfigError;
use fedlink_report::{TheoryOutput, WriteOptions, bound_output, theorem_output, write_all};
use fedlink_study::data_folders;
use fedlink_study::experiment::{ClaimsFile, Experiment, FileKind, Source, Sweep};
use fedlink_study::goals::{Goal, Median, Reading, paired};
use fedlink_study::output::{OutputFolder, check_free, left_aside};
use fedlink_study::results::{CurveResult, RunResult};
use fedlink_study::statistics::{estimate, p_of_mean};
use fedlink_study::sweep::{
    self, Assembled, Event, FolderState, Irreproducible, LogRounds, Observer, Plan, Runner, Share, Verified,
    folder_state, freeze, unfinished,
};
use fedlink_study::theory::{BoundExperiment, TheoremExperiment};
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use toml::Value;

/// The interval at which Ctrl-C and the progress bar are polled.
const PAUSE: Duration = Duration::from_millis(100);

/// The folder of results if none is given.
const RESULTS: &str = "results";

/// The options of an experiment; the keywords of `fedlink.run`.
#[expect(clippy::struct_excessive_bools, reason = "they are switches that are independent of one another")]
struct Options {
    out: Option<PathBuf>,
    seeds: Option<u64>,
    quick: bool,
    resume: bool,
    force: bool,
    share: Option<Share>,
    threads: usize,
    log_rounds: LogRounds,
    nondeterministic: bool,
    keep_state: bool,
    latex: bool,
    checkpoint_every: u64,
    data_dir: Option<PathBuf>,
}

/// The results of an experiment.
#[pyclass(frozen, module = "fedlink._fedlink")]
pub struct StudyOutcome {
    /// The folder of its files.
    #[pyo3(get)]
    folder: PathBuf,
    /// `summary.json`; empty for a share of an experiment.
    #[pyo3(get)]
    summary: String,
    /// The claims with their verdicts as JSON; empty if there are none.
    #[pyo3(get)]
    claims: String,
    /// The text that the command prints.
    #[pyo3(get)]
    text: String,
    /// The curves that have at least one run.
    #[pyo3(get)]
    curves: Vec<Py<StudyCurve>>,
    /// Whether it was stopped before its end.
    #[pyo3(get)]
    stopped: bool,
    /// The same curves for goals.
    results: Vec<CurveResult>,
}

#[pymethods]
impl StudyOutcome {
    /// The value of a goal of every curve, as JSON.
    fn goal(&self, text: &str) -> PyResult<String> {
        let goal = parsed(text)?;
        let values = self.results.iter().map(|curve| GoalOfCurve::new(curve, &goal));
        json(&values.collect::<PyResult<Vec<_>>>()?)
    }

    /// Two curves compared by a goal at the seeds that both have, as JSON. `left` and `right` are indices of
    /// `curves`.
    fn compare(&self, left: usize, right: usize, text: &str) -> PyResult<String> {
        let goal = parsed(text)?;
        let (Some(left), Some(right)) = (self.results.get(left), self.results.get(right)) else {
            return Err(PyValueError::new_err("compare: there are no such curves"));
        };
        let others: BTreeMap<u64, Reading> = right.readings(&goal).into_iter().collect();
        let both = left.readings(&goal).into_iter();
        let pairs: Vec<(Reading, Reading)> =
            both.filter_map(|(seed, reading)| Some((reading, others.get(&seed)?.clone()))).collect();
        let missing = |problem: String| PyValueError::new_err(format!("compare: {goal}: {problem}"));
        if goal.metric().is_none() {
            let compared = paired(&pairs).map_err(missing)?;
            return json(&serde_json::json!({ "seeds": pairs.len(), "cost": compared }));
        }
        let difference = |(left, right): (Reading, Reading)| Ok(left.number()? - right.number()?);
        let differences: Vec<f64> =
            pairs.into_iter().map(difference).collect::<Result<_, String>>().map_err(missing)?;
        let mean = (!differences.is_empty()).then(|| estimate(differences.iter().copied()));
        let known = mean.filter(|mean| mean.half_width.is_finite());
        json(&serde_json::json!({
            "seeds": differences.len(),
            "difference": mean.map(|mean| mean.mean),
            "low": known.map(|mean| mean.mean - mean.half_width),
            "high": known.map(|mean| mean.mean + mean.half_width),
            "p": p_of_mean(differences),
        }))
    }
}

/// The goal of a text.
fn parsed(text: &str) -> PyResult<Goal> {
    text.parse().map_err(|error: ConfigError| exception(fedlink_study::Error::Config(error)))
}

/// A curve's value of a goal.
#[derive(serde::Serialize)]
struct GoalOfCurve {
    curve: String,
    /// The number of each seed; null where the goal was not reached.
    seeds: BTreeMap<u64, Option<f64>>,
    /// The cost up to which each seed that did not reach the goal is known.
    beyond: BTreeMap<u64, f64>,
    /// Of a cost.
    median: Option<Median>,
    /// Of a metric: mean and ends of its interval.
    mean: Option<(f64, Option<f64>, Option<f64>)>,
}

impl GoalOfCurve {
    /// It is an error if a seed has no number, with the reason.
    fn new(curve: &CurveResult, goal: &Goal) -> PyResult<Self> {
        let readings = curve.readings(goal);
        if let Some((seed, reason)) = readings.iter().find_map(|(seed, reading)| match reading {
            Reading::Missing(reason) => Some((seed, reason)),
            _ => None,
        }) {
            let problem = format!("goal: {goal}: {} seed {seed}: {reason}", curve.label);
            return Err(PyValueError::new_err(problem));
        }
        let seeds = readings.iter().map(|(seed, reading)| (*seed, reading.clone().number().ok())).collect();
        let beyond = readings.iter().filter_map(|(seed, reading)| match reading {
            Reading::Beyond(cost) => Some((*seed, *cost)),
            _ => None,
        });
        let is_cost = goal.metric().is_none();
        let mean = (!is_cost).then(|| curve.estimate(goal)).flatten().map(|estimate| {
            let known = estimate.half_width.is_finite();
            let end = |end: f64| known.then_some(end);
            (
                estimate.mean,
                end(estimate.mean - estimate.half_width),
                end(estimate.mean + estimate.half_width),
            )
        });
        Ok(Self {
            curve: curve.label.clone(),
            seeds,
            beyond: beyond.collect(),
            median: is_cost.then(|| curve.median(goal)).flatten(),
            mean,
        })
    }
}

/// One curve of an experiment.
#[pyclass(frozen, get_all, module = "fedlink._fedlink")]
pub struct StudyCurve {
    /// The settings that distinguish it from the other curves.
    label: String,
    /// Its value of every swept key.
    keys: Vec<(String, String)>,
    /// Its configuration at the first seed as JSON.
    config: String,
    /// One for each seed.
    runs: Vec<Py<StudyRun>>,
}

/// One seed of a curve.
#[pyclass(frozen, get_all, module = "fedlink._fedlink")]
pub struct StudyRun {
    /// `run.seed` of this run.
    seed: u64,
    /// "finished", "interrupted" or "diverged".
    status: &'static str,
    /// The run in numbers as JSON.
    outcome: String,
    /// One row for each evaluated round.
    rounds: Py<Table>,
}

/// The state of a sweep while it runs.
#[derive(Default)]
pub struct Watch {
    pub total: AtomicU64,
    pub done: AtomicU64,
    pub stop: AtomicBool,
    /// Warnings that Python has not shown yet.
    warnings: Mutex<Vec<String>>,
}

impl Watch {
    fn warn(&self, warning: String) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }

    /// Warns, in the name of the caller of `fedlink.run`. It is an error if warnings are made errors there.
    fn show_warnings(&self, py: Python<'_>) -> PyResult<()> {
        let warnings = mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner));
        let category = py.get_type::<PyRuntimeWarning>();
        let warn = |text: String| PyErr::warn(py, &category, &CString::new(text.replace('\0', "␀"))?, 2);
        warnings.into_iter().try_for_each(warn)
    }
}

impl Observer for Watch {
    fn observe(&self, event: Event<'_>) {
        match event {
            Event::Begun { rounds_done, .. } => {
                self.done.fetch_add(rounds_done, Ordering::SeqCst);
            }
            Event::Round { .. } => {
                self.done.fetch_add(1, Ordering::SeqCst);
            }
            Event::Warned { warning, .. } => self.warn(warning.to_string()),
            _ => {}
        }
    }
}

/// The results of a sweep or of a figure of the bound.
struct Ended {
    folder: PathBuf,
    summary: String,
    claims: String,
    text: String,
    curves: Vec<CurveResult>,
    stopped: bool,
}

/// Runs an experiment: `name` is a preset or the name of `text`. `progress` is called with the number of
/// rounds that are done and the number of all.
#[pyfunction]
#[pyo3(signature = (
    name, text, settings, chosen, parts, *, out, seeds, quick, resume, force, share, threads, log_rounds,
    nondeterministic, keep_state, latex, checkpoint_every, data_dir, progress
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
#[expect(clippy::fn_params_excessive_bools, reason = "they are switches that are independent of one another")]
pub fn run(
    py: Python<'_>,
    name: &str,
    text: Option<&str>,
    settings: &Bound<'_, PyDict>,
    chosen: &Bound<'_, PyDict>,
    parts: Vec<Part<'_>>,
    out: Option<PathBuf>,
    seeds: Option<u64>,
    quick: bool,
    resume: bool,
    force: bool,
    share: Option<&str>,
    threads: Option<usize>,
    log_rounds: &Bound<'_, PyAny>,
    nondeterministic: bool,
    keep_state: bool,
    latex: bool,
    checkpoint_every: u64,
    data_dir: Option<PathBuf>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<StudyOutcome> {
    let raised = Raised::default();
    let parts = collect(parts, &raised)?;
    let (settings, chosen) = (flat(settings)?, flat(chosen)?);
    let share = share.map(str::parse::<Share>).transpose();
    let share = share.map_err(|error| PyValueError::new_err(format!("share: {error}")))?;
    if resume && force {
        return Err(PyValueError::new_err("resume, force: give one of them"));
    }
    if share.is_some() && (out.is_none() || force) {
        return Err(PyValueError::new_err(
            "share: give out=, the folder that all shares write to, and no force=",
        ));
    }
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let options = Options {
        out,
        seeds,
        quick,
        resume: resume || share.is_some(),
        force,
        share,
        threads: threads.clamp(1, 1024),
        log_rounds: logged(log_rounds)?,
        nondeterministic,
        keep_state,
        latex,
        checkpoint_every,
        data_dir,
    };
    let watch = Watch::default();
    let work = || {
        let source = source(name, text)?;
        match source.kind() {
            FileKind::System => {
                simulate(prepared(&source, [&settings, &chosen], &options, &parts)?, &options, &watch)
            }
            FileKind::Bound => bound(&source, &settings, &options),
            FileKind::Theorem => theorem(&source, &settings, &options),
        }
    };
    let ended = watched(py, work, &watch, progress)?.map_err(|error| raised.or(error))?;
    if let Some(error) = raised.take() {
        return Err(error);
    }
    outcome(py, ended)
}

/// The text of an experiment: `text`, with the name `name`, or the preset or file `name`.
pub fn source(name: &str, text: Option<&str>) -> PyResult<Source> {
    let Some(text) = text else { return Source::open(name).map_err(exception) };
    let stem = Path::new(name).file_stem();
    let stem = stem.map_or_else(|| name.into(), |stem| stem.to_string_lossy().into_owned());
    Ok(Source { name: stem, ..Source::of_text(name, text) })
}

/// The curves and runs of an experiment with its settings.
fn prepared(
    source: &Source,
    [settings, chosen]: [&[(String, Value)]; 2],
    options: &Options,
    parts: &Parts,
) -> PyResult<Sweep> {
    let mut experiment = Experiment::read(source, parts).map_err(exception)?;
    if options.quick {
        if !experiment.has_quick() {
            return Err(no_quick(source));
        }
        experiment.apply_quick().map_err(exception)?;
    }
    for (key, value) in settings {
        experiment.set_value(key, value.clone()).map_err(exception)?;
    }
    // Data, a split, a fading law and a task that were given as such hold for every curve.
    for (key, value) in chosen {
        experiment.set_value(key, value.clone()).map_err(exception)?;
    }
    let is_chosen = |key: &str| chosen.iter().any(|(given, _)| given == key);
    experiment.add_unnamed_but(parts, is_chosen).map_err(exception)?;
    if let Some(seeds) = options.seeds {
        experiment.set("run.seeds", &seeds.to_string()).map_err(exception)?;
    }
    experiment.expand(parts).map_err(exception)
}

/// The refusal of `quick=True`.
fn no_quick(source: &Source) -> PyErr {
    PyValueError::new_err(format!("quick: {} has no [quick] section", source.given))
}

/// Refuses a task that is one object for several runs: each would begin with what the last one left in it.
fn check_object(sweep: &Sweep) -> PyResult<()> {
    let (parts, runs) = (&sweep.parts, sweep.runs.len());
    let is_object = |name: &str| parts.has_task(name) && parts.ignores_seed(name);
    if runs < 2 || !sweep.curves.iter().any(|curve| is_object(&curve.spec.data.dataset)) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "task: this experiment has {runs} runs, and one object would serve them all; give its class, or a \
         function that makes a new object for each run (task=lambda seed: …)"
    )))
}

/// Does the runs of a sweep.
fn simulate(sweep: Sweep, options: &Options, watch: &Watch) -> PyResult<Ended> {
    let started = Instant::now();
    check_object(&sweep)?;
    let base = Path::new(RESULTS);
    let name = &sweep.experiment.name;
    let resumed = || options.resume.then(|| unfinished(base, name)).flatten();
    let target = options.out.clone().or_else(resumed).unwrap_or_else(|| OutputFolder::free_name(base, name));
    if options.resume {
        // Before the data are loaded, so that a folder of another experiment is refused at once.
        folder_state(&target, &sweep).map_err(exception)?;
    } else {
        sweep.check_effects().map_err(exception)?;
    }
    let plan = Plan::new(sweep, &data_folders(options.data_dir.as_deref())).map_err(exception)?;
    plan.cautions().into_iter().for_each(|caution| watch.warn(caution));
    let pool = pool(options.threads)?;
    let indices = options.share.map_or_else(|| plan.longest_first(), |share| plan.share(share));
    let irreproducible = sweep::make_twice(&plan, &indices, &pool).map_err(exception)?;
    if !options.nondeterministic {
        Irreproducible::refuse(&irreproducible).map_err(exception)?;
    }
    irreproducible.iter().for_each(|found| watch.warn(found.to_string()));
    for path in left_aside(&target).map_err(exception)? {
        watch.warn(format!(
            "{} holds results that an unfinished run with force=True set aside",
            path.display()
        ));
    }
    let folder = if options.resume {
        OutputFolder::open(&target).map_err(exception)?
    } else {
        create(&target, options.force)?
    };
    freeze(folder.path(), &plan).map_err(exception)?;
    sweep::note_irreproducible(folder.path(), &irreproducible).map_err(exception)?;
    let rounds = indices.iter().map(|&index| plan.sweep.runs[index].spec.run.rounds).sum();
    watch.total.store(rounds, Ordering::SeqCst);
    let stop = || watch.stop.load(Ordering::SeqCst);
    let mut runner = Runner::new(&plan, folder.path(), &pool);
    runner.checkpoint_every = options.checkpoint_every;
    runner.log_rounds = options.log_rounds;
    runner.keep_state = options.keep_state;
    (runner.observer, runner.stop) = (watch, &stop);
    // If the runs fail, the results that `force=True` replaces are not lost, and a warning names their place.
    let runs = runner.run_logged(&indices).map_err(|error| {
        let aside = folder
            .replaced()
            .map(|path| format!("the results that force=True replaces are in {}", path.display()));
        aside.into_iter().for_each(|note| watch.warn(note));
        exception(error)
    })?;
    let stopped = watch.stop.load(Ordering::SeqCst);
    // Another process may have grown the sweep, and has more to put together.
    let grown = folder_state(&target, &plan.sweep).ok() != Some(FolderState::Same);
    if grown && !sweep::has_all_runs(&target, &plan.sweep).unwrap_or(false) {
        return Err(exception(fedlink_study::Error::FolderChanged(target)));
    }
    if options.share.is_some() || runs.is_empty() || grown {
        let (summary, claims, text) = Default::default();
        return Ok(Ended { folder: target, summary, claims, text, curves: Vec::new(), stopped });
    }
    let mut write = WriteOptions::new(options.threads, started.elapsed());
    (write.log_rounds, write.latex) = (options.log_rounds, options.latex);
    let assembled = write_all(&plan, &runs, &folder, &write).map_err(report_exception)?;
    // An unfinished run does not discard the results that it would replace.
    let path = if stopped { target } else { folder.finish().map_err(exception)? };
    ended(assembled, path, stopped)
}

/// The numbers of all runs for Python.
fn ended(assembled: Assembled, folder: PathBuf, stopped: bool) -> PyResult<Ended> {
    let text = assembled.text();
    let none = assembled.verdicts.is_empty();
    let claims = if none { String::new() } else { assembled.verdicts.json().map_err(exception)? };
    Ok(Ended { folder, summary: assembled.summary, claims, text, curves: assembled.curves, stopped })
}

/// Computes a figure of the bound.
fn bound(source: &Source, settings: &[(String, Value)], options: &Options) -> PyResult<Ended> {
    let mut experiment = BoundExperiment::read(source).map_err(exception)?;
    for (key, value) in settings {
        experiment.set(key, &value.to_string()).map_err(exception)?;
    }
    options.seeds.map_or(Ok(()), |draws| experiment.set_seeds(draws)).map_err(exception)?;
    theory(source, options, || {
        let (panels, verdicts) = experiment.run().map_err(exception)?;
        let output = bound_output(&experiment, &panels, &verdicts).map_err(report_exception)?;
        let none = verdicts.is_empty();
        Ok((output, if none { String::new() } else { verdicts.json().map_err(exception)? }))
    })
}

/// Checks the theorem.
fn theorem(source: &Source, settings: &[(String, Value)], options: &Options) -> PyResult<Ended> {
    let mut experiment = TheoremExperiment::read(source).map_err(exception)?;
    for (key, value) in settings {
        experiment.set(key, &value.to_string()).map_err(exception)?;
    }
    options.seeds.map_or(Ok(()), |seeds| experiment.set_seeds(seeds)).map_err(exception)?;
    let folders = data_folders(options.data_dir.as_deref());
    theory(source, options, || {
        let results = experiment.run(&folders).map_err(exception)?;
        Ok((theorem_output(&experiment, &results).map_err(report_exception)?, String::new()))
    })
}

/// Writes the output that `work` computes, with its claims.
fn theory(
    source: &Source,
    options: &Options,
    work: impl FnOnce() -> PyResult<(TheoryOutput, String)> + Send,
) -> PyResult<Ended> {
    if options.quick {
        return Err(no_quick(source));
    }
    let pointless = [
        ("resume", options.resume),
        ("share", options.share.is_some()),
        ("log_rounds", options.log_rounds.is_on()),
        ("keep_state", options.keep_state),
        ("latex", options.latex),
    ];
    if let Some((keyword, _)) = pointless.into_iter().find(|(_, given)| *given) {
        let problem = "is for simulations; this experiment is computed in one step, so leave it out";
        return Err(PyValueError::new_err(format!("{keyword}: {problem}")));
    }
    let free = || OutputFolder::free_name(Path::new(RESULTS), &source.name);
    let target = options.out.clone().unwrap_or_else(free);
    check_free(&target, options.force).map_err(exists)?;
    let (output, claims) = pool(options.threads)?.install(work)?;
    // Everything is computed: an error before this point leaves nothing behind.
    let folder = create(&target, options.force)?;
    output.write(&folder).map_err(report_exception)?;
    let folder = folder.finish().map_err(exception)?;
    Ok(Ended {
        folder,
        summary: output.summary,
        claims,
        text: output.text,
        curves: Vec::new(),
        stopped: false,
    })
}

/// The value of `log_rounds=`: True, False or "all".
fn logged(value: &Bound<'_, PyAny>) -> PyResult<LogRounds> {
    if let Ok(on) = value.extract::<bool>() {
        return Ok(if on { LogRounds::Sent } else { LogRounds::Off });
    }
    match value.extract::<String>() {
        Ok(word) if word == "all" => Ok(LogRounds::All),
        _ => Err(PyValueError::new_err("log_rounds: must be True, False or \"all\"")),
    }
}

/// The experiment of a folder with all its finished runs, written anew.
#[pyfunction]
#[pyo3(signature = (folder, parts, *, partial, log_rounds, latex, data_dir))]
pub fn merge(
    py: Python<'_>,
    folder: PathBuf,
    parts: Vec<Part<'_>>,
    partial: bool,
    log_rounds: &Bound<'_, PyAny>,
    latex: bool,
    data_dir: Option<PathBuf>,
) -> PyResult<StudyOutcome> {
    let raised = Raised::default();
    let parts = collect(parts, &raised)?;
    let log_rounds = logged(log_rounds)?;
    let work = || {
        let started = Instant::now();
        let data = data_folders(data_dir.as_deref());
        let (plan, runs) = sweep::merge(&folder, &data, partial, &parts).map_err(exception)?;
        let open = OutputFolder::open(&folder).map_err(exception)?;
        let mut write = WriteOptions::new(1, started.elapsed());
        (write.log_rounds, write.latex) = (log_rounds, latex);
        let assembled = write_all(&plan, &runs, &open, &write).map_err(report_exception)?;
        ended(assembled, folder.clone(), false)
    };
    let ended = py.detach(work).map_err(|error| raised.or(error))?;
    outcome(py, ended)
}

/// The result of [`verify`]: the claims with their verdicts as JSON and as text, and the number of missing
/// runs; without claims they are empty.
type Judged = (String, String, usize);

/// The claims of the experiment in `folder`, or those of another, judged by the runs that are there. Claims
/// may be missing if `silent`.
#[pyfunction]
#[pyo3(signature = (folder, claims = None, text = None, *, silent = false))]
pub fn verify(
    py: Python<'_>,
    folder: PathBuf,
    claims: Option<&str>,
    text: Option<&str>,
    silent: bool,
) -> PyResult<Judged> {
    py.detach(|| {
        let claims = match (claims, text) {
            (None, _) => None,
            (Some(name), Some(text)) => Some(ClaimsFile::parse(name, text).map_err(exception)?),
            (Some(name), None) => Some(ClaimsFile::open(name).map_err(exception)?),
        };
        match sweep::verify(&folder, claims.as_ref()) {
            Ok(Verified { verdicts, missing, .. }) => {
                Ok((verdicts.json().map_err(exception)?, verdicts.text(), missing))
            }
            Err(fedlink_study::Error::ClaimsNothing(_)) if silent => Ok(("{}".into(), String::new(), 0)),
            Err(error) => Err(exception(error)),
        }
    })
}

/// A run that was made again: its name in the folder of the runs, its label, the stored digest, and if they
/// differ the new digest and the processes behind each.
type Again = (String, String, String, Option<(String, String, String)>);

/// Makes `count` runs of the experiment in `folder` again, chosen by `seed`.
#[pyfunction]
#[pyo3(signature = (folder, parts, *, count, seed, threads, data_dir))]
pub fn rerun(
    py: Python<'_>,
    folder: PathBuf,
    parts: Vec<Part<'_>>,
    count: usize,
    seed: u64,
    threads: Option<usize>,
    data_dir: Option<PathBuf>,
) -> PyResult<Vec<Again>> {
    let raised = Raised::default();
    let parts = collect(parts, &raised)?;
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let watch = Watch::default();
    let work = || {
        let data = data_folders(data_dir.as_deref());
        let mut each = |_: &sweep::Rerun| !watch.stop.load(Ordering::SeqCst);
        let pool = pool(threads.clamp(1, 1024))?;
        sweep::rerun(&folder, &data, &parts, count, seed, &pool, &mut each).map_err(exception)
    };
    let reruns = watched(py, work, &watch, None)?.map_err(|error| raised.or(error))?;
    if let Some(error) = raised.take() {
        return Err(error);
    }
    if watch.stop.load(Ordering::SeqCst) {
        return Err(pyo3::exceptions::PyKeyboardInterrupt::new_err("stopped"));
    }
    let again = |rerun: sweep::Rerun| {
        let other = rerun.difference.map(|other| (other.repeated, other.stored_by, other.repeated_by));
        (rerun.name, rerun.label, rerun.stored, other)
    };
    Ok(reruns.into_iter().map(again).collect())
}

/// The findings about the contract of the part `name`; none: it keeps it.
#[pyfunction]
pub fn check(
    py: Python<'_>,
    parts: Vec<Part<'_>>,
    name: &str,
    own: &Bound<'_, PyDict>,
) -> PyResult<Vec<String>> {
    let raised = Raised::default();
    let parts = collect(parts, &raised)?;
    let own = flat(own)?.into_iter().collect();
    // An exception in a call is a finding; one while the part was made is not.
    let work = || sweep::check_part(&parts, name, &own, &pool(1)?).map_err(exception);
    py.detach(work).map_err(|error| raised.or(error))
}

/// The progress of the runs in `folder`, as JSON.
/// Test accuracy by round as an SVG element.
#[pyfunction]
pub fn accuracy_svg(points: Vec<(f64, f64)>) -> String {
    fedlink_report::report::accuracy_svg(points)
}

#[pyfunction]
pub fn status(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    let status = py.detach(|| sweep::status(&folder)).map_err(exception)?;
    json(&status)
}

/// Does `work` on another thread; this one polls Ctrl-C, warnings and progress.
pub fn watched<R: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> R + Send,
    watch: &Watch,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<R> {
    let (send, receive) = channel();
    let receive = Mutex::new(receive);
    std::thread::scope(|scope| {
        scope.spawn(move || send.send(work()));
        let mut failure = None;
        loop {
            let received =
                py.detach(|| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PAUSE));
            let notify = || -> PyResult<()> {
                watch.show_warnings(py)?;
                let (done, total) = (watch.done.load(Ordering::SeqCst), watch.total.load(Ordering::SeqCst));
                progress.map_or(Ok(()), |progress| progress.call1((done, total)).map(drop))
            };
            match received {
                Ok(result) => {
                    notify()?;
                    return failure.map_or(Ok(result), Err);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("the sweep ended without a result"));
                }
                Err(RecvTimeoutError::Timeout) => {
                    // The first Ctrl-C saves and stops; the caller finds it in `stopped`.
                    if py.check_signals().is_err() {
                        watch.stop.store(true, Ordering::SeqCst);
                    }
                    if failure.is_none()
                        && let Err(error) = notify()
                    {
                        watch.stop.store(true, Ordering::SeqCst);
                        failure = Some(error);
                    }
                }
            }
        }
    })
}

fn outcome(py: Python<'_>, ended: Ended) -> PyResult<StudyOutcome> {
    let run = |run: &RunResult| {
        let rounds = Py::new(py, rounds(&run.rows)?)?;
        Py::new(
            py,
            StudyRun { seed: run.seed, status: run.status.name(), outcome: json(&run.outcome)?, rounds },
        )
    };
    let curve = |curve: &CurveResult| {
        let runs = curve.runs.iter().map(run).collect::<PyResult<_>>()?;
        let config = json(&curve.spec.resolved())?;
        Py::new(py, StudyCurve { label: curve.label.clone(), keys: curve.keys.clone(), config, runs })
    };
    let curves = ended.curves.iter().map(curve).collect::<PyResult<_>>()?;
    let Ended { folder, summary, claims, text, stopped, curves: results } = ended;
    Ok(StudyOutcome { folder, summary, claims, text, curves, stopped, results })
}

pub fn create(target: &Path, force: bool) -> PyResult<OutputFolder> {
    OutputFolder::create(target, force).map_err(exists)
}

/// The exception for a folder that is there already.
fn exists(error: fedlink_study::Error) -> PyErr {
    match error {
        error @ fedlink_study::Error::Exists(_) => pyo3::exceptions::PyFileExistsError::new_err(format!(
            "out: {error}; give another folder, resume=True to resume it, or force=True to replace it"
        )),
        other => exception(other),
    }
}

pub fn pool(threads: usize) -> PyResult<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
