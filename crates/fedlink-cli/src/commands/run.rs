//! `fedlink run`: run an experiment, show its progress, write its results.

use super::data::folders;
use super::{experiment, theory_run};
use crate::args::RunOptions;
use crate::failure::Exit;
use crate::output::OutputFolder;
use crate::progress::Progress;
use crate::results::{RunResult, Status};
use crate::{interrupt, results};
use anyhow::Context;
use fedlink::Error;
use fedlink::config::Config;
use fedlink::data::Dataset;
use fedlink::experiment::Curve;
use fedlink::record::RoundRecord;
use fedlink::simulation::Simulation;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Curves that run side by side at least, so that a race looks like one even on a single core.
const SIDE_BY_SIDE: usize = 4;

/// One run: a curve at one seed.
struct Cell {
    curve: usize,
    config: Config,
}

pub fn run(options: &RunOptions) -> anyhow::Result<Exit> {
    if let Some(exit) = theory_run::run(options)? {
        return Ok(exit);
    }
    let started = Instant::now();
    interrupt::listen()?;
    let mut experiment =
        experiment(Some(options.experiment.as_deref().unwrap_or("demo")), &options.settings)?;
    if let Some(seeds) = options.seeds {
        experiment.set("run.seeds", &seeds.to_string())?;
    }
    let curves = experiment.curves()?;
    let folder = match &options.out {
        Some(path) => OutputFolder::create(path, options.force)?,
        None => OutputFolder::create_new(Path::new("results"), &experiment.name)?,
    };
    let cells: Vec<Cell> = curves.iter().enumerate().flat_map(|(i, curve)| cells_of(i, curve)).collect();
    let datasets = load_datasets(&cells, &folders(options.data_dir.as_deref()))?;
    // Every curve is set up once before the first one runs: what cannot run is told now.
    for cell in &cells {
        Simulation::new(&cell.config, Arc::clone(&datasets[&cell.config.data.dataset]))?;
    }
    let threads = options.threads.map_or_else(default_threads, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let lengths: Vec<(String, u64)> =
        curves.iter().map(|c| (c.label.clone(), c.config.run.rounds * c.config.run.seeds)).collect();
    let progress = Progress::new(&lengths, options.quiet);
    let runs = run_cells(&cells, &datasets, &pool, &progress)?;
    let results = results::gather(&curves, runs);
    if results.is_empty() {
        eprintln!("stopped before the first round; nothing was written");
        return Ok(Exit::Interrupted);
    }

    folder.write("config.toml", experiment.to_toml()?)?;
    folder.write("results.csv", results::csv(&results)?)?;
    let summary = results::json(&results)?;
    folder.write("summary.json", &summary)?;
    results::plots(&experiment.name, &results, &folder)?;
    let place = folder.finish()?;

    if options.json {
        print!("{summary}");
    } else if !options.quiet {
        print!("\n{}", results::table(&results));
        println!("\n{} in {:.1} s", place.display(), started.elapsed().as_secs_f64());
        println!("  accuracy.svg  accuracy.png  results.csv  summary.json  config.toml");
    }
    Ok(results::exit(&results))
}

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn cells_of(index: usize, curve: &Curve) -> impl Iterator<Item = Cell> {
    let config = &curve.config;
    (0..config.run.seeds).map(move |i| {
        let mut config = config.clone();
        config.run.seed += i;
        Cell { curve: index, config }
    })
}

fn load_datasets(cells: &[Cell], folders: &[PathBuf]) -> anyhow::Result<BTreeMap<String, Arc<Dataset>>> {
    let mut datasets = BTreeMap::new();
    for cell in cells {
        let name = &cell.config.data.dataset;
        if !datasets.contains_key(name) {
            let dataset = fedlink::data::load(&cell.config.data, folders).context("data.dataset")?;
            datasets.insert(name.clone(), dataset);
        }
    }
    Ok(datasets)
}

/// Runs all cells on the pool, a few side by side, and returns those that were begun.
fn run_cells(
    cells: &[Cell],
    datasets: &BTreeMap<String, Arc<Dataset>>,
    pool: &rayon::ThreadPool,
    progress: &Progress,
) -> Result<Vec<(usize, RunResult)>, Error> {
    let next = AtomicUsize::new(0);
    let finished = Mutex::new(Vec::new());
    let drive = || {
        while !interrupt::asked() {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(cell) = cells.get(place) else { break };
            let dataset = Arc::clone(&datasets[&cell.config.data.dataset]);
            let result = run_cell(cell, dataset, pool, progress);
            finished.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
        }
    };
    let side_by_side = cells.len().min(pool.current_num_threads().max(SIDE_BY_SIDE));
    std::thread::scope(|scope| {
        for _ in 0..side_by_side {
            scope.spawn(drive);
        }
    });
    let mut finished = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
    finished.sort_by_key(|(place, _)| *place);
    finished.into_iter().map(|(place, result)| Ok((cells[place].curve, result?))).collect()
}

fn run_cell(
    cell: &Cell,
    dataset: Arc<Dataset>,
    pool: &rayon::ThreadPool,
    progress: &Progress,
) -> Result<RunResult, Error> {
    let mut simulation = Simulation::new(&cell.config, dataset)?;
    let mut status = Status::Finished;
    let watch = |record: &RoundRecord| {
        progress.round(cell.curve, record.evaluation.map(|evaluation| evaluation.accuracy));
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    for _ in 0..cell.config.run.rounds {
        // The pool is entered anew for every round: a thread that waits for its round's slowest device may then
        // help another curve, but never for longer than one round.
        match pool.install(|| simulation.step()) {
            Ok(record) if watch(&record).is_break() => {
                status = Status::Interrupted;
                break;
            }
            Ok(_) => {}
            Err(error @ Error::Diverged { .. }) => {
                progress.end(cell.curve, Some(&error.to_string()));
                status = Status::Diverged(error.to_string());
                break;
            }
            Err(error) => return Err(error),
        }
    }
    if simulation.outcome().rounds == cell.config.run.rounds {
        status = Status::Finished;
    }
    Ok(RunResult {
        seed: cell.config.run.seed,
        rows: simulation.rows().to_vec(),
        outcome: simulation.outcome(),
        status,
    })
}
