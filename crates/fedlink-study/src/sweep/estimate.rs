//! How long runs would take, and how much memory, by a short trial of each kind.

use super::cell::CellFiles;
use super::plan::Plan;
use super::runner::side_by_side;
use crate::error::Error;
use crate::experiment::Cell;
use fedlink::config::Config;
use fedlink::data::Features;
use fedlink::simulation::Simulation;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// How fast this machine does one kind of work.
#[derive(Clone, Copy)]
struct Pace {
    /// Seconds for a device's training and report, all threads being busy.
    device: f64,
    /// Seconds for an evaluation on the test set.
    evaluation: f64,
}

/// What one run would take.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunForecast {
    /// Its index among all runs.
    pub index: usize,
    /// What distinguishes it from the other curves.
    pub label: String,
    /// Rounds to be done.
    pub rounds: u64,
    /// Devices that train in a round.
    pub trained: usize,
    /// Wall-clock time in seconds, all threads being at its service.
    pub seconds: f64,
    /// Memory.
    pub bytes: u64,
}

/// What runs would take.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Forecast {
    /// Each of them.
    pub runs: Vec<RunForecast>,
    /// How many run at a time.
    pub at_once: usize,
    /// On how many threads.
    pub threads: usize,
    /// Wall-clock time of all in seconds.
    pub seconds: f64,
    /// Memory at most.
    pub peak_bytes: u64,
    /// What of it is training data.
    pub data_bytes: u64,
}

/// Rounds of a run that need not be done again, by its checkpoint in `folder`.
pub fn rounds_saved(plan: &Plan, folder: &Path, index: usize) -> u64 {
    let cell = &plan.cells[index];
    let files = CellFiles::new(folder, &cell.config);
    let restored = || {
        let mut simulation = plan.simulation(cell).ok()?;
        files.restore(&mut simulation);
        Some(simulation.rounds_done())
    };
    if files.was_begun() { restored().unwrap_or(0) } else { 0 }
}

/// What the runs of these indices would take, of each of which so many rounds are done. Each kind of run is
/// tried on a few devices for a moment.
pub fn forecast(
    plan: &Plan,
    indices: &[usize],
    done: &dyn Fn(usize) -> u64,
    pool: &rayon::ThreadPool,
) -> Result<Forecast, Error> {
    let threads = pool.current_num_threads();
    let mut paces: Vec<(Config, Pace)> = Vec::new();
    let mut runs = Vec::new();
    for &index in indices {
        let cell = &plan.cells[index];
        let kind = probe_of(&cell.config, threads);
        let known = paces.iter().position(|(known, _)| *known == kind);
        if known.is_none() {
            paces.push((kind.clone(), measure(plan, cell, &kind, pool)?));
        }
        let (_, pace) = paces[known.unwrap_or(paces.len() - 1)];
        let needs = plan.needs(cell);
        let rounds = cell.config.run.rounds.saturating_sub(done(index));
        let every = cell.config.run.evaluate_every as f64;
        runs.push(RunForecast {
            index,
            label: plan.label(cell),
            rounds,
            trained: needs.trained,
            seconds: rounds as f64 * (needs.trained as f64 * pace.device + pace.evaluation / every),
            // A worker has a model, a gradient, an update and the moments of an optimizer of its own.
            bytes: needs.bytes + (threads * needs.dim * 6 * 4) as u64,
        });
    }
    let at_once = side_by_side(threads, indices.len());
    let data_bytes = plan.datasets().values().map(|dataset| feature_bytes(&dataset.train.features)).sum();
    let mut bytes: Vec<u64> = runs.iter().map(|run| run.bytes).collect();
    bytes.sort_unstable_by_key(|bytes| std::cmp::Reverse(*bytes));
    Ok(Forecast {
        at_once,
        threads,
        seconds: runs.iter().map(|run| run.seconds).sum(),
        peak_bytes: data_bytes + bytes.iter().take(at_once).sum::<u64>(),
        data_bytes,
        runs,
    })
}

/// The same work on a few devices: two for every thread. Runs with the same probe go at the same pace.
fn probe_of(config: &Config, threads: usize) -> Config {
    let mut probe = config.clone();
    probe.data.devices = config.data.devices.min(2 * threads as u64);
    probe.schedule.k = 1;
    probe.schedule.policy = "bn2-c".into();
    (probe.run.rounds, probe.run.evaluate_every) = (u64::from(u32::MAX), u64::from(u32::MAX));
    (probe.run.seed, probe.run.seeds) = (0, 1);
    probe
}

fn measure(plan: &Plan, cell: &Cell, probe: &Config, pool: &rayon::ThreadPool) -> Result<Pace, Error> {
    let mut simulation = Simulation::with_parts(probe, Arc::clone(plan.dataset(cell)), &plan.parts)?;
    // The first round makes what later ones reuse.
    pool.install(|| simulation.step())?;
    let mut device = f64::INFINITY;
    for _ in 0..3 {
        let started = Instant::now();
        pool.install(|| simulation.step())?;
        device = device.min(started.elapsed().as_secs_f64() / probe.data.devices as f64);
    }
    let started = Instant::now();
    pool.install(move || simulation.evaluate())?;
    Ok(Pace { device, evaluation: started.elapsed().as_secs_f64() })
}

fn feature_bytes(features: &Features) -> u64 {
    match features {
        Features::Bytes(bytes) => bytes.len() as u64,
        Features::Floats(floats) => 4 * floats.len() as u64,
    }
}
