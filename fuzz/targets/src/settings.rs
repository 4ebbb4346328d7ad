//! Any settings of an experiment (`--set KEY=VALUE`, one on each line) give an experiment that is written as
//! a file that says the same, or an error.

use super::experiment::check;
use fedlink_study::experiment::AnyExperiment;

/// What is set: runs with a sweep, an exception, a rule and a claim; a figure of the bound; a check of the
/// theorem.
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
    static EXPERIMENTS: Vec<AnyExperiment> =
        TEXTS.iter().map(|text| AnyExperiment::parse("fuzz.toml", text).expect("it is valid")).collect();
}

/// Combinations that lists may give. More take their time, up to the most that are allowed: with those the
/// test of this crate runs the target `experiment` once.
const MAX_COMBINATIONS: usize = 256;

/// At most so many combinations have the lists that are set in `text`, one on each line.
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
    let Some(kind) = lines.next().and_then(|line| line.parse::<usize>().ok()) else { return };
    let Some(mut experiment) = EXPERIMENTS.with(|all| all.get(kind).cloned()) else { return };
    for line in lines {
        let Some((key, value)) = line.split_once('=') else { return };
        if experiment.set(key.trim(), value.trim()).is_err() {
            return;
        }
    }
    // A value of the right type may still be out of range, which whoever runs the experiment is told.
    let valid = match &experiment {
        AnyExperiment::Simulation(experiment) => experiment.curves().is_ok(),
        AnyExperiment::Bound(_) | AnyExperiment::Theorem(_) => true,
    };
    if valid {
        check(&experiment);
    }
}
