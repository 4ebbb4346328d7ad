//! Runs of fedlink and each peer in turn, on the same work.

use super::Options;
use super::record::{Line, Measurement, Outcome, Work};
use super::run::Bench;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that is compared with fedlink.
pub struct Peer {
    pub name: &'static str,
    /// Its name in tables.
    pub title: &'static str,
    /// Its folder in `bench/peers` and the name of its virtual environment.
    folder: &'static str,
    script: &'static str,
    pub work: Work,
    /// Takes PyTorch, which is large, from the environment `torch` instead of a copy of its own.
    borrows_torch: bool,
    /// Runs one process per thread.
    torchrun: bool,
    /// The oldest minor version of Python 3 that it supports.
    python: u32,
    /// The least ratio of its time per round to fedlink's.
    pub target: Option<f64>,
}

/// A whole BN2-C round by a program of its own.
const PLAIN: Peer = Peer {
    name: "",
    title: "",
    folder: "",
    script: "bench.py",
    work: Work::Bn2C,
    borrows_torch: false,
    torchrun: false,
    python: 11,
    target: None,
};

pub const PEERS: &[Peer] = &[
    Peer { name: "jax", title: "JAX: jit, vmap", folder: "jax", target: Some(14.0), ..PLAIN },
    Peer {
        name: "jax-tuned",
        title: "JAX, tuned",
        folder: "jax",
        script: "tuned.py",
        target: Some(4.0),
        ..PLAIN
    },
    Peer { name: "torch", title: "PyTorch: loop over devices", folder: "torch", target: Some(10.0), ..PLAIN },
    Peer {
        name: "torch-tuned",
        title: "PyTorch, tuned",
        folder: "torch",
        script: "tuned.py",
        target: Some(4.0),
        ..PLAIN
    },
    Peer {
        name: "pfl",
        title: "pfl-research",
        folder: "pfl",
        work: Work::FedAvg,
        borrows_torch: true,
        torchrun: true,
        target: Some(7.0),
        ..PLAIN
    },
    Peer {
        name: "flower",
        title: "Flower simulation",
        folder: "flower",
        work: Work::FedAvg,
        borrows_torch: true,
        target: Some(25.0),
        ..PLAIN
    },
    Peer {
        name: "blazefl",
        title: "BlazeFL, threads",
        folder: "blazefl",
        work: Work::FedAvg,
        python: 12,
        ..PLAIN
    },
];

/// The keys of the task that all share; see `bench/peers/workload.py`.
const WORKLOAD: &[&str] = &[
    "data.dataset=mnist",
    "data.devices=40",
    "data.samples_per_device=1000",
    "learn.model=mlp",
    "learn.mlp.hidden=[256]",
    "learn.local_steps=3",
    "learn.batch=64",
    "learn.optimizer=adam",
    "learn.rate=1e-3",
    "run.evaluate_every=10",
];

const BN2C: &[&str] = &["schedule.policy=bn2-c", "schedule.k=1", "radio.symbols=5000", "learn.state=keep"];

/// All devices, every entry: the budget of the worst channel still holds 33 bits for each of d.
const FEDAVG: &[&str] = &[
    "schedule.policy=bc",
    "schedule.k=40",
    "radio.symbols=1e12",
    "compress.scheme=random-sparse",
    "learn.state=reset",
];

/// Runs fedlink and each requested peer in turn, and keeps their output. A failed run of a peer is
/// repeated once, which is recorded; a peer that fails twice is recorded as failed and not run again.
pub fn measure(bench: &Bench, options: &Options) -> anyhow::Result<()> {
    let wanted: Vec<&Peer> = PEERS.iter().filter(|peer| options.wants(peer.name)).collect();
    let mut pythons = Vec::new();
    for &peer in &wanted {
        pythons.push(kept(bench, peer, 0, install(bench, peer))?);
    }
    for repetition in 0..options.repetitions {
        bench.keep_load()?;
        for (&peer, python) in wanted.iter().zip(&mut pythons) {
            let Some(path) = python.as_deref() else { continue };
            eprintln!("… fedlink beside {}, {} of {}", peer.name, repetition + 1, options.repetitions);
            let ours = fedlink(bench, options, peer.work, repetition)?;
            bench.keep(&line(peer, repetition, Outcome::Measured(ours)))?;
            eprintln!("… {}", peer.name);
            let once = || run(bench, options, peer, path, repetition);
            let (theirs, retried) = twice(once);
            match kept(bench, peer, repetition, theirs)? {
                Some(theirs) => {
                    bench.keep(&Line { retried, ..line(peer, repetition, Outcome::Measured(theirs)) })?;
                }
                None => *python = None,
            }
        }
    }
    Ok(())
}

/// The result of the first try, or of a second one together with the error of the first.
fn twice<T>(mut attempt: impl FnMut() -> anyhow::Result<T>) -> (anyhow::Result<T>, Option<String>) {
    match attempt() {
        Ok(value) => (Ok(value), None),
        Err(error) => {
            eprintln!("  {error:#}\n… once more");
            (attempt(), Some(format!("{error:#}")))
        }
    }
}

/// The value; if there is none, a line with the reason is kept.
fn kept<T>(
    bench: &Bench,
    peer: &Peer,
    repetition: u64,
    result: anyhow::Result<T>,
) -> anyhow::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => {
            let failed = Outcome::Failed { program: peer.name.into(), error: format!("{error:#}") };
            bench.keep(&line(peer, repetition, failed))?;
            Ok(None)
        }
    }
}

fn line(peer: &Peer, repetition: u64, outcome: Outcome) -> Line {
    Line { beside: peer.name.into(), work: peer.work, repetition, retried: None, outcome }
}

/// The arguments of fedlink's program and of every peer's script.
fn arguments(options: &Options, work: Work, seed: u64) -> Vec<String> {
    let rounds = if work == Work::Bn2C { options.rounds } else { options.fedavg_rounds };
    [("--rounds", rounds), ("--threads", options.threads), ("--seed", seed)]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value.to_string()])
        .collect()
}

fn fedlink(bench: &Bench, options: &Options, work: Work, seed: u64) -> anyhow::Result<Measurement> {
    let mut command = vec![bench.program.display().to_string()];
    command.extend(arguments(options, work, seed));
    for key in WORKLOAD.iter().chain(if work == Work::Bn2C { BN2C } else { FEDAVG }) {
        command.extend(["--set".into(), (*key).into()]);
    }
    bench.run(&command)
}

fn run(
    bench: &Bench,
    options: &Options,
    peer: &Peer,
    python: &Path,
    seed: u64,
) -> anyhow::Result<Measurement> {
    let mut command = vec![python.display().to_string()];
    if peer.torchrun {
        let processes = options.threads.to_string();
        // `--standalone`: the processes meet on a free port, not on one that an earlier run may still
        // hold.
        let start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", &processes];
        command.extend(start.map(str::to_owned));
    }
    let script = bench.root.join("bench/peers").join(peer.folder).join(peer.script);
    command.push(script.display().to_string());
    command.extend(arguments(options, peer.work, seed));
    let measured = bench.run(&command)?;
    if measured.program != peer.name {
        bail!("{} calls itself {:?} instead of {:?}", script.display(), measured.program, peer.name);
    }
    Ok(measured)
}

/// Sets the peer's virtual environment up if needed; returns its Python.
fn install(bench: &Bench, peer: &Peer) -> anyhow::Result<PathBuf> {
    let python = environment(&bench.root, peer.folder, peer.python)?;
    if peer.borrows_torch {
        let torch = environment(&bench.root, "torch", peer.python)?;
        std::fs::write(packages(&python)?.join("torch.pth"), packages(&torch)?.display().to_string())?;
    }
    Ok(python)
}

/// The virtual environment of one folder of `bench/peers`, with exactly the packages of its
/// `requirements.txt`, of the first available Python of at least version 3.`minor`.
pub(super) fn environment(root: &Path, folder: &str, minor: u32) -> anyhow::Result<PathBuf> {
    let home = root.join("target/bench").join(format!("venv-{folder}"));
    let list = root.join("bench/peers").join(folder).join("requirements.txt");
    let wanted = std::fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let (python, done) = (home.join("bin/python"), home.join("installed.txt"));
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    eprintln!("… installing {folder}");
    succeed(Command::new(interpreter(minor)?).args(["-m", "venv", "--clear"]).arg(&home))?;
    // The list is complete; the dependencies that pip would add for PyTorch are gigabytes that a CPU
    // cannot use.
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-cache-dir",
        "-r",
    ];
    succeed(Command::new(&python).args(pip).arg(&list))?;
    std::fs::write(done, wanted)?;
    Ok(python)
}

/// A Python of at least version 3.`minor` on the path.
fn interpreter(minor: u32) -> anyhow::Result<String> {
    let names =
        std::iter::once("python3".to_owned()).chain((minor..minor + 4).map(|n| format!("python3.{n}")));
    let new_enough = format!("import sys; sys.exit(sys.version_info < (3, {minor}))");
    for name in names {
        let ran = Command::new(&name).args(["-c", &new_enough]).output();
        if ran.is_ok_and(|output| output.status.success()) {
            return Ok(name);
        }
    }
    bail!("there is no Python 3.{minor} or later: put one on the path as python3.{minor}")
}

/// The folder of the packages of a virtual environment.
fn packages(python: &Path) -> anyhow::Result<PathBuf> {
    let ask = "import sysconfig; print(sysconfig.get_path('purelib'))";
    Ok(PathBuf::from(succeed(Command::new(python).args(["-c", ask]))?.trim()))
}

/// The output of the command; its errors, if it fails.
fn succeed(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
