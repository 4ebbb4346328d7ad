//! What a claim may ask of a run or of a curve of the bound.

use crate::table::number;
use fedlink::config::nearest;
use serde::Serialize;
use std::fmt;

/// The names without a number in them.
const NAMES: [(&str, Metric); 8] = [
    ("final", Metric::Final),
    ("best", Metric::Best),
    ("loss", Metric::Loss),
    ("area", Metric::Area),
    ("instability", Metric::Instability),
    ("rounds-to-target", Metric::RoundsToTarget),
    ("bits-to-target", Metric::BitsToTarget),
    ("bound", Metric::Bound),
];

/// One number of a run or of a curve of the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// `final`: test accuracy at the last evaluation.
    Final,
    /// `best`: the highest test accuracy at any evaluation.
    Best,
    /// `loss`: test loss at the last evaluation.
    Loss,
    /// `area`: mean height of the accuracy curve ([`mean_height`](crate::statistics::mean_height)).
    Area,
    /// `instability`: mean change from one evaluation to the next over the last third
    /// ([`instability`](crate::statistics::instability)).
    Instability,
    /// `rounds-to-target`: the first evaluated round with the accuracy `run.target` of the run.
    RoundsToTarget,
    /// `bits-to-target`: all bits sent until then.
    BitsToTarget,
    /// `rounds-to-0.9`: the first evaluated round with that accuracy.
    RoundsTo(f64),
    /// `bits-to-0.9`: all bits sent until then.
    BitsTo(f64),
    /// `bound`: the bound on E\[F\] − F* after the last round.
    Bound,
    /// `bound-at-200`: the same after that many rounds.
    BoundAt(u64),
    /// `rounds-to-bound-125`: the rounds until the bound is at most that; one more than there are if it never
    /// is.
    RoundsToBound(f64),
}

/// What a metric is measured in; only numbers of one unit can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Share of right answers.
    Share,
    /// Mean cross-entropy.
    Loss,
    /// A value of the loss bound, above E\[F\] − F*.
    Bound,
    /// A number of rounds.
    Rounds,
    /// A number of bits sent.
    Bits,
}

impl Metric {
    /// Reads a metric's name.
    pub(super) fn parse(word: &str) -> Result<Self, String> {
        if let Some((_, metric)) = NAMES.iter().find(|(name, _)| *name == word) {
            return Ok(*metric);
        }
        if let Some(level) = word.strip_prefix("rounds-to-bound-") {
            return match level.parse::<f64>() {
                Ok(level) if level.is_finite() && level > 0.0 => Ok(Self::RoundsToBound(level)),
                _ => Err(format!("{word:?}: the level must be a number above 0, as in rounds-to-bound-125")),
            };
        }
        if let Some(rounds) = word.strip_prefix("bound-at-") {
            let problem = || format!("{word:?}: the rounds must be a whole number, as in bound-at-200");
            return rounds.parse().map(Self::BoundAt).map_err(|_| problem());
        }
        let target = |prefix: &str| word.strip_prefix(prefix).map(str::parse::<f64>);
        let (prefix, target, metric): (_, _, fn(f64) -> Self) = match target("rounds-to-") {
            Some(target) => ("rounds-to-", target, Self::RoundsTo),
            None => match target("bits-to-") {
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

    /// Whether it is a number of the bound, and not of runs.
    pub fn is_of_bound(self) -> bool {
        matches!(self, Self::Bound | Self::BoundAt(_) | Self::RoundsToBound(_))
    }

    /// What it is measured in.
    pub fn unit(self) -> Unit {
        match self {
            Self::Final | Self::Best | Self::Area | Self::Instability => Unit::Share,
            Self::Loss => Unit::Loss,
            Self::RoundsTo(_) | Self::RoundsToTarget | Self::RoundsToBound(_) => Unit::Rounds,
            Self::BitsTo(_) | Self::BitsToTarget => Unit::Bits,
            Self::Bound | Self::BoundAt(_) => Unit::Bound,
        }
    }
}

fn unknown(word: &str) -> String {
    let names = NAMES.map(|(name, _)| name);
    let hint = nearest(word, names).map_or_else(String::new, |near| format!("; did you mean {near}?"));
    let names = names.join(", ");
    format!("{word:?} is not a metric; there are {names}, rounds-to-0.9, bound-at-200 and the like{hint}")
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, metric)| metric == self) {
            Some((name, _)) => f.write_str(name),
            None => match self {
                Self::RoundsTo(target) => write!(f, "rounds-to-{target}"),
                Self::BitsTo(target) => write!(f, "bits-to-{target}"),
                Self::BoundAt(rounds) => write!(f, "bound-at-{rounds}"),
                Self::RoundsToBound(level) => write!(f, "rounds-to-bound-{level}"),
                _ => write!(f, "{self:?}"),
            },
        }
    }
}

impl Unit {
    /// A number: shares in percent, losses with four digits after the point, bounds with about four digits,
    /// rounds and bits with one after the point.
    pub fn value(self, value: f64) -> String {
        match self {
            Self::Share => format!("{:.2} %", 100.0 * value),
            Self::Loss => format!("{value:.4}"),
            Self::Bound => number(value),
            Self::Rounds | Self::Bits => format!("{value:.1}"),
        }
    }

    /// A difference with its sign, with as many digits as a number has; shares as percentage points.
    pub fn signed(self, difference: f64) -> String {
        match self {
            Self::Share => format!("{:+.2}", 100.0 * difference),
            Self::Loss => format!("{difference:+.4}"),
            Self::Bound if difference.is_sign_negative() => number(difference),
            Self::Bound => format!("+{}", number(difference)),
            Self::Rounds | Self::Bits => format!("{difference:+.1}"),
        }
    }

    /// What stands behind such a difference.
    pub fn of_difference(self) -> &'static str {
        match self {
            Self::Share => "percentage points",
            Self::Loss => "of loss",
            Self::Bound => "of the bound",
            Self::Rounds => "rounds",
            Self::Bits => "bits",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn errors_name_the_metrics_and_the_likely_one() {
        assert!(Metric::parse("instabilty").unwrap_err().contains("did you mean instability?"));
        assert!(Metric::parse("accuracy").unwrap_err().contains("there are final, best"));
        for word in ["rounds-to-90", "rounds-to-", "bits-to-x", "rounds-to-nan", "rounds-to-0", "bits-to--1"]
        {
            assert!(Metric::parse(word).unwrap_err().contains("a share above 0"), "{word}");
        }
        for word in ["rounds-to-bound-", "rounds-to-bound-0", "rounds-to-bound-inf", "rounds-to-bound--1"] {
            assert!(Metric::parse(word).unwrap_err().contains("a number above 0"), "{word}");
        }
        for word in ["bound-at-", "bound-at-1.5", "bound-at--1", "bound-at-x"] {
            assert!(Metric::parse(word).unwrap_err().contains("a whole number"), "{word}");
        }
        assert!(Metric::parse("bund").unwrap_err().contains("did you mean bound?"));
    }

    proptest! {
        #[test]
        fn a_metric_reads_back_from_its_name(
            target in 1e-9..=1.0f64,
            level in 1e-300..1e300f64,
            rounds: u64,
        ) {
            let of_runs = [
                Metric::RoundsTo(target),
                Metric::BitsTo(target),
                Metric::RoundsToTarget,
                Metric::BitsToTarget,
                Metric::Final,
                Metric::Area,
            ];
            let of_bound = [Metric::Bound, Metric::BoundAt(rounds), Metric::RoundsToBound(level)];
            prop_assert!(of_bound.iter().all(|metric| metric.is_of_bound()));
            for metric in of_runs.into_iter().chain(of_bound) {
                prop_assert_eq!(Metric::parse(&metric.to_string()), Ok(metric));
            }
        }
    }
}
