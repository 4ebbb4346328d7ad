//! `cargo xtask bench`: the library's own benchmarks, and the comparison with other programs.

mod peers;
mod record;
mod report;
mod run;
mod task;

pub use report::{check_readme, write_readme};

use anyhow::{Context, bail};
use run::Bench;
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str = "\
Usage: cargo xtask bench
       cargo xtask bench cnn
       cargo xtask bench peers [OPTIONS]
       cargo xtask bench task [OPTIONS]

Without arguments: the kernels' times and the ratios of docs/performance.md.

cnn: a training step of the CNN beside the same in PyTorch, in turn, one thread each. Needs what peers needs.

peers: rounds of fedlink and of other libraries in turn, as a table of ratios; see bench/README.md. Needs
python3 (3.11 or later) and, for the first run, a package index. MNIST is taken from $FEDLINK_DATA/mnist, or
fetched if that is not set.

task: rounds of a PyTorch task through `fedlink.simulate` and by a bare PyTorch loop in turn, each with as
many processes; see bench/README.md. Needs the same. Options: --workers N [default: 2], --rounds N of a
stretch [default: 10], --repetitions N [default: 5], --out FOLDER.

Options of peers:
  --only NAME[,NAME…]      these only: jax, jax-tuned, torch, torch-tuned, pfl, flower, blazefl
  --repetitions N          runs of each, fedlink and peer in turn [default: 5]
  --rounds N               rounds of a BN2-C run [default: 200]
  --fedavg-rounds N        rounds of a FedAvg run [default: 60]
  --warmup N               rounds of a run that are not counted [default: 10]
  --threads N              threads or processes that each may use [default: 2]
  --out FOLDER             where the raw runs go [default: bench/runs/DATE]";

/// Rounds from one evaluation to the next.
const EVALUATE_EVERY: u64 = 10;

/// The options of `peers`.
struct Options {
    only: Vec<String>,
    repetitions: u64,
    rounds: u64,
    fedavg_rounds: u64,
    warmup: u64,
    threads: u64,
    out: Option<PathBuf>,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut options = Self {
            only: Vec::new(),
            repetitions: 5,
            rounds: 200,
            fedavg_rounds: 60,
            warmup: 10,
            threads: 2,
            out: None,
        };
        while let Some(name) = arguments.next() {
            let value = arguments.next().with_context(|| format!("{name}: no such option, or no value"))?;
            options.set(&name, &value).with_context(|| format!("{name} {value}"))?;
        }
        if options.repetitions == 0 || options.threads == 0 {
            bail!("--repetitions and --threads must be at least 1");
        }
        let &Self { rounds, fedavg_rounds, warmup, .. } = &options;
        if [rounds, fedavg_rounds, warmup].iter().any(|count| count % EVALUATE_EVERY != 0) {
            bail!(
                "--rounds, --fedavg-rounds and --warmup must be multiples of {EVALUATE_EVERY}: every \
                 {EVALUATE_EVERY}th round evaluates, and a time is the mean of that many"
            );
        }
        if warmup >= rounds.min(fedavg_rounds) {
            bail!("--warmup must be less than --rounds and --fedavg-rounds, or no round is left to be timed");
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match name {
            "--only" => {
                self.only = value.split(',').map(str::to_owned).collect();
                let known: Vec<&str> = peers::PEERS.iter().map(|peer| peer.name).collect();
                if let Some(other) = self.only.iter().find(|name| !known.contains(&name.as_str())) {
                    bail!("there is no {other:?}; there are {}", known.join(", "));
                }
            }
            "--repetitions" => self.repetitions = value.parse()?,
            "--rounds" => self.rounds = value.parse()?,
            "--fedavg-rounds" => self.fedavg_rounds = value.parse()?,
            "--warmup" => self.warmup = value.parse()?,
            "--threads" => self.threads = value.parse()?,
            "--out" => self.out = Some(value.into()),
            _ => bail!("there is no such option\n\n{USAGE}"),
        }
        Ok(())
    }

    /// Whether `name` is to be measured.
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

/// Runs the benchmarks in the arguments.
pub fn bench(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let is_help = |argument: &String| matches!(argument.as_str(), "help" | "--help" | "-h");
    if arguments.iter().any(is_help) {
        println!("{USAGE}");
        return Ok(());
    }
    match arguments.split_first() {
        None => kernels(),
        Some((first, [])) if first == "cnn" => beside_torch(root),
        Some((first, rest)) if first == "peers" => beside_peers(root, &Options::read(rest.iter().cloned())?),
        Some((first, rest)) if first == "task" => task::measure(root, &task::Options::read(rest)?),
        Some((other, _)) => bail!("there is no benchmark {other:?}\n\n{USAGE}"),
    }
}

/// The benchmarks of the library; nothing else should run on the machine.
fn kernels() -> anyhow::Result<()> {
    crate::cargo("release build", &["build", "--release", "--quiet"])?;
    let data = crate::data_folder()?;
    for name in ["kernels", "targets"] {
        crate::step(name);
        let arguments = ["bench", "--package", "fedlink", "--bench", name];
        crate::run(Command::new(crate::cargo_path()).args(arguments).env("FEDLINK_DATA", &data))?;
    }
    Ok(())
}

/// A training step of the CNN, here and in PyTorch.
fn beside_torch(root: &Path) -> anyhow::Result<()> {
    let python = peers::environment(root, "torch", 11)?;
    let data = crate::data_folder()?;
    let arguments = ["bench", "--package", "fedlink", "--bench", "targets", "--", "cnn"];
    let mut command = Command::new(crate::cargo_path());
    crate::run(command.args(arguments).env("FEDLINK_DATA", &data).env("FEDLINK_TORCH_PYTHON", python))
}

/// Measures, keeps every raw run, prints the table of the runs and keeps it beside them.
fn beside_peers(root: &Path, options: &Options) -> anyhow::Result<()> {
    let bench = Bench::new(root, options)?;
    peers::measure(&bench, options)?;
    let (machine, lines) = record::read(&bench.runs)?;
    let report = report::of(&machine, &lines)?;
    println!("{}", report.text);
    std::fs::write(bench.runs.join("report.md"), &report.text)?;
    eprintln!("kept in {}", bench.runs.display());
    report.verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> anyhow::Result<Options> {
        Options::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_parsed_and_invalid_ones_are_refused() {
        let options = read("--only jax,flower --rounds 20 --fedavg-rounds 20 --out here").unwrap();
        assert!(options.wants("jax") && options.wants("flower") && !options.wants("torch"));
        assert_eq!((options.rounds, options.fedavg_rounds, options.out), (20, 20, Some("here".into())));
        for bad in [
            "--only tensorflow",
            "--rounds 15",
            "--warmup 60",
            "--threads 0",
            "--repetitions x",
            "--fast 1",
            "--out",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
