//! Changes of an experiment: `--set`, `--quick` and custom parts.

use super::expand::Combination;
use super::rule::values_at;
use super::{Experiment, is_in, nested, part_of};
use crate::claims::{Claims, CurveKeys, Original, Subject};
use crate::goals::Goal;
use fedlink::parts::Parts;
use fedlink::spec::{Config, ConfigError, all_keys, check_name, put_in, unknown_key};
use std::collections::HashSet;
use toml::{Table, Value};

impl Experiment {
    /// Sets one key, as `--set key=value` does, for every curve. A swept key is no longer swept.
    ///
    /// The value is read as TOML (`5`, `1e-3`, `[256, 128]`, `true`); any other value is text (`bc`). A
    /// list of values for a key that takes one value is swept.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let parsed = toml::from_str::<Table>(&format!("value = {value}"));
        let value = match parsed.ok().and_then(|mut table| table.remove("value")) {
            Some(value) => value,
            None => Value::String(value.to_owned()),
        };
        self.set_value(key, value)
    }

    /// As [`Experiment::set`], with a value of TOML.
    pub fn set_value(&mut self, key: &str, value: Value) -> Result<(), ConfigError> {
        match value {
            Value::Array(values) if !values.is_empty() && self.takes_one(key, &values) => {
                self.sweep_over(key, values)
            }
            value => self.put(key, value),
        }
    }

    /// Whether `key` takes each of `values` and not their list.
    fn takes_one(&self, key: &str, values: &[Value]) -> bool {
        let list = Value::Array(values.to_vec());
        self.check_value(key, Some(&list)).is_err()
            && values.iter().all(|value| self.check_value(key, Some(value)).is_ok())
    }

    /// Sweeps `key` over `values`.
    fn sweep_over(&mut self, key: &str, values: Vec<Value>) -> Result<(), ConfigError> {
        self.set.insert(key.to_owned());
        check_once(key, &values)?;
        for rule in &mut self.overrides {
            rule.set.retain(|(overridden, _)| overridden != key);
        }
        match self.sweep.iter_mut().find(|(swept, _)| swept == key) {
            Some((_, before)) => *before = values,
            None => self.sweep.push((key.to_owned(), values)),
        }
        self.forget_missing_curves()
    }

    /// Adds custom parts as further values of the keys that choose them, unless the experiment names one of
    /// them: an experiment that comes with the program cannot name custom parts.
    pub fn add_unnamed(&mut self, parts: &Parts) -> Result<(), ConfigError> {
        self.add_unnamed_but(parts, |_| false)
    }

    /// As [`Experiment::add_unnamed`], without the parts of the keys that have been chosen for every curve.
    pub fn add_unnamed_but(
        &mut self,
        parts: &Parts,
        is_chosen: impl Fn(&str) -> bool,
    ) -> Result<(), ConfigError> {
        let free = || parts.named().filter(|(key, _)| !is_chosen(key));
        let defaults = Config::from_table(self.table.clone())?.to_table();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let chosen = |key: &str| nested(&defaults, key).map(text).unwrap_or_default();
        let is_named =
            |(key, name): (&str, &str)| chosen(key) == name || values_at(self, key).any(|v| text(v) == name);
        if free().any(is_named) {
            return Ok(());
        }
        for (key, name) in free() {
            let mut values = match self.sweep.iter().find(|(swept, _)| swept == key) {
                Some((_, values)) => values.clone(),
                None => vec![Value::from(chosen(key))],
            };
            values.push(name.into());
            self.sweep_over(key, values)?;
        }
        Ok(())
    }

    /// The same configuration with these goals and without claims, published values and `[quick]`, which are
    /// about curves that are no longer there.
    #[must_use]
    pub fn with_goals_only(self, goals: Vec<(String, Goal)>) -> Self {
        let (claims, original) = (Claims::default(), Original::default());
        Self { goals, claims, original, expected: Vec::new(), quick: Vec::new(), ..self }
    }

    /// Applies `[quick]`, as `--quick` does. Published values are about the whole experiment; they are shown
    /// and not judged.
    pub fn apply_quick(&mut self) -> Result<(), ConfigError> {
        self.original.quick = true;
        std::mem::take(&mut self.quick).into_iter().try_for_each(|(key, value)| self.put(&key, value))
    }

    /// Removes the claims and published values of curves that are gone.
    fn forget_missing_curves(&mut self) -> Result<(), ConfigError> {
        let keys: Vec<CurveKeys> = self.combinations()?.iter().map(Combination::keys).collect();
        self.claims.list.retain(|claim| claim.check(Subject::Runs, &keys).is_ok());
        self.expected.retain(|(_, expected)| expected.check(&keys).is_ok());
        Ok(())
    }

    fn put(&mut self, key: &str, value: Value) -> Result<(), ConfigError> {
        self.known_key(key)?;
        self.set.insert(key.to_owned());
        put_in(&mut self.table, key, value);
        for rule in &mut self.overrides {
            rule.set.retain(|(overridden, _)| overridden != key);
        }
        self.check_value(key, None)?;
        if self.sweep.iter().any(|(swept, _)| swept == key) {
            self.sweep.retain(|(swept, _)| swept != key);
            self.forget_missing_curves()?;
        }
        Ok(())
    }

    pub(super) fn known_key(&self, key: &str) -> Result<(), ConfigError> {
        // Custom parts check their own keys.
        let custom = |name: &str| self.table.get("custom").is_some_and(|parts| parts.get(name).is_some());
        // `section.part.key`, or one deeper for the parts of the server.
        let is_deep = || [2, 3].contains(&key.matches('.').count());
        let is_custom = || key.rsplit('.').nth(1).is_some_and(custom) && is_deep();
        let is_origin = || key.strip_prefix("custom.").is_some_and(|name| !name.contains('.'));
        let known = all_keys().iter().any(|known| known == key) || is_custom() || is_origin();
        if known { Ok(()) } else { Err(unknown_key(key)) }
    }

    /// Checks that `key` is known and that `value`, or its present value, has the right type.
    pub(super) fn check_value(&self, key: &str, value: Option<&Value>) -> Result<(), ConfigError> {
        self.known_key(key)?;
        // No other section depends on the key, except the names of custom parts.
        let mut table = part_of(&self.table, |section| section == "custom" || is_in(key, section));
        if let Some(value) = value {
            put_in(&mut table, key, value.clone());
        }
        let name = match nested(&table, key) {
            Some(Value::String(name)) => Some(name.clone()),
            // A key that takes text accepts a date.
            Some(Value::Datetime(date)) => Some(date.to_string()),
            _ => None,
        };
        let config = Config::from_table(table)?;
        name.map_or(Ok(()), |name| check_name(key, &name, &config))
    }
}

/// Refuses a value that is swept twice: it would make two curves of one name and the same runs.
pub(super) fn check_once(key: &str, values: &[Value]) -> Result<(), ConfigError> {
    // By its text: values are not ordered. Both zeros are one number.
    let text = |value: &Value| match value {
        Value::Float(number) => Value::Float(number + 0.0).to_string(),
        value => value.to_string(),
    };
    let mut seen = HashSet::with_capacity(values.len());
    match values.iter().find(|value| !seen.insert(text(value))) {
        None => Ok(()),
        Some(twice) => {
            let problem = format!("has {twice} twice; write every value once");
            Err(ConfigError::new(format!("sweep.\"{key}\""), problem))
        }
    }
}
