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
use std::time::Instant;

/// The pace of this machine at one kind of run while as many runs are computed side by side as in the sweep.
#[derive(Clone, Copy)]
struct Pace {
    /// Seconds of wall-clock time for a round.
    round: f64,
    /// Seconds for an evaluation on the test set.
    evaluation: f64,
}

/// Seconds after which the pace of further curves is concluded from that of measured ones.
const ENOUGH_SECONDS: f64 = 15.0;

/// Seconds and rounds after which a curve is measured.
const PER_CURVE: (f64, u64) = (0.5, 20);

/// Multiplications of a round above which a few devices stand for all.
const HEAVY: f64 = 1e10;

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

/// The estimate for the runs of these indices; `done` gives the rounds of each that are done. The first
/// rounds of every curve are computed as in the sweep, as many runs side by side, until the time for that is
/// over; the pace of further curves is that of a similar one, by the multiplications of a round.
pub fn forecast(
    plan: &Plan,
    indices: &[usize],
    done: &dyn Fn(usize) -> u64,
    pool: &rayon::ThreadPool,
) -> Result<Forecast, Error> {
    let threads = pool.current_num_threads();
    let at_once = side_by_side(threads, indices.len());
    let started = Instant::now();
    let mut measured: Vec<Measured> = Vec::new();
    // The seeds of a curve are of one kind.
    let mut pace_of: BTreeMap<usize, Pace> = BTreeMap::new();
    let mut runs = Vec::new();
    for &index in indices {
        let run = &plan.sweep.runs[index];
        let pace = if let Some(known) = pace_of.get(&run.curve) {
            *known
        } else {
            let (kind, family) = (kind_of(&run.spec), probe_of(&run.spec, threads));
            let same = measured.iter().find(|one| one.kind == kind);
            let similar = || measured.iter().find(|one| one.family == family).or(measured.first());
            let is_late = started.elapsed().as_secs_f64() > ENOUGH_SECONDS;
            let pace = match (same, similar().filter(|_| is_late)) {
                (Some(one), _) => one.pace,
                (None, Some(one)) => one.scaled(plan.round_cost(run)),
                (None, None) => {
                    let pace = measure(plan, run, &family, pool, at_once)?;
                    measured.push(Measured { kind, family, cost: plan.round_cost(run), pace });
                    pace
                }
            };
            pace_of.insert(run.curve, pace);
            pace
        };
        let needs = plan.needs(run);
        let rounds = run.spec.run.rounds.saturating_sub(done(index));
        let every = run.spec.run.evaluate_every as f64;
        runs.push(RunForecast {
            index,
            label: plan.sweep.label(run),
            rounds,
            trained: needs.trained,
            seconds: rounds as f64 * (pace.round + pace.evaluation / every),
            // Each worker has its own model, gradient, update and optimizer moments.
            bytes: needs.bytes + (threads * needs.dim * 6 * 4) as u64,
        });
    }
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

/// A curve whose pace is known.
struct Measured {
    /// Its configuration but for seeds and rounds.
    kind: Config,
    /// The same without policy, K and devices.
    family: Config,
    /// Multiplications of a round.
    cost: f64,
    pace: Pace,
}

impl Measured {
    /// The pace of a similar curve whose rounds have so many multiplications.
    fn scaled(&self, cost: f64) -> Pace {
        let factor = if self.cost > 0.0 { cost / self.cost } else { 1.0 };
        Pace { round: factor * self.pace.round, ..self.pace }
    }
}

/// The configuration of a curve but for its seeds and rounds.
fn kind_of(spec: &Spec) -> Config {
    let mut kind = spec.config().clone();
    (kind.run.rounds, kind.run.seed, kind.run.seeds) = (1, 0, 1);
    kind
}

/// The same work on a few devices: two for every thread.
fn probe_of(spec: &Spec, threads: usize) -> Config {
    let mut probe = kind_of(spec);
    probe.data.devices = spec.data.devices.min(2 * threads as u64);
    probe.schedule.k = 1;
    probe.schedule.policy = "bn2-c".into();
    (probe.run.rounds, probe.run.evaluate_every) = (u64::from(u32::MAX), u64::from(u32::MAX));
    probe
}

/// Measures a run, or if its rounds are very long, `probe`, which has fewer devices.
fn measure(
    plan: &Plan,
    run: &Run,
    probe: &Config,
    pool: &rayon::ThreadPool,
    at_once: usize,
) -> Result<Pace, Error> {
    let parts = &plan.sweep.parts;
    if plan.round_cost(run) * at_once as f64 > HEAVY
        && let Ok(spec) = probe.resolve(parts)
        && let Ok(pace) = pace(plan, &spec, pool, 1)
    {
        let devices = plan.needs(run).trained as f64 / probe.data.devices as f64;
        return Ok(Pace { round: devices * pace.round, ..pace });
    }
    // Evaluations are measured apart.
    let mut config = run.spec.config().clone();
    config.run.evaluate_every = u64::from(u32::MAX);
    pace(plan, &config.resolve(parts)?, pool, at_once)
}

/// The pace of `spec`, `at_once` runs of it side by side.
fn pace(plan: &Plan, spec: &Spec, pool: &rayon::ThreadPool, at_once: usize) -> Result<Pace, Error> {
    let (most_seconds, most_rounds) = PER_CURVE;
    let new = || Simulation::new(spec.with_work(plan.work(spec)?)?);
    let mut simulations: Vec<Simulation> = (0..at_once).map(|_| new()).collect::<Result<_, _>>()?;
    let rounds = |simulations: &mut [Simulation], rounds: u64| -> Result<f64, Error> {
        let begun = Instant::now();
        let step = |simulation: &mut Simulation| {
            (0..rounds).try_for_each(|_| pool.install(|| simulation.step()).map(drop))
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = simulations.iter_mut().map(|one| scope.spawn(move || step(one))).collect();
            threads.into_iter().try_for_each(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
        Ok(begun.elapsed().as_secs_f64() / (rounds * at_once as u64) as f64)
    };
    // The first round makes what later ones reuse. The last one is evaluated.
    let mut round = rounds(&mut simulations, 1)?;
    let (begun, mut times, mut left) = (Instant::now(), Vec::new(), spec.run.rounds.saturating_sub(2));
    while left > 0 && begun.elapsed().as_secs_f64() < most_seconds && (times.len() as u64) < most_rounds {
        times.push(rounds(&mut simulations, 1)?);
        left -= 1;
    }
    if !times.is_empty() {
        round = times.iter().sum::<f64>() / times.len() as f64;
    }
    let begun = Instant::now();
    if let Some(simulation) = simulations.pop() {
        pool.install(move || simulation.evaluate())?;
    }
    Ok(Pace { round, evaluation: begun.elapsed().as_secs_f64() })
}

fn feature_bytes(features: &Features) -> u64 {
    match features {
        Features::Bytes(bytes) => bytes.len() as u64,
        Features::Floats(floats) => 4 * floats.len() as u64,
    }
}
