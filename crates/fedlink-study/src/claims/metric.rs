//! What a claim may ask of a run.

use crate::statistics::{instability, mean_height};
use fedlink::config::nearest;
use fedlink::record::Row;
use serde::Serialize;
use std::fmt;

/// The accuracy that "to target" asks for if none is written.
pub const TARGET: f64 = 0.8;

/// The names without a number in them.
const NAMES: [(&str, Metric); 7] = [
    ("final", Metric::Final),
    ("best", Metric::Best),
    ("loss", Metric::Loss),
    ("area", Metric::Area),
    ("instability", Metric::Instability),
    ("rounds-to-target", Metric::RoundsTo(TARGET)),
    ("bits-to-target", Metric::BitsTo(TARGET)),
];

/// One number of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// `final`: test accuracy at the last evaluation.
    Final,
    /// `best`: the highest test accuracy at any evaluation.
    Best,
    /// `loss`: test loss at the last evaluation.
    Loss,
    /// `area`: mean height of the accuracy curve ([`mean_height`]).
    Area,
    /// `instability`: mean change from one evaluation to the next over the last third ([`instability`]).
    Instability,
    /// `rounds-to-0.9`: the first evaluated round with that accuracy.
    RoundsTo(f64),
    /// `bits-to-0.9`: all bits sent until then.
    BitsTo(f64),
}

/// What a metric is measured in; only numbers of one unit can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Share of right answers.
    Share,
    /// Mean cross-entropy.
    Loss,
    /// Rounds.
    Rounds,
    /// Bits.
    Bits,
}

impl Metric {
    /// Reads a metric's name.
    pub(super) fn parse(word: &str) -> Result<Self, String> {
        if let Some((_, metric)) = NAMES.iter().find(|(name, _)| *name == word) {
            return Ok(*metric);
        }
        let number = |prefix: &str| word.strip_prefix(prefix).map(str::parse::<f64>);
        let (prefix, target, metric): (_, _, fn(f64) -> Self) = match number("rounds-to-") {
            Some(target) => ("rounds-to-", target, Self::RoundsTo),
            None => match number("bits-to-") {
                Some(target) => ("bits-to-", target, Self::BitsTo),
                None => return Err(unknown(word)),
            },
        };
        match target {
            Ok(target) if target > 0.0 && target <= 1.0 => Ok(metric(target)),
            _ => {
                Err(format!("{word:?}: the target must be a share above 0 and at most 1, as in {prefix}0.9"))
            }
        }
    }

    /// What it is measured in.
    pub fn unit(self) -> Unit {
        match self {
            Self::Final | Self::Best | Self::Area | Self::Instability => Unit::Share,
            Self::Loss => Unit::Loss,
            Self::RoundsTo(_) => Unit::Rounds,
            Self::BitsTo(_) => Unit::Bits,
        }
    }
}

fn unknown(word: &str) -> String {
    let names = NAMES.map(|(name, _)| name);
    let hint = nearest(word, names).map_or_else(String::new, |near| format!("; did you mean {near}?"));
    format!("{word:?} is not a metric; there are {}, rounds-to-0.9 and the like{hint}", names.join(", "))
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, metric)| metric == self) {
            Some((name, _)) => f.write_str(name),
            None => match self {
                Self::RoundsTo(target) => write!(f, "rounds-to-{target}"),
                Self::BitsTo(target) => write!(f, "bits-to-{target}"),
                _ => write!(f, "{self:?}"),
            },
        }
    }
}

impl Unit {
    /// A difference with its sign: shares as percentage points, losses with four digits after the point, rounds and
    /// bits with one.
    pub fn signed(self, difference: f64) -> String {
        match self {
            Self::Share => format!("{:+.2}", 100.0 * difference),
            Self::Loss => format!("{difference:+.4}"),
            Self::Rounds | Self::Bits => format!("{difference:+.1}"),
        }
    }

    /// What stands behind such a difference.
    pub fn of_difference(self) -> &'static str {
        match self {
            Self::Share => "percentage points",
            Self::Loss => "of loss",
            Self::Rounds => "rounds",
            Self::Bits => "bits",
        }
    }
}

/// The evaluated rounds of one run, for any [`Metric`] to be read off.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    rows: Vec<Row>,
    unfinished: Option<String>,
}

/// What a run says about a metric.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reading {
    /// The number.
    Known(f64),
    /// The target was not reached so far: the number is this or larger, maybe infinite.
    AtLeast(f64),
    /// Nothing, and why.
    Missing(String),
}

impl Reading {
    /// The number, or why there is none.
    pub fn number(self) -> Result<f64, String> {
        match self {
            Self::Known(value) => Ok(value),
            Self::AtLeast(_) => Err("it did not reach the target".into()),
            Self::Missing(reason) => Err(reason),
        }
    }
}

impl Metrics {
    /// Of a run that did all its rounds.
    pub fn new(rows: &[Row]) -> Self {
        Self { rows: rows.to_vec(), unfinished: None }
    }

    /// Of a run that ended early; `how` says how, as `diverged`. Of its metrics only those about a target that it
    /// did reach are known: where its curve would have ended, nobody can say.
    pub fn unfinished(rows: &[Row], how: impl Into<String>) -> Self {
        Self { rows: rows.to_vec(), unfinished: Some(how.into()) }
    }

    /// The number, if the run has one.
    ///
    /// ```
    /// use fedlink_study::claims::{Metric, Metrics};
    /// assert_eq!(Metrics::new(&[]).value(Metric::Final), None);
    /// ```
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.read(metric).number().ok()
    }

    pub(super) fn read(&self, metric: Metric) -> Reading {
        let Some(last) = self.rows.last() else { return Reading::Missing("it has no evaluation".into()) };
        let reached = |target: f64| self.rows.iter().find(|row| row.test_accuracy >= target);
        match metric {
            Metric::RoundsTo(target) => match reached(target) {
                Some(row) => Reading::Known(row.round as f64),
                None => Reading::AtLeast((last.round + 1) as f64),
            },
            Metric::BitsTo(target) => match reached(target) {
                Some(row) => finite(row.total_bits),
                None => Reading::AtLeast(last.total_bits),
            },
            _ if self.unfinished.is_some() => {
                let how = self.unfinished.as_deref().unwrap_or_default();
                Reading::Missing(format!("it ended early ({how})"))
            }
            Metric::Final => finite(last.test_accuracy),
            Metric::Best => finite(self.accuracies().fold(f64::NEG_INFINITY, f64::max)),
            Metric::Loss => finite(last.test_loss),
            Metric::Area => {
                let points: Vec<(f64, f64)> =
                    self.rows.iter().map(|row| (row.round as f64, row.test_accuracy)).collect();
                mean_height(&points).map_or_else(too_short, finite)
            }
            Metric::Instability => {
                let accuracies: Vec<f64> = self.accuracies().collect();
                instability(&accuracies).map_or_else(too_short, finite)
            }
        }
    }

    fn accuracies(&self) -> impl Iterator<Item = f64> {
        self.rows.iter().map(|row| row.test_accuracy)
    }
}

fn finite(value: f64) -> Reading {
    if value.is_finite() { Reading::Known(value) } else { Reading::Missing("it is not finite".into()) }
}

fn too_short() -> Reading {
    Reading::Missing("it has too few evaluations".into())
}

/// A run evaluated every ten rounds, a thousand bits a round.
#[cfg(test)]
pub(super) fn rows(accuracies: &[f64]) -> Vec<Row> {
    let row = |(i, &test_accuracy): (usize, &f64)| {
        let round = 10 * (i as u64 + 1);
        let (test_loss, total_bits) = (2.0 - test_accuracy, 1000.0 * round as f64);
        let (train_loss, bits, mean_q, silent_devices) = (0.0, 1000.0, 3.0, 0);
        let (wire_bits, undecodable, flagged) = (None, 0, 0);
        Row {
            round,
            test_accuracy,
            test_loss,
            train_loss,
            bits,
            total_bits,
            mean_q,
            silent_devices,
            wire_bits,
            undecodable,
            flagged,
        }
    };
    accuracies.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(metrics: &Metrics, name: &str) -> Reading {
        metrics.read(Metric::parse(name).unwrap())
    }

    #[test]
    fn every_metric_is_what_a_person_reads_off_the_curve() {
        let run = Metrics::new(&rows(&[0.2, 0.6, 0.8, 0.9, 0.7, 0.8]));
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

    #[test]
    fn a_target_that_was_not_reached_lies_after_the_last_evaluation() {
        let run = Metrics::new(&rows(&[0.2, 0.6]));
        assert_eq!(read(&run, "rounds-to-target"), Reading::AtLeast(21.0));
        assert_eq!(read(&run, "bits-to-target"), Reading::AtLeast(20_000.0));
        assert_eq!(run.value(Metric::RoundsTo(0.8)), None);
    }

    #[test]
    fn a_run_that_ended_early_has_no_end() {
        let run = Metrics::unfinished(&rows(&[0.2, 0.9]), "diverged");
        for name in ["final", "best", "loss", "area", "instability"] {
            assert_eq!(read(&run, name), Reading::Missing("it ended early (diverged)".into()), "{name}");
        }
        assert_eq!(read(&run, "rounds-to-target"), Reading::Known(20.0));
    }

    #[test]
    fn what_cannot_be_measured_is_missing_with_its_reason() {
        let reason = |metrics: Metrics, name| match read(&metrics, name) {
            Reading::Missing(reason) => reason,
            other => panic!("{other:?}"),
        };
        assert!(reason(Metrics::new(&[]), "rounds-to-target").contains("no evaluation"));
        assert!(reason(Metrics::new(&rows(&[0.5, 0.5])), "instability").contains("too few"));
        let mut exploded = rows(&[0.1]);
        exploded[0].test_loss = f64::INFINITY;
        assert!(reason(Metrics::new(&exploded), "loss").contains("not finite"));
    }

    #[test]
    fn errors_name_the_metrics_and_the_likely_one() {
        assert!(Metric::parse("instabilty").unwrap_err().contains("did you mean instability?"));
        assert!(Metric::parse("accuracy").unwrap_err().contains("there are final, best"));
        for word in ["rounds-to-90", "rounds-to-", "bits-to-x", "rounds-to-nan", "rounds-to-0", "bits-to--1"]
        {
            assert!(Metric::parse(word).unwrap_err().contains("a share above 0"), "{word}");
        }
    }

    proptest! {
        #[test]
        fn a_metric_reads_back_from_its_name(target in 1e-9..=1.0f64) {
            for metric in [Metric::RoundsTo(target), Metric::BitsTo(target), Metric::Final, Metric::Area] {
                prop_assert_eq!(Metric::parse(&metric.to_string()), Ok(metric));
            }
        }
    }
}
