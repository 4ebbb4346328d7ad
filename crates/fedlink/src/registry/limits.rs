//! Checks of single values; each error names the key, the value and what is allowed.

use super::ConfigError;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Checks that a whole number lies in `range`; `note` follows the range in the message.
pub fn within(key: &str, value: u64, range: RangeInclusive<u64>, note: &str) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(must_be(key, value, &format!("in {}..={}{note}", range.start(), range.end())))
}

/// Checks that a number is finite and `ok`; `allowed` is the range in words.
pub fn number(key: &str, value: f64, ok: impl Fn(f64) -> bool, allowed: &str) -> Result<(), ConfigError> {
    if value.is_finite() && ok(value) {
        return Ok(());
    }
    Err(must_be(key, value, allowed))
}

fn must_be(key: &str, value: impl Display, allowed: &str) -> ConfigError {
    ConfigError::new(key, format!("is {value}, but must be {allowed}"))
}
