//! Folders that an earlier version has written are read, verified and resumed: a finished one and a half-done one.

use crate::common::{cells, json, told};
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

#[test]
fn a_finished_folder_of_an_earlier_version_is_merged_verified_and_grown() {
    let folder = copied("finished");
    let before: Vec<_> = cells(&folder, "out", "", ".json");
    assert_eq!(before.len(), 2);
    let stored = std::fs::read(folder.path().join("out/results.csv")).unwrap();
    told(&folder, "merge out --quiet");
    assert_eq!(std::fs::read(folder.path().join("out/results.csv")).unwrap(), stored);
    let (text, _) = told(&folder, "verify out");
    assert!(text.contains("it learns: undecided"), "{text}");
    // Every run is found by its configuration, nothing is made again.
    let (_, message) = told(&folder, "run out/config.toml --out out --resume --set run.seeds=2 --quiet");
    assert_eq!(message, "");
    let manifest = json(&folder.path().join("out/manifest.json"));
    let resumed: Vec<_> =
        manifest["runs"].as_array().unwrap().iter().map(|run| &run["resumed_from"]).collect();
    assert_eq!(resumed, [4, 0, 4, 0]);
}

#[test]
fn a_half_done_folder_of_an_earlier_version_is_resumed_from_its_checkpoint() {
    let folder = copied("half");
    told(&folder, "run out/config.toml --out out --resume --quiet");
    told(&folder, "run out/config.toml --out whole --quiet");
    let manifest = json(&folder.path().join("out/manifest.json"));
    let resumed: Vec<_> =
        manifest["runs"].as_array().unwrap().iter().map(|run| &run["resumed_from"]).collect();
    assert_eq!(resumed, [2, 4]);
    let rows = |out: &str| std::fs::read(folder.path().join(out).join("results.csv")).unwrap();
    // Bits are those of the instruction set of each half.
    let here = &manifest["writer"]["instruction_set"];
    let made: Vec<_> =
        manifest["runs"].as_array().unwrap().iter().map(|run| &run["makers"][0]["instruction_set"]).collect();
    if made.iter().all(|set| *set == here) {
        assert_eq!(rows("out"), rows("whole"));
    } else {
        eprintln!("the stored runs were made with {made:?}, this is {here}: bits are not compared");
    }
}
