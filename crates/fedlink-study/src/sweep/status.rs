//! The progress of a sweep, read from its folder.

use super::freeze::frozen;
use super::progress::Progress;
use super::run_files::RunFiles;
use crate::error::Error;
use crate::experiment::{Run, Sweep};
use crate::folder::lock::Lock;
use crate::goals::{Cost, Goal, Median};
use crate::tables::results::{CurveResult, Status, gather, goal_cell};
use serde::Serialize;
use std::path::Path;

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
    /// Seconds until all runs are done if as many processes continue; none if no process computes, or if the
    /// pace is unknown.
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
    /// The curves with a run that has ended, in the order of the sweep.
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
        let curves = curves.iter().map(|curve| progress(curve, &goal)).collect();
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
        seconds_left: seconds_left(&runs, running),
        best,
        goals: goals(folder, &sweep),
        runs,
    })
}

/// The time of the rounds that are left at the mean pace of the rounds so far, divided by the number of runs
/// at a time.
fn seconds_left(runs: &[RunStatus], running: usize) -> Option<f64> {
    let (mut rounds, mut seconds, mut left) = (0.0, 0.0, 0.0);
    for run in runs {
        match &run.state {
            RunState::Done { seconds: own, .. } => {
                rounds += run.rounds as f64;
                seconds += own;
            }
            RunState::Running(progress) => {
                rounds += progress.round.saturating_sub(progress.from_round) as f64;
                seconds += progress.seconds;
                left += run.rounds.saturating_sub(progress.round) as f64;
            }
            RunState::Waiting { .. } => left += run.rounds as f64,
            RunState::Failed { .. } => {}
        }
    }
    let pace = seconds / rounds;
    (running > 0 && pace.is_finite()).then(|| left * pace / running as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_rounds_left_at_the_pace_so_far_over_the_runs_at_a_time() {
        let run = |rounds, state| RunStatus { label: String::new(), name: String::new(), rounds, state };
        let going = |round, seconds| {
            RunState::Running(Progress { round, from_round: 20, seconds, ..Progress::default() })
        };
        let runs = [
            run(100, RunState::Done { accuracy: None, seconds: 10.0 }),
            run(100, going(60, 4.0)),
            run(100, going(40, 2.0)),
            run(50, RunState::Waiting { begun: true }),
        ];
        // 16 s for 160 rounds; 40 + 60 + 50 are left.
        let left = seconds_left(&runs, 2).unwrap();
        assert!((left - 150.0 * 0.1 / 2.0).abs() < 1e-12, "{left}");
        assert_eq!(seconds_left(&runs[3..], 0), None);
    }
}
