//! An experiment: one configuration, or several that differ in the keys of `[sweep]`.

use crate::config::{Config, ConfigError, KEYS, nearest};
use crate::error::Error;
use serde::Deserialize;
use std::fmt::Write;
use toml::{Table, Value};

/// A configuration file: the sections of [`Config`] and, optionally, `[sweep]` with lists of values for keys.
#[derive(Clone, Debug, Default)]
pub struct Experiment {
    /// Where it came from, for the output folder and messages.
    pub name: String,
    /// What the file and `set` have said; anything else has its default.
    table: Table,
    /// The keys that differ between curves, with their values.
    sweep: Vec<(String, Vec<Value>)>,
}

/// One curve of an experiment.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What tells it from the others.
    pub label: String,
    /// Its complete configuration.
    pub config: Config,
}

/// The file, for its errors: the parser then points at the line.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct File {
    data: crate::config::DataConfig,
    learn: crate::config::LearnConfig,
    radio: crate::config::RadioConfig,
    schedule: crate::config::ScheduleConfig,
    compress: crate::config::CompressConfig,
    run: crate::config::RunConfig,
    sweep: Table,
}

/// The presets by name.
const PRESETS: &[(&str, &str)] = &[("demo", include_str!("../../../experiments/demo.toml"))];

impl Experiment {
    /// The preset called `name`.
    pub fn preset(name: &str) -> Option<Self> {
        let (_, text) = PRESETS.iter().find(|(known, _)| *known == name)?;
        Some(Self::parse(name, text).expect("presets are valid"))
    }

    /// Parses a configuration file; `name` stands for it in messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let file_error = |problem: String| ConfigError::new(name, problem);
        if let Err(error) = toml::from_str::<File>(text) {
            let hint = error.span().and_then(|span| unknown_key_hint(text, span.start)).unwrap_or_default();
            return Err(file_error(format!("{}{hint}", error.to_string().trim_end())).into());
        }
        let mut table: Table = toml::from_str(text).map_err(|error| file_error(error.to_string()))?;
        let mut experiment = Self { name: name.into(), ..Self::default() };
        if let Some(Value::Table(sweep)) = table.remove("sweep") {
            for (key, values) in sweep {
                experiment.add_sweep(key, values)?;
            }
        }
        experiment.table = table;
        match experiment.curves() {
            Ok(_) => Ok(experiment),
            Err(Error::Config(error)) => {
                let place =
                    line_of(text, &error.key).map_or_else(String::new, |line| format!(", line {line}"));
                Err(ConfigError::new(format!("{name}{place}: {}", error.key), error.problem).into())
            }
            Err(error) => Err(error),
        }
    }

    fn add_sweep(&mut self, key: String, values: Value) -> Result<(), ConfigError> {
        known_key(&key)?;
        match values {
            Value::Array(values) if !values.is_empty() => {
                for value in &values {
                    let mut alone = Table::new();
                    put(&mut alone, &key, value.clone());
                    config_from(alone, &key)?;
                }
                self.sweep.push((key, values));
            }
            _ => {
                return Err(ConfigError::new(
                    format!("sweep.\"{key}\""),
                    "must be a list with at least one value",
                ));
            }
        }
        Ok(())
    }

    /// Sets one key, as `--set key=value` does. A key that was swept is swept no more.
    ///
    /// The value is read as TOML (`5`, `1e-3`, `[256, 128]`, `true`); what is not TOML is text (`bc`).
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), Error> {
        known_key(key)?;
        let parsed = toml::from_str::<Table>(&format!("value = {value}"));
        let value = match parsed.ok().and_then(|mut table| table.remove("value")) {
            Some(value) => value,
            None => Value::String(value.to_owned()),
        };
        put(&mut self.table, key, value);
        self.sweep.retain(|(swept, _)| swept != key);
        config_from(self.table.clone(), key)?;
        Ok(())
    }

    /// The curves, in the order of the sweep, each with a valid configuration.
    pub fn curves(&self) -> Result<Vec<Curve>, Error> {
        let mut tables = vec![(Vec::new(), self.table.clone())];
        for (key, values) in &self.sweep {
            tables = tables
                .iter()
                .flat_map(|(said, table)| values.iter().map(move |value| (said, table, value)))
                .map(|(said, table, value)| {
                    let mut table = table.clone();
                    put(&mut table, key, value.clone());
                    let said: Vec<String> = said.iter().cloned().chain([describe(key, value)]).collect();
                    (said, table)
                })
                .collect();
        }
        tables
            .into_iter()
            .map(|(said, table)| {
                let config = config_from(table, "sweep")?;
                config.validate()?;
                let policy =
                    describe("schedule.policy", &Value::try_from(config.schedule.policy).expect("a name"));
                let label = if said.is_empty() { policy } else { said.join(" ") };
                Ok(Curve { label, config })
            })
            .collect()
    }

    /// The configuration of an experiment that sweeps nothing.
    pub fn only_config(&self) -> Result<Config, Error> {
        let mut curves = self.curves()?;
        match curves.len() {
            1 => Ok(curves.remove(0).config),
            many => Err(ConfigError::new("sweep", format!("makes {many} curves where one is wanted")).into()),
        }
    }

    /// The experiment as a file: the configuration with every default written out, and the sweep.
    pub fn to_toml(&self) -> Result<String, Error> {
        let mut base = config_from(self.table.clone(), "")?;
        let swept = |key: &str| self.sweep.iter().any(|(swept, _)| swept == key);
        if self.sweep.is_empty() {
            base = base.resolved();
        }
        let mut text = crate::config::commented_toml(&base);
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
        Ok(text)
    }
}

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

/// The line (from 1) that sets `key` (`section.name`), in its section or in `[sweep]`.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let (section, name) = key.split_once('.')?;
    let mut inside = String::new();
    text.lines()
        .position(|line| {
            let line = line.trim();
            if line.starts_with('[') {
                line.clone_into(&mut inside);
            }
            let Some((left, _)) = line.split_once('=') else { return false };
            let left = left.trim();
            (inside == format!("[{section}]") && left == name)
                || (inside == "[sweep]" && left.trim_matches('"') == key)
        })
        .map(|place| place + 1)
}

/// `bc` for a policy, `k=5` for anything else.
fn describe(key: &str, value: &Value) -> String {
    let value = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match key.rsplit('.').next() {
        Some("policy") | None => value,
        Some(name) => format!("{name}={value}"),
    }
}

fn known_key(key: &str) -> Result<(), ConfigError> {
    if KEYS.iter().any(|known| known.name == key) {
        return Ok(());
    }
    let hint = match nearest(key, KEYS.iter().map(|known| known.name)) {
        Some(near) => format!("did you mean {near}?"),
        None => "`fedlink config` prints all keys".into(),
    };
    Err(ConfigError::new(key, format!("is not a key; {hint}")))
}

/// "did you mean" for a file whose error at `offset` is a key nobody knows.
fn unknown_key_hint(text: &str, offset: usize) -> Option<String> {
    let line_start = text[..offset].rfind('\n').map_or(0, |end| end + 1);
    let word = text[offset..].split(|c: char| !(c.is_alphanumeric() || "_-".contains(c))).next()?;
    let section =
        text[..line_start].lines().rev().find_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']'));
    let key = match section {
        Some(section) => format!("{section}.{word}"),
        None => word.to_owned(),
    };
    let names: Vec<&str> = KEYS.iter().map(|known| known.name).collect();
    let sections = ["data", "learn", "radio", "schedule", "compress", "run", "sweep"];
    let is_section = text[line_start..].starts_with('[');
    if is_section && !sections.contains(&word) {
        return nearest(word, sections).map(|near| format!("\ndid you mean [{near}]?"));
    }
    if names.contains(&key.as_str()) {
        return None;
    }
    nearest(&key, names).map(|near| format!("\ndid you mean {near}?"))
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
mod tests {
    use super::*;
    use crate::schedule::policy::PolicyKind;

    fn error(text: &str) -> String {
        Experiment::parse("my.toml", text).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn the_demo_races_the_four_policies() {
        let curves = Experiment::preset("demo").unwrap().curves().unwrap();
        let labels: Vec<&str> = curves.iter().map(|curve| curve.label.as_str()).collect();
        assert_eq!(labels, ["bc", "bn2", "bc-bn2", "bn2-c"]);
    }

    #[test]
    fn setting_a_swept_key_narrows_the_sweep() {
        let mut demo = Experiment::preset("demo").unwrap();
        demo.set("schedule.policy", "bc").unwrap();
        let curves = demo.curves().unwrap();
        assert_eq!(curves.len(), 1);
        assert_eq!(curves[0].config.schedule.policy, PolicyKind::Bc);
    }

    #[test]
    fn a_sweep_over_two_keys_makes_every_combination() {
        let text = "[sweep]\n\"schedule.policy\" = [\"bc\", \"bn2\"]\n\"schedule.k\" = [1, 10, 20]\n";
        let curves = Experiment::parse("x", text).unwrap().curves().unwrap();
        let labels: Vec<&str> = curves.iter().map(|curve| curve.label.as_str()).collect();
        assert_eq!(labels, ["bc k=1", "bc k=10", "bc k=20", "bn2 k=1", "bn2 k=10", "bn2 k=20"]);
        assert_eq!(curves[5].config.kc(), 40);
    }

    #[test]
    fn values_are_read_as_toml_and_otherwise_as_text() {
        let mut experiment = Experiment::default();
        for (key, value) in [
            ("learn.rate", "1e-2"),
            ("learn.hidden", "[64, 32]"),
            ("radio.symbols", "1e5"),
            ("learn.batch", "full"),
            ("schedule.policy", "\"bn2\""),
        ] {
            experiment.set(key, value).unwrap();
        }
        let config = experiment.only_config().unwrap();
        assert_eq!(config.rate(), 1e-2);
        assert_eq!(config.learn.hidden, [64, 32]);
        assert_eq!(config.radio.symbols, 100_000);
        assert_eq!(config.learn.batch, crate::config::BatchSize::Full);
        assert_eq!(config.schedule.policy, PolicyKind::Bn2);
    }

    #[test]
    fn the_written_file_reads_back_as_the_same_curves() {
        let mut demo = Experiment::preset("demo").unwrap();
        demo.set("run.rounds", "7").unwrap();
        let again = Experiment::parse("demo", &demo.to_toml().unwrap()).unwrap();
        let configs = |e: &Experiment| -> Vec<Config> {
            e.curves().unwrap().into_iter().map(|curve| curve.config.resolved()).collect()
        };
        assert_eq!(configs(&demo), configs(&again));
        demo.set("schedule.policy", "bc-bn2").unwrap();
        let again = Experiment::parse("demo", &demo.to_toml().unwrap()).unwrap();
        assert_eq!(configs(&demo), configs(&again));
    }

    #[test]
    fn errors_in_a_file_name_the_line_and_the_likely_key() {
        let message = error("[schedule]\nk = 1\npolcy = \"bc\"\n");
        assert!(message.contains("line 3") && message.contains("did you mean schedule.policy?"), "{message}");
        let message = error("[shedule]\nk = 1\n");
        assert!(message.contains("line 1") && message.contains("did you mean [schedule]?"), "{message}");
        let message = error("[schedule]\nk = \"many\"\n");
        assert!(message.contains("line 2") && message.contains("whole number"), "{message}");
        let message = error("[schedule]\npolicy = \"best\"\n");
        assert!(message.contains("line 2") && message.contains("bn2-c"), "{message}");
        let message = error("[schedule\nk = 1\n");
        assert!(message.contains("line 1"), "{message}");
    }

    #[test]
    fn errors_in_a_sweep_or_a_setting_name_the_key() {
        assert!(error("[sweep]\n\"schedule.kk\" = [1]\n").contains("did you mean schedule.k?"));
        assert!(error("[sweep]\n\"schedule.k\" = []\n").contains("at least one value"));
        assert!(error("[sweep]\n\"schedule.k\" = [1, 99]\n").contains("my.toml, line 2: schedule.k: is 99"));
        assert!(error("[radio]\nnoise = -1\n").contains("my.toml, line 2: radio.noise: is -1"));
        assert!(error("[sweep]\n\"schedule.k\" = [1, \"x\"]\n").contains("schedule.k"));
        let set = |key, value| Experiment::default().set(key, value).unwrap_err().to_string();
        assert!(set("schedule.polcy", "bc").contains("did you mean schedule.policy?"));
        assert!(set("schedule.k", "many").starts_with("schedule.k: "));
        assert!(set("schedule.policy", "best").contains("bn2-c"));
    }
}
