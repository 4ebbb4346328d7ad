//! The metrics of runs and of curves of the bound, and their units.

use crate::table::number;
use fedlink::spec::nearest;
use serde::Serialize;
use std::fmt;

/// The names without a number in them.
const NAMES: [(&str, Metric); 13] = [
    ("final", Metric::Final),
    ("best", Metric::Best),
    ("loss", Metric::Loss),
    ("area", Metric::Area),
    ("instability", Metric::Instability),
    ("total-seconds", Metric::TotalSeconds),
    ("total-joules", Metric::TotalJoules),
    ("worst-device-joules", Metric::WorstDeviceJoules),
    ("worst-class", Metric::WorstClass),
    ("worst-tenth", Metric::WorstTenth),
    ("worst-device", Metric::WorstDevice),
    ("jain", Metric::Jain),
    ("bound", Metric::Bound),
];

/// One number of a run or of a curve of the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
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
    /// `total-seconds`: the seconds of all rounds.
    TotalSeconds,
    /// `total-joules`: the joules of all devices in all rounds.
    TotalJoules,
    /// `worst-device-joules`: the joules of the device that spent the most in all rounds.
    WorstDeviceJoules,
    /// `worst-class`: the accuracy of the worst class at the last evaluation, with `run.fairness`.
    WorstClass,
    /// `worst-tenth`: the mean accuracy of the worst tenth of the devices then, with `run.fairness`.
    WorstTenth,
    /// `worst-device`: the lowest accuracy of a device then, with `run.fairness`.
    WorstDevice,
    /// `jain`: Jain's index of the numbers of rounds in which devices were scheduled.
    Jain,
    /// `bound`: the bound on E\[F\] − F* after the last round.
    Bound,
    /// `bound-at-200`: the same after that many rounds.
    BoundAt(u64),
    /// `rounds-to-bound-125`: the rounds until the bound is at most that; T + 1 if it never is.
    RoundsToBound(f64),
}

/// The unit of a metric; only numbers of one unit can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unit {
    /// Share of right answers.
    Share,
    /// Mean cross-entropy.
    Loss,
    /// A value of the loss bound, above E\[F\] − F*.
    Bound,
    /// A number of rounds.
    Rounds,
    /// A number of channel symbols.
    Symbols,
    /// A number of bits sent.
    Bits,
    /// A number of local trainings.
    Trainings,
    /// Seconds of the simulated system.
    Seconds,
    /// Joules of devices.
    Joules,
    /// An index without a unit.
    Index,
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
        Err(unknown(word))
    }

    /// Whether it is a number of the bound, and not of runs.
    pub fn is_of_bound(self) -> bool {
        matches!(self, Self::Bound | Self::BoundAt(_) | Self::RoundsToBound(_))
    }

    /// Whether it depends on the trained model; costs of all rounds and the evenness of scheduling do not.
    pub fn is_of_learning(self) -> bool {
        !matches!(self, Self::TotalSeconds | Self::TotalJoules | Self::WorstDeviceJoules | Self::Jain)
    }

    /// Whether only runs with `run.fairness` have it.
    pub fn needs_fairness(self) -> bool {
        matches!(self, Self::WorstClass | Self::WorstTenth | Self::WorstDevice)
    }

    /// Whether larger values are better.
    pub fn rises(self) -> bool {
        match self {
            Self::Final
            | Self::Best
            | Self::Area
            | Self::WorstClass
            | Self::WorstTenth
            | Self::WorstDevice
            | Self::Jain => true,
            Self::Loss
            | Self::Instability
            | Self::TotalSeconds
            | Self::TotalJoules
            | Self::WorstDeviceJoules
            | Self::Bound
            | Self::BoundAt(_)
            | Self::RoundsToBound(_) => false,
        }
    }

    /// Its unit.
    pub fn unit(self) -> Unit {
        match self {
            Self::Final
            | Self::Best
            | Self::Area
            | Self::Instability
            | Self::WorstClass
            | Self::WorstTenth
            | Self::WorstDevice => Unit::Share,
            Self::Jain => Unit::Index,
            Self::Loss => Unit::Loss,
            Self::RoundsToBound(_) => Unit::Rounds,
            Self::TotalSeconds => Unit::Seconds,
            Self::TotalJoules | Self::WorstDeviceJoules => Unit::Joules,
            Self::Bound | Self::BoundAt(_) => Unit::Bound,
        }
    }
}

fn unknown(word: &str) -> String {
    let names = NAMES.map(|(name, _)| name);
    let hint = nearest(word, names).map_or_else(String::new, |near| format!("; did you mean {near}?"));
    let names = names.join(", ");
    format!(
        "{word:?} is not a metric{hint}; write one of {names}, or a cost such as rounds-to-0.9; of the bound \
         bound-at-200 or rounds-to-bound-125"
    )
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, metric)| metric == self) {
            Some((name, _)) => f.write_str(name),
            None => match self {
                Self::BoundAt(rounds) => write!(f, "bound-at-{rounds}"),
                Self::RoundsToBound(level) => write!(f, "rounds-to-bound-{level}"),
                _ => write!(f, "{self:?}"),
            },
        }
    }
}

impl Unit {
    /// A number: shares in percent, losses with four digits after the point, bounds with about four digits,
    /// indices as losses, rounds and trainings with one after the point, everything else with about four
    /// digits, and with a unit if it has one.
    pub fn value(self, value: f64) -> String {
        match self {
            Self::Share => format!("{:.2} %", 100.0 * value),
            Self::Loss | Self::Index => format!("{value:.4}"),
            Self::Rounds | Self::Trainings => format!("{value:.1}"),
            Self::Bound | Self::Symbols | Self::Bits => number(value),
            Self::Seconds => format!("{} s", number(value)),
            Self::Joules => format!("{} J", number(value)),
        }
    }

    /// A difference with its sign, with as many digits as a number has; shares as percentage points.
    pub fn signed(self, difference: f64) -> String {
        match self {
            Self::Share => format!("{:+.2}", 100.0 * difference),
            Self::Loss | Self::Index => format!("{difference:+.4}"),
            Self::Rounds | Self::Trainings => format!("{difference:+.1}"),
            _ if difference.is_sign_negative() => number(difference),
            _ => format!("+{}", number(difference)),
        }
    }

    /// The words after such a difference.
    pub fn of_difference(self) -> &'static str {
        match self {
            Self::Share => "percentage points",
            Self::Loss => "of loss",
            Self::Bound => "of the bound",
            Self::Rounds => "rounds",
            Self::Symbols => "symbols",
            Self::Bits => "bits",
            Self::Trainings => "trainings",
            Self::Seconds => "seconds",
            Self::Joules => "joules",
            Self::Index => "of the index",
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
        assert!(Metric::parse("accuracy").unwrap_err().contains("write one of final, best"));
        for word in ["rounds-to-bound-", "rounds-to-bound-0", "rounds-to-bound-inf", "rounds-to-bound--1"] {
            assert!(Metric::parse(word).unwrap_err().contains("a number above 0"), "{word}");
        }
        for word in ["bound-at-", "bound-at-1.5", "bound-at--1", "bound-at-x"] {
            assert!(Metric::parse(word).unwrap_err().contains("a whole number"), "{word}");
        }
        assert!(Metric::parse("total-second").unwrap_err().contains("did you mean total-seconds?"));
        assert!(Metric::parse("bund").unwrap_err().contains("did you mean bound?"));
    }

    #[test]
    fn seconds_and_joules_carry_their_unit() {
        assert_eq!(Unit::Seconds.value(12.345), "12.35 s");
        assert_eq!(Unit::Joules.value(0.25), "0.250 J");
        assert_eq!([Unit::Seconds.signed(1.5), Unit::Joules.signed(-1.5)], ["+1.500", "-1.500"]);
        assert!(Metric::TotalJoules.unit() == Unit::Joules && Metric::Jain.unit() == Unit::Index);
    }

    proptest! {
        #[test]
        fn a_metric_reads_back_from_its_name(
            level in 1e-300..1e300f64,
            rounds: u64,
        ) {
            let of_runs = [
                Metric::TotalSeconds,
                Metric::TotalJoules,
                Metric::WorstDeviceJoules,
                Metric::WorstClass,
                Metric::WorstTenth,
                Metric::WorstDevice,
                Metric::Jain,
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
