//! The events of runs as lines of `events.jsonl`.

use super::observer::{Event, Observer, Warning};
use super::plan::Plan;
use super::run_files::run_name;
use super::runner::{Done, Runner};
use crate::error::Error;
use crate::events::{self, EventLog, EventReader, Quantities, RunFacts};
use crate::tables::groups::group_use;
use crate::tables::head::head;
use crate::tables::link::symbols_at;
use crate::tables::results::RunResult;
use fedlink::record::Row;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most evaluations that a sweep logs, about: of more, every second or tenth or so of each run.
const MAX_EVALUATIONS: u64 = 100_000;
/// The most rounds of a run that are logged beside its evaluations.
const MAX_ROUNDS: u64 = 200;
/// The least time between two logged rounds of a run.
const PAUSE: Duration = Duration::from_secs(1);

/// The part of a run that is in the log.
#[derive(Clone, Debug, Default)]
struct Logged {
    is_planned: bool,
    /// The last evaluation.
    evaluated: u64,
    /// The rounds of the run when it finished; 0 if it has not.
    finished: u64,
    /// Whether this process has begun it.
    is_begun: bool,
    /// The last round, and when it was logged.
    round: Option<(u64, Instant)>,
}

/// An observer that appends the events of runs to the log of their folder and passes them on.
pub struct RunEvents<'a> {
    plan: &'a Plan,
    log: &'a EventLog,
    next: &'a dyn Observer,
    /// The name of every run of the plan.
    names: Vec<String>,
    /// One evaluation of so many is logged.
    every: u64,
    logged: Mutex<BTreeMap<usize, Logged>>,
    failure: Mutex<Option<Error>>,
}

impl<'a> RunEvents<'a> {
    /// An observer of the runs of a plan; `next` receives every event too.
    pub fn new(plan: &'a Plan, log: &'a EventLog, next: &'a dyn Observer) -> Self {
        let runs = &plan.sweep.runs;
        let evaluations =
            |run: &crate::experiment::Run| run.spec.run.rounds / run.spec.run.evaluate_every + 1;
        let evaluations: u64 = runs.iter().map(evaluations).sum();
        Self {
            plan,
            log,
            next,
            names: runs.iter().map(|run| run_name(&run.spec)).collect(),
            every: evaluations.div_ceil(MAX_EVALUATIONS).max(1),
            logged: Mutex::default(),
            failure: Mutex::new(None),
        }
    }

    /// As [`RunEvents::new`], for a whole sweep: appends that a process begins, the subject of the sweep, and
    /// the runs that the log of `folder` does not yet have.
    pub fn of_sweep(
        plan: &'a Plan,
        log: &'a EventLog,
        next: &'a dyn Observer,
        folder: &Path,
    ) -> Result<Self, Error> {
        let own = Self::new(plan, log, next);
        let places: BTreeMap<&str, usize> = own.names.iter().map(String::as_str).zip(0..).collect();
        let mut logged: BTreeMap<usize, Logged> = BTreeMap::new();
        let mut change = |run: &str, change: &dyn Fn(&mut Logged)| {
            if let Some(&place) = places.get(run) {
                change(logged.entry(place).or_default());
            }
        };
        let mut reader = EventReader::new(folder);
        loop {
            let lines = reader.read()?;
            if lines.is_empty() {
                break;
            }
            for line in lines {
                match line.event {
                    events::Event::Planned(facts) => change(&facts.run, &|known| known.is_planned = true),
                    events::Event::Evaluated { run, round, .. } => {
                        change(&run, &|known| known.evaluated = known.evaluated.max(round));
                    }
                    events::Event::Finished { run, status, rounds, .. } if status == "finished" => {
                        change(&run, &|known| known.finished = rounds);
                    }
                    _ => {}
                }
            }
        }
        let experiment = &plan.sweep.experiment;
        log.append(events::Event::Opened {
            study: experiment.name.clone(),
            kind: "sweep".into(),
            runs: own.names.len(),
            goal: experiment.goals().first().map(|(_, goal)| goal.to_string()),
        })?;
        log.append(events::Event::Described(head(&plan.sweep)))?;
        for run in 0..own.names.len() {
            let known = logged.entry(run).or_default();
            if !known.is_planned {
                known.is_planned = true;
                log.append(events::Event::Planned(own.facts(run)))?;
            }
        }
        *lock(&own.logged) = logged;
        Ok(own)
    }

    /// The first error of the log, if there was one. The rest of the events is then not logged.
    pub fn finish(self) -> Result<(), Error> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn facts(&self, run: usize) -> RunFacts {
        let (name, own) = (self.names[run].clone(), &self.plan.sweep.runs[run]);
        let curve = &self.plan.sweep.curves[own.curve];
        // A race names its curves with their seeds.
        let seed = format!(" seed {}", own.spec.run.seed);
        let label = curve.label.strip_suffix(&seed).unwrap_or(&curve.label);
        RunFacts {
            run: name,
            label: self.plan.sweep.label(own),
            curve: label.to_owned(),
            keys: curve.keys.clone(),
            policy: own.spec.schedule.policy.clone(),
            compressor: own.spec.compress.scheme.clone(),
            seed: own.spec.run.seed,
            rounds: own.spec.run.rounds,
            cost: self.plan.cost(own) / own.spec.run.rounds.max(1) as f64,
        }
    }

    /// The lines of an event.
    fn lines(&self, event: Event<'_>) -> Vec<events::Event> {
        let mut logged = lock(&self.logged);
        let name = |run: usize| self.names[run].clone();
        match event {
            Event::Begun { run, rounds_done } => {
                let (known, own) = (logged.entry(run).or_default(), &self.plan.sweep.runs[run]);
                let rounds = own.spec.run.rounds;
                if known.finished == rounds && rounds_done == rounds {
                    return Vec::new();
                }
                known.is_begun = true;
                let planned = (!known.is_planned).then(|| events::Event::Planned(self.facts(run)));
                known.is_planned = true;
                let begun = events::Event::Begun {
                    run: name(run),
                    label: self.plan.sweep.label(own),
                    seed: own.spec.run.seed,
                    rounds,
                    rounds_done,
                };
                planned.into_iter().chain([begun]).collect()
            }
            Event::Round { run, record } => {
                let known = logged.entry(run).or_default();
                let rounds = self.plan.sweep.runs[run].spec.run.rounds;
                let is_due = known.round.is_none_or(|(round, when)| {
                    record.round >= round + (rounds / MAX_ROUNDS).max(1) && when.elapsed() >= PAUSE
                });
                if !is_due {
                    return Vec::new();
                }
                known.round = Some((record.round, Instant::now()));
                vec![events::Event::Round { run: name(run), round: record.round }]
            }
            Event::Evaluated { run, round, row, .. } => {
                let known = logged.entry(run).or_default();
                let spec = &self.plan.sweep.runs[run].spec.run;
                let is_due = (round / spec.evaluate_every).is_multiple_of(self.every) || round == spec.rounds;
                if !is_due || round <= known.evaluated {
                    return Vec::new();
                }
                known.evaluated = round;
                known.round = Some((round, Instant::now()));
                vec![self.evaluated(run, row)]
            }
            Event::Checkpointed { run, round } => {
                vec![events::Event::Checkpointed { run: name(run), round }]
            }
            Event::Finished { run, result } => {
                let known = logged.entry(run).or_default();
                if !known.is_begun {
                    return Vec::new();
                }
                // An earlier process may have made some of its evaluations without the log.
                let rows = result.rows.iter().filter(|row| row.round > known.evaluated);
                let mut lines: Vec<events::Event> = rows.map(|row| self.evaluated(run, row)).collect();
                lines.push(self.finished(run, result));
                lines
            }
            Event::Failed { run, error } => {
                vec![events::Event::Failed { run: name(run), error: error.to_string() }]
            }
            Event::Waiting { .. } | Event::Warned { .. } => Vec::new(),
        }
    }

    fn evaluated(&self, run: usize, row: &Row) -> events::Event {
        let mut quantities = quantities(row);
        quantities.symbols = symbols_at(row.round, &self.plan.sweep.runs[run].spec);
        let accuracy = row.test_accuracy;
        events::Event::Evaluated { run: self.names[run].clone(), round: row.round, accuracy, quantities }
    }

    fn finished(&self, run: usize, result: &RunResult) -> events::Event {
        events::Event::Finished {
            run: self.names[run].clone(),
            status: result.status.name().to_owned(),
            rounds: result.outcome.rounds,
            seconds: result.seconds,
            groups: group_use(&self.plan.sweep.runs[run].spec, &result.outcome),
        }
    }
}

impl Runner<'_> {
    /// As [`Runner::run`], with a line in `events.jsonl` for every event. A log that cannot be written to is
    /// a warning once the runs have begun.
    pub fn run_logged(&self, runs: &[usize]) -> Result<Vec<Done>, Error> {
        let log = EventLog::open(self.folder)?;
        let events = RunEvents::of_sweep(self.plan, &log, self.observer, self.folder)?;
        let done = Runner { observer: &events, ..*self }.run(runs);
        let state = if done.is_err() || (self.stop)() { "stopped" } else { "finished" };
        let closed = || log.append(events::Event::Closed { state: state.into() });
        let logged = events.finish().and_then(|()| closed());
        // A run that failed has the same cause, and one message is enough.
        if let (Ok(_), Err(problem), Some(&run)) = (&done, logged, runs.first()) {
            let warning = Warning::NoEvents(problem);
            self.observer.observe(Event::Warned { run, warning: &warning });
        }
        done
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observer for RunEvents<'_> {
    fn observe(&self, event: Event<'_>) {
        self.next.observe(event);
        if lock(&self.failure).is_some() {
            return;
        }
        let append = || self.lines(event).into_iter().try_for_each(|line| self.log.append(line));
        if let Err(error) = append() {
            lock(&self.failure).get_or_insert(error);
        }
    }
}

fn quantities(row: &Row) -> Quantities {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    let metrics = row.metrics.iter().filter(|(_, value)| value.is_finite()).cloned();
    Quantities {
        loss: finite(row.test_loss),
        bits: finite(row.total_bits),
        seconds: row.total_seconds,
        joules: row.total_joules,
        symbols: None,
        trained: Some(row.trained),
        worst_device_joules: row.worst_device_joules,
        empty: row.empty,
        metrics: metrics.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventReader;
    use crate::experiment::Experiment;
    use crate::sweep::freeze;

    #[test]
    fn every_run_of_a_sweep_begins_is_evaluated_and_finishes() {
        let text = "[learn]\nmodel = \"softmax\"\nstate = \"reset\"\n[data]\nsamples_per_device = 20\n\
                    devices = 4\n[schedule]\nk = 1\n[run]\nseeds = 2\nrounds = 4\nevaluate_every = 2\n";
        let sweep = Experiment::parse("x", text).unwrap().expand(&fedlink::parts::Parts::default()).unwrap();
        let plan = Plan::new(sweep, &[]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        freeze(folder.path(), &plan).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let log = EventLog::open(folder.path()).unwrap();
        let events = RunEvents::new(&plan, &log, &());
        let mut runner = Runner::new(&plan, folder.path(), &pool);
        runner.observer = &events;
        let done = runner.run(&[0, 1]).unwrap();
        events.finish().unwrap();
        let lines = EventReader::new(folder.path()).read().unwrap();
        for (run, done) in plan.sweep.runs.iter().zip(&done) {
            let name = run_name(&run.spec);
            let mut own = lines
                .iter()
                .filter(|line| {
                    let text = serde_json::to_value(line).unwrap();
                    text["run"] == name.as_str()
                })
                .peekable();
            assert!(matches!(own.next().unwrap().event, events::Event::Planned(_)));
            assert!(matches!(own.next().unwrap().event, events::Event::Begun { rounds: 4, .. }));
            own.next_if(|line| matches!(line.event, events::Event::Round { .. }));
            for row in &done.result.rows {
                let events::Event::Evaluated { round, accuracy, quantities, .. } = &own.next().unwrap().event
                else {
                    panic!("the run is evaluated")
                };
                assert_eq!((*round, *accuracy), (row.round, row.test_accuracy));
                assert_eq!(quantities.bits, Some(row.total_bits));
            }
            let mut own = own.filter(|line| !matches!(line.event, events::Event::Round { .. }));
            assert!(matches!(&own.next().unwrap().event,
                events::Event::Finished { status, rounds: 4, .. } if status == "finished"));
            assert!(own.next().is_none());
        }
    }

    #[test]
    fn a_resumed_sweep_repeats_no_line_and_a_folder_without_a_log_gets_all_evaluations() {
        let text = "[learn]\nmodel = \"softmax\"\nstate = \"reset\"\n[data]\nsamples_per_device = 20\n\
                    devices = 4\n[schedule]\nk = 1\n[run]\nseeds = 2\nrounds = 4\nevaluate_every = 1\n";
        let sweep = Experiment::parse("x", text).unwrap().expand(&fedlink::parts::Parts::default()).unwrap();
        let plan = Plan::new(sweep, &[]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        freeze(folder.path(), &plan).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        // Without a log.
        Runner::new(&plan, folder.path(), &pool).run(&[0, 1]).unwrap();
        let again = || {
            Runner::new(&plan, folder.path(), &pool).run_logged(&[0, 1]).unwrap();
            let lines = EventReader::new(folder.path()).read().unwrap();
            let mut study = events::Study::default();
            let count = lines.len();
            lines.into_iter().for_each(|line| study.apply(line));
            (study, count)
        };
        let (study, count) = again();
        assert_eq!((study.runs.len(), study.curves().len(), study.known_runs), (2, 1, 2));
        for run in &study.runs {
            let rounds: Vec<u64> = run.rows.iter().map(|row| row.round).collect();
            assert_eq!((rounds, &run.state), (vec![1, 2, 3, 4], &events::State::Done));
        }
        // The next process adds that it begins and ends, and the subject.
        assert_eq!(again().1, count + 3);
    }
}
