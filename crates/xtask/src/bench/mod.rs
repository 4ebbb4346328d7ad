//! `cargo xtask bench peers`: fedlink beside what else could be used, and beside its own targets.
//!
//! Everything is measured in one run on one machine and told as ratios; see `bench/README.md`.

mod peers;
mod run;
mod targets;

use anyhow::{Context, bail};
use run::Bench;
use std::path::Path;
use std::process::Command;

const USAGE: &str = "\
Usage: cargo xtask bench peers [OPTIONS]

Needs python3 (3.11 or later) and, for the first run, a package index; MNIST is taken from $FEDLINK_DATA/mnist, or
fetched if that is not set.

Options:
  --only NAME[,NAME…]      these only: jax, torch, torch-pool, pfl, flower, targets
  --repetitions N          runs of each, fedlink and peer in turn [default: 3]
  --rounds N               rounds of a BN2-C run [default: 200]
  --fedavg-rounds N        rounds of a FedAvg run [default: 40]
  --warmup N               rounds of a run that are not counted [default: 10]
  --threads N              threads or processes that each may use [default: 2]
  --small                  targets with a hundredth of the devices, to try the command out
  --allow-missing          succeed even if a peer cannot be installed or run";

/// What the command line asks for.
struct Options {
    only: Vec<String>,
    repetitions: u64,
    rounds: u64,
    fedavg_rounds: u64,
    warmup: u64,
    threads: u64,
    small: bool,
    allow_missing: bool,
}

impl Options {
    /// None if only help is wanted.
    fn read(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Option<Self>> {
        let mut options = Self {
            only: Vec::new(),
            repetitions: 3,
            rounds: 200,
            fedavg_rounds: 40,
            warmup: 10,
            threads: 2,
            small: false,
            allow_missing: false,
        };
        while let Some(name) = arguments.next() {
            match name.as_str() {
                "--help" | "-h" => return Ok(None),
                "--small" => options.small = true,
                "--allow-missing" => options.allow_missing = true,
                "--only" | "--repetitions" | "--rounds" | "--fedavg-rounds" | "--warmup" | "--threads" => {
                    let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
                    options.set(&name, &value).with_context(|| format!("{name} {value}"))?;
                }
                _ => bail!("there is no option {name:?}\n\n{USAGE}"),
            }
        }
        if options.repetitions == 0 || options.threads == 0 {
            bail!("--repetitions and --threads must be at least 1");
        }
        if options.warmup >= options.rounds.min(options.fedavg_rounds) {
            bail!("--warmup must be less than --rounds and --fedavg-rounds, or no round is left to be timed");
        }
        Ok(Some(options))
    }

    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match name {
            "--only" => {
                self.only = value.split(',').map(str::to_owned).collect();
                let known: Vec<&str> = peers::PEERS.iter().map(|peer| peer.name).chain(["targets"]).collect();
                if let Some(other) = self.only.iter().find(|name| !known.contains(&name.as_str())) {
                    bail!("there is no {other:?}; there are {}", known.join(", "));
                }
            }
            "--repetitions" => self.repetitions = value.parse()?,
            "--rounds" => self.rounds = value.parse()?,
            "--fedavg-rounds" => self.fedavg_rounds = value.parse()?,
            "--warmup" => self.warmup = value.parse()?,
            _ => self.threads = value.parse()?,
        }
        Ok(())
    }

    /// Whether `name` is to be measured.
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

/// Measures, prints the tables, and keeps them with every raw run under `bench/runs/`.
pub fn bench(root: &Path, mut arguments: impl Iterator<Item = String>) -> anyhow::Result<()> {
    match arguments.next().as_deref() {
        Some("peers") => {}
        Some("help" | "--help" | "-h") => {
            println!("{USAGE}");
            return Ok(());
        }
        _ => bail!("say what to measure\n\n{USAGE}"),
    }
    let Some(options) = Options::read(arguments)? else {
        println!("{USAGE}");
        return Ok(());
    };
    let bench = Bench::new(root, &options)?;
    let machine = machine(&options);
    eprintln!("{machine}");

    let mut report = format!("# fedlink and its peers\n\n{machine}\n");
    let (table, trouble) = peers::compare(&bench, &options)?;
    report += &table;
    if options.wants("targets") {
        report += &targets::measure(&bench, &options)?;
    }
    println!("{report}");
    std::fs::write(bench.runs.join("report.md"), &report)?;
    eprintln!("kept in {}", bench.runs.display());
    trouble.verdict(options.allow_missing)
}

/// Where and when, in words.
fn machine(options: &Options) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo")
        .lines()
        .find_map(|line| {
            line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim().to_owned())
        })
        .unwrap_or_else(|| "an unknown CPU".into());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = read("/proc/loadavg").split_whitespace().next().unwrap_or("unknown").to_owned();
    let date = output_of("date", &["-u", "+%Y-%m-%d %H:%M UTC"]);
    let commit = output_of("git", &["describe", "--always", "--dirty", "--exclude", "*"]);
    let busy = load.parse::<f64>().is_ok_and(|load| load > 0.5);
    let warning = if busy { "\n\n**The machine was busy: these numbers say little.**" } else { "" };
    format!(
        "{date}; {cpu}, {cores} cores, {} threads used; load {load} at the start; commit {commit}.{warning}\n",
        options.threads
    )
}

/// What a command prints, on one line; its name with a question mark if it cannot be run.
fn output_of(command: &str, arguments: &[&str]) -> String {
    match Command::new(command).args(arguments).output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => format!("{command}?"),
    }
}
