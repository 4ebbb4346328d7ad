//! Learning rates η(t).

pub use super::expression::Expression;

use super::bound::{check_rates, largest_rate};
use super::{MAX_ROUNDS, TheoryError, whole};
use std::fmt;
use std::str::FromStr;

/// η(t) for t = 0, 1, ….
///
/// ```
/// use fedlink_theory::rate::Rate;
/// // The paper's figure 3, in two ways.
/// let family = Rate::FromLimit { c: 1000.0 }.values(1.0, 3, 500).unwrap();
/// let text: Rate = "1000/(mu*tau*(t+1000))".parse().unwrap();
/// for (a, b) in family.iter().zip(text.values(1.0, 3, 500).unwrap()) {
///     assert!((a - b).abs() < 1e-15);
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Rate {
    /// The same in every round.
    Constant(f64),
    /// `a / (b·(t + c))`. The paper's figure 4 has a = c = 1000 and b = 20μ.
    InverseTime {
        /// a.
        a: f64,
        /// b.
        b: f64,
        /// c.
        c: f64,
    },
    /// `min{1, 1/(μτ)}·c/(t + c)`: starts at the largest rate that the theorem allows, for any μ and τ.
    /// The paper's figure 3 has c = 1000.
    FromLimit {
        /// c, the round in which the rate is half of the first.
        c: f64,
    },
    /// One value for each round.
    Table(Vec<f64>),
    /// A formula in t, mu and tau.
    Expression(Expression),
}

impl Default for Rate {
    fn default() -> Self {
        Self::FromLimit { c: 1000.0 }
    }
}

impl Rate {
    /// η(t), unchecked; `None` past the end of a table.
    pub fn at(&self, t: usize, mu: f64, tau: u64) -> Option<f64> {
        let time = t as f64;
        match self {
            Self::Constant(eta) => Some(*eta),
            Self::InverseTime { a, b, c } => Some(a / (b * (time + c))),
            Self::FromLimit { c } => Some(largest_rate(mu, tau) * (c / (time + c))),
            Self::Table(values) => values.get(t).copied(),
            Self::Expression(expression) => Some(expression.evaluate(time, mu, tau as f64)),
        }
    }

    /// η(0), …, η(`rounds`−1), each checked against 0 < η ≤ min{1, 1/(μτ)}; an error names the first
    /// invalid round.
    pub fn values(&self, mu: f64, tau: u64, rounds: usize) -> Result<Vec<f64>, TheoryError> {
        whole("rounds", rounds as u64, 0..=MAX_ROUNDS as u64, "")?;
        if let Self::Table(values) = self
            && values.len() < rounds
        {
            return Err(TheoryError::Length { name: "rate", got: values.len(), needed: rounds });
        }
        let rates: Vec<f64> = (0..rounds).map_while(|t| self.at(t, mu, tau)).collect();
        check_rates(&rates, mu, tau)?;
        Ok(rates)
    }
}

/// A number is a constant rate. `inverse-time` is the paper's figure 3, 1000/(μτ(t+1000)), and
/// `inverse-time:B` is 1000/(Bμ(t+1000)); figure 4 is B = 20. Any other text is parsed as an expression.
impl FromStr for Rate {
    type Err = TheoryError;

    fn from_str(text: &str) -> Result<Self, TheoryError> {
        if let Some(rest) = text.trim().strip_prefix("inverse-time") {
            let family = match rest.strip_prefix(':').map(|b| b.trim().parse::<f64>()) {
                None if rest.is_empty() => "1000/(mu*tau*(t+1000))".to_owned(),
                Some(Ok(b)) if b.is_finite() && b > 0.0 => format!("1000/({b}*mu*(t+1000))"),
                _ => {
                    return Err(TheoryError::Expression {
                        text: text.chars().take(100).collect(),
                        position: 1 + "inverse-time".len(),
                        problem: "expected nothing or a number above 0, as in inverse-time:20".into(),
                    });
                }
            };
            return Expression::parse(&family).map(Self::Expression);
        }
        match text.trim().parse::<f64>() {
            Ok(eta) if eta.is_finite() => Ok(Self::Constant(eta)),
            _ => Expression::parse(text).map(Self::Expression),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(eta) => write!(f, "{eta}"),
            Self::InverseTime { a, b: 1.0, c } => write!(f, "{a}/(t+{c})"),
            Self::InverseTime { a, b, c } => write!(f, "{a}/({b}*(t+{c}))"),
            Self::FromLimit { c } => write!(f, "min(1,1/(mu*tau))*{c}/(t+{c})"),
            Self::Table(values) => write!(f, "a table of {} values", values.len()),
            Self::Expression(expression) => expression.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_families_have_names() {
        let named = |text: &str, tau| text.parse::<Rate>().unwrap().at(250, 0.25, tau).unwrap();
        assert!((named("inverse-time", 3) - 1000.0 / (0.25 * 3.0 * 1250.0)).abs() < 1e-15);
        assert!((named("inverse-time:20", 3) - 1000.0 / (20.0 * 0.25 * 1250.0)).abs() < 1e-15);
        for text in ["inverse-time:", "inverse-time:x", "inverse-time:0", "inverse-time20"] {
            assert!(text.parse::<Rate>().unwrap_err().to_string().contains("inverse-time:20"), "{text}");
        }
    }

    #[test]
    fn the_families_are_those_of_the_paper() {
        let third = Rate::FromLimit { c: 1000.0 };
        let fourth = Rate::InverseTime { a: 1000.0, b: 20.0 * 0.25, c: 1000.0 };
        for t in [0usize, 1, 500, 1000, 99_999] {
            let shape = 1000.0 / (t as f64 + 1000.0);
            assert!((third.at(t, 1.0, 3).unwrap() - shape / 3.0).abs() < 1e-15);
            assert!((fourth.at(t, 0.25, 7).unwrap() - shape / 5.0).abs() < 1e-15);
        }
    }

    #[test]
    fn a_broken_limit_names_the_first_round() {
        let rising: Rate = "0.01*(t+1)".parse().unwrap();
        let error = rising.values(1.0, 4, 100).unwrap_err();
        assert_eq!(error, TheoryError::Rate { t: 25, eta: 0.26, limit: 0.25, tau: 4 });
        assert!(error.to_string().starts_with("rate: η(25) is 0.26"), "{error}");
        for (text, t) in [("0", 0), ("1/(t-3)^2*0.1", 3), ("0.3-0.1*t", 3), ("log(2-t)/10", 1)] {
            let rate: Rate = text.parse().unwrap();
            let Err(TheoryError::Rate { t: first, .. }) = rate.values(1.0, 1, 10) else { panic!("{text}") };
            assert_eq!(first, t, "{text}");
        }
    }

    #[test]
    fn the_largest_rate_is_allowed_in_every_form() {
        for tau in 1..200 {
            for mu in [0.1, 0.25, 0.7, 1.0, 3.3] {
                Rate::FromLimit { c: 1000.0 }.values(mu, tau, 3).unwrap();
                if mu * tau as f64 >= 1.0 {
                    "1000/(mu*tau*(t+1000))".parse::<Rate>().unwrap().values(mu, tau, 3).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_table_must_be_long_enough() {
        let table = Rate::Table(vec![0.1, 0.2]);
        assert_eq!(table.values(1.0, 1, 2).unwrap(), [0.1, 0.2]);
        assert_eq!(
            table.values(1.0, 1, 3).unwrap_err(),
            TheoryError::Length { name: "rate", got: 2, needed: 3 }
        );
        assert!(Rate::Constant(0.1).values(1.0, 1, usize::MAX).is_err());
    }

    proptest! {
        #[test]
        fn a_printed_rate_parses_to_the_same_rate(
            a in 0.1..1e4f64, b in 0.1..1e4f64, c in 0.1..1e4f64, mu in 0.01..10.0f64, tau in 1..50u64,
        ) {
            let families = [
                Rate::Constant(a),
                Rate::InverseTime { a, b, c },
                Rate::InverseTime { a, b: 1.0, c },
                Rate::FromLimit { c },
            ];
            for rate in families {
                let read: Rate = rate.to_string().parse().unwrap();
                for t in [0, 1, 1000] {
                    let (ours, theirs) = (rate.at(t, mu, tau).unwrap(), read.at(t, mu, tau).unwrap());
                    prop_assert!((ours / theirs - 1.0).abs() < 1e-14);
                }
            }
        }
    }
}
