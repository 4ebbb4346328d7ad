//! The progress of a sweep, read from its folder.

use super::freeze::frozen;
use super::progress::Progress;
use super::run_files::RunFiles;
use crate::error::Error;
use crate::events::{EventReader, Study};
use crate::experiment::{Run, Sweep};
use crate::folder::lock::Lock;
use crate::goals::{Cost, Goal, Median, Standing};
use crate::tables::results::{CurveResult, Status, gather, goal_cell};
use serde::Serialize;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The progress of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RunState {
    /// It has ended with all its rounds.
    Done {
        /// Test accuracy at the last evaluation, as a share.
        accuracy: Option<f64>,
        /// Wall-clock time of the process that ended it.
        seconds: f64,
    },
    /// A process computes it.
    Running(Progress),
    /// No process computes it; it may have a checkpoint.
    Waiting {
        /// Whether a checkpoint is there.
        begun: bool,
    },
    /// It has diverged, ended with an error, or its file is damaged.
    Failed {
        /// The error.
        message: String,
    },
}

/// A run and its progress.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunStatus {
    /// Its label in the sweep.
    pub label: String,
    /// Its name in the folder of the runs.
    pub name: String,
    /// T.
    pub rounds: u64,
    /// Its progress.
    #[serde(flatten)]
    pub state: RunState,
}

/// The progress of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SweepStatus {
    /// Runs of the experiment.
    pub of: usize,
    /// Runs that are done.
    pub done: usize,
    /// Runs that a process computes.
    pub running: usize,
    /// Runs that no process computes yet.
    pub waiting: usize,
    /// Runs that have diverged or ended with an error.
    pub failed: usize,
    /// Seconds until all runs are done if the processes of today continue at their pace; none if no process
    /// computes, or if the pace is unknown. The progress bar shows the same estimate.
    pub seconds_left: Option<f64>,
    /// The curve with the highest mean accuracy over its finished runs, and that accuracy.
    pub best: Option<(String, f64)>,
    /// The progress against each goal of the experiment; against the rounds to `run.target` if it has none.
    pub goals: Vec<GoalProgress>,
    /// Every run.
    pub runs: Vec<RunStatus>,
}

/// The progress of a sweep against a goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GoalProgress {
    /// Its name, or its text.
    pub name: String,
    /// Its text.
    pub goal: String,
    /// The curves with a run that has ended, the best first.
    pub curves: Vec<CurveProgress>,
}

/// The progress of a curve against a goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CurveProgress {
    /// Its label.
    pub curve: String,
    /// Of a cost: the median over the runs that have ended, and the number of runs that reached the goal.
    #[serde(flatten)]
    pub median: Option<Median>,
    /// Of a metric: the mean over them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// As a table shows it.
    pub text: String,
}

/// The progress of the ended runs in `folder` against the goals of `sweep`.
fn goals(folder: &Path, sweep: &Sweep) -> Vec<GoalProgress> {
    let ended = |run: &Run| Some(RunFiles::new(folder, &run.spec).read().ok()??.result);
    let runs = sweep.runs.iter().filter_map(|run| Some((run.curve, ended(run)?))).collect();
    let (curves, _) = gather(sweep, &vec![f64::NAN; sweep.curves.len()], runs);
    let own = sweep.experiment.goals().iter().map(|(name, goal)| (name.clone(), goal.clone()));
    let mut goals: Vec<(String, Goal)> = own.collect();
    if goals.is_empty() {
        let target = Goal::target(Cost::Rounds);
        goals.push((target.to_string(), target));
    }
    let progress = |curve: &CurveResult, goal: &Goal| {
        let is_cost = goal.metric().is_none();
        CurveProgress {
            curve: curve.label.clone(),
            median: is_cost.then(|| curve.median(goal)).flatten(),
            mean: (!is_cost).then(|| curve.estimate(goal)).flatten().map(|estimate| estimate.mean),
            text: goal_cell(curve, goal),
        }
    };
    let of = |(name, goal): (String, Goal)| {
        let mut ranked: Vec<(Standing, &CurveResult)> =
            curves.iter().map(|curve| (curve.standing(&goal), curve)).collect();
        ranked.sort_by(|(a, _), (b, _)| a.compare(b));
        let curves = ranked.into_iter().map(|(_, curve)| progress(curve, &goal)).collect();
        GoalProgress { name, goal: goal.to_string(), curves }
    };
    goals.into_iter().map(of).collect()
}

/// The progress of every run of `sweep`, read from `folder`.
pub fn run_states(folder: &Path, sweep: &Sweep) -> Vec<RunStatus> {
    let state = |run: &Run| {
        let files = RunFiles::new(folder, &run.spec);
        let state = match files.read() {
            Ok(Some(stored)) => match stored.result.status {
                Status::Diverged(message) => RunState::Failed { message },
                _ => RunState::Done {
                    accuracy: stored.result.outcome.final_accuracy,
                    seconds: stored.result.seconds,
                },
            },
            _ if Lock::is_held(&files.lock()) => {
                RunState::Running(Progress::read(&files.progress()).unwrap_or_default())
            }
            Err(error) => RunState::Failed { message: error.to_string() },
            Ok(None) => match files.failure() {
                Some(message) => RunState::Failed { message },
                None => RunState::Waiting { begun: files.was_begun() },
            },
        };
        RunStatus { label: sweep.label(run), name: files.name(), rounds: run.spec.run.rounds, state }
    };
    sweep.runs.iter().map(state).collect()
}

/// The progress of the sweep in `folder`. It changes no file and takes no lock.
pub fn status(folder: &Path) -> Result<SweepStatus, Error> {
    let sweep = frozen(folder, &fedlink::parts::Parts::default())?;
    let runs = run_states(folder, &sweep);
    let count = |wanted: fn(&RunState) -> bool| runs.iter().filter(|run| wanted(&run.state)).count();
    let running = count(|state| matches!(state, RunState::Running(_)));
    let mut best: Option<(String, f64)> = None;
    for (index, curve) in sweep.curves.iter().enumerate() {
        let own = sweep.runs.iter().zip(&runs).filter(|(run, _)| run.curve == index);
        let accuracies: Vec<f64> = own
            .filter_map(|(_, run)| match run.state {
                RunState::Done { accuracy, .. } => accuracy,
                _ => None,
            })
            .collect();
        let mean = accuracies.iter().sum::<f64>() / accuracies.len() as f64;
        if !accuracies.is_empty() && best.as_ref().is_none_or(|(_, best)| mean > *best) {
            best = Some((curve.label.clone(), mean));
        }
    }
    Ok(SweepStatus {
        of: runs.len(),
        done: count(|state| matches!(state, RunState::Done { .. })),
        running,
        waiting: count(|state| matches!(state, RunState::Waiting { .. })),
        failed: count(|state| matches!(state, RunState::Failed { .. })),
        seconds_left: if running > 0 { seconds_left(folder)? } else { None },
        best,
        goals: goals(folder, &sweep),
        runs,
    })
}

/// The estimate by the events of the folder.
fn seconds_left(folder: &Path) -> Result<Option<f64>, Error> {
    let (mut study, mut reader) = (Study::default(), EventReader::new(folder));
    loop {
        let lines = reader.read()?;
        if lines.is_empty() {
            break;
        }
        lines.into_iter().for_each(|line| study.apply(line));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
    Ok(study.seconds_left(now))
}
