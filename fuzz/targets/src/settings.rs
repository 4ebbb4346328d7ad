//! Any settings of an experiment (`--set KEY=VALUE`, one per line) give an experiment that is written as
//! a file with the same meaning, or an error.

use super::experiment::{check, check_bound, check_theorem};
use fedlink_study::experiment::Experiment;
use fedlink_study::theory::{BoundExperiment, TheoremExperiment};

/// The experiments: runs with a sweep, an exception, a rule and a claim; a figure of the bound; a check
/// of the theorem.
const TEXTS: [&str; 3] = [
    r#"
[data]
devices = 8
[sweep]
"schedule.policy" = ["bc", "bn2-c"]
"schedule.k" = [1, 2]
[[exclude]]
"schedule.policy" = "bc"
"schedule.k" = 2
[[override]]
when = { "schedule.k" = 2 }
set = { "learn.local_steps" = 2 }
[claims]
"a" = "bn2-c@k=1 final > bc@k=1 final"
[quick]
"run.rounds" = 2
"#,
    "[bound]\nk = [1, 3]\nrounds = 20\n[claims]\n\"a\" = \"k=1 bound < k=3 bound\"\n",
    r#"
[theorem]
tau = 2
rounds = 10
seed = 1
schedules = ["uniform"]
[quadratic]
devices = 4
k = 2
dim = 5
mu = 1.0
l = 2.0
spread = 1.0
gradient_noise = 0.1
d0 = 1.0
symbols = 100
eta = "0.1"
seeds = 2
"#,
];

thread_local! {
    static SYSTEM: Experiment = Experiment::parse("fuzz.toml", TEXTS[0]).expect("it is valid");
    static BOUND: BoundExperiment = BoundExperiment::parse("fuzz.toml", TEXTS[1]).expect("it is valid");
    static THEOREM: TheoremExperiment = TheoremExperiment::parse("fuzz.toml", TEXTS[2]).expect("it is valid");
}

/// The most combinations of lists. More take long, up to the most that are allowed: with those the test
/// of this crate runs the target `experiment` once.
const MAX_COMBINATIONS: usize = 256;

/// An upper bound on the combinations of the lists set in `text`, one per line.
fn combinations(text: &str) -> usize {
    let values = |line: &str| line.split_once('=').map_or(0, |(_, value)| value.matches(',').count()) + 1;
    text.lines().map(values).fold(1, usize::saturating_mul)
}

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if combinations(text) > MAX_COMBINATIONS {
        return;
    }
    let mut lines = text.lines();
    let kind = lines.next().unwrap_or_default();
    let settings: Vec<(&str, &str)> = lines.map_while(|line| line.split_once('=')).collect();
    if settings.len() + 1 != text.lines().count() {
        return;
    }
    let mut settings = settings.into_iter().map(|(key, value)| (key.trim(), value.trim()));
    match kind {
        "0" => {
            let mut experiment = SYSTEM.with(Clone::clone);
            let is_set = settings.all(|(key, value)| experiment.set(key, value).is_ok());
            // A value of the right type may still be out of range: then the expansion fails.
            if is_set && experiment.clone().expand(&fedlink::parts::Parts::default()).is_ok() {
                check(experiment);
            }
        }
        "1" => {
            let mut experiment = BOUND.with(Clone::clone);
            if settings.all(|(key, value)| experiment.set(key, value).is_ok()) {
                check_bound(&experiment);
            }
        }
        "2" => {
            let mut experiment = THEOREM.with(Clone::clone);
            if settings.all(|(key, value)| experiment.set(key, value).is_ok()) {
                check_theorem(&experiment);
            }
        }
        _ => {}
    }
}
