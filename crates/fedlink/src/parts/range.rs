//! Ranges of numbers; each error names the key, the value and the values that are allowed.

use super::ConfigError;
use std::fmt::{Display, LowerExp};
use std::ops::RangeInclusive;

/// The range of a key, as `#[key(range = "…")]` states it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lower bound, and whether it is allowed itself.
    pub min: Option<(f64, bool)>,
    /// The upper bound, and whether it is allowed itself.
    pub max: Option<(f64, bool)>,
    /// The range as the reference states it.
    pub words: &'static str,
}

impl Range {
    fn has(&self, value: f64) -> bool {
        let above = |(bound, within): (f64, bool)| value > bound || (within && value == bound);
        let below = |(bound, within): (f64, bool)| value < bound || (within && value == bound);
        value.is_finite() && self.min.is_none_or(above) && self.max.is_none_or(below)
    }

    /// As [`Range::has`], exact also beyond 2⁵³.
    fn has_whole(&self, value: u64) -> bool {
        let above = |(bound, within): (f64, bool)| {
            let bound = i128::from(bound.floor() as i64);
            i128::from(value) > bound || (within && i128::from(value) == bound)
        };
        let below = |(bound, within): (f64, bool)| {
            let bound = bound.ceil() as u64;
            value < bound || (within && value == bound)
        };
        self.min.is_none_or(above) && self.max.is_none_or(below)
    }

    fn refuse(&self, key: &str, value: impl Display, is_finite: bool) -> ConfigError {
        // A remark on the lower bound, as in "0 (Rayleigh) ..= 1e12", is not part of the range.
        let words = match self.words.split_once(" (").zip(self.words.split_once(") ..= ")) {
            Some(((min, _), (_, max))) => format!("{min}..={max}"),
            None => self.words.replace(" ..= ", "..="),
        };
        let remark = words.find([';', '(']).unwrap_or(words.len());
        let (bare, rest) = words.split_at(remark);
        let (bare, rest) = (bare.trim_end(), rest.trim_end());
        // A limit that the reference does not state, such as 2³² devices, is named in the message if a
        // value exceeds it.
        let most = match self.max {
            Some((most, _)) if !bare.contains(['≤', '<']) && !bare.contains("..=") => {
                format!(" and ≤ {most}")
            }
            _ => String::new(),
        };
        let remark = if rest.starts_with('(') { format!(" {rest}") } else { String::new() };
        let within = if bare.contains("..=") { "in " } else { "" };
        let finite = if is_finite { "" } else { "finite and " };
        ConfigError::new(key, format!("is {value}, but must be {finite}{within}{bare}{most}{remark}"))
    }
}

/// Values that a [`Range`] bounds.
pub trait Ranged {
    /// Checks that the value lies in `range`; floating-point numbers must be finite.
    fn check(&self, key: &str, range: &Range) -> Result<(), ConfigError>;
}

impl Ranged for f64 {
    fn check(&self, key: &str, range: &Range) -> Result<(), ConfigError> {
        if range.has(*self) { Ok(()) } else { Err(range.refuse(key, shown(*self), self.is_finite())) }
    }
}

impl Ranged for f32 {
    fn check(&self, key: &str, range: &Range) -> Result<(), ConfigError> {
        let wide = f64::from(*self);
        if range.has(wide) { Ok(()) } else { Err(range.refuse(key, shown(*self), self.is_finite())) }
    }
}

impl Ranged for u64 {
    fn check(&self, key: &str, range: &Range) -> Result<(), ConfigError> {
        if range.has_whole(*self) { Ok(()) } else { Err(range.refuse(key, self, true)) }
    }
}

impl Ranged for usize {
    fn check(&self, key: &str, range: &Range) -> Result<(), ConfigError> {
        (*self as u64).check(key, range)
    }
}

impl<T: Ranged> Ranged for Option<T> {
    fn check(&self, key: &str, range: &Range) -> Result<(), ConfigError> {
        self.as_ref().map_or(Ok(()), |value| value.check(key, range))
    }
}

/// Checks that a whole number lies in `range`; `note` follows the range in the message. For bounds that
/// depend on other keys.
pub fn within(key: &str, value: u64, range: RangeInclusive<u64>, note: &str) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(must_be(key, value, &format!("in {}..={}{note}", range.start(), range.end())))
}

/// Checks that a number is finite and `ok`; `allowed` is the range in words. For bounds that depend on other
/// keys.
pub fn number(key: &str, value: f64, ok: impl Fn(f64) -> bool, allowed: &str) -> Result<(), ConfigError> {
    if value.is_finite() && ok(value) {
        return Ok(());
    }
    Err(must_be(key, shown(value), allowed))
}

/// A number as messages show it: a very large or very small one with an exponent, not with its digits.
fn shown(value: impl Display + LowerExp + Into<f64> + Copy) -> String {
    let size = value.into().abs();
    if size == 0.0 || !size.is_finite() || (1e-5..1e16).contains(&size) {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}

fn must_be(key: &str, value: impl Display, allowed: &str) -> ConfigError {
    ConfigError::new(key, format!("is {value}, but must be {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: Range = Range { min: Some((0.0, false)), max: Some((1.0, true)), words: "> 0 and ≤ 1" };

    #[test]
    fn bounds_are_within_or_not_as_the_words_state() {
        for (value, ok) in
            [(0.0, false), (1e-300, true), (1.0, true), (1.000_001, false), (f64::NAN, false), (-1.0, false)]
        {
            assert_eq!(value.check("x", &SHARE).is_ok(), ok, "{value}");
        }
        let error = Some(2.0).check("energy.share", &SHARE).unwrap_err().to_string();
        assert_eq!(error, "energy.share: is 2, but must be > 0 and ≤ 1");
        let error = 1e308.check("energy.share", &SHARE).unwrap_err().to_string();
        assert_eq!(error, "energy.share: is 1e308, but must be > 0 and ≤ 1");
        assert!(None::<f64>.check("x", &SHARE).is_ok());
        let remark = Range { min: Some((0.0, true)), max: Some((5.0, true)), words: "0 (all have B) ..= 5" };
        assert_eq!((-1.0).check("x", &remark).unwrap_err().to_string(), "x: is -1, but must be in 0..=5");
    }

    #[test]
    fn whole_numbers_are_compared_exactly() {
        let max = 9_007_199_254_740_992.0;
        let range = Range { min: Some((1.0, true)), max: Some((max, true)), words: "≥ 1 (symbols)" };
        assert!((1u64 << 53).check("n", &range).is_ok());
        let error = ((1u64 << 53) + 1).check("n", &range).unwrap_err().to_string();
        assert_eq!(error, "n: is 9007199254740993, but must be ≥ 1 and ≤ 9007199254740992 (symbols)");
        assert!(0u64.check("n", &range).is_err());
        assert!(u64::MAX.check("n", &Range { max: None, ..range }).is_ok());
    }
}
