//! `fedlink run fig3`, `fig4` and `theorem`.

use crate::{entries, json, refused, text};
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn a_folder_of_the_bound_is_verified_by_its_own_claims_or_others_and_a_changed_table_is_refused() {
    let folder = TempDir::new().unwrap();
    let small = "[bound]\ndevices = 10\ndim = 500\nsymbols = 800\nrounds = 20\ndraws = 3\nk = [1, 3]\n";
    let claim =
        |better: u64| format!("[[claim]]\npanel = \"bound\"\nsays = \"x\"\nbetter = {{ k = {better} }}\n");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("one.toml", &format!("{small}{}", claim(1)));
    write("three.toml", &format!("{small}{}", claim(3)));
    write("none.toml", small);
    write("other.toml", &format!("{small}{}", claim(2)).replace("k = [1, 3]", "k = [1, 2]"));
    for name in ["one", "none"] {
        text(&folder, &["run", &format!("{name}.toml"), "--out", name]);
    }
    let said = text(&folder, &["verify", "one"]);
    assert!(said.starts_with("[bound] x: ") && said.contains("(K=3)"), "{said}");
    let said = text(&folder, &["verify", "one", "--claims", "three.toml"]);
    assert!(said.starts_with("[bound] x: ") && said.contains("(K=1)"), "{said}");
    for (words, problem) in [
        (&["verify", "none"][..], "none claims nothing; add [claims]"),
        (&["verify", "one", "--claims", "other.toml"], "{ k = 2 } names 0 curves"),
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
    for text in
        [changed.join("\n"), lines[..lines.len() / 2].to_owned(), format!("{lines}{lines}"), "a\n".into()]
    {
        write("one/results.csv", &text);
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
        // And is all that is needed to judge its claims again.
        let verified = json(&folder, &["verify", name]);
        assert_eq!(verified["claims"], summary["claims"]);
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
