//! Goals from the file to the tables: joint conditions, runs that miss them, claims that come after the
//! results, claims that cannot be decided.

mod small_data;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

const FILE: &str = r#"
[data]
dataset = "small.npz"
devices = 8
samples_per_device = 50
[learn]
model = "softmax"
batch = 16
[radio]
bandwidth_hz = 1e5
uplink_s = 0.01
snr_db = 20.0
[run]
rounds = 24
evaluate_every = 4
seeds = 6
target = 0.999
fairness = true
[sweep]
"schedule.policy" = ["bc", "bn2"]
[goals]
"held" = "seconds until accuracy >= 0.01 and worst-class >= 0 for 2 evaluations"
"never" = "worst-device-joules until loss <= 0.000001"
"#;

fn folder(claims: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("goals.toml"), format!("{FILE}[claims]\n{claims}")).unwrap();
    small_data::write(folder.path());
    folder
}

fn said(folder: &TempDir, words: &str) -> String {
    let mut command = Command::cargo_bin("fedlink").unwrap();
    command.current_dir(folder.path()).args(words.split_whitespace());
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

fn refusal(folder: &TempDir, words: &str) -> String {
    let mut command = Command::cargo_bin("fedlink").unwrap();
    command.current_dir(folder.path()).args(words.split_whitespace());
    String::from_utf8(command.assert().code(2).get_output().stderr.clone()).unwrap()
}

fn json(folder: &TempDir, file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder.path().join(file)).unwrap()).unwrap()
}

const CLAIMS: &str =
    "\"sooner\" = { goal = \"held\", claim = \"bc < bn2\" }\n\"right\" = \"bc final > bn2 final\"\n";

#[test]
fn runs_that_miss_a_goal_are_counted_in_every_table() {
    let folder = folder(CLAIMS);
    let text = said(&folder, "run goals.toml --out out");
    let head = text.lines().find(|line| line.starts_with("curve ")).unwrap();
    let columns = ["worst class", "rounds to 99.9 %", "held", "never", "trainings/round"];
    assert!(columns.iter().all(|column| head.contains(column)), "{head}");
    // No run has an accuracy of 99.9 %: the median lies beyond the last round.
    assert_eq!(text.matches("> 24 (0/6)").count(), 2, "{text}");
    assert!(text.contains("held: seconds until accuracy >= 0.01 and worst-class >= 0 for 2 evaluations"));
    let goal = "; goal: seconds until accuracy >= 0.01 and worst-class >= 0 for 2 evaluations";
    assert!(text.contains(goal) && text.contains("exact p = "), "{text}");
    let summary = json(&folder, "out/summary.json");
    let never = &summary[0]["goals"]["never"];
    assert_eq!((&never["reached"], &never["of"], &never["value"]), (&0.into(), &6.into(), &Value::Null));
    // The joules of the worst device at the last evaluation are those of the outcome.
    let run = &summary[0]["runs"][0];
    let spent = run["device_energy"].as_array().unwrap().iter().map(|device| {
        device.as_object().unwrap().values().map(|joules| joules.as_f64().unwrap()).sum::<f64>()
    });
    let worst = spent.fold(0.0, f64::max);
    let mut reader = csv::Reader::from_path(folder.path().join("out/results.csv")).unwrap();
    let at = reader.headers().unwrap().iter().position(|name| name == "worst_device_joules").unwrap();
    let rows: Vec<f64> = reader.records().map(|row| row.unwrap()[at].parse().unwrap()).collect();
    assert!(rows[..6].is_sorted() && (rows[5] / worst - 1.0).abs() < 1e-12, "{rows:?} {worst}");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    for words in ["Worst class</th>", "Trainings per round", "(0/6)", "Lowest cost: held"] {
        assert!(page.contains(words), "{words} is not in the page");
    }
    let status = said(&folder, "status out");
    assert!(status.contains("goal     held: seconds until accuracy") && status.contains("bn2: "), "{status}");
    assert_eq!(
        serde_json::from_str::<Value>(&said(&folder, "status out --json")).unwrap()["goals"][1]["name"],
        "never"
    );
    assert!(said(&folder, "config out/config.toml").contains("seeds"));
}

#[test]
fn claims_that_come_after_the_results_are_marked() {
    let folder = folder(CLAIMS);
    said(&folder, "run goals.toml --out out --quiet");
    let manifest = json(&folder, "out/manifest.json");
    let first = manifest["claims"].clone();
    assert!(
        first["first_run"].as_str().unwrap().ends_with('Z') && first["sha256"].as_str().unwrap().len() == 64
    );
    assert_eq!(first["claims"].as_object().unwrap().len(), 3);
    let verified = said(&folder, "verify out");
    assert!(!verified.contains("after the results"), "{verified}");
    assert_eq!(json(&folder, "out/claims.json")["claims"][0]["registered"], "before the results");
    // Another claim, a changed one, and one that is gone.
    let later = "\"right\" = \"bc final < bn2 final\"\n\"late\" = \"bc loss > 0.1\"\n";
    std::fs::write(folder.path().join("later.toml"), format!("{FILE}[claims]\n{later}")).unwrap();
    for verified in [
        said(&folder, "verify out --claims later.toml"),
        said(&folder, "run later.toml --out out --resume"),
        said(&folder, "verify out"),
    ] {
        for words in [", changed after the results\n", ", added after the results\n", "sooner: removed after"]
        {
            assert!(verified.contains(words), "{words:?} is not in {verified}");
        }
    }
    let claims = json(&folder, "out/manifest.json")["claims"].clone();
    assert_eq!((&claims["first_run"], &claims["sha256"]), (&first["first_run"], &first["sha256"]));
    assert_eq!((claims["later"].as_array().unwrap().len(), &claims["removed"][0]), (2, &"sooner".into()));
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("changed after the results") && page.contains("was removed after the results"));
}

#[test]
fn a_dry_run_names_the_claims_that_so_many_seeds_cannot_decide() {
    let folder = folder(CLAIMS);
    let text = said(&folder, "run goals.toml --dry-run --seeds 5");
    let reason = "claim \"sooner\" cannot be decided: with 5 seeds the smallest p-value of the exact test is \
                  0.062; 6 seeds could decide it";
    assert!(text.contains(reason) && !text.contains("claim \"right\""), "{text}");
    assert!(!said(&folder, "run goals.toml --dry-run").contains("cannot be decided"));
    let one = said(&folder, "run goals.toml --dry-run --seeds 1");
    assert!(one.contains("claim \"right\" cannot be decided: one shared seed decides nothing"), "{one}");
}

#[test]
fn a_goal_that_cannot_be_measured_is_refused_with_the_key_to_set() {
    let folder = folder(CLAIMS);
    std::fs::write(folder.path().join("bad.toml"), FILE.replace("fairness = true", "")).unwrap();
    let said = refusal(&folder, "run bad.toml --dry-run");
    assert!(said.contains("goals.") && said.contains("run.fairness = true only: set it"), "{said}");
    for (goal, part) in [
        ("secs until accuracy >= 0.8", "\"secs\" (character 1) is not a cost"),
        ("rounds until accuracy >= 80", "for 80 % write 0.8"),
    ] {
        let text = FILE.replace("worst-device-joules until loss <= 0.000001", goal);
        std::fs::write(folder.path().join("bad.toml"), text).unwrap();
        let said = refusal(&folder, "run bad.toml --dry-run");
        assert!(said.contains("goals.\"never\"") && said.contains(part), "{said}");
    }
}
