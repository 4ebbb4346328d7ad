//! One run as one typed, valid value.

use super::choices::{Choices, Facts};
use super::{Config, KEYS, kinds, rules};
use crate::compress::uncompressed::Uncompressed;
use crate::data::Dataset;
use crate::data::partition::Partition;
use crate::learn::task::Work;
use crate::parts::chosen::absent;
use crate::parts::{Chosen, ConfigError, Parts, Scope};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use toml::Table;

/// A run that is valid: the configuration, the chosen parts as typed configurations, and their facts.
///
/// Only [`Config::resolve`] and [`Spec::builder`] make one, and nothing changes it afterwards. The sections
/// are its fields: `spec.schedule.k`. A copy is cheap.
///
/// ```
/// use fedlink::prelude::*;
/// let spec = Config::from_toml("[schedule]\nk = 5").unwrap().resolve(&Parts::default()).unwrap();
/// assert_eq!((spec.schedule.k, spec.rate(), spec.parts().policy.name()), (5, 1e-3, "bn2-c"));
/// ```
#[derive(Clone)]
pub struct Spec(Arc<Resolved>);

#[derive(Clone)]
struct Resolved {
    /// As written, with the custom parts that it chooses noted.
    config: Config,
    shared: Arc<Shared>,
}

/// The part of a run that all seeds share.
#[derive(Clone)]
struct Shared {
    parts: Choices,
    facts: Facts,
    /// η.
    rate: f64,
    work: Option<Work>,
}

impl Deref for Spec {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.0.config
    }
}

/// The origin of a custom task.
const TASK: &str = "task";

/// The number of times that a configuration was resolved, for tests.
static RESOLUTIONS: AtomicU64 = AtomicU64::new(0);

impl Config {
    /// The run that the configuration describes, with custom parts where it names them; the error names the
    /// key and the allowed values.
    pub fn resolve(&self, parts: &Parts) -> Result<Spec, ConfigError> {
        self.resolve_for(parts, None)
    }

    /// As [`Config::resolve`], to learn on a data set or a custom task.
    pub fn resolve_on(&self, work: impl Into<Work>, parts: &Parts) -> Result<Spec, ConfigError> {
        self.resolve_for(parts, Some(work.into()))
    }

    /// As [`Config::resolve_on`], without custom parts.
    pub fn on(&self, work: impl Into<Work>) -> Result<Spec, ConfigError> {
        self.resolve_on(work, &Parts::default())
    }

    fn resolve_for(&self, parts: &Parts, work: Option<Work>) -> Result<Spec, ConfigError> {
        RESOLUTIONS.fetch_add(1, Ordering::Relaxed);
        let mut config = self.clone();
        if let Some(Work::Custom(task)) = &work {
            config.learn_by_task(&task.name());
        }
        config.check_ranges()?;
        let scope = config.scope();
        let mut chosen = Choices::of(&config, parts, &scope)?;
        // An origin that the configuration notes already stays: a folder keeps the origins of its runs.
        for (name, origin) in chosen.customs() {
            config.custom.entry(name).or_insert(origin);
        }
        let mut facts = chosen.facts(&scope)?;
        if !facts.policy.is_a_link {
            // Devices then send updates as they are.
            chosen.scheme = Chosen::from(Uncompressed {});
            facts.scheme = chosen.scheme.facts(&scope)?;
        }
        let rate = config.learn.rate.unwrap_or(facts.optimizer.default_rate);
        rules::check(&config, &chosen, &facts, rate)?;
        let shared = Shared { parts: chosen, facts, rate, work };
        Ok(Spec(Arc::new(Resolved { config, shared: Arc::new(shared) })))
    }

    /// Names the task in place of the data set, the split, the model and the optimizer, none of which a
    /// custom task uses.
    fn learn_by_task(&mut self, name: &str) {
        for key in [
            &mut self.data.dataset,
            &mut self.data.partition,
            &mut self.learn.model,
            &mut self.learn.optimizer,
        ] {
            name.clone_into(key);
        }
        // A folder keeps the origin of its task.
        self.custom.entry(name.to_owned()).or_insert_with(|| TASK.into());
    }

    /// The configuration with every default written out; unchanged if it is not valid.
    #[must_use]
    pub fn resolved(&self) -> Self {
        self.resolve(&Parts::default()).map_or_else(|_| self.clone(), |spec| spec.resolved())
    }

    /// Checks each key of the sections against its range. It resolves nothing.
    pub fn check_ranges(&self) -> Result<(), ConfigError> {
        rules::check_ranges(self)
    }

    /// Checks the configuration without a data set; custom parts count as valid.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.resolve(&Parts::default()).map(|_| ())
    }
}

impl Spec {
    /// The same run with another number of rounds; no default is derived from it.
    #[must_use]
    pub fn with_rounds(&self, rounds: u64) -> Self {
        let mut resolved = (*self.0).clone();
        resolved.config.run.rounds = rounds;
        Self(Arc::new(resolved))
    }

    /// The configuration in its recorded form.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The chosen parts.
    pub fn parts(&self) -> &Choices {
        &self.0.shared.parts
    }

    /// The facts of the chosen parts.
    pub fn facts(&self) -> &Facts {
        &self.0.shared.facts
    }

    /// η: `learn.rate`, or the default of the optimizer.
    pub fn rate(&self) -> f64 {
        self.0.shared.rate
    }

    /// The data set or the task of the run, if it is given.
    pub fn work(&self) -> Option<&Work> {
        self.0.shared.work.as_ref()
    }

    /// The same run on a data set that was loaded since, or with a custom task, which trains by its own
    /// steps.
    pub fn with_work(&self, work: impl Into<Work>) -> Result<Self, ConfigError> {
        let (work, mut resolved) = (work.into(), (*self.0).clone());
        let mut shared = (*resolved.shared).clone();
        if let Work::Custom(task) = &work {
            let name = task.name();
            resolved.config.learn_by_task(&name);
            let Choices { partition, model, optimizer, .. } = &mut shared.parts;
            let (none, origin) = (Table::new(), &resolved.config.custom[&name]);
            (*partition, *model) = (absent(&name, origin, &none), absent(&name, origin, &none));
            *optimizer = absent(&name, origin, &none);
            shared.facts.optimizer = optimizer.facts(&self.scope())?;
            rules::check(&resolved.config, &shared.parts, &shared.facts, shared.rate)?;
        }
        shared.work = Some(work);
        resolved.shared = Arc::new(shared);
        Ok(Self(Arc::new(resolved)))
    }

    /// The same run with the name of custom data, and where they come from.
    #[must_use]
    pub fn with_data(&self, name: &str, origin: impl Into<String>) -> Self {
        let mut resolved = (*self.0).clone();
        name.clone_into(&mut resolved.config.data.dataset);
        resolved.config.custom.insert(name.to_owned(), origin.into());
        Self(Arc::new(resolved))
    }

    /// The same run with another seed.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Self {
        let mut resolved = (*self.0).clone();
        resolved.config.run.seed = seed;
        Self(Arc::new(resolved))
    }

    /// The split of `dataset` among the devices.
    pub fn partition(&self, dataset: &Dataset) -> Result<Box<dyn Partition>, ConfigError> {
        self.0.shared.parts.partition.build(&self.scope(), dataset)
    }

    /// The configuration with every default written out, of parts those that are chosen.
    pub fn resolved(&self) -> Config {
        let mut config = self.0.config.clone();
        config.learn.rate = Some(self.rate());
        config.own = self.0.shared.parts.tables();
        config
    }

    /// The change that most likely helps if training diverges.
    ///
    /// ```
    /// let config = fedlink::spec::Config::from_toml("[learn]\nserver_rate = 4.0").unwrap();
    /// let spec = config.resolve(&Default::default()).unwrap();
    /// assert_eq!(spec.divergence_remedy(), "lower learn.server_rate, which is 4, or learn.rate");
    /// ```
    pub fn divergence_remedy(&self) -> String {
        let (facts, learn) = (self.facts(), &self.learn);
        if facts.feedback.keeps_rest && facts.scheme.may_expand {
            return format!(
                "compress.feedback = \"{}\" adds the unsent part to later updates, and compress.scheme = \
                 \"{}\" may lengthen an update: choose a projection, or no feedback",
                self.compress.feedback, self.compress.scheme
            );
        }
        if learn.server_rate > 1.0 || facts.server_optimizer.divides_by_size {
            return format!("lower learn.server_rate, which is {}, or learn.rate", learn.server_rate);
        }
        "lower learn.rate".into()
    }

    /// The keys that are not written and whose defaults follow from other keys: `learn.rate`, and keys of the
    /// chosen parts whose defaults depend on the run.
    ///
    /// ```
    /// let config = fedlink::spec::Config::from_toml("[schedule]\npolicy = \"bc-bn2\"").unwrap();
    /// let spec = config.resolve(&Default::default()).unwrap();
    /// assert_eq!(spec.derived_keys(), ["learn.rate", "schedule.bc-bn2.kc"]);
    /// ```
    pub fn derived_keys(&self) -> Vec<String> {
        let config = &self.0.config;
        let mut derived: Vec<String> =
            config.learn.rate.is_none().then(|| "learn.rate".into()).into_iter().collect();
        let scope = self.scope();
        // A default that another run would not have is not a constant.
        let other = Scope {
            devices: scope.devices + 10_000,
            k: scope.k + 1000,
            rounds: 2 * scope.rounds + 1,
            samples_per_device: 2 * scope.samples_per_device + 1,
            seed: scope.seed,
        };
        let own = self.0.shared.parts.tables();
        for kind in kinds() {
            for part in &kind.parts {
                let path = format!("{}.{}", kind.table, part.name);
                let (Some(here), Some(there)) =
                    (kind.defaults(part.name, &scope), kind.defaults(part.name, &other))
                else {
                    continue;
                };
                let Some(table) = own.get(&path) else { continue };
                let written = |key: &str| config.own.get(&path).is_some_and(|own| own.contains_key(key));
                let follows = |key: &&String| !written(key) && here.get(*key) != there.get(*key);
                derived.extend(table.keys().filter(follows).map(|key| format!("{path}.{key}")));
            }
        }
        derived
    }

    /// The paths of the files that the run reads besides its data set, each once: a trace, positions, mean
    /// gains.
    ///
    /// ```
    /// use fedlink::prelude::*;
    /// let text = "[radio]\nfading = \"trace\"\ntrace.file = \"hall.csv\"\nmean_gains = \"gains.txt\"";
    /// let spec = Config::from_toml(text).unwrap().resolve(&Parts::default()).unwrap();
    /// assert_eq!(spec.files(), ["gains.txt", "hall.csv"]);
    /// ```
    pub fn files(&self) -> Vec<String> {
        let file = |table: &Table, name: &str| table.get(name)?.as_str().map(str::to_owned);
        let whole = self.to_table();
        let of_section = KEYS.iter().filter(|key| key.is_file).filter_map(|key| {
            let (section, name) = key.name.split_once('.')?;
            file(whole.get(section)?.as_table()?, name)
        });
        // Only parts that are chosen read theirs.
        let own = self.0.shared.parts.tables();
        let of_parts = kinds().iter().flat_map(|kind| {
            let own = &own;
            kind.parts.iter().flat_map(move |part| {
                let table = own.get(&format!("{}.{}", kind.table, part.name));
                part.keys.iter().filter(|key| key.is_file).filter_map(move |key| file(table?, key.name))
            })
        });
        let all: BTreeSet<String> = of_section.chain(of_parts).filter(|path| !path.is_empty()).collect();
        all.into_iter().collect()
    }

    /// Settings that are allowed and seldom meant, as whole sentences.
    pub fn cautions(&self) -> Vec<String> {
        rules::cautions(&self.0.config, &self.0.shared.parts, &self.0.shared.facts)
    }

    /// The number of times that this process has resolved a configuration.
    #[doc(hidden)]
    pub fn resolutions() -> u64 {
        RESOLUTIONS.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_tuple("Spec").field(&self.0.config).finish()
    }
}

/// Two runs are the same if they are configured alike.
impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.resolved() == other.resolved()
    }
}

impl From<&Spec> for Scope {
    fn from(spec: &Spec) -> Self {
        spec.scope()
    }
}
