//! `summary.json`: every curve in numbers.

use super::results::{CurveResult, RunResult, Status};
use crate::error::Error;
use crate::goals::{Cost, Goal, Median};
use crate::statistics::Estimate;
use fedlink::record::Outcome;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// `summary.json`.
pub fn json(results: &[CurveResult]) -> Result<String, Error> {
    let summaries: Vec<CurveSummary> = results.iter().map(CurveSummary).collect();
    Ok(serde_json::to_string_pretty(&summaries)? + "\n")
}

/// A curve in `summary.json`: means over its seeds with 95 % intervals, and every run.
struct CurveSummary<'a>(&'a CurveResult);

impl Serialize for CurveSummary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let curve = self.0;
        let target = curve.spec.run.target;
        let of_outcomes = |value: fn(&Outcome) -> Option<f64>| curve.over_seeds(|run| value(&run.outcome));
        let to_target = |cost| curve.median(&Goal::target(cost));
        let used = curve.device_use();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("curve", &curve.label)?;
        map.serialize_entry("policy", &curve.spec.schedule.policy)?;
        map.serialize_entry("k", &curve.spec.schedule.k)?;
        let swept = curve.keys.iter().map(|(key, value)| (key.as_str(), typed(value)));
        map.serialize_entry("swept", &swept.collect::<BTreeMap<&str, Value>>())?;
        map.serialize_entry("status", curve.status().name())?;
        map.serialize_entry("rounds", &curve.runs.iter().map(|run| run.outcome.rounds).min().unwrap_or(0))?;
        map.serialize_entry("seeds", &curve.runs.len())?;
        let unfinished: Vec<u64> = curve.unfinished.iter().map(|run| run.seed).collect();
        map.serialize_entry("unfinished_seeds", &unfinished)?;
        map.serialize_entry("shortened", &curve.shortened)?;
        map.serialize_entry("target", &target)?;
        estimate(&mut map, "final_accuracy", curve.at_the_end(|run| run.outcome.final_accuracy))?;
        estimate(&mut map, "best_accuracy", curve.at_the_end(|run| run.outcome.best_accuracy))?;
        let final_loss = curve.at_the_end(|run| run.outcome.final_loss);
        map.serialize_entry("final_loss", &final_loss.map(|loss| loss.mean))?;
        estimate(&mut map, "worst_class", curve.worst_class())?;
        map.serialize_entry("trainings_per_round", &curve.trainings_per_round())?;
        let rounds = to_target(Cost::Rounds);
        map.serialize_entry("reached_target", &rounds.as_ref().map_or(0, |median| median.reached))?;
        median(&mut map, "rounds_to_target", rounds)?;
        median(&mut map, "bits_to_target", to_target(Cost::Bits))?;
        if curve.has_costs() {
            median(&mut map, "seconds_to_target", to_target(Cost::Seconds))?;
            median(&mut map, "joules_to_target", to_target(Cost::Joules))?;
            estimate(&mut map, "total_seconds", of_outcomes(Outcome::seconds))?;
            estimate(&mut map, "total_joules", of_outcomes(Outcome::joules))?;
            estimate(&mut map, "worst_device_joules", of_outcomes(Outcome::worst_device_joules))?;
        }
        if !curve.goals.is_empty() {
            let value = |(name, goal): &(String, Goal)| (name.clone(), GoalSummary::new(curve, goal));
            map.serialize_entry("goals", &curve.goals.iter().map(value).collect::<BTreeMap<_, _>>())?;
        }
        estimate(&mut map, "area_under_curve", curve.at_the_end(RunResult::area))?;
        estimate(&mut map, "instability", curve.at_the_end(RunResult::instability))?;
        map.serialize_entry("bits_per_round", &curve.mean_of(|outcome| outcome.bits_per_round))?;
        map.serialize_entry("mean_q", &curve.mean_of(|outcome| outcome.mean_q))?;
        let silent = curve.mean_of(|outcome| outcome.silent_transmissions as f64);
        map.serialize_entry("silent_transmissions", &silent)?;
        map.serialize_entry("wire_bits_per_round", &curve.mean(|outcome| outcome.wire_bits_per_round))?;
        let undecodable = curve.mean_of(|outcome| outcome.undecodable_transmissions as f64);
        map.serialize_entry("undecodable_transmissions", &undecodable)?;
        let flagged = curve.mean_of(|outcome| outcome.flagged_transmissions as f64);
        map.serialize_entry("flagged_transmissions", &flagged)?;
        let outages = curve.mean_of(|outcome| outcome.outages as f64);
        let late = curve.mean_of(|outcome| outcome.late as f64);
        if curve.has_costs() || outages > 0.0 || late > 0.0 {
            map.serialize_entry("outages", &outages)?;
            map.serialize_entry("late", &late)?;
        }
        for (name, round) in [
            ("first_empty", (|outcome| outcome.first_empty) as fn(&Outcome) -> Option<u64>),
            ("half_empty", |outcome| outcome.half_empty),
            ("last_empty", |outcome| outcome.last_empty),
        ] {
            // The round of each run, none where its batteries last.
            let rounds: Vec<Option<u64>> = curve.runs.iter().map(|run| round(&run.outcome)).collect();
            if curve.runs.iter().any(|run| run.outcome.empty.is_some()) {
                map.serialize_entry(name, &rounds)?;
            }
        }
        map.serialize_entry("excluded_devices", &curve.mean_of(|outcome| outcome.excluded.len() as f64))?;
        if let Some(epsilon) = curve.epsilon() {
            map.serialize_entry("epsilon", &epsilon)?;
        }
        map.serialize_entry("budget_used", &curve.mean(|outcome| outcome.budget_used))?;
        map.serialize_entry("at_highest_level", &curve.mean(|outcome| outcome.at_highest_level))?;
        estimate(&mut map, "worst_average_power", Some(used.highest_power))?;
        estimate(&mut map, "evenness", Some(used.evenness))?;
        map.serialize_entry("heterogeneity", &curve.heterogeneity)?;
        map.serialize_entry("digest", &curve.digest())?;
        map.serialize_entry("runs", &curve.runs.iter().map(RunSummary::new).collect::<Vec<_>>())?;
        map.end()
    }
}

/// Writes the mean as `name` and the ends of the 95 % interval as `name_interval`. The interval of a single
/// seed is null.
fn estimate<M: SerializeMap>(map: &mut M, name: &str, estimate: Option<Estimate>) -> Result<(), M::Error> {
    let known = estimate.filter(|estimate| estimate.half_width.is_finite());
    let ends = known.map(|Estimate { mean, half_width }| [mean - half_width, mean + half_width]);
    map.serialize_entry(name, &estimate.map(|estimate| estimate.mean))?;
    map.serialize_entry(&format!("{name}_interval"), &ends)
}

/// Writes the median as `name` and the ends of its interval as `name_interval`; null where they are unknown.
fn median<M: SerializeMap>(map: &mut M, name: &str, median: Option<Median>) -> Result<(), M::Error> {
    map.serialize_entry(name, &median.as_ref().and_then(|median| median.value))?;
    let ends = median.filter(|median| median.low.is_some()).map(|median| [median.low, median.high]);
    map.serialize_entry(&format!("{name}_interval"), &ends)
}

/// A curve's value of a goal.
#[derive(Serialize)]
struct GoalSummary {
    goal: String,
    /// Of a cost.
    #[serde(flatten)]
    median: Option<Median>,
    /// Of a metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<Estimate>,
}

impl GoalSummary {
    fn new(curve: &CurveResult, goal: &Goal) -> Self {
        let is_cost = goal.metric().is_none();
        let median = is_cost.then(|| curve.median(goal)).flatten();
        let mean = (!is_cost).then(|| curve.estimate(goal)).flatten();
        Self { goal: goal.to_string(), median, mean }
    }
}

#[derive(Serialize)]
struct RunSummary<'a> {
    seed: u64,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

impl<'a> RunSummary<'a> {
    fn new(run: &'a RunResult) -> Self {
        let message = match &run.status {
            Status::Diverged(message) => Some(message.as_str()),
            _ => None,
        };
        Self { seed: run.seed, status: run.status.name(), message, outcome: &run.outcome }
    }
}

/// A swept value as JSON: a number, a list, a truth value, and text for anything else.
fn typed(written: &str) -> Value {
    serde_json::from_str(written).unwrap_or_else(|_| Value::from(written))
}
