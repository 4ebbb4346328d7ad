//! The processes that did a run: program, machine and time.

use crate::environment::host_name;
use fedlink::base::kernels::InstructionSet;
use fedlink::spec::identity::SEMANTICS;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

/// The process that made the rounds of a run from `from_round` on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Process {
    /// Version of fedlink.
    pub fedlink: String,
    /// [`SEMANTICS`] of that version.
    pub semantics: u32,
    /// The instruction set of the kernels: results may differ between sets.
    pub instruction_set: String,
    /// Name of the machine.
    pub host: String,
    /// Operating system.
    pub os: String,
    /// Architecture.
    pub architecture: String,
    /// The name of the processor, if the system reports it.
    pub processor: Option<String>,
    /// Its first-level data cache as `48K, 12 ways`, if the system reports it. Except for `portable`, long
    /// sums may round differently with another cache.
    pub data_cache: Option<String>,
    /// Its cores.
    pub cores: usize,
    /// Threads that trained.
    pub threads: usize,
    /// Number of the process.
    pub pid: u32,
    /// The time at which it began or resumed the run, UTC.
    pub started: String,
    /// Rounds that were done before it.
    pub from_round: u64,
    /// Wall-clock time until the run ended, in seconds, with other runs beside it; none for a process that
    /// did not end it.
    pub seconds: Option<f64>,
}

impl Process {
    /// This process.
    pub fn here(threads: usize) -> Self {
        Self {
            fedlink: env!("CARGO_PKG_VERSION").into(),
            semantics: SEMANTICS,
            instruction_set: fedlink::base::kernels::instruction_set().to_string(),
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

/// The processes of a run that continues with `process` after `from_round` rounds.
pub fn continued(before: Vec<Process>, mut process: Process, from_round: u64) -> Vec<Process> {
    // A process that was killed before its first checkpoint has left no rounds.
    let mut processes: Vec<Process> =
        before.into_iter().filter(|process| process.from_round < from_round).collect();
    process.from_round = from_round;
    processes.push(process);
    processes
}

/// A line for each property in which the processes of runs differ and which may change numbers: instruction
/// set, first-level data cache, version.
pub fn differing<'a>(runs: impl Iterator<Item = &'a [Process]>) -> Vec<String> {
    let runs: Vec<&[Process]> = runs.collect();
    let differs = |what: &str, of: &dyn Fn(&'a Process) -> Option<&'a str>| {
        let mut counts = BTreeMap::<&str, usize>::new();
        for processes in &runs {
            let own: BTreeSet<&str> = processes.iter().filter_map(of).collect();
            own.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
        }
        let list: Vec<String> = counts.iter().map(|(name, runs)| format!("{name} ({runs})")).collect();
        (list.len() > 1).then(|| format!("{what}: {}", list.join(", ")))
    };
    let by_cache = |process: &'a Process| {
        process.data_cache.as_deref().filter(|_| process.instruction_set != InstructionSet::PORTABLE.name())
    };
    [
        differs(
            "runs were made with different instruction sets, which may differ in the last bits",
            &|process| Some(process.instruction_set.as_str()),
        ),
        differs(
            "runs were made on processors with different first-level data caches, which may differ in the \
             last bits",
            &by_cache,
        ),
        differs("runs were made by different versions of fedlink", &|process| Some(process.fedlink.as_str())),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The time now, UTC, to the second.
pub fn now() -> String {
    utc(SystemTime::now())
}

/// `2026-01-31T12:00:00Z`, in the proleptic Gregorian calendar, for any time that a clock may have.
fn utc(time: SystemTime) -> String {
    let seconds = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i128::from(after.as_secs()),
        Err(error) => {
            let before = error.duration();
            -i128::from(before.as_secs()) - i128::from(before.subsec_nanos() > 0)
        }
    };
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years of 400 are 146 097 days. From the first of March on, leap days are at the end of a year.
    let from_march = days + 719_468;
    let (era, day) = (from_march.div_euclid(146_097), from_march.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
}

/// The name of the processor, if the system reports it.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The first-level data cache, if the system reports it.
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

    fn process(set: &str, from_round: u64) -> Process {
        Process { instruction_set: set.into(), fedlink: "1".into(), from_round, ..Process::default() }
    }

    #[test]
    fn every_time_of_a_clock_has_a_text() {
        use std::time::Duration;
        let at = |seconds: i64| {
            let length = Duration::from_secs(seconds.unsigned_abs());
            let epoch = SystemTime::UNIX_EPOCH;
            utc(if seconds < 0 { epoch - length } else { epoch + length })
        };
        // By `date -u -d @SECONDS +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_769_860_800, "2026-01-31T12:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (253_402_300_800, "10000-01-01T00:00:00Z"),
            (-62_135_596_801, "0000-12-31T23:59:59Z"),
        ] {
            assert_eq!(at(seconds), text);
        }
        assert_eq!(utc(SystemTime::UNIX_EPOCH - Duration::from_nanos(1)), "1969-12-31T23:59:59Z");
        // The largest and the smallest time that the system has.
        for sign in [-1, 1] {
            let step = |time: SystemTime, length| {
                if sign < 0 { time.checked_sub(length) } else { time.checked_add(length) }
            };
            let mut time = SystemTime::UNIX_EPOCH;
            for bit in (0..64).rev() {
                time = step(time, Duration::from_secs(1 << bit)).unwrap_or(time);
            }
            assert!(utc(time).ends_with('Z'));
        }
    }

    #[test]
    fn a_process_that_left_no_rounds_is_dropped() {
        let before = vec![process("a", 0), process("b", 20), process("c", 40)];
        let processes = continued(before, process("d", 0), 40);
        let left: Vec<(&str, u64)> =
            processes.iter().map(|process| (process.instruction_set.as_str(), process.from_round)).collect();
        assert_eq!(left, [("a", 0), ("b", 20), ("d", 40)]);
    }

    #[test]
    fn a_difference_is_listed_with_the_number_of_runs() {
        let runs = [vec![process("avx2", 0)], vec![process("avx2", 0), process("avx512", 9)]];
        let notes = differing(runs.iter().map(Vec::as_slice));
        assert_eq!(notes.len(), 1);
        assert!(notes[0].ends_with("avx2 (2), avx512 (1)"), "{notes:?}");
        assert_eq!(differing(runs[..1].iter().map(Vec::as_slice)), Vec::<String>::new());
    }

    #[test]
    fn caches_are_compared_if_they_are_known_and_the_instruction_set_depends_on_them() {
        let cached = |set: &str, cache: Option<&str>| {
            vec![Process { data_cache: cache.map(str::to_owned), ..process(set, 0) }]
        };
        let (small, large) = (Some("32K, 8 ways"), Some("48K, 12 ways"));
        let notes = |runs: &[Vec<Process>]| differing(runs.iter().map(Vec::as_slice));
        let found = notes(&[cached("avx2+fma", small), cached("avx2+fma", large), cached("avx2+fma", small)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].ends_with("last bits: 32K, 8 ways (2), 48K, 12 ways (1)"), "{found:?}");
        assert!(notes(&[cached("avx2+fma", small), cached("avx2+fma", None)]).is_empty());
        assert!(notes(&[cached("portable", small), cached("portable", large)]).is_empty());
    }
}
