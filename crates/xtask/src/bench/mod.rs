//! `cargo xtask bench`: the library's own benchmarks, and the comparison with other programs.

mod peers;
mod record;
mod report;
mod run;
mod task;

pub use report::{check_readme, write_readme};

use anyhow::bail;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, value_parser};
use run::Bench;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rounds from one evaluation to the next.
const EVALUATE_EVERY: u64 = 10;

/// A comparison with other programs.
#[derive(Subcommand)]
pub enum Comparison {
    /// A training step of the CNN here and in PyTorch, in turn, one thread each. Has the requirements of
    /// `peers`.
    Cnn,
    /// Rounds of fedlink and of other libraries in turn, as a table of ratios; see bench/README.md.
    ///
    /// Needs python3 (3.11 or later) and, for the first run, a package index. MNIST is taken from
    /// $FEDLINK_DATA/mnist, or fetched if that is not set.
    Peers(Options),
    /// Rounds of a PyTorch task through `fedlink.simulate` and by a bare PyTorch loop in turn, each with as
    /// many processes; see bench/README.md. Has the requirements of `peers`.
    Task(task::Options),
}

/// The options of `peers`.
#[derive(Args)]
pub struct Options {
    /// These libraries only
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = known_peers())]
    only: Vec<String>,
    /// Runs of each, fedlink and peer in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u64).range(1..))]
    repetitions: u64,
    /// Rounds of a BN2-C run
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = stretches)]
    rounds: u64,
    /// Rounds of a FedAvg run
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = stretches)]
    fedavg_rounds: u64,
    /// Rounds of a run that are not counted
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = stretches)]
    warmup: u64,
    /// Threads or processes that each may use
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u64).range(1..))]
    threads: u64,
    /// Folder of the raw runs [default: bench/runs/DATE]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

fn known_peers() -> PossibleValuesParser {
    PossibleValuesParser::new(peers::PEERS.iter().map(|peer| peer.name))
}

/// A number of rounds, in whole stretches from one evaluation to the next.
fn stretches(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number: &u64| number.is_multiple_of(EVALUATE_EVERY));
    number.ok_or_else(|| {
        format!(
            "must be a multiple of {EVALUATE_EVERY}: every {EVALUATE_EVERY}th round evaluates, and a time is \
             the mean of that many"
        )
    })
}

impl Options {
    /// Checks that rounds are left after the warm-up.
    fn check(&self) -> anyhow::Result<()> {
        if self.warmup >= self.rounds.min(self.fedavg_rounds) {
            bail!("--warmup must be less than --rounds and --fedavg-rounds, or no round is left to be timed");
        }
        Ok(())
    }

    /// Whether `name` is to be measured.
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

/// Runs a comparison, by default the benchmarks of the library.
pub fn bench(root: &Path, comparison: Option<&Comparison>) -> anyhow::Result<()> {
    match comparison {
        None => kernels(),
        Some(Comparison::Cnn) => beside_torch(root),
        Some(Comparison::Peers(options)) => beside_peers(root, options),
        Some(Comparison::Task(options)) => task::measure(root, options),
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
    options.check()?;
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
    use crate::Task;
    use clap::Parser;

    /// The comparison that a command line names.
    pub(super) fn comparison(line: &str) -> anyhow::Result<Comparison> {
        match Task::try_parse_from(["xtask", "bench"].into_iter().chain(line.split_whitespace()))? {
            Task::Bench { comparison: Some(comparison) } => Ok(comparison),
            _ => bail!("it has no comparison"),
        }
    }

    fn read(line: &str) -> anyhow::Result<Options> {
        let Comparison::Peers(options) = comparison(&format!("peers {line}"))? else { bail!("not peers") };
        options.check()?;
        Ok(options)
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
