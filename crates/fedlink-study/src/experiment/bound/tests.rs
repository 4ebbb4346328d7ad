use super::*;
use crate::experiment::TheoremExperiment;
use fedlink_theory::rho::Link;

fn error(text: &str) -> String {
    BoundExperiment::parse("my.toml", text).map(|_| ()).unwrap_err().to_string()
}

const SMALL: &str = "[bound]\ndevices = 10\ndim = 500\nsymbols = 800\nrounds = 40\ndraws = 5\nk = [1, 3]\n\
                     eta = \"0.3*40/(t+40)\"\n";

#[test]
fn the_presets_are_the_paper_s_figures() {
    let third = BoundExperiment::preset("fig3").unwrap();
    let of = |experiment: &BoundExperiment| -> Vec<(f64, f64, Vec<u64>, Vec<u64>)> {
        let panels = experiment.panels.iter().map(|panel| &panel.study);
        panels.map(|s| (s.problem.gamma, s.problem.g, s.ks.clone(), s.taus.clone())).collect()
    };
    let ks = vec![1, 3, 5, 10, 15, 20];
    assert_eq!(of(&third), [(1.0, 1.0, ks.clone(), vec![3]), (10.0, 10.0, ks, vec![3])]);
    let fourth = BoundExperiment::preset("fig4").unwrap();
    let taus = vec![1, 2, 3, 5, 10, 15, 20];
    assert_eq!(of(&fourth), [(1.0, 1.0, vec![1], taus.clone()), (10.0, 10.0, vec![5], taus)]);
    assert!(TheoremExperiment::preset("theorem").is_some());
    assert!(BoundExperiment::preset("demo").is_none() && TheoremExperiment::preset("demo").is_none());
}

#[test]
fn a_claim_is_judged_by_the_mean_difference_over_the_draws() {
    let text = format!(
        "{SMALL}[[claim]]\npanel = \"bound\"\nsays = \"x\"\nbetter = {{ k = 1 }}\nat = 10\n\
         [[claim]]\npanel = \"bound\"\nsays = \"y\"\nbetter = {{ k = 3 }}\nat = 10\n\
         [[claim]]\npanel = \"bound\"\nsays = \"z\"\nbetter = {{ k = 1 }}\nrounds_to = 1e-9\n"
    );
    let experiment = BoundExperiment::parse("x", &text).unwrap();
    let (panels, claims) = experiment.run().unwrap();
    assert_eq!(panels[0].curves.len(), 2);
    let study = &panels[0].panel.study;
    let link = Link::new(study.link).unwrap();
    let mut differences = Vec::new();
    for draw in 0..5 {
        let loss = |k| {
            let bound =
                fedlink_theory::bound::Bound::new(BoundParameters { k, tau: 3, ..study.problem }).unwrap();
            let rates = bound.rates(&study.rate, 40).unwrap();
            bound.curve(&rates, &link.rhos(k, 40, draw).unwrap()).unwrap().loss(10)
        };
        differences.push(loss(1) - loss(3));
    }
    let mean = differences.iter().sum::<f64>() / 5.0;
    let deviation = (differences.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4.0).sqrt();
    // Student's 97.5 % point with 4 degrees of freedom, from the tables.
    let half_width = 2.776_445 * deviation / 5f64.sqrt();
    let [x, y, z] = &claims[..] else { panic!("three claims") };
    let comparison = &x.comparisons[0];
    assert!((comparison.difference.mean - mean).abs() < 1e-9 * mean.abs());
    assert!((comparison.difference.half_width / half_width - 1.0).abs() < 1e-5);
    let expected = match (mean + half_width < 0.0, mean - half_width > 0.0) {
        (true, _) => (Verdict::Holds, Verdict::DoesNotHold),
        (_, true) => (Verdict::DoesNotHold, Verdict::Holds),
        _ => (Verdict::Undecided, Verdict::Undecided),
    };
    assert_eq!((x.verdict, y.verdict), expected);
    assert_ne!(x.verdict, Verdict::Undecided, "the test must decide something");
    // Neither reaches the level.
    assert_eq!((z.verdict, z.comparisons[0].better.mean), (Verdict::Undecided, 41.0));
}

#[test]
fn settings_change_the_bound_and_nothing_else() {
    let mut experiment = BoundExperiment::preset("fig3").unwrap();
    experiment.set("bound.rounds", "50").unwrap();
    experiment.set("bound.eta", "0.1").unwrap();
    assert!(experiment.panels.iter().all(|panel| panel.study.rounds == 50));
    assert_eq!(experiment.claims.len(), BoundExperiment::preset("fig3").unwrap().claims.len());
    let again = BoundExperiment::parse("x", experiment.to_toml()).unwrap();
    assert_eq!(again.panels[1].study, experiment.panels[1].study);
    let mut wrong = |key, value| experiment.set(key, value).unwrap_err().to_string();
    assert!(wrong("schedule.k", "3").contains("such as bound.rounds"));
    let misspelt = wrong("bound.round", "3");
    assert!(misspelt.starts_with("bound.round: unknown field"), "{misspelt}");
    assert!(misspelt.ends_with("; did you mean rounds?"), "{misspelt}");
    assert!(wrong("bound.rounds", "many").starts_with("bound.rounds: "));
    let mut theorem = TheoremExperiment::preset("theorem").unwrap();
    theorem.set("quadratic.seeds", "3").unwrap();
    assert!(theorem.set("theorem.x", "3").unwrap_err().to_string().starts_with("theorem.x: unknown field"));
    assert!(theorem.set("run.rounds", "3").unwrap_err().to_string().contains("[theorem]"));
    assert!(theorem.set("softmax.seed", "3").unwrap_err().to_string().ends_with("did you mean seeds?"));
}

#[test]
fn a_section_is_found_however_it_is_written() {
    for text in [
        "[bound]\nk = 1\n",
        "bound.k = 1\n",
        "bound = { k = 1 }\n",
        "[ bound ] # of what?\n",
        "[bound]\nk =\n",
    ] {
        assert!(BoundExperiment::is_one(text), "{text}");
    }
    for text in ["", "# [bound]\n", "[run]\nrounds = 3\n", "bound = 3\n", "[[bound]]\n", "[bounds]\n"] {
        assert!(!BoundExperiment::is_one(text), "{text}");
    }
}

#[test]
fn errors_in_a_file_name_the_line_or_the_key() {
    for (text, parts) in [
        ("[bound]\nk = 1\nroundz = 3\n", &["line 3", "roundz", "did you mean rounds?"][..]),
        ("[bound]\n[[panel]]\nname = \"a\"\ngama = 3\n", &["line 4", "did you mean gamma?"]),
        ("[bound]\n[[pannel]]\nname = \"a\"\n", &["line 2", "did you mean panel?"]),
        ("[bound]\nchannels = \"unifrom\"\n", &["line 2", "did you mean uniform?"]),
        ("[bound]\nk = \"many\"\n", &["line 2", "whole number"]),
        ("[bound]\nk = [1, 1.5]\n", &["line 2", "whole number"]),
        ("[bound]\neta = \"1/(t+\"\n", &["line 2", "found the end"]),
        ("[bound]\nchannels = \"worst\"\n", &["line 2", "best"]),
        ("[bound\n", &["line 1"]),
        ("[bound]\nk = 101\n", &["k: is 101"]),
        ("[bound]\neta = 0.5\n", &["rate: η(0) is 0.5"]),
        ("[bound]\nmu = 6\neta = 0.01\n", &["l: is 5, but must be at least mu = 6"]),
        ("[bound]\n[[panel]]\nname = \"a b\"\n", &["panel.name", "a b"]),
        ("[bound]\n[[panel]]\nname = \"a\"\n[[panel]]\nname = \"a\"\n", &["name of its own"]),
    ] {
        let message = error(text);
        assert!(message.starts_with("my.toml: "), "{message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{message:?} lacks one of {parts:?}");
    }
    let claim = |rest: &str| error(&format!("{SMALL}[[claim]]\nsays = \"x\"\n{rest}\n"));
    assert!(claim("panel = \"b\"\nbetter = { k = 1 }").contains("panel: \"b\" is none of bound"));
    assert!(claim("panel = \"bound\"\nbetter = { k = 2 }").contains("{ k = 2 } names 0 curves"));
    assert!(claim("panel = \"bound\"\nbetter = { tau = 3 }").contains("names 2 curves"));
    assert!(claim("panel = \"bound\"\nbetter = { k = 1 }\nat = 41").contains("at: is beyond the 40 rounds"));
    assert!(
        claim("panel = \"bound\"\nbetter = { k = 1 }\nat = 4\nrounds_to = 3").contains("beside rounds_to")
    );
    assert!(claim("panel = \"bound\"\nbetter = { k = 1 }\nfactor = -1").contains("above 0"));
    let theorem = |text: &str| TheoremExperiment::parse("my.toml", text).map(|_| ()).unwrap_err().to_string();
    assert!(theorem("[theorem]\ntau = 3\n").contains("line 1"));
    assert!(
        theorem("[theorem]\ntau = 3\nrounds = 2\nseed = 0\nschedules = [\"uniform\"]\n")
            .contains("[quadratic]")
    );
}

#[test]
fn the_theorem_s_file_runs_every_schedule_on_every_problem() {
    let mut experiment = TheoremExperiment::preset("theorem").unwrap();
    for (key, value) in [
        ("theorem.rounds", "12"),
        ("quadratic.seeds", "6"),
        ("softmax.seeds", "3"),
        ("softmax.samples_per_device", "30"),
    ] {
        experiment.set(key, value).unwrap();
    }
    let results = experiment.run(&[]).unwrap();
    let names: Vec<&str> = results.iter().map(|result| result.problem).collect();
    assert_eq!(names, ["quadratic", "softmax"]);
    for check in results.iter().flat_map(|result| &result.checks) {
        assert_eq!((check.measured.len(), check.bound.len()), (13, 13));
        assert_eq!(check.breaks.is_some(), check.schedule.name() == "best-norm");
        assert!(check.breaks.is_some() || check.exceeded.is_none(), "{}", check.schedule.name());
        assert!(check.looseness(12) > 1.0);
    }
}
