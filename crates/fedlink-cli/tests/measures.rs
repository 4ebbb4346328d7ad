//! Measures, verdicts and refusals, as a user sees them.

mod small_data;

use assert_cmd::Command;
use serde_json::Value;
use std::fs::File;
use tempfile::TempDir;

/// Two policies on little data, with a claim and a published value.
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
rounds = 12
evaluate_every = 4
seeds = 3
[sweep]
"schedule.policy" = ["bc", "bn2"]
[expected]
"bc" = 0.99
[claims]
"bc is no oracle" = "bc final < 0.999"
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

fn output(folder: &TempDir, words: &[&str]) -> String {
    String::from_utf8(fedlink(folder, words).assert().success().get_output().stdout.clone()).unwrap()
}

fn text(folder: &TempDir, file: &str) -> String {
    std::fs::read_to_string(folder.path().join(file)).unwrap()
}

fn json(folder: &TempDir, file: &str) -> Value {
    serde_json::from_str(&text(folder, file)).unwrap()
}

/// The message of a refusal, which comes before anything runs or is written.
fn refused(folder: &TempDir, words: &[&str]) -> String {
    let output = fedlink(folder, words).assert().code(2).get_output().clone();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: ") && message.lines().count() == 1, "{message}");
    assert!(!folder.path().join("results").exists());
    message
}

#[test]
fn a_shortened_figure_is_not_judged_as_the_figure() {
    let folder = folder();
    let short = "4 of 12 rounds, 2 of 3 seeds";
    let words = ["run", "two.toml", "--set", "run.rounds=4", "--seeds", "2", "--latex", "--out", "short"];
    let said = output(&folder, &words);
    assert!(said.contains(&format!("bc is no oracle: refused ({short})")), "{said}");
    assert!(said.contains(&format!("not judged: shortened ({short})")), "{said}");
    let verified = output(&folder, &["verify", "short"]);
    assert!(verified.contains(&format!("bc is no oracle: refused ({short})")), "{verified}");
    assert!(verified.contains(&format!("not judged: shortened ({short})")), "{verified}");
    let claims = json(&folder, "short/claims.json");
    assert_eq!((&claims["shortened"]["rounds"], &claims["shortened"]["of_rounds"]), (&4.into(), &12.into()));
    assert!(claims["expected"][0]["covered"].is_null());
    assert_eq!(json(&folder, "short/summary.json")[0]["shortened"]["of_seeds"], 3);
    for file in ["results.tex", "accuracy.tex"] {
        assert!(text(&folder, &format!("short/{file}")).contains(&format!("% Shortened: {short}.")));
    }
    let report = text(&folder, "short/report.html");
    assert!(report.contains(&format!("not judged: shortened ({short})")));
    assert!(report.contains(&format!("refused ({short})")));
    assert!(said.contains(&format!(": refused (shortened: {short})")), "{said}");
    assert!(text(&folder, "short/config.toml").contains("[original]\nrounds = 12\nseeds = 3\n"));

    let whole = output(&folder, &["run", "two.toml", "--latex", "--out", "whole"]);
    assert!(whole.contains("bc is no oracle: holds\n") && !whole.contains("shortened"), "{whole}");
    assert!(whole.contains("does not hold"), "{whole}");
    assert!(!text(&folder, "whole/results.tex").contains("Shortened"));
    assert!(json(&folder, "whole/claims.json")["shortened"].is_null());
}

#[test]
fn claims_alone_are_judged_by_the_sweep_of_the_folder() {
    let folder = folder();
    let words = ["run", "two.toml", "--set", "run.rounds=2", "--seeds", "2", "--quiet", "--out", "out"];
    fedlink(&folder, &words).assert().success();
    let write = |claims: &str| std::fs::write(folder.path().join("c.toml"), claims).unwrap();
    write("[claims]\ncorrection = \"holm\"\n\"all low\" = \"final < 0.999 for every policy\"\n");
    let said = output(&folder, &["verify", "out", "--claims", "c.toml"]);
    assert!(said.contains("all low: ") && said.contains("bn2 − 0.999"), "{said}");
    write("[claims]\nx = \"bn2-c final > 0.5\"\n");
    let message = refused(&folder, &["verify", "out", "--claims", "c.toml"]);
    assert!(message.contains("no curve has schedule.policy = bn2-c"), "{message}");
    write("[run]\nrounds = 3\n");
    let message = refused(&folder, &["verify", "out", "--claims", "c.toml"]);
    assert!(message.contains("neither claims nor expected"), "{message}");
}

#[test]
fn the_target_is_a_key_and_changes_no_run() {
    let folder = folder();
    let words = ["run", "two.toml", "--set", "run.rounds=4", "--set", "run.seeds=1"];
    let run = |out: &str, more: &[&str]| output(&folder, &[&words[..], &["--out", out], more].concat());
    assert!(run("default", &[]).contains("rounds to 80 %"));
    assert!(run("low", &["--set", "run.target=0.005"]).contains("rounds to 0.5 %"));
    let (default, low) = (json(&folder, "default/summary.json"), json(&folder, "low/summary.json"));
    assert_eq!(default[0]["digest"], low[0]["digest"]);
    assert_eq!((&low[0]["target"], &low[0]["rounds_to_target"]), (&0.005.into(), &4.0.into()));
    assert!(text(&folder, "low/report.html").contains("Rounds to 0.5 %"));
    let message = refused(&folder, &["run", "two.toml", "--set", "run.target=1"]);
    assert!(message.contains("run.target: is 1, but must be > 0 and < 1"), "{message}");
}

#[test]
fn a_system_larger_than_any_memory_is_refused_before_the_first_round() {
    let folder = folder();
    let many: Vec<String> = (1..=200).map(|i| i.to_string()).collect();
    let many = format!("[{}]", many.join(","));
    let keys = ["learn.local_steps", "run.rounds", "run.evaluate_every"];
    let settings: Vec<String> = keys.iter().map(|key| format!("{key}={many}")).collect();
    let mut words = vec!["run", "two.toml"];
    settings.iter().for_each(|setting| words.extend(["--set", setting]));
    let message = refused(&folder, &words);
    assert!(
        message.contains(" combinations (")
            && message.contains("at most 10000 combinations and 1000000 runs"),
        "{message}"
    );
    for more in [&[][..], &["--dry-run"]] {
        let words = [&["run", "two.toml", "--set", "data.devices=4294967295"][..], more].concat();
        let message = refused(&folder, &words);
        assert!(message.contains("data.devices: is 4294967295, which takes at least 274.9 GB"), "{message}");
    }
    let message = refused(&folder, &["link-budget", "two.toml", "--set", "data.devices=1000000000"]);
    assert!(message.contains("data.devices: is 1000000000, which takes at least 256.0 GB"), "{message}");
    // A hole takes no disk; file systems that cannot have one have no such file either.
    let huge = folder.path().join("huge.npz");
    if File::create(&huge).and_then(|file| file.set_len(100_000_000_000_000)).is_ok() {
        let message = refused(&folder, &["run", "two.toml", "--set", "data.dataset=huge.npz"]);
        assert!(message.contains("huge.npz: is 100000000000000 bytes long"), "{message}");
    }
}

#[test]
fn long_and_similar_labels_have_plots_of_their_own() {
    let folder = folder();
    let base = FILE.split("[sweep]").next().unwrap();
    let (deep, long) = ("a/".repeat(20), "x".repeat(120));
    std::fs::create_dir_all(folder.path().join(&deep)).unwrap();
    let paths = [format!("{deep}{long}_gains"), format!("{deep}{long}/gains")];
    std::fs::create_dir_all(folder.path().join(format!("{deep}{long}"))).unwrap();
    for path in &paths {
        std::fs::write(folder.path().join(path), "1 1 1 1 1 1 1 1").unwrap();
    }
    let file = format!("{base}[sweep]\n\"radio.mean_gains\" = [\"{}\", \"{}\"]\n", paths[0], paths[1]);
    std::fs::write(folder.path().join("long.toml"), file).unwrap();
    let words = ["run", "long.toml", "--set", "run.rounds=2", "--seeds", "1", "--quiet", "--out", "out"];
    fedlink(&folder, &words).assert().success();
    let plots = std::fs::read_dir(folder.path().join("out/plots")).unwrap();
    let scheduled = plots
        .filter(|plot| plot.as_ref().unwrap().file_name().to_string_lossy().starts_with("scheduled-"))
        .count();
    assert_eq!(scheduled, 4);
}

#[test]
fn the_log_of_all_devices_has_the_transmissions_and_all_other_devices() {
    let folder = folder();
    let run = |words: &[&str]| {
        fedlink(&folder, &[&["run", "--quiet", "--seeds", "1"], words].concat()).assert().success();
    };
    run(&["--log-rounds", "two.toml", "--out", "sent"]);
    run(&["two.toml", "--out", "all", "--log-rounds", "all"]);
    let lines = |out: &str| -> Vec<String> {
        text(&folder, &format!("{out}/rounds.csv")).lines().map(str::to_owned).collect()
    };
    let (sent, all) = (lines("sent"), lines("all"));
    // Two curves of twelve rounds with eight devices, one of which is scheduled, and the header.
    assert_eq!((sent.len(), all.len()), (1 + 2 * 12, 1 + 2 * 12 * 8));
    // The decisions of the policy follow the columns of a transmission.
    let columns = sent[0].split(',').count();
    let first = |line: &String| line.split(',').take(columns).collect::<Vec<&str>>().join(",");
    let scheduled: Vec<String> =
        all.iter().filter(|line| !line.contains("not-scheduled")).map(first).collect();
    assert_eq!(scheduled, sent);
    assert!(all[0].ends_with(",score,probability,threshold,queue,order,block_gains,amplitudes"));
    assert_eq!(text(&folder, "sent/results.csv"), text(&folder, "all/results.csv"));
    // The other log is not there yet, and is made.
    run(&["two.toml", "--out", "sent", "--resume", "--log-rounds=all"]);
    assert_eq!(lines("sent"), all);
    let message =
        fedlink(&folder, &["run", "two.toml", "--log-rounds=some"]).assert().code(2).get_output().clone();
    assert!(String::from_utf8(message.stderr).unwrap().contains("possible values: sent, all"));
}

#[test]
fn claims_about_the_worst_need_fairness_to_be_recorded() {
    let folder = folder();
    let claims = "\"worst\" = \"worst-tenth > 0.001 for every policy\"\n\"used\" = \"bc jain < 1.001\"\n";
    std::fs::write(folder.path().join("two.toml"), format!("{FILE}{claims}")).unwrap();
    let message = refused(&folder, &["run", "two.toml"]);
    assert!(message.contains("worst-tenth is recorded with run.fairness = true only"), "{message}");
    let recorded = FILE.replace("[run]", "[run]\nfairness = true");
    std::fs::write(folder.path().join("two.toml"), format!("{recorded}{claims}")).unwrap();
    let said = output(&folder, &["run", "two.toml", "--out", "out"]);
    assert!(said.contains("used: holds"), "{said}");
    let header = text(&folder, "out/results.csv").lines().next().unwrap().to_owned();
    assert!(header.ends_with(
        "class_9,worst_class,worst_tenth,device_deviation,device_gini,worst_device,jain,max_age,mean_age"
    ));
    assert_eq!(
        json(&folder, "out/summary.json")[0]["runs"][0]["device_accuracy"].as_array().unwrap().len(),
        8
    );
    assert!(text(&folder, "out/report.html").contains("id=\"classes-table\""));
}

#[test]
fn epsilon_is_printed_with_its_limits() {
    let folder = folder();
    let noise = ["--set", "privacy.noise=2", "--set", "defense.clip=0.1", "--seeds", "1"];
    std::fs::write(
        folder.path().join("p.toml"),
        FILE.replace("[\"bc\", \"bn2\"]", "[\"random\", \"bn2\", \"poisson\"]")
            .split("[expected]")
            .next()
            .unwrap(),
    )
    .unwrap();
    let said =
        output(&folder, &[&["run", "p.toml", "--out", "out", "--set", "schedule.k=8"], &noise[..]].concat());
    assert!(said.contains("bn2: no privacy guarantee"), "{said}");
    assert!(said.contains("bn2: schedule.policy = \"bn2\" has devices report their norm"), "{said}");
    assert!(said.contains("random: ε = ") && said.contains("without amplification"), "{said}");
    assert!(said.contains("poisson: ε = ") && said.contains("listens to the radio"), "{said}");
    let summary = json(&folder, "out/summary.json");
    let epsilon = |i: usize| summary[i]["epsilon"].as_f64();
    assert!(epsilon(1).is_none() && epsilon(2) < epsilon(0), "{summary}");
    assert_eq!(summary[2]["runs"][0]["privacy"]["rate"], 0.5);
    assert!(text(&folder, "out/results.csv").lines().next().unwrap().ends_with(",epsilon"));
    assert!(text(&folder, "out/report.html").contains("no privacy guarantee"));
    let message = refused(&folder, &["run", "two.toml", "--set", "privacy.noise=1"]);
    assert!(message.contains("privacy.noise: is 1, which needs a norm S"), "{message}");
}

#[test]
fn a_run_that_schedules_few_devices_for_its_feedback_warns_with_the_reason() {
    let folder = folder();
    // Links each ten times worse than the one before: the first two are always the best.
    let gains: Vec<String> = (0..12).map(|m| format!("{:e}", 100.0 / 10f64.powi(m))).collect();
    std::fs::write(folder.path().join("gains.csv"), gains.join("\n")).unwrap();
    let file = FILE
        .replace("devices = 8", "devices = 12")
        .replace("symbols = 500", "symbols = 500\nfading = \"static\"\nmean_gains = \"gains.csv\"")
        .replace("rounds = 12", "rounds = 24")
        .replace("seeds = 3", "seeds = 2")
        .replace("[\"bc\", \"bn2\"]", "[\"bn2-c\"]\n\"compress.feedback\" = [\"off\", \"scheduled\"]");
    let file = format!("{}\n[schedule]\nk = 2\n", &file[..file.find("[expected]").unwrap()]);
    std::fs::write(folder.path().join("few.toml"), file).unwrap();
    let printed = output(&folder, &["run", "few.toml", "--out", "few"]);
    let why = "compress.feedback adds the unsent part to the norm that a device reports";
    let warned: Vec<&str> = printed.lines().filter(|line| line.contains(why)).collect();
    assert_eq!(warned.len(), 1, "{printed}");
    assert!(warned[0].contains("scheduled (seed 0): heard "), "{printed}");
    assert!(text(&folder, "few/report.html").contains(why));
}
