//! `fedlink plan` as a user meets it: from a goal to a file that runs, and refused requests.

mod small_data;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

const SCENARIO: &str = r#"
[data]
dataset = "small.npz"
devices = 6
samples_per_device = 40
[learn]
model = "softmax"
state = "reset"
batch = 16
[radio]
bandwidth_hz = 1e5
uplink_s = 0.01
snr_db = [20.0, 5.0]
group_sizes = [3, 3]
[schedule]
k = 2
[run]
rounds = 16
evaluate_every = 2
"#;

/// Reached after the first evaluation, so that the costs differ by the seconds of a round only.
const EASY: &str = "seconds until loss <= 1000";

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("hall.toml"), SCENARIO).unwrap();
    small_data::write(folder.path());
    folder
}

fn fedlink(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = Command::cargo_bin("fedlink").unwrap();
    command.current_dir(folder.path()).args(words);
    command
}

const OVER: [&str; 4] = ["--over", "schedule.k=1,3", "--over", "schedule.policy=bc,bn2"];

#[test]
fn a_goal_becomes_a_file_that_runs() {
    let folder = folder();
    let goals = ["--goal", EASY, "--goal", "joules", "--budget", "8runs", "--out", "plan"];
    let words = [&["plan", "hall.toml"][..], &goals, &OVER].concat();
    let output = fedlink(&folder, &words).assert().success().get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    for head in ["recommended", "conditions", "worth", "sensitive", "devices", "not covered", "written"] {
        assert!(text.contains(head), "{head}: {text}");
    }
    let at = |name: &str| folder.path().join("plan").join(name);
    let decision: Value = serde_json::from_slice(&std::fs::read(at("decision.json")).unwrap()).unwrap();
    let best = &decision["recommended"];
    assert_eq!(best["costs"].as_array().unwrap().len(), 2);
    assert_eq!(best["costs"][0]["reached"], best["costs"][0]["of"]);
    for name in
        ["plan.html", "candidates.csv", "candidates.parquet", "flower.toml", "events.jsonl", "race.json"]
    {
        assert!(at(name).is_file(), "{name}");
    }
    let page = std::fs::read_to_string(at("plan.html")).unwrap();
    assert!(page.contains("id=\"sensitive\"") && page.contains("<svg") && !page.contains("<script"));
    // Another process with the same question makes no run anew and gives the same answer.
    let again = fedlink(&folder, &[&words[..], &["--resume", "--json"]].concat())
        .assert()
        .success()
        .get_output()
        .clone();
    let mut again: Value = serde_json::from_slice(&again.stdout).unwrap();
    again["seconds"] = decision["seconds"].clone();
    assert_eq!(again, decision);
    fedlink(&folder, &["run", "plan/best.toml", "--quiet", "--out", "best"]).assert().success();
    let summary: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("best/summary.json")).unwrap()).unwrap();
    assert!(!summary.as_array().unwrap().is_empty());
}

#[test]
fn a_dry_run_names_the_search_and_leaves_nothing() {
    let folder = folder();
    let output = fedlink(&folder, &["plan", "hall.toml", "--goal", EASY, "--dry-run", "--budget", "10min"]);
    let output = { output }.assert().success().get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("schedule.policy")
            && text.contains("radio.uplink_s")
            && text.contains("candidates race"),
        "{text}"
    );
    assert!(!folder.path().join("results").exists());
}

#[test]
fn bad_requests_are_refused_with_the_flag_to_change() {
    let folder = folder();
    let cases: [(&[&str], &str); 10] = [
        (&[], "--goal"),
        (&["--goal", "final"], "has no condition"),
        (&["--goal", "second until accuracy >= 1"], "--goal"),
        (&["--goal", EASY, "--goal", EASY, "--budget", "soon"], "--budget"),
        (&["--goal", EASY, "--over", "schedule.kk=1"], "schedule.k"),
        (&["--goal", EASY, "--over", "schedule.k=1", "--over", "schedule.k=2"], "twice"),
        (&["--goal", EASY, "--over", "schedule.policy=bcc"], "bcc"),
        (&["--goal", EASY, "--subject-to", "late"], "--subject-to"),
        (&["--goal", EASY, "--error-rate", "1"], "--error-rate"),
        (&["--goal", EASY, "--set", "schedule.policy=[\"bc\",\"bn2\"]"], "2 curves"),
    ];
    for (words, part) in cases {
        let output = fedlink(&folder, &[&["plan", "hall.toml"][..], words].concat())
            .assert()
            .code(2)
            .get_output()
            .clone();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(part), "{words:?}: {message}");
    }
}
