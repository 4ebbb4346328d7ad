//! The answer as plain data: `decision.json`, the page, the text and Python are made of it.

use super::screen::Screened;
use crate::goals::{Goal, Median, Reading, Until};
use crate::table::number;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The answer to a request.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Answer {
    /// `fedlink plan`.
    pub format: String,
    /// The version of fedlink.
    pub version: String,
    /// The name of the scenario.
    pub scenario: String,
    /// The goals; the first one chooses.
    pub goals: Vec<String>,
    /// The limits.
    pub constraints: Vec<String>,
    /// The budget.
    pub budget: String,
    /// Full runs that were spent; shorter runs count as their share of the rounds.
    pub spent_runs: f64,
    /// Wall-clock seconds of all processes.
    pub seconds: f64,
    /// The probability with which the best candidate may be dropped by a test.
    pub error_rate: f64,
    /// The keys that were searched, with their values.
    pub searched: BTreeMap<String, Vec<Value>>,
    /// Settings in the space.
    pub points: f64,
    /// Settings that the link budget has judged.
    pub screened: usize,
    /// Of those, the ones that it rules out, by the kind of reason.
    pub ruled_out: BTreeMap<String, usize>,
    /// The stages with their numbers.
    pub stages: Vec<Stage>,
    /// The seeds of the race, of the tuning and of the confirmation.
    pub seeds: BTreeMap<String, String>,
    /// The recommended settings; none if no finalist reaches the first goal at half of the fresh seeds.
    pub recommended: Option<Priced>,
    /// The finalists with their costs on fresh seeds, the best by the race first.
    pub finalists: Vec<Priced>,
    /// The finalists that the fresh seeds cannot tell from the recommended one.
    pub ties: Vec<Tie>,
    /// The labels of the finalists that no other one beats in all goals; empty for one goal.
    pub pareto: Vec<String>,
    /// The conditions of the first goal: which one binds, and what less of it would give.
    pub conditions: Vec<ConditionFact>,
    /// The worth of every setting: the best candidate with it against the recommended one.
    pub knobs: Vec<KnobFact>,
    /// The recommended settings where an assumption is off.
    pub sensitivities: Vec<SensitivityFact>,
    /// Groups of devices under the recommended settings.
    pub groups: Vec<GroupFact>,
    /// The accuracy on each class at the end, mean over the fresh seeds.
    pub classes: Vec<f64>,
    /// Seconds of a mean round by phase: down, train, report, up; empty without units.
    pub phases_s: Vec<f64>,
    /// The deadline of a round.
    pub deadline_s: Option<f64>,
    /// Rounds until the first battery was empty in the fresh runs that had one; the fewest of the seeds.
    pub first_empty: Option<u64>,
    /// Joules of the device that spent the most until the goal, the median over the fresh seeds.
    pub worst_device_joules: Option<f64>,
    /// Why classes of rivals lost, a line each.
    pub lost: Vec<Lost>,
    /// Why nothing reaches the goal, and what would make it feasible; empty if something does.
    pub infeasible: Vec<String>,
    /// The questions that more budget would decide.
    pub next: Vec<String>,
    /// The limits of the search, and the assumptions.
    pub not_covered: Vec<String>,
    /// Every candidate.
    pub candidates: Vec<CandidateRow>,
    /// Mean accuracy of the finalists on the fresh seeds, by the cost of the first goal.
    pub curves: Vec<CurveFact>,
}

/// A stage with its numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Stage {
    /// Its name.
    pub stage: String,
    /// Its numbers.
    pub text: String,
}

/// A cost over seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The goal.
    pub goal: String,
    /// `s`, `J` or the name of the cost.
    pub unit: String,
    /// The median with its 95 % interval, censored runs counted as larger.
    #[serde(flatten)]
    pub median: Median,
    /// As people read it: `36.8 s [29.0, 45.0], reached 12/12`.
    pub text: String,
}

impl Cost {
    /// The cost of readings; none if one is missing.
    pub(super) fn of(until: &Until, readings: &[Reading]) -> Option<Self> {
        let median = Median::of(readings)?;
        let unit = match until.cost.name() {
            "seconds" => "s",
            "joules" | "worst-device-joules" => "J",
            name => name,
        };
        let value = match (median.value, median.beyond) {
            (Some(value), _) => number(value),
            (None, beyond) => format!("> {}", number(beyond.unwrap_or(0.0))),
        };
        let interval = median.interval(number);
        let text = format!("{value} {unit} {interval}, reached {}/{}", median.reached, median.of);
        let text = text.replace(" ,", ",");
        Some(Self { goal: Goal::Until(until.clone()).to_string(), unit: unit.into(), median, text })
    }
}

/// Settings with their costs on fresh seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Priced {
    /// The settings in words.
    pub label: String,
    /// The settings.
    pub settings: BTreeMap<String, Value>,
    /// The cost of each goal.
    pub costs: Vec<Cost>,
    /// Mean accuracy at the end.
    pub accuracy: f64,
    /// Mean accuracy of the worst class at the end.
    pub worst_class: Option<f64>,
    /// Mean seconds of a round.
    pub round_s: Option<f64>,
    /// Mean joules of all devices in a round.
    pub round_j: Option<f64>,
    /// Share of late devices, by the link budget.
    pub late: f64,
}

/// A finalist that cannot be told from the recommended one.
#[derive(Clone, Debug, Serialize)]
pub struct Tie {
    /// Its settings in words.
    pub label: String,
    /// Its cost over that of the recommended one, with the 95 % interval.
    pub ratio: Option<f64>,
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The two-sided p-value of the paired test on the fresh seeds.
    pub p: f64,
    /// The number of seeds that would distinguish them, if the ratio is as measured.
    pub seeds_needed: Option<u64>,
}

/// A condition of the first goal.
#[derive(Clone, Debug, Serialize)]
pub struct ConditionFact {
    /// The condition.
    pub condition: String,
    /// The cost of the recommended settings until this condition alone.
    pub alone: Option<Cost>,
    /// Whether the goal costs as much as this condition alone at most seeds.
    pub binds: bool,
    /// The level of a relaxed condition, and what the goal would cost then.
    pub relaxed: Option<String>,
    /// The settings that would be the best then, if they are others.
    pub relaxed_best: Option<String>,
    /// Their cost.
    pub relaxed_cost: Option<Cost>,
}

/// The worth of a setting.
#[derive(Clone, Debug, Serialize)]
pub struct KnobFact {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// Whether the recommended settings have it.
    pub is_chosen: bool,
    /// The best candidate with it.
    pub best: String,
    /// Its cost over that of the recommended one on the seeds and rounds that both have.
    pub ratio: Option<f64>,
    /// The seeds of the comparison.
    pub seeds: usize,
    /// The share of the way to the goal up to which the comparison counts; 1 is the goal.
    pub share: f64,
}

/// The recommended settings under another assumption.
#[derive(Clone, Debug, Serialize)]
pub struct SensitivityFact {
    /// The change.
    pub change: String,
    /// The keys that it sets.
    pub settings: BTreeMap<String, Value>,
    /// The cost of the first goal then.
    pub cost: Option<Cost>,
    /// Its ratio to the cost without the change, paired by seed.
    pub ratio: Option<f64>,
    /// The lower end of its 95 % interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Share of late devices then, by the link budget.
    pub late: f64,
    /// Why it was not run, if it was not.
    pub problem: Option<String>,
}

/// A group of devices.
#[derive(Clone, Debug, Serialize)]
pub struct GroupFact {
    /// Its name.
    pub name: String,
    /// Its devices.
    pub devices: usize,
    /// Share of the uploads.
    pub uploads: f64,
    /// Share of the airtime, by the link budget.
    pub airtime: f64,
    /// Mean joules of one of its devices in a run.
    pub joules: Option<f64>,
    /// Mean accuracy of its devices on their own mix of classes at the end.
    pub accuracy: Option<f64>,
}

/// Why a class of rivals lost.
#[derive(Clone, Debug, Serialize)]
pub struct Lost {
    /// The class: a value of a key of names.
    pub class: String,
    /// Its candidates.
    pub candidates: usize,
    /// The one that stayed longest.
    pub best: String,
    /// The stage that it left, and why.
    pub reason: String,
}

/// A candidate.
#[derive(Clone, Debug, Serialize)]
pub struct CandidateRow {
    /// Its settings in words.
    pub label: String,
    /// Its settings.
    pub settings: BTreeMap<String, Value>,
    /// The link budget.
    pub screened: Screened,
    /// The stage that it left; `confirm` for a finalist.
    pub stage: String,
    /// Why it left.
    pub reason: String,
    /// Whether a test or the link budget rules it out.
    pub proven: bool,
    /// Race seeds that it has run.
    pub seeds: usize,
    /// The rounds of its longest run.
    pub rounds: u64,
    /// The median cost of each goal on the seeds of the race.
    pub costs: Vec<Option<Cost>>,
    /// Its best accuracy on the seeds of the race.
    pub accuracy: Option<f64>,
    /// The best worst class then.
    pub worst_class: Option<f64>,
}

/// The accuracy of a finalist.
#[derive(Clone, Debug, Serialize)]
pub struct CurveFact {
    /// Its settings in words.
    pub label: String,
    /// The mean cost at each evaluation.
    pub cost: Vec<f64>,
    /// The mean accuracy then.
    pub accuracy: Vec<f64>,
    /// The mean accuracy of the worst class then; empty without `run.fairness`.
    pub worst_class: Vec<f64>,
}

/// Values of TOML as JSON.
pub(super) fn json(settings: &[(String, toml::Value)]) -> BTreeMap<String, Value> {
    let value = |value: &toml::Value| serde_json::to_value(value).unwrap_or(Value::Null);
    settings.iter().map(|(key, own)| (key.clone(), value(own))).collect()
}
