//! The bound as a user meets it: `fedlink bound` here, `fedlink bound plan` and the presets beside it.

mod plan;
mod presets;
mod refused;

use assert_cmd::Command;
use fedlink_theory::bound::{Bound, BoundParameters};
use fedlink_theory::rate::Rate;
use fedlink_theory::rho::{Link, LinkParameters};
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
fn every_parameter_is_a_flag_and_the_paper_s_values_are_the_defaults() {
    let folder = TempDir::new().unwrap();
    let words = "bound --k 1,3,5 --tau 3 --gamma 10 --g 10 --mu 1 --l 5 --d0 500 --devices 100 --symbols 1e5 \
                 --dim 203530 --rounds 1000 --eta 1000/(3*(t+1000)) --channels best --draws 1 --seed 0";
    let written_out = json(&folder, &words.split_whitespace().collect::<Vec<_>>());
    let by_default = json(&folder, &["bound", "--k", "1,3,5"]);
    for (ours, theirs) in finals(&written_out).into_iter().zip(finals(&by_default)) {
        assert!((ours / theirs - 1.0).abs() < 1e-12);
    }
    for curve in written_out["curves"].as_array().unwrap() {
        assert_eq!(curve["losses"].as_array().unwrap().len(), 1001);
        assert_eq!(curve["losses"][1000], curve["final"]["mean"]);
        assert!(curve["floor"].is_number() && curve["shares"]["terms"]["drift"].is_number());
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
        choice: fedlink_theory::rho::Choice::Uniform,
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
fn a_given_rho_gives_the_closed_form() {
    // x(T) = x(0)·ΠA(t) + Σ B(t)·Π_{i>t} A(i), written out here and nowhere taken from the library.
    let folder = TempDir::new().unwrap();
    let rho = |t: usize| 0.02 + 0.001 * (t % 9) as f64;
    let table: Vec<String> = (0..150).map(|t| format!("{:?}", rho(t))).collect();
    std::fs::write(folder.path().join("rho.txt"), table.join(", ")).unwrap();
    let words =
        ["bound", "--k", "4", "--tau", "7", "--gamma", "1.5", "--g", "2.5", "--mu", "0.3", "--l", "9"];
    let more =
        ["--d0", "33", "--devices", "17", "--rounds", "90", "--eta", "0.4/(1+t/50)", "--rho", "@rho.txt"];
    let curve = json(&folder, &[&words[..], &more[..]].concat())["curves"][0].clone();
    let (m, k, tau, mu, l, gamma, g) = (17.0, 4.0, 7.0, 0.3, 9.0, 1.5, 2.5);
    let eta = |t: usize| 0.4 / (1.0 + t as f64 / 50.0);
    let a = |t: usize| 1.0 - mu * rho(t) * eta(t) * (tau - eta(t) * (tau - 1.0));
    let b = |t: usize| {
        let (rho, eta) = (rho(t), eta(t));
        (m - k) * rho * eta * eta * tau * tau * g * g / (k * (m - 1.0))
            + rho * (1.0 + mu * (1.0 - eta)) * eta * eta * g * g * tau * (tau - 1.0) * (2.0 * tau - 1.0) / 6.0
            + rho * eta * eta * (tau * tau + tau - 1.0) * g * g
            + 2.0 * rho * eta * (tau - 1.0) * gamma
    };
    for rounds in [0usize, 1, 45, 90] {
        let after = |t: usize| (t..rounds).map(a).product::<f64>();
        let exact = l / 2.0 * (33.0 * after(0) + (0..rounds).map(|t| b(t) * after(t + 1)).sum::<f64>());
        let ours = curve["losses"][rounds].as_f64().unwrap();
        assert!((ours / exact - 1.0).abs() < 1e-12, "{rounds} rounds: {ours} against {exact}");
    }
    assert_eq!(curve["rhos"].as_array().unwrap().len(), 90);
    assert_eq!(curve["rhos"][10].as_f64(), Some(rho(10)));
    // The ρ that a channel gave, passed as a number, gives the same bound; the K without a file is that of a
    // number.
    let drawn = json(&folder, &["bound", "--k", "3", "--rounds", "25"])["curves"][0].clone();
    let rhos = drawn["rhos"].as_array().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
    std::fs::write(folder.path().join("drawn.txt"), rhos.join("\n")).unwrap();
    let given = json(&folder, &["bound", "--k", "3", "--rounds", "25", "--rho", "@drawn.txt"]);
    assert!((finals(&given)[0] / drawn["final"]["mean"].as_f64().unwrap() - 1.0).abs() < 1e-12);
    let number = json(&folder, &["bound", "--k", "3", "--rounds", "25", "--rho", "0.25"]);
    assert_eq!(number["curves"][0]["rhos"][24].as_f64(), Some(0.25));
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
    assert_eq!(entries(&here), ["bound.csv", "bound.json", "bound.png", "bound.svg", "files.txt"]);
    let written: Value = serde_json::from_slice(&std::fs::read(here.join("bound.json")).unwrap()).unwrap();
    let mut reader = csv::Reader::from_path(here.join("bound.csv")).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2 * 31);
    let last: f64 = rows[61][5].parse().unwrap();
    assert_eq!(last, finals(&written)[1]);
    assert!(refused(&folder, &words).contains("--force"));
    fedlink(&folder, &[&words[..], &["--force"]].concat()).assert().success();
}
