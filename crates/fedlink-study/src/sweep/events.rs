//! The events of runs as lines of `events.jsonl`.

use super::observer::{Event, Observer};
use super::plan::Plan;
use super::run_files::run_name;
use crate::events::{self, EventLog, Quantities};
use fedlink::record::Row;
use std::sync::{Mutex, PoisonError};

/// An observer that appends the events of runs to the log of their folder and passes them on.
pub struct RunEvents<'a> {
    plan: &'a Plan,
    log: &'a EventLog,
    next: &'a dyn Observer,
    /// The name of every run of the plan.
    names: Vec<String>,
    failure: Mutex<Option<crate::Error>>,
}

impl<'a> RunEvents<'a> {
    /// An observer of the runs of a plan; `next` receives every event too.
    pub fn new(plan: &'a Plan, log: &'a EventLog, next: &'a dyn Observer) -> Self {
        let names = plan.sweep.runs.iter().map(|run| run_name(&run.spec)).collect();
        Self { plan, log, next, names, failure: Mutex::new(None) }
    }

    /// The first error of the log, if there was one.
    pub fn finish(self) -> Result<(), crate::Error> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn line(&self, event: Event<'_>) -> Option<events::Event> {
        let name = |run: usize| self.names[run].clone();
        Some(match event {
            Event::Begun { run, rounds_done } => {
                let own = &self.plan.sweep.runs[run];
                events::Event::Begun {
                    run: name(run),
                    label: self.plan.sweep.label(own),
                    seed: own.spec.run.seed,
                    rounds: own.spec.run.rounds,
                    rounds_done,
                }
            }
            Event::Evaluated { run, round, accuracy, row } => {
                events::Event::Evaluated { run: name(run), round, accuracy, quantities: quantities(row) }
            }
            Event::Checkpointed { run, round } => events::Event::Checkpointed { run: name(run), round },
            Event::Finished { run, result } => events::Event::Finished {
                run: name(run),
                status: result.status.name().to_owned(),
                rounds: result.outcome.rounds,
                seconds: result.seconds,
            },
            Event::Failed { run, error } => {
                events::Event::Failed { run: name(run), error: error.to_string() }
            }
            Event::Round { .. } | Event::Waiting { .. } | Event::Warned { .. } => return None,
        })
    }
}

impl Observer for RunEvents<'_> {
    fn observe(&self, event: Event<'_>) {
        self.next.observe(event);
        if let Some(Err(error)) = self.line(event).map(|line| self.log.append(line)) {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
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
        metrics: metrics.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventReader;
    use crate::experiment::Experiment;
    use crate::sweep::{Runner, freeze};

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
            let mut own = lines.iter().filter(|line| {
                let text = serde_json::to_value(line).unwrap();
                text["run"] == name.as_str()
            });
            assert!(matches!(own.next().unwrap().event, events::Event::Begun { rounds: 4, .. }));
            for row in &done.result.rows {
                let events::Event::Evaluated { round, accuracy, quantities, .. } = &own.next().unwrap().event
                else {
                    panic!("the run is evaluated")
                };
                assert_eq!((*round, *accuracy), (row.round, row.test_accuracy));
                assert_eq!(quantities.bits, Some(row.total_bits));
            }
            assert!(matches!(&own.next().unwrap().event,
                events::Event::Finished { status, rounds: 4, .. } if status == "finished"));
            assert!(own.next().is_none());
        }
    }
}
