//! Who made a run: program, machine and time.

use crate::environment::host_name;
use fedlink::identity::SEMANTICS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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

/// A line for each respect in which the makers of runs differ so that their numbers may: the instruction set
/// and the version.
pub fn mixed<'a>(runs: impl Iterator<Item = &'a [Maker]>) -> Vec<String> {
    let (mut sets, mut versions) = (BTreeMap::<&str, usize>::new(), BTreeMap::<String, usize>::new());
    for makers in runs {
        let mut own: Vec<&str> = makers.iter().map(|maker| maker.instruction_set.as_str()).collect();
        own.sort_unstable();
        own.dedup();
        own.into_iter().for_each(|set| *sets.entry(set).or_default() += 1);
        let mut own: Vec<String> = makers.iter().map(|maker| maker.fedlink.clone()).collect();
        own.sort_unstable();
        own.dedup();
        own.into_iter().for_each(|version| *versions.entry(version).or_default() += 1);
    }
    let list = |of: &mut dyn Iterator<Item = (&str, usize)>| {
        of.map(|(name, runs)| format!("{name} ({runs})")).collect::<Vec<_>>().join(", ")
    };
    let mut notes = Vec::new();
    if sets.len() > 1 {
        let sets = list(&mut sets.iter().map(|(name, runs)| (*name, *runs)));
        notes.push(format!(
            "runs were made with different instruction sets, which may differ in the last bits: {sets}"
        ));
    }
    if versions.len() > 1 {
        let versions = list(&mut versions.iter().map(|(name, runs)| (name.as_str(), *runs)));
        notes.push(format!("runs were made by different versions of fedlink: {versions}"));
    }
    notes
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
}
