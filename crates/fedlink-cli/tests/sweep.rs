//! Sweeps that are killed, resumed, shared out and put together.

mod small_data;

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Two policies at two seeds on little data; the state is kept, so that checkpoints hold the devices' states.
const FILE: &str = r#"
[data]
dataset = "small.npz"
devices = 8
samples_per_device = 50
[learn]
model = "softmax"
batch = 16
[radio]
symbols = 500
[run]
rounds = 600
evaluate_every = 50
seeds = 2
[sweep]
"schedule.policy" = ["bc", "bn2-c"]
[quick]
"run.rounds" = 6
"#;

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("two.toml"), FILE).unwrap();
    small_data::write(folder.path());
    folder
}

fn fedlink(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = Command::cargo_bin("fedlink").unwrap();
    command.current_dir(folder.path()).args(words);
    command
}

fn read(path: impl AsRef<Path>) -> Vec<u8> {
    let path = path.as_ref();
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn summary(folder: &TempDir, out: &str) -> Value {
    serde_json::from_slice(&read(folder.path().join(out).join("summary.json"))).unwrap()
}

fn manifest(folder: &TempDir, out: &str) -> Value {
    serde_json::from_slice(&read(folder.path().join(out).join("manifest.json"))).unwrap()
}

/// The results that must be the same in whatever way the runs were made.
fn numbers(folder: &TempDir, out: &str) -> (Value, Vec<u8>) {
    (summary(folder, out), read(folder.path().join(out).join("results.csv")))
}

/// The message of a refusal.
fn refused(folder: &TempDir, words: &[&str]) -> String {
    let output = fedlink(folder, words).assert().code(2).get_output().clone();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: ") && message.lines().count() == 1, "{message}");
    message
}

/// The files of `runs/` with this beginning and end.
fn files(cells: &Path, start: &str, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(cells) else { return Vec::new() };
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(start) && name.ends_with(end)
    };
    entries.map(|entry| entry.unwrap().path()).filter(named).collect()
}

/// The one file of `runs/` with this beginning and end.
fn file(folder: &TempDir, out: &str, start: &str, end: &str) -> PathBuf {
    let mut found = files(&folder.path().join(out).join("runs"), start, end);
    assert_eq!(found.len(), 1, "{start}…{end}: {found:?}");
    found.remove(0)
}

/// Starts a run that saves itself often, and kills it without warning when two runs
/// have saved themselves twice.
fn killed(folder: &TempDir, words: &[&str]) {
    let start = || -> Child {
        std::process::Command::new(assert_cmd::cargo::cargo_bin("fedlink"))
            .current_dir(folder.path())
            .args(["run", "two.toml", "--checkpoint-every", "20", "--quiet"])
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut child = start();
    let waiting = Instant::now();
    let cells = folder.path().join("out/runs");
    // While a checkpoint is replaced there is only the one before.
    let saved = |run: &str| {
        [".checkpoint.previous", ".checkpoint"].iter().all(|end| !files(&cells, run, end).is_empty())
    };
    while !(saved("bc-k1-seed0-") && saved("bn2-c-k1-seed0-")) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
        assert!(waiting.elapsed() < Duration::from_mins(2), "no checkpoint in two minutes");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        !folder.path().join("out/results.csv").exists(),
        "a half-written folder must not be taken for a finished one"
    );
    assert!(!folder.path().join("out/manifest.json").exists());
}

#[test]
fn after_kill_minus_nine_a_run_continues_to_the_same_bits() {
    let folder = folder();
    let words = ["run", "two.toml", "--out", "whole", "--quiet", "--log-rounds", "--latex"];
    fedlink(&folder, &words).assert().success();
    for file in ["rounds.parquet", "results.parquet"] {
        assert!(read(folder.path().join("whole").join(file)).starts_with(b"PAR1"), "{file}");
    }
    let plot = String::from_utf8(read(folder.path().join("whole/accuracy.tex"))).unwrap();
    assert!(plot.contains("tikzpicture") && plot.contains("bn2-c"));
    assert!(String::from_utf8(read(folder.path().join("whole/results.tex"))).unwrap().contains("toprule"));
    killed(&folder, &["--out", "out", "--log-rounds"]);
    let message = refused(&folder, &["run", "two.toml", "--out", "out"]);
    assert!(message.contains("--resume"), "{message}");
    let words = ["run", "two.toml", "--out", "out", "--resume", "--quiet", "--log-rounds", "--threads", "1"];
    fedlink(&folder, &words).assert().success();
    assert_eq!(numbers(&folder, "out"), numbers(&folder, "whole"));
    let log = |out: &str| read(folder.path().join(out).join("rounds.csv"));
    assert_eq!(log("out"), log("whole"));
    // Two curves, two seeds, 600 rounds, one device a round, and the header.
    assert_eq!(String::from_utf8(log("whole")).unwrap().lines().count(), 2 * 2 * 600 + 1);
    let manifest = manifest(&folder, "out");
    assert_eq!(manifest["complete"], true);
    let resumed: Vec<u64> = manifest["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["resumed_from"].as_u64().unwrap())
        .collect();
    assert!(resumed[0] >= 40 && resumed[0].is_multiple_of(20), "{resumed:?}");
    // Once more: everything is there already.
    fedlink(&folder, &words).assert().success();
    assert_eq!(numbers(&folder, "out"), numbers(&folder, "whole"));
}

#[test]
fn a_damaged_checkpoint_falls_back_to_the_one_before_with_a_warning() {
    let folder = folder();
    fedlink(&folder, &["run", "two.toml", "--out", "whole", "--quiet"]).assert().success();
    killed(&folder, &["--out", "out"]);
    let first = file(&folder, "out", "bc-k1-seed0-", ".checkpoint");
    let mut bytes = read(first.clone());
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(first, bytes).unwrap();
    // Of the other, both are cut short: it starts over.
    for end in [".checkpoint", ".checkpoint.previous"] {
        let other = file(&folder, "out", "bn2-c-k1-seed0-", end);
        let bytes = read(other.clone());
        std::fs::write(other, &bytes[..bytes.len() / 3]).unwrap();
    }
    let output = fedlink(&folder, &["run", "two.toml", "--out", "out", "--resume"])
        .assert()
        .success()
        .get_output()
        .clone();
    let errors = String::from_utf8(output.stderr).unwrap();
    let line =
        |label: &str| errors.lines().find(|line| line.contains(label) && line.contains("damaged")).unwrap();
    assert!(line("bc seed 0").contains("-r600.checkpoint: the checkpoint is damaged"), "{errors}");
    assert!(!line("bc seed 0").contains("from round 0"), "{errors}");
    assert!(line("bn2-c seed 0").contains("continuing from round 0"), "{errors}");
    assert_eq!(numbers(&folder, "out"), numbers(&folder, "whole"));
}

#[test]
fn a_damaged_result_is_made_again() {
    let folder = folder();
    let words = ["run", "two.toml", "--quick", "--out", "out", "--resume", "--quiet"];
    fedlink(&folder, &words).assert().success();
    let before = numbers(&folder, "out");
    let cell = file(&folder, "out", "bc-k1-seed1-", ".json");
    let whole = read(cell.clone());
    std::fs::write(&cell, "nonsense").unwrap();
    let message = refused(&folder, &["merge", "out"]);
    assert!(message.contains("bc-k1-seed1-") && message.contains(".json is damaged"), "{message}");
    let output = fedlink(&folder, &words).assert().success().get_output().clone();
    assert!(String::from_utf8(output.stderr).unwrap().contains("the run is repeated"));
    assert_eq!(numbers(&folder, "out"), before);
    // One number is another.
    let changed = String::from_utf8(whole).unwrap().replacen("\"rows\": [\n[", "\"rows\": [\n[1", 1);
    std::fs::write(&cell, changed).unwrap();
    assert!(refused(&folder, &["merge", "out"]).contains(".json is damaged"));
    fedlink(&folder, &words).assert().success();
    assert_eq!(numbers(&folder, "out"), before);
}

#[test]
fn merged_shares_equal_a_single_run_of_the_sweep() {
    let folder = folder();
    fedlink(&folder, &["run", "two.toml", "--quick", "--out", "whole", "--quiet"]).assert().success();
    for share in ["2/3", "1/3"] {
        let words = ["run", "two.toml", "--quick", "--share", share, "--out", "shared"];
        let output = fedlink(&folder, &words).assert().success().get_output().stdout.clone();
        assert!(String::from_utf8(output).unwrap().contains("fedlink merge shared"));
    }
    assert!(!folder.path().join("shared/results.csv").exists());
    let message = refused(&folder, &["merge", "shared"]);
    assert!(message.contains("1 of 4 runs are missing") && message.contains("seed"), "{message}");
    fedlink(&folder, &["merge", "shared", "--partial", "--quiet"]).assert().success();
    assert_eq!(manifest(&folder, "shared")["complete"], false);
    fedlink(&folder, &["run", "two.toml", "--quick", "--share", "3/3", "--out", "shared", "--quiet"])
        .assert()
        .success();
    fedlink(&folder, &["merge", "shared", "--quiet"]).assert().success();
    assert_eq!(numbers(&folder, "shared"), numbers(&folder, "whole"));
    assert_eq!(manifest(&folder, "shared")["complete"], true);
    assert!(refused(&folder, &["merge", "."]).contains("no config.toml"));
    let inside = folder.path().join("shared");
    // A path of data begins where the command runs.
    small_data::write(&inside);
    fedlink(&folder, &["merge", ".", "--quiet"]).current_dir(&inside).assert().success();
    let report = String::from_utf8(read(inside.join("report.html"))).unwrap();
    assert!(report.contains("<h1>shared</h1>"), "the folder's name, also from inside it");
}

#[test]
fn a_folder_of_another_experiment_is_refused_by_its_differing_keys() {
    let folder = folder();
    fedlink(&folder, &["run", "two.toml", "--quick", "--out", "out", "--quiet"]).assert().success();
    let words = ["run", "two.toml", "--quick", "--out", "out", "--resume", "--set", "radio.noise=2"];
    let message = refused(&folder, &words);
    assert!(message.contains("differs in radio.noise (1.0 there, 2.0 here)"), "{message}");
    let words =
        ["run", "two.toml", "--quick", "--share", "1/2", "--out", "out", "--set", "schedule.policy=bc"];
    let message = refused(&folder, &words);
    assert!(message.contains("sweep.schedule.policy"), "{message}");
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    std::fs::write(folder.path().join("mine/precious"), "x").unwrap();
    let message = refused(&folder, &["run", "two.toml", "--quick", "--out", "mine", "--resume"]);
    assert!(message.contains("holds other files"), "{message}");
    assert_eq!(std::fs::read_dir(folder.path().join("mine")).unwrap().count(), 1);
}

#[test]
fn a_dry_run_lists_the_runs_and_makes_nothing() {
    let folder = folder();
    let output =
        fedlink(&folder, &["run", "two.toml", "--dry-run"]).assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    for word in ["bc seed 0", "bc seed 1", "bn2-c seed 1", "600", "4 runs", "MB", "about"] {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
    let output = fedlink(&folder, &["run", "two.toml", "--dry-run", "--share", "1/4", "--out", "x"]);
    let output = { output }.assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(output).unwrap().contains("1 runs"));
    // The experiment and its data.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_dry_run_needs_no_data_set_and_takes_groups_of_devices() {
    let folder = folder();
    let settings = ["data.dataset=mnist", "learn.model=softmax", "run.rounds=30", "radio.snr_db=[20, 0]"];
    let groups = ["radio.group_sizes=[10, 30]", "schedule.policy=bc"];
    let mut words = vec!["run", "demo", "--dry-run"];
    words.extend(settings.iter().chain(&groups).flat_map(|setting| ["--set", setting]));
    let output =
        fedlink(&folder, &words).env("FEDLINK_DATA", "nowhere").assert().success().get_output().clone();
    let (text, notes) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(notes.contains("data set \"mnist\" is not there; the estimate is of generated data"), "{notes}");
    assert!(text.contains("1 runs, 1 at a time"), "{text}");
    // The run itself needs it.
    words.remove(2);
    fedlink(&folder, &words).env("FEDLINK_DATA", "nowhere").assert().code(2);
}

#[test]
fn a_run_ends_with_a_verdict_on_every_claim_and_verify_repeats_it() {
    let folder = folder();
    let claims = "[expected]\n\"bc\" = 0.5\n[claims]\n\
                  \"no oracle\" = \"final < 0.9 for every policy\"\n\
                  \"near perfect\" = \"bc final > 0.99\"\n";
    let short = FILE.replace("rounds = 600\n", "rounds = 60\n").replace("seeds = 2", "seeds = 4");
    std::fs::write(folder.path().join("claims.toml"), format!("{short}{claims}")).unwrap();
    let output = fedlink(&folder, &["run", "claims.toml", "--out", "out"]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    for words in ["no oracle: holds", "near perfect: does not hold", "published", "50.00 %"] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    let written: Value = serde_json::from_slice(&read(folder.path().join("out/claims.json"))).unwrap();
    let claim = written["claims"].as_array().unwrap().iter().find(|claim| claim["name"] == "no oracle");
    let claim = claim.unwrap();
    assert_eq!((&claim["verdict"], claim["pairs"].as_array().unwrap().len()), (&"holds".into(), 2));
    let output =
        fedlink(&folder, &["verify", "out", "--json"]).assert().success().get_output().stdout.clone();
    assert_eq!(serde_json::from_slice::<Value>(&output).unwrap(), written);
    let report = String::from_utf8(read(folder.path().join("out/report.html"))).unwrap();
    assert!(report.contains("near perfect") && report.contains("does not hold"));

    std::fs::write(
        folder.path().join("other.toml"),
        format!("{FILE}[claims]\nx = \"bn2-c final > bc final\"\n"),
    )
    .unwrap();
    let words = ["verify", "out", "--claims", "other.toml"];
    let output = fedlink(&folder, &words).assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(output).unwrap().contains("bn2-c − bc:"));
    fedlink(&folder, &["run", "two.toml", "--quick", "--out", "silent", "--quiet"]).assert().success();
    assert!(refused(&folder, &["verify", "silent"]).contains("claims nothing"));
    std::fs::write(folder.path().join("bad.toml"), format!("{FILE}[claims]\nx = \"bn3 final > bc final\"\n"))
        .unwrap();
    let output = fedlink(&folder, &["run", "bad.toml"]).assert().code(2).get_output().stderr.clone();
    let message = String::from_utf8(output).unwrap();
    assert!(
        message.contains("bad.toml") && message.contains("bn3") && message.contains("bn2-c"),
        "{message}"
    );
}

#[test]
fn a_sweep_over_two_keys_has_a_column_and_plots_for_each() {
    let folder = folder();
    std::fs::write(
        folder.path().join("grid.toml"),
        FILE.replace("[quick]", "\"learn.rate\" = [0.01, 0.1]\n[quick]"),
    )
    .unwrap();
    fedlink(&folder, &["run", "grid.toml", "--quick", "--latex", "--quiet", "--out", "out"])
        .assert()
        .success();
    let out = folder.path().join("out");
    let table = read(out.join("results.csv"));
    let mut table = csv::Reader::from_reader(&table[..]);
    assert_eq!(
        table.headers().unwrap().iter().take(5).collect::<Vec<_>>(),
        ["curve", "policy", "k", "learn.rate", "seed"]
    );
    for record in table.records().map(Result::unwrap) {
        assert_eq!(record[0], format!("{} rate={}", &record[1], &record[3]));
    }
    assert_eq!(
        summary(&folder, "out")[3]["swept"],
        serde_json::json!({"schedule.policy": "bn2-c", "learn.rate": 0.1})
    );
    for panel in ["policy=bc", "policy=bn2-c", "rate=0.01", "rate=0.1"] {
        let plot = String::from_utf8(read(out.join(format!("plots/accuracy-{panel}.svg")))).unwrap();
        assert!(plot.contains(&format!("grid: {panel}")), "{panel}");
        let tex = String::from_utf8(read(out.join(format!("accuracy-{panel}.tex")))).unwrap();
        assert_eq!(tex.matches("\\addlegendentry").count(), 2, "{panel}");
    }
}

#[test]
fn resume_without_a_folder_finds_the_unfinished_one() {
    let folder = folder();
    fedlink(&folder, &["run", "two.toml", "--quick", "--quiet"]).assert().success();
    fedlink(&folder, &["run", "two.toml", "--quick", "--quiet"]).assert().success();
    let second = folder.path().join("results/two-2");
    std::fs::remove_file(second.join("manifest.json")).unwrap();
    std::fs::remove_file(file(&folder, "results/two-2", "bn2-c-k1-seed1-", ".json")).unwrap();
    fedlink(&folder, &["run", "two.toml", "--quick", "--quiet", "--resume"]).assert().success();
    assert_eq!(manifest(&folder, "results/two-2")["complete"], true);
    assert_eq!(numbers(&folder, "results/two"), numbers(&folder, "results/two-2"));
    assert!(!Path::new(&folder.path().join("results/two-3")).exists());
}

#[test]
fn bad_words_are_refused() {
    let folder = folder();
    let refused = |words: &[&str]| {
        let output = fedlink(&folder, words).assert().code(2).get_output().stderr.clone();
        String::from_utf8(output).unwrap()
    };
    assert!(refused(&["run", "two.toml", "--share", "0/4", "--out", "x"]).contains("3/10"));
    assert!(refused(&["run", "two.toml", "--share", "1/4"]).contains("--out"));
    assert!(refused(&["run", "--quick"]).contains("has no [quick] section"));
    assert!(refused(&["run", "two.toml", "--resume", "--force", "--out", "x"]).contains("--force"));
}
