//! One run of one program, and its line in the record.

use super::Options;
use super::record::{Line, MACHINE, Machine, Measurement, Outcome, RUNS};
use anyhow::{Context, bail};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Seconds after which a run counts as hung.
const PATIENCE: &str = "3600";

/// The paths of a measurement.
pub struct Bench {
    pub root: PathBuf,
    data: PathBuf,
    /// The folder of this measurement's raw runs.
    pub runs: PathBuf,
    /// fedlink's program that times rounds.
    pub program: PathBuf,
}

impl Bench {
    /// Builds fedlink from the current code and opens a folder for the raw runs.
    pub fn new(root: &Path, options: &Options) -> anyhow::Result<Self> {
        crate::cargo("release build", &["build", "--release", "--quiet"])?;
        let data = crate::data_folder()?;
        if !data.join("mnist").is_dir() {
            bail!("{} holds no folder mnist: set FEDLINK_DATA to one that does", data.display());
        }
        let example =
            ["build", "--quiet", "--release", "--package", "fedlink-study", "--example", "bench_round"];
        crate::cargo("the program that times rounds", &example)?;
        let program = root.join("target/release/examples/bench_round");
        let machine = Machine::this(root, options.threads, options.warmup);
        let runs = match &options.out {
            Some(folder) => std::env::current_dir()?.join(folder),
            None => root.join("bench/runs").join(machine.date.replace(':', "")),
        };
        std::fs::create_dir_all(&runs).with_context(|| format!("cannot make {}", runs.display()))?;
        if runs.join(RUNS).exists() {
            bail!("{} already holds runs: name another folder", runs.display());
        }
        File::create_new(runs.join(MACHINE))?.write_all(&serde_json::to_vec_pretty(&machine)?)?;
        Ok(Self { root: root.into(), data, runs, program })
    }

    /// Measures the load by other work again, and keeps the largest of all measurements.
    pub fn keep_load(&self) -> anyhow::Result<()> {
        let path = self.runs.join(MACHINE);
        let mut machine: Machine = serde_json::from_slice(&std::fs::read(&path)?)?;
        let now = busy_cores(Duration::from_secs(1));
        machine.load = machine.load.zip(now).map(|(before, now)| before.max(now));
        Ok(std::fs::write(path, serde_json::to_vec_pretty(&machine)?)?)
    }

    /// Adds a line to those of this measurement.
    pub fn keep(&self, line: &Line) -> anyhow::Result<()> {
        match &line.outcome {
            Outcome::Measured(run) => {
                let seconds = run.seconds.iter().sum::<f64>();
                eprintln!("  {} rounds in {seconds:.1} s, accuracy {:.4}", run.seconds.len(), run.accuracy);
            }
            Outcome::Failed { error, .. } => eprintln!("  {error}"),
        }
        let mut file = OpenOptions::new().create(true).append(true).open(self.runs.join(RUNS))?;
        writeln!(file, "{}", serde_json::to_string(line)?)?;
        Ok(())
    }

    /// Runs a command; its measurement is the last line of its output.
    pub fn run(&self, command: &[String]) -> anyhow::Result<Measurement> {
        // `timeout` ends the whole process group, so that no server of a peer outlives it.
        let output = Command::new("timeout")
            .args(["--kill-after=60", PATIENCE])
            .args(command)
            .env("FEDLINK_DATA", &self.data)
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .output()
            .context("cannot start `timeout`")?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let lines: Vec<&str> = errors.lines().collect();
            let tail = &lines[lines.len().saturating_sub(15)..];
            bail!("{} ended with {}:\n{}", command.join(" "), output.status, tail.join("\n"));
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        let line = printed.lines().next_back().unwrap_or_default();
        serde_json::from_str(line).with_context(|| format!("{} printed {line:?}", command.join(" ")))
    }
}

impl Machine {
    /// The current state of this machine.
    pub fn this(root: &Path, threads: u64, warmup: u64) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo").lines().find_map(|line| {
            line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim().to_owned())
        });
        Self {
            date: output_of(root, "date", &["-u", "+%Y-%m-%dT%H:%MZ"]),
            cpu: cpu.unwrap_or_else(|| "an unknown CPU".into()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load: busy_cores(Duration::from_secs(3)),
            commit: output_of(root, "git", &["describe", "--always", "--dirty", "--exclude", "*"]),
            threads,
            warmup,
        }
    }
}

/// The mean number of busy cores over the given time from now. (The system's load average would include
/// the builds that have just ended.)
fn busy_cores(time: Duration) -> Option<f64> {
    let before = idle_time()?;
    std::thread::sleep(time);
    let (all, idle) = idle_time()?;
    let (all, idle) = (all - before.0, idle - before.1);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (all > 0).then(|| cores as f64 * (1.0 - idle as f64 / all as f64))
}

/// Ticks of all cores since the machine started, and the idle ones among them.
fn idle_time() -> Option<(u64, u64)> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks: Option<Vec<u64>> =
        stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map(|word| word.parse().ok()).collect();
    let ticks = ticks?;
    Some((ticks.iter().take(8).sum(), ticks.get(3)? + ticks.get(4)?))
}

/// The output of a command, on one line; its name with a question mark if it cannot be run.
fn output_of(root: &Path, command: &str, arguments: &[&str]) -> String {
    match Command::new(command).args(arguments).current_dir(root).output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => format!("{command}?"),
    }
}
