//! fedlink beside its own targets.

use super::Options;
use super::run::{Bench, Measurement, Task, median};
use std::fmt::Write;

/// Devices; `WORKLOAD` of `run` says the same.
const M: f64 = 40.0;
/// Candidates of BC-BN2.
const KC: f64 = 10.0;
/// How much more than its share of training a policy with few candidates may cost.
const ALLOWANCE: f64 = 1.3;

/// Rows of the table.
struct Table {
    text: String,
}

impl Table {
    fn add(&mut self, what: &str, measured: &str, limit: &str, met: Option<bool>) {
        let verdict = match met {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "",
        };
        let _ = writeln!(self.text, "| {what} | {measured} | {limit} | {verdict} |");
    }
}

/// Measures everything once asked for in `options.repetitions`; returns the table.
pub fn measure(bench: &Bench, options: &Options) -> anyhow::Result<String> {
    let heading = "\n## Targets\n\n| what | measured | target | |\n|---|---|---|---|\n";
    let mut table = Table { text: heading.into() };
    threads(bench, options, &mut table)?;
    candidates(bench, options, &mut table)?;
    share(bench, options, &mut table)?;
    many_devices(bench, options, &mut table)?;
    flute(bench, options, &mut table)?;
    Ok(table.text)
}

/// Runs tasks in turn, `options.repetitions` times; returns for each the seconds of a round in every repetition.
fn in_turn(
    bench: &Bench,
    options: &Options,
    tasks: &[(&str, &[&str], u64)],
) -> anyhow::Result<Vec<Vec<f64>>> {
    let mut seconds = vec![Vec::new(); tasks.len()];
    let &Options { rounds, warmup, .. } = options;
    for seed in 0..options.repetitions {
        for (i, &(name, keys, threads)) in tasks.iter().enumerate() {
            let measured = bench.fedlink(&Task { name, keys, rounds, warmup, threads, seed })?;
            seconds[i].push(measured.seconds_per_round);
        }
    }
    Ok(seconds)
}

/// The median over repetitions of a/b.
fn ratio(a: &[f64], b: &[f64]) -> f64 {
    median(a.iter().zip(b).map(|(a, b)| a / b))
}

fn threads(bench: &Bench, options: &Options, table: &mut Table) -> anyhow::Result<()> {
    let keys: &[&str] = &["schedule.policy=bn2-c"];
    let seconds = in_turn(bench, options, &[("1-thread", keys, 1), ("2-threads", keys, 2)])?;
    let gain = ratio(&seconds[0], &seconds[1]);
    table.add("BN2-C, 2 threads against 1", &format!("{gain:.2}×"), "≥ 1.85×", Some(gain >= 1.85));
    Ok(())
}

/// One thread, so that the time is the work: with two, a single device would leave one idle.
fn candidates(bench: &Bench, options: &Options, table: &mut Table) -> anyhow::Result<()> {
    // Only the last round evaluates, and the median does not see it.
    let rare = "run.evaluate_every=1000000000";
    let bn2: &[&str] = &["schedule.policy=bn2", "learn.state=reset", rare];
    let bc: &[&str] = &["schedule.policy=bc", "learn.state=reset", rare];
    let both: &[&str] = &["schedule.policy=bc-bn2", "schedule.kc=10", "learn.state=reset", rare];
    let seconds =
        in_turn(bench, options, &[("bn2-reset", bn2, 1), ("bc-reset", bc, 1), ("bc-bn2-reset", both, 1)])?;
    for (name, seconds_of, trained) in [("BC", &seconds[1], 1.0), ("BC-BN2", &seconds[2], KC)] {
        let (cost, limit) = (ratio(seconds_of, &seconds[0]), ALLOWANCE * trained / M);
        let what =
            format!("{name} (trains {trained} of {M}) against BN2, state reset, 1 thread, no evaluation");
        table.add(&what, &format!("{cost:.4}"), &format!("≤ {limit:.4}"), Some(cost <= limit));
    }
    Ok(())
}

/// BC with kept state trains everybody and asks for no report; random sparsification costs next to nothing. What
/// BN2-C takes beyond that is not training.
fn share(bench: &Bench, options: &Options, table: &mut Table) -> anyhow::Result<()> {
    let whole: &[&str] = &["schedule.policy=bn2-c", "learn.state=keep"];
    let training: &[&str] = &["schedule.policy=bc", "learn.state=keep", "compress.scheme=random-sparse"];
    let tasks = [("whole-round", whole, options.threads), ("training-only", training, options.threads)];
    let seconds = in_turn(bench, options, &tasks)?;
    let share = 1.0 - ratio(&seconds[1], &seconds[0]);
    table.add("share of a BN2-C round that is not training", &percent(share), "≤ 15 %", Some(share <= 0.15));
    Ok(())
}

/// Devices whose data are drawn when they are needed: memory must not grow with their number.
fn many_devices(bench: &Bench, options: &Options, table: &mut Table) -> anyhow::Result<()> {
    let shrink = if options.small { 100 } else { 1 };
    let once = |name: &str, devices: u64, model: &str| -> anyhow::Result<Measurement> {
        let (devices, model) = (format!("data.devices={devices}"), format!("learn.model={model}"));
        let lazy = ["data.sharing=overlapping", "schedule.policy=bn2", "learn.state=reset"];
        let keys: Vec<&str> = lazy.into_iter().chain([devices.as_str(), model.as_str()]).collect();
        bench.fedlink(&Task { name, keys: &keys, rounds: 1, warmup: 0, threads: options.threads, seed: 0 })
    };
    let memory = |measured: &Measurement| match measured.peak_memory {
        Some(bytes) => format!("{:.0} MB", bytes as f64 / 1e6),
        None => "not told by this system".into(),
    };
    let many = 100_000 / shrink;
    let (few, lots) = (once("memory-few", 40, "mlp")?, once("memory-many", many, "mlp")?);
    let what = format!("peak memory, M = {many}, MLP, BN2, state reset (M = 40 in brackets)");
    table.add(&what, &format!("{} ({})", memory(&lots), memory(&few)), "", None);
    let what = format!("one round, M = {many}, MLP");
    table.add(&what, &format!("{:.1} s", lots.seconds[0]), "", None);
    let many = 1_000_000 / shrink;
    let million = once("million", many, "softmax")?;
    let what = format!("one round, M = {many}, softmax, with evaluation");
    table.add(&what, &format!("{:.1} s, {}", million.seconds[0], memory(&million)), "", None);
    Ok(())
}

/// The MNIST task by which FLUTE compares platforms; best channel stands for its uniform choice of clients, the
/// gains being independent of everything else.
fn flute(bench: &Bench, options: &Options, table: &mut Table) -> anyhow::Result<()> {
    let keys: &[&str] = &[
        "learn.model=softmax",
        "data.devices=1000",
        "data.samples_per_device=69",
        "data.sharing=overlapping",
        "schedule.policy=bc",
        "schedule.k=10",
        "learn.optimizer=sgd",
        "learn.rate=0.03",
        "learn.batch=10",
        "learn.local_steps=7",
        "run.evaluate_every=20",
    ];
    let mut totals = Vec::new();
    let mut accuracy = f64::NAN;
    for seed in 0..options.repetitions {
        let task = Task { name: "flute", keys, rounds: 100, warmup: 0, threads: options.threads, seed };
        let measured = bench.fedlink(&task)?;
        totals.push(measured.seconds.iter().sum::<f64>());
        accuracy = measured.accuracy.unwrap_or(f64::NAN);
    }
    let what = "FLUTE's MNIST task: softmax, 1000 clients, 10 a round, 100 rounds, 5 evaluations";
    table.add(what, &format!("{:.2} s, {}", median(totals), percent(accuracy)), "", None);
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
