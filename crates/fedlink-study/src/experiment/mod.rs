//! An experiment: one configuration, or several that differ in the keys of `[sweep]`.
//!
//! ```toml
//! [sweep]                                  # every combination is a curve
//! "schedule.policy" = ["bc", "bc-bn2"]
//! "schedule.k" = [1, 10]
//!
//! [[exclude]]                              # but not this one
//! "schedule.policy" = "bc"
//! "schedule.k" = 10
//!
//! [[override]]                             # and this one with a value of its own
//! when = { "schedule.policy" = "bc-bn2", "schedule.k" = 10 }
//! set = { "schedule.kc" = 20 }
//!
//! [expected]                               # final accuracies that somebody published
//! "bc@k=1" = 0.912
//!
//! [claims]                                 # what somebody asserts, see [`crate::claims`]
//! "few are enough" = "bc-bn2@k=1 final > bc-bn2@k=10 final"
//!
//! [quick]                                  # what `--quick` changes
//! "run.rounds" = 20
//! ```

mod any;
mod bound;
mod rule;
mod theorem;

pub use any::AnyExperiment;
pub use bound::{
    BoundExperiment, Claim as BoundClaim, ClaimResult, Comparison, EXPECTATION_SAMPLES, Panel, PanelResult,
    Verdict,
};
pub use theorem::{TheoremExperiment, TheoremResult};

use crate::claims::{Claim, CurveKeys, Expected};
use crate::presets::preset;
use fedlink::config::position::{parse_error, sections, value_error};
use fedlink::config::{Config, ConfigError, KEYS, nearest};
use rule::{Override, When, flat, toml_keys};
use serde::Deserialize;
use std::fmt::Write;
use toml::{Table, Value};

/// A configuration file: the sections of [`Config`] and, optionally, `[sweep]` with lists of values for keys,
/// `[[exclude]]`, `[[override]]`, `[expected]`, `[claims]` and `[quick]`.
#[derive(Clone, Debug, Default)]
pub struct Experiment {
    /// Where it came from, for the output folder and messages.
    pub name: String,
    /// What the file and `set` have said; anything else has its default.
    table: Table,
    /// The keys that differ between curves, with their values.
    sweep: Vec<(String, Vec<Value>)>,
    /// Combinations that are no curves.
    excluded: Vec<When>,
    /// Values of single curves, later ones over earlier ones.
    overrides: Vec<Override>,
    /// What `--quick` changes.
    quick: Vec<(String, Value)>,
    /// What is claimed of the curves.
    claims: Vec<Claim>,
    /// What was published of them, as written and as read.
    expected: Vec<(String, Expected)>,
}

/// One curve of an experiment.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What tells it from the others.
    pub label: String,
    /// Its value of every swept key, as `section.name` and as written.
    pub keys: CurveKeys,
    /// Its complete configuration.
    pub config: Config,
}

/// One run of an experiment: a curve at one seed.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The curve's place among the curves.
    pub curve: usize,
    /// The curve's configuration with the run's own seed.
    pub config: Config,
}

/// Swept keys with one value each.
type Said<'a> = Vec<(&'a str, &'a Value)>;

/// The file, for its errors: the parser then points at the line.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct File {
    data: fedlink::config::DataConfig,
    learn: fedlink::config::LearnConfig,
    radio: fedlink::config::RadioConfig,
    schedule: fedlink::config::ScheduleConfig,
    compress: fedlink::config::CompressConfig,
    adversary: fedlink::config::AdversaryConfig,
    defence: fedlink::config::DefenceConfig,
    run: fedlink::config::RunConfig,
    sweep: Table,
    exclude: Vec<Table>,
    #[serde(rename = "override")]
    overrides: Vec<OverrideTable>,
    quick: Table,
    expected: toml::map::Map<String, Value>,
    claims: toml::map::Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OverrideTable {
    when: Table,
    set: Table,
}

impl Experiment {
    /// The preset called `name`.
    pub fn preset(name: &str) -> Option<Self> {
        let text = preset(name)?.text;
        let other = BoundExperiment::is_one(text) || TheoremExperiment::is_one(text);
        (!other).then(|| Self::parse(name, text).expect("presets are valid"))
    }

    /// Parses a configuration file; `name` stands for it in messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        let file: File =
            toml::from_str(text).map_err(|error| parse_error(name, text, &error, &MORE_SECTIONS))?;
        let mut table: Table =
            toml::from_str(text).map_err(|error| ConfigError::new(name, error.to_string()))?;
        table.retain(|section, _| sections().contains(&section));
        let mut experiment = Self { name: name.into(), table, ..Self::default() };
        experiment
            .take_rules(file)
            .and_then(|()| experiment.check_rules())
            .map_err(|error| value_error(name, text, error, &["sweep"]))?;
        Ok(experiment)
    }

    fn take_rules(&mut self, file: File) -> Result<(), ConfigError> {
        for (key, values) in flat(file.sweep) {
            self.add_sweep(key, values)?;
        }
        for table in file.exclude {
            self.excluded.push(When::new("exclude", table)?);
        }
        for OverrideTable { when, set } in file.overrides {
            self.overrides.push(Override::new(when, set)?);
        }
        for (key, value) in flat(file.quick) {
            check_value(&key, &value)?;
            self.quick.push((key, value));
        }
        for (name, value) in file.claims {
            let text = value.as_str().ok_or_else(|| {
                let problem = "must be text, such as \"bn2-c@k=1 final > bc@k=1 final\"";
                ConfigError::new(format!("claims.\"{name}\""), problem)
            })?;
            self.claims.push(Claim::parse(&name, text)?);
        }
        for (curve, value) in file.expected {
            let share =
                value.as_float().or(value.as_integer().map(|whole| whole as f64)).ok_or_else(|| {
                    ConfigError::new(format!("expected.\"{curve}\""), "must be a share, such as 0.912")
                })?;
            let expected = Expected::parse(&curve, share)?;
            self.expected.push((curve, expected));
        }
        Ok(())
    }

    fn add_sweep(&mut self, key: String, values: Value) -> Result<(), ConfigError> {
        known_key(&key)?;
        match values {
            Value::Array(values) if !values.is_empty() => {
                values.iter().try_for_each(|value| check_value(&key, value))?;
                self.sweep.push((key, values));
                Ok(())
            }
            _ => Err(ConfigError::new(format!("sweep.\"{key}\""), "must be a list with at least one value")),
        }
    }

    /// Every curve is valid, and every rule is about some curve: one that is not was meant otherwise.
    fn check_rules(&self) -> Result<(), ConfigError> {
        self.check_claims()?;
        let combinations = self.combinations()?;
        let used = |when: &When| combinations.iter().any(|(_, config)| when.matches(config));
        let idle = self.excluded.iter().chain(self.overrides.iter().map(|rule| &rule.when));
        for when in idle {
            if !used(when) {
                let problem = format!("no curve has {when}; write values that [sweep] or the sections give");
                return Err(ConfigError::new(when.place, problem));
            }
        }
        let mut quick = self.clone();
        quick.quicken()?;
        quick.curves()?;
        Ok(())
    }

    fn check_claims(&self) -> Result<(), ConfigError> {
        let keys: Vec<CurveKeys> = self.curves()?.into_iter().map(|curve| curve.keys).collect();
        self.claims.iter().try_for_each(|claim| claim.check(&keys))?;
        self.expected.iter().try_for_each(|(_, expected)| expected.check(&keys))?;
        Ok(())
    }

    /// What is claimed of the curves.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// What was published of the curves.
    pub fn expected(&self) -> impl Iterator<Item = &Expected> {
        self.expected.iter().map(|(_, expected)| expected)
    }

    /// Claims and expects of its own curves what `other` does; an error if that names curves that are not there.
    pub fn claim_as(&mut self, other: &Self) -> Result<(), ConfigError> {
        (self.claims, self.expected) = (other.claims.clone(), other.expected.clone());
        self.check_claims()
    }

    /// Sets one key, as `--set key=value` does, for every curve. A key that was swept is swept no more.
    ///
    /// The value is read as TOML (`5`, `1e-3`, `[256, 128]`, `true`); what is not TOML is text (`bc`).
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let parsed = toml::from_str::<Table>(&format!("value = {value}"));
        let value = match parsed.ok().and_then(|mut table| table.remove("value")) {
            Some(value) => value,
            None => Value::String(value.to_owned()),
        };
        self.put(key, value)
    }

    fn put(&mut self, key: &str, value: Value) -> Result<(), ConfigError> {
        known_key(key)?;
        put(&mut self.table, key, value);
        if self.sweep.iter().any(|(swept, _)| swept == key) {
            self.sweep.retain(|(swept, _)| swept != key);
            // What is claimed of curves that are gone goes with them.
            let keys: Vec<CurveKeys> = self.combinations()?.iter().map(|(said, _)| keys_of(said)).collect();
            self.claims.retain(|claim| claim.check(&keys).is_ok());
            self.expected.retain(|(_, expected)| expected.check(&keys).is_ok());
        }
        for rule in &mut self.overrides {
            rule.set.retain(|(overridden, _)| overridden != key);
        }
        config_from(self.table.clone(), key)?;
        Ok(())
    }

    /// Applies `[quick]`, as `--quick` does. What was published is about the whole experiment, and is dropped.
    pub fn quicken(&mut self) -> Result<(), ConfigError> {
        self.expected.clear();
        std::mem::take(&mut self.quick).into_iter().try_for_each(|(key, value)| self.put(&key, value))
    }

    /// Whether the file has something to say about `--quick`.
    pub fn has_quick(&self) -> bool {
        !self.quick.is_empty()
    }

    /// Every combination of the sweep, excluded ones too, without overrides: its swept values and its configuration.
    fn combinations(&self) -> Result<Vec<(Said<'_>, Config)>, ConfigError> {
        let mut combinations: Vec<Said> = vec![Vec::new()];
        for (key, values) in &self.sweep {
            let mut longer = Vec::with_capacity(combinations.len() * values.len());
            for said in &combinations {
                longer.extend(values.iter().map(|value| [&said[..], &[(key.as_str(), value)]].concat()));
            }
            combinations = longer;
        }
        combinations
            .into_iter()
            .map(|said| {
                let mut table = self.table.clone();
                said.iter().for_each(|(key, value)| put(&mut table, key, (*value).clone()));
                Ok((said, config_from(table, "sweep")?))
            })
            .collect()
    }

    /// The curves, in the order of the sweep, each with a valid configuration.
    pub fn curves(&self) -> Result<Vec<Curve>, ConfigError> {
        let mut curves = Vec::new();
        for (said, config) in self.combinations()? {
            if self.excluded.iter().any(|when| when.matches(&config)) {
                continue;
            }
            let mut table = Table::try_from(&config).expect("a configuration is a table");
            for rule in self.overrides.iter().filter(|rule| rule.when.matches(&config)) {
                rule.set.iter().for_each(|(key, value)| put(&mut table, key, value.clone()));
            }
            let config = config_from(table, "override")?;
            config.validate()?;
            let words: Vec<String> = said.iter().map(|(key, value)| describe(key, value)).collect();
            let policy =
                || describe("schedule.policy", &Value::try_from(config.schedule.policy).expect("a name"));
            let label = if words.is_empty() { policy() } else { words.join(" ") };
            let keys = keys_of(&said);
            curves.push(Curve { label, keys, config });
        }
        if curves.is_empty() {
            return Err(ConfigError::new("exclude", "leaves no curve at all"));
        }
        Ok(curves)
    }

    /// Every run: the seeds of the first curve, then those of the second, and so on.
    pub fn cells(&self) -> Result<Vec<Cell>, ConfigError> {
        let seeds = |(curve, Curve { config, .. }): (usize, Curve)| {
            (0..config.run.seeds).map(move |i| {
                let mut config = config.clone();
                config.run.seed += i;
                Cell { curve, config }
            })
        };
        Ok(self.curves()?.into_iter().enumerate().flat_map(seeds).collect())
    }

    /// The configuration of an experiment that sweeps nothing.
    pub fn only_config(&self) -> Result<Config, ConfigError> {
        let mut curves = self.curves()?;
        match curves.len() {
            1 => Ok(curves.remove(0).config),
            many => Err(ConfigError::new("sweep", format!("makes {many} curves where one is wanted"))),
        }
    }

    /// The experiment as a file: the configuration with every default written out, the sweep and its rules.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        let mut base = config_from(self.table.clone(), "")?;
        let swept = |key: &str| self.sweep.iter().any(|(swept, _)| swept == key);
        if self.sweep.is_empty() {
            base = base.resolved();
        }
        let mut text = fedlink::config::commented_toml(&base);
        if !self.sweep.is_empty() {
            // A rule may depend on a swept key: leave what it fills in to each curve.
            let table_of =
                |section: &str, name: &str| self.table.get(section).and_then(|t| t.get(name)).is_some();
            for (section, name) in [("schedule", "kc"), ("learn", "rate"), ("data", "sharing")] {
                if !table_of(section, name) && !swept(&format!("{section}.{name}")) {
                    text = comment_out(&text, section, name);
                }
            }
            text.push_str("\n[sweep]\n");
            for (key, values) in &self.sweep {
                let _ = writeln!(text, "\"{key}\" = {}", Value::Array(values.clone()));
            }
        }
        for when in &self.excluded {
            let _ = write!(text, "\n[[exclude]]\n{}", toml_keys(&when.keys, "\n"));
            text.push('\n');
        }
        for Override { when, set } in &self.overrides {
            let [when, set] = [&when.keys, set].map(|keys| toml_keys(keys, ", "));
            let _ = writeln!(text, "\n[[override]]\nwhen = {{ {when} }}\nset = {{ {set} }}");
        }
        if !self.expected.is_empty() {
            text.push_str("\n[expected]\n");
            self.expected.iter().for_each(|(curve, expected)| {
                let _ = writeln!(text, "{} = {}", Value::from(curve.as_str()), expected.value);
            });
        }
        if !self.claims.is_empty() {
            text.push_str("\n[claims]\n");
            self.claims.iter().for_each(|claim| {
                let [name, said] = [&claim.name, &claim.text].map(|text| Value::from(text.as_str()));
                let _ = writeln!(text, "{name} = {said}");
            });
        }
        if self.has_quick() {
            let _ = writeln!(text, "\n[quick]\n{}", toml_keys(&self.quick, "\n"));
        }
        Ok(text)
    }
}

/// The sections of a file beside those of a [`Config`].
const MORE_SECTIONS: [&str; 6] = ["sweep", "exclude", "override", "quick", "expected", "claims"];

/// Turns `name = …` of a section into a comment.
fn comment_out(text: &str, section: &str, name: &str) -> String {
    let mut here = false;
    let line = |line: &str| {
        if line.starts_with('[') {
            here = line == format!("[{section}]");
        }
        let prefix = if here && line.starts_with(&format!("{name} = ")) { "# by rule: " } else { "" };
        format!("{prefix}{line}\n")
    };
    text.lines().map(line).collect()
}

fn keys_of(said: &Said) -> CurveKeys {
    said.iter().map(|(key, value)| ((*key).to_owned(), written(value))).collect()
}

/// A value as in a label.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `bc` for a policy, `k=5` for anything else.
fn describe(key: &str, value: &Value) -> String {
    match key.rsplit('.').next() {
        Some("policy") | None => written(value),
        Some(name) => format!("{name}={}", written(value)),
    }
}

fn known_key(key: &str) -> Result<(), ConfigError> {
    if KEYS.iter().any(|known| known.name == key) {
        return Ok(());
    }
    let hint = nearest(key, KEYS.iter().map(|known| known.name))
        .map_or_else(|| keys_near(key), |near| format!("did you mean {near}?"));
    Err(ConfigError::new(key, format!("is not a key; {hint}")))
}

/// The keys of the section that `key` names, or else the sections.
fn keys_near(key: &str) -> String {
    let section = key.split_once('.').map_or(key, |(section, _)| section);
    let in_section = |name: &'static str| name.strip_prefix(section)?.strip_prefix('.');
    let names: Vec<&str> = KEYS.iter().filter_map(|known| in_section(known.name)).collect();
    if names.is_empty() {
        format!("write section.name, the sections being {}", sections().join(", "))
    } else {
        format!("the keys of {section} are {}", names.join(", "))
    }
}

/// Whether `key` is known and can have `value` as far as its type goes.
fn check_value(key: &str, value: &Value) -> Result<(), ConfigError> {
    known_key(key)?;
    let mut alone = Table::new();
    put(&mut alone, key, value.clone());
    config_from(alone, key).map(|_| ())
}

fn put(table: &mut Table, key: &str, value: Value) {
    let (section, name) = key.split_once('.').expect("known keys are section.name");
    let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(section) = section {
        section.insert(name.to_owned(), value);
    }
}

/// The configuration that `table` describes; `key` is the one to blame if its value has the wrong type.
fn config_from(table: Table, key: &str) -> Result<Config, ConfigError> {
    table.try_into().map_err(|error: toml::de::Error| {
        let message = error.message().trim().replace('\n', " ");
        ConfigError::new(key, message)
    })
}

#[cfg(test)]
mod tests;
