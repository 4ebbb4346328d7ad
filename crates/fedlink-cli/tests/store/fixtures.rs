//! Folders that an earlier version has written are read, verified and resumed: a finished one and a half-done
//! one.

use crate::common::{json, outputs, run_files};
use std::path::Path;
use tempfile::TempDir;

/// Copies a stored folder.
fn copied(name: &str) -> TempDir {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/folders").join(name);
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    std::fs::create_dir_all(out.join("cells")).unwrap();
    for part in ["", "cells"] {
        for entry in std::fs::read_dir(source.join(part)).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                std::fs::copy(entry.path(), out.join(part).join(entry.file_name())).unwrap();
            }
        }
    }
    folder
}

/// Whether the stored runs were made with the instruction set of this machine, which bits depend on; printed
/// if not.
fn is_made_here(folder: &TempDir) -> bool {
    let manifest = json(&folder.path().join("out/manifest.json"));
    let here = &manifest["writer"]["instruction_set"];
    let runs = manifest["runs"].as_array().unwrap();
    let made: Vec<_> = runs.iter().map(|run| &run["makers"][0]["instruction_set"]).collect();
    let same = made.iter().all(|set| *set == here);
    if !same {
        eprintln!("the stored runs were made with {made:?}, this is {here}: bits are not compared");
    }
    same
}

#[test]
fn a_finished_folder_of_an_earlier_version_is_merged_verified_and_grown() {
    let folder = copied("finished");
    let before: Vec<_> = run_files(&folder, "out", "", ".json");
    assert_eq!(before.len(), 2);
    let stored = std::fs::read(folder.path().join("out/results.csv")).unwrap();
    outputs(&folder, "merge out --quiet");
    assert_eq!(std::fs::read(folder.path().join("out/results.csv")).unwrap(), stored);
    let (text, _) = outputs(&folder, "verify out");
    // Its runs of a few rounds never left chance level.
    assert!(text.contains("it learns: refused") && text.contains("at chance level"), "{text}");
    if is_made_here(&folder) {
        let (_, text) = outputs(&folder, "verify out --rerun 2");
        assert!(text.contains("2 of 2 runs are the same when made again"), "{text}");
    }
    // Every run is found by its configuration, nothing is made again.
    let (_, message) = outputs(&folder, "run out/config.toml --out out --resume --set run.seeds=2 --quiet");
    assert_eq!(message, "");
    let manifest = json(&folder.path().join("out/manifest.json"));
    let resumed: Vec<_> =
        manifest["runs"].as_array().unwrap().iter().map(|run| &run["resumed_from"]).collect();
    assert_eq!(resumed, [4, 0, 4, 0]);
    // The folder keeps its layout.
    assert_eq!(run_files(&folder, "out", "", ".json").len(), 4);
    assert!(folder.path().join("out/cells").is_dir() && !folder.path().join("out/runs").exists());
}

#[test]
fn a_half_done_folder_of_an_earlier_version_is_resumed_from_its_checkpoint() {
    let folder = copied("half");
    outputs(&folder, "run out/config.toml --out out --resume --quiet");
    outputs(&folder, "run out/config.toml --out whole --quiet");
    let manifest = json(&folder.path().join("out/manifest.json"));
    let resumed: Vec<_> =
        manifest["runs"].as_array().unwrap().iter().map(|run| &run["resumed_from"]).collect();
    assert_eq!(resumed, [2, 4]);
    let rows = |out: &str| std::fs::read(folder.path().join(out).join("results.csv")).unwrap();
    if is_made_here(&folder) {
        assert_eq!(rows("out"), rows("whole"));
    }
}

/// Written by 0.2.0: the checkpoint holds state of the policy, of the server's optimizer, of the devices'
/// optimizers and of error feedback, and there is a log of rounds beside it.
#[test]
fn parts_that_keep_state_resume_from_a_checkpoint_of_an_earlier_version() {
    let folder = copied("stateful");
    outputs(&folder, "run out/config.toml --out out --resume --quiet --log-rounds");
    let manifest = json(&folder.path().join("out/manifest.json"));
    assert_eq!(manifest["runs"][0]["resumed_from"], 20);
    // 0.2.0 sealed no log, so that the lines of its rounds are not vouched for.
    assert!(
        manifest["notes"].to_string().contains("logs of rounds that are not sealed: 1 of 1"),
        "{manifest}"
    );
    if is_made_here(&folder) {
        let digest = "b0967206a520a8ac85202844023709eec70912c43e4fa00267f00b806b85f327";
        assert_eq!(manifest["runs"][0]["digest"], digest);
    }
}
