//! The point at which a run reaches a goal, and the cost until then.

use super::goal::{Cost, Until};
use super::metrics::{Reading, Run, finite, no_evaluation, no_units, not_recorded};
use fedlink::record::Row;

/// The index of the first evaluation of the first sequence that is long enough and at which all conditions
/// hold; none if there is no such sequence. The error is the reason why a condition cannot be checked.
pub(super) fn reached(run: &Run, until: &Until) -> Result<Option<usize>, String> {
    Ok(held(run, until)?.1)
}

/// The cost until a run reaches a goal. A run that does not reach it is censored at its last evaluation; if
/// the conditions hold there, but for too few evaluations, it may have reached the goal when they began to
/// hold, and it is censored at the evaluation before that.
pub(super) fn cost(run: &Run, until: &Until) -> Reading {
    if run.rows.is_empty() {
        return no_evaluation();
    }
    match held(run, until) {
        Err(reason) => Reading::Missing(reason),
        Ok((_, Some(index))) => spent(run, until.cost, index),
        Ok((0, None)) => match spent(run, until.cost, 0) {
            Reading::Known(_) => Reading::Beyond(0.0),
            missing => missing,
        },
        Ok((without, None)) => match spent(run, until.cost, without - 1) {
            Reading::Known(cost) => Reading::Beyond(cost),
            missing => missing,
        },
    }
}

/// The cost of a run that is censored before its evaluation `index`.
pub(super) fn censored(run: &Run, until: &Until, index: usize) -> Reading {
    match index.checked_sub(1).map(|before| spent(run, until.cost, before)) {
        None => Reading::Beyond(0.0),
        Some(Reading::Known(cost)) => Reading::Beyond(cost),
        Some(missing) => missing,
    }
}

/// The number of evaluations before the sequence at the end at which all conditions hold, and the first
/// evaluation of the first sequence that is long enough.
fn held(run: &Run, until: &Until) -> Result<(usize, Option<usize>), String> {
    let mut begin = 0;
    for (index, row) in run.rows.iter().enumerate() {
        if !all_hold(row, run.target, until)? {
            begin = index + 1;
        } else if (index + 1 - begin) as u64 == until.evaluations {
            return Ok((begin, Some(begin)));
        }
    }
    Ok((begin, None))
}

fn all_hold(row: &Row, target: f64, until: &Until) -> Result<bool, String> {
    let mut all = true;
    for condition in &until.conditions {
        all &= condition.holds(row, target).ok_or_else(|| match condition.quantity.column() {
            Some("worst_device") => not_recorded(row, "worst_device"),
            _ => format!("{} is recorded with run.fairness = true only", condition.quantity),
        })?;
    }
    Ok(all)
}

/// The cost of a run until one of its evaluations.
fn spent(run: &Run, cost: Cost, index: usize) -> Reading {
    let row = &run.rows[index];
    match cost {
        Cost::Rounds => Reading::Known(row.round as f64),
        Cost::Bits => finite(row.total_bits),
        Cost::Trainings => Reading::Known(run.rows[..=index].iter().map(|row| row.trained as f64).sum()),
        Cost::Symbols => match run.symbols.get(index) {
            Some(&symbols) => finite(symbols),
            None => Reading::Missing("the symbols of its rounds are unknown".into()),
        },
        Cost::Seconds => row.total_seconds.map_or_else(no_units, finite),
        Cost::Joules => row.total_joules.map_or_else(no_units, finite),
        Cost::WorstDeviceJoules => match (row.worst_device_joules, row.total_joules) {
            (Some(joules), _) => finite(joules),
            (None, None) => no_units(),
            (None, Some(_)) => Reading::Missing(
                "a version before 0.3 made it, without the joules of the worst device at every evaluation"
                    .into(),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::goals::metrics::{Metrics, Reading, rows};
    use fedlink::record::Row;

    fn read(rows: &[Row], goal: &str) -> Reading {
        let symbols = rows.iter().map(|row| 500.0 * row.round as f64).collect();
        Metrics::new(rows, 0.8).with_symbols(symbols).read(&goal.parse().unwrap())
    }

    #[test]
    fn a_goal_that_must_hold_is_counted_at_the_first_of_its_evaluations() {
        // Rounds 10 to 80: the target is crossed at 20, missed at 30, and held from 50 on.
        let rows = rows(&[0.5, 0.81, 0.7, 0.79, 0.8, 0.82, 0.85, 0.83]);
        for (goal, round) in [
            ("rounds until accuracy >= 0.8", Some(20.0)),
            ("rounds until accuracy >= 0.8 for 2 evaluations", Some(50.0)),
            ("rounds until accuracy >= 0.8 for 4 evaluations", Some(50.0)),
            ("rounds until accuracy >= target for 3 evaluations", Some(50.0)),
            ("bits until accuracy >= 0.8 for 3 evaluations", Some(50_000.0)),
            ("symbols until accuracy >= 0.8 for 3 evaluations", Some(25_000.0)),
        ] {
            assert_eq!(read(&rows, goal), Reading::Known(round.unwrap()), "{goal}");
        }
        // Held for four evaluations so far: it began after round 40, and five are not certain.
        assert_eq!(read(&rows, "rounds until accuracy >= 0.8 for 5 evaluations"), Reading::Beyond(40.0));
        assert_eq!(read(&rows, "rounds until accuracy >= 0.9"), Reading::Beyond(80.0));
        assert_eq!(read(&rows[1..2], "rounds until accuracy >= 0.8 for 2 evaluations"), Reading::Beyond(0.0));
        assert!(matches!(read(&[], "rounds until accuracy >= 0.8"), Reading::Missing(_)));
    }

    #[test]
    fn joint_conditions_must_hold_at_the_same_evaluation() {
        let mut rows = rows(&[0.9, 0.8, 0.9, 0.9]);
        for (row, worst) in rows.iter_mut().zip([0.5, 0.7, 0.6, 0.75]) {
            row.metrics = vec![("worst_class".into(), worst), ("class_3".into(), 1.0 - worst)];
            row.trained = 7;
        }
        let goal = "trainings until accuracy >= 0.85 and worst-class >= 0.7";
        assert_eq!(read(&rows, goal), Reading::Known(28.0));
        assert_eq!(read(&rows, "rounds until class-3 >= 0.5"), Reading::Known(10.0));
        assert_eq!(read(&rows, "rounds until loss <= 1.15 and worst-class >= 0.7"), Reading::Known(40.0));
        let unknown = read(&rows, "rounds until jain >= 0.5");
        assert_eq!(unknown, Reading::Missing("jain is recorded with run.fairness = true only".into()));
    }

    #[test]
    fn costs_with_units_are_those_of_the_rows() {
        let mut rows = rows(&[0.5, 0.9]);
        assert!(matches!(read(&rows, "seconds until accuracy >= 0.8"), Reading::Missing(_)));
        for row in &mut rows {
            row.total_seconds = Some(0.5 * row.round as f64);
            row.total_joules = Some(2.0 * row.round as f64);
        }
        assert_eq!(read(&rows, "seconds until accuracy >= 0.8"), Reading::Known(10.0));
        assert_eq!(read(&rows, "joules until accuracy >= 0.95"), Reading::Beyond(40.0));
        let worst = "worst-device-joules until accuracy >= 0.8";
        let Reading::Missing(reason) = read(&rows, worst) else { panic!("it is not recorded") };
        assert!(reason.contains("before 0.3"), "{reason}");
        rows.iter_mut().for_each(|row| row.worst_device_joules = Some(0.25 * row.round as f64));
        assert_eq!(read(&rows, worst), Reading::Known(5.0));
    }
}
