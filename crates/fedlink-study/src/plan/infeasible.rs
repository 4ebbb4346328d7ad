//! Why nothing reaches a goal, and what would make it feasible.

use super::bench::RunBench;
use super::request::Request;
use crate::race::{Arm, Finished};
use crate::table::number;
use std::collections::BTreeMap;

/// Why nothing reaches the goal, and what would.
pub(super) fn infeasible(bench: &RunBench, finished: Option<&Finished>, request: &Request) -> Vec<String> {
    let Some(finished) = finished else {
        let mut counts: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        for candidate in &bench.candidates {
            if let (Some(kind), Some(reason)) = (candidate.screened.kind, &candidate.screened.out) {
                counts.entry(kind).or_insert((0, reason)).0 += 1;
            }
        }
        return counts
            .into_iter()
            .map(|(kind, (count, reason))| format!("{count} settings are out ({kind}), such as: {reason}"))
            .collect();
    };
    let until = &request.goals[0];
    let mut lines = Vec::new();
    let target = bench.scenario().run.target;
    // The run that comes closest to the whole goal: the best of the worst evaluations in a row.
    for (index, condition) in until.conditions.iter().enumerate() {
        let mut best: Option<(f64, Arm)> = None;
        for &arm in &finished.finalists {
            for seed in finished.fresh.clone() {
                let Some(run) = bench.results.get(&(arm, seed)) else { continue };
                let values: Vec<f64> = run.rows.iter().filter_map(|row| condition.value(row)).collect();
                let rises = condition.rises();
                let held = values.windows(until.evaluations as usize).filter_map(|window| {
                    window.iter().copied().reduce(|a, b| if rises == (a < b) { a } else { b })
                });
                let reached = held.reduce(|a, b| if rises == (a > b) { a } else { b });
                if let Some(value) = reached
                    && best.is_none_or(|(other, _)| if rises { value > other } else { value < other })
                {
                    best = Some((value, arm));
                }
            }
        }
        let Some((value, arm)) = best else { continue };
        let level = condition.number(target);
        let label = bench.label(arm);
        let gap = number((level - value).abs());
        let holds = if condition.rises() { value >= level } else { value <= level };
        lines.push(if holds {
            format!("{condition} is reached alone, by {label}: {}", number(value))
        } else {
            format!(
                "{condition} is missed by {gap}: the best is {} by {label}; a goal at {} would be feasible",
                number(value),
                number(value)
            )
        });
        let _ = index;
    }
    lines.push(format!(
        "every run ended after {} rounds; raise run.rounds if the curves still rise",
        bench.scenario().run.rounds
    ));
    if !request.constraints.is_empty() {
        let limits: Vec<String> = request.constraints.iter().map(ToString::to_string).collect();
        lines.push(format!(
            "a run that breaks {} counts as one that does not reach the goal",
            limits.join(" or ")
        ));
    }
    lines
}
