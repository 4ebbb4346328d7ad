//! Does runs side by side and saves their state.

use super::data::digest_differences;
use super::log::{LogRounds, LogSeal, RoundLog, check_log};
use super::observer::{Event, Observer, Warning};
use super::plan::Plan;
use super::process::{Process, continued};
use super::progress::Progress;
use super::run_files::{RunFiles, open_state, run_name};
use super::stored_run::StoredRun;
use crate::error::Error;
use crate::experiment::Run;
use crate::folder::disk::{Disk, RealDisk};
use crate::folder::lock::{Attempt, Lock};
use crate::folder::names::{check_runs_folder, runs_folder};
use crate::folder::own::identity;
use crate::tables::results::{RunResult, Status};
use fedlink::record::hexadecimal;
use fedlink::spec::identity::config_digest;
use fedlink::system::simulation::Simulation;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The fewest runs at a time, so that curves appear side by side even on a single core.
const SIDE_BY_SIDE: usize = 4;
/// The interval between two checks of a run that another process computes.
const PAUSE: Duration = Duration::from_millis(200);
/// Time between two writes of the progress file.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// Runs of a plan and how to do them.
#[non_exhaustive]
pub struct Runner<'a> {
    /// The runs and their data.
    pub plan: &'a Plan,
    /// The experiment's folder, [frozen](super::freeze).
    pub folder: &'a Path,
    /// The threads that train.
    pub pool: &'a rayon::ThreadPool,
    /// Rounds between checkpoints; 0 saves only when the run is stopped.
    pub checkpoint_every: u64,
    /// The lines that are logged of every round.
    pub log_rounds: LogRounds,
    /// Whether the state of a finished run is kept, so that a run with more rounds can go on from it.
    pub keep_state: bool,
    /// Whether shorter runs that a longer one continues are kept although the plan does not have them.
    pub keep_shorter: bool,
    /// The receiver of the events.
    pub observer: &'a dyn Observer,
    /// Called after every round by several threads; true saves the runs and stops them.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// A run that was begun.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Done {
    /// Its index among the runs of the sweep.
    pub index: usize,
    /// Its numbers.
    pub result: RunResult,
    /// Rounds that an earlier process has done.
    pub resumed_from: u64,
    /// The processes that did its rounds, in their order.
    pub processes: Vec<Process>,
    /// The seals of its logs of rounds, by their endings.
    pub logs: BTreeMap<String, LogSeal>,
}

/// The runs that are left.
struct Queue {
    waiting: Vec<usize>,
    /// Runs that other processes compute.
    busy: Vec<usize>,
}

/// The number of runs at a time.
pub fn side_by_side(threads: usize, runs: usize) -> usize {
    runs.min(threads.max(SIDE_BY_SIDE))
}

impl<'a> Runner<'a> {
    /// A runner that saves every 100 rounds, has no log and no observer, and does not stop early.
    pub fn new(plan: &'a Plan, folder: &'a Path, pool: &'a rayon::ThreadPool) -> Self {
        Self {
            plan,
            folder,
            pool,
            checkpoint_every: 100,
            log_rounds: LogRounds::Off,
            keep_state: false,
            keep_shorter: false,
            observer: &(),
            stop: &|| false,
        }
    }

    /// Does the runs of these indices in that order, a few side by side, and returns those that were begun,
    /// by index. A finished run is read from its file; an interrupted run resumes from its last checkpoint.
    /// When all others are done, the runner waits for runs that another process computes.
    pub fn run(&self, runs: &[usize]) -> Result<Vec<Done>, Error> {
        self.run_on(&RealDisk, runs)
    }

    /// As [`Runner::run`], on another disk.
    pub(crate) fn run_on(&self, disk: &dyn Disk, runs: &[usize]) -> Result<Vec<Done>, Error> {
        let names = self.plan.sweep.runs.iter().map(|run| run_name(&run.spec)).collect();
        let execution = Execution {
            runner: self,
            disk,
            names,
            place: Place::new(self.folder)?,
            failed: AtomicBool::new(false),
            warned: AtomicBool::new(false),
        };
        let queue = Mutex::new(Queue { waiting: runs.iter().rev().copied().collect(), busy: Vec::new() });
        let finished = Mutex::new(Vec::new());
        let work = || {
            while !execution.must_stop() {
                let Some((index, last)) = next(&queue) else { break };
                let result = match execution.do_run(index) {
                    Ok(Some(done)) => {
                        self.observer.observe(Event::Finished { run: index, result: &done.result });
                        Ok(done)
                    }
                    Ok(None) => {
                        lock(&queue).busy.push(index);
                        if last {
                            execution.wait(index);
                        }
                        continue;
                    }
                    Err(error) => {
                        execution.failed.store(true, Ordering::SeqCst);
                        self.observer.observe(Event::Failed { run: index, error: &error });
                        Err(error)
                    }
                };
                lock(&finished).push(result);
            }
        };
        let threads = self.pool.current_num_threads();
        let at_once = if self.plan.is_serial() { 1 } else { side_by_side(threads, runs.len()) };
        std::thread::scope(|scope| {
            for _ in 0..at_once {
                scope.spawn(work);
            }
        });
        let finished = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut finished = finished.into_iter().collect::<Result<Vec<Done>, Error>>()?;
        finished.sort_by_key(|done| done.index);
        Ok(finished)
    }
}

/// The next run, and whether other processes compute all that are left.
fn next(queue: &Mutex<Queue>) -> Option<(usize, bool)> {
    let mut queue = lock(queue);
    if let Some(index) = queue.waiting.pop() {
        return Some((index, false));
    }
    if queue.busy.is_empty() { None } else { Some((queue.busy.remove(0), true)) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The folder of a sweep and the folder of its runs at the time when the runs begin.
struct Place {
    folder: PathBuf,
    identities: Vec<(PathBuf, (u64, u64))>,
}

impl Place {
    fn new(folder: &Path) -> Result<Self, Error> {
        check_runs_folder(folder)?;
        let folders = [folder.to_owned(), runs_folder(folder)];
        let identified = |path: PathBuf| {
            let identity = identity(&path).map_err(Error::file("write to", &path))?;
            Ok((path, identity))
        };
        let identities = folders.into_iter().map(identified).collect::<Result<_, Error>>()?;
        Ok(Self { folder: folder.into(), identities })
    }

    /// An error if the folder is gone or another one has its name: a run must not end there.
    fn check(&self) -> Result<(), Error> {
        let is_same = |(path, then): &(PathBuf, (u64, u64))| identity(path).is_ok_and(|now| now == *then);
        if self.identities.iter().all(is_same) {
            return Ok(());
        }
        Err(Error::FolderChanged(self.folder.clone()))
    }
}

/// One call of [`Runner::run`].
struct Execution<'a> {
    runner: &'a Runner<'a>,
    disk: &'a dyn Disk,
    /// The names of all runs of the sweep.
    names: BTreeSet<String>,
    place: Place,
    /// Whether a run has failed, which ends all.
    failed: AtomicBool,
    /// Whether the missing locks were reported.
    warned: AtomicBool,
}

/// A run in progress.
struct ActiveRun {
    simulation: Simulation,
    log: Option<RoundLog>,
    processes: Vec<Process>,
    /// An earlier result that the first rounds must repeat.
    earlier: Option<StoredRun>,
}

impl Execution<'_> {
    fn must_stop(&self) -> bool {
        (self.runner.stop)() || self.failed.load(Ordering::SeqCst)
    }

    fn emit(&self, event: Event<'_>) {
        self.runner.observer.observe(event);
    }

    /// Does a run; none if another process computes it.
    fn do_run(&self, index: usize) -> Result<Option<Done>, Error> {
        let plan = self.runner.plan;
        let run = &plan.sweep.runs[index];
        let files = RunFiles::new(self.runner.folder, &run.spec);
        self.place.check()?;
        files.check_own()?;
        if let Some(done) = self.finished(index, &files)? {
            files.sweep_done(self.disk)?;
            return Ok(Some(done));
        }
        let held = match Lock::try_new(&files.lock())? {
            Attempt::Busy => return Ok(None),
            Attempt::Held(lock) => lock,
        };
        if !held.is_real() && !self.warned.swap(true, Ordering::SeqCst) {
            self.emit(Event::Warned { run: index, warning: &Warning::NoLocks(self.runner.folder.into()) });
        }
        // Another process may have finished it before this one took the lock.
        if let Some(done) = self.finished(index, &files)? {
            drop(held);
            files.sweep_done(self.disk)?;
            return Ok(Some(done));
        }
        files.sweep(self.disk)?;
        let done = self.compute(index, run, &files);
        // A folder that is no longer that of this sweep is not changed.
        self.place.check()?;
        let _ = std::fs::remove_file(files.progress());
        if let Err(error) = &done {
            // `fedlink status` prints it; the next attempt removes it.
            files.note_failure(error);
        }
        done.map(Some)
    }

    /// Waits a moment for a run that another process computes, and reports that process.
    fn wait(&self, index: usize) {
        let run = &self.runner.plan.sweep.runs[index];
        let files = RunFiles::new(self.runner.folder, &run.spec);
        let progress = Progress::read(&files.progress());
        let label = self.runner.plan.sweep.label(run);
        self.emit(Event::Waiting { run: index, label: &label, progress: progress.as_ref() });
        let started = Instant::now();
        // Short sleeps, so that the command stops soon after Ctrl-C.
        while started.elapsed() < PAUSE && !self.must_stop() {
            std::thread::sleep(PAUSE / 4);
        }
    }

    /// The run if it is finished.
    fn finished(&self, index: usize, files: &RunFiles) -> Result<Option<Done>, Error> {
        let plan = self.runner.plan;
        match files.read() {
            Ok(Some(run)) => {
                let here = plan.data_digests(&plan.sweep.runs[index]);
                if let Some(differences) = digest_differences(&run.data, &here) {
                    return Err(Error::OtherData { path: files.finished(), differences });
                }
                let logged = self.runner.log_rounds;
                let seal = run.logs.get(logged.ending());
                let check = || check_log(&files.rounds(logged), logged, &run.result.outcome, seal);
                match if logged.is_on() { check() } else { Ok(()) } {
                    Ok(()) => {}
                    // It was made without one.
                    Err(Error::NoRoundLog(_)) => return Ok(None),
                    Err(problem) => {
                        self.emit(Event::Warned { run: index, warning: &Warning::Repeated(problem) });
                        return Ok(None);
                    }
                }
                let (resumed_from, StoredRun { result, processes, logs, .. }) = (run.rounds, run);
                self.emit(Event::Begun { run: index, rounds_done: resumed_from });
                Ok(Some(Done { index, result, resumed_from, processes, logs }))
            }
            Ok(None) => Ok(None),
            Err(problem) => {
                self.emit(Event::Warned { run: index, warning: &Warning::Repeated(problem) });
                Ok(None)
            }
        }
    }

    fn compute(&self, index: usize, run: &Run, files: &RunFiles) -> Result<Done, Error> {
        let started = Instant::now();
        let rounds = run.spec.run.rounds;
        let ActiveRun { mut simulation, mut log, mut processes, mut earlier } =
            self.restored(index, run, files)?;
        let resumed_from = simulation.rounds_done();
        processes = continued(processes, Process::here(self.runner.pool.current_num_threads()), resumed_from);
        self.place.check()?;
        files.note_processes(self.disk, &processes)?;
        self.emit(Event::Begun { run: index, rounds_done: resumed_from });
        let mut progress = Progress {
            pid: std::process::id(),
            host: processes.last().map_or_else(String::new, |process| process.host.clone()),
            round: resumed_from,
            from_round: resumed_from,
            accuracy: simulation.rows().last().map(|row| row.test_accuracy),
            ..Progress::default()
        };
        progress.write(files);
        let mut written = Instant::now();
        let mut status = Status::Finished;
        while simulation.rounds_done() < rounds {
            // Each round enters the pool anew: a thread that waits for the slowest device of its round may
            // help another run, but for one round at most.
            match self.runner.pool.install(|| simulation.step()) {
                Ok(record) => {
                    self.emit(Event::Round { run: index, record: &record });
                    if let Some(evaluation) = &record.evaluation {
                        let (round, accuracy) = (record.round, evaluation.accuracy);
                        if let Some(row) = simulation.rows().last() {
                            self.emit(Event::Evaluated { run: index, round, accuracy, row });
                        }
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
                compare(run, &files.name(), &earlier, &simulation, &processes)?;
            }
            if written.elapsed() >= PROGRESS_EVERY {
                written = Instant::now();
                (progress.round, progress.seconds) = (done, started.elapsed().as_secs_f64());
                self.place.check()?;
                progress.write(files);
            }
            let stop = self.must_stop();
            let every = self.runner.checkpoint_every;
            let due = every > 0 && done.is_multiple_of(every);
            if done < rounds && (stop || due) {
                self.save(files, &simulation, log.as_mut())?;
                self.emit(Event::Checkpointed { run: index, round: done });
            }
            if done < rounds && stop {
                status = Status::Interrupted;
                break;
            }
        }
        let seal = log.as_mut().map_or(Ok(None), RoundLog::sync)?;
        let mut logs = BTreeMap::new();
        let seconds = started.elapsed().as_secs_f64();
        let mut result = RunResult {
            seed: run.spec.run.seed,
            rows: simulation.rows().to_vec(),
            outcome: simulation.outcome(),
            status,
            seconds,
        };
        if result.status != Status::Interrupted {
            if let Some(process) = processes.last_mut() {
                process.seconds = Some(seconds);
            }
            logs = self.logs(files, &result, log.is_some(), seal);
            let state = (self.runner.keep_state && result.status == Status::Finished).then_some(&simulation);
            let stored = StoredRun {
                label: self.runner.plan.sweep.label(run),
                config_digest: hexadecimal(&config_digest(&run.spec)),
                rounds,
                data: self.runner.plan.data_digests(run),
                processes: processes.clone(),
                logs,
                unstored: Vec::new(),
                result,
            };
            self.place.check()?;
            // The result as it will be read from the file.
            let stored = files.finish(self.disk, &run.spec, &stored, state)?;
            (result, logs) = (stored.result, stored.logs);
            self.remove_shorter(run, files)?;
        }
        Ok(Done { index, result, resumed_from, processes, logs })
    }

    /// Saves a run and its log.
    fn save(
        &self,
        files: &RunFiles,
        simulation: &Simulation,
        log: Option<&mut RoundLog>,
    ) -> Result<(), Error> {
        self.place.check()?;
        // The log and its seal first: a checkpoint never contains rounds that the log lacks.
        if let Some(seal) = log.map_or(Ok(None), RoundLog::sync)? {
            files.note_seal(self.disk, self.runner.log_rounds, simulation.rounds_done(), seal)?;
        }
        files.save(self.disk, simulation)
    }

    /// The seals of the logs of a run that has ended, which may have been made with another log before.
    fn logs(
        &self,
        files: &RunFiles,
        result: &RunResult,
        is_logged: bool,
        seal: Option<LogSeal>,
    ) -> BTreeMap<String, LogSeal> {
        let before = files.read().ok().flatten();
        let is_same = |before: &StoredRun| before.result.outcome.digest == result.outcome.digest;
        let mut logs = before.filter(is_same).map(|before| before.logs).unwrap_or_default();
        if is_logged {
            let ending = self.runner.log_rounds.ending();
            logs.remove(ending);
            logs.extend(seal.map(|seal| (ending.to_owned(), seal)));
        }
        logs
    }

    /// The run from its last good checkpoint, from the final state of a shorter one, or from the start; and
    /// its log.
    fn restored(&self, index: usize, run: &Run, files: &RunFiles) -> Result<ActiveRun, Error> {
        let plan = self.runner.plan;
        let label = || plan.sweep.label(run);
        let logged = self.runner.log_rounds;
        let start = || {
            let mut simulation = plan.simulation(run)?;
            simulation.log_all_devices(logged == LogRounds::All);
            Ok::<Simulation, Error>(simulation)
        };
        let mut simulation = start()?;
        let mut processes = files.processes();
        let problems = files.restore(&mut simulation);
        if !problems.is_empty() {
            let rounds_done = simulation.rounds_done();
            let warning = Warning::BadCheckpoints { label: label(), problems, rounds_done };
            self.emit(Event::Warned { run: index, warning: &warning });
        }
        let mut seal = files.seal_at(logged, simulation.rounds_done());
        // The run itself, if it is made again for its log, or the longest shorter one.
        let mut earlier = files.read().ok().flatten();
        if earlier.is_none()
            && let Some((shorter, stored)) = files.shorter(&run.spec).into_iter().next()
        {
            if let Some(differences) = digest_differences(&stored.data, &plan.data_digests(run)) {
                return Err(Error::OtherData { path: shorter.finished(), differences });
            }
            if simulation.rounds_done() == 0
                && let Ok(file) = open_state(&shorter.state())
                && simulation.restore(file).is_ok()
            {
                processes.clone_from(&stored.processes);
                seal = stored.logs.get(logged.ending()).cloned();
                // A log that was changed is not copied, so that the run starts over.
                let check =
                    || check_log(&shorter.rounds(logged), logged, &stored.result.outcome, seal.as_ref());
                if logged.is_on() && check().is_ok() {
                    files.copy_rounds(self.disk, &shorter, logged)?;
                }
            }
            earlier = Some(stored);
        }
        if !logged.is_on() {
            return Ok(ActiveRun { simulation, log: None, processes, earlier });
        }
        let lines = logged.lines(&simulation.outcome());
        let path = files.rounds(logged);
        let done = (simulation.rounds_done(), lines);
        if let Some(log) = RoundLog::open(self.disk, &path, logged, done, seal.as_ref())? {
            return Ok(ActiveRun { simulation, log: Some(log), processes, earlier });
        }
        self.emit(Event::Warned { run: index, warning: &Warning::LogGaps { label: label() } });
        let log = RoundLog::open(self.disk, &path, logged, (0, 0), None)?;
        Ok(ActiveRun { simulation: start()?, log, processes: Vec::new(), earlier })
    }

    /// Removes the shorter runs that this one replaces and that the sweep no longer has.
    fn remove_shorter(&self, run: &Run, files: &RunFiles) -> Result<(), Error> {
        for (shorter, _) in files.shorter(&run.spec) {
            if !self.runner.keep_shorter && !self.names.contains(&shorter.name()) {
                shorter.remove(self.disk)?;
            }
        }
        Ok(())
    }
}

/// An error unless the rounds so far repeat an earlier result.
fn compare(
    run: &Run,
    name: &str,
    earlier: &StoredRun,
    simulation: &Simulation,
    processes: &[Process],
) -> Result<(), Error> {
    let every = run.spec.run.evaluate_every;
    let theirs = &earlier.result;
    let finished = theirs.status == Status::Finished;
    let due = theirs.outcome.rounds.is_multiple_of(every) || earlier.rounds == run.spec.run.rounds;
    let same = if finished && due {
        theirs.outcome.digest == simulation.outcome().digest
    } else {
        // The last round of the earlier run was evaluated only because it was its last, or it diverged.
        let common = theirs.rows.len().saturating_sub(usize::from(finished));
        theirs.rows[..common].iter().zip(simulation.rows()).all(|(a, b)| super::rerun::same_row(a, b))
    };
    if same {
        return Ok(());
    }
    Err(Error::NotRepeated {
        run: name.to_owned(),
        rounds: theirs.outcome.rounds,
        stored: format!("{} by {}", theirs.outcome.digest, processes_text(&earlier.processes)),
        repeated: format!("{} by {}", simulation.outcome().digest, processes_text(processes)),
    })
}

/// The processes of a run in words.
pub(super) fn processes_text(processes: &[Process]) -> String {
    processes.iter().map(Process::text).collect::<Vec<_>>().join(" and ")
}
