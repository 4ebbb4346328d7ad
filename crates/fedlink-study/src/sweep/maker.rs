//! Who made a run: program, machine and time.

use crate::environment::host_name;
use fedlink::identity::SEMANTICS;
use fedlink::kernels::InstructionSet;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

/// The process that made the rounds of a run from `from_round` on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Maker {
    /// Version of fedlink.
    pub fedlink: String,
    /// [`SEMANTICS`] of that version.
    pub semantics: u32,
    /// The instructions that the kernels used: results may differ from one set to another.
    pub instruction_set: String,
    /// Name of the machine.
    pub host: String,
    /// Operating system.
    pub os: String,
    /// Architecture.
    pub architecture: String,
    /// The processor's name where the system tells it.
    pub processor: Option<String>,
    /// Its first-level data cache where the system tells it, as `48K, 12 ways`: but for `portable`, long sums
    /// may round otherwise on a machine with another one.
    pub data_cache: Option<String>,
    /// Its cores.
    pub cores: usize,
    /// Threads that trained.
    pub threads: usize,
    /// Number of the process.
    pub pid: u32,
    /// When it began or resumed the run, UTC.
    pub started: String,
    /// Rounds that were done before.
    pub from_round: u64,
    /// Wall-clock time until the run ended, other runs beside it included; none for a process that did not
    /// end it.
    pub seconds: Option<f64>,
}

impl Maker {
    /// This process.
    pub fn here(threads: usize) -> Self {
        Self {
            fedlink: env!("CARGO_PKG_VERSION").into(),
            semantics: SEMANTICS,
            instruction_set: fedlink::kernels::instruction_set().to_string(),
            host: host_name(),
            os: std::env::consts::OS.into(),
            architecture: std::env::consts::ARCH.into(),
            processor: processor(),
            data_cache: data_cache(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            threads,
            pid: std::process::id(),
            started: now(),
            from_round: 0,
            seconds: None,
        }
    }

    /// `fedlink 0.2.0 (semantics 1, avx2+fma) on node7, 2026-01-31T12:00:00Z`.
    pub fn text(&self) -> String {
        let Self { fedlink, semantics, instruction_set, host, started, .. } = self;
        format!("fedlink {fedlink} (semantics {semantics}, {instruction_set}) on {host}, {started}")
    }
}

/// The makers of a run that continues with `maker` after `from_round` rounds: those that did rounds before,
/// and it.
pub fn continued(before: Vec<Maker>, mut maker: Maker, from_round: u64) -> Vec<Maker> {
    // Of a process that was killed before its first checkpoint nothing is left.
    let mut makers: Vec<Maker> = before.into_iter().filter(|maker| maker.from_round < from_round).collect();
    maker.from_round = from_round;
    makers.push(maker);
    makers
}

/// A line for each respect in which the makers of runs differ so that their numbers may: instruction set,
/// first-level data cache and version.
pub fn mixed<'a>(runs: impl Iterator<Item = &'a [Maker]>) -> Vec<String> {
    let runs: Vec<&[Maker]> = runs.collect();
    let differs = |what: &str, of: &dyn Fn(&'a Maker) -> Option<&'a str>| {
        let mut counts = BTreeMap::<&str, usize>::new();
        for makers in &runs {
            let own: BTreeSet<&str> = makers.iter().filter_map(of).collect();
            own.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
        }
        let list: Vec<String> = counts.iter().map(|(name, runs)| format!("{name} ({runs})")).collect();
        (list.len() > 1).then(|| format!("{what}: {}", list.join(", ")))
    };
    let by_cache = |maker: &'a Maker| {
        maker.data_cache.as_deref().filter(|_| maker.instruction_set != InstructionSet::PORTABLE.name())
    };
    [
        differs(
            "runs were made with different instruction sets, which may differ in the last bits",
            &|maker| Some(maker.instruction_set.as_str()),
        ),
        differs(
            "runs were made on processors with different first-level data caches, which may differ in the \
             last bits",
            &by_cache,
        ),
        differs("runs were made by different versions of fedlink", &|maker| Some(maker.fedlink.as_str())),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The time now, UTC, to the second.
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// The processor's name where the system tells it.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The first-level data cache where the system tells it.
fn data_cache() -> Option<String> {
    let caches = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    caches.filter_map(Result::ok).map(|entry| entry.path()).find_map(|cache| {
        let read = |name: &str| Some(std::fs::read_to_string(cache.join(name)).ok()?.trim().to_owned());
        let is_first = read("level")? == "1" && read("type")? != "Instruction";
        is_first.then_some(())?;
        Some(format!("{}, {} ways", read("size")?, read("ways_of_associativity")?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maker(set: &str, from_round: u64) -> Maker {
        Maker { instruction_set: set.into(), fedlink: "1".into(), from_round, ..Maker::default() }
    }

    #[test]
    fn a_process_that_left_no_round_is_no_maker() {
        let before = vec![maker("a", 0), maker("b", 20), maker("c", 40)];
        let makers = continued(before, maker("d", 0), 40);
        let left: Vec<(&str, u64)> =
            makers.iter().map(|maker| (maker.instruction_set.as_str(), maker.from_round)).collect();
        assert_eq!(left, [("a", 0), ("b", 20), ("d", 40)]);
    }

    #[test]
    fn what_differs_is_named_with_how_many_runs_have_it() {
        let runs = [vec![maker("avx2", 0)], vec![maker("avx2", 0), maker("avx512", 9)]];
        let notes = mixed(runs.iter().map(Vec::as_slice));
        assert_eq!(notes.len(), 1);
        assert!(notes[0].ends_with("avx2 (2), avx512 (1)"), "{notes:?}");
        assert_eq!(mixed(runs[..1].iter().map(Vec::as_slice)), Vec::<String>::new());
    }

    #[test]
    fn caches_count_where_sums_are_split_by_them_and_where_they_are_known() {
        let cached = |set: &str, cache: Option<&str>| {
            vec![Maker { data_cache: cache.map(str::to_owned), ..maker(set, 0) }]
        };
        let (small, large) = (Some("32K, 8 ways"), Some("48K, 12 ways"));
        let notes = |runs: &[Vec<Maker>]| mixed(runs.iter().map(Vec::as_slice));
        let found = notes(&[cached("avx2+fma", small), cached("avx2+fma", large), cached("avx2+fma", small)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].ends_with("last bits: 32K, 8 ways (2), 48K, 12 ways (1)"), "{found:?}");
        assert!(notes(&[cached("avx2+fma", small), cached("avx2+fma", None)]).is_empty());
        assert!(notes(&[cached("portable", small), cached("portable", large)]).is_empty());
    }
}
