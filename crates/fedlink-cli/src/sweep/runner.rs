//! Runs cells side by side, saving where each stands.

use super::cell::CellFiles;
use super::log::RoundLog;
use super::plan::Plan;
use crate::interrupt;
use crate::progress::{Lane, Progress};
use crate::results::{RunResult, Status};
use fedlink::Error;
use fedlink::radio::link::transmit_power;
use fedlink::simulation::Simulation;
use fedlink::units::Power;
use fedlink_study::experiment::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Runs that go on side by side at least, so that a race looks like one even on a single core.
const SIDE_BY_SIDE: usize = 4;

/// How to run.
pub struct Runner<'a> {
    pub plan: &'a Plan,
    /// The experiment's folder.
    pub folder: &'a Path,
    pub pool: &'a rayon::ThreadPool,
    /// Rounds between checkpoints; 0 saves only when the run is stopped.
    pub checkpoint_every: u64,
    pub log_rounds: bool,
    pub quiet: bool,
}

/// A run that was begun.
pub struct Done {
    /// Its place among all runs.
    pub place: usize,
    pub result: RunResult,
    /// Rounds that an earlier process had done.
    pub resumed_from: u64,
}

/// How many runs go on at a time.
pub fn side_by_side(threads: usize, runs: usize) -> usize {
    runs.min(threads.max(SIDE_BY_SIDE))
}

impl Runner<'_> {
    /// Runs the cells at `places` in that order, a few side by side, and returns those that were begun, by place. A
    /// run that is done already is read from its file; one that was broken off goes on from its last checkpoint.
    pub fn run(&self, places: &[usize]) -> anyhow::Result<Vec<Done>> {
        let lane = |&place: &usize| {
            let cell = &self.plan.cells[place];
            let rounds = cell.config.run.rounds;
            Lane { label: self.plan.label(cell), rounds, cost: self.plan.cost(cell) / rounds as f64 }
        };
        let progress = Progress::new(places.iter().map(lane).collect(), self.quiet);
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let finished = Mutex::new(Vec::new());
        let drive = || {
            while !interrupt::asked() && !failed.load(Ordering::SeqCst) {
                let lane = next.fetch_add(1, Ordering::SeqCst);
                let Some(&place) = places.get(lane) else { break };
                let result = self.run_cell(place, lane, &progress, &failed);
                failed.fetch_or(result.is_err(), Ordering::SeqCst);
                finished.lock().unwrap_or_else(PoisonError::into_inner).push(result);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..side_by_side(self.pool.current_num_threads(), places.len()) {
                scope.spawn(drive);
            }
        });
        let finished = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut finished = finished.into_iter().collect::<anyhow::Result<Vec<Done>>>()?;
        finished.sort_by_key(|done| done.place);
        Ok(finished)
    }

    fn run_cell(
        &self,
        place: usize,
        lane: usize,
        progress: &Progress,
        failed: &AtomicBool,
    ) -> anyhow::Result<Done> {
        let started = Instant::now();
        let cell = &self.plan.cells[place];
        let rounds = cell.config.run.rounds;
        let files = CellFiles::new(self.folder, place);
        match files.finished(&cell.config) {
            Ok(Some(result)) if !self.log_rounds || files.rounds.exists() => {
                progress.begin(lane, rounds);
                progress.end(lane, None);
                return Ok(Done { place, result, resumed_from: rounds });
            }
            Ok(_) => {}
            Err(problem) => progress.note(&format!("{problem:#}; the run is repeated")),
        }
        let (mut simulation, mut log) = self.take_up(cell, &files, progress)?;
        let resumed_from = simulation.rounds_done();
        progress.begin(lane, resumed_from);
        let mut status = Status::Finished;
        while simulation.rounds_done() < rounds {
            // The pool is entered anew for every round: a thread that waits for its round's slowest device may then
            // help another run, but never for longer than one round.
            match self.pool.install(|| simulation.step()) {
                Ok(record) => {
                    progress.round(lane, record.evaluation.map(|evaluation| evaluation.accuracy));
                    if let Some(log) = &mut log {
                        log.add(&record)?;
                    }
                }
                Err(error @ Error::Diverged { .. }) => {
                    status = Status::Diverged(error.to_string());
                    break;
                }
                Err(error) => return Err(error.into()),
            }
            let done = simulation.rounds_done();
            let stop = interrupt::asked() || failed.load(Ordering::SeqCst);
            let due = self.checkpoint_every > 0 && done.is_multiple_of(self.checkpoint_every);
            if done < rounds && (stop || due) {
                // The log first: a checkpoint never knows of rounds that the log lacks.
                log.as_mut().map_or(Ok(()), RoundLog::flush)?;
                files.save(&simulation)?;
            }
            if done < rounds && stop {
                status = Status::Interrupted;
                break;
            }
        }
        log.as_mut().map_or(Ok(()), RoundLog::flush)?;
        let message = if let Status::Diverged(message) = &status { Some(message.as_str()) } else { None };
        progress.end(lane, message);
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
        Ok(Done { place, result, resumed_from })
    }

    /// The run from its last good checkpoint, or from the start, and its log.
    fn take_up(
        &self,
        cell: &Cell,
        files: &CellFiles,
        progress: &Progress,
    ) -> anyhow::Result<(Simulation, Option<RoundLog>)> {
        let start = || Simulation::new(&cell.config, Arc::clone(self.plan.dataset(cell)));
        let mut simulation = start()?;
        let complaints = files.restore(&mut simulation);
        if !complaints.is_empty() {
            let (label, done) = (self.plan.label(cell), simulation.rounds_done());
            progress.note(&format!("{label}: {}; going on from round {done}", complaints.join("; ")));
        }
        if !self.log_rounds {
            return Ok((simulation, None));
        }
        let (devices, k) = (cell.config.data.devices as usize, cell.config.schedule.k as usize);
        let power = transmit_power(devices, k, Power(cell.config.radio.power));
        let transmissions = simulation.outcome().scheduled.iter().map(|&times| u64::from(times)).sum();
        if let Some(log) = RoundLog::open(&files.rounds, simulation.rounds_done(), transmissions, power)? {
            return Ok((simulation, Some(log)));
        }
        progress.note(&format!("{}: its log of rounds has gaps; starting over", self.plan.label(cell)));
        let log = RoundLog::open(&files.rounds, 0, 0, power)?;
        Ok((start()?, log))
    }
}
