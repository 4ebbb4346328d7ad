//! The comparison of two curves, or of a curve and a number, from their runs.

use super::curves::Curves;
use super::decide::{Decision, Order, decide, differences, p_value};
use super::verdict::{Answer, Pair, Pairing};
use super::{Claim, Opponent, Right};
use crate::goals::{Goal, Median, Metrics, Paired, Party, Reading, distrusted, paired, smallest_p};
use crate::statistics::{Estimate, estimate};
use std::cmp::Ordering;

/// The level of a decision.
const LEVEL: f64 = super::correction::LEVEL;

/// The runs of both sides at a seed that both have.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    pub seed: u64,
    pub left: &'a Metrics,
    /// None if there is a number instead.
    pub right: Option<&'a Metrics>,
}

impl Claim {
    /// The comparison of `left` with its opponent by the runs at the seeds that both have.
    pub(super) fn pair(
        &self,
        pairing: Pairing,
        curves: &Curves,
        (left, opponent): (usize, Opponent),
        shared: &[Shared],
    ) -> Pair {
        let named = |factor: f64, curve: usize| match factor {
            1.0 => curves.name(curve),
            factor => format!("{factor} * {}", curves.name(curve)),
        };
        let right_factor = self.right.side().map_or(1.0, |side| side.factor);
        let right = match opponent {
            Opponent::Curve(curve) => named(right_factor, curve),
            Opponent::Number(number) => number.to_string(),
        };
        let readings = self.readings(opponent, shared);
        let scale = |(seed, left, right): &(u64, Reading, Reading)| {
            (*seed, left.times(self.left.factor), right.times(right_factor))
        };
        let scaled: Vec<(u64, Reading, Reading)> = readings.iter().map(scale).collect();
        let is_curve = matches!(opponent, Opponent::Curve(_));
        let mut pair = Pair {
            left: named(self.left.factor, left),
            right,
            verdict: Answer::Undecided,
            seeds: shared.len(),
            left_value: None,
            right_value: None,
            difference: None,
            left_median: None,
            right_median: None,
            comparison: None,
            corrected: None,
            p: None,
            adjusted_p: None,
            note: None,
            unit: self.left.goal.unit(),
            pairing,
            differences: Vec::new(),
        };
        let is_cost = |goal: &Goal| goal.metric().is_none();
        if is_cost(&self.left.goal) || self.right.side().is_some_and(|side| is_cost(&side.goal)) {
            let of = |side: fn(&(u64, Reading, Reading)) -> &Reading| {
                Median::of(&readings.iter().map(|seed| side(seed).clone()).collect::<Vec<_>>())
            };
            pair.left_median = of(|(_, left, _)| left);
            pair.right_median = of(|(_, _, right)| right).filter(|_| is_curve);
            by_cost(&mut pair, self.order, &scaled);
        } else {
            pair.left_value = mean(readings.iter().map(|(_, left, _)| left));
            pair.right_value = mean(readings.iter().map(|(_, _, right)| right)).filter(|_| is_curve);
            let (verdict, difference, note): Decision = decide(self.order, pairing, &scaled);
            (pair.verdict, pair.difference, pair.note) = (verdict, difference, note);
            pair.p = p_value(&scaled);
            pair.differences = differences(&scaled).unwrap_or_default();
        }
        if let Some(reason) = self.distrust(shared) {
            pair.refuse(reason);
        }
        pair
    }

    /// The values of both goals at each seed, without factors.
    fn readings(&self, opponent: Opponent, shared: &[Shared]) -> Vec<(u64, Reading, Reading)> {
        let right = |run: Option<&Metrics>| match (run, &self.right, opponent) {
            (Some(run), Right::Side(side), _) => run.read(&side.goal),
            (_, _, Opponent::Number(number)) => Reading::Known(number),
            _ => Reading::Missing("there is no run".into()),
        };
        let read = |both: &Shared| (both.seed, both.left.read(&self.left.goal), right(both.right));
        shared.iter().map(read).collect()
    }

    /// The reason why the runs must not decide the claim, if there is one.
    fn distrust(&self, shared: &[Shared]) -> Option<String> {
        let lefts: Vec<&Metrics> = shared.iter().map(|both| both.left).collect();
        let rights: Vec<&Metrics> = shared.iter().filter_map(|both| both.right).collect();
        let right = match &self.right {
            Right::Side(side) => Party::Runs(&side.goal, side.factor, &rights),
            Right::Number(number) => Party::Number(&self.left.goal, *number),
        };
        (!lefts.is_empty())
            .then(|| distrusted(Party::Runs(&self.left.goal, self.left.factor, &lefts), right))
            .flatten()
    }
}

/// Decides a comparison of costs.
fn by_cost(pair: &mut Pair, order: Order, shared: &[(u64, Reading, Reading)]) {
    let readings: Vec<(Reading, Reading)> =
        shared.iter().map(|(_, left, right)| (left.clone(), right.clone())).collect();
    let comparison = match paired(&readings) {
        Ok(comparison) => comparison,
        Err(reason) => {
            pair.note = Some(reason);
            return;
        }
    };
    (pair.verdict, pair.note) = by_test(order, &comparison, shared.len());
    pair.p = comparison.p.filter(|_| shared.len() > 1);
    pair.comparison = (!shared.is_empty()).then_some(comparison);
}

/// The decision by the exact test, and its limits.
fn by_test(order: Order, comparison: &Paired, seeds: usize) -> (Answer, Option<String>) {
    let answer = match (comparison.p, comparison.order(), order) {
        (Some(p), _, _) if p > LEVEL || seeds < 2 => Answer::Undecided,
        (None, _, _) | (_, Ordering::Equal, _) => Answer::Undecided,
        (_, Ordering::Less, Order::Below) | (_, Ordering::Greater, Order::Above) => Answer::Holds,
        _ => Answer::DoesNotHold,
    };
    let mut notes = Vec::new();
    if seeds == 0 {
        notes.push("no seed is shared".to_owned());
    } else if smallest_p(seeds) > LEVEL {
        let few = if seeds == 1 { "one seed".to_owned() } else { format!("{seeds} seeds") };
        notes.push(format!(
            "{few} cannot decide a cost by the exact test, which needs {} or more",
            fewest(LEVEL)
        ));
    }
    if comparison.open > 0 && answer == Answer::Undecided {
        notes.push(format!(
            "at {} of {seeds} seeds one side ended before the other reached the goal; run it longer",
            comparison.open
        ));
    }
    (answer, (!notes.is_empty()).then(|| notes.join("; ")))
}

/// The fewest seeds with which the exact test can reach a p-value of at most `p`.
pub(super) fn fewest(p: f64) -> usize {
    (1..=1000).find(|&seeds| smallest_p(seeds) <= p).unwrap_or(1000)
}

/// Mean and interval of readings; none if a number is missing or the list is empty.
fn mean<'a>(readings: impl Iterator<Item = &'a Reading>) -> Option<Estimate> {
    let values: Option<Vec<f64>> = readings.map(|reading| reading.clone().number().ok()).collect();
    values.filter(|values| !values.is_empty()).map(estimate)
}
