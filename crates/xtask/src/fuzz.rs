//! The fuzz targets under libFuzzer, and the messages of Flower under a fuzzer in Python.

use crate::{cargo_path, python, root, run, step};
use anyhow::{Context, bail};
use fedlink::config::{SECTIONS, all_keys, kinds};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Coverage for libFuzzer: counters of edges with their places, and the operands of comparisons. No
/// sanitizer: our code is safe, and panics, overflows and memory are found without one.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// The target that is no parser of ours in Rust.
const FLOWER: &str = "flower";

/// Seconds after which one input counts as a hang.
const TIMEOUT: u32 = 20;

/// What the process may hold besides what the target states, in megabytes: program, corpus, thread pool.
const BASE_MEMORY: usize = 1024;

/// What was asked for.
struct Request {
    /// Minutes for each target.
    minutes: Option<f64>,
    /// Executions of each target.
    executions: Option<u64>,
    /// The only target.
    target: Option<String>,
}

/// A target as the program lists it.
struct Target {
    name: String,
    /// The longest input, in bytes.
    max_len: usize,
    /// The most memory for one input, in bytes.
    max_memory: usize,
}

/// What came out for one target.
struct Found {
    name: String,
    executions: u64,
    findings: Vec<PathBuf>,
}

/// Builds the fuzzer and runs every target, or one; fails if there is a finding.
pub fn fuzz(arguments: &[String]) -> anyhow::Result<()> {
    let request = Request::parse(arguments)?;
    let wanted = |name: &str| request.target.as_deref().is_none_or(|target| target == name);
    let mut results = Vec::new();
    if request.target.as_deref() != Some(FLOWER) {
        let program = build()?;
        let words = write_words()?;
        let targets = list(&program)?;
        if !targets.iter().any(|target| wanted(&target.name)) {
            let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
            bail!("there is no such target; there are {} and {FLOWER}", names.join(", "));
        }
        for target in targets.iter().filter(|target| wanted(&target.name)) {
            results.push(run_target(&program, &words, target, &request)?);
        }
    }
    if wanted(FLOWER) {
        results.push(flower(&request)?);
    }
    report(&results)
}

impl Request {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut request = Self { minutes: None, executions: None, target: None };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let value = rest.next().with_context(|| format!("{name} needs a value"))?;
            let number = || format!("{name} {value}: must be a number above 0");
            match name.as_str() {
                "--minutes" => request.minutes = Some(value.parse().with_context(number)?),
                "--executions" => request.executions = Some(value.parse().with_context(number)?),
                "--target" => request.target = Some(value.clone()),
                _ => bail!("fuzz has --minutes N, --executions N and --target NAME, and not {name}"),
            }
        }
        let wrong = |minutes: f64| !minutes.is_finite() || minutes <= 0.0;
        if request.minutes.is_some_and(wrong) || request.executions == Some(0) {
            bail!("--minutes and --executions must be above 0");
        }
        if request.minutes.is_none() && request.executions.is_none() {
            request.minutes = Some(1.0);
        }
        Ok(request)
    }

    /// How long libFuzzer runs, as its options.
    fn limits(&self) -> Vec<String> {
        let time = self.minutes.map(|minutes| format!("-max_total_time={}", (60.0 * minutes).ceil()));
        let runs = self.executions.map(|executions| format!("-runs={executions}"));
        time.into_iter().chain(runs).collect()
    }
}

/// Builds the one program that runs all targets.
fn build() -> anyhow::Result<PathBuf> {
    step("fuzzer");
    crate::setup::ensure(&["g++"])?;
    let version = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let version = String::from_utf8(version.stdout)?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc -vV names no host")?;
    let folder = root().join("target/fuzz");
    // With a target named, what runs while building (build scripts, macros) is built without the flags.
    run(Command::new(cargo_path())
        .args(["build", "--release", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--target", host])
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", FLAGS))?;
    Ok(folder.join(host).join("release/fedlink-fuzz"))
}

/// The targets that the program has.
fn list(program: &Path) -> anyhow::Result<Vec<Target>> {
    let output = Command::new(program).env("FEDLINK_FUZZ", "").output();
    let output = output.with_context(|| format!("cannot start {}", program.display()))?;
    String::from_utf8(output.stdout)?.lines().map(Target::parse).collect()
}

impl Target {
    /// Reads a line of the program's list.
    fn parse(line: &str) -> anyhow::Result<Self> {
        match line.split(' ').collect::<Vec<_>>()[..] {
            [name, max_len, max_memory] => {
                Ok(Self { name: name.into(), max_len: max_len.parse()?, max_memory: max_memory.parse()? })
            }
            _ => bail!("the fuzzer lists a target as {line:?}"),
        }
    }
}

/// A dictionary of the words of configurations, for the targets that read text.
fn write_words() -> anyhow::Result<PathBuf> {
    let mut words: BTreeSet<String> = all_keys().iter().cloned().collect();
    words.extend(SECTIONS.iter().map(|section| format!("[{section}]")));
    words.extend(kinds().iter().flat_map(|kind| kind.parts.iter().map(|part| part.name.to_owned())));
    let more = "[sweep] [[exclude]] [[override]] [expected] [claims] [quick] [bound] [[panel]] [theorem] [quadratic] \
                [softmax] final others bound for every rounds-to- bits-to- inverse-time";
    words.extend(more.split_whitespace().map(str::to_owned));
    let mut text = String::new();
    for word in words {
        writeln!(text, "{word:?}")?;
    }
    let path = root().join("target/fuzz/words.dict");
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn run_target(program: &Path, words: &Path, target: &Target, request: &Request) -> anyhow::Result<Found> {
    step(&format!("target {}", target.name));
    let made = |path: String| -> anyhow::Result<PathBuf> {
        let path = root().join(path);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    };
    let corpus = made(format!("target/fuzz/corpus/{}", target.name))?;
    let artifacts = made(format!("fuzz/artifacts/{}", target.name))?;
    let log = made("target/fuzz/logs".into())?.join(format!("{}.log", target.name));
    let before = files(&artifacts)?;
    let memory = BASE_MEMORY + target.max_memory.div_ceil(1 << 20);
    let status = Command::new(program)
        .args([&corpus, &root().join("fuzz/seeds").join(&target.name)])
        .args(request.limits())
        .arg(format!("-max_len={}", target.max_len))
        .arg(format!("-rss_limit_mb={memory}"))
        .arg(format!("-timeout={TIMEOUT}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-dict={}", words.display()))
        .args(["-print_final_stats=1", "-reload=0"])
        .env("FEDLINK_FUZZ", &target.name)
        .stdout(Stdio::null())
        .stderr(File::create(&log).with_context(|| format!("cannot write {}", log.display()))?)
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let executions = executions_in(&text);
    let findings: Vec<PathBuf> = files(&artifacts)?.difference(&before).cloned().collect();
    if !status.success() && findings.is_empty() {
        bail!("target {}: the fuzzer failed ({status}); see {}", target.name, log.display());
    }
    if !findings.is_empty() {
        let words: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        eprintln!("{}", words.join("\n"));
    }
    for finding in &findings {
        eprintln!("repeat it: FEDLINK_FUZZ={} {} {}", target.name, program.display(), finding.display());
    }
    Ok(Found { name: target.name.clone(), executions, findings })
}

/// How many inputs libFuzzer has tried, by its final statistics.
fn executions_in(log: &str) -> u64 {
    let number = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

fn files(folder: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let listed = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    listed.map(|entry| Ok(entry?.path())).collect()
}

/// The messages of Flower: a program in Python that ends with the number of its executions.
fn flower(request: &Request) -> anyhow::Result<Found> {
    step("target flower");
    let mut command = python::with_nodes(&root())?;
    command.arg(root().join("python/tests/flower/fuzz_protocol.py"));
    if let Some(executions) = request.executions {
        command.args(["--executions", &executions.to_string()]);
    }
    if let Some(minutes) = request.minutes {
        command.args(["--minutes", &minutes.to_string()]);
    }
    let output = command.stderr(Stdio::inherit()).output().context("cannot start Python")?;
    let text = String::from_utf8(output.stdout)?;
    print!("{text}");
    let number = text.lines().find_map(|line| line.strip_suffix(" executions")).and_then(|n| n.parse().ok());
    let executions = number.context("the fuzzer of Flower's messages did not say how many it tried")?;
    let findings =
        if output.status.success() { Vec::new() } else { vec!["the messages printed above".into()] };
    Ok(Found { name: FLOWER.into(), executions, findings })
}

/// Prints what came out; an error if there is a finding.
fn report(results: &[Found]) -> anyhow::Result<()> {
    println!("{:<14} {:>14}  findings", "target", "executions");
    for Found { name, executions, findings } in results {
        println!("{name:<14} {executions:>14}  {}", findings.len());
    }
    let findings: Vec<String> = results
        .iter()
        .flat_map(|found| found.findings.iter().map(|path| format!("  {}: {}", found.name, path.display())))
        .collect();
    if findings.is_empty() {
        return Ok(());
    }
    bail!(
        "{} findings; mend them and make each a seed in fuzz/seeds/TARGET:\n{}",
        findings.len(),
        findings.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(arguments: &[&str]) -> anyhow::Result<Request> {
        Request::parse(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_limits_and_a_target() {
        assert_eq!(request(&[]).unwrap().limits(), ["-max_total_time=60"]);
        assert_eq!(request(&["--minutes", "0.5"]).unwrap().limits(), ["-max_total_time=30"]);
        let both = request(&["--executions", "10", "--target", "idx", "--minutes", "2"]).unwrap();
        assert_eq!(both.limits(), ["-max_total_time=120", "-runs=10"]);
        assert_eq!(both.target.as_deref(), Some("idx"));
        for wrong in [&["--minutes"][..], &["--minutes", "x"], &["--minutes", "0"], &["--runs", "3"]] {
            assert!(request(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn executions_are_read_from_the_final_statistics() {
        let log = "#2 INITED\nstat::number_of_executed_units: 12345\nstat::average_exec_per_sec: 1\n";
        assert_eq!((executions_in(log), executions_in("killed")), (12345, 0));
    }
}
