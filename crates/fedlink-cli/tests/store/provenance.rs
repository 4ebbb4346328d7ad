//! Runs record the program and the data that made them, and different data never mix.

use crate::common::{FILE, change, fedlink, folder, json, outputs, refused, run_file};
use crate::small_data;
use std::path::Path;
use tempfile::TempDir;

/// Data of 40 training samples whose first number is `first`.
pub fn write_data(path: &Path, first: u8) {
    std::fs::create_dir_all(path).unwrap();
    for (name, samples) in [("train", 400), ("t10k", 60)] {
        let header = |magic: u32, sizes: &[u32]| -> Vec<u8> {
            [magic].iter().chain(sizes).flat_map(|number| number.to_be_bytes()).collect()
        };
        let mut images = header(0x803, &[samples, 4, 4]);
        images.extend((0..samples * 16).map(|i| if i == 0 { first } else { (i * 37 % 251) as u8 }));
        let mut labels = header(0x801, &[samples]);
        labels.extend((0..samples).map(|i| (i % 10) as u8));
        std::fs::write(path.join(format!("{name}-images-idx3-ubyte")), images).unwrap();
        std::fs::write(path.join(format!("{name}-labels-idx1-ubyte")), labels).unwrap();
    }
}

const MINE: &str = "run two.toml --quick --set data.dataset=./mine --out out --quiet";

#[test]
fn other_data_of_the_same_name_are_refused_by_resume_shares_and_merge() {
    let folder = folder();
    let data = folder.path().join("mine");
    write_data(&data, 1);
    outputs(&folder, &format!("{MINE} --share 1/2"));
    let facts = json(&folder.path().join("out/data.json"));
    assert_eq!(facts["./mine"]["train"], 400);
    write_data(&data, 2);
    let merge = "merge out --partial";
    for words in [format!("{MINE} --share 2/2"), format!("{MINE} --resume"), merge.into()] {
        let message = refused(&folder, &words, 2);
        assert!(message.contains("out was made with other data than those found here: ./mine"), "{message}");
        assert!(message.contains("400 training and 60 test samples, sha256 "), "{message}");
    }
    let output = fedlink(&folder, "verify out --rerun 1").assert().code(2).get_output().clone();
    assert!(String::from_utf8(output.stderr).unwrap().contains("error: out was made with other data"));
    // A run that was brought from a machine with other data is refused by its name.
    outputs(&folder, &MINE.replace("--out out", "--out other"));
    let foreign = run_file(&folder, "other", "bn2-c-k1-seed1-", ".json");
    write_data(&data, 1);
    std::fs::copy(&foreign, folder.path().join("out/runs").join(foreign.file_name().unwrap())).unwrap();
    for words in ["merge out --partial".to_owned(), format!("{MINE} --share 2/2")] {
        let message = refused(&folder, &words, 2);
        assert!(message.contains("out/runs/bn2-c-k1-seed1-") && message.contains("other data"), "{message}");
    }
}

#[test]
fn a_trace_or_a_file_of_positions_that_was_changed_is_refused_by_its_name() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("units.toml", &FILE.replace("symbols = 500", "bandwidth_hz = 1e6"));
    let positions = "0,0,50\n1,10,50\n2,20,50\n3,30,50\n4,40,50\n5,50,50\n6,60,50\n7,70,50\n";
    let track = format!("0,{}", positions.trim_end().replace('\n', "\n0,"));
    let seconds = |last: &str| format!("1 1 1 1 1 1 1 {last}");
    let gains = |last: &str| format!("1,2,3,4,5,6,7,8\n2,2,2,2,2,2,2,{last}\n");
    let cases = [
        ("radio.fading=trace --set radio.trace.file=t.csv", "t.csv", gains("1"), gains("3")),
        (
            "cell.layout=file --set cell.file.path=p.csv --set cell.pathloss=3gpp-macro",
            "p.csv",
            positions.to_owned(),
            positions.replace("70,50", "71,50"),
        ),
        (
            "radio.period_s=1 --set cell.layout=track --set cell.track.path=w.csv \
             --set cell.pathloss=3gpp-macro",
            "w.csv",
            track.clone(),
            format!("{track}\n9,7,5,50\n"),
        ),
        ("clock.compute=file --set clock.file.path=s.txt", "s.txt", seconds("1"), seconds("2")),
        ("radio.mean_gains=g.txt", "g.txt", seconds("1"), seconds("2")),
    ];
    for (number, (settings, name, before, after)) in cases.iter().enumerate() {
        let run = format!("run units.toml --quick --set {settings} --out out{number} --quiet");
        write(name, before);
        outputs(&folder, &format!("{run} --share 1/2"));
        assert!(json(&folder.path().join(format!("out{number}/data.json")))[name]["sha256"].is_string());
        write(name, after);
        for words in [format!("{run} --share 2/2"), format!("merge out{number} --partial")] {
            let message = refused(&folder, &words, 2);
            assert!(
                message.contains(&format!("other data than those found here: {name} (sha256")),
                "{message}"
            );
        }
        write(name, before);
        outputs(&folder, &format!("{run} --share 2/2"));
        outputs(&folder, &format!("merge out{number} --quiet"));
        let manifest = json(&folder.path().join(format!("out{number}/manifest.json")));
        assert!(manifest["runs"][0]["data"][name].is_string(), "{manifest}");
    }
}

#[test]
fn every_run_has_its_own_maker_and_different_ones_are_named_everywhere() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --out out --quiet --threads 1");
    let path = run_file(&folder, "out", "bc-k1-seed1-", ".json");
    let set = json(&path)["makers"][0]["instruction_set"].as_str().unwrap().to_owned();
    let before = format!("\"instruction_set\":\"{set}\"");
    change(&path, |cell| cell.replace(&before, "\"instruction_set\":\"abacus\""));
    change(&path, |cell| cell.replace("\"fedlink\":\"", "\"fedlink\":\"99."));
    let (text, _) = outputs(&folder, "merge out");
    let notes = [
        format!("different instruction sets, which may differ in the last bits: abacus (1), {set} (3)"),
        "different versions of fedlink: 0.".into(),
    ];
    let manifest = json(&folder.path().join("out/manifest.json"));
    let report = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    for (i, note) in notes.iter().enumerate() {
        assert!(text.contains(note), "{text}");
        assert!(manifest["notes"][i].as_str().unwrap().contains(note), "{manifest}");
        assert!(report.contains(note), "the report does not say so");
    }
    let sets: Vec<&str> = manifest["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["makers"][0]["instruction_set"].as_str().unwrap())
        .collect();
    assert_eq!(sets, [&set, "abacus", &set, &set]);
    let run = &manifest["runs"][0];
    assert_eq!((&run["makers"][0]["threads"], &run["makers"][0]["from_round"]), (&1.into(), &0.into()));
    for key in ["host", "started", "fedlink", "semantics", "seconds", "processor"] {
        assert!(run["makers"][0].get(key).is_some(), "{key}");
    }
    assert!(run["data"][small_data::NAME].is_string());
    assert_eq!(run["data"], json(&path)["data"]);
    // The writer is another process than the makers.
    assert_ne!(manifest["writer"]["pid"], run["makers"][0]["pid"]);
}

#[test]
fn force_replaces_the_files_that_fedlink_wrote_and_no_others() {
    let folder = folder();
    let commands = [
        "run two.toml --quick --quiet --out",
        "bound --draws 1 --rounds 20 --out",
        "run fig3 --set bound.rounds=20 --quiet --out",
        "bound plan --rounds 20 --devices 10 --k 1..=3 --tau 1..=2 --samples 2 --out",
    ];
    for (i, command) in commands.iter().enumerate() {
        let thesis = TempDir::new_in(folder.path()).unwrap();
        std::fs::write(thesis.path().join("thesis.tex"), "precious").unwrap();
        let message = refused(&folder, &format!("{command} {} --force", thesis.path().display()), 2);
        assert!(
            message.contains("holds files that fedlink did not write: thesis.tex"),
            "{command}: {message}"
        );
        assert_eq!(std::fs::read_dir(thesis.path()).unwrap().count(), 1);
        let out = format!("out{i}");
        outputs(&folder, &format!("{command} {out}"));
        let mine = folder.path().join(&out).join("mine.txt");
        std::fs::write(&mine, "precious").unwrap();
        let before = std::fs::read_dir(folder.path().join(&out)).unwrap().count();
        let message = refused(&folder, &format!("{command} {out} --force"), 2);
        assert!(message.contains("--force: ") && message.contains(": mine.txt;"), "{command}: {message}");
        assert_eq!(std::fs::read_dir(folder.path().join(&out)).unwrap().count(), before);
        std::fs::remove_file(mine).unwrap();
        outputs(&folder, &format!("{command} {out} --force"));
        assert!(
            std::fs::read_dir(folder.path()).unwrap().all(|entry| !entry
                .unwrap()
                .file_name()
                .to_string_lossy()
                .contains("replaced"))
        );
    }
}
