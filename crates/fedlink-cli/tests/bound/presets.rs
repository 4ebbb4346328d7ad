//! `fedlink run fig3`, `fig4` and `theorem`.

use crate::{entries, json, refused, text};
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn a_folder_of_the_bound_is_verified_by_its_own_claims_or_others_and_a_changed_table_is_refused() {
    let folder = TempDir::new().unwrap();
    let small = "[bound]\ndevices = 10\ndim = 500\nsymbols = 800\nrounds = 20\ndraws = 3\nk = [1, 3]\n";
    let claim = |better: u64| format!("[claims]\nx = \"k={better} bound < others bound\"\n");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("one.toml", &format!("{small}{}", claim(1)));
    write("three.toml", &format!("{small}{}", claim(3)));
    write("none.toml", small);
    write("other.toml", &format!("{small}{}", claim(2)).replace("k = [1, 3]", "k = [1, 2]"));
    for name in ["one", "none"] {
        text(&folder, &["run", &format!("{name}.toml"), "--out", name]);
    }
    let printed = text(&folder, &["verify", "one"]);
    assert!(
        printed.starts_with("Claims: ") && printed.contains("\nx: ") && printed.contains("  k=1 − k=3: "),
        "{printed}"
    );
    assert!(printed.contains(" draws: "), "{printed}");
    let printed = text(&folder, &["verify", "one", "--claims", "three.toml"]);
    assert!(printed.contains("\nx: ") && printed.contains("  k=3 − k=1: "), "{printed}");
    let written = std::fs::read(folder.path().join("one/claims.json")).unwrap();
    assert_eq!(json(&folder, &["verify", "one"]), serde_json::from_slice::<Value>(&written).unwrap());
    assert!(!folder.path().join("none/claims.json").exists());
    write(
        "former.toml",
        &format!("{small}[[claim]]\npanel = \"bound\"\nsays = \"x\"\nbetter = {{ k = 1 }}\n"),
    );
    let message = refused(&folder, &["run", "former.toml"]);
    assert!(
        message.contains("unknown field `claim`") && message.contains("did you mean claims?"),
        "{message}"
    );
    for (words, problem) in [
        (&["verify", "none"][..], "none claims nothing; add [claims]"),
        (&["verify", "one", "--claims", "other.toml"], "claims.\"x\": no curve has k = 2"),
        (&["verify", "one", "--claims", "fig1"], "fig1 is an experiment of another kind than one"),
        (&["merge", "one"], "one/config.toml is about the bound"),
        (&["run", "--resume", "--out", "one"], "one/config.toml is about the bound"),
    ] {
        let message = refused(&folder, words);
        assert!(message.contains(problem), "{words:?}: {message}");
    }
    let table = folder.path().join("one/results.csv");
    let lines = std::fs::read_to_string(&table).unwrap();
    let mut changed: Vec<String> = lines.lines().map(str::to_owned).collect();
    changed[5] = changed[5].replace("bound,K=1,1,3,4,", "bound,K=1,1,3,4,9");
    assert_ne!(changed.join("\n"), lines.trim_end());
    // The last two are not text: in the header, and in a line.
    for table in [
        changed.join("\n").into_bytes(),
        lines.as_bytes()[..lines.len() / 2].to_vec(),
        format!("{lines}{lines}").into_bytes(),
        b"a\n".to_vec(),
        [&b"\xff\xfe"[..], lines.as_bytes()].concat(),
        [&lines.as_bytes()[..lines.len() / 2], &b"\xff\xfe\n"[..]].concat(),
    ] {
        std::fs::write(folder.path().join("one/results.csv"), table).unwrap();
        let message = refused(&folder, &["verify", "one"]);
        assert!(message.contains("results.csv: ") && message.contains("it was changed"), "{message}");
    }
}

#[test]
fn the_paper_s_figures_run_from_anywhere_and_leave_complete_folders() {
    let folder = TempDir::new().unwrap();
    for (name, curves) in [("fig3", 6), ("fig4", 7)] {
        let words = ["run", name, "--seeds", "3", "--out", name];
        let summary = json(&folder, &words);
        let here = folder.path().join(name);
        let files = [
            "claims.json",
            "config.toml",
            "even.png",
            "even.svg",
            "files.txt",
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
        // And is all that is needed to judge its claims again.
        let verified = json(&folder, &["verify", name]);
        assert_eq!(verified["claims"], summary["claims"]);
    }
    let verdict = |name: &str, claimed: &str| -> String {
        let file = std::fs::read(folder.path().join(name).join("summary.json")).unwrap();
        let summary: Value = serde_json::from_slice(&file).unwrap();
        let claims = summary["claims"].as_array().unwrap();
        let claim =
            claims.iter().find(|claim| claim["name"] == claimed).unwrap_or_else(|| panic!("{claimed}"));
        claim["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict("fig3", "uneven: K = 5 ends below K = 3"), "holds");
    assert_eq!(verdict("fig3", "even: K = 1 gives the best performance at the end"), "does not hold");
    assert_eq!(verdict("fig4", "uneven: τ = 15 and τ = 20 end above τ = 5"), "holds");
    assert!(text(&folder, &["config", "fig3"]).starts_with("# The paper's figure 3"));
}

/// The last rows of `results.csv`: panel, curve, K, τ, round, mean of the bound, half width of its interval.
/// Numbers are the shortest decimals that read back as the same floats: equal text means equal bits.
const FIGURE_3_FINALS: [&str; 12] = [
    "even,K=1,1,3,1000,8.360073719434178,0.0002166706525393868",
    "even,K=3,3,3,1000,7.536232170211789,0.0004080504013982322",
    "even,K=5,5,3,1000,7.6897890995167515,0.001793094124433224",
    "even,K=10,10,3,1000,48.70292153484683,0.14440280840018524",
    "even,K=15,15,3,1000,195.84950661496833,0.4000273042492705",
    "even,K=20,20,3,1000,377.21377331184436,0.5898702907160004",
    "uneven,K=1,1,3,1000,498.0997694059443,0.019993347735293276",
    "uneven,K=3,3,3,1000,414.4293802553171,0.03685250321454964",
    "uneven,K=5,5,3,1000,410.6609813821095,0.050269232823909514",
    "uneven,K=10,10,3,1000,468.5564432696666,0.1431845498281325",
    "uneven,K=15,15,3,1000,586.4852489932307,0.28239842165403595",
    "uneven,K=20,20,3,1000,710.9774192430834,0.38240517562240367",
];

#[test]
fn figure_3_ends_where_it_always_did_to_the_last_digit() {
    let folder = TempDir::new().unwrap();
    text(&folder, &["run", "fig3", "--out", "fig3"]);
    let table = std::fs::read_to_string(folder.path().join("fig3/results.csv")).unwrap();
    let finals: Vec<&str> = table.lines().filter(|line| line.split(',').nth(4) == Some("1000")).collect();
    assert_eq!(finals, FIGURE_3_FINALS);
}

#[test]
fn the_theorem_runs_and_marks_schedules_outside_it() {
    let folder = TempDir::new().unwrap();
    let words = ["run", "theorem", "--seeds", "4", "--set", "theorem.rounds=10", "--out", "here"];
    let printed = text(&folder, &words);
    assert!(printed.contains("no promise is made here") && printed.contains("never"), "{printed}");
    let files = [
        "config.toml",
        "files.txt",
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
