//! The value of a goal over the seeds of a curve, and the order of curves by it.

use super::goal::Goal;
use super::median::Median;
use super::metric::{Metric, Unit};
use super::metrics::Reading;
use crate::statistics::{Estimate, estimate};
use std::cmp::Ordering;

/// The value of a goal over the seeds of a curve.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// The median of a cost.
    Cost(Median),
    /// The mean of a metric.
    Metric(Estimate, Metric),
    /// No value, as a seed has none.
    Unknown,
}

impl Standing {
    /// The value of a goal by its readings, one of each seed.
    pub fn of(goal: &Goal, readings: &[Reading]) -> Self {
        let Some(metric) = goal.metric() else {
            return Median::of(readings).map_or(Self::Unknown, Self::Cost);
        };
        let values: Option<Vec<f64>> = readings
            .iter()
            .map(|reading| match reading {
                Reading::Known(value) => Some(*value),
                Reading::Beyond(_) | Reading::Missing(_) => None,
            })
            .collect();
        let values = values.filter(|values| !values.is_empty());
        values.map_or(Self::Unknown, |values| Self::Metric(estimate(values), metric))
    }

    /// The better value first: costs that are known by their size, then those of which more seeds reached
    /// the goal; metrics by their size; curves without a value last.
    pub fn compare(&self, other: &Self) -> Ordering {
        let share = |median: &Median| median.reached as f64 / median.of as f64;
        match (self, other) {
            (Self::Cost(a), Self::Cost(b)) => match (a.value, b.value) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                (None, None) => share(b).total_cmp(&share(a)),
                (a, b) => a.is_none().cmp(&b.is_none()),
            },
            (Self::Metric(a, metric), Self::Metric(b, _)) if metric.rises() => b.mean.total_cmp(&a.mean),
            (Self::Metric(a, _), Self::Metric(b, _)) => a.mean.total_cmp(&b.mean),
            (a, b) => (*a == Self::Unknown).cmp(&(*b == Self::Unknown)),
        }
    }

    /// Its number: the median, or the mean; none if there is none.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Cost(median) => median.value,
            Self::Metric(mean, _) => Some(mean.mean),
            Self::Unknown => None,
        }
    }

    /// The ends of its interval, each if it is known.
    pub fn ends(&self) -> (Option<f64>, Option<f64>) {
        match self {
            Self::Cost(median) => (median.low, median.high),
            Self::Metric(mean, metric) if mean.half_width.is_finite() => {
                // Shares end at 0 and 1.
                let is_share = matches!(metric.unit(), Unit::Share | Unit::Index);
                let (least, most) = if is_share { (0.0, 1.0) } else { (f64::NEG_INFINITY, f64::INFINITY) };
                let (low, high) = mean.ends_within(least, most);
                (Some(low), Some(high))
            }
            _ => (None, None),
        }
    }

    /// As a table shows it: the value in its unit with the seeds that reached the goal, a dash without one.
    pub fn text(&self, unit: Unit) -> String {
        match self {
            Self::Cost(median) => match unit {
                Unit::Rounds => median.text(|rounds| format!("{rounds:.0}")),
                _ => median.text(|value| unit.value(value)),
            },
            Self::Metric(mean, _) => unit.value(mean.mean),
            Self::Unknown => "–".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reading::{Beyond, Known, Missing};

    fn standing(goal: &str, readings: &[Reading]) -> Standing {
        Standing::of(&goal.parse().unwrap(), readings)
    }

    #[test]
    fn known_costs_come_first_and_then_curves_of_which_more_seeds_reached_the_goal() {
        let cost = |readings: &[Reading]| standing("seconds until accuracy >= 0.8", readings);
        let order = [
            cost(&[Known(10.0), Known(12.0), Known(14.0)]),
            cost(&[Known(9.0), Known(13.0), Beyond(60.0)]),
            cost(&[Known(1.0), Beyond(60.0), Beyond(60.0)]),
            cost(&[Beyond(60.0), Beyond(60.0), Beyond(60.0)]),
            cost(&[Known(1.0), Missing("no units".into())]),
        ];
        for (i, a) in order.iter().enumerate() {
            for (j, b) in order.iter().enumerate() {
                assert_eq!(a.compare(b), i.cmp(&j), "{a:?} {b:?}");
            }
        }
        assert_eq!(order[1].text(Unit::Seconds), "13.00 s (2/3)");
    }

    #[test]
    fn metrics_are_ordered_by_their_own_direction() {
        let accuracy = |value| standing("final", &[Known(value), Known(value)]);
        assert_eq!(accuracy(0.9).compare(&accuracy(0.8)), Ordering::Less);
        let joules = |value| standing("total-joules", &[Known(value)]);
        assert_eq!(joules(0.9).compare(&joules(0.8)), Ordering::Greater);
        assert_eq!(joules(1.0).compare(&standing("final", &[])), Ordering::Less);
    }
}
