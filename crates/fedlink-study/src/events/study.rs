//! The state of a study, replayed from its events.

use super::event::{Event, GroupUse, Head, Line, Quantities, RunFacts};
use crate::goals::Goal;
use fedlink::record::Row;
use std::collections::BTreeMap;

/// Seconds without an event after which a process is taken for dead, unless its own events have been further
/// apart.
const SILENCE: f64 = 120.0;
/// The most messages of one kind that are kept.
const MAX_MESSAGES: usize = 2000;

/// The state of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum State {
    /// It has not begun.
    #[default]
    Waiting,
    /// The process of this name computes it.
    Running(String),
    /// It has all its rounds.
    Done,
    /// It was stopped and can be resumed.
    Stopped,
    /// It has diverged, or ended with this error.
    Failed(String),
}

/// A run of a study.
#[derive(Clone, Debug, Default)]
pub struct WatchedRun {
    /// Its configuration.
    pub facts: RunFacts,
    /// Its state.
    pub state: State,
    /// The rounds that are done.
    pub round: u64,
    /// Its evaluations, by their rounds.
    pub rows: Vec<Row>,
    /// Channel symbols used until each evaluation; empty if they are unknown.
    pub symbols: Vec<f64>,
    /// Wall-clock seconds of the process that ended it.
    pub seconds: f64,
    /// The use of the groups of devices, when it has ended.
    pub groups: Vec<GroupUse>,
}

/// A process that works in the folder, or has.
#[derive(Clone, Debug, Default)]
pub struct WatchedProcess {
    /// The time of its first event.
    pub first: f64,
    /// The time of its last event.
    pub last: f64,
    /// The longest time between two of its events.
    gap: f64,
    /// The work that it has done.
    work: f64,
    /// Whether it has ended its work.
    pub closed: bool,
}

/// A candidate that left a race.
#[derive(Clone, Debug)]
pub struct Message {
    /// The stage.
    pub stage: String,
    /// The settings of the candidate.
    pub candidate: String,
    /// The reason.
    pub reason: String,
    /// Of a candidate that was dropped, whether that is proven.
    pub proven: bool,
}

/// A study: the state after the events of a folder.
#[derive(Clone, Debug, Default)]
pub struct Study {
    /// Its name.
    pub name: String,
    /// `sweep` or `plan`.
    pub kind: String,
    /// Its subject.
    pub head: Head,
    /// The goals by which its curves are ranked, by name.
    pub goals: Vec<(String, Goal)>,
    /// The runs that it has, as far as it is known.
    pub known_runs: usize,
    /// Its runs, in the order in which they became known.
    pub runs: Vec<WatchedRun>,
    /// Its processes, by name.
    pub processes: BTreeMap<String, WatchedProcess>,
    /// The stages of a race: name and text.
    pub stages: Vec<(String, String)>,
    /// The candidates that left a race.
    pub dropped: Vec<Message>,
    /// The choices of a race.
    pub decided: Vec<Message>,
    /// The time of the first event.
    pub first: f64,
    /// The time of the last event.
    pub last: f64,
    /// The state with which the last process ended its work.
    pub closed: Option<String>,
    index: BTreeMap<String, usize>,
}

impl Study {
    /// The study after one more event. An event may come twice, and late.
    pub fn apply(&mut self, line: Line) {
        let Line { time, process, event } = line;
        if !time.is_finite() {
            return;
        }
        self.first = if self.first == 0.0 { time } else { self.first.min(time) };
        self.last = self.last.max(time);
        let own = self.processes.entry(process.clone()).or_default();
        if own.first == 0.0 {
            (own.first, own.last) = (time, time);
        }
        own.gap = own.gap.max(time - own.last);
        own.last = own.last.max(time);
        own.closed = matches!(event, Event::Closed { .. });
        if !matches!(event, Event::Closed { .. }) {
            self.closed = None;
        }
        match event {
            Event::Opened { study, kind, runs, goal } => {
                (self.name, self.kind) = (study, kind);
                self.known_runs = self.known_runs.max(runs);
                let goal = goal.and_then(|text| Some((text.clone(), text.parse().ok()?)));
                if self.goals.is_empty() {
                    self.goals.extend(goal);
                }
            }
            Event::Described(head) => {
                let goals = head.goals.iter();
                let goals: Vec<(String, Goal)> =
                    goals.filter_map(|(name, text)| Some((name.clone(), text.parse().ok()?))).collect();
                if !goals.is_empty() {
                    self.goals = goals;
                }
                self.head = head;
            }
            Event::Planned(facts) => {
                let run = self.run(&facts.run);
                run.facts = facts;
            }
            Event::Begun { run, label, seed, rounds, rounds_done } => {
                let own = self.run(&run);
                if own.facts.label.is_empty() {
                    let curve = label.strip_suffix(&format!(" seed {seed}")).unwrap_or(&label).to_owned();
                    own.facts =
                        RunFacts { run, label, curve, seed, rounds, cost: 1.0, ..RunFacts::default() };
                }
                own.facts.rounds = own.facts.rounds.max(rounds);
                (own.round, own.state) = (rounds_done, State::Running(process));
            }
            Event::Round { run, round } | Event::Checkpointed { run, round } => {
                self.at_round(&run, round, &process);
            }
            Event::Evaluated { run, round, accuracy, quantities } => {
                self.at_round(&run, round, &process);
                self.run(&run).evaluated(round, accuracy, quantities);
            }
            Event::Finished { run, status, rounds, seconds, groups } => {
                self.at_round(&run, rounds, &process);
                let own = self.run(&run);
                own.seconds = seconds;
                own.groups = groups;
                own.state = match status.as_str() {
                    "finished" => State::Done,
                    "interrupted" => State::Stopped,
                    other => State::Failed(other.to_owned()),
                };
            }
            Event::Failed { run, error } => self.run(&run).state = State::Failed(error),
            Event::Stage { stage, text, .. } => push(&mut self.stages, (stage, text)),
            Event::Dropped { stage, candidate, reason, proven } => {
                push(&mut self.dropped, Message { stage, candidate, reason, proven });
            }
            Event::Decided { stage, candidate, reason } => {
                push(&mut self.decided, Message { stage, candidate, reason, proven: true });
            }
            Event::Closed { state } => self.closed = Some(state),
            Event::Unknown => {}
        }
    }

    /// The run of this name, which is added if it is new.
    fn run(&mut self, name: &str) -> &mut WatchedRun {
        let next = self.runs.len();
        let index = *self.index.entry(name.to_owned()).or_insert(next);
        if index == next {
            self.runs.push(WatchedRun::default());
        }
        &mut self.runs[index]
    }

    /// Counts the work of a run up to a round.
    fn at_round(&mut self, name: &str, round: u64, process: &str) {
        let run = self.run(name);
        let done = round.saturating_sub(run.round) as f64 * run.facts.cost;
        run.round = run.round.max(round);
        if let Some(process) = self.processes.get_mut(process) {
            process.work += done;
        }
    }

    /// The runs of each curve, in the order in which the curves became known.
    pub fn curves(&self) -> Vec<(&str, Vec<&WatchedRun>)> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let mut curves: Vec<(&str, Vec<&WatchedRun>)> = Vec::new();
        for run in &self.runs {
            let label = run.facts.curve.as_str();
            let place = *places.entry(label).or_insert(curves.len());
            if place == curves.len() {
                curves.push((label, Vec::new()));
            }
            curves[place].1.push(run);
        }
        curves
    }

    /// Whether the process of this name works now.
    pub fn is_alive(&self, process: &str, now: f64) -> bool {
        let silence = |own: &WatchedProcess| SILENCE.max(3.0 * own.gap);
        self.processes.get(process).is_some_and(|own| !own.closed && now - own.last <= silence(own))
    }

    /// Seconds until all known runs are done if the processes that work now continue at the pace that they
    /// have had; none if no process works, or if the pace is unknown.
    pub fn seconds_left(&self, now: f64) -> Option<f64> {
        let left = |run: &WatchedRun| match run.state {
            State::Done | State::Failed(_) => 0.0,
            _ => run.facts.rounds.saturating_sub(run.round) as f64 * run.facts.cost,
        };
        let left: f64 = self.runs.iter().map(left).sum();
        let alive = self.processes.iter().filter(|(name, _)| self.is_alive(name, now));
        let pace: f64 = alive.map(|(_, own)| pace(own.work, own.last - own.first)).sum();
        (pace > 0.0).then(|| seconds_left(left, pace))
    }
}

/// The work of a process per second; 0 if it is unknown.
pub fn pace(work: f64, seconds: f64) -> f64 {
    if work > 0.0 && seconds > 0.0 { work / seconds } else { 0.0 }
}

/// Seconds for the work that is left at a pace.
pub fn seconds_left(left: f64, pace: f64) -> f64 {
    left.max(0.0) / pace
}

fn push<T>(messages: &mut Vec<T>, message: T) {
    if messages.len() < MAX_MESSAGES {
        messages.push(message);
    }
}

impl WatchedRun {
    /// Whether it does no more rounds.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Done | State::Failed(_))
    }

    /// Adds an evaluation, or replaces that of the same round.
    fn evaluated(&mut self, round: u64, accuracy: f64, quantities: Quantities) {
        let mut row = Row::default();
        (row.round, row.test_accuracy) = (round, accuracy);
        row.test_loss = quantities.loss.unwrap_or(f64::NAN);
        row.total_bits = quantities.bits.unwrap_or(f64::NAN);
        (row.total_seconds, row.total_joules) = (quantities.seconds, quantities.joules);
        row.worst_device_joules = quantities.worst_device_joules;
        row.trained = quantities.trained.unwrap_or(0);
        row.empty = quantities.empty;
        row.metrics = quantities.metrics.into_iter().collect();
        let place = self.rows.partition_point(|known| known.round < round);
        let symbols = quantities.symbols.unwrap_or(f64::NAN);
        if self.rows.get(place).is_some_and(|known| known.round == round) {
            (self.rows[place], self.symbols[place]) = (row, symbols);
        } else {
            self.rows.insert(place, row);
            self.symbols.insert(place, symbols);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(time: f64, process: &str, event: Event) -> Line {
        Line { time, process: process.into(), event }
    }

    fn planned(run: &str, rounds: u64, cost: f64) -> Event {
        let text = run.to_owned();
        let (label, curve) = (text.clone(), text.clone());
        Event::Planned(RunFacts { run: text, label, curve, rounds, cost, ..RunFacts::default() })
    }

    fn begun(run: &str, rounds_done: u64) -> Event {
        Event::Begun { run: run.into(), label: run.into(), seed: 0, rounds: 0, rounds_done }
    }

    #[test]
    fn time_left_is_the_work_left_at_the_pace_of_the_processes_that_work() {
        let mut study = Study::default();
        let mut apply = |time, process: &str, event| study.apply(line(time, process, event));
        apply(0.0 + 100.0, "a", planned("one", 100, 1.0));
        apply(100.0, "a", planned("two", 50, 4.0));
        apply(100.0, "a", begun("one", 20));
        apply(100.0, "b", begun("two", 0));
        // 30 units in 10 s, and 40 units in 20 s.
        apply(110.0, "a", Event::Round { run: "one".into(), round: 50 });
        apply(120.0, "b", Event::Round { run: "two".into(), round: 10 });
        // Left: 50 rounds of 1, 40 rounds of 4.
        assert_eq!(study.seconds_left(120.0), Some((50.0 + 160.0) / (3.0 + 2.0)));
        // Process a is silent for too long: the other one does the rest.
        study.apply(line(231.0, "b", Event::Round { run: "two".into(), round: 10 }));
        let alive = (50.0 + 160.0) / (40.0 / 131.0);
        assert!((study.seconds_left(240.0).unwrap() - alive).abs() < 1e-9);
        study.apply(line(241.0, "b", Event::Closed { state: "stopped".into() }));
        assert_eq!(study.seconds_left(241.0), None);
    }

    #[test]
    fn an_evaluation_that_is_repeated_after_a_resume_counts_once() {
        let mut study = Study::default();
        let evaluated = |round, accuracy| Event::Evaluated {
            run: "one".into(),
            round,
            accuracy,
            quantities: Quantities::default(),
        };
        study.apply(line(1.0, "a", begun("one", 0)));
        for (round, accuracy) in [(10, 0.1), (20, 0.2), (30, 0.3)] {
            study.apply(line(2.0, "a", evaluated(round, accuracy)));
        }
        study.apply(line(9.0, "b", begun("one", 15)));
        study.apply(line(9.0, "b", evaluated(20, 0.2)));
        let rounds: Vec<u64> = study.runs[0].rows.iter().map(|row| row.round).collect();
        assert_eq!(rounds, [10, 20, 30]);
        assert_eq!(study.runs[0].state, State::Running("b".into()));
    }
}
