//! Claims from the text in a file to the verdict.

use super::*;
use crate::goals::{Unit, rows};
use proptest::prelude::*;

/// Final accuracies by seed, reached through a dull curve.
fn curve(policy: &str, k: &str, finals: &[f64]) -> Measured {
    let keys = vec![("schedule.policy".into(), policy.into()), ("schedule.k".into(), k.into())];
    let run = |(seed, accuracy): (usize, &f64)| (seed as u64, Metrics::new(&rows(&[0.1, *accuracy]), 0.8));
    Measured { keys, runs: finals.iter().enumerate().map(run).collect() }
}

fn grid() -> Vec<Measured> {
    vec![
        curve("bc", "1", &[0.90, 0.91, 0.92]),
        curve("bc", "10", &[0.85, 0.87, 0.86]),
        curve("bn2-c", "1", &[0.93, 0.935, 0.945]),
        curve("bn2-c", "10", &[0.95, 0.90, 0.93]),
    ]
}

fn keys(measured: &[Measured]) -> Vec<CurveKeys> {
    measured.iter().map(|curve| curve.keys.clone()).collect()
}

fn verdict(text: &str, measured: &[Measured]) -> Verdict {
    let claim = Claim::parse("it", text).unwrap();
    claim.check(Subject::Runs, &keys(measured)).unwrap();
    claim.verdict(Subject::Runs, measured, Correction::None).unwrap()
}

fn answer(text: &str) -> Answer {
    verdict(text, &grid()).verdict
}

fn problem(text: &str) -> String {
    let checked = Claim::parse("it", text).and_then(|claim| claim.check(Subject::Runs, &keys(&grid())));
    checked.unwrap_err().to_string()
}

#[test]
fn two_curves_are_compared_seed_by_seed() {
    // Differences 0.03, 0.025, 0.025: mean 0.026667, deviation 0.0028868, half width 4.302653·0.0028868/√3.
    let result = verdict("bn2-c@k=1 final > bc@k=1 final", &grid());
    assert_eq!(result.verdict, Answer::Holds);
    let [pair] = &result.pairs[..] else { panic!("one pair") };
    assert_eq!((pair.left.as_str(), pair.right.as_str(), pair.seeds), ("bn2-c@k=1", "bc@k=1", 3));
    let difference = pair.difference.unwrap();
    assert!((difference.mean - 0.08 / 3.0).abs() < 1e-12);
    assert!((difference.half_width - 0.007_171_09).abs() < 1e-7, "{difference:?}");
    assert_eq!(
        pair.to_string(),
        "bn2-c@k=1 − bc@k=1: +2.67 percentage points [+1.95, +3.38], 93.67 % against 91.00 %, 3 seeds: \
         holds"
    );
    assert_eq!(answer("bn2-c@k=1 final < bc@k=1 final"), Answer::DoesNotHold);
}

#[test]
fn only_shared_seeds_count() {
    let mut curves = grid();
    // Seeds 1 and 2 of the left are paired with seeds 1 and 2 of the right, in any order.
    curves[0].runs.remove(0);
    curves[2].runs.reverse();
    let pair = verdict("bn2-c@k=1 final > bc@k=1 final", &curves).pairs.remove(0);
    assert_eq!(pair.seeds, 2);
    assert!((pair.difference.unwrap().mean - 0.025).abs() < 1e-12);
}

#[test]
fn for_every_makes_the_claim_for_each_value() {
    let result = verdict("k=10 final < k=1 final for every policy", &grid());
    // bc: −0.05, −0.04, −0.06 → −0.05 ± 0.0248 holds; bn2-c: +0.02, −0.035, −0.015 is undecided.
    let pairs: Vec<_> = result.pairs.iter().map(|pair| (pair.left.as_str(), pair.verdict)).collect();
    assert_eq!(pairs, [("bc@k=10", Answer::Holds), ("bn2-c@k=10", Answer::Undecided)]);
    assert_eq!(result.verdict, Answer::Undecided);
    assert_eq!(answer("bn2-c final > bc final for every k"), Answer::Undecided);
    assert_eq!(answer("k=10 final > k=1 final for every schedule.policy"), Answer::DoesNotHold);
    assert_eq!(answer("final > 0.5 for every policy, k"), Answer::Holds);
}

#[test]
fn others_are_all_that_the_selector_fits_but_the_curve_on_the_left() {
    let sides = |text: &str| -> Vec<(String, String)> {
        verdict(text, &grid()).pairs.into_iter().map(|pair| (pair.left, pair.right)).collect()
    };
    let pair = |left: &str, right: &str| (left.to_owned(), right.to_owned());
    assert_eq!(
        sides("bc@k=1 final > others final"),
        [pair("bc@k=1", "bc@k=10"), pair("bc@k=1", "bn2-c@k=1"), pair("bc@k=1", "bn2-c@k=10")]
    );
    assert_eq!(sides("bc@k=1 final > k=1 others final"), [pair("bc@k=1", "bn2-c@k=1")]);
    assert_eq!(
        sides("bn2-c final > others final for every k"),
        [pair("bn2-c@k=1", "bc@k=1"), pair("bn2-c@k=10", "bc@k=10")]
    );
    // One of the two comparisons with a contradiction decides.
    assert_eq!(answer("bn2-c@k=1 final > k=1 others final"), Answer::Holds);
    assert_eq!(answer("bc@k=1 final > others final"), Answer::DoesNotHold);
}

#[test]
fn several_values_make_a_comparison_for_each() {
    let result = verdict("bn2-c@k=1 final > bc@k=1|10 final", &grid());
    let rights: Vec<&str> = result.pairs.iter().map(|pair| pair.right.as_str()).collect();
    assert_eq!((rights, result.verdict), (vec!["bc@k=1", "bc@k=10"], Answer::Holds));
    let result = verdict("bc@k = 1 | 10 final < bn2-c@k=1 final", &grid());
    assert_eq!((result.pairs.len(), result.verdict), (2, Answer::Holds));
    let result = verdict("policy=bc|bn2-c@k=1 final > 0.5", &grid());
    assert_eq!((result.pairs.len(), result.verdict), (2, Answer::Holds));
    // A value that has a bar in it is itself.
    let mut curves = grid();
    curves[0].keys[0].1 = "a|b".into();
    assert_eq!(verdict("a|b@k=1 final > 0.5", &curves).pairs.len(), 1);
}

#[test]
fn a_factor_multiplies_its_side() {
    // 1.01·(0.90, 0.91, 0.92) − (0.93, 0.935, 0.945) has the mean −0.01756…
    let pair = verdict("1.01 * bc@k=1 final < bn2-c@k=1 final", &grid()).pairs.remove(0);
    let mean = (1.01 * 2.73 - 2.81) / 3.0;
    assert!((pair.difference.unwrap().mean - mean).abs() < 1e-12);
    assert_eq!((pair.left.as_str(), pair.right.as_str()), ("1.01 * bc@k=1", "bn2-c@k=1"));
    assert!((pair.left_value.unwrap().mean - 0.91).abs() < 1e-12, "the value is without the factor");
    assert_eq!(answer("1.05*bc@k=1 final > bn2-c@k=1 final"), Answer::Holds);
    let pair = verdict("bc@k=1 final > 0.5 * bn2-c@k=1 final", &grid()).pairs.remove(0);
    assert!((pair.difference.unwrap().mean - (2.73 - 0.5 * 2.81) / 3.0).abs() < 1e-12);
    assert_eq!((pair.verdict, pair.right.as_str()), (Answer::Holds, "0.5 * bn2-c@k=1"));
    // A run that did not reach the target ended at round 20; the others reached it then.
    let six = [curve("bc", "1", &[0.5; 6]), curve("bn2", "1", &[0.9; 6])];
    let result = verdict("bc rounds-to-0.8 > 1.0 * bn2 rounds-to-0.8", &six);
    assert_eq!(result.verdict, Answer::Holds);
    let pair = &result.pairs[0];
    assert_eq!(pair.p, Some(1.0 / 32.0));
    assert_eq!(
        pair.to_string(),
        "bc@k=1 against bn2@k=1: 1.000 of the rounds [1.000, 1.000] up to 20.0, median > 20.0 (0/6) [20.0, \
         open] against 20.0 [20.0, 20.0], lower at 0 of 6 seeds, higher at 6, exact p = 0.031: holds"
            .replace("bc@k=1 against bn2@k=1", &format!("{} against {}", pair.left, pair.right))
    );
    let result = verdict("bc rounds-to-0.8 > 1.01 * bn2 rounds-to-0.8", &six);
    assert_eq!(result.verdict, Answer::Undecided);
    assert!(result.pairs[0].note.as_ref().unwrap().contains("at 6 of 6 seeds one side ended before"));
}

#[test]
fn a_curve_can_be_held_against_a_number() {
    // 0.91 ± 0.0248.
    assert_eq!(answer("bc@k=1 final > 0.88"), Answer::Holds);
    assert_eq!(answer("bc@k=1 final > 0.9"), Answer::Undecided);
    assert_eq!(answer("bc@k=1 final>0.94"), Answer::DoesNotHold);
    // All three reached it at round 20, and none of them another one: three seeds cannot decide a cost.
    for text in ["bc@k=1 rounds-to-0.9 < 21", "bc@k=1 rounds-to-0.93 > 20"] {
        let result = verdict(text, &grid());
        assert_eq!(result.verdict, Answer::Undecided);
        assert_eq!(
            result.pairs[0].note.as_deref(),
            Some("3 seeds cannot decide a cost by the exact test, which needs 6 or more")
        );
    }
    let nine = [curve("bc", "1", &[0.9; 9])];
    assert_eq!(verdict("bc rounds-to-0.9 < 21", &nine).verdict, Answer::Holds);
    assert_eq!(verdict("bc rounds-to-0.9 > 21", &nine).verdict, Answer::DoesNotHold);
    // None of the nine reached it until round 20.
    assert_eq!(verdict("bc rounds-to-0.93 > 20", &nine).verdict, Answer::Holds);
    assert_eq!(verdict("bc rounds-to-0.93 > 21", &nine).verdict, Answer::Undecided);
}

#[test]
fn instability_and_targets_are_read_off_the_whole_curve() {
    let restless = |swing: f64| {
        let run = |seed: u64| {
            let wave = |i: usize| 0.8 + if i.is_multiple_of(2) { swing } else { 0.01 * seed as f64 };
            (seed, Metrics::new(&rows(&(0..9).map(wave).collect::<Vec<_>>()), 0.8))
        };
        (0..6).map(run).collect()
    };
    let k = |value: &str| vec![("schedule.k".to_owned(), value.to_owned())];
    let curves =
        [Measured { keys: k("1"), runs: restless(0.1) }, Measured { keys: k("10"), runs: restless(0.03) }];
    // The last third swings by |swing − 0.01·seed|: the differences are 0.07 four times, 0.05 and 0.03.
    let result = verdict("k=1 instability > k=10 instability", &curves);
    assert_eq!(result.verdict, Answer::Holds);
    assert!((result.pairs[0].difference.unwrap().mean - 0.06).abs() < 1e-12);
    // k = 1 reaches the goal at its first evaluation in all six seeds, k = 10 in none.
    let result = verdict("k=1 rounds-to-0.85 < k=10 rounds-to-0.85", &curves);
    assert_eq!((result.verdict, result.unit), (Answer::Holds, Unit::Rounds));
    let comparison = result.pairs[0].comparison.as_ref().unwrap();
    assert_eq!((comparison.sooner, comparison.later), (6, 0));
}

#[test]
fn a_curve_that_was_not_run_leaves_the_claim_open() {
    let mut curves = grid();
    curves[3].runs.clear();
    let result = verdict("k=1 final > k=10 final for every policy", &curves);
    assert_eq!(result.verdict, Answer::Undecided);
    assert!(result.pairs[1].note.as_ref().unwrap().contains("no seed is shared"));
}

#[test]
fn excluded_combinations_are_reported() {
    let mut curves = grid();
    curves.remove(3);
    let result = verdict("k=10 final < k=1 final for every policy", &curves);
    assert_eq!((result.verdict, result.pairs.len()), (Answer::Holds, 1));
    assert_eq!(result.left_out, ["bn2-c@k=1"]);
    curves.remove(1);
    let claim = Claim::parse("it", "bc final < bn2-c final for every k").unwrap();
    assert!(claim.check(Subject::Runs, &keys(&curves)).is_ok());
    curves[1].keys[1].1 = "5".into();
    let error = claim.check(Subject::Runs, &keys(&curves)).unwrap_err().to_string();
    assert!(error.contains("for no k are there curves on both sides"), "{error}");
}

#[test]
fn a_verdict_is_plain_json() {
    let mut curves = grid();
    curves.iter_mut().for_each(|curve| curve.runs.truncate(1));
    let result = verdict("bn2-c@k=1 final > bc@k=1 final", &curves);
    let json = serde_json::to_value(&result).unwrap();
    assert_eq!(json["verdict"], "undecided");
    assert_eq!((&json["unit"], &json["paired_by"]), (&"share".into(), &"seed".into()));
    assert_eq!(json["pairs"][0]["left"], "bn2-c@k=1");
    assert_eq!(json["pairs"][0]["seeds"], 1);
    assert_eq!(json["pairs"][0]["left_value"]["mean"], 0.93);
    assert_eq!(json["pairs"][0]["right_value"]["mean"], 0.9);
    assert!(json["pairs"][0]["difference"]["half_width"].is_null());
    assert!(json["pairs"][0]["note"].as_str().unwrap().contains("only one seed"));
}

#[test]
fn values_are_compared_as_numbers_where_they_are_numbers() {
    let mut curves = grid();
    for (curve, (key, value)) in curves.iter_mut().zip([
        ("learn.rate", "0.001"),
        ("learn.rate", "0.01"),
        ("learn.hidden", "[256, 128]"),
        ("radio.symbols", "100000"),
    ]) {
        curve.keys = vec![(key.into(), value.into())];
    }
    for selector in
        ["rate=1e-3", "learn.rate = 0.001", "hidden=[256,128]", "hidden=[256, 128]", "symbols=1e5"]
    {
        assert_eq!(verdict(&format!("{selector} final > 0.5"), &curves).verdict, Answer::Holds, "{selector}");
    }
}

#[test]
fn a_claim_on_an_unknown_curve_lists_the_curves_to_write() {
    let alone = [Measured { keys: Vec::new(), ..grid().remove(0) }];
    let check = |text: &str, measured: &[Measured]| {
        let claim = Claim::parse("it", text).unwrap();
        claim.check(Subject::Runs, &keys(measured)).unwrap_err().to_string()
    };
    assert_eq!(
        check("bn2 final > 0.5", &alone),
        "claims.\"it\": no sweep gives schedule.policy the value bn2; the experiment has one curve: write \
         the claim without a selector"
    );
    assert!(check("bn3@k=1 final > 0.5", &grid()).contains("write one of bc@k=1, bc@k=10, bn2-c@k=1"));
}

#[test]
fn a_claim_with_a_goal_compares_joint_conditions_and_runs_that_miss_them() {
    let run = |seed: u64, worst: [f64; 4]| {
        let mut rows = rows(&[0.5, 0.9, 0.9, 0.9]);
        for (row, worst) in rows.iter_mut().zip(worst) {
            row.metrics = vec![("worst_class".into(), worst)];
            row.total_seconds = Some(0.25 * row.round as f64);
        }
        (seed, Metrics::new(&rows, 0.8))
    };
    let key = |policy: &str| vec![("schedule.policy".to_owned(), policy.to_owned())];
    // bc holds both conditions from round 20 on; bn2 loses a class at round 30, and never holds them twice.
    let bc = Measured { keys: key("bc"), runs: (0..7).map(|seed| run(seed, [0.1, 0.7, 0.8, 0.8])).collect() };
    let bn2 =
        Measured { keys: key("bn2"), runs: (0..7).map(|seed| run(seed, [0.1, 0.7, 0.6, 0.7])).collect() };
    let goal = "seconds until accuracy >= 0.85 and worst-class >= 0.7 for 2 evaluations";
    let claim = Claim::with_goal("held", "bc < bn2", goal).unwrap();
    let both = [bc, bn2];
    claim.check(Subject::Runs, &keys(&both)).unwrap();
    let result = claim.verdict(Subject::Runs, &both, Correction::None).unwrap();
    assert_eq!((result.verdict, result.goal.as_deref()), (Answer::Holds, Some(goal)));
    // bn2 held both at the last evaluation, round 40: it may have reached the goal after round 30.
    assert_eq!(
        result.pairs[0].to_string(),
        "bc against bn2: 0.667 of the seconds [0.667, 0.667] up to 7.500 s, median 5.000 s [5.000 s, 5.000 \
         s] against > 7.500 s (0/7) [7.500 s, open], lower at 7 of 7 seeds, higher at 0, exact p = \
         0.016: holds"
    );
    let json = serde_json::to_value(&result).unwrap();
    assert_eq!(json["pairs"][0]["comparison"]["sooner"], 7);
    assert_eq!(json["pairs"][0]["right_median"]["reached"], 0);
    let needs = |units, fairness| claim.check_recorded(units, fairness).unwrap_err().to_string();
    assert!(needs(false, true).contains("set radio.bandwidth_hz"));
    assert!(needs(true, false).contains("worst-class is recorded with run.fairness = true only: set it"));
}

#[test]
fn a_claim_that_chance_would_decide_is_refused_with_the_reason() {
    let chance = crate::goals::chance_level(10, 1000);
    let at = |policy: &str, finals: &[f64]| {
        let mut curve = curve(policy, "1", finals);
        curve.runs = curve.runs.into_iter().map(|(seed, run)| (seed, run.with_chance(chance))).collect();
        curve
    };
    let curves = [at("bc", &[0.09, 0.091, 0.092]), at("bn2", &[0.11, 0.112, 0.113])];
    let result = verdict("bn2 final > bc final", &curves);
    assert_eq!((result.verdict, result.pairs[0].p), (Answer::Refused, None));
    assert_eq!(serde_json::to_value(result.verdict).unwrap(), "refused");
    let text = result.pairs[0].to_string();
    assert!(text.contains(": refused (at 3 of 3 seeds both sides ended at chance level"), "{text}");
    // A curve that learned is compared with one that did not.
    let learned = [at("bc", &[0.09, 0.091, 0.092]), at("bn2", &[0.8, 0.81, 0.82])];
    assert_eq!(verdict("bn2 final > bc final", &learned).verdict, Answer::Holds);
}

#[test]
fn a_single_curve_needs_no_selector() {
    let curves = [Measured { keys: Vec::new(), ..grid().remove(0) }];
    let result = verdict("final > 0.5 for every policy", &curves);
    assert_eq!((result.verdict, result.pairs[0].left.as_str()), (Answer::Holds, "the curve"));
}

#[test]
fn an_ambiguous_claim_is_an_error_that_names_the_missing_term() {
    assert_eq!(
        problem("bn2-c final > bc@k=1 final"),
        "claims.\"it\": \"bn2-c\" leaves schedule.k open (it fits bn2-c@k=1, bn2-c@k=10); add a term such as \
         k=1, or `for every k`"
    );
    assert!(problem("final > 0.5 for every k").contains("leaves schedule.policy open"));
    assert!(problem("bc@k=1 final > 0.5 for every k").contains("gives schedule.k a value already"));
    assert!(problem("k=1 final > bc@k=10 final for every policy").contains("a value already"));
}

#[test]
fn a_curve_that_does_not_exist_is_an_error_that_lists_those_that_do() {
    assert_eq!(
        problem("bn2c@k=1 final > 0.5"),
        "claims.\"it\": no curve has schedule.policy = bn2c; did you mean bn2-c? write one of bc@k=1, \
         bc@k=10, bn2-c@k=1, bn2-c@k=10"
    );
    assert!(problem("bc@k=2 final > 0.5").contains("no curve has schedule.k = 2; write one of bc@k=1"));
    assert!(
        problem("bc@rate=0.1 final > 0.5").contains("no sweep gives rate the value 0.1; write one of bc@k=1")
    );
    assert!(problem("bc@rat=1 final > 0.5").contains("\"rat\" is not a key; did you mean learn.rate?"));
    assert!(problem("bc@x=1 final > 0.5").contains("the curves differ in schedule.policy, schedule.k"));
    assert!(problem("bc@k=1 final > 0.5 for every polcy").contains("did you mean schedule.policy?"));
    assert!(problem("bc@bn2-c final > 0.5").contains("gives schedule.policy two values"));
    let mut curves = keys(&grid());
    curves.remove(3);
    let claim = Claim::parse("it", "bn2-c@k=10 final > 0.5").unwrap();
    assert!(
        claim
            .check(Subject::Runs, &curves)
            .unwrap_err()
            .to_string()
            .contains("no curve is bn2-c@k=10; write one of bc@k=1")
    );
    assert!(claim.check(Subject::Runs, &[]).unwrap_err().to_string().contains("there are no curves"));
}

#[test]
fn a_long_list_of_curves_is_cut() {
    let curves: Vec<CurveKeys> = (0..100).map(|k| vec![("schedule.k".into(), k.to_string())]).collect();
    let claim = Claim::parse("it", "k=200 final > 0.5").unwrap();
    let message = claim.check(Subject::Runs, &curves).unwrap_err().to_string();
    assert!(message.ends_with("k=10, k=11, 88 more"), "{message}");
}

#[test]
fn keys_with_the_same_last_part_must_be_written_whole() {
    let keys = |a: &str, b: &str| vec![("radio.k".into(), a.into()), ("schedule.k".into(), b.into())];
    let curves = [keys("1", "1"), keys("1", "2"), keys("2", "1")];
    let claim = |text| Claim::parse("it", text).unwrap().check(Subject::Runs, &curves);
    let message = claim("k=1 final > 0.5").unwrap_err().to_string();
    assert!(message.contains("\"k\" could be radio.k or schedule.k; write the whole key"), "{message}");
    assert!(claim("radio.k=1@schedule.k=2 final > radio.k=2 final").is_ok());
}

#[test]
fn errors_in_the_text_give_the_form_to_write() {
    for (text, part) in [
        ("", "must have one > or <"),
        ("bc final = 0.9", "must have one > or <"),
        ("bc final > 0.8 > 0.7", "must have one > or <"),
        ("bc final >= 0.9", "write > or <"),
        ("bc final >", "has nothing after the >"),
        ("> 0.9", "a side is a selector and a metric"),
        ("bc@k=1 > 0.9", "\"bc@k=1\" is not a metric; write one of final"),
        ("bc@k=1 finale > 0.9", "did you mean final?"),
        ("bc k=1 final > 0.9", "terms are joined by @"),
        ("bc@ final > 0.9", "terms are joined by @"),
        ("k= final > 0.9", "terms are joined by @"),
        ("bc@k=1 final > 90", "for 90 % write 0.9"),
        ("bc@k=1 loss > inf", "not a finite number"),
        ("bc@k=1 final > 90%", "\"90%\" is not a metric"),
        ("bc@k=1 final > bc@k=10 loss", "final and loss cannot be compared"),
        ("bc others final > 0.5", "`others` is allowed on the right only"),
        ("bc@k=1 final > bc@k=1 others final", "`others` leaves no curve to compare with"),
        ("bc@k=1 final > k=1|10@bc final", "compares bc@k=1 with itself"),
        ("1.1 * bc@k=1 final > bc@k=1 final", "compares bc@k=1 with itself"),
        ("bc@k=1|2 final > 0.5", "no curve has schedule.k = 2; write one of"),
        ("bc@k=1| final > 0.5", "several values have | between them"),
        ("bc@k=1|10 final > 0.5 for every k", "gives schedule.k a value already"),
        ("k=1|10 final > 0.5", "leaves schedule.policy open"),
        ("0 * bc@k=1 final > 0.5", "the factor 0 must be a finite number above 0"),
        ("inf * bc@k=1 final > 0.5", "the factor inf must be"),
        ("1.1 * > 0.5", "a side is a selector and a metric"),
        ("x * bc@k=1 final > 0.5", "terms are joined by @"),
        ("bc@k=1 bound < bc@k=10 bound", "bound is a number of the bound; runs have final"),
        ("bc@k=1 rounds-to-bound-3 < bc@k=10 rounds-to-0.5", "rounds-to-bound-3 is a number of the bound"),
        ("bc@k=1 final > 0.9 for all k", "after `for` comes `every`"),
        ("final > 0.9 for every", "needs names of keys"),
        ("final > 0.9 for every k,", "needs names of keys"),
        ("final > 0.9 for every k, k", "names k twice"),
        ("bc@k=1 final > bc@k=1 final", "compares bc@k=1 with itself"),
        ("final > final for every policy, k", "compares bc@k=1 with itself"),
    ] {
        assert!(problem(text).contains(part), "{text:?}: {}", problem(text));
    }
    assert!(problem(&"x".repeat(1_000_000)).contains("may have 1000 characters"));
}

/// Reads a claim and judges it by runs and by curves of the bound, with any result.
fn judge_anyhow(text: &str) {
    let Ok(claim) = Claim::parse("it", text) else { return };
    let _ = claim.verdict(Subject::Runs, &grid(), Correction::Holm);
    let asked: Vec<Metric> = claim.metrics().collect();
    let curve = |k: &str| {
        let keys = [("panel", "a"), ("k", k), ("tau", "3")].map(|(key, value)| (key.into(), value.into()));
        Measured { keys: keys.into(), runs: vec![(0, Metrics::of_bound(&[9.0, 6.0, 3.0], &asked))] }
    };
    let _ = claim.verdict(Subject::Bound { rounds: 2 }, &[curve("1"), curve("10")], Correction::Holm);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(
        text in prop_oneof![any::<String>(), "\\PC{0,80}", "[a-z0-9@=|*<>., -]{0,60}"],
    ) {
        judge_anyhow(&text);
    }

    #[test]
    fn no_text_that_looks_like_a_claim_makes_it_panic(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "bc", "k=1", "k=10", "@", "final", "area", "rounds-to-0.9", ">", "<", "0.9", "for", "every",
                "policy", ",", "k", "=", "é", "rate=1", "1.1", "*", "|", "others", "bound", "bound-at-3",
                "bound-at-",
                "rounds-to-bound-5", "panel=a", "tau=3", "-",
            ]),
            0..14,
        ),
        spaced: bool,
    ) {
        judge_anyhow(&words.join(if spaced { " " } else { "" }));
    }

    #[test]
    fn a_claim_that_was_read_reads_the_same_again(
        factor in proptest::option::of(0.01..100.0f64),
        k in 1u32..30,
        others: bool,
        metric in proptest::sample::select(vec!["bound", "bound-at-7", "rounds-to-bound-0.5"]),
    ) {
        let factor = factor.map_or_else(String::new, |factor| format!("{factor} * "));
        let right = if others { "a others".to_owned() } else { format!("a@k={k}|{}", k + 1) };
        let text = format!("{factor}a@k={k} {metric} < {right} {metric}");
        let claim = Claim::parse("it", &text).unwrap();
        prop_assert_eq!(&claim.text, &text);
        prop_assert_eq!(Claim::parse("it", &text.replace(' ', "  ")).unwrap().left, claim.left);
    }

    #[test]
    fn swapping_the_sides_and_the_sign_gives_the_same_verdict(
        finals in proptest::collection::vec((0u32..1000, 0u32..1000), 0..8),
        metric in proptest::sample::select(vec![
            "final", "best", "loss", "area", "rounds-to-0.5", "bits-to-0.5",
        ]),
        above: bool,
    ) {
        let share = |thousandths: u32| f64::from(thousandths) / 1000.0;
        let (left, right): (Vec<f64>, Vec<f64>) =
            finals.into_iter().map(|(left, right)| (share(left), share(right))).unzip();
        let curves = [curve("bc", "1", &left), curve("bn2", "1", &right)];
        let (order, reverse) = if above { (">", "<") } else { ("<", ">") };
        let one = verdict(&format!("bc {metric} {order} bn2 {metric}"), &curves);
        let other = verdict(&format!("bn2 {metric} {reverse} bc {metric}"), &curves);
        prop_assert_eq!(one.verdict, other.verdict);
    }
}

#[test]
fn holm_judges_the_comparisons_of_a_claim_as_one_family() {
    let claim = Claim::parse("it", "k=1 final > k=10 final for every policy").unwrap();
    let judged = |correction| claim.verdict(Subject::Runs, &grid(), correction).unwrap();
    let (plain, holm) = (judged(Correction::None), judged(Correction::Holm));
    assert_eq!(plain.pairs[0].adjusted_p, None);
    let p: Vec<f64> = plain.pairs.iter().map(|pair| pair.p.unwrap()).collect();
    // Differences .05, .04, .06: t = .05/(.01/√3) = 8.660254; P(|T₂| > t) = 1 − t/√(t² + 2).
    assert!((p[0] - (1.0 - 8.660_254_f64 / 77f64.sqrt())).abs() < 1e-7, "{p:?}");
    let smaller = p[0].min(p[1]);
    assert!((holm.pairs[0].adjusted_p.unwrap() - 2.0 * smaller).abs() < 1e-12);
    assert_eq!(holm.pairs[1].adjusted_p.unwrap(), p[1].max(2.0 * smaller));
    // One comparison is a family by itself.
    let alone = Claim::parse("it", "bc@k=1 final > bc@k=10 final").unwrap();
    let alone = alone.verdict(Subject::Runs, &grid(), Correction::Holm).unwrap();
    assert_eq!((alone.verdict, alone.pairs[0].adjusted_p), (Answer::Holds, None));
}

#[test]
fn all_claims_of_a_file_are_one_family_with_intervals_that_hold_together() {
    let text = "correction = \"holm\"\na = \"bc@k=1 final > bc@k=10 final\"\nb = \"bn2-c@k=1 final > 0.5\"";
    let claims = Claims::parse(toml::from_str(text).unwrap(), &toml::Table::new()).unwrap();
    let verdicts = claims.verdicts(Subject::Runs, &grid()).unwrap();
    let [a, b] = &verdicts[..] else { panic!("two claims") };
    let [a, b] = [a, b].map(|verdict| &verdict.pairs[0]);
    assert_eq!(a.adjusted_p, Some(a.p.unwrap().max(2.0 * b.p.unwrap())));
    assert_eq!(b.adjusted_p, Some(2.0 * b.p.unwrap()));
    // 0.05 ± t·0.01/√3 at the level 1 − 0.05/2: t₂ = √2·x/√(1 − x²) with x = 0.975.
    let half = 2f64.sqrt() * 0.975 / (1.0 - 0.975f64 * 0.975).sqrt() * 0.01 / 3f64.sqrt();
    let [low, high] = a.corrected.unwrap();
    assert!((low - (0.05 - half)).abs() < 1e-9 && (high - (0.05 + half)).abs() < 1e-9, "{low} {high} {half}");
    assert!(a.to_string().contains("corrected [+1.42, +8.58]"), "{a}");
    // Alone, a claim has no correction.
    let alone = claims.list[0].verdict(Subject::Runs, &grid(), Correction::Holm).unwrap();
    assert_eq!((alone.pairs[0].adjusted_p, alone.pairs[0].corrected), (None, None));
}

#[test]
fn holm_leaves_a_chance_result_among_many_comparisons_undecided() {
    // .04, .06, .08: t = .06/(.02/√3) = 5.196 with two degrees of freedom, p = 1 − t/√(t² + 2) = 0.0351; six
    // times that is above 5 %.
    let left: Vec<Measured> =
        (1..=6).map(|k| curve("bc", &k.to_string(), &[0.60, 0.60 + 0.02, 0.60 + 0.04])).collect();
    let claim = Claim::parse("it", "bc final > 0.56 for every k").unwrap();
    let judged = |correction| claim.verdict(Subject::Runs, &left, correction).unwrap();
    assert_eq!(judged(Correction::None).verdict, Answer::Holds);
    let holm = judged(Correction::Holm);
    assert_eq!(holm.verdict, Answer::Undecided);
    let note = holm.pairs[0].note.as_deref().unwrap();
    assert!(note.starts_with("holds by itself, but its p-value adjusted for 6 comparisons is 0."), "{note}");
}

#[test]
fn more_pairs_than_memory_could_hold_are_refused() {
    let key = |k: usize| vec![("schedule.k".to_owned(), k.to_string())];
    let curves: Vec<CurveKeys> = (0..10_000).map(key).collect();
    let check = |count: usize| {
        let values: Vec<String> = (0..count).map(|k| k.to_string()).collect();
        let claim = Claim::parse("x", &format!("k={} final > others final", values.join("|"))).unwrap();
        claim.check(Subject::Runs, &curves)
    };
    assert_eq!(check(100), Ok(()));
    assert!(check(101).unwrap_err().to_string().contains("more than 1000000 pairs"));
}
