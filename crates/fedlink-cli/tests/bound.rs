//! The bound as a user meets it: `fedlink bound`, `fedlink plan`, `fedlink run fig3`.

use assert_cmd::Command;
use fedlink::theory::bound::{Bound, BoundParameters};
use fedlink::theory::rate::Rate;
use fedlink::theory::rho::{Link, LinkParameters};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

fn fedlink(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = Command::cargo_bin("fedlink").unwrap();
    command.current_dir(folder.path()).args(words);
    command
}

fn text(folder: &TempDir, words: &[&str]) -> String {
    String::from_utf8(fedlink(folder, words).assert().success().get_output().stdout.clone()).unwrap()
}

fn json(folder: &TempDir, words: &[&str]) -> Value {
    serde_json::from_str(&text(folder, &[words, &["--json"]].concat())).unwrap()
}

/// `value` written as JSON and read by the same reader, which may miss the last bit of a float.
fn read_back(value: &impl serde::Serialize) -> Value {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

/// Runs to failure with exit code 2 and returns the message.
fn refused(folder: &TempDir, words: &[&str]) -> String {
    let output = fedlink(folder, words).assert().code(2).get_output().clone();
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn finals(json: &Value) -> Vec<f64> {
    json["curves"].as_array().unwrap().iter().map(|curve| curve["final"]["mean"].as_f64().unwrap()).collect()
}

#[test]
fn the_defaults_are_the_paper_s_figure_3_and_agree_with_an_independent_computation() {
    // (L/2)·E‖·‖² after 1000 rounds, from another program with another channel draw: within a few percent.
    let folder = TempDir::new().unwrap();
    for (words, expected) in [
        (&["bound"][..], [498.0, 414.0, 411.0, 468.0, 587.0, 711.0]),
        (&["bound", "--gamma", "1", "--g", "1"], [8.36, 7.54, 7.69, 48.7, 196.0, 377.0]),
    ] {
        for (ours, theirs) in finals(&json(&folder, words)).into_iter().zip(expected) {
            assert!((ours / theirs - 1.0).abs() < 0.03, "{ours} against {theirs}");
        }
    }
}

#[test]
fn every_number_is_the_library_s() {
    let folder = TempDir::new().unwrap();
    let words = [
        "bound",
        "--k",
        "2,7",
        "--tau",
        "1,4",
        "--gamma",
        "3",
        "--g",
        "2",
        "--mu",
        "0.5",
        "--l",
        "6",
        "--d0",
        "80",
        "--devices",
        "30",
        "--symbols",
        "2e4",
        "--dim",
        "5e3",
        "--power",
        "2",
        "--noise",
        "0.5",
        "--rounds",
        "120",
        "--eta",
        "0.4*50/(t+50)",
        "--channels",
        "uniform",
        "--seed",
        "9",
    ];
    let json = json(&folder, &words);
    let curves = json["curves"].as_array().unwrap();
    let labels: Vec<&str> = curves.iter().map(|curve| curve["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["K=2 τ=1", "K=2 τ=4", "K=7 τ=1", "K=7 τ=4"]);
    let link = Link::new(LinkParameters {
        devices: 30,
        dim: 5000,
        symbols: 20_000,
        power: 2.0,
        noise: 0.5,
        choice: fedlink::theory::rho::Choice::Uniform,
        ..Default::default()
    })
    .unwrap();
    let rate: Rate = "0.4*50/(t+50)".parse().unwrap();
    for (curve, (k, tau)) in curves.iter().zip([(2, 1), (2, 4), (7, 1), (7, 4)]) {
        let bound = Bound::new(BoundParameters {
            devices: 30,
            k,
            tau,
            mu: 0.5,
            l: 6.0,
            g: 2.0,
            gamma: 3.0,
            distance0: 80.0,
        })
        .unwrap();
        let exact = bound.curve(&bound.rates(&rate, 120).unwrap(), &link.rhos(k, 120, 9).unwrap()).unwrap();
        assert_eq!(curve["losses"], read_back(&exact.losses()));
        assert_eq!(curve["floor"], read_back(&bound.floor()));
        assert_eq!(curve["near_floor"], read_back(&exact.first_near(bound.floor(), 0.1)));
        assert_eq!(curve["shares"], read_back(&exact.parts.shares()));
        assert!(curve["final"]["half_width"].is_null(), "one draw has no interval");
    }
}

#[test]
fn draws_come_with_an_interval_and_the_expectation_lies_near_their_mean() {
    let folder = TempDir::new().unwrap();
    let few =
        ["bound", "--k", "1,5", "--devices", "20", "--dim", "1e4", "--symbols", "5e3", "--rounds", "50"];
    let draws = json(&folder, &[&few[..], &["--draws", "30"]].concat());
    let mean = json(&folder, &[&few[..], &["--expectation"]].concat());
    for (draw, mean) in draws["curves"].as_array().unwrap().iter().zip(mean["curves"].as_array().unwrap()) {
        let width = draw["final"]["half_width"].as_f64().unwrap();
        let apart = draw["final"]["mean"].as_f64().unwrap() - mean["final"]["mean"].as_f64().unwrap();
        assert!(width > 0.0 && apart.abs() < 3.0 * width, "{apart} {width}");
        assert_eq!(draw["half_widths"].as_array().unwrap().len(), 51);
    }
}

#[test]
fn a_rate_may_be_a_number_a_name_an_expression_or_a_table() {
    let folder = TempDir::new().unwrap();
    let table: Vec<String> =
        (0..20).map(|t| format!("{:?}", 1000.0 / (3.0 * (f64::from(t) + 1000.0)))).collect();
    std::fs::write(folder.path().join("rates.txt"), table.join("\n")).unwrap();
    let run = |eta: &str| finals(&json(&folder, &["bound", "--k", "3", "--rounds", "20", "--eta", eta]))[0];
    let named = run("inverse-time");
    for eta in ["@rates.txt", "rates.txt", "1000/(3*(t+1000))", "inverse-time:3"] {
        assert!((run(eta) / named - 1.0).abs() < 1e-12, "{eta}");
    }
    assert!(run("0.1") > named);
}

#[test]
fn the_folder_holds_figure_table_and_json() {
    let folder = TempDir::new().unwrap();
    let words = ["bound", "--k", "1,5", "--rounds", "30", "--out", "here"];
    let printed = text(&folder, &words);
    assert!(printed.contains("heterogeneity") && printed.contains("K=5"), "{printed}");
    let here = folder.path().join("here");
    assert_eq!(entries(&here), ["bound.csv", "bound.json", "bound.png", "bound.svg"]);
    let written: Value = serde_json::from_slice(&std::fs::read(here.join("bound.json")).unwrap()).unwrap();
    let mut reader = csv::Reader::from_path(here.join("bound.csv")).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2 * 31);
    let last: f64 = rows[61][5].parse().unwrap();
    assert_eq!(last, finals(&written)[1]);
    assert!(refused(&folder, &words).contains("--force"));
    fedlink(&folder, &[&words[..], &["--force"]].concat()).assert().success();
}

#[test]
fn the_paper_s_figures_run_from_anywhere_and_leave_complete_folders() {
    let folder = TempDir::new().unwrap();
    for (name, curves) in [("fig3", 6), ("fig4", 7)] {
        let words = ["run", name, "--seeds", "3", "--out", name];
        let summary = json(&folder, &words);
        let here = folder.path().join(name);
        let files = [
            "claims.csv",
            "config.toml",
            "even.png",
            "even.svg",
            "results.csv",
            "summary.json",
            "uneven.png",
            "uneven.svg",
        ];
        assert_eq!(entries(&here), files);
        let panels = summary["panels"].as_array().unwrap();
        assert_eq!(panels.len(), 2);
        assert!(panels.iter().all(|panel| panel["curves"].as_array().unwrap().len() == curves));
        let claims = summary["claims"].as_array().unwrap();
        assert!(claims.len() >= 9 && claims.iter().all(|claim| claim["verdict"].is_string()));
        let rows = csv::Reader::from_path(here.join("results.csv")).unwrap().into_records().count();
        assert_eq!(rows, 2 * curves * 1001);
        assert!(std::fs::read_to_string(here.join("uneven.svg")).unwrap().contains("Γ = 10"));
        // The folder's file repeats the run.
        let again =
            json(&folder, &["run", &format!("{name}/config.toml"), "--out", &format!("{name}-again")]);
        assert_eq!(again, summary);
    }
    let verdict = |name: &str, says: &str| -> String {
        let file = std::fs::read(folder.path().join(name).join("summary.json")).unwrap();
        let summary: Value = serde_json::from_slice(&file).unwrap();
        let claims = summary["claims"].as_array().unwrap();
        let claim = claims.iter().find(|claim| claim["says"] == says).unwrap_or_else(|| panic!("{says}"));
        claim["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict("fig3", "K = 5 ends below K = 3"), "holds");
    assert_eq!(verdict("fig3", "K = 1 gives the best performance at the end"), "does-not-hold");
    assert_eq!(verdict("fig4", "τ = 15 and τ = 20 end above τ = 5"), "holds");
    assert!(text(&folder, &["config", "fig3"]).starts_with("# The paper's figure 3"));
}

#[test]
fn the_theorem_runs_and_marks_what_is_outside_it() {
    let folder = TempDir::new().unwrap();
    let words = ["run", "theorem", "--seeds", "4", "--set", "theorem.rounds=10", "--out", "here"];
    let printed = text(&folder, &words);
    assert!(printed.contains("no promise is made here") && printed.contains("never"), "{printed}");
    let files = [
        "config.toml",
        "quadratic.png",
        "quadratic.svg",
        "results.csv",
        "softmax.png",
        "softmax.svg",
        "summary.json",
    ];
    assert_eq!(entries(&folder.path().join("here")), files);
    let svg = std::fs::read_to_string(folder.path().join("here/quadratic.svg")).unwrap();
    assert!(svg.contains("outside the theorem"));
}

#[test]
fn a_plan_names_the_best_point_of_its_own_table() {
    let folder = TempDir::new().unwrap();
    let words = [
        "plan",
        "--devices",
        "20",
        "--symbols",
        "2e4",
        "--dim",
        "5000",
        "--tau",
        "1..6",
        "--rounds",
        "80",
        "--gamma",
        "2",
        "--g",
        "3",
        "--out",
        "here",
    ];
    let plan = json(&folder, &words);
    let cells = plan["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 20 * 6);
    let lowest = cells.iter().map(|cell| cell["loss"].as_f64().unwrap()).fold(f64::INFINITY, f64::min);
    assert_eq!(plan["best"]["loss"].as_f64(), Some(lowest));
    let horizons = plan["horizons"].as_array().unwrap();
    assert_eq!(horizons[0]["from"], 1);
    assert_eq!(horizons.last().unwrap()["to"], 80);
    assert!(
        horizons
            .windows(2)
            .all(|pair| pair[0]["to"].as_u64().unwrap() + 1 == pair[1]["from"].as_u64().unwrap())
    );
    assert_eq!(plan["sensitivity"]["shifts"].as_array().unwrap().len(), 6);
    let files = ["horizons.png", "horizons.svg", "plan.csv", "plan.json", "surface.png", "surface.svg"];
    assert_eq!(entries(&folder.path().join("here")), files);
    // What the plan promises is what `fedlink bound` gives in expectation.
    let (k, tau) = (plan["best"]["k"].to_string(), plan["best"]["tau"].to_string());
    let same = [
        "bound",
        "--devices",
        "20",
        "--symbols",
        "2e4",
        "--dim",
        "5000",
        "--rounds",
        "80",
        "--gamma",
        "2",
        "--g",
        "3",
        "--mu",
        "0.25",
        "--eta",
        "2/3*1000/(t+1000)",
        "--k",
        &k,
        "--tau",
        &tau,
        "--expectation",
    ];
    assert!((finals(&json(&folder, &same))[0] / lowest - 1.0).abs() < 0.02);
    let printed = text(&folder, &[&words[..15], &["--target", "400"]].concat());
    assert!(printed.contains("reaches 400.0 after"), "{printed}");
}

#[test]
fn a_plan_can_measure_its_constants_on_real_data() {
    let folder = TempDir::new().unwrap();
    let words = |partition: &'static str| {
        [
            "plan",
            "--measure",
            "demo",
            "--set",
            partition,
            "--set",
            "data.devices=5",
            "--set",
            "data.samples_per_device=20",
            "--lambda",
            "1",
            "--rounds",
            "50",
            "--tau",
            "1..4",
        ]
    };
    let uneven = json(&folder, &words("data.partition=classes"));
    let even = json(&folder, &words("data.partition=iid"));
    for plan in [&uneven, &even] {
        assert_eq!(
            (plan["problem"]["mu"].as_f64(), plan["measured"]["dim"].as_u64()),
            (Some(1.0), Some(7850))
        );
        assert_eq!(plan["problem"]["gamma"], plan["measured"]["gamma"]);
        assert_eq!(plan["link"]["symbols"], 5000);
    }
    assert!(uneven["problem"]["gamma"].as_f64() > even["problem"]["gamma"].as_f64());
}

#[test]
fn bad_requests_are_refused_with_the_flag_to_change() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("bad.txt"), "0.1 x").unwrap();
    std::fs::write(folder.path().join("short.txt"), "0.1 0.1").unwrap();
    std::fs::write(folder.path().join("bad.toml"), "[bound]\nroundz = 3\n").unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["bound", "--k", "101"], "--k: is 101, but must be in 1..=100"),
        (&["bound", "--k", "0"], "--k: is 0"),
        (&["bound", "--k", "x"], "--k"),
        (&["bound", "--tau", "0"], "--tau: is 0"),
        (&["bound", "--mu", "6", "--eta", "0.01"], "--l: is 5, but must be at least mu = 6"),
        (&["bound", "--gamma", "-1"], "--gamma: is -1"),
        (&["bound", "--g", "nan"], "--g: is NaN"),
        (&["bound", "--d0", "-3"], "--d0: is -3"),
        (&["bound", "--symbols", "1"], "--symbols: n = 1 carries"),
        (&["bound", "--symbols", "1.5"], "--symbols"),
        (&["bound", "--noise", "0"], "--noise: is 0"),
        (&["bound", "--rounds", "0"], "--rounds: is 0"),
        (&["bound", "--draws", "0"], "--draws: is 0"),
        (&["bound", "--channels", "worst"], "--channels"),
        (&["bound", "--eta", "1/(t+"], "--eta: expected a number"),
        (&["bound", "--eta", "400/(t+1000)"], "--eta: η(0) is 0.4"),
        (&["bound", "--eta", "0.3*(t-3)^2/100+0.001"], "--eta: η(14)"),
        (&["bound", "--eta", "@missing.txt"], "--eta: cannot read missing.txt"),
        (&["bound", "--eta", "@bad.txt"], "--eta: value 2 of bad.txt is \"x\""),
        (&["bound", "--eta", "@short.txt"], "--eta: has 2 values, but 1000 rounds are asked for"),
        (&["plan", "--k", "5..3"], "--k"),
        (&["plan", "--k", "1..101"], "--k: is 101"),
        (&["plan", "--tau", "0..3"], "--tau: is 0"),
        (&["plan", "--target", "1"], "--target: no K and tau reach"),
        (&["plan", "--samples", "0"], "--samples"),
        (&["plan", "--lambda", "1"], "--measure"),
        (&["plan", "--measure", "no-such"], "no-such is neither a preset"),
        (&["plan", "--measure", "demo", "--gamma", "1"], "--gamma"),
        (&["plan", "--measure", "demo", "--lambda", "0"], "--lambda: is 0"),
        (&["run", "fig3", "--set", "bound.k=200"], "k: is 200"),
        (&["run", "fig3", "--set", "schedule.k=2"], "bound.rounds"),
        (&["run", "bad.toml"], "line 2"),
    ];
    for (words, part) in cases {
        let message = refused(&folder, words);
        assert!(message.contains(part), "{words:?}: {message:?} lacks {part:?}");
        assert!(!message.contains("panicked"), "{message}");
    }
    assert_eq!(entries(folder.path()), ["bad.toml", "bad.txt", "short.txt"], "nothing is left behind");
}
