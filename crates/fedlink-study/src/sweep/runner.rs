//! Runs cells side by side, saving where each stands.

use super::cell::CellFiles;
use super::log::RoundLog;
use super::observer::{Event, Observer, Warning};
use super::plan::Plan;
use crate::error::Error;
use crate::results::{RunResult, Status};
use fedlink::simulation::Simulation;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Runs in parallel at least, so that curves appear side by side even on a single core.
const SIDE_BY_SIDE: usize = 4;

/// How to run.
pub struct Runner<'a> {
    /// What.
    pub plan: &'a Plan,
    /// The experiment's folder, [frozen](super::freeze).
    pub folder: &'a Path,
    /// The threads that train.
    pub pool: &'a rayon::ThreadPool,
    /// Rounds between checkpoints; 0 saves only when the run is stopped.
    pub checkpoint_every: u64,
    /// Whether every transmission is logged.
    pub log_rounds: bool,
    /// Who gets the events.
    pub observer: &'a dyn Observer,
    /// Asked after every round, by several threads: whether to save and stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// A run that was begun.
pub struct Done {
    /// Its index among all runs.
    pub index: usize,
    /// Its numbers.
    pub result: RunResult,
    /// Rounds that an earlier process had done.
    pub resumed_from: u64,
}

/// How many runs there are at a time.
pub fn side_by_side(threads: usize, runs: usize) -> usize {
    runs.min(threads.max(SIDE_BY_SIDE))
}

impl Runner<'_> {
    /// Runs the cells of these indices in that order, a few side by side, and returns those that were begun,
    /// by index. A run that is done already is read from its file; one that was broken off resumes from its
    /// last checkpoint.
    pub fn run(&self, runs: &[usize]) -> Result<Vec<Done>, Error> {
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let finished = Mutex::new(Vec::new());
        let drive = || {
            while !(self.stop)() && !failed.load(Ordering::SeqCst) {
                let Some(&run) = runs.get(next.fetch_add(1, Ordering::SeqCst)) else { break };
                let result = self.run_cell(run, &failed);
                match &result {
                    Ok(done) => self.observer.observe(Event::Finished { run, result: &done.result }),
                    Err(error) => {
                        failed.store(true, Ordering::SeqCst);
                        self.observer.observe(Event::Failed { run, error });
                    }
                }
                finished.lock().unwrap_or_else(PoisonError::into_inner).push(result);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..side_by_side(self.pool.current_num_threads(), runs.len()) {
                scope.spawn(drive);
            }
        });
        let finished = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut finished = finished.into_iter().collect::<Result<Vec<Done>, Error>>()?;
        finished.sort_by_key(|done| done.index);
        Ok(finished)
    }

    fn run_cell(&self, run: usize, failed: &AtomicBool) -> Result<Done, Error> {
        let started = Instant::now();
        let cell = &self.plan.cells[run];
        let rounds = cell.config.run.rounds;
        let files = CellFiles::new(self.folder, run);
        match files.finished(&cell.config) {
            Ok(Some(result)) if !self.log_rounds || files.rounds.exists() => {
                self.observer.observe(Event::Begun { run, rounds_done: rounds });
                return Ok(Done { index: run, result, resumed_from: rounds });
            }
            Ok(_) => {}
            Err(problem) => {
                self.observer.observe(Event::Warned { run, warning: &Warning::Repeated(problem) });
            }
        }
        let (mut simulation, mut log) = self.restored(run, &files)?;
        let resumed_from = simulation.rounds_done();
        self.observer.observe(Event::Begun { run, rounds_done: resumed_from });
        let mut status = Status::Finished;
        while simulation.rounds_done() < rounds {
            // The pool is entered anew for every round: a thread that waits for its round's slowest device
            // may then help another run, but never for longer than one round.
            match self.pool.install(|| simulation.step()) {
                Ok(record) => {
                    self.observer.observe(Event::Round { run, record: &record });
                    if let Some(evaluation) = &record.evaluation {
                        let (round, accuracy) = (record.round, evaluation.accuracy);
                        self.observer.observe(Event::Evaluated { run, round, accuracy });
                    }
                    if let Some(log) = &mut log {
                        log.add(&record)?;
                    }
                }
                Err(error @ fedlink::Error::Diverged { .. }) => {
                    status = Status::Diverged(error.to_string());
                    break;
                }
                Err(error) => return Err(error.into()),
            }
            let done = simulation.rounds_done();
            let stop = (self.stop)() || failed.load(Ordering::SeqCst);
            let due = self.checkpoint_every > 0 && done.is_multiple_of(self.checkpoint_every);
            if done < rounds && (stop || due) {
                // The log first: a checkpoint never knows of rounds that the log lacks.
                log.as_mut().map_or(Ok(()), RoundLog::flush)?;
                files.save(&simulation)?;
                self.observer.observe(Event::Checkpointed { run, round: done });
            }
            if done < rounds && stop {
                status = Status::Interrupted;
                break;
            }
        }
        log.as_mut().map_or(Ok(()), RoundLog::flush)?;
        let result = RunResult {
            seed: cell.config.run.seed,
            rows: simulation.rows().to_vec(),
            outcome: simulation.outcome(),
            status,
            seconds: started.elapsed().as_secs_f64(),
        };
        if result.status != Status::Interrupted {
            files.finish(&cell.config, &result)?;
        }
        Ok(Done { index: run, result, resumed_from })
    }

    /// The run from its last good checkpoint, or from the start, and its log.
    fn restored(&self, run: usize, files: &CellFiles) -> Result<(Simulation, Option<RoundLog>), Error> {
        let cell = &self.plan.cells[run];
        let label = || self.plan.label(cell);
        let start = || self.plan.simulation(cell);
        let mut simulation = start()?;
        let problems = files.restore(&mut simulation);
        if !problems.is_empty() {
            let rounds_done = simulation.rounds_done();
            let warning = Warning::BadCheckpoints { label: label(), problems, rounds_done };
            self.observer.observe(Event::Warned { run, warning: &warning });
        }
        if !self.log_rounds {
            return Ok((simulation, None));
        }
        let transmissions = simulation.outcome().scheduled.iter().map(|&times| u64::from(times)).sum();
        if let Some(log) = RoundLog::open(&files.rounds, simulation.rounds_done(), transmissions)? {
            return Ok((simulation, Some(log)));
        }
        self.observer.observe(Event::Warned { run, warning: &Warning::LogGaps { label: label() } });
        let log = RoundLog::open(&files.rounds, 0, 0)?;
        Ok((start()?, log))
    }
}
