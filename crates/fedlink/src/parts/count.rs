//! Whole numbers in a configuration, which may also be written as `1e5`, and batch sizes.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Samples in a mini-batch (`learn.batch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSize {
    /// This number, drawn uniformly without replacement in every step.
    Count(u64),
    /// All samples of the device.
    Full,
}

/// A whole number ≥ 0, also in the form `1e5` or `5000.0`.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(CountVisitor)
}

/// As [`count`]; if the key is left out, the rule of its documentation applies.
pub fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    count(deserializer).map(Some)
}

struct CountVisitor;

impl Visitor<'_> for CountVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        Ok(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        u64::try_from(value)
            .map_err(|_| E::invalid_value(Unexpected::Signed(value), &"a whole number of at least 0"))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
        // 2⁵³: a float beyond it does not identify one whole number.
        if value.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&value) {
            return Ok(value as u64);
        }
        Err(E::invalid_value(Unexpected::Float(value), &"a whole number of at least 0"))
    }
}

impl Serialize for BatchSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Full => serializer.serialize_str("full"),
        }
    }
}

impl<'de> Deserialize<'de> for BatchSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BatchVisitor;
        impl Visitor<'_> for BatchVisitor {
            type Value = BatchSize;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a whole number or \"full\"")
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<BatchSize, E> {
                CountVisitor.visit_u64(value).map(BatchSize::Count)
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<BatchSize, E> {
                CountVisitor.visit_i64(value).map(BatchSize::Count)
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<BatchSize, E> {
                CountVisitor.visit_f64(value).map(BatchSize::Count)
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<BatchSize, E> {
                match value {
                    "full" => Ok(BatchSize::Full),
                    other => Err(E::invalid_value(Unexpected::Str(other), &self)),
                }
            }
        }
        deserializer.deserialize_any(BatchVisitor)
    }
}
