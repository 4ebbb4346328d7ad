//! Processes that share a folder are killed at random times; their resumed results are always the same.

use crate::common::{folder, json, numbers, outputs, run_files, start};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

/// Kills in the default test; `FEDLINK_KILLS=200` makes it a long one.
const KILLS: usize = 6;
/// Processes of one sweep that are killed at most, so that it ends however slow the machine is.
const OF_A_SWEEP: usize = 12;

/// Twelve runs: a process computes four at a time, so that three processes have enough of them.
const RUN: &str = "run two.toml --set run.rounds=100 --seeds 6 --quiet --log-rounds --threads 1";

/// Random numbers. Times are random, results are not: a failure is a failure at any times.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos();
        Self(u64::from(nanos) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// One of the processes that share a folder. Whenever it is killed, another takes its place.
struct Member {
    words: String,
    log: String,
    child: Child,
    dies: Instant,
}

/// Runs a sweep to its end by one to three processes at a time, each killed at a random time within `life`
/// and started again, some while others of the folder compute; returns the killed processes.
fn disturbed(folder: &TempDir, random: &mut Random, life: Duration) -> BTreeSet<u64> {
    let count = 1 + random.below(3);
    let shares = random.below(2) == 0;
    let mut time = || Instant::now() + Duration::from_micros(random.below(life.as_micros().max(1) as u64));
    let mut members: Vec<Member> = (1..=count)
        .map(|i| {
            let which = if shares { format!("--share {i}/{count}") } else { "--resume".into() };
            let (words, log) = (format!("{RUN} --checkpoint-every 5 --out out {which}"), format!("log{i}"));
            let child = start(folder, &words, &log);
            Member { words, log, child, dies: time() }
        })
        .collect();
    let mut killed = BTreeSet::new();
    while !members.is_empty() {
        std::thread::sleep(Duration::from_millis(1));
        members.retain_mut(|member| {
            if let Some(status) = member.child.try_wait().unwrap() {
                let log = std::fs::read_to_string(folder.path().join(&member.log)).unwrap();
                assert!(status.success(), "{}: {status}: {log}", member.words);
                return false;
            }
            if Instant::now() >= member.dies && killed.len() < OF_A_SWEEP {
                member.child.kill().unwrap();
                // It may have ended by itself in this moment.
                if !member.child.wait().unwrap().success() {
                    killed.insert(u64::from(member.child.id()));
                    member.child = start(folder, &member.words, &member.log);
                    member.dies = time();
                }
            }
            true
        });
    }
    killed
}

/// The processes whose work is in the finished runs, as the manifest names them.
fn makers(out: &Path) -> BTreeSet<u64> {
    let manifest = json(&out.join("manifest.json"));
    let of = |run: &Value| run["makers"].as_array().unwrap().clone();
    let runs = manifest["runs"].as_array().unwrap();
    runs.iter().flat_map(of).map(|maker| maker["pid"].as_u64().unwrap()).collect()
}

#[test]
fn killed_at_any_time_processes_that_share_a_folder_leave_the_same_results() {
    let kills: usize =
        std::env::var("FEDLINK_KILLS").map_or(KILLS, |kills| kills.parse().expect("FEDLINK_KILLS"));
    let folder = folder();
    let started = Instant::now();
    outputs(&folder, &format!("{RUN} --out whole"));
    // The first part of a whole run, so that most are killed before its end.
    let mut life = started.elapsed() / 3;
    let whole = numbers(&folder, "whole");
    let out = folder.path().join("out");
    let log = |out: &str| std::fs::read(folder.path().join(out).join("rounds.csv")).unwrap();
    let mut random = Random::new();
    let (mut all, mut counted, mut sweeps) = (0, 0, 0);
    // Only kills of processes whose work outlives them count: rounds that such a process has computed are in
    // the results, so another process resumed after them.
    while counted < kills {
        let _ = std::fs::remove_dir_all(&out);
        let killed = disturbed(&folder, &mut random, life);
        outputs(&folder, &format!("{RUN} --out out --resume"));
        assert!(numbers(&folder, "out") == whole && log("out") == log("whole"), "after {all} kills");
        let left: Vec<_> = ["partial", ".lock", ".progress", ".checkpoint", ".previous", ".makers"]
            .iter()
            .flat_map(|end| run_files(&folder, "out", "", end))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        sweeps += 1;
        all += killed.len();
        let progressed = killed.intersection(&makers(&out)).count();
        counted += progressed;
        // On a machine that is busier than it was they need longer to store rounds, and on one that is less
        // busy they end before they are killed.
        if 2 * progressed < killed.len() {
            life *= 2;
        } else if 2 * killed.len() < OF_A_SWEEP {
            life /= 2;
        }
        assert!(
            sweeps < 10 + kills,
            "{counted} of {all} killed processes had made progress in {sweeps} sweeps"
        );
        println!("sweep {sweeps}: {all} kills so far, {counted} of processes that had made progress");
    }
}

#[test]
fn files_of_a_process_that_was_killed_right_after_a_run_are_removed() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --quiet --out out");
    let before = numbers(&folder, "out");
    let done = run_files(&folder, "out", "", ".json").remove(0);
    let left: Vec<_> = ["lock", "progress", "checkpoint", "checkpoint.previous", "makers", "json.partial"]
        .iter()
        .map(|ending| done.with_extension(ending))
        .collect();
    left.iter().for_each(|path| std::fs::write(path, "").unwrap());
    // The owner of the lock removes it.
    let held = std::fs::File::open(&left[0]).unwrap();
    held.lock().unwrap();
    outputs(&folder, "run two.toml --quick --quiet --out out --resume");
    assert!(left.iter().all(|path| path.exists()));
    drop(held);
    outputs(&folder, "run two.toml --quick --quiet --out out --resume");
    assert!(left.iter().all(|path| !path.exists()) && done.exists());
    assert!(numbers(&folder, "out") == before);
}
