//! A sweep grows: existing runs are kept.

use crate::common::{
    change, fedlink, folder, json, numbers, outputs, refused, run_file, run_files, start, until,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;
use tempfile::TempDir;

/// The time at which each finished run was written.
fn written(folder: &TempDir, out: &str) -> BTreeMap<PathBuf, SystemTime> {
    let time = |path: PathBuf| (path.clone(), path.metadata().unwrap().modified().unwrap());
    run_files(folder, out, "", ".json").into_iter().map(time).collect()
}

#[test]
fn more_seeds_policies_and_values_use_the_runs_that_are_there() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --out out --quiet");
    let before = written(&folder, "out");
    assert_eq!(before.len(), 4);
    let grown = "run two.toml --quick --seeds 3 --set schedule.policy=[\"bn2-c\",\"bc\",\"random\"] \
                 --set schedule.k=[1,2]";
    outputs(&folder, &format!("{grown} --out out --resume --quiet"));
    let after = written(&folder, "out");
    assert_eq!(after.len(), 18);
    assert!(before.iter().all(|(path, time)| after.get(path) == Some(time)), "runs were made again");
    outputs(&folder, &format!("{grown} --out whole --quiet"));
    assert_eq!(numbers(&folder, "out"), numbers(&folder, "whole"));
    let config = |out: &str| std::fs::read_to_string(folder.path().join(out).join("config.toml")).unwrap();
    assert_eq!(config("out"), config("whole"));
    // Less is another experiment.
    let message = refused(&folder, "run two.toml --quick --out out --resume", 2);
    assert!(message.contains("differs in run.seeds (3 there, 2 here)"), "{message}");
    assert!(message.contains("sweep.schedule.k"), "{message}");
}

#[test]
fn more_rounds_go_on_from_the_final_state_or_start_over_and_are_compared() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --set run.rounds=14 --out whole --quiet --log-rounds");
    let log = |out: &str| std::fs::read(folder.path().join(out).join("rounds.csv")).unwrap();
    for (out, keep) in [("kept", " --keep-state"), ("not", "")] {
        outputs(&folder, &format!("run two.toml --quick --out {out} --quiet --log-rounds{keep}"));
        assert_eq!(run_files(&folder, out, "", ".state").len(), if keep.is_empty() { 0 } else { 4 });
        let longer = "run two.toml --quick --set run.rounds=14 --resume --quiet --log-rounds --out";
        outputs(&folder, &format!("{longer} {out}"));
        assert_eq!(numbers(&folder, out), numbers(&folder, "whole"));
        assert_eq!(log(out), log("whole"));
        // The shorter runs are gone, and the makers of all rounds are known.
        assert!(
            run_files(&folder, out, "", "").iter().all(|path| path.to_string_lossy().contains("-r14.")),
            "{out}"
        );
        let run = &json(&folder.path().join(out).join("manifest.json"))["runs"][0];
        assert_eq!(run["makers"].as_array().unwrap().len(), if keep.is_empty() { 1 } else { 2 });
        assert_eq!(run["resumed_from"], if keep.is_empty() { 0 } else { 6 });
    }
}

#[test]
fn rounds_that_do_not_come_out_as_before_end_the_run_and_the_shorter_result_stays() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --out out --quiet");
    // As if another program had made it: whole, but with another digest.
    let path = run_file(&folder, "out", "bc-k1-seed1-", ".json");
    let digest = json(&path)["digest"].as_str().unwrap().to_owned();
    let other = "0".repeat(64);
    change(&path, |cell| cell.replace(&digest, &other));
    let message = refused(&folder, "run two.toml --quick --set run.rounds=8 --out out --resume --quiet", 2);
    for words in ["bc-k1-seed1-", "its 6 rounds have the digest 000000", &digest, "by fedlink "] {
        assert!(message.contains(words), "{words} is not in {message}");
    }
    assert!(path.exists());
    // The same is found by making runs again.
    outputs(&folder, "run two.toml --quick --out fresh --quiet");
    std::fs::copy(&path, run_file(&folder, "fresh", "bc-k1-seed1-", ".json")).unwrap();
    let output =
        fedlink(&folder, "verify fresh --rerun 4 --rerun-seed 1").assert().code(2).get_output().clone();
    let message = String::from_utf8(output.stderr).unwrap();
    for words in
        ["chosen by --rerun-seed 1", "bc-k1-seed1-", "NOT the same", &other, &digest, "1 of 4 runs of fresh"]
    {
        assert!(message.contains(words), "{words} is not in {message}");
    }
    assert_eq!(message.matches("the same, digest").count(), 3, "{message}");
}

#[test]
fn a_choice_of_runs_to_be_made_again_is_that_of_its_seed() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --out out --quiet");
    let chosen = |seed: u32| {
        let (_, message) = outputs(&folder, &format!("verify out --rerun 2 --rerun-seed {seed}"));
        assert!(message.contains("2 of 2 runs are the same when made again"), "{message}");
        message.lines().skip(1).take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(chosen(1), chosen(1));
    assert!((2..9).any(|seed| chosen(seed) != chosen(1)));
}

#[test]
fn claims_and_the_target_change_no_run_and_are_those_of_the_last_command() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --out out --quiet");
    let before = written(&folder, "out");
    let file = std::fs::read_to_string(folder.path().join("two.toml")).unwrap();
    let claims = format!("{file}[claims]\n\"low\" = \"final < 0.999 for every policy\"\n");
    std::fs::write(folder.path().join("claims.toml"), claims).unwrap();
    let words = "run claims.toml --quick --set run.target=0.05 --out out --resume --quiet";
    outputs(&folder, words);
    assert_eq!(written(&folder, "out"), before, "runs were made again");
    let verified = outputs(&folder, "verify out").0;
    // A claim on all rounds is not decided by six of them.
    assert!(
        verified.contains("low: refused (quick variant, 6 of 300 rounds, 2 of 2 seeds), added"),
        "{verified}"
    );
    assert_eq!(json(&folder.path().join("out/summary.json"))[0]["target"], 0.05);
}

#[test]
fn a_row_that_was_changed_is_found_by_making_the_run_again() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --out out --quiet");
    let path = run_file(&folder, "out", "bc-k1-seed1-", ".json");
    // The accuracy of the first row.
    change(&path, |cell| {
        let rows = cell.find("\"rows\": [\n[").unwrap();
        let dot = rows + cell[rows..].find("0.").unwrap() + 2;
        let other = if cell[dot..].starts_with('9') { "8" } else { "9" };
        format!("{}{other}{}", &cell[..dot], &cell[dot + 1..])
    });
    let output = fedlink(&folder, "verify out --rerun 4 --json").assert().code(2).get_output().clone();
    let printed = String::from_utf8(output.stderr).unwrap();
    let reruns: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let is_same = |run: &serde_json::Value| run["stored"] == run["repeated"];
    assert_eq!(reruns["reruns"].as_array().unwrap().iter().filter(|run| is_same(run)).count(), 3);
    assert!(printed.contains(", but another row of round 2"), "{printed}");
    assert!(printed.contains("1 of 4 runs of out are not the same when made again"), "{printed}");
}

#[test]
fn a_dry_run_counts_the_rounds_that_are_left() {
    let folder = folder();
    let run = "run two.toml --set run.rounds=100000 --seeds 1 --out out --threads 1 --checkpoint-every 20";
    let mut child = start(&folder, &format!("{run} --quiet"), "log");
    until("there are checkpoints", || run_files(&folder, "out", "", ".checkpoint").len() == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let (text, _) = outputs(&folder, &format!("{run} --resume --dry-run"));
    let row = text.lines().find(|line| line.split_whitespace().nth(1) == Some("bc")).unwrap();
    let numbers: Vec<u64> = row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // After its number, the rounds that are saved, and those that are left.
    let (saved, left) = (numbers[1], numbers[2]);
    assert!(saved >= 20 && saved.is_multiple_of(20) && saved + left == 100_000, "{row}");
    // The data that a checkpoint has seen must be known.
    std::fs::remove_file(folder.path().join("out/data.json")).unwrap();
    let message = refused(&folder, &format!("{run} --resume"), 2);
    assert!(
        message.contains("out has begun runs and no readable data.json, which names the data"),
        "{message}"
    );
}
