//! Links, pipes, devices, endless files and foreign files in and around a folder of results.

#![cfg(unix)]

use crate::common::{FILE, fedlink, folder, outputs, refused, run_file, run_files, start, until};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The exit code of a command that must end soon, and its messages.
fn ends(folder: &TempDir, words: &str) -> (i32, String) {
    let log = folder.path().join("messages");
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("fedlink"))
        .current_dir(folder.path())
        .args(words.split(' '))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            let code = status.code().unwrap_or_else(|| panic!("{words}: {status}"));
            return (code, fs::read_to_string(log).unwrap());
        }
        if started.elapsed() > Duration::from_mins(1) {
            child.kill().unwrap();
            panic!("{words} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_pipe_or_a_device_in_place_of_a_file_of_the_user_is_refused_at_once() {
    let folder = folder();
    pipe(&folder.path().join("pipe.csv"));
    symlink("/dev/zero", folder.path().join("zero.csv")).unwrap();
    let commands = [
        "run PATH",
        "run two.toml --set data.dataset=PATH",
        "run two.toml --set radio.mean_gains=PATH",
        "run two.toml --set radio.fading=trace --set radio.trace.file=PATH",
        "run units.toml --set cell.layout=file --set cell.file.path=PATH --set cell.pathloss=3gpp-macro",
        "run units.toml --set radio.period_s=1 --set cell.layout=track --set cell.track.path=PATH \
         --set cell.pathloss=3gpp-macro",
        "run units.toml --set clock.compute=file --set clock.file.path=PATH",
        "verify out --claims PATH",
        "link-budget PATH",
        "config PATH",
        "bound --rho @PATH",
    ];
    let units = FILE.replace("symbols = 500", "bandwidth_hz = 1e6");
    fs::write(folder.path().join("units.toml"), units).unwrap();
    outputs(&folder, "run two.toml --quick --out out --quiet --seeds 1");
    for path in ["./pipe.csv", "./zero.csv"] {
        for command in commands {
            let (code, message) = ends(&folder, &command.replace("PATH", path));
            assert_eq!(code, 2, "{command}: {message}");
            let words = ["not a regular file", "a data set is not a file of this kind"];
            assert!(words.iter().any(|words| message.contains(words)), "{command}: {message}");
        }
    }
}

#[test]
fn a_pipe_a_device_or_an_endless_file_in_the_folder_of_results_hangs_and_fills_nothing() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --out whole --quiet --seeds 1 --log-rounds");
    let run = run_file(&folder, "whole", "bc-", ".json");
    let stem = run.file_stem().unwrap().to_str().unwrap().to_owned();
    let endings = [
        "json",
        "checkpoint",
        "checkpoint.previous",
        "makers",
        "rounds.csv",
        "lock",
        "progress",
        "failed",
        "seals",
    ];
    let inner = endings.iter().map(|ending| format!("runs/{stem}.{ending}"));
    let outer = ["files.txt", "config.toml", "data.json", "manifest.json", ".lock"].map(str::to_owned);
    let copy = |to: &Path| {
        let _ = fs::remove_dir_all(to);
        let status = Command::new("cp").arg("-r").arg(folder.path().join("whole")).arg(to).status();
        assert!(status.unwrap().success());
    };
    for name in inner.chain(outer) {
        for kind in ["pipe", "zero", "hole"] {
            let out = folder.path().join("out");
            copy(&out);
            let path = out.join(&name);
            if [".makers", ".checkpoint", ".previous", ".seals", ".failed"]
                .iter()
                .any(|end| name.ends_with(end))
            {
                // They are read only if the run is not done.
                fs::remove_file(out.join(format!("runs/{stem}.json"))).unwrap();
            }
            let _ = fs::remove_file(&path);
            match kind {
                "pipe" => pipe(&path),
                "zero" => symlink("/dev/zero", &path).unwrap(),
                _ => fs::File::create(&path).unwrap().set_len(1 << 40).unwrap(),
            }
            for command in [
                "status out",
                "merge out --log-rounds --quiet",
                "verify out --rerun 1",
                "run two.toml --quick --out out --quiet --seeds 1 --resume --log-rounds",
                "run two.toml --quick --out out --quiet --seeds 1 --force",
            ] {
                let (code, message) = ends(&folder, command);
                assert!([0, 1, 2].contains(&code), "{name} {kind} {command}: {code} {message}");
                assert!(!message.contains("panicked"), "{name} {kind} {command}: {message}");
            }
        }
    }
}

/// A file of another user, and a function that checks that it is unchanged.
fn precious(folder: &TempDir) -> (PathBuf, impl Fn(&str) + use<>) {
    let path = folder.path().join("precious");
    fs::write(&path, "precious").unwrap();
    let check = path.clone();
    (path, move |name: &str| assert_eq!(fs::read(&check).unwrap(), b"precious", "{name}"))
}

#[test]
fn nothing_is_written_through_a_link() {
    let folder = folder();
    let resume = "run two.toml --quick --out out --seeds 1 --quiet --resume --log-rounds --keep-state";
    outputs(&folder, &resume.replace(" --resume", ""));
    let (precious, check) = precious(&folder);
    let out = folder.path().join("out");
    let run = run_file(&folder, "out", "bc-", ".json");
    let stem = run.file_stem().unwrap().to_str().unwrap().to_owned();
    let endings = [
        "json",
        "rounds.csv",
        "checkpoint",
        "checkpoint.partial",
        "json.partial",
        "state",
        "state.partial",
        "makers",
        "makers.partial",
        "seals",
        "lock",
        "progress",
        "progress.partial",
        "failed",
    ];
    let inner = endings.map(|ending| format!("runs/{stem}.{ending}"));
    let outer =
        ["files.txt", "config.toml", "data.json", "events.jsonl", ".lock", "results.csv", "report.html"]
            .map(str::to_owned);
    for name in inner.iter().chain(&outer) {
        for to in [precious.clone(), folder.path().join("nothing")] {
            // Both the run and the tables are to be made again.
            let moved = folder.path().join("moved");
            let path = out.join(name);
            let _ = fs::remove_file(&moved);
            let was_there = fs::rename(&path, &moved).is_ok();
            let cell = fs::read(&run);
            let _ = fs::remove_file(&run);
            symlink(&to, &path).unwrap();
            let (code, message) = ends(&folder, resume);
            assert!([1, 2].contains(&code), "{name}: {code} {message}");
            assert!(!message.contains("panicked"), "{name}: {message}");
            check(name);
            assert!(!folder.path().join("nothing").exists(), "{name}");
            assert!(path.is_symlink(), "{name}");
            fs::remove_file(&path).unwrap();
            if let Ok(cell) = cell {
                fs::write(&run, cell).unwrap();
            }
            if was_there {
                fs::rename(&moved, &path).unwrap();
            }
        }
    }
    outputs(&folder, resume);
    // The folder of the runs.
    fs::rename(out.join("runs"), folder.path().join("elsewhere")).unwrap();
    let before = run_files(&folder, "out", "", "").len();
    for name in ["runs", "cells"] {
        symlink(folder.path().join("elsewhere"), out.join(name)).unwrap();
        let message = refused(&folder, resume, 2);
        assert!(message.contains(&format!("did not write: {name}")), "{message}");
        fs::remove_file(out.join(name)).unwrap();
    }
    assert_eq!(before, 0);
}

#[test]
fn other_names_of_a_file_keep_their_content() {
    let folder = folder();
    let run = "run two.toml --quick --out out --seeds 1 --quiet --log-rounds";
    outputs(&folder, run);
    // A backup with hard links.
    let (out, backup) = (folder.path().join("out"), folder.path().join("backup"));
    assert!(Command::new("cp").args(["-al"]).arg(&out).arg(&backup).status().unwrap().success());
    let listed = || {
        let list = "find backup -type f | sort | xargs sha256sum";
        let output = Command::new("sh").args(["-c", list]).current_dir(folder.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let before = listed();
    for path in run_files(&folder, "out", "bc-", ".json") {
        fs::remove_file(path).unwrap();
    }
    outputs(&folder, &format!("{run} --resume --latex"));
    outputs(&folder, "run two.toml --quick --out out --seeds 3 --quiet --log-rounds --resume");
    assert_eq!(listed(), before);
}

#[test]
fn a_foreign_file_is_not_replaced_without_a_list_of_files_either() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --out out --seeds 1 --quiet");
    let out = folder.path().join("out");
    fs::remove_file(out.join("files.txt")).unwrap();
    fs::write(out.join("results.tex"), "precious").unwrap();
    for command in ["merge out --latex", "run two.toml --quick --out out --seeds 1 --resume --latex --quiet"]
    {
        let message = refused(&folder, command, 2);
        assert!(message.contains("holds files that fedlink did not write: "), "{message}");
        assert_eq!(fs::read(out.join("results.tex")).unwrap(), b"precious");
    }
}

#[test]
fn force_names_the_folder_that_it_set_aside_and_a_later_run_keeps_it() {
    let folder = folder();
    let quick = "run two.toml --quick --out out --seeds 1 --quiet";
    outputs(&folder, quick);
    let old = fs::read(folder.path().join("out/results.csv")).unwrap();
    let long = "run two.toml --set run.rounds=100000 --out out --threads 1 --seeds 1 --quiet --force";
    let mut child = start(&folder, long, "log");
    until("it has begun", || run_files(&folder, "out", "", ".progress").len() == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let aside = || {
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name.starts_with(".out.replaced-"));
        names
    };
    let left = aside();
    assert_eq!(left.len(), 1);
    // Neither a run that replaces the rest nor one that resumes removes the old results, and both name them.
    for command in [format!("{quick} --force"), format!("{quick} --resume"), "merge out --quiet".into()] {
        let (_, message) = outputs(&folder, &command);
        assert!(message.starts_with("note: ") && message.contains(&left[0]), "{command}: {message}");
        assert_eq!(aside(), left, "{command}");
        assert_eq!(fs::read(folder.path().join(&left[0]).join("results.csv")).unwrap(), old, "{command}");
    }
    // One that fails names them too.
    let limit =
        format!("ulimit -f 8; exec {} {quick} --force", assert_cmd::cargo::cargo_bin("fedlink").display());
    let output = Command::new("sh").args(["-c", &limit]).current_dir(folder.path()).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    let new = aside().into_iter().find(|name| *name != left[0]).unwrap();
    assert!(message.contains("note: the results that --force replaces are in ") && message.contains(&new));
    assert_eq!(fs::read(folder.path().join(new).join("results.csv")).unwrap(), old);
}

#[test]
fn a_dry_run_and_a_run_that_still_loads_end_at_the_first_signal() {
    let folder = folder();
    for signal in ["TERM", "INT", "HUP"] {
        let words = "run two.toml --set learn.local_steps=1000000 --dry-run";
        let mut child = start(&folder, words, "log");
        std::thread::sleep(Duration::from_millis(700));
        assert!(child.try_wait().unwrap().is_none(), "the trial is long");
        let sent = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let started = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < Duration::from_secs(20), "{signal} is ignored");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
    }
}

#[test]
fn no_text_of_a_file_or_its_name_reaches_a_terminal_as_a_command_or_at_length() {
    let folder = folder();
    let attack = "\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\u{202e}";
    outputs(&folder, "run two.toml --quick --out out --seeds 1 --quiet");
    let run = run_file(&folder, "out", "bc-", ".json");
    fs::remove_file(&run).unwrap();
    fs::write(run.with_extension("failed"), format!("{attack}\nfailed   all of it\n{}", "x".repeat(1 << 20)))
        .unwrap();
    fs::write(run.with_extension("checkpoint"), attack).unwrap();
    fs::write(folder.path().join("trace.csv"), format!("{attack},device,gain\n")).unwrap();
    fs::write(folder.path().join("long.csv"), format!("1,2\n{}\n", "x".repeat(1 << 20))).unwrap();
    fs::write(folder.path().join("gains.txt"), "y".repeat(500)).unwrap();
    let named = format!("{attack}.toml");
    fs::write(folder.path().join(&named), format!("[run]\nrounds = {attack}\n")).unwrap();
    fs::write(folder.path().join("long.toml"), format!("[run]\nrounds = \"{}\n", "x".repeat(1 << 20)))
        .unwrap();
    fs::write(folder.path().join("value.toml"), format!("[run]\nrounds = \"{}\"\n", "x".repeat(1 << 20)))
        .unwrap();
    let trace = "run two.toml --set radio.fading=trace --set radio.trace.file=";
    for words in [
        "status out".to_owned(),
        "status out --json".into(),
        "run two.toml --quick --out out --seeds 1 --resume".into(),
        format!("{trace}trace.csv"),
        format!("{trace}long.csv"),
        "run two.toml --set radio.mean_gains=gains.txt".into(),
        format!("run {named}"),
        format!("run {attack}"),
        "run long.toml".into(),
        "run value.toml".into(),
        format!("data get {attack}"),
        format!("status {attack}"),
        format!("run two.toml --set run.rounds={attack}"),
    ] {
        let output = fedlink(&folder, &words).output().unwrap();
        for bytes in [output.stdout, output.stderr] {
            let text = String::from_utf8(bytes).unwrap();
            assert!(!text.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{words}: {text:?}");
            assert!(text.len() < 20_000 && !text.contains("\nfailed   all of it"), "{words}: {}", text.len());
        }
    }
}
