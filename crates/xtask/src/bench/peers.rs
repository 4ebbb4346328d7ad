//! fedlink and each peer in turn, on the same work.

use super::Options;
use super::run::{Bench, Measurement, Task, mean, median};
use anyhow::{Context, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A peer must reach fedlink's accuracy on the same task within this, or it did other work.
const ACCURACY_TOLERANCE: f64 = 0.02;

/// The work that is timed.
#[derive(Clone, Copy, PartialEq)]
pub enum Work {
    /// Whole BN2-C rounds: channel, training, D-SGD at q*, selection, aggregation.
    Bn2C,
    /// The same training of all devices, the mean of their whole updates, a fresh optimiser in every round.
    FedAvg,
}

/// What else could be used.
pub struct Peer {
    pub name: &'static str,
    /// Its folder in `bench/peers` and the name of its virtual environment.
    folder: &'static str,
    work: Work,
    /// Takes PyTorch from the environment `torch`, which is large, instead of a copy of its own.
    borrows_torch: bool,
    /// Runs one process to a thread.
    torchrun: bool,
    arguments: &'static [&'static str],
}

pub const PEERS: &[Peer] = &[
    Peer { name: "jax", folder: "jax", ..PLAIN },
    Peer { name: "torch", folder: "torch", ..PLAIN },
    Peer { name: "torch-pool", folder: "torch", arguments: &["--pool"], ..PLAIN },
    Peer { name: "pfl", folder: "pfl", work: Work::FedAvg, borrows_torch: true, torchrun: true, ..PLAIN },
    Peer { name: "flower", folder: "flower", work: Work::FedAvg, borrows_torch: true, ..PLAIN },
];

const PLAIN: Peer =
    Peer { name: "", folder: "", work: Work::Bn2C, borrows_torch: false, torchrun: false, arguments: &[] };

/// One repetition: fedlink, then the peer.
struct Pair {
    fedlink: Measurement,
    /// fedlink's BN2-C round, where the peer's work is another.
    bn2c: Measurement,
    peer: Measurement,
}

/// What went wrong with peers.
#[derive(Default)]
pub struct Trouble {
    missing: Vec<&'static str>,
    other_work: Vec<&'static str>,
}

impl Trouble {
    /// An error if the comparison is not whole.
    pub fn verdict(&self, allow_missing: bool) -> anyhow::Result<()> {
        if !self.other_work.is_empty() {
            bail!("not the same accuracy as fedlink: {}", self.other_work.join(", "));
        }
        if !self.missing.is_empty() && !allow_missing {
            bail!("could not be measured: {} (--allow-missing accepts that)", self.missing.join(", "));
        }
        Ok(())
    }
}

/// Measures all peers that were asked for; returns the table and what went wrong.
pub fn compare(bench: &Bench, options: &Options) -> anyhow::Result<(String, Trouble)> {
    let wanted: Vec<&Peer> = PEERS.iter().filter(|peer| options.wants(peer.name)).collect();
    let mut trouble = Trouble::default();
    if wanted.is_empty() {
        return Ok((String::new(), trouble));
    }
    let installed: Vec<_> = wanted.iter().map(|peer| install(bench, peer)).collect();
    let mut pairs: Vec<Vec<Pair>> = wanted.iter().map(|_| Vec::new()).collect();
    let mut reasons: Vec<Option<String>> =
        installed.iter().map(|result| result.as_ref().err().map(|error| format!("{error:#}"))).collect();
    for seed in 0..options.repetitions {
        for (i, peer) in wanted.iter().enumerate() {
            if let (Ok(python), None) = (&installed[i], &reasons[i]) {
                let (fedlink, bn2c) = fedlink(bench, options, peer.work, seed)?;
                match run(bench, options, peer, python, seed) {
                    Ok(peer) => pairs[i].push(Pair { fedlink, bn2c, peer }),
                    Err(error) => reasons[i] = Some(format!("{error:#}")),
                }
            }
        }
    }
    let mut table = heading(options);
    let mut failures = String::new();
    for ((peer, pairs), reason) in wanted.into_iter().zip(&pairs).zip(reasons) {
        if let Some(reason) = reason {
            trouble.missing.push(peer.name);
            let _ = writeln!(table, "| {} | **could not be measured**, see below | | | | | | |", peer.name);
            let _ = writeln!(failures, "\n{} could not be measured:\n\n```text\n{reason}\n```", peer.name);
        } else if !row(&mut table, peer, pairs) {
            trouble.other_work.push(peer.name);
        }
    }
    Ok((table + &failures, trouble))
}

fn heading(options: &Options) -> String {
    format!(
        "\n## Time of a round, fedlink = 1\n\n\
         MLP 784→256→10, MNIST, 40 devices of 1000 samples, 3 steps of batch 64, Adam. Each time is the median \
         round after {} of warm-up, each ratio the median over {} repetitions in turn (least to greatest in \
         brackets). `bn2-c`: whole rounds, accuracy after {} of them. `fedavg`: the same training without radio or \
         compression, accuracy after {}; fedlink runs it as random-sparse with room for every entry. Accuracies \
         are means over the repetitions and must agree within {} points.\n\n\
         | peer | versions | work | peer, ms | fedlink, ms | ratio | ratio to fedlink's BN2-C | accuracy: peer, fedlink |\n\
         |---|---|---|---|---|---|---|---|\n",
        options.warmup,
        options.repetitions,
        options.rounds,
        options.fedavg_rounds,
        100.0 * ACCURACY_TOLERANCE
    )
}

/// Adds a peer's row; returns whether it reached the same accuracy.
fn row(table: &mut String, peer: &Peer, pairs: &[Pair]) -> bool {
    let milliseconds =
        |of: fn(&Pair) -> &Measurement| 1e3 * median(pairs.iter().map(|pair| of(pair).seconds_per_round));
    let ratio = |to: fn(&Pair) -> &Measurement| {
        let ratios: Vec<f64> =
            pairs.iter().map(|pair| pair.peer.seconds_per_round / to(pair).seconds_per_round).collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = ratios.iter().copied().fold(0.0, f64::max);
        format!("{:.2} ({least:.2}–{greatest:.2})", median(ratios))
    };
    let accuracy =
        |of: fn(&Pair) -> &Measurement| mean(pairs.iter().map(|pair| of(pair).accuracy.unwrap_or(f64::NAN)));
    let (theirs, ours) = (accuracy(|pair| &pair.peer), accuracy(|pair| &pair.fedlink));
    let same = (theirs - ours).abs() <= ACCURACY_TOLERANCE;
    let first = &pairs[0].peer;
    let versions: Vec<String> =
        first.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let work = match peer.work {
        Work::Bn2C => "bn2-c".to_owned(),
        Work::FedAvg => format!("fedavg ({})", first.note),
    };
    let _ = writeln!(
        table,
        "| {} | {} | {work} | {:.1} | {:.1} | {} | {} | {:.1} %, {:.1} %{} |",
        peer.name,
        versions.join(", "),
        milliseconds(|pair| &pair.peer),
        milliseconds(|pair| &pair.fedlink),
        ratio(|pair| &pair.fedlink),
        ratio(|pair| &pair.bn2c),
        100.0 * theirs,
        100.0 * ours,
        if same { "" } else { " **not the same**" }
    );
    same
}

/// fedlink on the peer's work, and on whole BN2-C rounds.
fn fedlink(
    bench: &Bench,
    options: &Options,
    work: Work,
    seed: u64,
) -> anyhow::Result<(Measurement, Measurement)> {
    let &Options { rounds, fedavg_rounds, warmup, threads, .. } = options;
    let keys = &["schedule.policy=bn2-c", "schedule.k=1", "learn.state=keep"];
    let bn2c = |rounds| bench.fedlink(&Task { name: "bn2-c", keys, rounds, warmup, threads, seed });
    if work == Work::Bn2C {
        let measured = bn2c(rounds)?;
        return Ok((measured.clone(), measured));
    }
    // All devices, every entry: the budget of the worst channel still holds 33 bits for each of d.
    let keys = &[
        "schedule.policy=bc",
        "schedule.k=40",
        "learn.state=reset",
        "compress.scheme=random-sparse",
        "radio.symbols=1e12",
    ];
    let rounds = fedavg_rounds;
    let fedavg = bench.fedlink(&Task { name: "fedavg", keys, rounds, warmup, threads, seed })?;
    Ok((fedavg, bn2c(rounds)?))
}

fn run(
    bench: &Bench,
    options: &Options,
    peer: &Peer,
    python: &Path,
    seed: u64,
) -> anyhow::Result<Measurement> {
    let &Options { rounds, fedavg_rounds, warmup, threads, .. } = options;
    let mut command = vec![python.display().to_string()];
    if peer.torchrun {
        let processes = threads.to_string();
        command.extend(["-m", "torch.distributed.run", "--nproc-per-node", &processes].map(str::to_owned));
    }
    command.push(bench.root.join("bench/peers").join(peer.folder).join("bench.py").display().to_string());
    let rounds = if peer.work == Work::Bn2C { rounds } else { fedavg_rounds };
    command.extend(Bench::common(rounds, warmup, threads, seed));
    command.extend(peer.arguments.iter().map(|&argument| argument.to_owned()));
    bench.run(&format!("{}-{seed}", peer.name), &command)
}

/// Sets the peer's virtual environment up, unless that has been done; returns its Python.
fn install(bench: &Bench, peer: &Peer) -> anyhow::Result<PathBuf> {
    let python = environment(bench, peer.folder)?;
    if peer.borrows_torch {
        let torch = environment(bench, "torch")?;
        std::fs::write(packages(&python)?.join("torch.pth"), packages(&torch)?.display().to_string())?;
    }
    Ok(python)
}

/// The virtual environment of one folder of `bench/peers`, with exactly the packages of its `requirements.txt`.
fn environment(bench: &Bench, folder: &str) -> anyhow::Result<PathBuf> {
    let home = bench.root.join("target/bench").join(format!("venv-{folder}"));
    let list = bench.root.join("bench/peers").join(folder).join("requirements.txt");
    let wanted = std::fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let (python, done) = (home.join("bin/python"), home.join("installed.txt"));
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    eprintln!("… installing {folder}");
    succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
    // The list is complete; pip's own idea of what PyTorch needs would add gigabytes that a CPU cannot use.
    let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir", "--requirement"];
    succeed(Command::new(&python).args(pip).arg(&list))?;
    std::fs::write(done, wanted)?;
    Ok(python)
}

/// Where a virtual environment keeps its packages.
fn packages(python: &Path) -> anyhow::Result<PathBuf> {
    let ask = "import sysconfig; print(sysconfig.get_path('purelib'))";
    Ok(PathBuf::from(succeed(Command::new(python).args(["-c", ask]))?.trim()))
}

/// What the command prints; its complaint, if it fails.
fn succeed(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
