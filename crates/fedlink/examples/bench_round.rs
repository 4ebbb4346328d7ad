//! Times rounds, one by one, and prints one line of JSON.
//!
//! `cargo run --release --package fedlink --example bench_round -- --rounds 200 --warmup 10 --threads 2 --seed 0
//! --set schedule.policy=bc`. Data sets other than the embedded one are looked for in `FEDLINK_DATA`.
//!
//! The line has the fields that `bench/peers` prints for other libraries, and `peak_memory` in bytes where the
//! system tells.

use fedlink::experiment::Experiment;
use fedlink::simulation::Simulation;
use std::error::Error;
use std::time::Instant;

struct Options {
    experiment: Experiment,
    task: String,
    rounds: usize,
    warmup: usize,
    threads: usize,
    seed: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::read(std::env::args().skip(1))?;
    let config = options.experiment.only_config()?;
    let folders: Vec<_> = std::env::var_os("FEDLINK_DATA").into_iter().map(Into::into).collect();
    let dataset = fedlink::data::load(&config.data, &folders)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build()?;
    let started = Instant::now();
    let mut simulation = Simulation::new(&config, dataset)?;
    let set_up = started.elapsed().as_secs_f64();

    let mut seconds = Vec::with_capacity(options.rounds);
    let (mut accuracy, mut trained) = (None, 0);
    for _ in 0..options.rounds {
        let started = Instant::now();
        let record = pool.install(|| simulation.step())?;
        seconds.push(started.elapsed().as_secs_f64());
        trained += record.trained;
        accuracy = record.evaluation.map(|evaluation| evaluation.accuracy).or(accuracy);
    }

    let line = serde_json::json!({
        "peer": "fedlink",
        "task": options.task,
        "versions": { "fedlink": env!("CARGO_PKG_VERSION") },
        "rounds": options.rounds,
        "warmup": options.warmup,
        "threads": options.threads,
        "seed": options.seed,
        "seconds_per_round": median(&seconds[options.warmup..]),
        "seconds": seconds,
        "seconds_to_set_up": set_up,
        "accuracy": accuracy,
        "trained_per_round": trained as f64 / options.rounds as f64,
        "peak_memory": peak_memory(),
    });
    println!("{line}");
    Ok(())
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let experiment = Experiment::parse("bench", "")?;
        let mut options =
            Self { experiment, task: "default".into(), rounds: 200, warmup: 10, threads: 2, seed: 0 };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--rounds" => options.rounds = value.parse()?,
                "--warmup" => options.warmup = value.parse()?,
                "--threads" => options.threads = value.parse()?,
                "--seed" => options.seed = value.parse()?,
                "--task" => options.task = value,
                "--set" => {
                    let (key, value) = value.split_once('=').ok_or("--set takes KEY=VALUE")?;
                    options.experiment.set(key, value)?;
                }
                _ => {
                    let known = "--rounds, --warmup, --threads, --seed, --task, --set";
                    return Err(format!("there is no {name}; there are {known}").into());
                }
            }
        }
        if options.warmup >= options.rounds {
            return Err("--warmup leaves no round: it must be less than --rounds".into());
        }
        options.experiment.set("run.rounds", &options.rounds.to_string())?;
        options.experiment.set("run.seed", &options.seed.to_string())?;
        Ok(options)
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

/// The most memory that this process has held so far, in bytes; none where there is no `/proc`.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| 1024 * kilobytes)
}
