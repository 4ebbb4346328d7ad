//! The configuration of a run as text ([`Config`]), and the run as one typed, valid value ([`Spec`]).

mod builder;
mod choices;
mod contract;
mod custom;
#[cfg(test)]
pub(crate) mod example;
mod groups;
pub mod identity;
mod idle;
mod keys;
mod position;
mod resolved;
mod rules;
mod sections;

pub use crate::parts::count::BatchSize;
pub use crate::parts::{ConfigError, Key, nearest};
pub use builder::Builder;
pub use choices::{Choices, Facts, kinds};
pub use contract::findings;
pub use groups::lower_groups;
use keys::unknown_value;
pub use keys::{
    KEYS, SECTIONS, all_keys, allowed, check_name, commented_toml, own_defaults, toml_key, unknown_key,
    unknown_section,
};
pub use position::{line_of, located, syntax_error};
pub use resolved::Spec;
pub use sections::{
    AdversaryConfig, CellConfig, ClockConfig, CompressConfig, DataConfig, DefenseConfig, EnergyConfig,
    LearnConfig, PrivacyConfig, RadioConfig, RunConfig, ScheduleConfig,
};

use crate::parts::{Scope, one_line, wrong_value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;
use toml::{Table, Value};

/// One run. Every field is a key `section.name` of the configuration file ([`KEYS`]); the parts that it names
/// have tables of their own, `[section.part]`.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the sections are documented by their types")]
pub struct Config {
    pub data: DataConfig,
    pub learn: LearnConfig,
    pub radio: RadioConfig,
    pub cell: CellConfig,
    pub clock: ClockConfig,
    pub energy: EnergyConfig,
    pub schedule: ScheduleConfig,
    pub compress: CompressConfig,
    pub adversary: AdversaryConfig,
    pub defense: DefenseConfig,
    pub privacy: PrivacyConfig,
    pub run: RunConfig,
    /// Custom parts: the name and the origin of each.
    pub custom: BTreeMap<String, String>,
    /// The own tables of parts by `section.part`, as far as they are set.
    own: BTreeMap<String, Table>,
}

impl Config {
    /// Parses TOML text into a valid configuration. Keys that are not there have their defaults.
    ///
    /// ```
    /// let config = fedlink::spec::Config::from_toml("[schedule]\nk = 5").unwrap();
    /// assert_eq!((config.schedule.k, config.data.devices), (5, 40));
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let table: Table = toml::from_str(text).map_err(|error| syntax_error("config", text, &error))?;
        let parse = || {
            let config = Self::from_table(table)?;
            config.validate()?;
            Ok(config)
        };
        parse().map_err(|error| located("config", text, error))
    }

    /// The configuration that `table` describes, each value of the right type; [`Config::validate`] checks
    /// the rest.
    pub fn from_table(table: Table) -> Result<Self, ConfigError> {
        Self::default().with_sections(table)
    }

    /// The configuration with other sections: those in `table` are read as in a file, and replace the old
    /// ones completely.
    ///
    /// ```
    /// use fedlink::spec::Config;
    /// let config = Config::from_toml("[schedule]\nk = 5\ndecay = 0.5\n[run]\nrounds = 7").unwrap();
    /// let config = config.with_sections(toml::from_str("[schedule]\nk = 3").unwrap()).unwrap();
    /// assert_eq!((config.schedule.k, config.schedule.decay, config.run.rounds), (3, 0.0, 7));
    /// ```
    pub fn with_sections(mut self, mut table: Table) -> Result<Self, ConfigError> {
        lower_groups(&mut table)?;
        if let Some((name, value)) = table.iter().find(|(name, _)| !SECTIONS.contains(&name.as_str())) {
            // A value outside of all sections is a key whose section was left out.
            return Err(if value.is_table() {
                unknown_section(name, &[])
            } else {
                unknown_value(name, value)
            });
        }
        let mut sections: BTreeMap<String, Table> = BTreeMap::new();
        for (name, value) in table {
            match value {
                Value::Table(section) => sections.insert(name, section),
                _ => {
                    return Err(ConfigError::new(
                        &name,
                        format!("is a section: write [{name}] and its keys below"),
                    ));
                }
            };
        }
        self.own.retain(|path, _| !sections.contains_key(path.split('.').next().unwrap_or(path)));
        read(&mut sections, "custom", &mut self.custom)?;
        // Its own table is `[section.name]`, so that a dot would end the name.
        if let Some(name) = self.custom.keys().find(|name| name.is_empty() || name.contains('.')) {
            let problem = "is not a name for a part, which has at least one character and no dot";
            return Err(ConfigError::new(format!("custom.{name:?}"), problem));
        }
        for (name, table) in &mut sections {
            self.take_own_tables(name, table)?;
            if let Some((key, value)) = table.iter().find(|(key, _)| !is_known(&format!("{name}.{key}"))) {
                return Err(unknown_value(&format!("{name}.{key}"), value));
            }
        }
        read(&mut sections, "data", &mut self.data)?;
        read(&mut sections, "learn", &mut self.learn)?;
        read(&mut sections, "radio", &mut self.radio)?;
        read(&mut sections, "cell", &mut self.cell)?;
        read(&mut sections, "clock", &mut self.clock)?;
        read(&mut sections, "energy", &mut self.energy)?;
        read(&mut sections, "schedule", &mut self.schedule)?;
        read(&mut sections, "compress", &mut self.compress)?;
        read(&mut sections, "adversary", &mut self.adversary)?;
        read(&mut sections, "defense", &mut self.defense)?;
        read(&mut sections, "privacy", &mut self.privacy)?;
        read(&mut sections, "run", &mut self.run)?;
        Ok(self)
    }

    /// Moves the tables of parts out of a section.
    fn take_own_tables(&mut self, path: &str, table: &mut Table) -> Result<(), ConfigError> {
        let kinds = kinds();
        let names: Vec<String> =
            table.iter().filter(|(_, value)| value.is_table()).map(|(name, _)| name.clone()).collect();
        for name in names {
            let Some(Value::Table(mut own)) = table.remove(&name) else { continue };
            let inner = format!("{path}.{name}");
            if kinds.iter().any(|kind| kind.table == inner) {
                // `[learn.server]` holds the tables of server optimizers.
                self.take_own_tables(&inner, &mut own)?;
                if let Some((key, value)) = own.iter().next() {
                    return Err(unknown_value(&format!("{inner}.{key}"), value));
                }
                continue;
            }
            let listed = |kind: &crate::parts::Listing| {
                kind.table == path && kind.parts.iter().any(|part| part.name == name)
            };
            if !kinds.iter().any(listed) && !self.custom.contains_key(&name) {
                return Err(unknown_part(kinds, path, &name));
            }
            self.own.insert(inner, own);
        }
        Ok(())
    }

    /// The configuration as a table: every key of the sections, and those keys of parts that are set.
    pub fn to_table(&self) -> Table {
        self.sections(|_| true)
    }

    /// As [`Config::to_table`], of the sections that are wanted by name.
    pub fn sections(&self, wanted: impl Fn(&str) -> bool) -> Table {
        let mut table = Table::new();
        let mut put = |name: &str, section: &dyn Fn() -> Result<Table, toml::ser::Error>| {
            if wanted(name) {
                table.insert(name.into(), Value::Table(section().expect("a section is a table")));
            }
        };
        put("data", &|| Table::try_from(&self.data));
        put("learn", &|| Table::try_from(&self.learn));
        put("radio", &|| Table::try_from(&self.radio));
        put("cell", &|| Table::try_from(&self.cell));
        put("clock", &|| Table::try_from(&self.clock));
        put("energy", &|| Table::try_from(&self.energy));
        put("schedule", &|| Table::try_from(&self.schedule));
        put("compress", &|| Table::try_from(&self.compress));
        put("adversary", &|| Table::try_from(&self.adversary));
        put("defense", &|| Table::try_from(&self.defense));
        put("privacy", &|| Table::try_from(&self.privacy));
        put("run", &|| Table::try_from(&self.run));
        if !self.custom.is_empty() {
            put("custom", &|| Table::try_from(&self.custom));
        }
        let is_wanted = |path: &str| path.split('.').next().is_some_and(&wanted);
        for (path, own) in self.own.iter().filter(|(path, _)| is_wanted(path)) {
            put_in(&mut table, path, Value::Table(own.clone()));
        }
        table
    }

    /// The own table of a part, `[table.name]`, as far as it is set.
    pub fn own_table(&self, table: &str, name: &str) -> &Table {
        static EMPTY: LazyLock<Table> = LazyLock::new(Table::new);
        self.own.get(&format!("{table}.{name}")).unwrap_or(&EMPTY)
    }

    /// The own tables of custom parts under `section`.
    pub(crate) fn custom_tables(&self, section: &str) -> impl Iterator<Item = (&str, &Table)> {
        self.own.iter().filter_map(move |(path, own)| {
            let (above, name) = path.rsplit_once('.')?;
            let inside = above == section || above.starts_with(&format!("{section}."));
            (inside && self.custom.contains_key(name)).then_some((path.as_str(), own))
        })
    }

    /// Sets one key, `section.name` or `section.part.name`, to a TOML value.
    ///
    /// ```
    /// let mut config = fedlink::spec::Config::default();
    /// config.set("schedule.policy", "bc-bn2").unwrap();
    /// config.set("schedule.bc-bn2.kc", 20).unwrap();
    /// let error = config.set("schedule.kc", 20).unwrap_err();
    /// assert_eq!(error.to_string(), "schedule.kc: is now called schedule.bc-bn2.kc");
    /// ```
    pub fn set(&mut self, key: &str, value: impl Into<Value>) -> Result<(), ConfigError> {
        // The deepest keys are those of the parts of the server, `learn.server.part.key`.
        let deep = key.matches('.').count() > 3;
        if deep || !key.split_once('.').is_some_and(|(section, _)| SECTIONS.contains(&section)) {
            return Err(unknown_key(key));
        }
        let mut table = self.sections(|section| key.split('.').next() == Some(section));
        put_in(&mut table, key, value.into());
        *self = self.clone().with_sections(table).map_err(|error| {
            if error.key == key { error } else { ConfigError::new(key, error.to_string()) }
        })?;
        Ok(())
    }

    /// Removes the parts from `[custom]` that no key chooses.
    pub fn drop_unused_custom(&mut self) {
        let mut chosen: Vec<String> = self.chosen_names().into_iter().map(str::to_owned).collect();
        chosen.push(self.data.dataset.clone());
        self.custom.retain(|name, _| chosen.contains(name));
    }

    /// The facts of the run that every part may know.
    pub fn scope(&self) -> Scope {
        Scope {
            devices: self.data.devices,
            k: self.schedule.k,
            rounds: self.run.rounds,
            samples_per_device: self.data.samples_per_device,
            seed: self.run.seed,
        }
    }
}

/// Whether `section.name` is a key.
fn is_known(key: &str) -> bool {
    // It is needed for every key that is read.
    static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| KEYS.iter().map(|key| key.name).collect());
    NAMES.contains(key)
}

/// Reads the section `name` into `to`, if it is there.
fn read<T: DeserializeOwned>(
    sections: &mut BTreeMap<String, Table>,
    name: &str,
    to: &mut T,
) -> Result<(), ConfigError> {
    if let Some(table) = sections.remove(name) {
        *to = section(name, table)?;
    }
    Ok(())
}

/// Reads a section; the error names the first key whose value alone cannot be read.
fn section<T: DeserializeOwned>(name: &str, table: Table) -> Result<T, ConfigError> {
    table.clone().try_into().map_err(|whole: toml::de::Error| {
        let alone = |(key, value): (String, Value)| {
            let error = Table::from_iter([(key.clone(), value.clone())]).try_into::<T>().err()?;
            Some(ConfigError::new(format!("{name}.{key}"), wrong_value(&key, &value, error.message())))
        };
        table.into_iter().find_map(alone).unwrap_or_else(|| ConfigError::new(name, one_line(whole.message())))
    })
}

/// The error of a table `[path.name]` of which no part is known.
fn unknown_part(kinds: &[crate::parts::Listing], path: &str, name: &str) -> ConfigError {
    let known: Vec<&str> = kinds
        .iter()
        .filter(|kind| kind.table == path)
        .flat_map(|kind| &kind.parts)
        .map(|part| part.name)
        .collect();
    let hint = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean [{path}.{near}]?"),
        None if known.is_empty() => format!("[{path}] has no tables"),
        None => format!("there are {}", known.join(", ")),
    };
    ConfigError::new(format!("{path}.{name}"), format!("is not a part; {hint}"))
}

/// Puts `value` at `a.b.c` of nested tables, in place of the value there.
pub fn put_in(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = table.entry(first).or_insert_with(|| Value::Table(Table::new()));
            if !inner.is_table() {
                *inner = Value::Table(Table::new());
            }
            if let Value::Table(inner) = inner {
                put_in(inner, rest, value);
            }
        }
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_table().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_table(Table::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
