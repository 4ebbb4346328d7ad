//! The question: goals, constraints, settings to search, budget.

use super::space::Axis;
use crate::goals::{COST_NAMES, Cost, Goal, Until};
use fedlink::spec::{ConfigError, nearest};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A question to the planner.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The goals, all with the same conditions or not; the first one chooses.
    pub goals: Vec<Until>,
    /// The limits of an answer.
    pub constraints: Vec<Constraint>,
    /// The settings to search; the planner's own if there are none.
    pub over: Vec<Axis>,
    /// The budget.
    pub budget: Budget,
    /// The probability with which the best candidate may be dropped by a test.
    pub error: f64,
}

/// The budget of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// So many runs of the full length; shorter runs count as their share of its rounds.
    Runs(f64),
    /// So much time.
    Time(Duration),
}

/// A limit of an answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Constraint {
    /// The limited quantity: a cost until the first goal, `late`, or a key of the configuration.
    pub name: String,
    /// The direction.
    pub sign: Sign,
    /// The limit; shares, not percent.
    pub limit: f64,
}

/// The direction of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Sign {
    /// `<=` or `<`.
    AtMost,
    /// `>=` or `>`.
    AtLeast,
}

impl Request {
    /// A question with one budget; the goals must be costs until conditions hold.
    pub fn new(goals: &[Goal], budget: Budget) -> Result<Self, ConfigError> {
        let until = |goal: &Goal| match goal {
            Goal::Until(until) => Ok(until.clone()),
            Goal::Plain(_) => Err(ConfigError::new(
                "--goal",
                format!(
                    "{goal} has no condition; write a cost until a condition, such as seconds until \
                     accuracy >= 0.85"
                ),
            )),
        };
        let goals: Vec<Until> = goals.iter().map(until).collect::<Result<_, _>>()?;
        if goals.is_empty() {
            return Err(ConfigError::new(
                "--goal",
                "is missing; write a goal such as \"seconds until accuracy >= 0.85\"",
            ));
        }
        Ok(Self { goals, constraints: Vec::new(), over: Vec::new(), budget, error: 0.05 })
    }
}

impl Request {
    /// A question as texts: goals, of which one after the first may be the name of a cost alone, with the
    /// conditions of the first; limits, axes, the budget and the error rate.
    pub fn parse(
        goals: &[String],
        subject_to: &[String],
        over: &[String],
        budget: &str,
        error: f64,
    ) -> Result<Self, ConfigError> {
        let mut parsed: Vec<Goal> = Vec::new();
        for text in goals {
            let cost = COST_NAMES.iter().find(|(name, _)| *name == text.trim()).map(|(_, cost)| *cost);
            parsed.push(match (cost, parsed.first()) {
                (Some(cost), Some(Goal::Until(first))) => Goal::Until(first.counted_in(cost)),
                _ => text.parse().map_err(|error: ConfigError| ConfigError::new("--goal", error.problem))?,
            });
        }
        let mut request = Self::new(&parsed, budget.parse()?)?;
        request.constraints = subject_to.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        request.over = over.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        for (i, axis) in request.over.iter().enumerate() {
            if request.over[..i].iter().any(|other| other.key == axis.key) {
                let problem = format!("has {} twice; write its values in one list", axis.key);
                return Err(ConfigError::new("--over", problem));
            }
        }
        if !(error > 0.0 && error < 1.0) {
            let problem = format!("is {error}; write a probability above 0 and below 1, such as 0.05");
            return Err(ConfigError::new("--error-rate", problem));
        }
        request.error = error;
        Ok(request)
    }
}

impl Constraint {
    /// The cost that it limits, if it limits one.
    pub fn cost(&self) -> Option<Cost> {
        COST_NAMES.iter().find(|(name, _)| *name == self.name).map(|(_, cost)| *cost)
    }

    /// Whether a value keeps it.
    pub fn holds(&self, value: f64) -> bool {
        match self.sign {
            Sign::AtMost => value <= self.limit,
            Sign::AtLeast => value >= self.limit,
        }
    }
}

impl FromStr for Constraint {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let refused = |problem: String| ConfigError::new("--subject-to", format!("{text:?}: {problem}"));
        let form = "write a limit such as \"worst-device-joules <= 5\", \"late <= 10 %\" or \
                    \"radio.bandwidth_hz <= 2e6\"";
        let at = text.find(['<', '>']).ok_or_else(|| refused(form.into()))?;
        let (name, rest) = (text[..at].trim(), text[at..].trim_start());
        let sign = if rest.starts_with('<') { Sign::AtMost } else { Sign::AtLeast };
        let number = rest.trim_start_matches(['<', '>', '=']).trim();
        let (number, scale) = match number.strip_suffix('%') {
            Some(percent) => (percent.trim(), 0.01),
            None => (number, 1.0),
        };
        let limit: f64 = number.parse().map_err(|_| refused(format!("{number:?} is no number; {form}")))?;
        let limit = scale * limit;
        if !limit.is_finite() {
            return Err(refused(format!("the limit must be finite; {form}")));
        }
        let keys = fedlink::spec::all_keys();
        let key = keys.iter().find(|key| *key == name || key.rsplit('.').next() == Some(name));
        let costs = COST_NAMES.iter().map(|(name, _)| *name);
        let name = if name == "late" || costs.clone().any(|cost| cost == name) {
            name.to_owned()
        } else if let Some(key) = key {
            key.clone()
        } else {
            let known = costs.chain(["late"]).chain(keys.iter().map(String::as_str));
            let near =
                nearest(name, known).map_or_else(String::new, |near| format!("; did you mean {near}?"));
            return Err(refused(format!("{name:?} is neither a cost nor a key{near}; {form}")));
        };
        if sign == Sign::AtLeast && !name.contains('.') {
            return Err(refused(format!("a limit of {name} is an upper one; write {name} <= …")));
        }
        Ok(Self { name, sign, limit })
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.sign == Sign::AtMost { "<=" } else { ">=" };
        match self.name.as_str() {
            "late" => write!(f, "late {sign} {} %", 100.0 * self.limit),
            name => write!(f, "{name} {sign} {}", self.limit),
        }
    }
}

impl FromStr for Budget {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let refused = || {
            let problem = format!("{text:?} is no budget; write 15min, 90s, 2h or 200runs");
            ConfigError::new("--budget", problem)
        };
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(refused)?;
        let (number, unit) = (&text[..split], text[split..].trim());
        let number: f64 = number.parse().map_err(|_| refused())?;
        let seconds = match unit {
            "runs" | "run" => {
                return if (1.0..=1e7).contains(&number) { Ok(Self::Runs(number)) } else { Err(refused()) };
            }
            "s" | "sec" => number,
            "min" | "m" => 60.0 * number,
            "h" => 3600.0 * number,
            _ => return Err(refused()),
        };
        if (1.0..=1e7).contains(&seconds) {
            Ok(Self::Time(Duration::from_secs_f64(seconds)))
        } else {
            Err(refused())
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runs(runs) => write!(f, "{runs}runs"),
            Self::Time(time) => write!(f, "{}s", time.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_time_or_a_number_of_runs() {
        assert_eq!("200runs".parse::<Budget>().unwrap(), Budget::Runs(200.0));
        assert_eq!("15min".parse::<Budget>().unwrap(), Budget::Time(Duration::from_mins(15)));
        assert_eq!("1.5h".parse::<Budget>().unwrap(), Budget::Time(Duration::from_mins(90)));
        for bad in ["", "15", "min", "0s", "-1min", "15 days", "1e3s", "nanruns", "0.5runs"] {
            assert!(bad.parse::<Budget>().unwrap_err().to_string().contains("200runs"), "{bad}");
        }
    }

    #[test]
    fn a_constraint_limits_a_cost_a_share_or_a_key() {
        let parsed = |text: &str| text.parse::<Constraint>().unwrap();
        let late = parsed("late < 10 %");
        assert_eq!(
            (late.name.as_str(), late.limit, late.to_string().as_str()),
            ("late", 0.1, "late <= 10 %")
        );
        assert_eq!(parsed("bandwidth_hz <= 2e6").name, "radio.bandwidth_hz");
        assert_eq!(parsed("worst-device-joules<5").cost(), Some(Cost::WorstDeviceJoules));
        for (bad, words) in [
            ("joule <= 5", "did you mean joules?"),
            ("late", "write a limit"),
            ("late <= x", "is no number"),
            ("seconds >= 5", "is an upper one"),
            ("late <= inf", "finite"),
        ] {
            let message = bad.parse::<Constraint>().unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }
}
