//! `--dry-run`: what would be run, how long it would take, and how much memory.

use super::plan::Plan;
use super::runner::side_by_side;
use crate::progress::duration;
use crate::table::table;
use fedlink::config::Config;
use fedlink::data::Features;
use fedlink::simulation::Simulation;
use fedlink_study::experiment::Cell;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

/// How fast this machine does one kind of work.
#[derive(Clone, Copy)]
struct Pace {
    /// Seconds for a device's training and report, all threads being busy.
    device: f64,
    /// Seconds for a look at the test set.
    look: f64,
}

/// A table of the runs at `places` with estimates. Each kind of run is tried on a few devices for a moment.
pub fn dry_run(plan: &Plan, places: &[usize], pool: &rayon::ThreadPool) -> anyhow::Result<String> {
    let threads = pool.current_num_threads();
    let mut paces: Vec<(Config, Pace)> = Vec::new();
    let (mut rows, mut memories, mut total) = (Vec::new(), Vec::new(), 0.0);
    for &place in places {
        let cell = &plan.cells[place];
        let kind = probe_of(&cell.config, threads);
        let known = paces.iter().position(|(known, _)| *known == kind);
        if known.is_none() {
            paces.push((kind.clone(), measure(plan, cell, &kind, pool)?));
        }
        let (_, pace) = paces[known.unwrap_or(paces.len() - 1)];
        let needs = plan.needs(cell);
        let (rounds, every) = (cell.config.run.rounds as f64, cell.config.run.evaluate_every as f64);
        let seconds = rounds * (needs.trained as f64 * pace.device + pace.look / every);
        total += seconds;
        // A worker has a model, a gradient, an update and the moments of an optimiser of its own.
        let bytes = needs.bytes + (threads * needs.dim * 6 * 4) as u64;
        memories.push(bytes);
        rows.push(vec![
            (place + 1).to_string(),
            plan.label(cell),
            format!("{}", cell.config.run.rounds),
            format!("{}", needs.trained),
            duration(seconds),
            megabytes(bytes),
        ]);
    }
    memories.sort_unstable_by_key(|bytes| std::cmp::Reverse(*bytes));
    let at_once = side_by_side(threads, places.len());
    let data: u64 = plan.datasets().values().map(|dataset| feature_bytes(&dataset.train.features)).sum();
    let peak = data + memories.iter().take(at_once).sum::<u64>();
    let mut text = table(&["run", "curve", "rounds", "devices training", "time", "memory"], &rows);
    let _ = writeln!(
        text,
        "{} runs, {at_once} at a time on {threads} threads: about {}, about {} at most (training data {})",
        places.len(),
        duration(total),
        megabytes(peak),
        megabytes(data)
    );
    Ok(text)
}

/// The same work on a few devices: two for every thread. Runs with the same probe go at the same pace.
fn probe_of(config: &Config, threads: usize) -> Config {
    let mut probe = config.clone();
    probe.data.devices = config.data.devices.min(2 * threads as u64);
    probe.schedule.k = 1;
    probe.schedule.kc = Some(probe.data.devices);
    probe.schedule.policy = fedlink::schedule::policy::PolicyKind::Bn2C;
    (probe.run.rounds, probe.run.evaluate_every) = (u64::from(u32::MAX), u64::from(u32::MAX));
    (probe.run.seed, probe.run.seeds) = (0, 1);
    probe
}

fn measure(plan: &Plan, cell: &Cell, probe: &Config, pool: &rayon::ThreadPool) -> anyhow::Result<Pace> {
    let mut simulation = Simulation::new(probe, Arc::clone(plan.dataset(cell)))?;
    // The first round makes what later ones reuse.
    pool.install(|| simulation.step())?;
    let mut device = f64::INFINITY;
    for _ in 0..3 {
        let started = Instant::now();
        pool.install(|| simulation.step())?;
        device = device.min(started.elapsed().as_secs_f64() / probe.data.devices as f64);
    }
    let started = Instant::now();
    pool.install(move || simulation.evaluate());
    Ok(Pace { device, look: started.elapsed().as_secs_f64() })
}

fn feature_bytes(features: &Features) -> u64 {
    match features {
        Features::Bytes(bytes) => bytes.len() as u64,
        Features::Floats(floats) => 4 * floats.len() as u64,
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}
