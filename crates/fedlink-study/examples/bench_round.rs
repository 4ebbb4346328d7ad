//! Times rounds, one by one, and prints one line of JSON.
//!
//! `cargo run --release --package fedlink-study --example bench_round -- --rounds 200 --threads 2 --seed 0
//! --set schedule.policy=bc`. Data sets other than the embedded one are looked for in `FEDLINK_DATA`.
//!
//! The line has the fields that `bench/peers` prints for other libraries.

use fedlink::system::simulation::Simulation;
use fedlink_study::experiment::Experiment;
use std::error::Error;
use std::time::Instant;

struct Options {
    experiment: Experiment,
    rounds: usize,
    threads: usize,
    seed: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    fedlink_study::choose_instructions()?;
    let options = Options::read(std::env::args().skip(1))?;
    let spec = options.experiment.clone().only_spec(&fedlink::parts::Parts::default())?;
    let folders: Vec<_> = std::env::var_os("FEDLINK_DATA").into_iter().map(Into::into).collect();
    let dataset = fedlink::data::load(&spec.data.dataset, &folders)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads).build()?;
    let mut simulation = Simulation::new(spec.with_work(dataset)?)?;

    let mut seconds = Vec::with_capacity(options.rounds);
    let mut accuracy = None;
    for _ in 0..options.rounds {
        let started = Instant::now();
        let record = pool.install(|| simulation.step())?;
        seconds.push(started.elapsed().as_secs_f64());
        accuracy = record.evaluation.map(|evaluation| evaluation.accuracy).or(accuracy);
    }

    let instructions = fedlink::base::kernels::instruction_set().to_string();
    let line = serde_json::json!({
        "program": "fedlink",
        "versions": { "fedlink": env!("CARGO_PKG_VERSION"), "instructions": instructions },
        "rounds": options.rounds,
        "threads": options.threads,
        "seed": options.seed,
        "seconds": seconds.iter().map(|s| (s * 1e6).round() / 1e6).collect::<Vec<f64>>(),
        "accuracy": accuracy.ok_or("no round evaluated")?,
    });
    println!("{line}");
    Ok(())
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let experiment = Experiment::parse("bench", "")?;
        let mut options = Self { experiment, rounds: 200, threads: 2, seed: 0 };
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--rounds" => options.rounds = value.parse()?,
                "--threads" => options.threads = value.parse()?,
                "--seed" => options.seed = value.parse()?,
                "--set" => {
                    let (key, value) = value.split_once('=').ok_or("--set takes KEY=VALUE")?;
                    options.experiment.set(key, value)?;
                }
                _ => {
                    let known = "--rounds, --threads, --seed, --set";
                    return Err(format!("there is no {name}; there are {known}").into());
                }
            }
        }
        options.experiment.set("run.rounds", &options.rounds.to_string())?;
        options.experiment.set("run.seed", &options.seed.to_string())?;
        Ok(options)
    }
}
