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
mod limits;
mod rule;
mod theorem;

pub use crate::length::Shortened;
pub(crate) use any::read_text;
pub use any::{AnyExperiment, ClaimsFile};
pub use bound::{BoundExperiment, EXPECTATION_SAMPLES, Panel, PanelResult};
pub use theorem::{TheoremExperiment, TheoremResult};

use crate::claims::{Claim, Claims, CurveKeys, Expected, Subject};
use crate::length::Original;
use crate::presets::preset;
use fedlink::config::{
    Config, ConfigError, SECTIONS, all_keys, check_name, located, put_in, syntax_error, toml_key,
    unknown_key, unknown_section,
};
use fedlink::parts::Parts;
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
    /// What the file and `set` have given; anything else has its default.
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
    claims: Claims,
    /// What was published of them, as written and as read.
    expected: Vec<(String, Expected)>,
    /// The length that the file gave it.
    original: Original,
}

/// One curve of an experiment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Curve {
    /// What distinguishes it from the other curves.
    pub label: String,
    /// Its value of every swept key, as `section.name` and as written.
    pub keys: CurveKeys,
    /// Its complete configuration.
    pub config: Config,
}

/// One run of an experiment: a curve at one seed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Cell {
    /// The index of the curve among the curves.
    pub curve: usize,
    /// The curve's configuration with the run's own seed.
    pub config: Config,
}

impl Curve {
    /// Whether the curve, `seeds` of which were run to their end, is shorter than it should be; `whole` says
    /// it of the experiment.
    pub fn shortened(&self, whole: Option<Shortened>, seeds: u64) -> Option<Shortened> {
        let run = &self.config.run;
        match whole {
            Some(whole) => Some(Shortened { seeds, ..whole }),
            None => {
                Original { rounds: run.rounds, seeds: run.seeds, quick: false }.shortened(run.rounds, seeds)
            }
        }
    }
}

/// Swept keys with one value each.
type Swept<'a> = Vec<(&'a str, &'a Value)>;

/// A combination of the sweep, excluded ones too, without overrides.
struct Combination<'a> {
    swept: Swept<'a>,
    config: Config,
    /// What rules are matched with: every key that is in a section of which they have one, defaults too.
    resolved: Table,
}

/// The most rounds and the most seeds of a curve.
fn length(curves: &[Curve]) -> (u64, u64) {
    let lengths = curves.iter().map(|curve| (curve.config.run.rounds, curve.config.run.seeds));
    lengths.fold((0, 0), |most, length| (most.0.max(length.0), most.1.max(length.1)))
}

/// What stands in a file beside the sections of a configuration.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rules {
    sweep: Table,
    exclude: Vec<Table>,
    #[serde(rename = "override")]
    overrides: Vec<OverrideTable>,
    quick: Table,
    expected: Table,
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
    /// The preset called `name`.
    pub fn preset(name: &str) -> Option<Self> {
        let text = preset(name)?.text;
        let other = BoundExperiment::is_one(text) || TheoremExperiment::is_one(text);
        (!other).then(|| Self::parse(name, text).expect("presets are valid"))
    }

    /// Parses a configuration file; `name` stands for it in messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        Self::parse_with(name, text, &Parts::default())
    }

    /// As [`Experiment::parse`], with custom parts that the file may name.
    pub fn parse_with(name: &str, text: &str, parts: &Parts) -> Result<Self, ConfigError> {
        Self::from_file(name, text, toml::from_str(text), parts)
    }

    /// The experiment of a file whose text is `text` and reads as `file`.
    fn from_file(
        name: &str,
        text: &str,
        file: Result<Table, toml::de::Error>,
        parts: &Parts,
    ) -> Result<Self, ConfigError> {
        let mut table = file.map_err(|error| syntax_error(name, text, &error))?;
        let mut rules = Table::new();
        for section in MORE_SECTIONS {
            rules.extend(table.remove(section).map(|rule| (section.to_owned(), rule)));
        }
        for (part, origin) in parts.origins() {
            put_in(&mut table, &format!("custom.{part}"), origin.into());
        }
        let mut experiment = Self { name: name.into(), table, ..Self::default() };
        let read = || {
            experiment.check_sections()?;
            let original = experiment.take_rules(rules_of(rules)?)?;
            let combinations = experiment.combinations()?;
            let curves = experiment.curves_of(&combinations)?;
            let (rounds, seeds) = length(&curves);
            experiment.check_claims(curves)?;
            experiment.check_rules(&combinations)?;
            experiment.original = original.unwrap_or(Original { rounds, seeds, quick: false });
            Ok(())
        };
        read().map_err(|error| located(name, text, error))?;
        Ok(experiment)
    }

    /// Every section is known, every key is known and has a value of its type.
    fn check_sections(&self) -> Result<(), ConfigError> {
        if let Some(section) = self.table.keys().find(|section| !SECTIONS.contains(&section.as_str())) {
            let others = [&MORE_SECTIONS[..], &["bound", "theorem"]].concat();
            return Err(unknown_section(section, &others));
        }
        Config::from_table(self.table.clone()).map(|_| ())
    }

    /// Takes over the rules; returns the length that the experiment had, if the file notes it.
    fn take_rules(&mut self, rules: Rules) -> Result<Option<Original>, ConfigError> {
        for (key, values) in flat(rules.sweep) {
            self.add_sweep(key, values)?;
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
        self.claims = Claims::parse(rules.claims)?;
        self.expected = Expected::parse_all(rules.expected)?;
        Ok(rules.original)
    }

    /// Whether it is shorter than its own file says, and how.
    pub fn shortened(&self) -> Option<Shortened> {
        let (rounds, seeds) = length(&self.curves().ok()?);
        self.original.shortened(rounds, seeds)
    }

    fn add_sweep(&mut self, key: String, values: Value) -> Result<(), ConfigError> {
        self.known_key(&key)?;
        match values {
            Value::Array(values) if !values.is_empty() => {
                values.iter().try_for_each(|value| self.check_value(&key, Some(value)))?;
                check_once(&key, &values)?;
                self.sweep.push((key, values));
                Ok(())
            }
            _ => Err(ConfigError::new(format!("sweep.\"{key}\""), "must be a list with at least one value")),
        }
    }

    /// Every rule is about some curve: one that is not was meant otherwise. With `[quick]` every curve is
    /// valid too.
    fn check_rules(&self, combinations: &[Combination]) -> Result<(), ConfigError> {
        for when in self.excluded.iter().chain(self.overrides.iter().map(|rule| &rule.when)) {
            if !when.matches_any(combinations) {
                let problem = format!("no curve has {when}; write values that [sweep] or the sections give");
                return Err(ConfigError::new(when.section, problem));
            }
        }
        if self.has_quick() {
            let mut quick = self.clone();
            quick.quicken()?;
            quick.curves()?;
        }
        Ok(())
    }

    /// The claims are about these curves, which are all.
    fn check_claims(&self, curves: Vec<Curve>) -> Result<(), ConfigError> {
        let units = curves.iter().any(|curve| curve.config.radio.bandwidth_hz.is_some());
        let fairness = curves.iter().any(|curve| curve.config.run.fairness);
        let keys: Vec<CurveKeys> = curves.into_iter().map(|curve| curve.keys).collect();
        for claim in self.claims() {
            claim.check(Subject::Runs, &keys)?;
            if !units {
                claim.check_without_units()?;
            }
            if !fairness {
                claim.check_without_fairness()?;
            }
        }
        self.expected.iter().try_for_each(|(_, expected)| expected.check(&keys))?;
        Ok(())
    }

    /// What is claimed of the curves.
    pub fn claims(&self) -> &[Claim] {
        &self.claims.list
    }

    /// The claims, and how they are judged.
    pub fn all_claims(&self) -> &Claims {
        &self.claims
    }

    /// What was published of the curves.
    pub fn expected(&self) -> impl Iterator<Item = &Expected> {
        self.expected.iter().map(|(_, expected)| expected)
    }

    /// Claims and expects of its own curves what `file` does; an error if that names curves
    /// that are not there.
    pub fn claim_as(&mut self, file: &ClaimsFile) -> Result<(), ConfigError> {
        (self.claims, self.expected) = (file.claims.clone(), file.expected.clone());
        self.check_claims(self.curves()?)
    }

    /// Sets one key, as `--set key=value` does, for every curve. A key that was swept is swept no more.
    ///
    /// The value is read as TOML (`5`, `1e-3`, `[256, 128]`, `true`); what is not TOML is text (`bc`). A list
    /// of values for a key that takes one is swept.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let parsed = toml::from_str::<Table>(&format!("value = {value}"));
        let value = match parsed.ok().and_then(|mut table| table.remove("value")) {
            Some(value) => value,
            None => Value::String(value.to_owned()),
        };
        match value {
            Value::Array(values) if !values.is_empty() && self.takes_one(key, &values) => {
                self.sweep_over(key, values)
            }
            value => self.put(key, value),
        }
    }

    /// Whether `key` takes one value, each of `values` rather than their list.
    fn takes_one(&self, key: &str, values: &[Value]) -> bool {
        let list = Value::Array(values.to_vec());
        self.check_value(key, Some(&list)).is_err()
            && values.iter().all(|value| self.check_value(key, Some(value)).is_ok())
    }

    /// Sweeps `key` over `values`, whatever it was before.
    fn sweep_over(&mut self, key: &str, values: Vec<Value>) -> Result<(), ConfigError> {
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

    /// Adds custom parts of which the experiment names none as further values of the keys that choose them:
    /// an experiment that comes with the program cannot name them.
    pub fn add_unnamed(&mut self, parts: &Parts) -> Result<(), ConfigError> {
        let chosen: Vec<Config> = self.curves()?.into_iter().map(|curve| curve.config).collect();
        let value = |config: &Config, key: &str| match nested(&config.to_table(), key) {
            Some(Value::String(name)) => name.clone(),
            _ => String::new(),
        };
        let named = |(key, name): (&str, &str)| chosen.iter().any(|config| value(config, key) == name);
        if parts.named().any(named) {
            return Ok(());
        }
        for (key, name) in parts.named() {
            let mut values = match self.sweep.iter().find(|(swept, _)| swept == key) {
                Some((_, values)) => values.clone(),
                None => chosen.first().map(|config| Value::from(value(config, key))).into_iter().collect(),
            };
            values.push(name.into());
            self.sweep_over(key, values)?;
        }
        Ok(())
    }

    /// What is claimed of curves that are gone goes with them.
    fn forget_missing_curves(&mut self) -> Result<(), ConfigError> {
        let keys: Vec<CurveKeys> = self.swept()?.iter().map(keys_of).collect();
        self.claims.list.retain(|claim| claim.check(Subject::Runs, &keys).is_ok());
        self.expected.retain(|(_, expected)| expected.check(&keys).is_ok());
        Ok(())
    }

    fn put(&mut self, key: &str, value: Value) -> Result<(), ConfigError> {
        self.known_key(key)?;
        put_in(&mut self.table, key, value);
        if self.sweep.iter().any(|(swept, _)| swept == key) {
            self.sweep.retain(|(swept, _)| swept != key);
            self.forget_missing_curves()?;
        }
        for rule in &mut self.overrides {
            rule.set.retain(|(overridden, _)| overridden != key);
        }
        self.check_value(key, None)
    }

    fn known_key(&self, key: &str) -> Result<(), ConfigError> {
        // The keys of custom parts are their own business.
        let custom = |name: &str| self.table.get("custom").is_some_and(|parts| parts.get(name).is_some());
        // `section.part.key`, or one deeper for the parts of the server.
        let is_deep = || [2, 3].contains(&key.matches('.').count());
        let is_custom = || key.rsplit('.').nth(1).is_some_and(custom) && is_deep();
        let is_origin = || key.strip_prefix("custom.").is_some_and(|name| !name.contains('.'));
        let known = all_keys().iter().any(|known| known == key) || is_custom() || is_origin();
        if known { Ok(()) } else { Err(unknown_key(key)) }
    }

    /// Whether `key` is known and can have `value` (or the one it has) as far as its type goes.
    fn check_value(&self, key: &str, value: Option<&Value>) -> Result<(), ConfigError> {
        self.known_key(key)?;
        // No other section depends on it, but for the names of custom parts.
        let mut table = part_of(&self.table, |section| section == "custom" || is_in(key, section));
        if let Some(value) = value {
            put_in(&mut table, key, value.clone());
        }
        let name = match nested(&table, key) {
            Some(Value::String(name)) => Some(name.clone()),
            // A date is text where text is asked for.
            Some(Value::Datetime(date)) => Some(date.to_string()),
            _ => None,
        };
        let config = Config::from_table(table)?;
        name.map_or(Ok(()), |name| check_name(key, &name, &config))
    }

    /// Applies `[quick]`, as `--quick` does. What was published is about the whole
    /// experiment, and is not judged.
    pub fn quicken(&mut self) -> Result<(), ConfigError> {
        self.original.quick = true;
        std::mem::take(&mut self.quick).into_iter().try_for_each(|(key, value)| self.put(&key, value))
    }

    /// Whether the file has a `[quick]` section.
    pub fn has_quick(&self) -> bool {
        !self.quick.is_empty()
    }

    /// The swept values of every combination.
    fn swept(&self) -> Result<Vec<Swept<'_>>, ConfigError> {
        self.check_size()?;
        let mut combinations: Vec<Swept> = vec![Vec::new()];
        for (key, values) in &self.sweep {
            let mut longer = Vec::with_capacity(combinations.len() * values.len());
            for swept in &combinations {
                longer.extend(values.iter().map(|value| [&swept[..], &[(key.as_str(), value)]].concat()));
            }
            combinations = longer;
        }
        Ok(combinations)
    }

    fn combinations(&self) -> Result<Vec<Combination<'_>>, ConfigError> {
        let swept = self.swept()?;
        let base = Config::from_table(self.table.clone())?;
        let is_swept = |section: &str| self.sweep.iter().any(|(key, _)| is_in(key, section));
        let rules = self.excluded.iter().chain(self.overrides.iter().map(|rule| &rule.when));
        let keys: Vec<&str> = rules.flat_map(|when| &when.keys).map(|(key, _)| key.as_str()).collect();
        // What is left open has a value only when it is resolved: the rate, and keys of parts.
        let is_open = |key: &&str| *key == "learn.rate" || key.matches('.').count() > 1;
        let must_resolve = keys.iter().any(is_open);
        let is_ruled = |section: &str| keys.iter().any(|key| is_in(key, section));
        swept
            .into_iter()
            .map(|swept| {
                let mut table = part_of(&self.table, is_swept);
                swept.iter().for_each(|(key, value)| put_in(&mut table, key, (*value).clone()));
                let config = base.clone().with_sections(table)?;
                let all = if must_resolve { &config.resolved() } else { &config };
                let resolved = all.sections(is_ruled);
                Ok(Combination { swept, config, resolved })
            })
            .collect()
    }

    /// The curves, in the order of the sweep, each with a valid configuration.
    pub fn curves(&self) -> Result<Vec<Curve>, ConfigError> {
        self.curves_of(&self.combinations()?)
    }

    /// The curves of the combinations, which are all.
    fn curves_of(&self, combinations: &[Combination]) -> Result<Vec<Curve>, ConfigError> {
        let mut curves = Vec::new();
        for Combination { swept, config, resolved } in combinations {
            if self.excluded.iter().any(|when| when.matches(resolved)) {
                continue;
            }
            let rules = self.overrides.iter().filter(|rule| rule.when.matches(resolved));
            let overridden: Vec<&(String, Value)> = rules.flat_map(|rule| &rule.set).collect();
            let mut table = config.sections(|section| overridden.iter().any(|(key, _)| is_in(key, section)));
            overridden.iter().for_each(|(key, value)| put_in(&mut table, key, value.clone()));
            let mut config = config.clone().with_sections(table)?;
            config.drop_unused_custom();
            config.validate()?;
            let words: Vec<String> = swept.iter().map(|(key, value)| describe(key, value)).collect();
            let label = if words.is_empty() { config.schedule.policy.clone() } else { words.join(" ") };
            curves.push(Curve { label, keys: keys_of(swept), config });
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

    /// Refuses keys of parts of the radio, the cell and the clock that no curve chooses: they would have no
    /// effect.
    pub fn check_effects(&self) -> Result<(), ConfigError> {
        let mut curves = self.curves()?.into_iter();
        let mut idle = curves.next().map_or_else(Vec::new, |curve| curve.config.idle_keys());
        for curve in curves {
            let own = curve.config.idle_keys();
            idle.retain(|error| own.iter().any(|other| other.key == error.key));
        }
        idle.into_iter().next().map_or(Ok(()), Err)
    }

    /// The configuration of an experiment that sweeps nothing.
    pub fn only_config(&self) -> Result<Config, ConfigError> {
        self.check_effects()?;
        let mut curves = self.curves()?;
        match curves.len() {
            1 => Ok(curves.remove(0).config),
            many => Err(ConfigError::new("sweep", format!("makes {many} curves where one is wanted"))),
        }
    }

    /// The experiment as a file: the configuration with every default written out, the sweep and its rules.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        let mut base = Config::from_table(self.table.clone())?;
        if self.sweep.is_empty() {
            base = base.resolved();
        }
        // Where something is swept, what a rule fills in is left to each curve.
        let mut text = fedlink::config::commented_toml(&base);
        if !self.sweep.is_empty() {
            text.push_str("\n[sweep]\n");
            for (key, values) in &self.sweep {
                let _ = writeln!(text, "{} = {}", toml_key(key), Value::Array(values.clone()));
            }
        }
        // A rule that `set` has made idle, and a `[quick]` that no longer fits, would be refused when the
        // file is read.
        let combinations = self.combinations()?;
        for when in self.excluded.iter().filter(|when| when.matches_any(&combinations)) {
            let _ = write!(text, "\n[[exclude]]\n{}", toml_keys(&when.keys, "\n"));
            text.push('\n');
        }
        for Override { when, set } in &self.overrides {
            if set.is_empty() || !when.matches_any(&combinations) {
                continue;
            }
            let [when, set] = [&when.keys, set].map(|keys| toml_keys(keys, ", "));
            let _ = writeln!(text, "\n[[override]]\nwhen = {{ {when} }}\nset = {{ {set} }}");
        }
        if !self.expected.is_empty() {
            text.push_str("\n[expected]\n");
            self.expected.iter().for_each(|(curve, expected)| {
                let _ = writeln!(text, "{} = {}", toml_key(curve), Value::Float(expected.value));
            });
        }
        text += &self.claims.to_toml();
        let length = self.curves_of(&combinations).map(|curves| length(&curves));
        if length.is_ok_and(|(rounds, seeds)| self.original.shortened(rounds, seeds).is_some()) {
            let Original { rounds, seeds, quick } = self.original;
            let _ = writeln!(
                text,
                "\n# The experiment was shortened: this is its own length.\n[original]\nrounds = {rounds}\n\
                 seeds = {seeds}\nquick = {quick}"
            );
        }
        let mut quick = self.clone();
        if self.has_quick() && quick.quicken().and_then(|()| quick.curves()).is_ok() {
            let _ = writeln!(text, "\n[quick]\n{}", toml_keys(&self.quick, "\n"));
        }
        Ok(text)
    }
}

/// The sections of a file beside those of a [`Config`].
const MORE_SECTIONS: [&str; 7] = ["sweep", "exclude", "override", "quick", "expected", "claims", "original"];

/// A value that is swept over twice would give two curves of one name and the same runs.
fn check_once(key: &str, values: &[Value]) -> Result<(), ConfigError> {
    match values.iter().enumerate().find(|(i, value)| values[..*i].contains(value)) {
        None => Ok(()),
        Some((_, twice)) => {
            let problem = format!("has {twice} twice; write every value once");
            Err(ConfigError::new(format!("sweep.\"{key}\""), problem))
        }
    }
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

fn keys_of(swept: &Swept) -> CurveKeys {
    swept.iter().map(|(key, value)| ((*key).to_owned(), written(value))).collect()
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

/// Whether `key` is one of `section`.
fn is_in(key: &str, section: &str) -> bool {
    key.split('.').next() == Some(section)
}

/// The sections of a table that are wanted by name.
fn part_of(table: &Table, wanted: impl Fn(&str) -> bool) -> Table {
    let sections = table.iter().filter(|(name, _)| wanted(name));
    sections.map(|(name, section)| (name.clone(), section.clone())).collect()
}

/// The value at `a.b.c` of nested tables.
fn nested<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        None => table.get(key),
        Some((first, rest)) => nested(table.get(first)?.as_table()?, rest),
    }
}

#[cfg(test)]
mod tests;
