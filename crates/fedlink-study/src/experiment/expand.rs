//! From an experiment to its curves and runs.

use super::{ClaimsFile, Experiment, is_in, part_of};
use crate::claims::CurveKeys;
use crate::claims::{Original, Shortened, Subject, Undecidable};
use fedlink::parts::Parts;
use fedlink::spec::{Config, ConfigError, Spec, kinds, located, put_in};
use std::collections::HashSet;
use toml::{Table, Value};

/// The curves and runs of an experiment. [`Experiment::expand`] makes them, once per command.
#[derive(Clone)]
pub struct Sweep {
    /// The experiment.
    pub experiment: Experiment,
    /// Its curves, in the order of `[sweep]`.
    pub curves: Vec<Curve>,
    /// Its runs: the seeds of the first curve, then those of the second, and so on.
    pub runs: Vec<Run>,
    /// The custom parts that the curves may name.
    pub parts: Parts,
    /// The content of `config.toml`.
    toml: String,
}

/// One curve of an experiment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Curve {
    /// The swept values that distinguish it from the other curves.
    pub label: String,
    /// Its value of every swept key that concerns it, as `section.name` and as written. A key of a part that
    /// it does not choose is none of its keys.
    pub keys: CurveKeys,
    /// Its runs but for the seed.
    pub spec: Spec,
}

/// One run of an experiment: a curve at a seed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Run {
    /// The index of its curve.
    pub curve: usize,
    /// The curve at the seed of the run.
    pub spec: Spec,
}

/// A curve before it is resolved.
pub(super) struct Draft {
    pub label: String,
    pub keys: CurveKeys,
    pub config: Config,
}

impl Run {
    /// A curve, by its index, at a seed.
    pub fn new(curve: usize, spec: Spec) -> Self {
        Self { curve, spec }
    }
}

impl Curve {
    /// The reductions of the curve against its file if `seeds` runs of it have ended; `whole` are those of
    /// the experiment.
    pub fn shortened(&self, whole: Option<Shortened>, seeds: u64) -> Option<Shortened> {
        let run = &self.spec.run;
        match whole {
            Some(whole) => Some(Shortened { seeds, ..whole }),
            None => {
                Original { rounds: run.rounds, seeds: run.seeds, quick: false }.shortened(run.rounds, seeds)
            }
        }
    }
}

/// Swept keys with one value each.
pub(super) type Swept<'a> = Vec<(&'a str, &'a Value)>;

/// A combination of the sweep, excluded ones too, without overrides.
pub(super) struct Combination<'a> {
    pub swept: Swept<'a>,
    pub config: Config,
    /// The sections that rules name a key of, defaults included; rules are matched with them.
    pub resolved: Table,
}

impl Combination<'_> {
    /// Its value of every swept key that concerns it.
    pub fn keys(&self) -> CurveKeys {
        let own: Swept = self.swept.iter().filter(|(key, _)| self.config.chooses(key)).copied().collect();
        keys_of(&own)
    }
}

/// The most rounds and the most seeds of a curve.
pub(super) fn length<'a>(curves: impl Iterator<Item = &'a Config>) -> (u64, u64) {
    let lengths = curves.map(|config| (config.run.rounds, config.run.seeds));
    lengths.fold((0, 0), |most, length| (most.0.max(length.0), most.1.max(length.1)))
}

impl Experiment {
    /// Makes the curves and runs: every curve is resolved once, with custom parts where it names them.
    pub fn expand(mut self, parts: &Parts) -> Result<Sweep, ConfigError> {
        self.anchor_snrs()?;
        let combinations = self.combinations()?;
        let resolve = |Draft { label, keys, config }| {
            let spec = config.resolve(parts).map_err(|error| self.located(error))?;
            Ok(Curve { label, keys, spec })
        };
        let drafts = self.drafts(&combinations)?;
        let curves: Vec<Curve> = drafts.into_iter().map(resolve).collect::<Result<_, ConfigError>>()?;
        // A setting may have switched off what goals need.
        self.check_recorded(curves.iter().map(|curve| curve.spec.config()))?;
        let toml = self.to_toml(&combinations, &curves)?;
        let seeds = |(curve, Curve { spec, .. }): (usize, &Curve)| {
            let spec = spec.clone();
            let first = spec.run.seed;
            (0..spec.run.seeds).map(move |i| Run { curve, spec: spec.with_seed(first + i) })
        };
        let runs = curves.iter().enumerate().flat_map(seeds).collect();
        Ok(Sweep { experiment: self, curves, runs, parts: parts.clone(), toml })
    }

    /// The error with the line of its key, if the file sets it.
    fn located(&self, error: ConfigError) -> ConfigError {
        match &self.text {
            Some(text) if !self.set.contains(&error.key) => located(&self.name, text, error),
            _ => error,
        }
    }

    /// The run of an experiment without a sweep.
    pub fn only_spec(mut self, parts: &Parts) -> Result<Spec, ConfigError> {
        self.anchor_snrs()?;
        let mut drafts = self.drafts(&self.combinations()?)?;
        match (drafts.pop(), drafts.len()) {
            (Some(Draft { config, .. }), 0) => {
                let spec = config.resolve(parts).map_err(|error| self.located(error))?;
                config.idle_keys().into_iter().next().map_or(Ok(spec), Err)
            }
            (_, others) => {
                let problem = format!("makes {} curves, but exactly one is required", others + 1);
                Err(ConfigError::new("sweep", problem))
            }
        }
    }

    /// The swept values of every combination.
    pub(super) fn swept(&self) -> Result<Vec<Swept<'_>>, ConfigError> {
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

    /// Every combination of the swept values, excluded ones included.
    pub(super) fn combinations(&self) -> Result<Vec<Combination<'_>>, ConfigError> {
        let swept = self.swept()?;
        let base = Config::from_table(self.table.clone())?;
        let is_swept = |section: &str| self.sweep.iter().any(|(key, _)| is_in(key, section));
        let rules = self.excluded.iter().chain(self.overrides.iter().map(|rule| &rule.when));
        let keys: Vec<&str> = rules.flat_map(|when| &when.keys).map(|(key, _)| key.as_str()).collect();
        // The rate and the keys of parts have a value only after they are resolved.
        let is_open = |key: &&str| *key == "learn.rate" || key.matches('.').count() > 1;
        let must_resolve = keys.iter().any(is_open);
        let is_ruled = |section: &str| keys.iter().any(|key| is_in(key, section));
        swept
            .into_iter()
            .map(|swept| {
                let mut table = part_of(&self.table, is_swept);
                swept.iter().for_each(|(key, value)| put_in(&mut table, key, (*value).clone()));
                let config = base.clone().with_sections(table)?;
                let mut all = if must_resolve { config.resolved() } else { config.clone() };
                all.drop_idle_tables();
                let resolved = all.sections(is_ruled);
                Ok(Combination { swept, config, resolved })
            })
            .collect()
    }

    /// The curves before they are resolved, in the order of the sweep. Combinations that differ in keys of
    /// parts that they do not choose are one curve.
    pub(super) fn drafts(&self, combinations: &[Combination]) -> Result<Vec<Draft>, ConfigError> {
        let mut curves = Vec::new();
        let mut seen = HashSet::new();
        for Combination { swept, config, resolved } in combinations {
            if self.excluded.iter().any(|when| when.matches(resolved)) {
                continue;
            }
            let rules = self.overrides.iter().filter(|rule| rule.when.matches(resolved));
            let overridden: Vec<&(String, Value)> = rules.flat_map(|rule| &rule.set).collect();
            let mut table = config.sections(|section| overridden.iter().any(|(key, _)| is_in(key, section)));
            overridden.iter().for_each(|(key, value)| put_in(&mut table, key, value.clone()));
            // A rule may choose another part: both choices count.
            let chosen = config;
            let mut config = config.clone().with_sections(table)?;
            let swept: Swept =
                swept.iter().filter(|(key, _)| chosen.chooses(key) || config.chooses(key)).copied().collect();
            let keys = keys_of(&swept);
            if !seen.insert(keys.clone()) {
                continue;
            }
            config.drop_unused_custom();
            let words: Vec<String> = swept.iter().map(|(key, value)| describe(key, value)).collect();
            let label = if words.is_empty() { config.schedule.policy.clone() } else { words.join(" ") };
            curves.push(Draft { label, keys, config });
        }
        if curves.is_empty() {
            return Err(ConfigError::new("exclude", "leaves no curve at all"));
        }
        Ok(curves)
    }
}

impl Sweep {
    /// Runs that no file of an experiment lists: each curve has its label, and each run is a curve at a seed.
    pub fn of_runs(
        experiment: Experiment,
        curves: Vec<(String, Spec)>,
        runs: Vec<Run>,
        parts: &Parts,
    ) -> Self {
        let curve = |(label, spec)| Curve { label, keys: CurveKeys::new(), spec };
        let curves = curves.into_iter().map(curve).collect();
        Self { experiment, curves, runs, parts: parts.clone(), toml: String::new() }
    }

    /// The content of `config.toml`: the configuration with every default, the sweep and its rules.
    pub fn to_toml(&self) -> &str {
        &self.toml
    }

    /// As [`Sweep::to_toml`], with the defaults that follow from other keys in comments: after a change of a
    /// key no derived default keeps the value from before.
    pub fn to_editable_toml(&self) -> String {
        match &self.curves[..] {
            [curve] if self.experiment.sweep.is_empty() => {
                super::write::comment_out(&self.toml, &curve.spec.derived_keys())
            }
            _ => self.toml.clone(),
        }
    }

    /// The claims that the seeds of their curves cannot decide.
    pub fn undecidable(&self) -> Result<Vec<Undecidable>, ConfigError> {
        let planned = |curve: &Curve| {
            let run = &curve.spec.run;
            (curve.keys.clone(), run.seed..run.seed + run.seeds)
        };
        let planned: Vec<_> = self.curves.iter().map(planned).collect();
        self.experiment.claims.undecidable(Subject::Runs, &planned)
    }

    /// The reductions of the experiment against its file; none if there are none.
    pub fn shortened(&self) -> Option<Shortened> {
        let (rounds, seeds) = length(self.curves.iter().map(|curve| curve.spec.config()));
        self.experiment.original.shortened(rounds, seeds)
    }

    /// `bc k=1`, or `bc k=1 seed 3` where a curve has several seeds.
    pub fn label(&self, run: &Run) -> String {
        let Curve { label, spec, .. } = &self.curves[run.curve];
        match spec.run.seeds {
            1 => label.clone(),
            _ => format!("{label} seed {}", run.spec.run.seed),
        }
    }

    /// Refuses keys of parts of the radio, the cell and the clock that no curve chooses: they would have no
    /// effect. Where a setting chose another part than the file, the file's keys of its own part stay.
    pub fn check_effects(&self) -> Result<(), ConfigError> {
        let mut curves = self.curves.iter();
        let mut idle = curves.next().map_or_else(Vec::new, |curve| curve.spec.idle_keys());
        for curve in curves {
            let own = curve.spec.idle_keys();
            idle.retain(|error| own.iter().any(|other| other.key == error.key));
        }
        let set = &self.experiment.set;
        let is_left = |error: &ConfigError| {
            let mut kinds = kinds().iter().filter(|kind| set.contains(kind.key));
            !set.contains(&error.key)
                && kinds.any(|kind| {
                    let names = kind.parts.iter().map(|part| format!("{}.{}.", kind.table, part.name));
                    { names }.any(|table| error.key.starts_with(&table))
                })
        };
        idle.into_iter().find(|error| !is_left(error)).map_or(Ok(()), Err)
    }

    /// Replaces the claims and published values by those of `file`; an error if they name curves that are
    /// not there.
    pub fn claim_as(&mut self, file: &ClaimsFile) -> Result<(), ConfigError> {
        (self.experiment.claims, self.experiment.expected) = (file.claims.clone(), file.expected.clone());
        let curves = self.curves.iter().map(|curve| (&curve.keys, curve.spec.config()));
        self.experiment.check_claims(curves)
    }
}

/// The swept values of a combination as text.
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

/// `bc` for a policy, `k=5` for other keys.
fn describe(key: &str, value: &Value) -> String {
    match key.rsplit('.').next() {
        Some("policy") | None => written(value),
        Some(name) => format!("{name}={}", written(value)),
    }
}
