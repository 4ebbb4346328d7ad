//! From the text of a file to an experiment.

use super::anchor::Anchor;
use super::expand::{Draft, length};
use super::rule::{Override, When, flat};
use super::settings::check_once;
use super::source::Source;
use super::{Experiment, MORE_SECTIONS};
use crate::claims::Original;
use crate::claims::{Claims, CurveKeys, Expected, Subject};
use crate::error::Error;
use crate::goals::Goal;
use crate::presets::preset;
use fedlink::parts::Parts;
use fedlink::spec::{
    Config, ConfigError, SECTIONS, located, lower_groups, put_in, syntax_error, unknown_section,
};
use serde::Deserialize;
use toml::{Table, Value};

/// The sections of a file beside those of a configuration.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rules {
    sweep: Table,
    exclude: Vec<Table>,
    #[serde(rename = "override")]
    overrides: Vec<OverrideTable>,
    quick: Table,
    expected: Table,
    goals: Table,
    claims: Table,
    original: Option<Original>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OverrideTable {
    when: Table,
    set: Table,
}

impl Experiment {
    /// The preset called `name`, or else the file; it must be an experiment with the system.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::read(&Source::open(name)?, &Parts::default())
    }

    /// The experiment in `source`, which may name custom parts.
    pub fn read(source: &Source, parts: &Parts) -> Result<Self, Error> {
        source.check_is_sweep()?;
        let mut experiment = Self::parse_with(&source.given, &source.text, parts)?;
        experiment.name.clone_from(&source.name);
        Ok(experiment)
    }

    /// The preset called `name`, if it is an experiment with the system.
    pub fn preset(name: &str) -> Option<Self> {
        let source = Source::of_text(name, preset(name)?.text);
        source.check_is_sweep().ok()?;
        Some(Self::parse(name, &source.text).expect("presets are valid"))
    }

    /// Parses a configuration file; messages call it `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(name, text, &Parts::default())
    }

    /// As [`Experiment::parse`], with custom parts that the file may name.
    pub fn parse_with(name: &str, text: &str, parts: &Parts) -> Result<Self, ConfigError> {
        let mut table: Table = toml::from_str(text).map_err(|error| syntax_error(name, text, &error))?;
        let mut rules = Table::new();
        for section in MORE_SECTIONS {
            rules.extend(table.remove(section).map(|rule| (section.to_owned(), rule)));
        }
        for (part, origin) in parts.origins() {
            put_in(&mut table, &format!("custom.{part}"), origin.into());
        }
        // So that `config.toml` has them, with which the runs are found without the parts.
        for (key, value) in parts.defaults() {
            if is_free(&table, &key) {
                put_in(&mut table, &key, value.clone());
            }
        }
        lower_groups(&mut table)?;
        let anchor = Anchor::of(&table);
        let mut experiment =
            Self { name: name.into(), table, text: Some(text.into()), anchor, ..Self::default() };
        let read = || {
            experiment.check_sections()?;
            let original = experiment.take_rules(rules_of(rules)?)?;
            let combinations = experiment.combinations()?;
            let curves = experiment.drafts(&combinations)?;
            check_ranges(&curves)?;
            let (rounds, seeds) = length(curves.iter().map(|curve| &curve.config));
            experiment.check_claims(curves.iter().map(|curve| (&curve.keys, &curve.config)))?;
            experiment.check_rules(&combinations)?;
            experiment.original = original.unwrap_or(Original { rounds, seeds, quick: false });
            Ok(())
        };
        read().map_err(|error| located(name, text, error))?;
        Ok(experiment)
    }

    /// Checks that every section and key is known, and that every value has the type of its key.
    fn check_sections(&self) -> Result<(), ConfigError> {
        if let Some(section) = self.table.keys().find(|section| !SECTIONS.contains(&section.as_str())) {
            let others = [&MORE_SECTIONS[..], &["bound", "theorem"]].concat();
            return Err(unknown_section(section, &others));
        }
        Config::from_table(self.table.clone()).map(|_| ())
    }

    /// Adds the rules; returns the original length of the experiment, if the file has `[original]`.
    fn take_rules(&mut self, rules: Rules) -> Result<Option<Original>, ConfigError> {
        for (key, values) in flat(rules.sweep) {
            self.add_sweep(key, values)?;
        }
        // Before every value is looked at.
        self.check_size()?;
        for (key, values) in &self.sweep {
            values.iter().try_for_each(|value| self.check_value(key, Some(value)))?;
            check_once(key, values)?;
        }
        for table in rules.exclude {
            self.excluded.push(When::new(self, "exclude", table)?);
        }
        for OverrideTable { when, set } in rules.overrides {
            self.overrides.push(Override::new(self, when, set)?);
        }
        for (key, value) in flat(rules.quick) {
            self.check_value(&key, Some(&value))?;
            self.quick.push((key, value));
        }
        self.goals = goals(&rules.goals)?;
        self.claims = Claims::parse(rules.claims, &rules.goals)?;
        self.expected = Expected::parse_all(rules.expected)?;
        Ok(rules.original)
    }

    fn add_sweep(&mut self, key: String, values: Value) -> Result<(), ConfigError> {
        self.known_key(&key)?;
        match values {
            Value::Array(values) if !values.is_empty() => {
                self.sweep.push((key, values));
                Ok(())
            }
            _ => Err(ConfigError::new(format!("sweep.\"{key}\""), "must be a list with at least one value")),
        }
    }

    /// Checks that every rule matches some combination, and that the curves of `[quick]` are valid. A rule
    /// without a match has a wrong value.
    fn check_rules(&self, combinations: &[super::expand::Combination]) -> Result<(), ConfigError> {
        for when in self.excluded.iter().chain(self.overrides.iter().map(|rule| &rule.when)) {
            if !when.matches_any(combinations) {
                let problem = format!("no curve has {when}; write values that [sweep] or the sections give");
                return Err(ConfigError::new(when.section, problem));
            }
        }
        self.check_quick()
    }

    /// Checks that the curves are valid with `[quick]` too.
    pub(super) fn check_quick(&self) -> Result<(), ConfigError> {
        if self.has_quick() {
            let mut quick = self.clone();
            quick.apply_quick()?;
            check_ranges(&quick.drafts(&quick.combinations()?)?)?;
        }
        Ok(())
    }

    /// Checks the claims and the published values against the curves, which are all of the experiment.
    pub(super) fn check_claims<'a>(
        &self,
        curves: impl Iterator<Item = (&'a CurveKeys, &'a Config)> + Clone,
    ) -> Result<(), ConfigError> {
        let keys: Vec<CurveKeys> = curves.clone().map(|(keys, _)| keys.clone()).collect();
        self.claims().iter().try_for_each(|claim| claim.check(Subject::Runs, &keys))?;
        self.check_recorded(curves.map(|(_, config)| config))?;
        self.expected.iter().try_for_each(|(_, expected)| expected.check(&keys))
    }

    /// Checks that some curve has the numbers of the goals and the claims.
    pub(super) fn check_recorded<'a>(
        &self,
        curves: impl Iterator<Item = &'a Config> + Clone,
    ) -> Result<(), ConfigError> {
        let units = curves.clone().any(|config| config.radio.bandwidth_hz.is_some());
        let fairness = { curves }.any(|config| config.run.fairness);
        self.goals.iter().try_for_each(|(name, goal)| check_goal(name, goal, units, fairness))?;
        self.claims().iter().try_for_each(|claim| claim.check_recorded(units, fairness))
    }
}

/// Reads `[goals]`.
fn goals(table: &Table) -> Result<Vec<(String, Goal)>, ConfigError> {
    let read = |(name, value): (&String, &Value)| {
        let error = |problem: String| ConfigError::new(format!("goals.\"{name}\""), problem);
        let text = value.as_str().ok_or_else(|| {
            error("must be text, such as \"seconds until accuracy >= 0.85 for 3 evaluations\"".into())
        })?;
        let goal: Goal = text.parse().map_err(|wrong: ConfigError| error(wrong.problem))?;
        match goal.metric() {
            Some(metric) if metric.is_of_bound() => Err(error(format!("{metric} is a number of the bound"))),
            _ => Ok((name.clone(), goal)),
        }
    };
    table.iter().map(read).collect()
}

/// Checks that some curve has the numbers of a goal.
fn check_goal(name: &str, goal: &Goal, units: bool, fairness: bool) -> Result<(), ConfigError> {
    let error = |problem: String| Err(ConfigError::new(format!("goals.\"{name}\""), problem));
    match goal.needs_fairness() {
        _ if goal.needs_units() && !units => {
            error(format!("{goal} needs a radio with units: set radio.bandwidth_hz, or count rounds or bits"))
        }
        Some(needing) if !fairness => {
            error(format!("{needing} is recorded with run.fairness = true only: set it"))
        }
        _ => Ok(()),
    }
}

/// Checks the ranges of all curves before any is resolved.
fn check_ranges(curves: &[Draft]) -> Result<(), ConfigError> {
    curves.iter().try_for_each(|curve| curve.config.check_ranges())
}

/// The rules of a file.
fn rules_of(table: Table) -> Result<Rules, ConfigError> {
    table.clone().try_into().map_err(|whole: toml::de::Error| {
        let alone = |(section, rule): (String, Value)| {
            let error = Table::from_iter([(section.clone(), rule)]).try_into::<Rules>().err()?;
            Some(ConfigError::new(section, error.message().trim().replace('\n', " ")))
        };
        table.into_iter().find_map(alone).unwrap_or_else(|| ConfigError::new("", whole.message()))
    })
}

/// Whether `a.b.c` of nested tables is unset, and no value is in place of one of them.
fn is_free(table: &Table, key: &str) -> bool {
    match key.split_once('.') {
        None => !table.contains_key(key),
        Some((first, rest)) => match table.get(first) {
            None => true,
            Some(inner) => inner.as_table().is_some_and(|inner| is_free(inner, rest)),
        },
    }
}
