//! A goal as text: a cost until conditions hold, or a plain metric.

use super::metric::{Metric, Unit};
use super::parse::parse;
use fedlink::record::Row;
use fedlink::spec::ConfigError;
use std::fmt;
use std::str::FromStr;

/// A value that is wanted of a run.
///
/// ```
/// use fedlink_study::goals::Goal;
/// let text = "seconds until accuracy >= 0.85 and worst-class >= 0.7 for 3 evaluations";
/// let goal: Goal = text.parse().unwrap();
/// assert_eq!(goal.to_string(), text);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Goal {
    /// A cost until conditions hold.
    Until(Until),
    /// One number of a run.
    Plain(Metric),
}

/// A cost until all conditions hold at this number of consecutive evaluations.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Until {
    /// The cost that is counted.
    pub cost: Cost,
    /// The conditions, each on a quantity of its own; at least one.
    pub conditions: Vec<Condition>,
    /// The number of consecutive evaluations at which they hold, from 1; the cost is that at the first.
    pub evaluations: u64,
}

/// A cost of a run, counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cost {
    /// Rounds.
    Rounds,
    /// Channel symbols of the uplink.
    Symbols,
    /// Bits sent by all devices.
    Bits,
    /// Local trainings of all devices.
    Trainings,
    /// Seconds of the simulated system, where the radio has units.
    Seconds,
    /// Joules of all devices.
    Joules,
    /// Joules of the device that has spent the most.
    WorstDeviceJoules,
}

/// The costs by name.
pub const COST_NAMES: [(&str, Cost); 7] = [
    ("rounds", Cost::Rounds),
    ("symbols", Cost::Symbols),
    ("bits", Cost::Bits),
    ("trainings", Cost::Trainings),
    ("seconds", Cost::Seconds),
    ("joules", Cost::Joules),
    ("worst-device-joules", Cost::WorstDeviceJoules),
];

/// A quantity of an evaluation with the level that it must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Condition {
    /// The quantity.
    pub quantity: Quantity,
    /// The level.
    pub level: Level,
}

/// A level of a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level {
    /// A number.
    Number(f64),
    /// `run.target` of the run; for accuracy only.
    Target,
}

/// A quantity that is measured at every evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quantity {
    /// Share of correct answers on the test set.
    Accuracy,
    /// Mean loss on the test set.
    Loss,
    /// A metric that is recorded with `run.fairness`, by its place in a list.
    Recorded(&'static Recorded),
    /// The accuracy on one class, with `run.fairness`.
    Class(u32),
}

/// A metric of `run.fairness`.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// Its name in goals.
    pub(super) name: &'static str,
    /// Its name in `results.csv`.
    column: &'static str,
    /// Whether larger values are better.
    rises: bool,
    /// Whether it is a share from 0 to 1.
    share: bool,
}

/// The metrics of `run.fairness`.
pub(super) static RECORDED: [Recorded; 8] = {
    const fn metric(name: &'static str, column: &'static str, rises: bool, share: bool) -> Recorded {
        Recorded { name, column, rises, share }
    }
    [
        metric("worst-class", "worst_class", true, true),
        metric("worst-tenth", "worst_tenth", true, true),
        metric("worst-device", "worst_device", true, true),
        metric("device-deviation", "device_deviation", false, true),
        metric("device-gini", "device_gini", false, true),
        metric("jain", "jain", true, true),
        metric("max-age", "max_age", false, false),
        metric("mean-age", "mean_age", false, false),
    ]
};

impl Cost {
    /// Its name.
    pub fn name(self) -> &'static str {
        COST_NAMES.iter().find(|(_, cost)| *cost == self).map_or("", |(name, _)| name)
    }

    /// Its unit.
    pub fn unit(self) -> Unit {
        match self {
            Self::Rounds => Unit::Rounds,
            Self::Symbols => Unit::Symbols,
            Self::Bits => Unit::Bits,
            Self::Trainings => Unit::Trainings,
            Self::Seconds => Unit::Seconds,
            Self::Joules | Self::WorstDeviceJoules => Unit::Joules,
        }
    }
}

impl Quantity {
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "accuracy" => return Some(Self::Accuracy),
            "loss" => return Some(Self::Loss),
            _ => {}
        }
        if let Some(class) = word.strip_prefix("class-") {
            return class.parse().ok().map(Self::Class);
        }
        RECORDED.iter().find(|recorded| recorded.name == word).map(Self::Recorded)
    }

    /// Whether larger values are better.
    pub(super) fn rises(self) -> bool {
        match self {
            Self::Accuracy | Self::Class(_) => true,
            Self::Loss => false,
            Self::Recorded(recorded) => recorded.rises,
        }
    }

    pub(super) fn is_share(self) -> bool {
        match self {
            Self::Accuracy | Self::Class(_) => true,
            Self::Loss => false,
            Self::Recorded(recorded) => recorded.share,
        }
    }

    /// Its column, if it is a metric of `run.fairness` other than the accuracy of a class.
    pub(super) fn column(self) -> Option<&'static str> {
        match self {
            Self::Recorded(metric) => Some(metric.column),
            _ => None,
        }
    }

    fn needs_fairness(self) -> bool {
        !matches!(self, Self::Accuracy | Self::Loss)
    }

    /// Its value at an evaluation; none if it was not recorded.
    pub(super) fn value(self, row: &Row) -> Option<f64> {
        let recorded =
            |name: &str| row.metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        match self {
            Self::Accuracy => Some(row.test_accuracy),
            Self::Loss => Some(row.test_loss),
            Self::Recorded(metric) => recorded(metric.column),
            Self::Class(class) => recorded(&format!("class_{class}")),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accuracy => f.write_str("accuracy"),
            Self::Loss => f.write_str("loss"),
            Self::Recorded(recorded) => f.write_str(recorded.name),
            Self::Class(class) => write!(f, "class-{class}"),
        }
    }
}

impl Condition {
    /// Whether it holds at an evaluation of a run with this `run.target`; none if its quantity was not
    /// recorded.
    pub fn holds(&self, row: &Row, target: f64) -> Option<bool> {
        let value = self.quantity.value(row)?;
        let level = match self.level {
            Level::Number(level) => level,
            Level::Target => target,
        };
        Some(if self.quantity.rises() { value >= level } else { value <= level })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.quantity.rises() { ">=" } else { "<=" };
        match self.level {
            Level::Number(level) => write!(f, "{} {sign} {level}", self.quantity),
            Level::Target => write!(f, "{} {sign} target", self.quantity),
        }
    }
}

impl Until {
    /// `cost until accuracy >= level`.
    pub(crate) fn accuracy(cost: Cost, level: Level) -> Self {
        Self { cost, conditions: vec![Condition { quantity: Quantity::Accuracy, level }], evaluations: 1 }
    }
}

impl Goal {
    /// The cost until the accuracy is `run.target`.
    pub fn target(cost: Cost) -> Self {
        Self::Until(Until::accuracy(cost, Level::Target))
    }

    /// Its unit.
    pub fn unit(&self) -> Unit {
        match self {
            Self::Until(until) => until.cost.unit(),
            Self::Plain(metric) => metric.unit(),
        }
    }

    /// Whether only runs with `radio.bandwidth_hz` have it.
    pub fn needs_units(&self) -> bool {
        matches!(self.unit(), Unit::Seconds | Unit::Joules)
    }

    /// The quantity or metric that only runs with `run.fairness` have, if there is one.
    pub fn needs_fairness(&self) -> Option<String> {
        match self {
            Self::Until(until) => {
                let needing = until.conditions.iter().find(|condition| condition.quantity.needs_fairness());
                needing.map(|condition| condition.quantity.to_string())
            }
            Self::Plain(metric) => metric.needs_fairness().then(|| metric.to_string()),
        }
    }

    /// Whether it is a share from 0 to 1.
    pub(crate) fn is_share(&self) -> bool {
        self.unit() == Unit::Share
    }

    /// Whether it depends on the trained model.
    pub(crate) fn is_of_learning(&self) -> bool {
        self.metric().is_none_or(Metric::is_of_learning)
    }

    /// The plain metric, if it is one.
    pub fn metric(&self) -> Option<Metric> {
        match self {
            Self::Until(_) => None,
            Self::Plain(metric) => Some(*metric),
        }
    }

    /// Reads a goal of one word, as a claim has it: `final`, or `rounds-to-0.9` for
    /// `rounds until accuracy >= 0.9`.
    pub(crate) fn parse_word(word: &str) -> Result<Self, String> {
        let prefixes = [
            ("rounds", Cost::Rounds),
            ("bits", Cost::Bits),
            ("seconds", Cost::Seconds),
            ("joules", Cost::Joules),
        ];
        for (name, cost) in prefixes {
            let level = word.strip_prefix(name).and_then(|rest| rest.strip_prefix("-to-"));
            match level.map(|level| (level, level.parse::<f64>())) {
                Some(("target", _)) => return Ok(Self::target(cost)),
                Some((_, Ok(level))) if level > 0.0 && level <= 1.0 => {
                    return Ok(Self::Until(Until::accuracy(cost, Level::Number(level))));
                }
                Some((level, _)) if !level.starts_with("bound-") => {
                    return Err(format!(
                        "{word:?}: the target must be a share above 0 and at most 1, as in {name}-to-0.9"
                    ));
                }
                _ => {}
            }
        }
        Metric::parse(word).map(Self::Plain)
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Until { cost, conditions, evaluations } = match self {
            Self::Until(until) => until,
            Self::Plain(metric) => return write!(f, "{metric}"),
        };
        let conditions: Vec<String> = conditions.iter().map(ToString::to_string).collect();
        write!(f, "{} until {}", cost.name(), conditions.join(" and "))?;
        if *evaluations > 1 { write!(f, " for {evaluations} evaluations") } else { Ok(()) }
    }
}

impl FromStr for Goal {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        parse(text).map_err(|problem| ConfigError::new("goal", problem))
    }
}
