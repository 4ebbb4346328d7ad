//! Runs cells side by side, saving where each stands.

use super::cell::{CellFiles, cell_name};
use super::data::digest_differences;
use super::format::StoredCell;
use super::log::{LogRounds, RoundLog};
use super::maker::{Maker, continued};
use super::observer::{Event, Observer, Warning};
use super::plan::Plan;
use super::progress::Progress;
use crate::disk::{Disk, RealDisk};
use crate::error::Error;
use crate::experiment::Cell;
use crate::lock::{Attempt, Lock};
use crate::results::{RunResult, Status};
use fedlink::identity::config_digest;
use fedlink::record::hexadecimal;
use fedlink::simulation::Simulation;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Runs in parallel at least, so that curves appear side by side even on a single core.
const SIDE_BY_SIDE: usize = 4;
/// How often a run that another process computes is looked at.
const PAUSE: Duration = Duration::from_millis(200);
/// How often others are told how far a run is.
const TELL: Duration = Duration::from_millis(500);

/// How to run.
#[non_exhaustive]
pub struct Runner<'a> {
    /// What.
    pub plan: &'a Plan,
    /// The experiment's folder, [frozen](super::freeze).
    pub folder: &'a Path,
    /// The threads that train.
    pub pool: &'a rayon::ThreadPool,
    /// Rounds between checkpoints; 0 saves only when the run is stopped.
    pub checkpoint_every: u64,
    /// What is logged of every round.
    pub log_rounds: LogRounds,
    /// Whether the state of a finished run is kept, so that a run with more rounds can go on from it.
    pub keep_state: bool,
    /// Who gets the events.
    pub observer: &'a dyn Observer,
    /// Asked after every round, by several threads: whether to save and stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// A run that was begun.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Done {
    /// Its index among all runs.
    pub index: usize,
    /// Its numbers.
    pub result: RunResult,
    /// Rounds that an earlier process had done.
    pub resumed_from: u64,
    /// Who made it, in the order of the rounds.
    pub makers: Vec<Maker>,
}

/// What came of a run.
enum Turn {
    Done(Box<Done>),
    /// Another process computes it.
    Busy,
}

/// The runs that are to be done.
struct Queue {
    waiting: Vec<usize>,
    /// Runs that other processes compute.
    busy: Vec<usize>,
}

/// How many runs there are at a time.
pub fn side_by_side(threads: usize, runs: usize) -> usize {
    runs.min(threads.max(SIDE_BY_SIDE))
}

impl<'a> Runner<'a> {
    /// Runs that save every 100 rounds, log nothing, and that nobody watches or stops.
    pub fn new(plan: &'a Plan, folder: &'a Path, pool: &'a rayon::ThreadPool) -> Self {
        Self {
            plan,
            folder,
            pool,
            checkpoint_every: 100,
            log_rounds: LogRounds::Off,
            keep_state: false,
            observer: &(),
            stop: &|| false,
        }
    }

    /// Runs the cells of these indices in that order, a few side by side, and returns those that were begun,
    /// by index. A run that is done already is read from its file; one that was broken off resumes from its
    /// last checkpoint. A
    /// run that another process computes is waited for when all others are done.
    pub fn run(&self, runs: &[usize]) -> Result<Vec<Done>, Error> {
        self.run_on(&RealDisk, runs)
    }

    /// As [`Runner::run`], on another disk.
    pub(crate) fn run_on(&self, disk: &dyn Disk, runs: &[usize]) -> Result<Vec<Done>, Error> {
        let wanted: BTreeSet<String> = self.plan.cells.iter().map(|cell| cell_name(&cell.config)).collect();
        let session = Session {
            runner: self,
            disk,
            wanted,
            failed: AtomicBool::new(false),
            warned: AtomicBool::new(false),
        };
        let queue = Mutex::new(Queue { waiting: runs.iter().rev().copied().collect(), busy: Vec::new() });
        let finished = Mutex::new(Vec::new());
        let drive = || {
            while !session.must_stop() {
                let Some((run, last)) = next(&queue) else { break };
                let result = match session.turn(run) {
                    Ok(Turn::Done(done)) => {
                        self.observer.observe(Event::Finished { run, result: &done.result });
                        Ok(*done)
                    }
                    Ok(Turn::Busy) => {
                        lock(&queue).busy.push(run);
                        if last {
                            session.wait(run);
                        }
                        continue;
                    }
                    Err(error) => {
                        session.failed.store(true, Ordering::SeqCst);
                        self.observer.observe(Event::Failed { run, error: &error });
                        Err(error)
                    }
                };
                lock(&finished).push(result);
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
}

/// The next run, and whether only runs are left that other processes compute.
fn next(queue: &Mutex<Queue>) -> Option<(usize, bool)> {
    let mut queue = lock(queue);
    if let Some(run) = queue.waiting.pop() {
        return Some((run, false));
    }
    if queue.busy.is_empty() { None } else { Some((queue.busy.remove(0), true)) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One call of [`Runner::run`].
struct Session<'a> {
    runner: &'a Runner<'a>,
    disk: &'a dyn Disk,
    /// The names of all runs of the experiment.
    wanted: BTreeSet<String>,
    /// Whether a run has failed, which ends all.
    failed: AtomicBool,
    /// Whether it was told that there are no locks.
    warned: AtomicBool,
}

/// A run as it goes on.
struct Going {
    simulation: Simulation,
    log: Option<RoundLog>,
    makers: Vec<Maker>,
    /// An earlier result that the first rounds must agree with.
    earlier: Option<StoredCell>,
}

impl Session<'_> {
    fn must_stop(&self) -> bool {
        (self.runner.stop)() || self.failed.load(Ordering::SeqCst)
    }

    fn tell(&self, event: Event<'_>) {
        self.runner.observer.observe(event);
    }

    /// Does a run, unless another process computes it.
    fn turn(&self, run: usize) -> Result<Turn, Error> {
        let plan = self.runner.plan;
        let cell = &plan.cells[run];
        let files = CellFiles::new(self.runner.folder, &cell.config);
        if let Some(done) = self.finished(run, &files)? {
            files.sweep_done(self.disk)?;
            return Ok(Turn::Done(Box::new(done)));
        }
        let held = match Lock::try_new(&files.lock())? {
            Attempt::Busy => return Ok(Turn::Busy),
            Attempt::Held(lock) => lock,
        };
        if !held.is_real() && !self.warned.swap(true, Ordering::SeqCst) {
            self.tell(Event::Warned { run, warning: &Warning::NoLocks(self.runner.folder.into()) });
        }
        // Another process may have finished it before the lock was ours.
        if let Some(done) = self.finished(run, &files)? {
            drop(held);
            files.sweep_done(self.disk)?;
            return Ok(Turn::Done(Box::new(done)));
        }
        files.sweep(self.disk)?;
        let done = self.compute(run, cell, &files);
        let _ = std::fs::remove_file(files.progress());
        if let Err(error) = &done {
            // For who asks how the sweep is; the next try removes it.
            let _ = std::fs::write(files.failed(), error.to_string());
        }
        done.map(|done| Turn::Done(Box::new(done)))
    }

    /// Waits a moment for a run that another process computes, telling who does.
    fn wait(&self, run: usize) {
        let cell = &self.runner.plan.cells[run];
        let files = CellFiles::new(self.runner.folder, &cell.config);
        let progress = Progress::read(&files.progress());
        let label = self.runner.plan.label(cell);
        self.tell(Event::Waiting { run, label: &label, progress: progress.as_ref() });
        let started = Instant::now();
        // Looked at often so that a wish to stop is met soon.
        while started.elapsed() < PAUSE && !self.must_stop() {
            std::thread::sleep(PAUSE / 4);
        }
    }

    /// The run if it is done.
    fn finished(&self, run: usize, files: &CellFiles) -> Result<Option<Done>, Error> {
        let plan = self.runner.plan;
        match files.read() {
            Ok(Some(cell)) => {
                let here = plan.data_digests(&plan.cells[run]);
                if let Some(differences) = digest_differences(&cell.data, &here) {
                    return Err(Error::OtherData { path: files.finished(), differences });
                }
                let logged = self.runner.log_rounds;
                if logged.is_on() && !files.rounds(logged).exists() {
                    return Ok(None);
                }
                let rounds = cell.rounds;
                self.tell(Event::Begun { run, rounds_done: rounds });
                Ok(Some(Done { index: run, result: cell.result, resumed_from: rounds, makers: cell.makers }))
            }
            Ok(None) => Ok(None),
            Err(problem) => {
                self.tell(Event::Warned { run, warning: &Warning::Repeated(problem) });
                Ok(None)
            }
        }
    }

    fn compute(&self, run: usize, cell: &Cell, files: &CellFiles) -> Result<Done, Error> {
        let started = Instant::now();
        let rounds = cell.config.run.rounds;
        let Going { mut simulation, mut log, mut makers, mut earlier } = self.restored(run, cell, files)?;
        let resumed_from = simulation.rounds_done();
        makers = continued(makers, Maker::here(self.runner.pool.current_num_threads()), resumed_from);
        files.note_makers(self.disk, &makers)?;
        self.tell(Event::Begun { run, rounds_done: resumed_from });
        let mut progress = Progress {
            pid: std::process::id(),
            host: makers.last().map_or_else(String::new, |maker| maker.host.clone()),
            round: resumed_from,
            from_round: resumed_from,
            accuracy: simulation.rows().last().map(|row| row.test_accuracy),
            ..Progress::default()
        };
        progress.write(&files.progress());
        let mut told = Instant::now();
        let mut status = Status::Finished;
        while simulation.rounds_done() < rounds {
            // The pool is entered anew for every round: a thread that waits for its round's slowest device
            // may then help another run, but never for longer than one round.
            match self.runner.pool.install(|| simulation.step()) {
                Ok(record) => {
                    self.tell(Event::Round { run, record: &record });
                    if let Some(evaluation) = &record.evaluation {
                        let (round, accuracy) = (record.round, evaluation.accuracy);
                        self.tell(Event::Evaluated { run, round, accuracy });
                        progress.accuracy = Some(accuracy);
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
            if earlier.as_ref().is_some_and(|earlier| earlier.result.outcome.rounds == done) {
                let earlier = earlier.take().expect("it is there");
                compare(cell, &files.name(), &earlier, &simulation, &makers)?;
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                (progress.round, progress.seconds) = (done, started.elapsed().as_secs_f64());
                progress.write(&files.progress());
            }
            let stop = self.must_stop();
            let every = self.runner.checkpoint_every;
            let due = every > 0 && done.is_multiple_of(every);
            if done < rounds && (stop || due) {
                // The log first: a checkpoint never knows of rounds that the log lacks.
                log.as_mut().map_or(Ok(()), RoundLog::sync)?;
                files.save(self.disk, &simulation)?;
                self.tell(Event::Checkpointed { run, round: done });
            }
            if done < rounds && stop {
                status = Status::Interrupted;
                break;
            }
        }
        log.as_mut().map_or(Ok(()), RoundLog::sync)?;
        let seconds = started.elapsed().as_secs_f64();
        let mut result = RunResult {
            seed: cell.config.run.seed,
            rows: simulation.rows().to_vec(),
            outcome: simulation.outcome(),
            status,
            seconds,
        };
        if result.status != Status::Interrupted {
            if let Some(maker) = makers.last_mut() {
                maker.seconds = Some(seconds);
            }
            let state = (self.runner.keep_state && result.status == Status::Finished).then_some(&simulation);
            let stored = StoredCell {
                label: self.runner.plan.label(cell),
                config_digest: hexadecimal(&config_digest(&cell.config)),
                rounds,
                data: self.runner.plan.data_digests(cell),
                makers: makers.clone(),
                result,
            };
            // As it will be read from now on.
            result = files.finish(self.disk, &cell.config, &stored, state)?.result;
            self.remove_shorter(cell, files)?;
        }
        Ok(Done { index: run, result, resumed_from, makers })
    }

    /// The run from its last good checkpoint, from the final state of a shorter one, or from the start; and
    /// its log.
    fn restored(&self, run: usize, cell: &Cell, files: &CellFiles) -> Result<Going, Error> {
        let plan = self.runner.plan;
        let label = || plan.label(cell);
        let logged = self.runner.log_rounds;
        let start = || {
            let mut simulation = plan.simulation(cell)?;
            simulation.log_all_devices(logged == LogRounds::All);
            Ok::<Simulation, Error>(simulation)
        };
        let mut simulation = start()?;
        let mut makers = files.makers();
        let problems = files.restore(&mut simulation);
        if !problems.is_empty() {
            let rounds_done = simulation.rounds_done();
            let warning = Warning::BadCheckpoints { label: label(), problems, rounds_done };
            self.tell(Event::Warned { run, warning: &warning });
        }
        // The run itself, if it is made again for its log, or the longest shorter one.
        let mut earlier = files.read().ok().flatten();
        if earlier.is_none()
            && let Some((shorter, stored)) = files.shorter(&cell.config).into_iter().next()
        {
            if let Some(differences) = digest_differences(&stored.data, &plan.data_digests(cell)) {
                return Err(Error::OtherData { path: shorter.finished(), differences });
            }
            if simulation.rounds_done() == 0
                && let Ok(file) = File::open(shorter.state())
                && simulation.restore(file).is_ok()
            {
                makers.clone_from(&stored.makers);
                if logged.is_on() {
                    files.copy_rounds(self.disk, &shorter, logged)?;
                }
            }
            earlier = Some(stored);
        }
        if !logged.is_on() {
            return Ok(Going { simulation, log: None, makers, earlier });
        }
        let lines = logged.lines(&simulation.outcome());
        let path = files.rounds(logged);
        if let Some(log) = RoundLog::open(self.disk, &path, simulation.rounds_done(), lines)? {
            return Ok(Going { simulation, log: Some(log), makers, earlier });
        }
        self.tell(Event::Warned { run, warning: &Warning::LogGaps { label: label() } });
        let log = RoundLog::open(self.disk, &path, 0, 0)?;
        Ok(Going { simulation: start()?, log, makers: Vec::new(), earlier })
    }

    /// Removes the shorter runs that this one has replaced: those that the experiment no longer has.
    fn remove_shorter(&self, cell: &Cell, files: &CellFiles) -> Result<(), Error> {
        for (shorter, _) in files.shorter(&cell.config) {
            if !self.wanted.contains(&shorter.name()) {
                shorter.remove(self.disk)?;
            }
        }
        Ok(())
    }
}

/// An error if the rounds so far are not those of an earlier result.
fn compare(
    cell: &Cell,
    name: &str,
    earlier: &StoredCell,
    simulation: &Simulation,
    makers: &[Maker],
) -> Result<(), Error> {
    let every = cell.config.run.evaluate_every;
    let theirs = &earlier.result;
    let finished = theirs.status == Status::Finished;
    let due = theirs.outcome.rounds.is_multiple_of(every) || earlier.rounds == cell.config.run.rounds;
    let same = if finished && due {
        theirs.outcome.digest == simulation.outcome().digest
    } else {
        // The last round was evaluated only because it was the last; or a round began that did not end.
        let common = theirs.rows.len().saturating_sub(usize::from(finished));
        theirs.rows[..common].iter().zip(simulation.rows()).all(|(a, b)| super::rerun::same_row(a, b))
    };
    if same {
        return Ok(());
    }
    Err(Error::NotRepeated {
        cell: name.to_owned(),
        rounds: theirs.outcome.rounds,
        stored: format!("{} by {}", theirs.outcome.digest, makers_text(&earlier.makers)),
        repeated: format!("{} by {}", simulation.outcome().digest, makers_text(makers)),
    })
}

/// The makers of a run in words.
pub(super) fn makers_text(makers: &[Maker]) -> String {
    makers.iter().map(Maker::text).collect::<Vec<_>>().join(" and ")
}
