use super::*;
use crate::claims::{Answer, Pairing};
use crate::goals::Unit;
use crate::theory::TheoremExperiment;
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
        "{SMALL}[claims]\nx = \"k=1 bound-at-10 < others bound-at-10\"\n\
         y = \"k=3 bound-at-10 < others bound-at-10\"\n\
         z = \"k=1 rounds-to-bound-1e-9 < others rounds-to-bound-1e-9\"\n"
    );
    let experiment = BoundExperiment::parse("x", &text).unwrap();
    let (panels, verdicts) = experiment.run().unwrap();
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
    let [x, y, z] = &verdicts.claims[..] else { panic!("three claims") };
    let pair = &x.pairs[0];
    let difference = pair.difference.unwrap();
    assert!((difference.mean - mean).abs() < 1e-9 * mean.abs());
    assert!((difference.half_width / half_width - 1.0).abs() < 1e-5);
    assert_eq!((pair.left.as_str(), pair.right.as_str(), pair.seeds), ("k=1", "k=3", 5));
    assert_eq!((x.unit, x.paired_by, x.left_out.len()), (Unit::Bound, Pairing::Draw, 0));
    let expected = match (mean + half_width < 0.0, mean - half_width > 0.0) {
        (true, _) => (Answer::Holds, Answer::DoesNotHold),
        (_, true) => (Answer::DoesNotHold, Answer::Holds),
        _ => (Answer::Undecided, Answer::Undecided),
    };
    assert_eq!((x.verdict, y.verdict), expected);
    assert_ne!(x.verdict, Answer::Undecided, "the test must decide something");
    // Neither reaches the level.
    assert_eq!((z.verdict, z.pairs[0].left_value.unwrap().mean), (Answer::Undecided, 41.0));
}

#[test]
fn one_draw_or_the_expectation_is_judged_by_its_sign() {
    let claims = "[claims]\nx = \"k=1 bound < k=3 bound\"\ny = \"k=1 bound > k=3 bound\"\n";
    for (from, to) in [("draws = 5", "draws = 1"), ("draws = 5", "expectation = true")] {
        let text = SMALL.replace(from, to) + claims;
        let (panels, verdicts) = BoundExperiment::parse("x", &text).unwrap().run().unwrap();
        let [one, three] = [0, 1].map(|i| panels[0].curves[i].last().mean);
        let [x, y] = &verdicts.claims[..] else { panic!("two claims") };
        let expected = if one < three { Answer::Holds } else { Answer::DoesNotHold };
        assert_eq!(x.verdict, expected);
        assert!(y.verdict != x.verdict && y.verdict != Answer::Undecided);
        let pair = &x.pairs[0];
        assert_eq!((pair.seeds, pair.difference.unwrap().mean), (1, one - three));
        assert!(pair.difference.unwrap().half_width.is_infinite());
        let end = format!(": {} (a single curve on each side: judged by the sign)", x.verdict);
        assert!(pair.to_string().starts_with("k=1 − k=3: ") && pair.to_string().ends_with(&end), "{pair}");
    }
}

#[test]
fn a_claim_for_every_panel_pairs_the_draws_of_each() {
    let panels = "[[panel]]\nname = \"low\"\ngamma = 1\n[[panel]]\nname = \"high\"\ngamma = 20\n";
    let claims = "[claims]\na = \"k=1 bound < others bound for every panel\"\n\
                  b = \"1.5 * low bound < high bound for every k\"\nc = \"panel=low@k=1 bound < 1e9\"\n";
    let text = format!("{SMALL}{panels}{claims}");
    let (results, verdicts) = BoundExperiment::parse("x", &text).unwrap().run().unwrap();
    let [a, b, c] = &verdicts.claims[..] else { panic!("three claims") };
    let sides = |verdict: &crate::claims::Verdict| -> Vec<(String, String)> {
        verdict.pairs.iter().map(|pair| (pair.left.clone(), pair.right.clone())).collect()
    };
    let pair = |left: &str, right: &str| (left.to_owned(), right.to_owned());
    assert_eq!(sides(a), [pair("low@k=1", "low@k=3"), pair("high@k=1", "high@k=3")]);
    assert_eq!(sides(b), [pair("1.5 * low@k=1", "high@k=1"), pair("1.5 * low@k=3", "high@k=3")]);
    assert_eq!((sides(c), c.verdict), (vec![pair("low@k=1", "1000000000")], Answer::Holds));
    let last = |panel: usize, curve: usize| results[panel].curves[curve].last().mean;
    let difference = b.pairs[1].difference.unwrap().mean;
    assert!((difference - (1.5 * last(0, 1) - last(1, 1))).abs() < 1e-9 * difference.abs());
    // The value beside it is that of the curve, without the factor.
    assert_eq!(b.pairs[1].left_value.unwrap().mean, last(0, 1));
}

/// The output of `fedlink run fig3` and `fig4` for every claim when claims about the bound had a language
/// of their own, to the last digit: equal text means equal bits.
const FIGURE_CLAIMS: &str = include_str!("figure_claims.csv");

#[test]
fn the_paper_s_figures_have_the_verdicts_and_the_numbers_that_they_always_had() {
    let mut pinned = csv::Reader::from_reader(FIGURE_CLAIMS.as_bytes());
    let pinned: Vec<csv::StringRecord> = pinned.records().map(Result::unwrap).collect();
    let mut ours = Vec::new();
    for figure in ["fig3", "fig4"] {
        let (_, verdicts) = BoundExperiment::preset(figure).unwrap().run().unwrap();
        for claim in &verdicts.claims {
            for pair in &claim.pairs {
                let difference = pair.difference.unwrap();
                let means = [pair.left_value, pair.right_value].map(|value| value.unwrap().mean.to_string());
                let [left_value, right_value] = &means;
                ours.push(csv::StringRecord::from(vec![
                    figure,
                    &claim.name,
                    &claim.verdict.to_string(),
                    &pair.left,
                    &pair.right,
                    left_value,
                    right_value,
                    &difference.mean.to_string(),
                    &difference.half_width.to_string(),
                    &pair.verdict.to_string(),
                ]));
            }
        }
    }
    assert_eq!(ours, pinned);
    assert_eq!(pinned.len(), 40);
}

#[test]
fn settings_change_the_bound_and_nothing_else() {
    let mut experiment = BoundExperiment::preset("fig3").unwrap();
    experiment.set("bound.rounds", "50").unwrap();
    experiment.set("bound.eta", "0.1").unwrap();
    assert!(experiment.panels.iter().all(|panel| panel.study.rounds == 50));
    assert_eq!(experiment.claims().len(), BoundExperiment::preset("fig3").unwrap().claims().len());
    let again = BoundExperiment::parse("x", experiment.to_toml()).unwrap();
    assert_eq!(again.panels[1].study, experiment.panels[1].study);
    let mut wrong = |key, value| experiment.set(key, value).unwrap_err().to_string();
    assert!(wrong("schedule.k", "3").contains("such as bound.rounds"));
    let misspelled = wrong("bound.round", "3");
    assert!(misspelled.starts_with("bound.round: unknown field"), "{misspelled}");
    assert!(misspelled.ends_with("; did you mean rounds?"), "{misspelled}");
    assert!(wrong("bound.rounds", "many").starts_with("bound.rounds: "));
    let mut theorem = TheoremExperiment::preset("theorem").unwrap();
    theorem.set("quadratic.seeds", "3").unwrap();
    assert!(theorem.set("theorem.x", "3").unwrap_err().to_string().starts_with("theorem.x: unknown field"));
    assert!(theorem.set("run.rounds", "3").unwrap_err().to_string().contains("[theorem]"));
    assert!(theorem.set("softmax.seed", "3").unwrap_err().to_string().ends_with("did you mean seeds?"));
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
        ("[bound]\n[[claim]]\npanel = \"even\"\n", &["line 2", "did you mean claims?"]),
        ("[bound\n", &["line 1"]),
        ("[bound]\nk = 101\n", &["k: is 101"]),
        ("[bound]\neta = 0.5\n", &["rate: η(0) is 0.5"]),
        ("[bound]\nmu = 6\neta = 0.01\n", &["l: is 5, but must be at least mu = 6"]),
        ("[bound]\n[[panel]]\nname = \"a b\"\n", &["panel.name", "a b"]),
        ("[bound]\n[[panel]]\nname = \"a\"\n[[panel]]\nname = \"a\"\n", &["must be a unique name"]),
    ] {
        let message = error(text);
        assert!(message.starts_with("my.toml: "), "{message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{message:?} lacks one of {parts:?}");
    }
    let claim = |text: &str| error(&format!("{SMALL}[claims]\nx = \"{text}\"\n"));
    for (text, part) in [
        (
            "panel=b@k=1 bound < others bound",
            "my.toml: claims.\"x\": no curve has panel = b; write one of k=1, k=3",
        ),
        ("b@k=1 bound < others bound", "no curve has panel = b"),
        ("k=2 bound < others bound", "no curve has k = 2; write one of k=1, k=3"),
        ("tau=3 bound < others bound", "\"tau=3\" leaves k open (it fits k=1, k=3); add a term such as k=1"),
        ("k=1 bound < tau=3 bound", "leaves k open"),
        ("k=1@tau=3 bound < k=1 others bound", "`others` leaves no curve to compare with"),
        ("k=1 bound-at-41 < others bound-at-41", "bound-at-41 is beyond the 40 rounds"),
        ("k=1 rounds-to-bound-0 < k=3 rounds-to-bound-0", "a number above 0"),
        ("k=1 bound-at-4 < others rounds-to-bound-3", "cannot be compared: their units differ"),
        ("-1 * k=1 bound < others bound", "the factor -1 must be a finite number above 0"),
        ("k=1 final > 0.5", "final is a number of runs; the bound has bound, bound-at-200"),
        ("k=1@policy=bc bound < others bound", "\"policy\" is not a key; the curves differ in panel, k, tau"),
        ("k=1 bound < k=3 bound for every rate", "\"rate\" is not a key"),
        ("k=1@panl=bound bound < others bound", "did you mean panel?"),
    ] {
        assert!(claim(text).contains(part), "{text}: {}", claim(text));
    }
    assert!(error(&format!("{SMALL}[claims]\nx = 1\n")).contains("claims.\"x\": must be text"));
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

#[test]
fn a_shortened_figure_of_the_bound_keeps_its_own_length() {
    let mut experiment = BoundExperiment::preset("fig3").unwrap();
    assert!(experiment.shortened().is_none());
    experiment.set("bound.rounds", "20").unwrap();
    let shortened = experiment.shortened().unwrap();
    assert_eq!((shortened.rounds, shortened.of_rounds), (20, 1000));
    assert!(
        shortened.to_string().starts_with("20 of 1000 rounds, ") && shortened.to_string().ends_with(" draws")
    );
    let again = BoundExperiment::parse("x", experiment.to_toml()).unwrap();
    assert_eq!(again.shortened(), experiment.shortened());
    experiment.set("bound.rounds", "1000").unwrap();
    assert!(experiment.shortened().is_none() && !experiment.to_toml().contains("[original]"));
}
