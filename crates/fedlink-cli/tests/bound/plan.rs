//! `fedlink bound plan`.

use crate::{entries, finals, json, text};
use tempfile::TempDir;

#[test]
fn a_plan_names_the_best_point_of_its_own_table() {
    let folder = TempDir::new().unwrap();
    let words = [
        "bound",
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
    let points = plan["points"].as_array().unwrap();
    assert_eq!(points.len(), 20 * 6);
    let lowest = points.iter().map(|point| point["loss"].as_f64().unwrap()).fold(f64::INFINITY, f64::min);
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
    let files =
        ["files.txt", "horizons.png", "horizons.svg", "plan.csv", "plan.json", "surface.png", "surface.svg"];
    assert_eq!(entries(&folder.path().join("here")), files);
    // The bound of the plan equals that of `fedlink bound` in expectation.
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
        plan["eta"].as_str().unwrap(),
        "--k",
        &k,
        "--tau",
        &tau,
        "--expectation",
    ];
    assert!((finals(&json(&folder, &same))[0] / lowest - 1.0).abs() < 0.02);
    let printed = text(&folder, &[&words[..16], &["--target", "400"]].concat());
    assert!(printed.contains("reaches 400.0 after"), "{printed}");
}

#[test]
fn a_plan_can_measure_its_constants_on_real_data() {
    let folder = TempDir::new().unwrap();
    let words = |partition: &'static str| {
        [
            "bound",
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
fn a_plan_has_its_rate_and_reports_where_the_bound_of_a_given_rate_is_vacuous() {
    let folder = TempDir::new().unwrap();
    let hard = [
        "bound",
        "plan",
        "--devices",
        "20",
        "--symbols",
        "2e4",
        "--dim",
        "5000",
        "--gamma",
        "10",
        "--g",
        "30",
    ];
    let chosen = text(&folder, &hard);
    assert!(chosen.contains("is the best of 16") && !chosen.contains("is vacuous"), "{chosen}");
    let given = text(&folder, &[&hard[..], &["--eta", "0.2"]].concat());
    assert!(given.contains("starts from 1250: the bound is vacuous here"), "{given}");
    assert!(given.contains("η(t) = 0.2.") && !given.contains("best of"), "{given}");
    let loss = |more: &[&str]| json(&folder, &[&hard[..], more].concat())["best"]["loss"].as_f64().unwrap();
    // Every rate that was tried is a flag away, and none is better.
    let best = loss(&[]);
    for halvings in 0..16 {
        let eta = format!("{}/(t+1000)", 1000.0 * 0.2 * 0.5f64.powi(halvings));
        assert!(loss(&["--eta", &eta]) >= best * (1.0 - 1e-12), "{eta}");
    }
}
