//! Candidates by their costs: the order of a rung, and the test that drops one.

use super::bench::{LEVELS, Observed};
use crate::goals::{Paired, Reading, paired};
use std::cmp::Ordering;

/// The costs of an arm at the pairs (scenario and seed) of a rung, in one order for all arms.
pub type Costs<'a> = Vec<&'a Observed>;

/// The arms of a rung in the order of a goal.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// The index in [`LEVELS`] of the goal that ranks them.
    pub level: usize,
    /// Their indices, the best first.
    pub order: Vec<usize>,
    /// The score of each arm: geometric mean cost, see [`par2`].
    pub scores: Vec<f64>,
}

/// The geometric mean of costs in which a run that did not reach the goal counts as twice `end`, the largest
/// cost that was seen: the penalized average run time of algorithm configuration (PAR2; F. Hutter et al.,
/// JAIR 36, 2009), on the logarithmic scale.
///
/// ```
/// use fedlink_study::goals::Reading;
/// use fedlink_study::race::par2;
/// let score = par2([&Reading::Known(2.0), &Reading::Beyond(1.0)].into_iter(), 4.0);
/// assert!((score - 4.0).abs() < 1e-12); // √(2·8)
/// ```
pub fn par2<'a>(readings: impl Iterator<Item = &'a Reading>, end: f64) -> f64 {
    let (mut sum, mut count) = (0.0, 0usize);
    for reading in readings {
        let cost = match reading {
            Reading::Known(cost) => *cost,
            Reading::Beyond(_) | Reading::Missing(_) => 2.0 * end,
        };
        sum += libm::log(cost.max(f64::MIN_POSITIVE));
        count += 1;
    }
    if count == 0 { f64::INFINITY } else { libm::exp(sum / count as f64) }
}

fn reading(observed: &Observed, goal: usize, level: usize) -> Option<&Reading> {
    observed.goals.get(goal)?.get(level)
}

/// The hardest level that at least `wanted` arms have reached in at least half of their pairs; the easiest if
/// there is none.
pub fn level_of(arms: &[Costs], goal: usize, wanted: usize) -> usize {
    let reaches = |costs: &Costs, level: usize| {
        let known = |observed: &&&Observed| matches!(reading(observed, goal, level), Some(Reading::Known(_)));
        2 * costs.iter().filter(known).count() >= costs.len()
    };
    let enough = |level: &usize| arms.iter().filter(|costs| reaches(costs, *level)).count() >= wanted;
    (0..LEVELS.len()).rev().find(enough).unwrap_or(0)
}

/// The arms in the order of a goal, of which `wanted` will be kept.
pub fn ranking(arms: &[Costs], goal: usize, wanted: usize) -> Ranking {
    let level = level_of(arms, goal, wanted.clamp(1, arms.len().max(1)));
    let readings = |costs: &Costs| -> Vec<Reading> {
        costs.iter().filter_map(|o| reading(o, goal, level)).cloned().collect()
    };
    let all: Vec<Vec<Reading>> = arms.iter().map(readings).collect();
    let value = |reading: &Reading| match reading {
        Reading::Known(value) | Reading::Beyond(value) => *value,
        Reading::Missing(_) => 0.0,
    };
    let end = all.iter().flatten().map(value).filter(|value| value.is_finite()).fold(0.0, f64::max);
    let scores: Vec<f64> = all.iter().map(|own| par2(own.iter(), end)).collect();
    // Among arms that reach nothing, the one that is further at an easier level is first.
    let easier: Vec<f64> = arms
        .iter()
        .map(|costs| {
            let levels = 0..=level;
            let known = |level| {
                costs.iter().filter(|o| matches!(reading(o, goal, level), Some(Reading::Known(_)))).count()
            };
            levels.map(known).sum::<usize>() as f64
        })
        .collect();
    let mut order: Vec<usize> = (0..arms.len()).collect();
    order.sort_by(|&a, &b| {
        scores[a].total_cmp(&scores[b]).then(easier[b].total_cmp(&easier[a])).then(a.cmp(&b))
    });
    Ranking { level, order, scores }
}

/// The comparison of an arm with another by the goal itself, if the test of a family rejects that it is not
/// worse. `tests` is the number of tests in the family: p is compared with error/tests (Bonferroni), one
/// side, so that the best of all is dropped anywhere in the race with at most the probability `error`.
pub fn beaten(arm: &Costs, leader: &Costs, goal: usize, error: f64, tests: usize) -> Option<Paired> {
    let last = LEVELS.len() - 1;
    let pairs: Option<Vec<(Reading, Reading)>> = arm
        .iter()
        .zip(leader)
        .map(|(arm, leader)| Some((reading(arm, goal, last)?.clone(), reading(leader, goal, last)?.clone())))
        .collect();
    let all = paired(&pairs?).ok()?;
    let p = 0.5 * all.p?;
    (all.order() == Ordering::Greater && p <= error / tests.max(1) as f64).then_some(all)
}
