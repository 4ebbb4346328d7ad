//! Runs that cannot decide: those that never left chance level, and those whose batteries were empty.

use super::goal::Goal;
use super::metrics::Metrics;
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

/// The first evaluation of a run at which some battery was empty, by the column of empty batteries.
///
/// Rows of a version before 0.3 have no such column. Of the batteries, of so many joules each, they hold the
/// joules of the device that has spent the most. A device is left out of a round that it cannot pay, so its
/// battery counts as empty when less is left than the most that the leading device has spent per round
/// between two evaluations.
pub(crate) fn empty_from(rows: &[Row], battery_j: f64) -> Option<usize> {
    if rows.iter().any(|row| row.empty.is_some()) {
        return rows.iter().position(|row| row.empty.is_some_and(|empty| empty > 0));
    }
    if battery_j <= 0.0 {
        return None;
    }
    let (mut round, mut spent, mut most) = (0, 0.0, 0.0f64);
    for (index, row) in rows.iter().enumerate() {
        let now = row.worst_device_joules?;
        most = most.max((now - spent) / row.round.saturating_sub(round).max(1) as f64);
        if battery_j - now < most {
            return Some(index);
        }
        (round, spent) = (row.round, now);
    }
    None
}

/// One side of a comparison: its goal with its run at each shared seed, or a number.
#[derive(Clone, Copy)]
pub(crate) enum Party<'a> {
    /// A curve.
    Runs(&'a Goal, &'a [&'a Metrics]),
    /// A number.
    Number(&'a Goal, f64),
}

/// The reason why a comparison must not be decided by its runs; none if it may.
///
/// At half of the seeds or more, both sides ended at chance level, or a battery was empty before the end or
/// before the goal was reached. One side that learned makes a comparison meaningful, with any other side. A
/// number is at chance level if it is an accuracy that chance reaches; a number of any other unit says
/// nothing about learning.
pub(crate) fn distrusted(left: Party, right: Party) -> Option<String> {
    let Party::Runs(goal, runs) = left else { return None };
    let of = runs.len();
    let powerless = |party: Party, seed: usize| match party {
        Party::Runs(goal, runs) => runs[seed].is_powerless(goal),
        Party::Number(..) => false,
    };
    let empty = (0..of).filter(|&seed| powerless(left, seed) || powerless(right, seed)).count();
    if empty > 0 && 2 * empty >= of {
        return Some(format!(
            "at {empty} of {of} seeds a battery was empty before {}; raise energy.battery_j or lower the \
             cost of a round",
            if goal.metric().is_some() { "the end" } else { "the goal was reached" }
        ));
    }
    let levels: Vec<f64> = (0..of)
        .filter_map(|seed| {
            let own = runs[seed].at_chance()?;
            match right {
                Party::Runs(_, others) => others[seed].at_chance().map(|_| own),
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
        distrusted(Party::Runs(&goal, &left), Party::Runs(&goal, &right))
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
            distrusted(Party::Runs(&goal, &runs), Party::Number(&goal, number)).is_some()
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
        assert_eq!(empty_from(&rows, 3.0), Some(2));
        assert_eq!((empty_from(&rows, 4.0), empty_from(&rows, 0.0)), (None, None));
        let run = Metrics::new(&rows, 0.8).with_empty_battery(empty_from(&rows, 3.0));
        let powerless = |goal: &str| run.is_powerless(&goal.parse().unwrap());
        assert!(!powerless("rounds until accuracy >= 0.6") && powerless("rounds until accuracy >= 0.9"));
        assert!(powerless("rounds until accuracy >= 0.95") && powerless("final"));
        let goal: Goal = "final".parse().unwrap();
        let reason = distrusted(Party::Runs(&goal, &[&run]), Party::Number(&goal, 0.5)).unwrap();
        assert!(reason.contains("a battery was empty before the end"), "{reason}");
        rows[1].worst_device_joules = None;
        assert_eq!(empty_from(&rows[1..], 3.0), None);
    }
}
