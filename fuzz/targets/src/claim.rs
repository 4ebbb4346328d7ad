//! Any text is a claim, which can be judged for any curves or does not fit them, or an error.

use fedlink::record::Row;
use fedlink_study::claims::{Claim, Correction, CurveKeys, Expected, Measured, Subject};
use fedlink_study::example;
use fedlink_study::goals::{Goal, Metrics};
use std::cell::LazyCell;

/// Curves of two keys, with a value in brackets, one with a bar, and one that is not run.
fn curves(keys: [&str; 2], values: [&[&str]; 2]) -> Vec<CurveKeys> {
    let of = |first: &&str, second: &&str| {
        vec![(keys[0].into(), (*first).into()), (keys[1].into(), (*second).into())]
    };
    values[0].iter().flat_map(|first| values[1].iter().map(move |second| of(first, second))).collect()
}

fn measured(keys: Vec<CurveKeys>, metrics: &dyn Fn(u64) -> Metrics) -> Vec<Measured> {
    let runs = |seeds: u64| (0..seeds).map(|seed| (seed, metrics(seed))).collect();
    keys.into_iter().enumerate().map(|(i, keys)| Measured { keys, runs: runs(i as u64 % 4) }).collect()
}

fn rows(seed: u64) -> Vec<Row> {
    example::curve("bc", seed + 1, 3).runs.pop().map(|run| run.rows).unwrap_or_default()
}

thread_local! {
    static RUNS: LazyCell<(Vec<CurveKeys>, Vec<Measured>)> = const { LazyCell::new(|| {
        let keys = curves(["schedule.policy", "learn.mlp.hidden"], [&["bc", "bn2-c", "a|b"], &["[256, \
            128]", "[8]"]]);
        (keys.clone(), measured(keys, &|seed| Metrics::new(&rows(seed), 0.8)))
    }) };
    static BOUND: LazyCell<Vec<CurveKeys>> =
        const { LazyCell::new(|| curves(["panel", "k"], [&["even", "uneven"], &["1", "3", "5"]])) };
}

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Expected::parse(text, 0.5)
        .and_then(|expected| RUNS.with(|runs| expected.compare(&runs.1, |_, _| None)));
    if let Ok(goal) = text.parse::<Goal>() {
        assert_eq!(goal.to_string().parse::<Goal>().as_ref(), Ok(&goal));
        RUNS.with(|both| {
            both.1.iter().flat_map(|curve| &curve.runs).for_each(|(_, run)| drop(run.read(&goal)));
        });
    }
    let Ok(claim) = Claim::parse("fuzz", text) else { return };
    assert_eq!(Claim::parse("fuzz", &claim.text).as_ref(), Ok(&claim));
    RUNS.with(|both| {
        let (keys, runs) = &**both;
        let fits = claim.check(Subject::Runs, keys);
        let verdict = claim.verdict(Subject::Runs, runs, Correction::Holm);
        assert!(verdict.as_ref().map_or(true, |verdict| !verdict.pairs.is_empty()));
        assert_eq!(fits.err(), verdict.err());
    });
    BOUND.with(|keys| {
        let subject = Subject::Bound { rounds: 20 };
        let asked: Vec<_> = claim.metrics().collect();
        let losses: Vec<f64> = (0..=20).map(|t| 100.0 / f64::from(t + 1)).collect();
        let metrics = Metrics::of_bound(&losses, &asked);
        let measured = measured(keys.to_vec(), &|_| metrics.clone());
        let verdict = claim.verdict(subject, &measured, Correction::None);
        assert_eq!(claim.check(subject, keys).err(), verdict.err());
    });
}
