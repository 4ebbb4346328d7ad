//! The measurements of one run, or of one draw of a curve of the bound.

use super::goal::Goal;
use super::metric::Metric;
use super::reach;
use crate::statistics::{instability, mean_height};
use fedlink::record::Row;

/// The measurements of one run, or of one draw of a curve of the bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics(Source);

#[derive(Clone, Debug, PartialEq)]
enum Source {
    Run(Box<Run>),
    /// The readings of the metrics that claims name.
    Bound(Vec<(Metric, Reading)>),
}

/// The measurements of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Run {
    /// The evaluated rounds.
    pub rows: Vec<Row>,
    /// `run.target`.
    pub target: f64,
    /// The reason why the run ended, if it ended early.
    unfinished: Option<String>,
    /// Joules of the device that spent the most, where the radio has units.
    worst_device_joules: Option<f64>,
    /// Jain's index of the numbers of rounds in which devices were scheduled.
    jain: Option<f64>,
    /// Channel symbols used until each evaluation; empty if they are unknown.
    pub symbols: Vec<f64>,
    /// The accuracy that a model without learning does not exceed, if it is known.
    chance: Option<f64>,
    /// The empty batteries, if any was.
    empty: Option<EmptyBatteries>,
}

/// The batteries of a run that were empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmptyBatteries {
    /// The index of the first evaluation at which one was empty.
    pub from: usize,
    /// The round by which the first was empty.
    pub round: u64,
    /// The number of empty batteries at the end; none if it is unknown.
    pub number: Option<u64>,
    /// M.
    pub devices: u64,
}

/// The value of a goal in one run, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// The number.
    Known(f64),
    /// The goal was not reached up to this cost: the number is larger, maybe infinite.
    Beyond(f64),
    /// No number, with the reason.
    Missing(String),
}

impl Reading {
    /// The number, or the reason why there is none.
    pub fn number(self) -> Result<f64, String> {
        match self {
            Self::Known(value) => Ok(value),
            Self::Beyond(_) => Err("it did not reach the goal".into()),
            Self::Missing(reason) => Err(reason),
        }
    }

    /// The same times a factor above 0.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        match self {
            Self::Known(value) => Self::Known(factor * value),
            Self::Beyond(value) => Self::Beyond(factor * value),
            Self::Missing(reason) => Self::Missing(reason.clone()),
        }
    }
}

impl Metrics {
    /// The measurements of a run that did all its rounds; `target` is its `run.target`.
    pub fn new(rows: &[Row], target: f64) -> Self {
        Self(Source::Run(Box::new(Run { rows: rows.to_vec(), target, ..Run::default() })))
    }

    /// The measurements of a run that ended early; `how` is the reason, such as `diverged`. Only the costs of
    /// goals that it reached are known: the end of its curve is unknown.
    pub fn unfinished(rows: &[Row], target: f64, how: impl Into<String>) -> Self {
        Self::new(rows, target).with(|run| run.unfinished = Some(how.into()))
    }

    fn with(mut self, change: impl FnOnce(&mut Run)) -> Self {
        if let Source::Run(run) = &mut self.0 {
            change(run);
        }
        self
    }

    /// The same run with the joules of the device that spent the most; none if the radio has no units.
    #[must_use]
    pub fn with_worst_device_joules(self, joules: Option<f64>) -> Self {
        self.with(|run| run.worst_device_joules = joules)
    }

    /// The same run with Jain's index of its schedules; none if no device was scheduled.
    #[must_use]
    pub fn with_jain(self, index: Option<f64>) -> Self {
        self.with(|run| run.jain = index)
    }

    /// The same run with the channel symbols used until each evaluation.
    #[must_use]
    pub fn with_symbols(self, symbols: Vec<f64>) -> Self {
        self.with(|run| run.symbols = symbols)
    }

    /// The same run with the accuracy that a model without learning does not exceed; none if it is unknown.
    #[must_use]
    pub fn with_chance(self, accuracy: Option<f64>) -> Self {
        self.with(|run| run.chance = accuracy)
    }

    /// The same run with its empty batteries; none if all lasted.
    #[must_use]
    pub fn with_empty_batteries(self, empty: Option<EmptyBatteries>) -> Self {
        self.with(|run| run.empty = empty)
    }

    fn run(&self) -> Option<&Run> {
        match &self.0 {
            Source::Run(run) => Some(run),
            Source::Bound(_) => None,
        }
    }

    /// The accuracy that a model without learning does not exceed, if the run ended at most there.
    pub(super) fn at_chance(&self) -> Option<f64> {
        let run = self.run()?;
        let last = run.rows.last()?;
        run.chance.filter(|chance| last.test_accuracy <= *chance)
    }

    /// The empty batteries, if one was empty before the goal was reached or, of a metric, before the end.
    pub(super) fn powerless(&self, goal: &Goal) -> Option<EmptyBatteries> {
        let run = self.run()?;
        let reached = match goal {
            Goal::Until(until) => reach::reached(run, until).ok().flatten(),
            Goal::Plain(_) => None,
        };
        run.empty.filter(|empty| reached.is_none_or(|reached| empty.from <= reached))
    }

    /// The value of a goal as far as it does not depend on empty batteries: a run that had one before it
    /// reached the goal is censored at the last evaluation before. None if nothing is known then.
    pub(super) fn read_powered(&self, goal: &Goal) -> Option<Reading> {
        let Some(empty) = self.powerless(goal) else { return Some(self.read(goal)) };
        match (goal, self.run()) {
            (Goal::Until(until), Some(run)) => Some(reach::censored(run, until, empty.from)),
            _ => None,
        }
    }

    /// The measurements of a curve of the bound with these values after 0, 1, …, T rounds. Only the metrics
    /// in `asked` are kept: there may be many draws of long curves.
    ///
    /// ```
    /// use fedlink_study::goals::{Goal, Metric, Metrics};
    /// let asked = [Metric::Bound, Metric::RoundsToBound(5.0), Metric::RoundsToBound(1.0)];
    /// let metrics = Metrics::of_bound(&[9.0, 5.0, 2.0], &asked);
    /// let value = |metric| metrics.value(&Goal::Plain(metric));
    /// assert_eq!(asked.map(value), [Some(2.0), Some(1.0), Some(3.0)]);
    /// ```
    pub fn of_bound(losses: &[f64], asked: &[Metric]) -> Self {
        let at = |rounds: usize| losses.get(rounds).map_or_else(too_short, |&loss| finite(loss));
        let reading = |metric: Metric| match metric {
            Metric::Bound => at(losses.len().wrapping_sub(1)),
            Metric::BoundAt(rounds) => usize::try_from(rounds).map_or_else(|_| too_short(), at),
            Metric::RoundsToBound(level) => {
                let first = losses.iter().position(|&loss| loss <= level);
                Reading::Known(first.unwrap_or(losses.len()) as f64)
            }
            _ => Reading::Missing(format!("the bound has no {metric}")),
        };
        Self(Source::Bound(asked.iter().map(|&metric| (metric, reading(metric))).collect()))
    }

    /// The number, if the run has one.
    ///
    /// ```
    /// use fedlink_study::goals::{Goal, Metric, Metrics};
    /// assert_eq!(Metrics::new(&[], 0.8).value(&Goal::Plain(Metric::Final)), None);
    /// ```
    pub fn value(&self, goal: &Goal) -> Option<f64> {
        self.read(goal).number().ok()
    }

    /// The value of a goal, as far as it is known.
    pub fn read(&self, goal: &Goal) -> Reading {
        match (goal, &self.0) {
            (Goal::Plain(metric), Source::Run(run)) => run.read(*metric),
            (Goal::Plain(metric), Source::Bound(readings)) => {
                let asked = readings.iter().find(|(asked, _)| asked == metric);
                let missing = || Reading::Missing(format!("{metric} is not among the metrics of the claims"));
                asked.map_or_else(missing, |(_, reading)| reading.clone())
            }
            (Goal::Until(until), Source::Run(run)) => reach::cost(run, until),
            (Goal::Until(_), Source::Bound(_)) => Reading::Missing(format!("the bound has no {goal}")),
        }
    }
}

impl Run {
    fn read(&self, metric: Metric) -> Reading {
        let Self { rows, unfinished, worst_device_joules: worst, jain, .. } = self;
        let Some(last) = rows.last() else { return no_evaluation() };
        let accuracies = || rows.iter().map(|row| row.test_accuracy);
        match metric {
            _ if unfinished.is_some() => {
                let how = unfinished.as_deref().unwrap_or_default();
                Reading::Missing(format!("it ended early ({how})"))
            }
            Metric::Final => finite(last.test_accuracy),
            Metric::Best => finite(accuracies().fold(f64::NEG_INFINITY, f64::max)),
            Metric::Loss => finite(last.test_loss),
            Metric::Area => {
                let points: Vec<(f64, f64)> =
                    rows.iter().map(|row| (row.round as f64, row.test_accuracy)).collect();
                mean_height(&points).map_or_else(too_short, finite)
            }
            Metric::Instability => {
                let accuracies: Vec<f64> = accuracies().collect();
                instability(&accuracies).map_or_else(too_short, finite)
            }
            Metric::TotalSeconds => last.total_seconds.map_or_else(no_units, finite),
            Metric::TotalJoules => last.total_joules.map_or_else(no_units, finite),
            Metric::WorstDeviceJoules => worst.map_or_else(no_units, finite),
            Metric::WorstClass => recorded(last, "worst_class"),
            Metric::WorstTenth => recorded(last, "worst_tenth"),
            Metric::WorstDevice => recorded(last, "worst_device"),
            Metric::Jain => jain.map_or_else(|| Reading::Missing("no device was scheduled".into()), finite),
            Metric::Bound | Metric::BoundAt(_) | Metric::RoundsToBound(_) => {
                Reading::Missing(format!("a run has no {metric}"))
            }
        }
    }
}

pub(super) fn finite(value: f64) -> Reading {
    if value.is_finite() { Reading::Known(value) } else { Reading::Missing("it is not finite".into()) }
}

/// The reason why an evaluation lacks a metric of `run.fairness`.
pub(super) fn not_recorded(row: &Row, name: &str) -> String {
    let has = |wanted: &str| row.metrics.iter().any(|(known, _)| known == wanted);
    if name == "worst_device" && has("worst_tenth") {
        "a version before 0.3 made it, without the accuracy of the worst device at every evaluation".into()
    } else {
        "it is recorded with run.fairness = true only".into()
    }
}

/// A metric of the last evaluation that only runs with `run.fairness` have.
fn recorded(last: &Row, name: &str) -> Reading {
    let found = last.metrics.iter().find(|(known, _)| known == name);
    let missing = || Reading::Missing(not_recorded(last, name));
    found.map_or_else(missing, |(_, value)| finite(*value))
}

pub(super) fn no_units() -> Reading {
    Reading::Missing("it has no seconds and joules: radio.bandwidth_hz is not set".into())
}

pub(super) fn no_evaluation() -> Reading {
    Reading::Missing("it has no evaluation".into())
}

fn too_short() -> Reading {
    Reading::Missing("it has too few rounds or evaluations".into())
}

/// A run evaluated every ten rounds, a thousand bits per round.
#[cfg(test)]
pub(crate) fn rows(accuracies: &[f64]) -> Vec<Row> {
    let row = |(i, &test_accuracy): (usize, &f64)| {
        let round = 10 * (i as u64 + 1);
        let mut row = Row::default();
        (row.round, row.test_accuracy, row.test_loss) = (round, test_accuracy, 2.0 - test_accuracy);
        (row.bits, row.total_bits, row.mean_q) = (1000.0, 1000.0 * round as f64, 3.0);
        row
    };
    accuracies.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(metrics: &Metrics, name: &str) -> Reading {
        metrics.read(&name.parse().unwrap())
    }

    #[test]
    fn every_metric_is_the_value_read_off_the_curve() {
        let run = Metrics::new(&rows(&[0.2, 0.6, 0.8, 0.9, 0.7, 0.8]), 0.8);
        let expected = [
            ("final", 0.8),
            ("best", 0.9),
            ("loss", 2.0 - 0.8),
            // Trapezoids of width 10: (0.4 + 0.7 + 0.85 + 0.8 + 0.75)/5.
            ("area", 0.7),
            // The last third is 0.7, 0.8.
            ("instability", 0.1),
            ("rounds-to-target", 30.0),
            ("rounds-to-0.9", 40.0),
            ("bits-to-target", 30_000.0),
            ("bits-to-0.5", 20_000.0),
        ];
        for (name, value) in expected {
            let Reading::Known(ours) = read(&run, name) else { panic!("{name} is known") };
            assert!((ours - value).abs() < 1e-12, "{name}: {ours} against {value}");
        }
    }

    /// The same rows at a quarter of a second and 3 joules per round.
    fn with_units(accuracies: &[f64]) -> Vec<Row> {
        let mut rows = rows(accuracies);
        for row in &mut rows {
            row.total_seconds = Some(0.25 * row.round as f64);
            row.total_joules = Some(3.0 * row.round as f64);
        }
        rows
    }

    #[test]
    fn seconds_and_joules_are_counted_until_the_target_and_in_total() {
        let run = Metrics::new(&with_units(&[0.2, 0.6, 0.9, 0.7]), 0.5).with_worst_device_joules(Some(7.5));
        let expected = [
            ("seconds-to-target", 5.0),
            ("joules-to-target", 60.0),
            ("seconds-to-0.9", 7.5),
            ("joules-to-0.9", 90.0),
            ("total-seconds", 10.0),
            ("total-joules", 120.0),
            ("worst-device-joules", 7.5),
        ];
        for (name, value) in expected {
            assert_eq!(read(&run, name), Reading::Known(value), "{name}");
        }
        assert_eq!(read(&run, "seconds-to-0.95"), Reading::Beyond(10.0));
        assert_eq!(read(&run, "joules-to-0.95"), Reading::Beyond(120.0));
        let early = Metrics::unfinished(&with_units(&[0.2, 0.9]), 0.8, "diverged");
        assert_eq!(read(&early, "seconds-to-target"), Reading::Known(5.0));
        assert_eq!(read(&early, "total-joules"), Reading::Missing("it ended early (diverged)".into()));
    }

    #[test]
    fn a_run_without_units_has_no_seconds_and_no_joules_and_names_the_key() {
        let run = Metrics::new(&rows(&[0.2, 0.9]), 0.8);
        let names = [
            "seconds-to-target",
            "joules-to-0.9",
            "seconds-to-0.95",
            "total-seconds",
            "total-joules",
            "worst-device-joules",
        ];
        for name in names {
            let reading = read(&run, name);
            let Reading::Missing(reason) = reading else { panic!("{name}: {reading:?}") };
            assert!(reason.contains("radio.bandwidth_hz"), "{name}: {reason}");
        }
    }

    #[test]
    fn fairness_is_read_at_the_last_evaluation_and_needs_its_key() {
        let mut of_devices = rows(&[0.2, 0.9]);
        for (row, worst) in of_devices.iter_mut().zip([0.1, 0.4]) {
            row.metrics = vec![("worst_class".into(), worst), ("worst_tenth".into(), 2.0 * worst)];
        }
        let run = Metrics::new(&of_devices, 0.8).with_jain(Some(0.75));
        for (name, value) in [("worst-class", 0.4), ("worst-tenth", 0.8), ("jain", 0.75)] {
            assert_eq!(read(&run, name), Reading::Known(value), "{name}");
        }
        let without = Metrics::new(&rows(&[0.2, 0.9]), 0.8);
        for name in ["worst-class", "worst-tenth"] {
            let Reading::Missing(reason) = read(&without, name) else { panic!("{name} is missing") };
            assert!(reason.contains("run.fairness"), "{name}: {reason}");
        }
        assert!(matches!(read(&without, "jain"), Reading::Missing(reason) if reason.contains("no device")));
        let early = Metrics::unfinished(&of_devices, 0.8, "diverged").with_jain(Some(0.5));
        assert!(matches!(read(&early, "jain"), Reading::Missing(_)));
    }

    #[test]
    fn a_target_that_was_not_reached_lies_after_the_last_evaluation() {
        let run = Metrics::new(&rows(&[0.2, 0.6]), 0.8);
        assert_eq!(read(&run, "rounds-to-target"), Reading::Beyond(20.0));
        assert_eq!(read(&run, "bits-to-target"), Reading::Beyond(20_000.0));
        assert_eq!(run.value(&"rounds-to-0.8".parse().unwrap()), None);
    }

    #[test]
    fn a_run_that_ended_early_has_no_end() {
        let run = Metrics::unfinished(&rows(&[0.2, 0.9]), 0.8, "diverged");
        for name in ["final", "best", "loss", "area", "instability"] {
            assert_eq!(read(&run, name), Reading::Missing("it ended early (diverged)".into()), "{name}");
        }
        assert_eq!(read(&run, "rounds-to-target"), Reading::Known(20.0));
    }

    #[test]
    fn a_missing_number_has_a_reason() {
        let reason = |metrics: Metrics, name| match read(&metrics, name) {
            Reading::Missing(reason) => reason,
            other => panic!("{other:?}"),
        };
        assert!(reason(Metrics::new(&[], 0.8), "rounds-to-target").contains("no evaluation"));
        assert!(reason(Metrics::new(&rows(&[0.5, 0.5]), 0.8), "instability").contains("too few"));
        let mut exploded = rows(&[0.1]);
        exploded[0].test_loss = f64::INFINITY;
        assert!(reason(Metrics::new(&exploded, 0.8), "loss").contains("not finite"));
    }

    #[test]
    fn the_bound_is_read_at_its_end_after_some_rounds_or_at_a_level() {
        let asked: Vec<Metric> = [
            "bound",
            "bound-at-0",
            "bound-at-2",
            "bound-at-4",
            "rounds-to-bound-7",
            "rounds-to-bound-1",
            "final",
        ]
        .map(|name| Metric::parse(name).unwrap())
        .into();
        let draw = Metrics::of_bound(&[9.0, 8.0, 7.0, 3.0], &asked);
        assert_eq!(read(&draw, "bound"), Reading::Known(3.0));
        assert_eq!(read(&draw, "bound-at-0"), Reading::Known(9.0));
        assert_eq!(read(&draw, "bound-at-2"), Reading::Known(7.0));
        assert!(
            matches!(read(&draw, "bound-at-4"), Reading::Missing(reason) if reason.contains("too few rounds"))
        );
        // At most 7 after two rounds; never at most 1, which is one more than the three rounds.
        assert_eq!(read(&draw, "rounds-to-bound-7"), Reading::Known(2.0));
        assert_eq!(read(&draw, "rounds-to-bound-1"), Reading::Known(4.0));
        assert!(matches!(read(&draw, "final"), Reading::Missing(reason) if reason.contains("has no final")));
        assert!(matches!(read(&draw, "best"), Reading::Missing(reason) if reason.contains("not among")));
        let run = Metrics::new(&rows(&[0.5]), 0.8);
        assert!(
            matches!(read(&run, "bound"), Reading::Missing(reason) if reason.contains("a run has no bound"))
        );
        let overflow = Metrics::of_bound(&[1.0, f64::INFINITY], &[Metric::Bound]);
        assert!(
            matches!(read(&overflow, "bound"), Reading::Missing(reason) if reason.contains("not finite"))
        );
    }
}
