//! Golden digests: short runs over every part of the system, whose results must not change by a single bit.
//!
//! The runs are in `golden/cases.toml`, their digests in `golden/digests.txt`. A digest
//! ([`Outcome::digest`]) is SHA-256 over every record of a run and its final model. A change that alters
//! one alters results that users have: either it has a bug, or the changelog explains the difference and
//! its reason. To replace the digests, run `FEDLINK_GOLDEN=print cargo test -p fedlink --test golden --
//! --nocapture` and paste the output.
//!
//! # Machines with these digests
//! Those whose [`instruction_set`] is `avx2+fma` or `avx512f`: both give the same bits. The library's
//! kernels use fused multiply-adds in one fixed order, for any vector width. `gemm`, without its feature
//! `x86-v4`, uses its AVX2 kernels on both.
//!
//! `gemm` never splits sums of 512 terms or less. It splits longer ones by the first-level data cache:
//! sums of 784 and 1024 terms into halves if the cache has 32 KiB in 8 ways, not at all if a core has 48
//! KiB in 12 ways to itself. Runs with such sums (a dense input layer, the CNN) have a line for each, the
//! whole sums first; a machine prints its own line only, once the digest has changed.
//!
//! Under `portable` (another processor, or `FEDLINK_INSTRUCTIONS=portable`) a product and a sum round
//! twice. Its digests are the same on every machine, with any caches: they are in `golden/portable.txt`.
//! A run without a digest there must have the same one on one thread and on three.

use fedlink::base::kernels::{InstructionSet, instruction_set};
use fedlink::data::digits::digits;
use fedlink::data::{Dataset, Features, Samples};
use fedlink::record::Outcome;
use fedlink::spec::Config;
use fedlink::system::simulation::Simulation;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use toml::{Table, Value};

/// `[base]` and, by name, the keys in which runs differ from it: `[runs]`; `[attacked]` on top of `[attack]`.
const CASES: &str = include_str!("golden/cases.toml");

/// A line for each run, in the order of the cases: its digest, a space, its name.
const DIGESTS: &str = include_str!("golden/digests.txt");

/// The same for the portable set.
const PORTABLE: &str = include_str!("golden/portable.txt");

/// Two runs that must agree: encoding updates to bytes does not change the results.
const TWINS: [&str; 2] = ["bn2-c, keep, off", "real bytes"];

/// Every run by name.
fn cases() -> Vec<(String, Config)> {
    let file: Table = CASES.parse().expect("the cases are TOML");
    let base = with(&Table::new(), &file["base"]);
    let attack = with(&base, &file["attack"]);
    let mut cases = Vec::new();
    for (base, group) in [(base, "runs"), (attack, "attacked")] {
        for (name, keys) in file[group].as_table().expect("runs have names") {
            let text = with(&base, keys).to_string();
            let config = Config::from_toml(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            cases.push((name.clone(), config));
        }
    }
    cases
}

/// The sections of `base` with those of `keys` on top, key by key.
fn with(base: &Table, keys: &Value) -> Table {
    let mut merged = base.clone();
    for (section, values) in keys.as_table().expect("a table of sections") {
        let values = values.as_table().expect("keys are section.name").clone();
        let section = merged.entry(section).or_insert_with(|| Value::Table(Table::new()));
        section.as_table_mut().expect("sections are tables").extend(values);
    }
    merged
}

/// The embedded data set, whole, and a small part of it, which makes a run faster.
struct Data {
    whole: Arc<Dataset>,
    part: Arc<Dataset>,
}

impl Data {
    fn new() -> Self {
        let whole = digits();
        let first = |samples: &Samples, count: usize| {
            let Features::Bytes(pixels) = &samples.features else { panic!("digits are bytes") };
            let features = Features::Bytes(pixels[..count * whole.features].to_vec());
            Samples { features, labels: samples.labels[..count].to_vec() }
        };
        let (train, test) = (first(&whole.train, 3000), first(&whole.test, 500));
        let part = Dataset { name: whole.name.clone(), train, test, ..whole };
        Self { part: Arc::new(part), whole: Arc::new(whole) }
    }

    fn run(&self, config: &Config, threads: usize) -> Outcome {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
        let samples = (config.data.devices * config.data.samples_per_device) as usize;
        let dataset = if samples <= self.part.train.len() { &self.part } else { &self.whole };
        pool.install(|| Simulation::of(config, Arc::clone(dataset)).unwrap().run(|_| ()).unwrap())
    }
}

/// Names and golden digests, in the order of the file.
fn golden(digests: &'static str) -> Vec<(&'static str, &'static str)> {
    digests.lines().filter_map(|line| line.split_once(' ')).map(|(digest, name)| (name, digest)).collect()
}

/// The digests that a run may have, by the file for an instruction set.
fn digests(file: &'static str, run: &str) -> Vec<&'static str> {
    golden(file).into_iter().filter_map(|(name, digest)| (name == run).then_some(digest)).collect()
}

#[test]
fn every_run_has_its_golden_digest() {
    if let Ok(asked) = std::env::var("FEDLINK_INSTRUCTIONS") {
        InstructionSet::choose(&asked).expect("portable, avx2 or avx512");
    }
    let data = Data::new();
    let set = instruction_set();
    let (file, path) = match set {
        "portable" => (PORTABLE, "portable.txt"),
        _ => (DIGESTS, "digests.txt"),
    };
    let some = std::env::var_os("FEDLINK_GOLDEN").is_some_and(|what| what == "some");
    let cases: Vec<_> = cases().into_iter().step_by(if some { 9 } else { 1 }).collect();
    let (mut table, mut wrong) = (String::new(), Vec::new());
    for (name, config) in &cases {
        let known = digests(file, name);
        let got = data.run(config, if known.is_empty() { 1 } else { 2 }).digest;
        let again = known.is_empty().then(|| data.run(config, 3).digest);
        let wanted = again.as_ref().map_or(known, |digest| vec![digest]);
        let right = wanted.contains(&got.as_str());
        if !right {
            wrong.push(format!("{name}\n  wanted {}\n  got    {got}", wanted.join(" or ")));
        }
        // The digests of other caches stay in the file as long as this machine's digest does.
        for digest in if right { wanted } else { vec![got.as_str()] } {
            let _ = writeln!(table, "{digest} {name}");
        }
    }
    if std::env::var_os("FEDLINK_GOLDEN").is_some_and(|what| what == "print") {
        println!("crates/fedlink/tests/golden/{path} with {set}:\n{table}");
    }
    let (count, all) = (wrong.len(), cases.len());
    assert!(wrong.is_empty(), "{count} of {all} runs have other bits with {set}:\n{}", wrong.join("\n"));
}

/// Every ninth of the runs again, in one process per other instruction set of this machine.
#[test]
fn the_other_instruction_sets_of_this_machine_give_their_bits_too() {
    if std::env::var_os("FEDLINK_INSTRUCTIONS").is_some() {
        return;
    }
    let count = InstructionSet::available().len();
    for name in &["portable", "avx2", "avx512"][..count - 1] {
        let run = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "every_run_has_its_golden_digest"])
            .env("FEDLINK_INSTRUCTIONS", name)
            .env("FEDLINK_GOLDEN", "some")
            .output()
            .expect("this program starts");
        let output = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && output.contains("1 passed"), "{name}: {output}");
        // The test harness does not capture the log, so that a test run names the instruction sets that
        // it tested.
        let _ = writeln!(std::io::stderr(), "some golden digests were compared with {name}");
    }
}

#[test]
fn every_run_has_a_digest_and_only_the_twins_share_one() {
    let cases: Vec<String> = cases().into_iter().map(|(name, _)| name).collect();
    let portable = golden(PORTABLE);
    assert!(
        portable.iter().all(|(name, digest)| digest.len() == 64 && cases.iter().any(|case| case == name))
    );
    let golden = golden(DIGESTS);
    let mut names: Vec<&str> = golden.iter().map(|&(name, _)| name).collect();
    names.dedup();
    assert_eq!(names, cases);
    assert!(
        golden.iter().all(|(_, digest)| digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit()))
    );
    assert_eq!(digests(DIGESTS, TWINS[0]), digests(DIGESTS, TWINS[1]));
    // A run with the same digest as another one tests nothing new.
    let distinct: BTreeSet<&str> = golden.iter().map(|&(_, digest)| digest).collect();
    assert_eq!(distinct.len(), golden.len() - 1);
}
