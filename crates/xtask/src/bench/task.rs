//! A PyTorch task through `fedlink.simulate`, compared with the bare PyTorch loop.

use super::peers::environment;
use super::record::{Machine, mean, median};
use super::report::{caveat, machine_text};
use anyhow::{Context, bail};
use clap::value_parser;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The largest ratio of the time per round to that of the bare loop.
const TARGET: f64 = 1.1;

/// The reference loop.
const BARE: &str = "bare";

/// A program must reach this accuracy in every stretch; otherwise it did not train.
const ACCURACY: f64 = 0.5;

/// The options of `task`.
#[derive(clap::Args, Debug, PartialEq)]
pub struct Options {
    /// Worker processes
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u64).range(1..))]
    workers: u64,
    /// Rounds of a stretch
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u64).range(1..))]
    rounds: u64,
    /// Stretches of each program
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u64).range(1..))]
    repetitions: u64,
    /// Folder of the measurements
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// The output of the program: the seconds of every stretch, and the accuracy at its end.
#[derive(Debug, Deserialize, Serialize)]
struct Measured {
    versions: BTreeMap<String, String>,
    workers: u64,
    rounds: u64,
    seconds: BTreeMap<String, Vec<f64>>,
    accuracies: BTreeMap<String, Vec<f64>>,
}

/// Measures, prints the table, and keeps both.
pub fn measure(root: &Path, options: &Options) -> anyhow::Result<()> {
    let package = package(root)?;
    let data = crate::data_folder()?;
    let python = environment(root, "torch", 11)?;
    let machine = Machine::this(root, options.workers, 0);
    let output = Command::new(python)
        .arg(root.join("bench/task/bench.py"))
        .args(["--workers", &options.workers.to_string(), "--rounds", &options.rounds.to_string()])
        .args(["--repetitions", &options.repetitions.to_string()])
        .envs([("PYTHONPATH", &package), ("FEDLINK_DATA", &data)])
        .output()
        .context("cannot start Python")?;
    if !output.status.success() {
        bail!(
            "bench/task/bench.py ended with {}:\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let line = printed.lines().next_back().unwrap_or_default();
    let measured: Measured =
        serde_json::from_str(line).with_context(|| format!("bench/task/bench.py printed {line:?}"))?;
    let text = report(&machine, &measured)?;
    println!("{text}");
    let folder = match &options.out {
        Some(folder) => std::env::current_dir()?.join(folder),
        None => root.join("bench/runs").join(format!("{}-task", machine.date.replace(':', ""))),
    };
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    std::fs::write(folder.join("machine.json"), serde_json::to_vec_pretty(&machine)?)?;
    std::fs::write(folder.join("task.json"), line)?;
    std::fs::write(folder.join("report.md"), &text)?;
    eprintln!("kept in {}", folder.display());
    Ok(())
}

/// The Python package with a release build of the module, separate from the one that tests use.
fn package(root: &Path) -> anyhow::Result<PathBuf> {
    crate::cargo("release build", &["build", "--release", "--quiet", "--package", "fedlink-py"])?;
    let home = root.join("target/bench/package");
    if home.exists() {
        std::fs::remove_dir_all(&home)?;
    }
    let listed = Command::new("git").args(["ls-files", "python/fedlink"]).current_dir(root).output()?;
    for file in String::from_utf8(listed.stdout)?.lines() {
        let to = home.join(Path::new(file).strip_prefix("python")?);
        std::fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
        std::fs::copy(root.join(file), to).with_context(|| format!("cannot copy {file}"))?;
    }
    crate::python::copy_module(&root.join("target/release"), &home.join("fedlink"))?;
    Ok(home)
}

/// The table of stretches.
fn report(machine: &Machine, measured: &Measured) -> anyhow::Result<String> {
    let bare = measured.seconds.get(BARE).context("the bare loop is missing")?;
    let mut text = format!("# A PyTorch task through fedlink\n\n{}\n\n", machine_text(machine));
    text += &caveat(machine);
    let versions: Vec<String> = measured.versions.iter().map(|(name, v)| format!("{name} {v}")).collect();
    writeln!(
        text,
        "A CNN on MNIST, 40 devices, {} worker processes, {}. A time is that of a round, the median over \
         stretches of {} rounds with one evaluation; a ratio is to the bare loop's stretch just before, the \
         median (least–greatest).\n\n\
         | program | round, ms | ratio | target | accuracy |\n|---|---|---|---|---|",
        measured.workers,
        versions.join(", "),
        measured.rounds
    )?;
    for (name, seconds) in &measured.seconds {
        if seconds.is_empty() || seconds.len() != bare.len() {
            bail!("{name} has {} stretches and the bare loop {}", seconds.len(), bare.len());
        }
        let accuracies = measured.accuracies.get(name).map_or(&[][..], Vec::as_slice);
        if accuracies.len() != seconds.len() || accuracies.iter().any(|accuracy| *accuracy < ACCURACY) {
            bail!("{name} did not learn: accuracies {accuracies:?}");
        }
        let mut ratios: Vec<f64> = seconds.iter().zip(bare).map(|(own, bare)| own / bare).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let ratio = median(ratios.clone());
        let (ratio_text, target) = if name == BARE {
            (String::new(), String::new())
        } else {
            let verdict = if ratio <= TARGET { "met" } else { "**missed**" };
            let (min, max) = (ratios[0], ratios[ratios.len() - 1]);
            (format!("{ratio:.3} ({min:.3}–{max:.3})"), format!("≤ {TARGET}: {verdict}"))
        };
        let round = 1e3 * median(seconds.clone()) / measured.rounds as f64;
        let accuracy = 100.0 * mean(accuracies);
        writeln!(text, "| {name} | {round:.1} | {ratio_text} | {target} | {accuracy:.1} % |")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::Comparison;
    use super::super::tests::comparison;
    use super::*;

    fn machine() -> Machine {
        let line = r#"{"date": "d", "cpu": "abacus", "cores": 2, "load": 0.1, "commit": "abc", "threads": 2,
            "warmup": 0}"#;
        serde_json::from_str(line).unwrap()
    }

    fn measured(fedavg: &[f64], accuracy: f64) -> Measured {
        let seconds = [("bare", vec![10.0, 20.0, 10.0]), ("fedavg", fedavg.to_vec())];
        let accuracies = [("bare", vec![0.9; 3]), ("fedavg", vec![accuracy; fedavg.len()])];
        Measured {
            versions: BTreeMap::new(),
            workers: 2,
            rounds: 10,
            seconds: seconds.map(|(name, s)| (name.to_owned(), s)).into(),
            accuracies: accuracies.map(|(name, s)| (name.to_owned(), s)).into(),
        }
    }

    #[test]
    fn a_ratio_refers_to_the_previous_stretch_and_a_missed_target_is_named() {
        let text = report(&machine(), &measured(&[10.5, 21.0, 12.0], 0.9)).unwrap();
        assert!(text.contains("| fedavg | 1200.0 | 1.050 (1.050–1.200) | ≤ 1.1: met | 90.0 % |"), "{text}");
        let text = report(&machine(), &measured(&[12.0, 24.0, 10.0], 0.9)).unwrap();
        assert!(text.contains("1.200 (1.000–1.200) | ≤ 1.1: **missed**"), "{text}");
        assert!(!text.contains("say little"));
        let busy = Machine { load: Some(1.5), ..machine() };
        assert!(report(&busy, &measured(&[10.0; 3], 0.9)).unwrap().contains("not quiet"));
    }

    #[test]
    fn a_program_that_did_not_train_or_lacks_stretches_is_refused() {
        assert!(report(&machine(), &measured(&[10.0; 3], 0.1)).is_err());
        assert!(report(&machine(), &measured(&[10.0; 2], 0.9)).is_err());
    }

    #[test]
    fn options_are_parsed_and_invalid_ones_are_refused() {
        let read = |line: &str| match comparison(&format!("task {line}"))? {
            Comparison::Task(options) => anyhow::Ok(options),
            _ => bail!("not task"),
        };
        let options = read("--workers 3 --repetitions 1").unwrap();
        assert_eq!(options, Options { workers: 3, rounds: 20, repetitions: 1, out: None });
        for bad in ["--workers 0", "--rounds x", "--fast 1", "--out"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
