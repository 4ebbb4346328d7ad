//! Faults of the machine, and signals.

#![cfg(unix)]

use crate::common::{fedlink, folder, json, numbers, outputs, run_files, start, until};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap().success());
}

const LONG: &str = "run two.toml --set run.rounds=100000 --out out --threads 1";

/// A long run that is on its way.
fn begun(folder: &TempDir) -> std::process::Child {
    let child = start(folder, LONG, "log");
    until("runs are going on", || run_files(folder, "out", "", ".progress").len() == 4);
    std::thread::sleep(Duration::from_millis(100));
    child
}

#[test]
fn two_termination_signals_at_once_save_the_finished_work() {
    let folder = folder();
    for names in [["TERM", "TERM"], ["TERM", "HUP"], ["INT", "TERM"]] {
        let _ = std::fs::remove_dir_all(folder.path().join("out"));
        let mut child = begun(&folder);
        names.iter().for_each(|name| signal(child.id(), name));
        assert_eq!(child.wait().unwrap().code(), Some(130), "{names:?}");
        assert_eq!(run_files(&folder, "out", "", ".checkpoint").len(), 4, "{names:?}");
        assert!(run_files(&folder, "out", "", ".lock").is_empty());
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
        assert!(log.contains("stopped; resume with `fedlink run two.toml"), "{log}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_was_started_with_nohup_outlives_its_terminal() {
    let folder = folder();
    let program = assert_cmd::cargo::cargo_bin("fedlink");
    let mut child = Command::new("nohup")
        .arg(program)
        .args(LONG.split(' '))
        .current_dir(folder.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("runs are going on", || run_files(&folder, "out", "", ".progress").len() == 4);
    signal(child.id(), "HUP");
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it has ended");
    signal(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_run_that_was_stopped_is_not_averaged_with_runs_that_have_ended() {
    let folder = folder();
    // One run of each curve is done before; the others are stopped.
    outputs(&folder, "run two.toml --set run.rounds=3000 --seeds 1 --out out --quiet --threads 2");
    let finished = json(&folder.path().join("out/summary.json"));
    let mut child =
        start(&folder, "run two.toml --set run.rounds=3000 --seeds 4 --out out --threads 1 --resume", "log");
    until("runs are going on", || !run_files(&folder, "out", "", ".progress").is_empty());
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let stopped = json(&folder.path().join("out/summary.json"));
    for (before, after) in finished.as_array().unwrap().iter().zip(stopped.as_array().unwrap()) {
        for key in ["final_accuracy", "rounds", "digest"] {
            assert_eq!(before[key], after[key], "{key}");
        }
        assert_eq!((&before["status"], &after["status"]), (&"finished".into(), &"interrupted".into()));
    }
    let manifest = json(&folder.path().join("out/manifest.json"));
    assert_eq!((&manifest["complete"], manifest["missing"].as_array().unwrap().len()), (&false.into(), 6));
}

#[test]
fn a_folder_that_cannot_be_written_is_an_io_error_and_its_files_stay() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --share 1/2 --out out --quiet");
    let before = run_files(&folder, "out", "", ".json");
    let limited = |limit: &str, words: &str| {
        // A limit on the size of files simulates a full disk; a signal comes with it.
        let program = assert_cmd::cargo::cargo_bin("fedlink");
        let script = format!("ulimit -f {limit}; exec {} {words}", program.display());
        let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let words = "run two.toml --quick --share 2/2 --out out --quiet";
    let (code, message) = limited("1", words);
    assert_eq!(code, Some(1), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(
        message.contains("File too large") && message.contains("finished work is saved; resume with"),
        "{message}"
    );
    assert_eq!(run_files(&folder, "out", "", ".json"), before);
    assert!(run_files(&folder, "out", "", ".partial").is_empty());
    // With a longer run the checkpoint is the file that does not fit.
    let (code, message) =
        limited("32", "run two.toml --set run.rounds=50 --checkpoint-every 3 --out long --quiet");
    assert_eq!((code, message.lines().count()), (Some(1), 1), "{message}");
    assert!(message.contains(".checkpoint"), "{message}");
    outputs(&folder, words);
    outputs(&folder, "merge out --quiet");
    outputs(&folder, "run two.toml --quick --out whole --quiet");
    assert_eq!(numbers(&folder, "out"), numbers(&folder, "whole"));
}

#[test]
fn a_read_only_folder_and_one_that_vanishes_give_an_error_in_one_line() {
    let folder = folder();
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    // Permissions do not bind root; no user can create files in /proc.
    let root = std::fs::write(closed.join("x"), "").is_ok();
    let out = if root { "/proc/fedlink".to_owned() } else { "closed/out".to_owned() };
    let output = fedlink(&folder, &format!("run two.toml --quick --quiet --out {out}"))
        .assert()
        .code(1)
        .get_output()
        .clone();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: cannot ") && message.lines().count() == 1, "{message}");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();

    let mut child = start(&folder, &format!("{LONG} --quiet --checkpoint-every 50"), "log");
    until("runs are going on", || run_files(&folder, "out", "", ".checkpoint").len() == 4);
    std::fs::rename(folder.path().join("out"), folder.path().join("gone")).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let message = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(
        message.starts_with("error: out was removed or replaced while its runs were computed; ")
            && message.lines().count() == 1,
        "{message}"
    );
    assert_eq!(run_files(&folder, "gone", "", ".checkpoint").len(), 4);
}
