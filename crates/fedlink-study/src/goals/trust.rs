//! Runs that cannot decide: those that never left chance level, and those whose batteries were empty.

use super::goal::Goal;
use super::metrics::{EmptyBatteries, Metrics, Reading};
use fedlink::record::Row;

/// Binomial standard errors above the accuracy of a constant answer that still are chance.
const ERRORS: f64 = 3.0;

/// The accuracy that a model without learning does not exceed: that of a constant answer on a balanced test
/// set, 1/C, and three binomial standard errors for this number of test samples. None if a number is unknown.
///
/// ```
/// use fedlink_study::goals::chance_level;
/// let level = chance_level(10, 10_000).unwrap(); // MNIST
/// assert!((level - 0.109).abs() < 1e-12);
/// assert_eq!(chance_level(10, 0), None);
/// ```
pub fn chance_level(classes: usize, test_samples: usize) -> Option<f64> {
    let p = 1.0 / classes as f64;
    (classes > 1 && test_samples > 0).then(|| p + ERRORS * (p * (1.0 - p) / test_samples as f64).sqrt())
}

/// The batteries of a run that were empty, by the column of empty batteries.
///
/// Rows of a version before 0.3 have no such column. Of the batteries, of so many joules each, they hold the
/// joules of the device that has spent the most. A device is left out of a round that it cannot pay, so its
/// battery counts as empty when less is left than the most that the leading device has spent per round
/// between two evaluations.
pub(crate) fn empty_batteries(rows: &[Row], battery_j: f64, devices: u64) -> Option<EmptyBatteries> {
    if rows.iter().any(|row| row.empty.is_some()) {
        let from = rows.iter().position(|row| row.empty.is_some_and(|empty| empty > 0))?;
        let number = rows.last().and_then(|row| row.empty);
        return Some(EmptyBatteries { from, round: rows[from].round, number, devices });
    }
    if battery_j <= 0.0 {
        return None;
    }
    let (mut round, mut spent, mut most) = (0, 0.0, 0.0f64);
    for (from, row) in rows.iter().enumerate() {
        let now = row.worst_device_joules?;
        most = most.max((now - spent) / row.round.saturating_sub(round).max(1) as f64);
        if battery_j - now < most {
            return Some(EmptyBatteries { from, round: row.round, number: None, devices });
        }
        (round, spent) = (row.round, now);
    }
    None
}

/// One side of a comparison: its goal with its run at each shared seed, or a number.
#[derive(Clone, Copy)]
pub(crate) enum Party<'a> {
    /// A curve, with the factor of its numbers.
    Runs(&'a Goal, f64, &'a [&'a Metrics]),
    /// A number.
    Number(&'a Goal, f64),
}

/// The reason why a comparison must not be decided by its runs; none if it may.
///
/// At half of the seeds or more, both sides ended at chance level, or empty batteries may decide which side
/// is ahead. One side that learned makes a comparison meaningful, with any other side. A number is at chance
/// level if it is an accuracy that chance reaches; a number of any other unit says nothing about learning.
pub(crate) fn distrusted(left: Party, right: Party) -> Option<String> {
    let Party::Runs(goal, _, runs) = left else { return None };
    let of = runs.len();
    let found: Vec<EmptyBatteries> = (0..of)
        .filter(|&seed| !is_settled(left, right, seed))
        .filter_map(|seed| {
            let both = [left, right].into_iter().filter_map(|party| party.powerless(seed));
            both.reduce(|a, b| {
                if b.number > a.number {
                    EmptyBatteries { round: a.round.min(b.round), ..b }
                } else {
                    EmptyBatteries { round: a.round.min(b.round), ..a }
                }
            })
        })
        .collect();
    if let Some(first) = found.iter().min_by_key(|empty| empty.round)
        && 2 * found.len() >= of
    {
        let most = found.iter().filter_map(|empty| empty.number).max();
        let number =
            most.map_or_else(String::new, |most| format!("{most} of {} at the end, ", first.devices));
        return Some(format!(
            "at {} of {of} seeds batteries were empty before {} ({number}the first by round {}), and without \
             that the other side may be ahead; raise energy.battery_j or lower the cost of a round",
            found.len(),
            if goal.metric().is_some() { "the end" } else { "the goal was reached" },
            first.round
        ));
    }
    let levels: Vec<f64> = (0..of)
        .filter_map(|seed| {
            let own = runs[seed].at_chance()?;
            match right {
                Party::Runs(_, _, others) => others[seed].at_chance().map(|_| own),
                Party::Number(goal, number) => (!goal.is_share() || number <= own).then_some(own),
            }
        })
        .collect();
    let level = levels.iter().copied().reduce(f64::max)?;
    (goal.is_of_learning() && 2 * levels.len() >= of).then(|| {
        let whose = if matches!(right, Party::Runs(..)) { "both sides" } else { "the runs" };
        format!(
            "at {} of {of} seeds {whose} ended at chance level (accuracy of at most {:.2} %); run more \
             rounds or tune the training",
            levels.len(),
            100.0 * level
        )
    })
}

impl Party<'_> {
    /// The empty batteries of the run of a seed that may have changed its number.
    fn powerless(self, seed: usize) -> Option<EmptyBatteries> {
        match self {
            Party::Runs(goal, _, runs) => runs[seed].powerless(goal),
            Party::Number(..) => None,
        }
    }

    /// The number at a seed, as far as it does not depend on empty batteries.
    fn powered(self, seed: usize) -> Option<Reading> {
        match self {
            Party::Runs(goal, factor, runs) => Some(runs[seed].read_powered(goal)?.times(factor)),
            Party::Number(_, number) => Some(Reading::Known(number)),
        }
    }
}

/// Whether empty batteries cannot change which side is ahead at a seed: no battery was empty in time, or one
/// side reached its goal at a cost that the other had exceeded when its first battery was empty.
fn is_settled(left: Party, right: Party, seed: usize) -> bool {
    if left.powerless(seed).is_none() && right.powerless(seed).is_none() {
        return true;
    }
    match (left.powered(seed), right.powered(seed)) {
        (Some(Reading::Known(reached)), Some(Reading::Beyond(spent)))
        | (Some(Reading::Beyond(spent)), Some(Reading::Known(reached))) => reached <= spent,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::metrics::rows;

    fn run(last: f64) -> Metrics {
        Metrics::new(&rows(&[0.1, last]), 0.8).with_chance(chance_level(10, 1000))
    }

    fn reason(goal: &str, left: &[f64], right: &[f64]) -> Option<String> {
        let goal: Goal = goal.parse().unwrap();
        let [left, right] = [left, right].map(|side| side.iter().map(|&last| run(last)).collect::<Vec<_>>());
        let [left, right]: [Vec<&Metrics>; 2] = [&left, &right].map(|side| side.iter().collect());
        distrusted(Party::Runs(&goal, 1.0, &left), Party::Runs(&goal, 1.0, &right))
    }

    #[test]
    fn two_sides_at_chance_level_decide_nothing() {
        // 10 classes and 1000 samples: 0.1 + 3·√(0.09/1000) = 0.12846.
        let both = reason("final", &[0.1, 0.12], &[0.089, 0.128]).unwrap();
        assert!(both.contains("at 2 of 2 seeds both sides") && both.contains("12.85 %"), "{both}");
        assert!(reason("final", &[0.1, 0.13], &[0.089, 0.13]).is_some());
        assert_eq!(reason("final", &[0.1, 0.13, 0.13], &[0.089, 0.13, 0.13]), None);
        // One side learned.
        assert_eq!(reason("final", &[0.6, 0.7], &[0.1, 0.1]), None);
        assert!(reason("rounds-to-0.05", &[0.1], &[0.1]).is_some());
        assert_eq!(reason("total-joules", &[0.1], &[0.1]), None);
    }

    #[test]
    fn a_number_that_chance_reaches_decides_nothing() {
        let at_chance = [run(0.1), run(0.1)];
        let runs: Vec<&Metrics> = at_chance.iter().collect();
        let against = |goal: &str, number: f64| {
            let goal: Goal = goal.parse().unwrap();
            distrusted(Party::Runs(&goal, 1.0, &runs), Party::Number(&goal, number)).is_some()
        };
        assert!(against("final", 0.05) && against("loss", 2.0) && against("instability", 0.05));
        // Accuracy below one half is a statement about runs that failed.
        assert!(!against("final", 0.5));
    }

    #[test]
    fn a_battery_is_empty_when_it_cannot_pay_a_round() {
        let mut rows = rows(&[0.5, 0.6, 0.9, 0.9]);
        for (row, spent) in rows.iter_mut().zip([1.0, 2.0, 2.95, 2.95]) {
            row.worst_device_joules = Some(spent);
        }
        // A tenth of a joule per round: empty once less than that is left of 3.
        let empty = |rows: &[Row], battery: f64| empty_batteries(rows, battery, 40);
        let found = empty(&rows, 3.0).unwrap();
        assert_eq!((found.from, found.round, found.number), (2, 30, None));
        assert_eq!((empty(&rows, 4.0), empty(&rows, 0.0)), (None, None));
        let run = Metrics::new(&rows, 0.8).with_empty_batteries(Some(found));
        let powerless = |goal: &str| run.powerless(&goal.parse().unwrap()).is_some();
        assert!(!powerless("rounds until accuracy >= 0.6") && powerless("rounds until accuracy >= 0.9"));
        assert!(powerless("rounds until accuracy >= 0.95") && powerless("final"));
        let goal: Goal = "final".parse().unwrap();
        let reason = distrusted(Party::Runs(&goal, 1.0, &[&run]), Party::Number(&goal, 0.5)).unwrap();
        assert!(reason.contains("empty before the end (the first by round 30)"), "{reason}");
        rows[1].worst_device_joules = None;
        assert_eq!(empty(&rows[1..], 3.0), None);
    }

    /// A run at rounds 10, 20, … with so many empty batteries of 40.
    fn with_batteries(accuracies: &[f64], empty: &[u64]) -> Metrics {
        let mut rows = rows(accuracies);
        rows.iter_mut().zip(empty).for_each(|(row, empty)| row.empty = Some(*empty));
        let found = empty_batteries(&rows, 5.0, 40);
        Metrics::new(&rows, 0.8).with_empty_batteries(found)
    }

    #[test]
    fn empty_batteries_refuse_a_claim_only_where_they_may_change_who_is_ahead() {
        let goal: Goal = "rounds until accuracy >= 0.8".parse().unwrap();
        // Without an empty battery the goal is reached at round 20.
        let sound = with_batteries(&[0.5, 0.8, 0.9, 0.9], &[0; 4]);
        // The first battery is empty by round 30, after round 20, at which the other had reached the goal.
        let late = with_batteries(&[0.5, 0.6, 0.7, 0.8], &[0, 0, 2, 3]);
        // By round 20: between 10 and 20 it might have reached it.
        let early = with_batteries(&[0.5, 0.6, 0.7, 0.8], &[0, 1, 2, 3]);
        let of = |left: &Metrics, factor: f64, right: &Metrics| {
            distrusted(Party::Runs(&goal, factor, &[left]), Party::Runs(&goal, 1.0, &[right]))
        };
        assert_eq!((of(&sound, 1.0, &late), of(&late, 1.0, &sound)), (None, None));
        // 2 × 20 rounds are more than the 20 that the other had done.
        assert!(of(&sound, 2.0, &late).is_some());
        let reason = of(&sound, 1.0, &early).unwrap();
        let said = "at 1 of 1 seeds batteries were empty before the goal was reached (3 of 40 at the end, \
                    the first by round 20)";
        assert!(reason.starts_with(said), "{reason}");
        assert!(of(&late, 1.0, &early).is_some());
        // A number of rounds that was exceeded while all batteries lasted.
        let number = |run: &Metrics, rounds: f64| {
            distrusted(Party::Runs(&goal, 1.0, &[run]), Party::Number(&goal, rounds)).is_some()
        };
        assert_eq!([number(&late, 20.0), number(&late, 25.0), number(&sound, 25.0)], [false, true, false]);
        // Two seeds of three are sound.
        let seeds = [&sound, &sound, &early];
        assert_eq!(distrusted(Party::Runs(&goal, 1.0, &seeds), Party::Number(&goal, 30.0)), None);
    }
}
