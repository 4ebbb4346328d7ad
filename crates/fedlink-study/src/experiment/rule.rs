//! Exceptions from a sweep: combinations left out, and values of single curves.

use super::expand::Combination;
use super::{Experiment, nested};
use fedlink::spec::{ConfigError, toml_key};
use std::{fmt, slice};
use toml::{Table, Value};

/// The condition of a rule: values of keys that a curve must have. Of a list, any value matches.
#[derive(Clone, Debug)]
pub(super) struct When {
    /// Its section of the file.
    pub section: &'static str,
    pub keys: Vec<(String, Value)>,
}

/// Values for the curves that match `when`.
#[derive(Clone, Debug)]
pub(super) struct Override {
    pub when: When,
    pub set: Vec<(String, Value)>,
}

impl When {
    pub fn new(of: &Experiment, section: &'static str, table: Table) -> Result<Self, ConfigError> {
        Ok(Self { section, keys: checked(of, section, table, values_of)? })
    }

    /// Whether the configuration that is resolved as `table` has all the values.
    pub fn matches(&self, table: &Table) -> bool {
        let has = |(key, wanted): &(String, Value)| {
            let value = nested(table, key);
            value.is_some_and(|value| values_of(wanted).iter().any(|wanted| same(value, wanted)))
        };
        self.keys.iter().all(has)
    }

    /// Whether it matches any of the combinations.
    pub fn matches_any(&self, combinations: &[Combination]) -> bool {
        combinations.iter().any(|combination| self.matches(&combination.resolved))
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
    pub fn new(of: &Experiment, when: Table, set: Table) -> Result<Self, ConfigError> {
        let set = checked(of, "override", set, slice::from_ref)?;
        Ok(Self { when: When::new(of, "override", when)?, set })
    }
}

/// The values of a list, or the single value.
fn values_of(value: &Value) -> &[Value] {
    value.as_array().map_or(slice::from_ref(value), Vec::as_slice)
}

/// The keys of a table that must not be empty. Every key must be known and each of its `values` of the right
/// type.
fn checked(
    of: &Experiment,
    section: &str,
    table: Table,
    values: fn(&Value) -> &[Value],
) -> Result<Vec<(String, Value)>, ConfigError> {
    if table.is_empty() {
        return Err(ConfigError::new(
            section,
            "has a table without keys; write for example \"schedule.k\" = 1",
        ));
    }
    let keys = flat(table);
    for (key, value) in &keys {
        for value in values(value) {
            // The same key may be right elsewhere in the file: the error is in this section.
            of.check_value(key, Some(value)).map_err(|error| ConfigError::new(section, error.to_string()))?;
        }
    }
    Ok(keys)
}

/// Whether two values are equal; 1 equals 1.0.
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
                keys.extend(flat(inner).into_iter().map(|(name, value)| (format!("{key}.{name}"), value)));
            }
            value => keys.push((key, value)),
        }
    }
    keys
}

/// Keys and values as TOML.
pub(super) fn toml_keys(keys: &[(String, Value)], between: &str) -> String {
    let lines: Vec<String> = keys.iter().map(|(key, value)| format!("{} = {value}", toml_key(key))).collect();
    lines.join(between)
}

/// The values that the sweep and the overrides give `key`.
pub(super) fn values_at<'a>(of: &'a Experiment, key: &'a str) -> impl Iterator<Item = &'a Value> {
    let swept = of.sweep.iter().filter(move |(swept, _)| swept == key).flat_map(|(_, values)| values);
    let set = of.overrides.iter().flat_map(|rule| &rule.set).filter(move |(set, _)| set == key);
    swept.chain(set.map(|(_, value)| value))
}
