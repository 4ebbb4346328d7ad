//! Common code of the tests.

use crate::small_data;
use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Two policies at two seeds on little data; the state of devices is kept, so that checkpoints hold it.
pub const FILE: &str = r#"
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
rounds = 300
evaluate_every = 50
seeds = 2
[sweep]
"schedule.policy" = ["bc", "bn2-c"]
[quick]
"run.rounds" = 6
"run.evaluate_every" = 2
"#;

/// A folder with the experiment `two.toml`.
pub fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("two.toml"), FILE).unwrap();
    small_data::write(folder.path());
    folder
}

/// The command with these words, separated by blanks, in the folder.
pub fn fedlink(folder: &TempDir, words: &str) -> Command {
    let mut command = Command::cargo_bin("fedlink").unwrap();
    command.current_dir(folder.path()).args(words.split(' '));
    command
}

/// The command in the background, its messages to `log` in the folder.
pub fn start(folder: &TempDir, words: &str, log: &str) -> Child {
    let log = std::fs::File::create(folder.path().join(log)).unwrap();
    std::process::Command::new(assert_cmd::cargo::cargo_bin("fedlink"))
        .current_dir(folder.path())
        .args(words.split(' '))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// The text that a successful command prints to standard output and to standard error.
pub fn outputs(folder: &TempDir, words: &str) -> (String, String) {
    let output = fedlink(folder, words).assert().success().get_output().clone();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// The message of a command that ends with this code: one line.
pub fn refused(folder: &TempDir, words: &str, code: i32) -> String {
    let output = fedlink(folder, words).assert().code(code).get_output().clone();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: ") && message.lines().count() == 1, "{message}");
    message
}

pub fn json(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap()
}

/// The results that must not depend on how the runs were made: summary, table and digests.
pub fn numbers(folder: &TempDir, out: &str) -> (Value, Vec<u8>) {
    let out = folder.path().join(out);
    assert_eq!(json(&out.join("manifest.json"))["complete"], true);
    (json(&out.join("summary.json")), std::fs::read(out.join("results.csv")).unwrap())
}

/// The files of `runs/`, or of `cells/` of an earlier version, with this beginning and end.
pub fn run_files(folder: &TempDir, out: &str, start: &str, end: &str) -> Vec<PathBuf> {
    let [old, new] = ["cells", "runs"].map(|name| folder.path().join(out).join(name));
    let Ok(entries) = std::fs::read_dir(if old.is_dir() { old } else { new }) else { return Vec::new() };
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(start) && name.ends_with(end)
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(named).collect();
    found.sort();
    found
}

/// The one file of `runs/` with this beginning and end.
pub fn run_file(folder: &TempDir, out: &str, start: &str, end: &str) -> PathBuf {
    let mut found = run_files(folder, out, start, end);
    assert_eq!(found.len(), 1, "{start}…{end}: {found:?}");
    found.remove(0)
}

/// Changes the content of a stored run, and corrects its digest.
pub fn change(path: &Path, change: impl FnOnce(&str) -> String) {
    let text = std::fs::read_to_string(path).unwrap();
    let (content, _) = text.rsplit_once(",\n\"sha256\": ").unwrap();
    let changed = change(content);
    assert_ne!(changed, content);
    let seal = fedlink::record::hexadecimal(&<sha2::Sha256 as sha2::Digest>::digest(&changed));
    std::fs::write(path, format!("{changed},\n\"sha256\": \"{seal}\"\n}}\n")).unwrap();
}

/// Waits until a condition holds; a failure names it.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_mins(2), "not in two minutes: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
