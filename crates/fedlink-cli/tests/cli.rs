//! The program as a user meets it.

mod small_data;

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// Settings that make the demo end in a second: softmax regression, eight devices, six rounds.
const SMALL: &[&str] = &[
    "learn.model=softmax",
    "data.devices=8",
    "data.samples_per_device=50",
    "learn.batch=16",
    "radio.symbols=500",
    "run.rounds=6",
    "run.evaluate_every=2",
];

fn fedlink(folder: &TempDir) -> Command {
    let mut command = Command::cargo_bin("fedlink").unwrap();
    command.current_dir(folder.path());
    command
}

/// `fedlink run` with little data, the small settings and `more` words.
fn small_run(folder: &TempDir, more: &[&str]) -> Command {
    small_data::write(folder.path());
    let mut command = fedlink(folder);
    command.args(["run", "--set", &format!("data.dataset={}", small_data::NAME)]);
    for setting in SMALL {
        command.args(["--set", setting]);
    }
    command.args(more);
    command
}

fn json(command: &mut Command) -> Value {
    let output = command.arg("--json").assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

/// Runs to failure with exit code 2 and returns the message.
fn refused(command: &mut Command) -> String {
    let output = command.assert().code(2).get_output().clone();
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn an_instruction_set_can_be_forced_and_one_that_there_is_not_is_refused() {
    let folder = TempDir::new().unwrap();
    json(small_run(&folder, &["--out", "mine"]).env("FEDLINK_INSTRUCTIONS", "portable"));
    let cells = folder.path().join("mine/runs");
    let names: Vec<String> = entries(&cells)
        .into_iter()
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "json"))
        .collect();
    assert!(!names.is_empty());
    for name in names {
        let text = std::fs::read_to_string(cells.join(name)).unwrap();
        let (_, rest) = text.split_once("\"instruction_set\"").unwrap();
        assert!(rest.trim_start_matches([':', ' ']).starts_with("\"portable\""), "{text}");
    }
    let message = refused(fedlink(&folder).arg("list").env("FEDLINK_INSTRUCTIONS", "sse9"));
    let wanted = "FEDLINK_INSTRUCTIONS: sse9 is no instruction set; there are portable, avx2, avx512";
    assert_eq!(message, format!("error: {wanted}\n"));
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The names in the folder, except the data that [`small_run`] has written there.
fn made(folder: &TempDir) -> Vec<String> {
    entries(folder.path()).into_iter().filter(|name| name != small_data::NAME).collect()
}

#[test]
fn a_run_writes_its_folder_and_prints_the_same_numbers() {
    let folder = TempDir::new().unwrap();
    let summary = json(&mut small_run(&folder, &["--out", "here"]));
    let curves = summary.as_array().unwrap();
    let labels: Vec<&str> = curves.iter().map(|curve| curve["curve"].as_str().unwrap()).collect();
    assert_eq!(labels, ["bc", "bn2", "bc-bn2", "bn2-c"]);

    let here = folder.path().join("here");
    assert_eq!(made(&folder), ["here"]);
    let policies = ["bc", "bn2", "bc-bn2", "bn2-c"];
    let mut plots: Vec<String> =
        ["accuracy", "accuracy-by-bits", "accuracy-by-symbols", "bits", "loss", "q", "split", "train-loss"]
            .map(str::to_owned)
            .into();
    plots.extend(policies.iter().flat_map(|name| [format!("scheduled-{name}"), format!("power-{name}")]));
    let mut plots: Vec<String> =
        plots.iter().flat_map(|name| [format!("{name}.png"), format!("{name}.svg")]).collect();
    plots.sort();
    assert_eq!(entries(&here.join("plots")), plots);
    let expected = [
        "config.toml",
        "data.json",
        "events.jsonl",
        "files.txt",
        "manifest.json",
        "plots",
        "register.json",
        "report.html",
        "results.csv",
        "results.parquet",
        "runs",
        "split.json",
        "summary.json",
    ];
    assert_eq!(entries(&here), expected);
    let written: Value = serde_json::from_slice(&std::fs::read(here.join("summary.json")).unwrap()).unwrap();
    assert_eq!(written, summary);

    let mut reader = csv::Reader::from_path(here.join("results.csv")).unwrap();
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let column = |name: &str| header.iter().position(|known| known == name).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 4 * 3);
    for curve in curves {
        let last =
            rows.iter().rfind(|row| row[column("curve")] == *curve["curve"].as_str().unwrap()).unwrap();
        assert_eq!(&last[column("round")], "6");
        let accuracy: f64 = last[column("test_accuracy")].parse().unwrap();
        assert_eq!(Some(accuracy), curve["final_accuracy"].as_f64());
        let bits: f64 = last[column("total_bits")].parse().unwrap();
        assert!((bits / 6.0 / curve["bits_per_round"].as_f64().unwrap() - 1.0).abs() < 1e-12);
        assert!(curve["best_accuracy"].as_f64() >= curve["final_accuracy"].as_f64());
        assert_eq!(curve["digest"].as_str().unwrap().len(), 64);
    }
    assert!(std::fs::read(here.join("plots/accuracy.png")).unwrap().starts_with(b"\x89PNG"));
    let svg = std::fs::read_to_string(here.join("plots/accuracy.svg")).unwrap();
    assert!(labels.iter().all(|label| svg.contains(label)));
}

#[test]
fn the_written_configuration_repeats_the_run() {
    let folder = TempDir::new().unwrap();
    let first = json(&mut small_run(&folder, &["--out", "one"]));
    let again = json(fedlink(&folder).args(["run", "one/config.toml", "--out", "two"]));
    assert_eq!(first, again);
}

#[test]
fn digests_are_the_same_for_any_number_of_threads() {
    let folder = TempDir::new().unwrap();
    for state in ["keep", "reset"] {
        let state = format!("learn.state={state}");
        let digests = |threads: &str| -> Vec<String> {
            let out = format!("{state}-{threads}");
            let words = ["--threads", threads, "--out", &out, "--set", &state, "--set", "schedule.k=2"];
            let summary = json(&mut small_run(&folder, &words));
            summary.as_array().unwrap().iter().map(|c| c["digest"].as_str().unwrap().to_owned()).collect()
        };
        let one = digests("1");
        assert_eq!(one.len(), 4);
        assert_eq!(one, digests("2"));
    }
}

#[test]
fn a_setting_narrows_the_demo_to_one_curve() {
    let folder = TempDir::new().unwrap();
    let summary = json(&mut small_run(&folder, &["--set", "schedule.policy=bc"]));
    assert_eq!(summary.as_array().unwrap().len(), 1);
    assert_eq!(summary[0]["policy"], "bc");
    assert_eq!(entries(&folder.path().join("results")), ["demo"]);
}

#[test]
fn several_seeds_run_and_are_averaged() {
    let folder = TempDir::new().unwrap();
    let words = ["--set", "schedule.policy=bn2-c", "--seeds", "3", "--set", "run.seed=5"];
    let summary = json(&mut small_run(&folder, &words));
    let runs = summary[0]["runs"].as_array().unwrap();
    let seeds: Vec<u64> = runs.iter().map(|run| run["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [5, 6, 7]);
    let mean = runs.iter().map(|run| run["final_accuracy"].as_f64().unwrap()).sum::<f64>() / 3.0;
    assert!((summary[0]["final_accuracy"].as_f64().unwrap() - mean).abs() < 1e-15);
    // The second seed alone gives the same run.
    let alone = json(&mut small_run(&folder, &["--set", "schedule.policy=bn2-c", "--set", "run.seed=6"]));
    assert_eq!(alone[0]["digest"], runs[1]["digest"]);
}

#[test]
fn a_table_ends_a_run_and_gives_the_folder_of_the_files() {
    let folder = TempDir::new().unwrap();
    let output = small_run(&folder, &[]).assert().success().get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    for word in ["curve", "rounds to 80 %", "bits/round", "mean q", "highest power", "bn2-c", "results/demo"]
    {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
    let progress = String::from_utf8(output.stderr).unwrap();
    assert!(progress.contains("round") && progress.contains("accuracy"), "{progress}");
    assert!(!progress.contains('\u{1b}'), "not a terminal, so no control codes: {progress:?}");
    // A second run finds the next free name.
    small_run(&folder, &["--quiet"]).assert().success().stdout("").stderr("");
    assert_eq!(entries(&folder.path().join("results")), ["demo", "demo-2"]);
}

#[test]
fn an_existing_folder_is_kept_unless_force_is_given() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    std::fs::write(folder.path().join("mine/precious"), "x").unwrap();
    let message = refused(&mut small_run(&folder, &["--out", "mine"]));
    assert!(message.contains("mine exists already") && message.contains("--force"), "{message}");
    assert_eq!(entries(&folder.path().join("mine")), ["precious"]);
    // The files of others are never replaced.
    let message = refused(&mut small_run(&folder, &["--out", "mine", "--force"]));
    assert!(message.contains("did not write: precious"), "{message}");
    assert_eq!(entries(&folder.path().join("mine")), ["precious"]);
    std::fs::remove_file(folder.path().join("mine/precious")).unwrap();
    for _ in 0..2 {
        small_run(&folder, &["--out", "mine", "--force", "--quiet"]).assert().success();
        assert_eq!(made(&folder), ["mine"]);
    }
}

#[test]
fn bad_settings_name_the_key_the_range_and_the_likely_meaning() {
    let folder = TempDir::new().unwrap();
    let cases = [
        ("schedule.polcy=bc", "did you mean schedule.policy?"),
        ("schedule.k=9", "schedule.k: is 9, but must be in 1..=8"),
        ("schedule.k=0", "schedule.k: is 0, but must be in 1..=8"),
        ("schedule.kc=9", "schedule.kc: is now called schedule.bc-bn2.kc"),
        ("data.samples_per_device=0", "data.samples_per_device: is 0"),
        ("data.samples_per_device=60001", "data.samples_per_device: is 60001"),
        ("data.devices=100000", "data.iid.sharing = \"overlapping\""),
        ("radio.noise=-1", "radio.noise: is -1"),
        ("radio.noise=nan", "radio.noise: is NaN"),
        ("radio.power=inf", "radio.power: is inf"),
        ("learn.rate=nan", "learn.rate: is NaN"),
        ("learn.rate=fast", "learn.rate: is \"fast\", but must be a number"),
        ("schedule.policy=BC", "did you mean \"bc\"?"),
        ("k=5", "did you mean schedule.k?"),
        (
            "schedule.policy=best",
            "schedule.policy: is \"best\", which is not one of the policies; there are bc, bn2",
        ),
        ("run.rounds=1.5", "whole number"),
        ("data.dataset=digit", "did you mean"),
        ("schedule.k=[1, 2, 1]", "sweep.\"schedule.k\": has 1 twice; write every value once"),
        ("nonsense", "KEY=VALUE"),
    ];
    for (setting, problem) in cases {
        let message = refused(&mut small_run(&folder, &["--set", setting]));
        assert!(message.starts_with("error: ") && message.contains(problem), "{setting}: {message}");
        assert!(message.lines().count() <= 2, "{setting}: one message, not\n{message}");
    }
    assert!(made(&folder).is_empty(), "nothing half-written");
}

#[test]
fn bad_files_and_folders_are_refused_with_their_name() {
    let folder = TempDir::new().unwrap();
    let message = refused(fedlink(&folder).args(["run", "missing.toml"]));
    assert!(message.contains("cannot read missing.toml"), "{message}");
    let message = refused(fedlink(&folder).args(["run", "demos"]));
    assert!(message.contains("did you mean demo?"), "{message}");
    std::fs::write(folder.path().join("bad.toml"), "[run]\nrounds = 3\nrouds = 4\n").unwrap();
    let message = refused(fedlink(&folder).args(["run", "bad.toml"]));
    assert!(
        message.contains("bad.toml")
            && message.contains("line 3")
            && message.contains("did you mean run.rounds?"),
        "{message}"
    );
    std::fs::write(folder.path().join("file"), "").unwrap();
    let message = refused(&mut small_run(&folder, &["--out", "file/results"]));
    assert!(message.contains("cannot write to file"), "{message}");
    let message = refused(&mut small_run(&folder, &["--out", "file", "--force"]));
    assert!(message.contains("file is a file, not a folder"), "{message}");
    refused(&mut small_run(&folder, &["--threads", "0"]));
    refused(&mut small_run(&folder, &["--seeds", "0"]));
}

#[test]
fn a_curve_that_diverges_is_named_and_the_others_finish() {
    let folder = TempDir::new().unwrap();
    std::fs::write(
        folder.path().join("two.toml"),
        "[learn]\noptimizer = \"sgd\"\n[sweep]\n\"learn.rate\" = [0.05, 1e38]\n",
    )
    .unwrap();
    let mut command = fedlink(&folder);
    command.args(["run", "two.toml", "--out", "out"]);
    for setting in SMALL {
        command.args(["--set", setting]);
    }
    let output = command.assert().code(3).get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("diverged in round 1"), "{text}");
    let summary: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("out/summary.json")).unwrap()).unwrap();
    assert_eq!(summary[0]["status"], "finished");
    assert_eq!(summary[1]["status"], "diverged");
    assert!(summary[0]["final_accuracy"].as_f64().is_some());
    assert!(summary[1]["final_accuracy"].is_null());
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_the_finished_work() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let folder = TempDir::new().unwrap();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("fedlink"))
        .current_dir(folder.path())
        .args(["run", "--out", "out", "--set", "schedule.policy=bc", "--set", "learn.model=softmax"])
        .args(["--set", "run.rounds=2000", "--set", "run.evaluate_every=1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut messages = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = messages.next().unwrap().unwrap();
    assert!(first.contains("round   200/2000"), "{first}");
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let messages: Vec<String> = messages.map_while(Result::ok).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{messages:?}");
    let summary: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("out/summary.json")).unwrap()).unwrap();
    assert_eq!(summary[0]["status"], "interrupted");
    let rounds = summary[0]["runs"][0]["rounds"].as_u64().unwrap();
    assert!((200..2000).contains(&rounds) && summary[0]["runs"][0]["final_accuracy"].as_f64().is_some());
    assert_eq!(entries(folder.path()), ["out"]);
}

#[test]
fn the_printed_configuration_is_complete_and_can_be_run() {
    let folder = TempDir::new().unwrap();
    for words in [&["config"][..], &["config", "demo"]] {
        let text = fedlink(&folder).args(words).assert().success().get_output().stdout.clone();
        let text = String::from_utf8(text).unwrap();
        for key in fedlink::spec::KEYS {
            let name = key.name.split_once('.').unwrap().1;
            assert!(text.contains(&format!("{name} = ")), "{} is not in\n{text}", key.name);
        }
        std::fs::write(folder.path().join("my.toml"), &text).unwrap();
        let mut again = fedlink(&folder);
        let again = again.args(["config", "my.toml"]).assert().success().get_output().stdout.clone();
        assert_eq!(String::from_utf8(again).unwrap(), text);
    }
}

#[test]
fn a_link_budget_is_printed_without_training() {
    let folder = TempDir::new().unwrap();
    let survey = json(fedlink(&folder).args(["link-budget", "paper-cell", "--set", "learn.state=reset"]));
    assert_eq!((survey["symbols"].as_u64(), survey["rows"].as_array().unwrap().len()), (Some(5000), 1));
    let joules = |policy: usize| survey["policies"][policy]["energy"]["compute_j"].as_f64().unwrap();
    // BC trains one device, BN2 forty.
    assert!((joules(1) / joules(0) - 40.0).abs() < 1e-9);
    let words = ["link-budget", "paper-cell", "--set", "cell.layout=disc", "--out", "cell"];
    let output = fedlink(&folder).args(words).assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    for wanted in ["W = 1 MHz", "fair-share: M·P̄/K", "nearest", "farthest", "bn2-c", "joules/round"] {
        assert!(text.contains(wanted), "no {wanted} in\n{text}");
    }
    let written = entries(&folder.path().join("cell"));
    let expected = ["links.csv", "map.png", "map.svg", "link_budget.json", "snr.png", "snr.svg"];
    assert!(expected.iter().all(|name| written.iter().any(|there| there == name)), "{written:?}");
    let rows = std::fs::read_to_string(folder.path().join("cell/links.csv")).unwrap();
    assert_eq!(rows.lines().count(), 41);
}

#[test]
fn the_link_budget_of_a_radio_without_units_or_with_mistakes_is_refused_in_one_line() {
    let folder = TempDir::new().unwrap();
    let words = ["link-budget", "--set", "radio.snr_db=[20, 0]", "--set", "schedule.k=10"];
    let output = fedlink(&folder).args(words).assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    assert!(text.contains("group 2") && !text.contains("joules"), "{text}");
    for (words, wanted) in [
        (&["nowhere.toml"][..], "nowhere.toml"),
        (&["fig3"], "about the bound"),
        (&["demo", "--set", "radio.snr_db=near"], "[20, 0]"),
        (&["demo", "--set", "radio.uplink_s=1"], "radio.bandwidth_hz"),
        (&["demo", "--set", "schedule.k=41"], "schedule.k"),
    ] {
        let message = refused(fedlink(&folder).arg("link-budget").args(words));
        assert!(message.contains(wanted) && message.lines().count() == 1, "{message}");
    }
}

#[test]
fn lists_come_as_text_and_as_json() {
    let folder = TempDir::new().unwrap();
    let text = fedlink(&folder).arg("list").assert().success().get_output().stdout.clone();
    let text = String::from_utf8(text).unwrap();
    for kind in fedlink_study::presets::choices() {
        let listed = fedlink(&folder)
            .args(["list", kind.plural, "--json"])
            .assert()
            .success()
            .get_output()
            .stdout
            .clone();
        let listed: Value = serde_json::from_slice(&listed).unwrap();
        for (part, entry) in kind.all.iter().zip(listed.as_array().unwrap()) {
            assert_eq!(entry["name"], part.name);
            assert!(text.contains(part.meaning));
        }
    }
    refused(fedlink(&folder).args(["list", "policy"]));
}

#[test]
fn a_contact_sheet_of_the_embedded_data_is_an_image() {
    let folder = TempDir::new().unwrap();
    fedlink(&folder).args(["data", "preview", "digits", "--out", "digits.png"]).assert().success();
    let file = std::fs::File::open(folder.path().join("digits.png")).unwrap();
    let reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().unwrap();
    // Twenty images of 28 doubled pixels and the gaps between them, ten rows.
    assert!(reader.info().width >= 20 * 56 && reader.info().height >= 10 * 56);
}

#[test]
fn help_is_everywhere_and_has_examples() {
    let folder = TempDir::new().unwrap();
    for words in [
        &["--help"][..],
        &["run", "--help"],
        &["link-budget", "--help"],
        &["config", "--help"],
        &["list", "--help"],
        &["data", "preview", "--help"],
        &["completions", "--help"],
        &["man", "--help"],
    ] {
        let text = fedlink(&folder).args(words).assert().success().get_output().stdout.clone();
        assert!(String::from_utf8(text).unwrap().contains("Examples:"), "{words:?}");
    }
}

#[test]
fn bash_completes_commands_and_options() {
    let folder = TempDir::new().unwrap();
    let script =
        fedlink(&folder).args(["completions", "bash"]).assert().success().get_output().stdout.clone();
    std::fs::write(folder.path().join("completions"), script).unwrap();
    // As bash calls it when the tabulator is pressed after `words`.
    let complete = |words: &str| {
        let count = words.split(' ').count() - 1;
        let call = format!(
            ". ./completions; COMP_WORDS=({words}); COMP_CWORD={count}; COMP_LINE='{words}'; \
             COMP_POINT=${{#COMP_LINE}}; _fedlink fedlink \"${{COMP_WORDS[$COMP_CWORD]}}\" \
             \"${{COMP_WORDS[$COMP_CWORD-1]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let output =
            std::process::Command::new("bash").args(["-c", &call]).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete("fedlink ver"), ["verify"]);
    assert_eq!(complete("fedlink run --resu"), ["--resume"]);
    assert!(complete("fedlink list pol").contains(&"policies".to_owned()));
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script =
            fedlink(&folder).args(["completions", shell]).assert().success().get_output().stdout.clone();
        assert!(String::from_utf8(script).unwrap().contains("checkpoint-every"), "{shell}");
    }
    refused(fedlink(&folder).args(["completions", "dos"]));
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = TempDir::new().unwrap();
    fedlink(&folder).args(["man", "--out", "man1"]).assert().success();
    let page = |name: &str| std::fs::read_to_string(folder.path().join("man1").join(name)).unwrap();
    assert!(page("fedlink.1").contains("fedlink\\-run(1)"));
    assert!(page("fedlink-run.1").contains("\\-\\-checkpoint\\-every"));
    assert!(page("fedlink-data-get.1").contains(".TH fedlink-data-get 1"));
    let printed = fedlink(&folder).arg("man").assert().success().get_output().stdout.clone();
    assert_eq!(String::from_utf8(printed).unwrap(), page("fedlink.1"));
}

/// The words after `fedlink` with a standard output, or a standard error, whose reader is gone.
fn unread(words: &[&str], error_too: bool) -> std::process::Output {
    let folder = TempDir::new().unwrap();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("fedlink"));
    command.current_dir(folder.path()).args(words).env("FEDLINK_DATA", folder.path());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    if error_too {
        command.stderr(writer.try_clone().unwrap());
    } else {
        command.stderr(std::process::Stdio::piped());
    }
    command.stdout(writer).spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn a_reader_that_closes_the_pipe_ends_no_command_with_an_error() {
    let commands: &[&[&str]] = &[
        &["list"],
        &["list", "--json"],
        &["data", "list"],
        &["data", "check"],
        &["config", "fig1"],
        &["bound", "--rounds", "20"],
        &["bound", "plan", "--rounds", "20", "--json"],
        &["run", "--dry-run", "--set", "run.rounds=2"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
    ];
    for words in commands {
        let output = unread(words, false);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*printed), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn a_run_with_a_closed_error_stream_writes_its_results() {
    let results = TempDir::new().unwrap();
    let here = results.path().join("here");
    let mut words = vec!["run", "--out", here.to_str().unwrap()];
    words.extend(SMALL.iter().flat_map(|setting| ["--set", setting]));
    assert_eq!(unread(&words, true).status.code(), Some(0));
    assert!(here.join("report.html").is_file());
    // One that fails has the exit code of its error.
    assert_eq!(unread(&["status", "missing"], true).status.code(), Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_is_the_fault_of_the_machine() {
    let folder = TempDir::new().unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("fedlink"));
    let output = command.current_dir(folder.path()).arg("list").stdout(full).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.starts_with("error: cannot write to standard output: "), "{printed}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
}

#[test]
fn a_renamed_command_and_a_renamed_flag_are_refused_with_the_new_name() {
    let folder = TempDir::new().unwrap();
    for (words, message) in [
        (
            &["run", "demo", "--rounds", "3"][..],
            "error: --rounds is not an option; write --set run.rounds=3\n",
        ),
        (&["run", "demo", "--rounds=3"], "error: --rounds is not an option; write --set run.rounds=3\n"),
        (
            &["run", "demo", "--set", "run.rounds", "3"],
            "error: --set run.rounds 3: write --set run.rounds=3, as one word\n",
        ),
        (&["list", "schemes"], "error: the list \"schemes\" is now called compressors\n"),
        (&["radio", "paper-cell"], "error: radio is now called link-budget\n"),
        (&["run", "demo", "--cell", "1/2", "--out", "x"], "error: --cell is now called --share\n"),
        (&["run", "demo", "--cell=1/2", "--out", "x"], "error: --cell is now called --share\n"),
    ] {
        assert_eq!(refused(fedlink(&folder).args(words)), message);
    }
    // As a value, the old word is no flag.
    assert!(refused(fedlink(&folder).args(["config", "radio"])).contains("radio is neither a preset"));
}
