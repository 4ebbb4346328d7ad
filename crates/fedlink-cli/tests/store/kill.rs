//! Processes that share a folder are killed at random times; what they resume to is always the same.

use crate::common::{cells, folder, numbers, start, told};
use std::time::{Duration, SystemTime};

/// Kills in the default test; `FEDLINK_KILLS=200` makes it a long one.
const KILLS: u64 = 12;

#[test]
fn killed_at_any_time_processes_that_share_a_folder_leave_the_same_results() {
    let kills: u64 = std::env::var("FEDLINK_KILLS").map_or(KILLS, |kills| kills.parse().expect("FEDLINK_KILLS"));
    let folder = folder();
    told(&folder, "run two.toml --out whole --quiet --log-rounds --threads 1");
    let whole = numbers(&folder, "whole");
    let log = |out: &str| std::fs::read(folder.path().join(out).join("rounds.csv")).unwrap();
    // Times are random, results are not: a failure is one whatever the times were.
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos();
    let mut random = u64::from(nanos) | 1;
    let mut draw = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let run = "run two.toml --out out --quiet --log-rounds --checkpoint-every 20 --threads 1";
    let (mut killed, mut sweeps) = (0, 0);
    while killed < kills {
        let _ = std::fs::remove_dir_all(folder.path().join("out"));
        // One sweep: killed a few times, by one to three processes at a time.
        for _ in 0..4 {
            let count = 1 + draw(3);
            let shares = draw(2) == 0;
            let children: Vec<_> = (1..=count)
                .map(|i| {
                    let words = if shares { format!("{run} --cell {i}/{count}") } else { format!("{run} --resume") };
                    start(&folder, &words, &format!("log{i}"))
                })
                .collect();
            std::thread::sleep(Duration::from_millis(20 + draw(400)));
            for mut child in children {
                killed += u64::from(child.try_wait().unwrap().is_none());
                child.kill().unwrap();
                child.wait().unwrap();
            }
        }
        told(&folder, &format!("{run} --resume"));
        assert!(numbers(&folder, "out") == whole && log("out") == log("whole"), "after {killed} kills");
        let left: Vec<_> = ["partial", ".lock", ".progress", ".checkpoint", ".previous", ".makers"]
            .iter()
            .flat_map(|end| cells(&folder, "out", "", end))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        sweeps += 1;
    }
    println!("{killed} kills in {sweeps} sweeps");
}
