//! Exceptions from a sweep: combinations left out, and values of single curves.

use super::check_value;
use crate::config::{Config, ConfigError};
use std::fmt;
use toml::{Table, Value};

/// Some keys with the values that a curve must have for a rule to be about it.
#[derive(Clone, Debug)]
pub(super) struct When {
    /// The table that it stands in.
    pub place: &'static str,
    pub keys: Vec<(String, Value)>,
}

/// Values for the curves that `when` describes.
#[derive(Clone, Debug)]
pub(super) struct Override {
    pub when: When,
    pub set: Vec<(String, Value)>,
}

impl When {
    pub fn new(place: &'static str, table: Table) -> Result<Self, ConfigError> {
        Ok(Self { place, keys: checked(place, table)? })
    }

    /// Whether `config` has all the values.
    pub fn matches(&self, config: &Config) -> bool {
        let table = Table::try_from(config.resolved()).expect("a configuration is a table");
        let has = |(key, wanted): &(String, Value)| {
            let (section, name) = key.split_once('.').expect("known keys are section.name");
            table.get(section).and_then(|keys| keys.get(name)).is_some_and(|value| same(value, wanted))
        };
        self.keys.iter().all(has)
    }
}

/// `schedule.k = 1 and schedule.policy = "bc"`.
impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.keys.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        f.write_str(&words.join(" and "))
    }
}

impl Override {
    pub fn new(when: Table, set: Table) -> Result<Self, ConfigError> {
        Ok(Self { when: When::new("override", when)?, set: checked("override", set)? })
    }
}

/// The keys of a table that must not be empty, each known and of the right type.
fn checked(place: &str, table: Table) -> Result<Vec<(String, Value)>, ConfigError> {
    if table.is_empty() {
        return Err(ConfigError::new(
            place,
            "has a table without keys; write for example \"schedule.k\" = 1",
        ));
    }
    let keys = flat(table);
    keys.iter().try_for_each(|(key, value)| check_value(key, value))?;
    Ok(keys)
}

/// A whole number and the same number written with a point are one value.
fn same(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
    a == b || (number(a).is_some() && number(a) == number(b))
}

/// The keys of a table as `section.name`, whether written so or as nested tables.
pub(super) fn flat(table: Table) -> Vec<(String, Value)> {
    let mut keys = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                keys.extend(inner.into_iter().map(|(name, value)| (format!("{key}.{name}"), value)));
            }
            value => keys.push((key, value)),
        }
    }
    keys
}

/// Keys and values as TOML.
pub(super) fn toml_keys(keys: &[(String, Value)], between: &str) -> String {
    let lines: Vec<String> = keys.iter().map(|(key, value)| format!("\"{key}\" = {value}")).collect();
    lines.join(between)
}
