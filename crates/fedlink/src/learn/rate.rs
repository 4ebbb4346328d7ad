//! Learning rates over the rounds, of the devices and of the server alike.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::f64::consts::PI;
use std::fmt;
use std::str::FromStr;

/// The change of a rate over the rounds (`learn.rate_schedule`, `learn.server_rate_schedule`): a factor
/// of the rate for round t of T, with t from 0.
///
/// | written | factor |
/// |---|---|
/// | `"constant"` | 1 |
/// | `"step(n, f)"` | f^⌊t/n⌋ |
/// | `"inverse(t0)"` | 1/(1 + t/t₀), the law under which the convergence bounds of local SGD vanish |
/// | `"cosine"` | ½·(1 + cos(π·t/T)): 1 at first, ½ after T/2, 0 after T |
/// | `"warmup(n)"` | (t+1)/n in the first n rounds, then 1 |
/// | `"warmup(n) …"` | the product of a warm-up and of one of the others |
///
/// Source of the cosine: Loshchilov and Hutter, *SGDR* (2016), without restarts. Invariants: factors are in
/// [0, 1] and depend on (t, T) alone, only the cosine on T.
///
/// ```
/// use fedlink::learn::rate::RateSchedule;
/// let schedule: RateSchedule = "warmup(4) step(10, 0.5)".parse().unwrap();
/// assert_eq!([0, 3, 10, 25].map(|t| schedule.factor(t, 100)), [0.25, 1.0, 0.5, 0.25]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSchedule {
    /// Rounds of the warm-up; 0: none.
    warmup: u64,
    decay: Decay,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Decay {
    #[default]
    Constant,
    Step {
        every: u64,
        factor: f64,
    },
    Inverse {
        rounds: f64,
    },
    Cosine,
}

/// The forms of a schedule, for messages.
pub const FORMS: &str = "\"constant\", \"step(rounds, factor)\" with a factor in (0, 1], \
    \"inverse(rounds)\", \"cosine\" or \"warmup(rounds)\", also before another: \"warmup(10) cosine\"";

impl RateSchedule {
    /// The factor of the rate in round `t` (from 0) of `rounds`.
    pub fn factor(&self, t: u64, rounds: u64) -> f64 {
        let decay = match self.decay {
            Decay::Constant => 1.0,
            Decay::Step { every, factor } => libm::pow(factor, (t / every) as f64),
            Decay::Inverse { rounds } => 1.0 / (1.0 + t as f64 / rounds),
            Decay::Cosine => 0.5 * (1.0 + libm::cos(PI * (t as f64 / rounds as f64).min(1.0))),
        };
        let warm = if t < self.warmup { (t + 1) as f64 / self.warmup as f64 } else { 1.0 };
        decay * warm
    }

    /// Whether it depends on the number of rounds of the run.
    pub fn knows_the_end(&self) -> bool {
        self.decay == Decay::Cosine
    }
}

/// A rate with its schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rate {
    /// The rate itself.
    pub base: f64,
    /// Its schedule.
    pub schedule: RateSchedule,
    /// T.
    pub rounds: u64,
}

impl Rate {
    /// The same rate in all rounds.
    pub fn constant(base: f64) -> Self {
        Self { base, schedule: RateSchedule::default(), rounds: 1 }
    }

    /// The rate of round `t`, counted from 0.
    pub fn at(&self, t: u64) -> f64 {
        self.base * self.schedule.factor(t, self.rounds)
    }
}

impl fmt::Display for RateSchedule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.warmup > 0 {
            write!(f, "warmup({})", self.warmup)?;
            if self.decay == Decay::Constant {
                return Ok(());
            }
            f.write_str(" ")?;
        }
        match self.decay {
            Decay::Constant => f.write_str("constant"),
            Decay::Step { every, factor } => write!(f, "step({every}, {factor})"),
            Decay::Inverse { rounds } => write!(f, "inverse({rounds})"),
            Decay::Cosine => f.write_str("cosine"),
        }
    }
}

/// `name(1, 2)` as the name and its numbers.
fn call(text: &str) -> Option<(&str, Vec<f64>)> {
    let Some((name, rest)) = text.split_once('(') else { return Some((text, Vec::new())) };
    let numbers = rest.strip_suffix(')')?.split(',').map(|number| number.trim().parse().ok());
    Some((name.trim(), numbers.collect::<Option<_>>()?))
}

/// A number of rounds.
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (1.0..=4_294_967_295.0).contains(&number)).then_some(number as u64)
}

impl RateSchedule {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (warmup, rest) = match text.strip_prefix("warmup") {
            None => (0, text),
            Some(rest) => {
                let end = rest.find(')')? + 1;
                let (_, numbers) = call(&rest[..end])?;
                let [rounds] = numbers[..] else { return None };
                (whole(rounds)?, rest[end..].trim())
            }
        };
        let decay = match call(rest)? {
            ("", numbers) if numbers.is_empty() && warmup > 0 => Decay::Constant,
            ("constant", numbers) if numbers.is_empty() => Decay::Constant,
            ("cosine", numbers) if numbers.is_empty() => Decay::Cosine,
            ("step", numbers) => {
                let [every, factor] = numbers[..] else { return None };
                (factor > 0.0 && factor <= 1.0).then_some(())?;
                Decay::Step { every: whole(every)?, factor }
            }
            ("inverse", numbers) => {
                let [rounds] = numbers[..] else { return None };
                (rounds > 0.0 && rounds.is_finite()).then_some(Decay::Inverse { rounds })?
            }
            _ => return None,
        };
        Some(Self { warmup, decay })
    }
}

impl FromStr for RateSchedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text).ok_or_else(|| format!("is \"{text}\", but must be {FORMS}"))
    }
}

impl Serialize for RateSchedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RateSchedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn factors(text: &str) -> [f64; 3] {
        let schedule: RateSchedule = text.parse().unwrap();
        [0, 50, 100].map(|t| schedule.factor(t, 100))
    }

    #[test]
    fn factors_of_the_first_middle_and_last_round_match_values_by_hand() {
        assert_eq!(factors("constant"), [1.0, 1.0, 1.0]);
        assert_eq!(factors("step(20, 0.5)"), [1.0, 0.25, 0.03125]);
        assert_eq!(factors("inverse(25)"), [1.0, 1.0 / 3.0, 0.2]);
        assert_eq!(factors("warmup(200)"), [1.0 / 200.0, 51.0 / 200.0, 101.0 / 200.0]);
        let [first, middle, last] = factors("cosine");
        assert!(first == 1.0 && (middle - 0.5).abs() < 1e-15 && last == 0.0, "{first} {middle} {last}");
        let [first, middle, last] = factors("warmup(4) cosine");
        assert!(first == 0.25 && (middle - 0.5).abs() < 1e-15 && last == 0.0, "{first} {middle} {last}");
    }

    #[test]
    fn an_invalid_schedule_is_refused_with_the_list_of_forms() {
        for text in [
            "",
            "linear",
            "step",
            "step(0, 0.5)",
            "step(1.5, 0.5)",
            "step(2, 0)",
            "step(2, 2)",
            "step(2)",
            "inverse(0)",
            "inverse(inf)",
            "cosine(3)",
            "warmup",
            "warmup()",
            "warmup(0)",
            "warmup(3) x",
            "constant warmup(3)",
            "step(2,0.5",
            "warmup(2) warmup(3)",
            "inverse(NaN)",
        ] {
            let error = text.parse::<RateSchedule>().unwrap_err();
            assert!(error.starts_with(&format!("is \"{text}\", but must be \"constant\"")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_schedule_is_read_back_as_it_is_written_and_its_factors_are_shares(
            warmup in 0u64..50, which in 0usize..4, every in 1u64..1000, factor in 0.01..=1.0f64,
            t in 0u64..2000,
        ) {
            let decay = [
                Decay::Constant,
                Decay::Step { every, factor },
                Decay::Inverse { rounds: factor * 100.0 },
                Decay::Cosine,
            ][which];
            let schedule = RateSchedule { warmup, decay };
            prop_assert_eq!(schedule.to_string().parse(), Ok(schedule));
            prop_assert!((0.0..=1.0).contains(&schedule.factor(t, 1000)));
        }
    }
}
