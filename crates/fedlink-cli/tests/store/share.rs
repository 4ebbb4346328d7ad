//! Many processes share a folder.

use crate::common::{fedlink, folder, json, numbers, outputs, run_files, start, until};

#[test]
fn the_tasks_of_an_array_may_all_start_at_once_on_a_folder_that_is_not_there() {
    let times: usize =
        std::env::var("FEDLINK_STARTS").map_or(3, |times| times.parse().expect("FEDLINK_STARTS"));
    let folder = folder();
    // A run for each task.
    let run = "run two.toml --quick --seeds 8 --quiet --threads 1";
    outputs(&folder, &format!("{run} --out whole"));
    for time in 0..times {
        let _ = std::fs::remove_dir_all(folder.path().join("shared"));
        let tasks: Vec<_> = (1..=16)
            .map(|i| start(&folder, &format!("{run} --share {i}/16 --out shared"), &format!("log{i}")))
            .collect();
        for (i, mut task) in tasks.into_iter().enumerate() {
            let log = || std::fs::read_to_string(folder.path().join(format!("log{}", i + 1))).unwrap();
            assert!(task.wait().unwrap().success(), "time {time}, task {}: {}", i + 1, log());
        }
        outputs(&folder, "merge shared --quiet");
        assert_eq!(numbers(&folder, "shared"), numbers(&folder, "whole"));
        println!("{} starts of 16 processes", time + 1);
    }
}

#[test]
fn a_second_process_does_other_runs_first_then_waits_and_computes_nothing_twice() {
    let folder = folder();
    let long = "run two.toml --set run.rounds=400 --out out --threads 1 --resume";
    let mut first = start(&folder, long, "first");
    until("four runs are going on", || run_files(&folder, "out", "", ".progress").len() == 4);
    let (text, _) = outputs(&folder, "status out");
    assert!(text.starts_with("0 of 4 done, 4 running, 0 to go"), "{text}");
    assert!(text.contains(&format!("pid {}", first.id())) && text.contains("bc seed 1: round "), "{text}");
    // More seeds: two runs belong to no share yet.
    let second = outputs(&folder, &format!("{long} --seeds 3"));
    assert!(second.1.contains("has grown"), "{}", second.1);
    let waited = second.1.lines().filter(|line| line.contains("is being computed by pid")).count();
    assert!((1..=4).contains(&waited), "{}", second.1);
    assert!(first.wait().unwrap().success());
    let manifest = json(&folder.path().join("out/manifest.json"));
    let makers = |seed: u64| -> Vec<u64> {
        let runs = manifest["runs"].as_array().unwrap().iter();
        runs.filter(|run| run["seed"] == seed).map(|run| run["makers"][0]["pid"].as_u64().unwrap()).collect()
    };
    assert_eq!(makers(0), [u64::from(first.id()); 2]);
    assert!(!makers(2).contains(&u64::from(first.id())));
    outputs(&folder, "run two.toml --set run.rounds=400 --seeds 3 --out whole --quiet");
    outputs(&folder, "merge out --quiet");
    assert_eq!(numbers(&folder, "out"), numbers(&folder, "whole"));
    let (text, _) = outputs(&folder, "status out");
    assert!(text.starts_with("6 of 6 done, 0 running, 0 to go; best so far b"), "{text}");
}

#[test]
fn the_state_of_a_sweep_can_be_seen_from_outside() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --share 1/2 --out out --quiet");
    let status = fedlink(&folder, "status out --json").assert().success().get_output().stdout.clone();
    let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
    assert_eq!((&status["of"], &status["done"], &status["waiting"]), (&4.into(), &2.into(), &2.into()));
    assert_eq!(status["runs"].as_array().unwrap().iter().filter(|run| run["state"] == "done").count(), 2);
    let (text, _) = outputs(&folder, "run two.toml --quick --out out --resume --dry-run");
    assert!(
        text.contains("2 runs, 2 at a time") && text.contains("2 of 4 runs are done already in out"),
        "{text}"
    );
    let damaged = run_files(&folder, "out", "", ".json").remove(0);
    std::fs::write(&damaged, "x").unwrap();
    assert!(outputs(&folder, "status out").0.contains("is damaged"));
    // Only in part.
    let (text, _) = outputs(&folder, "run two.toml --quick --share 1/2 --out out");
    assert!(text.contains("share 1/2: 2 of 2 runs done"), "{text}");
    let (text, _) = outputs(&folder, "merge out --partial");
    assert!(text.contains("2 of 4 runs are missing: "), "{text}");
    let (_, notes) = outputs(&folder, "merge out --partial --quiet");
    assert!(notes.contains("2 of 4 runs are missing: "), "{notes}");
    assert_eq!(json(&folder.path().join("out/manifest.json"))["missing"].as_array().unwrap().len(), 2);
}
