//! Processes that share a folder are killed at random times; what they resume to is always the same.

use crate::common::{cells, folder, json, numbers, start, told};
use serde_json::Value;
use std::time::{Duration, Instant, SystemTime};

/// Kills in the default test; `FEDLINK_KILLS=200` makes it a long one.
const KILLS: u64 = 12;

#[test]
fn killed_at_any_time_processes_that_share_a_folder_leave_the_same_results() {
    let kills: u64 =
        std::env::var("FEDLINK_KILLS").map_or(KILLS, |kills| kills.parse().expect("FEDLINK_KILLS"));
    let folder = folder();
    let started = Instant::now();
    told(&folder, "run two.toml --set run.rounds=100 --out whole --quiet --log-rounds --threads 1");
    let took = started.elapsed().as_millis() as u64;
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
    let run =
        "run two.toml --set run.rounds=100 --out out --quiet --log-rounds --checkpoint-every 10 --threads 1";
    let (mut killed, mut sweeps, mut resumed) = (0, 0, 0);
    while killed < kills {
        let _ = std::fs::remove_dir_all(folder.path().join("out"));
        // One sweep: killed a few times, by one to three processes at a time.
        for _ in 0..3 {
            let count = 1 + draw(3);
            let shares = draw(2) == 0;
            let children: Vec<_> = (1..=count)
                .map(|i| {
                    let words =
                        if shares { format!("{run} --cell {i}/{count}") } else { format!("{run} --resume") };
                    start(&folder, &words, &format!("log{i}"))
                })
                .collect();
            // At any time of a whole run, however long it takes on this machine.
            std::thread::sleep(Duration::from_millis(draw(took.max(1))));
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
        let manifest = json(&folder.path().join("out/manifest.json"));
        let from = |run: &Value| run["resumed_from"].as_u64().unwrap();
        resumed += manifest["runs"].as_array().unwrap().iter().filter(|run| from(run) > 0).count();
    }
    println!("{killed} kills in {sweeps} sweeps; {resumed} runs were resumed or done");
    assert!(resumed > 0, "every process was killed before its first checkpoint");
}
