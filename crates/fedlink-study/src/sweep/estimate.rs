//! An estimate of the time and memory of runs, by a short trial of each kind.

use super::plan::Plan;
use super::run_files::RunFiles;
use super::runner::side_by_side;
use crate::error::Error;
use crate::experiment::Run;
use fedlink::data::Features;
use fedlink::spec::{Config, Spec};
use fedlink::system::simulation::Simulation;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The pace of this machine at one kind of run.
#[derive(Clone, Copy)]
struct Pace {
    /// Seconds for the training and report of a device while all threads work.
    device: f64,
    /// Seconds for an evaluation on the test set.
    evaluation: f64,
}

/// The estimate for one run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunForecast {
    /// Its index among all runs.
    pub index: usize,
    /// Its label in the sweep.
    pub label: String,
    /// Rounds that are left.
    pub rounds: u64,
    /// Devices that train per round.
    pub trained: usize,
    /// Wall-clock time in seconds with all threads.
    pub seconds: f64,
    /// Memory in bytes.
    pub bytes: u64,
}

/// The estimate for several runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Forecast {
    /// The estimate for each run.
    pub runs: Vec<RunForecast>,
    /// Runs at a time.
    pub at_once: usize,
    /// Threads.
    pub threads: usize,
    /// Wall-clock time of all in seconds.
    pub seconds: f64,
    /// The most memory at a time, in bytes.
    pub peak_bytes: u64,
    /// The training data in it.
    pub data_bytes: u64,
}

/// Rounds of a run that its checkpoint in `folder` saves.
pub fn rounds_saved(plan: &Plan, folder: &Path, index: usize) -> u64 {
    let run = &plan.sweep.runs[index];
    let files = RunFiles::new(folder, &run.spec);
    let restored = || {
        let mut simulation = plan.simulation(run).ok()?;
        files.restore(&mut simulation);
        Some(simulation.rounds_done())
    };
    if files.was_begun() { restored().unwrap_or(0) } else { 0 }
}

/// The estimate for the runs of these indices; `done` gives the rounds of each that are done. Each kind of
/// run is tried briefly on a few devices.
pub fn forecast(
    plan: &Plan,
    indices: &[usize],
    done: &dyn Fn(usize) -> u64,
    pool: &rayon::ThreadPool,
) -> Result<Forecast, Error> {
    let threads = pool.current_num_threads();
    let mut paces: Vec<(Config, Pace)> = Vec::new();
    // The seeds of a curve are of one kind.
    let mut pace_of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut runs = Vec::new();
    for &index in indices {
        let run = &plan.sweep.runs[index];
        let known = if let Some(known) = pace_of.get(&run.curve) {
            *known
        } else {
            let kind = probe_of(&run.spec, threads);
            let known = paces.iter().position(|(known, _)| *known == kind).unwrap_or(paces.len());
            if known == paces.len() {
                let pace = measure(plan, run, &kind, pool)?;
                paces.push((kind, pace));
            }
            pace_of.insert(run.curve, known);
            known
        };
        let (_, pace) = paces[known];
        let needs = plan.needs(run);
        let rounds = run.spec.run.rounds.saturating_sub(done(index));
        let every = run.spec.run.evaluate_every as f64;
        runs.push(RunForecast {
            index,
            label: plan.sweep.label(run),
            rounds,
            trained: needs.trained,
            seconds: rounds as f64 * (needs.trained as f64 * pace.device + pace.evaluation / every),
            // Each worker has its own model, gradient, update and optimizer moments.
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
fn probe_of(spec: &Spec, threads: usize) -> Config {
    let mut probe = spec.config().clone();
    probe.data.devices = spec.data.devices.min(2 * threads as u64);
    probe.schedule.k = 1;
    probe.schedule.policy = "bn2-c".into();
    (probe.run.rounds, probe.run.evaluate_every) = (u64::from(u32::MAX), u64::from(u32::MAX));
    (probe.run.seed, probe.run.seeds) = (0, 1);
    probe
}

fn measure(plan: &Plan, run: &Run, probe: &Config, pool: &rayon::ThreadPool) -> Result<Pace, Error> {
    let spec = probe.resolve(&plan.sweep.parts)?;
    let mut simulation = Simulation::new(spec.with_work(Arc::clone(plan.dataset(run)))?)?;
    // The first round allocates the memory that later ones reuse.
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
