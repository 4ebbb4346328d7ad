//! Stored results are verified: edited runs and logs are found, and repaired by `--resume`.

use crate::common::{
    change, fedlink, folder, json, numbers, outputs, refused, run_file, run_files, start, until,
};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// The text with the value of a field of the outcome replaced.
fn with_field(cell: &str, name: &str, value: &str) -> String {
    let outcome = cell.find("\"outcome\": {").unwrap();
    let key = format!("\"{name}\":");
    let start = outcome + cell[outcome..].find(&key).unwrap() + key.len();
    let bytes = cell.as_bytes();
    let mut depth = 0;
    let end = (start..cell.len()).find(|&i| {
        depth += i32::from(b"[{".contains(&bytes[i])) - i32::from(b"]}".contains(&bytes[i]));
        depth < 0 || (depth == 0 && bytes[i] == b',')
    });
    format!("{}{value}{}", &cell[..start], &cell[end.unwrap()..])
}

#[test]
fn an_edit_of_anything_that_tables_and_claims_are_made_of_is_found_by_making_the_run_again() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --out out --quiet --seeds 1");
    let path = run_file(&folder, "out", "bc-k1-seed0-", ".json");
    let whole = fs::read_to_string(&path).unwrap();
    let same = outputs(&folder, "verify out --rerun 2").1;
    assert!(same.contains("2 of 2 runs are the same when made again"), "{same}");
    let field = |name: &'static str, value: &'static str| {
        let part = format!("outcome.{name}");
        (part, Box::new(move |cell: &str| with_field(cell, name, value)) as Box<dyn Fn(&str) -> String>)
    };
    let text = |part: &str, old: &'static str, new: &'static str| {
        let edit = move |cell: &str| cell.replacen(old, new, 1);
        (part.to_owned(), Box::new(edit) as Box<dyn Fn(&str) -> String>)
    };
    let edits = [
        field("final_accuracy", "0.989"),
        field("best_accuracy", "null"),
        field("final_loss", "0.001"),
        field("scheduled", "[1,1,1,1,1,1,0,0]"),
        field("average_power", "[1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0]"),
        field("worst_average_power", "0.5"),
        field("excluded", "[2]"),
        field("warnings", "[\"none\"]"),
        field("bits_per_round", "1.0"),
        field("rounds", "7"),
        text("status", "\"status\": \"finished\"", "\"status\": \"diverged\""),
        text("outcome.mean_q", "\"mean_q\":", "\"mean_q_of_old\":"),
        text("data", "\"data\": {", "\"data\": {\"other\":\"00\","),
    ];
    for (part, edit) in &edits {
        fs::write(&path, &whole).unwrap();
        change(&path, edit);
        let output = fedlink(&folder, "verify out --rerun 2 --json").assert().code(2).get_output().clone();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(printed.contains(part) && printed.contains("NOT the same"), "{part}: {printed}");
        assert!(printed.contains("1 of 2 runs of out are not the same"), "{part}: {printed}");
    }
    // The fields that name another run are no numbers of this one.
    for (old, new) in [("\"seed\": 0", "\"seed\": 1"), ("\"rounds\": 6", "\"rounds\": 7")] {
        fs::write(&path, &whole).unwrap();
        change(&path, |cell| cell.replacen(old, new, 1));
        let message = refused(&folder, "merge out", 2);
        assert!(message.contains("belongs to a run with another configuration"), "{message}");
    }
    // The digest of the top is that of the outcome.
    fs::write(&path, &whole).unwrap();
    change(&path, |cell| cell.replacen("\"digest\": \"", "\"digest\": \"0", 1));
    assert!(refused(&folder, "merge out", 2).contains("is damaged"));
}

/// Runs with logs; returns the table of rounds and the logs.
fn logged(folder: &TempDir) -> (Vec<u8>, Vec<std::path::PathBuf>) {
    outputs(folder, "run two.toml --quick --out out --quiet --log-rounds");
    (fs::read(folder.path().join("out/rounds.csv")).unwrap(), run_files(folder, "out", "", ".rounds.csv"))
}

#[test]
fn a_log_of_rounds_that_was_changed_is_found_and_repaired() {
    let folder = folder();
    let (table, logs) = logged(&folder);
    let (log, other) = (&logs[0], fs::read(&logs[1]).unwrap());
    let whole = fs::read(log).unwrap();
    let without_a_line = || whole.splitn(2, |byte| *byte == b'\n').nth(1).unwrap().to_vec();
    let edited = || {
        let mut bytes = whole.clone();
        let digit = bytes.iter().rposition(|byte| (b'1'..=b'8').contains(byte)).unwrap();
        bytes[digit] += 1;
        bytes
    };
    let random: Vec<u8> = (0..3000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (name, bytes) in [
        ("empty", Vec::new()),
        ("a line less", without_a_line()),
        ("a line more", [&whole[..], &whole[..whole.len() / 2]].concat()),
        ("an edited number", edited()),
        ("the log of another run", other),
        ("random", random),
    ] {
        fs::write(log, bytes).unwrap();
        let message = refused(&folder, "merge out --log-rounds", 2);
        assert!(message.contains("is not the log of its run: "), "{name}: {message}");
        assert!(message.contains("with --resume and --log-rounds makes it again"), "{name}: {message}");
        let again = fedlink(&folder, "verify out --rerun 4").assert().code(2).get_output().clone();
        let again = String::from_utf8(again.stderr).unwrap();
        assert!(again.contains("another log bc-k1-seed0-"), "{name}: {again}");
        let (_, text) = outputs(&folder, "run two.toml --quick --out out --resume --log-rounds --quiet");
        assert!(text.contains("is not the log of its run"), "{name}: {text}");
        assert_eq!(fs::read(log).unwrap(), whole, "{name}");
        outputs(&folder, "merge out --log-rounds --quiet");
        assert_eq!(fs::read(folder.path().join("out/rounds.csv")).unwrap(), table, "{name}");
    }
}

#[test]
fn a_log_without_a_seal_is_called_so_and_compared_when_the_run_is_made_again() {
    let folder = folder();
    let (table, logs) = logged(&folder);
    for path in run_files(&folder, "out", "", ".json") {
        // As in folders of 0.2.
        change(&path, |cell| {
            let start = cell.find("\"logs\": ").unwrap();
            let end = start + cell[start..].find('\n').unwrap() + 1;
            format!("{}{}", &cell[..start], &cell[end..])
        });
    }
    let (text, _) = outputs(&folder, "merge out --log-rounds");
    assert!(text.contains("logs of rounds that are not sealed: 4 of 4"), "{text}");
    let notes = json(&folder.path().join("out/manifest.json"))["notes"].to_string();
    assert!(notes.contains("logs of rounds that are not sealed: 4 of 4"), "{notes}");
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("logs of rounds that are not sealed: 4 of 4"));
    assert_eq!(fs::read(folder.path().join("out/rounds.csv")).unwrap(), table);
    let mut bytes = fs::read(&logs[0]).unwrap();
    let digit = bytes.iter().rposition(|byte| (b'1'..=b'8').contains(byte)).unwrap();
    bytes[digit] += 1;
    fs::write(&logs[0], bytes).unwrap();
    let again = fedlink(&folder, "verify out --rerun 4").assert().code(2).get_output().clone();
    assert!(String::from_utf8(again.stderr).unwrap().contains("another log bc-k1-seed0-"));
}

#[test]
fn a_log_that_was_changed_between_two_processes_is_not_resumed() {
    let folder = folder();
    let run = "run two.toml --set run.rounds=4000 --seeds 1 --out out --threads 1 --checkpoint-every 20 \
               --log-rounds --quiet";
    let mut child = start(&folder, run, "log");
    until("there are checkpoints", || run_files(&folder, "out", "", ".checkpoint").len() == 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let log = run_file(&folder, "out", "bc-", ".rounds.csv");
    let mut bytes = fs::read(&log).unwrap();
    let digit = bytes.iter().position(|byte| (b'2'..=b'8').contains(byte)).unwrap();
    bytes[digit] += 1;
    fs::write(&log, bytes).unwrap();
    let (_, text) = outputs(&folder, &format!("{run} --resume"));
    assert!(text.contains("bc: its log of rounds has gaps or was changed; starting over"), "{text}");
    assert!(!text.contains("bn2-c"), "{text}");
    let (_, text) = outputs(&folder, "verify out --rerun 2");
    assert!(text.contains("2 of 2 runs are the same"), "{text}");
}

#[test]
fn damaged_data_json_is_made_again_from_the_runs_unless_a_checkpoint_depends_on_it() {
    let folder = folder();
    outputs(&folder, "run two.toml --quick --out out --quiet");
    let (path, before) = (folder.path().join("out/data.json"), numbers(&folder, "out"));
    let whole = fs::read(&path).unwrap();
    for bytes in [&b""[..], b"\0\xff", b"[]", &whole[..whole.len() / 2]] {
        fs::write(&path, bytes).unwrap();
        for command in ["merge out", "verify out --rerun 1"] {
            let message = refused(&folder, command, 2);
            assert!(message.contains("data.json is damaged; `fedlink run` with --resume makes it again"));
        }
        outputs(&folder, "run two.toml --quick --out out --resume --quiet");
        assert_eq!(fs::read(&path).unwrap(), whole);
        assert_eq!(numbers(&folder, "out"), before);
    }
    // Other data are rejected, by the records of the runs.
    let mine = "run two.toml --quick --set data.dataset=./mine --seeds 1 --out mine-out --quiet";
    crate::provenance::write_data(&folder.path().join("mine"), 1);
    outputs(&folder, mine);
    fs::write(folder.path().join("mine-out/data.json"), "damaged").unwrap();
    crate::provenance::write_data(&folder.path().join("mine"), 2);
    let message = refused(&folder, &format!("{mine} --resume"), 2);
    assert!(message.contains("was made with other data"), "{message}");
    fs::write(&path, "damaged").unwrap();
    // A checkpoint has no record of its data.
    let run = run_file(&folder, "out", "bc-k1-seed0-", ".json");
    fs::remove_file(&run).unwrap();
    let checkpoint = run.with_extension("checkpoint");
    fs::write(&checkpoint, "x").unwrap();
    let message = refused(&folder, "run two.toml --quick --out out --resume", 2);
    assert!(message.contains("no readable data.json") && message.contains("remove the files"), "{message}");
    fs::remove_file(checkpoint).unwrap();
    outputs(&folder, "run two.toml --quick --out out --resume --quiet");
    assert_eq!(numbers(&folder, "out"), before);
    // An empty experiment is none.
    fs::write(folder.path().join("out/config.toml"), "\n").unwrap();
    assert!(
        refused(&folder, "status out", 2).contains("config.toml is damaged; `fedlink run` with --resume")
    );
    outputs(&folder, "run two.toml --quick --out out --resume --quiet");
    assert_eq!(numbers(&folder, "out"), before);
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_swapped_for_another_one_gets_no_file_of_the_run() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    outputs(&folder, "run two.toml --quick --out other --quiet --seeds 1");
    let files = |path: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(path.join("runs")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = files(&at("other"));
    let run = "run two.toml --set run.rounds=100000 --out out --threads 1 --checkpoint-every 50 --quiet";
    let mut child = start(&folder, run, "log");
    until("runs are going on", || run_files(&folder, "out", "", ".checkpoint").len() == 4);
    fs::rename(at("out"), at("mine")).unwrap();
    fs::rename(at("other"), at("out")).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let message = fs::read_to_string(at("log")).unwrap();
    assert!(message.starts_with("error: out was removed or replaced while its runs"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert_eq!(files(&at("out")), before);
}

#[test]
fn a_text_that_begins_as_a_formula_is_no_formula_in_the_tables() {
    let folder = folder();
    fs::copy(folder.path().join("small.npz"), folder.path().join("=small.npz")).unwrap();
    let text = crate::common::FILE
        .replace("dataset = \"small.npz\"\n", "")
        .replace("\"schedule.policy\" =", "\"data.dataset\" = [\"=small.npz\"]\n\"schedule.policy\" =");
    fs::write(folder.path().join("two.toml"), text).unwrap();
    outputs(&folder, "run two.toml --quick --out out --quiet --log-rounds");
    for name in ["results.csv", "rounds.csv"] {
        let table = fs::read_to_string(folder.path().join("out").join(name)).unwrap();
        assert!(table.contains(",'=small.npz,"), "{table}");
        let mut fields = table.lines().flat_map(|line| line.split(','));
        assert!(!fields.any(|field| field.starts_with(['=', '+', '@'])), "{name}");
    }
}
