//! The display of runs in progress: bars on a terminal, plain lines elsewhere.

use fedlink::shown::{escaped, one_line};
use fedlink_study::events::{pace, seconds_left};
use fedlink_study::results::Status;
use fedlink_study::sweep::{Event, Observer, Plan, Progress as RunProgress};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most characters of a label.
const LABEL: usize = 200;
/// With more runs than this, only running ones are shown.
const FEW: usize = 8;

/// A run of the display.
struct Lane {
    label: String,
    rounds: u64,
    /// The cost of a round, in any unit.
    cost: f64,
}

/// Progress of all runs.
pub struct Progress {
    lanes: Vec<Lane>,
    /// The lane of each run of the plan.
    lane_of: BTreeMap<usize, usize>,
    view: View,
    state: Mutex<State>,
    width: usize,
    started: Instant,
    /// Cost of all rounds.
    total: f64,
}

enum View {
    Bars { all: MultiProgress, whole: ProgressBar, style: ProgressStyle },
    Lines,
    Nothing,
}

#[derive(Default)]
struct State {
    lanes: Vec<LaneState>,
    ended: usize,
    /// Cost of the rounds done, and of those done before this process began.
    done: f64,
    before: f64,
    /// Runs that were reported as computed by another process.
    waited: BTreeSet<usize>,
    /// Warnings that were printed.
    warned: BTreeSet<String>,
}

#[derive(Clone, Default)]
struct LaneState {
    bar: Option<ProgressBar>,
    rounds: u64,
    tenths: u64,
    accuracy: Option<f64>,
}

/// The steps of the bar of the whole.
const WHOLE: u64 = 10_000;

impl Progress {
    /// Progress of the runs of these indices.
    pub fn new(plan: &Plan, indices: &[usize], quiet: bool) -> Self {
        let lane = |&index: &usize| {
            let run = &plan.sweep.runs[index];
            let rounds = run.spec.run.rounds;
            let label = one_line(&plan.sweep.label(run), LABEL);
            Lane { label, rounds, cost: plan.cost(run) / rounds as f64 }
        };
        let lanes: Vec<Lane> = indices.iter().map(lane).collect();
        let lane_of = indices.iter().enumerate().map(|(lane, &index)| (index, lane)).collect();
        let view = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => View::Nothing,
            (false, false) => View::Lines,
            (false, true) => {
                let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
                let style = |template: &str| {
                    let style = ProgressStyle::with_template(template);
                    style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─")
                };
                let whole =
                    ProgressBar::new(WHOLE).with_style(style("{prefix} {bar:32} {percent:>3} % {msg}"));
                let whole = all.add(whole);
                whole.enable_steady_tick(Duration::from_millis(250));
                View::Bars { all, whole, style: style("{prefix} {bar:32} round {pos:>5}/{len} {msg:>9}") }
            }
        };
        let width = lanes.iter().map(|lane| lane.label.chars().count()).max().unwrap_or(0);
        let total = lanes.iter().map(|lane| lane.cost * lane.rounds as f64).sum();
        let shown = vec![LaneState::default(); lanes.len()];
        let state = State { lanes: shown, ..State::default() };
        Self { lanes, lane_of, view, state: Mutex::new(state), width, started: Instant::now(), total }
    }

    /// Begins the run of a lane, of which `done` rounds are done.
    fn begin(&self, index: usize, done: u64) {
        let mut state = self.lock();
        let lane = &self.lanes[index];
        state.done += lane.cost * done as f64;
        state.before += lane.cost * done as f64;
        let shown = &mut state.lanes[index];
        (shown.rounds, shown.tenths) = (done, done * 10 / lane.rounds);
        if let View::Bars { all, whole, style } = &self.view {
            let bar = all.insert_before(whole, ProgressBar::new(lane.rounds).with_style(style.clone()));
            bar.set_prefix(format!("{:<1$}", lane.label, self.width));
            bar.set_position(done);
            bar.set_message("");
            shown.bar = Some(bar);
        }
    }

    /// Adds a round to the run of a lane, with the accuracy if it was evaluated.
    fn round(&self, index: usize, accuracy: Option<f64>) {
        let mut state = self.lock();
        let lane = &self.lanes[index];
        state.done += lane.cost;
        let shown = &mut state.lanes[index];
        shown.rounds += 1;
        shown.accuracy = accuracy.or(shown.accuracy);
        let percent = shown.accuracy.map(|accuracy| format!("{:.2} %", 100.0 * accuracy));
        match &self.view {
            View::Nothing => {}
            View::Bars { whole, .. } => {
                if let Some(bar) = &shown.bar {
                    bar.set_message(percent.unwrap_or_default());
                    bar.set_position(shown.rounds);
                }
                whole.set_prefix(format!("{:<1$}", "all", self.width));
                whole.set_position((WHOLE as f64 * state.done / self.total) as u64);
                whole.set_message(format!(
                    "{}/{} runs, {}",
                    state.ended,
                    self.lanes.len(),
                    self.left(&state)
                ));
            }
            View::Lines => {
                let tenths = shown.rounds * 10 / lane.rounds;
                if self.lanes.len() <= FEW && tenths > shown.tenths {
                    shown.tenths = tenths;
                    let rounds = shown.rounds;
                    errln!(
                        "{:<width$}  round {rounds:>5}/{}  accuracy {:>8}  {}",
                        lane.label,
                        lane.rounds,
                        percent.unwrap_or_else(|| "–".into()),
                        self.left(&state),
                        width = self.width
                    );
                }
            }
        }
    }

    /// Ends the run of a lane.
    fn end(&self, index: usize, message: Option<&str>) {
        let mut state = self.lock();
        state.ended += 1;
        let shown = state.lanes[index].clone();
        let lane = &self.lanes[index];
        match &self.view {
            View::Nothing => {}
            View::Bars { .. } => match (&shown.bar, message) {
                (Some(bar), Some(message)) => bar.abandon_with_message(message.to_owned()),
                (Some(bar), None) if self.lanes.len() > FEW => bar.finish_and_clear(),
                (Some(bar), None) => bar.finish(),
                (None, _) => {}
            },
            View::Lines => {
                if let Some(message) = message {
                    errln!("{:<1$}  {message}", lane.label, self.width);
                } else if self.lanes.len() > FEW {
                    let percent =
                        shown.accuracy.map_or_else(|| "–".into(), |share| format!("{:.2} %", 100.0 * share));
                    errln!(
                        "{:>5}/{}  {:<width$}  accuracy {percent:>8}  {}",
                        state.ended,
                        self.lanes.len(),
                        lane.label,
                        self.left(&state),
                        width = self.width
                    );
                }
            }
        }
    }

    /// Reports once that the command waits for a run.
    fn wait(&self, run: usize, label: &str, progress: Option<&RunProgress>) {
        if self.lock().waited.insert(run) && !matches!(self.view, View::Nothing) {
            let holder = progress.map_or_else(|| "another process".into(), RunProgress::holder);
            self.note(&format!("{label} is being computed by {holder}; waiting for it"));
        }
    }

    /// Prints a line that must be seen.
    fn note(&self, text: &str) {
        match &self.view {
            View::Bars { all, .. } => {
                let _ = all.println(escaped(text));
            }
            View::Lines | View::Nothing => errln!("{text}"),
        }
    }

    /// `42 s left`, from the time of the rounds so far.
    fn left(&self, state: &State) -> String {
        let pace = pace(state.done - state.before, self.started.elapsed().as_secs_f64());
        let left = || format!("{} left", duration(seconds_left(self.total - state.done, pace)));
        if pace > 0.0 { left() } else { String::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Progress {
    fn observe(&self, event: Event<'_>) {
        let lane = |run: usize| self.lane_of[&run];
        match event {
            Event::Begun { run, rounds_done } => self.begin(lane(run), rounds_done),
            Event::Round { run, record } => {
                self.round(lane(run), record.evaluation.as_ref().map(|evaluation| evaluation.accuracy));
            }
            Event::Warned { warning, .. } => {
                // A file may be read more than once.
                let warning = warning.to_string();
                if self.lock().warned.insert(warning.clone()) {
                    self.note(&warning);
                }
            }
            Event::Waiting { run, label, progress } => self.wait(run, label, progress),
            Event::Finished { run, result } => match &result.status {
                Status::Diverged(message) => self.end(lane(run), Some(message)),
                Status::Interrupted => {}
                Status::Finished => {
                    // The run may have been finished before.
                    self.lock().lanes[lane(run)].accuracy = result.outcome.final_accuracy;
                    self.end(lane(run), None);
                }
            },
            // A failure ends the command, which prints the error.
            _ => {}
        }
    }
}

/// `42 s`, `7 min`, `3.2 h`.
pub fn duration(seconds: f64) -> String {
    match seconds.max(0.0) {
        seconds if seconds < 100.0 => format!("{seconds:.0} s"),
        seconds if seconds < 6000.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}
