//! The fuzz targets under libFuzzer, and the messages of Flower under a fuzzer in Python.

use crate::{cargo_path, python, root, run, step};
use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Coverage for libFuzzer: counters of edges with their places. No sanitizer: our code is safe, and
/// panics, overflows and memory are checked without one.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table";

/// The operands of comparisons, which libFuzzer uses as hints. They make a target slower, often by a
/// factor of 4 (`--compares`).
const COMPARES: &str = " -Cllvm-args=-sanitizer-coverage-trace-compares";

/// The target that is not one of our parsers in Rust.
const FLOWER: &str = "flower";

/// Seconds after which one input counts as a hang.
const TIMEOUT: u32 = 20;

/// The memory of the process beyond the target's limit, in megabytes: program, corpus, thread pool.
const BASE_MEMORY: usize = 1024;

/// The options of the command.
#[derive(clap::Args)]
pub struct Request {
    /// Minutes for each target [default: 1, without --executions]
    #[arg(long, value_parser = above_zero)]
    minutes: Option<f64>,
    /// Executions of each target in all runs together
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    executions: Option<u64>,
    /// This target only; may be repeated
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
    /// Trace comparisons, from which libFuzzer learns magic numbers
    #[arg(long)]
    compares: bool,
}

/// A finite number above 0.
fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "must be a number above 0".into())
}

/// A target with its program.
struct Target {
    name: String,
    program: PathBuf,
    /// The longest input, in bytes.
    max_len: usize,
    /// The most memory for one input, in bytes.
    max_memory: usize,
}

/// The result of one target.
struct Found {
    name: String,
    executions: u64,
    /// The executions of this run and of all earlier ones with a log.
    total: u64,
    findings: Vec<PathBuf>,
}

/// Builds the fuzzer and runs the requested targets (by default all); fails if there is a finding.
pub fn fuzz(request: &Request) -> anyhow::Result<()> {
    let names = names()?;
    if let Some(unknown) = request.targets.iter().find(|name| !names.contains(name)) {
        bail!("there is no target {unknown}; there are {}", names.join(", "));
    }
    let wanted = if request.targets.is_empty() { &names } else { &request.targets };
    let mut results = Vec::new();
    for name in wanted {
        let before: u64 = logs(name)?.iter().map(|log| executions_in(log)).sum();
        let rest = request.executions.map(|executions| executions.saturating_sub(before));
        let found = match rest {
            Some(0) => Found { name: name.clone(), executions: 0, total: before, findings: Vec::new() },
            _ if name == FLOWER => flower(request, before, rest)?,
            _ => run_target(&Target::build(name, request.compares)?, request, before, rest)?,
        };
        results.push(found);
    }
    report(&results)
}

/// Every target: those with seeds, as each must have, and Flower's messages.
fn names() -> anyhow::Result<Vec<String>> {
    let folders = files(&root().join("fuzz/seeds"))?;
    let names = folders.iter().filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned()));
    Ok(names.chain([FLOWER.to_owned()]).collect())
}

impl Request {
    fn minutes(&self) -> Option<f64> {
        self.minutes.or(self.executions.is_none().then_some(1.0))
    }

    /// The options of libFuzzer that end a run, with `rest` executions left.
    fn limits(&self, rest: Option<u64>) -> Vec<String> {
        let time = self.minutes().map(|minutes| format!("-max_total_time={}", (60.0 * minutes).ceil()));
        let runs = rest.map(|executions| format!("-runs={executions}"));
        time.into_iter().chain(runs).collect()
    }
}

impl Target {
    /// Builds the program of a target.
    fn build(name: &str, compares: bool) -> anyhow::Result<Self> {
        step(&format!("target {name}"));
        crate::setup::ensure(&["g++"])?;
        let version = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
        let version = String::from_utf8(version.stdout)?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.context("rustc -vV names no host")?;
        let folder = made("target/fuzz")?;
        // Every target is built as the same file, which is copied before another command builds the next.
        let alone = File::create(folder.join("lock"))?;
        alone.lock()?;
        // With a named target triple, code that runs during the build (build scripts, macros) is built
        // without the flags.
        run(Command::new(cargo_path())
            .args(["build", "--release", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--target", host])
            .arg("--target-dir")
            .arg(&folder)
            .env("RUSTFLAGS", [FLAGS, if compares { COMPARES } else { "" }].concat())
            .env("FEDLINK_FUZZ", name))?;
        let program = made("target/fuzz/programs")?.join(name);
        let beside = program.with_extension("new");
        fs::copy(folder.join(host).join("release/fedlink-fuzz"), &beside)?;
        fs::rename(beside, &program)?;
        drop(alone);
        let output = Command::new(&program).output();
        let output = output.with_context(|| format!("cannot start {}", program.display()))?;
        let printed = String::from_utf8(output.stdout)?;
        match printed.trim().split(' ').map(str::parse).collect::<Result<Vec<usize>, _>>().as_deref() {
            Ok(&[max_len, max_memory]) => Ok(Self { name: name.into(), program, max_len, max_memory }),
            _ => bail!("the program of target {name} prints its limits as {printed:?}"),
        }
    }
}

/// A dictionary of the words of configurations, for the targets that read text.
fn write_words() -> anyhow::Result<PathBuf> {
    let page = root().join("docs/reference.md");
    let page = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
    let mut words = words_of(&page);
    let more = "[sweep] [[exclude]] [[override]] [expected] [claims] [quick] [bound] [[panel]] [theorem] \
                [quadratic] [softmax] final others bound for every rounds-to- bits-to- inverse-time";
    words.extend(more.split_whitespace().map(str::to_owned));
    let mut text = String::new();
    for word in words {
        writeln!(text, "{word:?}")?;
    }
    let path = root().join("target/fuzz/words.dict");
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// The keys, sections and parts in the reference page, each first in a row of a table.
fn words_of(reference: &str) -> BTreeSet<String> {
    let names = reference.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let mut words: BTreeSet<String> = names.map(str::to_owned).collect();
    let sections: BTreeSet<String> =
        words.iter().filter_map(|word| Some(format!("[{}]", word.rsplit_once('.')?.0))).collect();
    words.extend(sections);
    words
}

fn run_target(target: &Target, request: &Request, before: u64, rest: Option<u64>) -> anyhow::Result<Found> {
    let Target { name, program, .. } = target;
    let corpus = made(&format!("target/fuzz/corpus/{name}"))?;
    let artifacts = made(&format!("fuzz/artifacts/{name}"))?;
    let (log, path) = new_log(name)?;
    let known = files(&artifacts)?;
    let memory = BASE_MEMORY + target.max_memory.div_ceil(1 << 20);
    let status = Command::new(program)
        .args([&corpus, &root().join("fuzz/seeds").join(name)])
        .args(request.limits(rest))
        .arg(format!("-max_len={}", target.max_len))
        .arg(format!("-rss_limit_mb={memory}"))
        .arg(format!("-timeout={TIMEOUT}"))
        // A slow input is not a finding: its time depends on the load of the machine.
        .arg(format!("-report_slow_units={TIMEOUT}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-dict={}", write_words()?.display()))
        // Weighting inputs by rare edges takes 19 % (settings) to 38 % (experiment) of the time.
        .args(["-print_final_stats=1", "-reload=0", "-entropic=0"])
        .stdout(Stdio::null())
        .stderr(log)
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
    let executions = executions_in(&text);
    let findings: Vec<PathBuf> = files(&artifacts)?.difference(&known).cloned().collect();
    if !status.success() && findings.is_empty() {
        bail!("target {name}: the fuzzer failed ({status}); see {}", path.display());
    }
    if !findings.is_empty() {
        let words: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        eprintln!("{}", words.join("\n"));
    }
    for finding in &findings {
        eprintln!("repeat it: {} {}", program.display(), finding.display());
    }
    Ok(Found { name: name.clone(), executions, total: before + executions, findings })
}

/// The logs of a target's runs, the record of the tried inputs; a killed run has one too.
fn logs(name: &str) -> anyhow::Result<Vec<String>> {
    let logs = files(&made(&format!("target/fuzz/logs/{name}"))?)?;
    logs.iter().map(|log| Ok(String::from_utf8_lossy(&fs::read(log)?).into_owned())).collect()
}

/// The log of a new run of a target, and its path.
fn new_log(name: &str) -> anyhow::Result<(File, PathBuf)> {
    let folder = made(&format!("target/fuzz/logs/{name}"))?;
    let path = folder.join(format!("{:04}.log", files(&folder)?.len()));
    Ok((File::create_new(&path).with_context(|| format!("cannot make {}", path.display()))?, path))
}

/// The number of tried inputs in a log: from its end, or from the last line before the run was killed.
fn executions_in(log: &str) -> u64 {
    let last = log.lines().filter_map(|line| {
        // The output of a finding has other lines that begin with #.
        let noted = || Some(line.strip_prefix('#')?.split_once('\t')?.0);
        let number = line.strip_prefix("stat::number_of_executed_units:").or_else(noted);
        number.or_else(|| line.strip_suffix(" executions"))?.trim().parse().ok()
    });
    last.max().unwrap_or(0)
}

/// The folder at `path` in the repository, created if needed.
fn made(path: &str) -> anyhow::Result<PathBuf> {
    let path = root().join(path);
    fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}

fn files(folder: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let listed = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    listed.map(|entry| Ok(entry?.path())).collect()
}

/// Flower's messages: a Python program that prints the number of its executions at intervals. Its cases
/// have numbers: it continues after those of earlier runs.
fn flower(request: &Request, before: u64, rest: Option<u64>) -> anyhow::Result<Found> {
    step("target flower");
    let mut command = python::with_nodes(&root())?;
    command.arg(root().join("python/tests/flower/fuzz_protocol.py")).args(["--first", &before.to_string()]);
    if let Some(executions) = rest {
        command.args(["--executions", &executions.to_string()]);
    }
    if let Some(minutes) = request.minutes() {
        command.args(["--minutes", &minutes.to_string()]);
    }
    let (log, path) = new_log(FLOWER)?;
    let status = command.stdout(log).status().context("cannot start Python")?;
    let executions = executions_in(&fs::read_to_string(path)?);
    let findings = if status.success() { Vec::new() } else { vec!["the messages printed above".into()] };
    Ok(Found { name: FLOWER.into(), executions, total: before + executions, findings })
}

/// Prints the results; an error if there is a finding.
fn report(results: &[Found]) -> anyhow::Result<()> {
    println!("{:<14} {:>14} {:>14}  findings", "target", "executions", "in all runs");
    for Found { name, executions, total, findings } in results {
        println!("{name:<14} {executions:>14} {total:>14}  {}", findings.len());
    }
    let findings: Vec<String> = results
        .iter()
        .flat_map(|found| found.findings.iter().map(|path| format!("  {}: {}", found.name, path.display())))
        .collect();
    if findings.is_empty() {
        return Ok(());
    }
    bail!(
        "{} findings; fix them and make each a seed in fuzz/seeds/TARGET:\n{}",
        findings.len(),
        findings.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Task;
    use clap::Parser;

    fn request(arguments: &[&str]) -> Result<Request, clap::Error> {
        match Task::try_parse_from(["xtask", "fuzz"].iter().chain(arguments))? {
            Task::Fuzz(request) => Ok(request),
            _ => unreachable!("the task is fuzz"),
        }
    }

    #[test]
    fn arguments_are_limits_and_a_target() {
        assert_eq!(request(&[]).unwrap().limits(None), ["-max_total_time=60"]);
        assert_eq!(request(&["--minutes", "0.5"]).unwrap().limits(None), ["-max_total_time=30"]);
        let both = ["--executions", "10", "--target", "idx", "--minutes", "2", "--target", "csv"];
        let both = request(&both).unwrap();
        assert_eq!(both.limits(Some(7)), ["-max_total_time=120", "-runs=7"]);
        assert_eq!((both.executions, both.targets), (Some(10), vec!["idx".to_owned(), "csv".to_owned()]));
        for wrong in [&["--minutes"][..], &["--minutes", "x"], &["--minutes", "0"], &["--runs", "3"]] {
            assert!(request(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn executions_are_the_final_number_or_the_last_one_of_a_killed_run() {
        let killed = "INFO: seed\n#2\tINITED cov: 3\n#1024\tpulse  cov: 7\n#9000 of something\n#9";
        assert_eq!((executions_in(killed), executions_in("killed at once")), (1024, 0));
        let ended =
            format!("{killed}\nstat::number_of_executed_units: 12345\nstat::average_exec_per_sec: 1\n");
        assert_eq!(executions_in(&ended), 12345);
        assert_eq!(executions_in("1000 executions\n2000 executions\n"), 2000);
    }

    #[test]
    fn words_are_the_keys_sections_and_parts_of_the_reference() {
        let page = fs::read_to_string(root().join("docs/reference.md")).unwrap();
        let words = words_of(&page);
        assert!(
            ["schedule.policy", "[radio]", "[schedule.bc-bn2]", "bn2-c"].iter().all(|w| words.contains(*w))
        );
    }

    #[test]
    fn the_targets_are_those_of_the_seeds_and_flower() {
        let names = names().unwrap();
        assert!(
            ["settings", "wire_decode", FLOWER].iter().all(|name| names.iter().any(|known| known == name))
        );
    }
}
