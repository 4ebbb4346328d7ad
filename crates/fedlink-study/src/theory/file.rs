//! Reading and changing the files of the bound and of the theorem.

use fedlink::parts::count::count;
use fedlink::spec::{ConfigError, nearest};
use fedlink_theory::rate::Rate;
use serde::de::{DeserializeOwned, SeqAccess, Visitor, value};
use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

/// One whole number or a list of them, each also as `1e5`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counts(pub Vec<u64>);

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountsVisitor;
        impl<'de> Visitor<'de> for CountsVisitor {
            type Value = Counts;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a whole number or a list of them")
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Counts, E> {
                count(value::I64Deserializer::new(value)).map(|value| Counts(vec![value]))
            }
            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Counts, E> {
                count(value::F64Deserializer::new(value)).map(|value| Counts(vec![value]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Counts, A::Error> {
                #[derive(Deserialize)]
                struct One(#[serde(deserialize_with = "count")] u64);
                let mut values = Vec::new();
                while let Some(One(value)) = seq.next_element()? {
                    values.push(value);
                }
                Ok(Counts(values))
            }
        }
        deserializer.deserialize_any(CountsVisitor)
    }
}

/// A learning rate as text; the file may also have a bare number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RateText(pub String);

impl<'de> Deserialize<'de> for RateText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RateVisitor;
        impl Visitor<'_> for RateVisitor {
            type Value = RateText;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a learning rate: a number, \"inverse-time\" or an expression in t, mu and tau")
            }
            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<RateText, E> {
                Ok(RateText(value.to_string()))
            }
            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<RateText, E> {
                Ok(RateText(value.to_string()))
            }
            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<RateText, E> {
                value.parse::<Rate>().map_err(E::custom)?;
                Ok(RateText(value.into()))
            }
        }
        deserializer.deserialize_any(RateVisitor)
    }
}

/// Reads a file; an error states the line and, for a misspelled name, the nearest known one.
pub(super) fn read<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, ConfigError> {
    let problem = |error: toml::de::Error| {
        let hint = nearest_name(error.message()).map(|near| format!("\ndid you mean {near}?"));
        format!("{}{}", error.to_string().trim_end(), hint.unwrap_or_default())
    };
    toml::from_str(text).map_err(|error| ConfigError::new(name, problem(error)))
}

/// Reads a file in which only `key` was changed.
pub(super) fn read_set<T: DeserializeOwned>(key: &str, text: &str) -> Result<T, ConfigError> {
    let problem = |error: toml::de::Error| {
        let hint = nearest_name(error.message()).map(|near| format!("; did you mean {near}?"));
        format!("{}{}", error.message().trim().replace('\n', " "), hint.unwrap_or_default())
    };
    toml::from_str(text).map_err(|error| ConfigError::new(key, problem(error)))
}

/// The known name nearest to an unknown one, from a message such as "unknown field `x`, expected one of `y`,
/// `z`".
fn nearest_name(message: &str) -> Option<&str> {
    let names =
        message.strip_prefix("unknown field ").or_else(|| message.strip_prefix("unknown variant "))?;
    let mut quoted = names.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    nearest(unknown, quoted)
}

/// `text` with `key = value` in `section`; comments are lost.
pub(super) fn set_in(text: &str, section: &str, key: &str, value: &str) -> Result<String, ConfigError> {
    let mut table: Table =
        toml::from_str(text).map_err(|error| ConfigError::new(section, error.message()))?;
    let parsed = toml::from_str::<Table>(&format!("value = {value}"));
    let parsed = parsed.ok().and_then(|mut table| table.remove("value"));
    let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
    if let Some(Value::Table(section)) = table.get_mut(section) {
        section.insert(key.to_owned(), value);
    }
    Ok(table.to_string())
}
