//! Custom parts: what is not this library's, passed the same way to a simulation, a sweep and a server of
//! real nodes.

use crate::compress::Compressor;
use crate::config::Config;
use crate::data::Dataset;
use crate::data::partition::{Indices, Partition};
use crate::radio::fading::{Fading, Propagation};
use crate::registry::{ConfigError, Kind, Scope, find};
use crate::schedule::Policy;
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::Table;

/// Makes a fresh part for a run, from its own table.
pub type Factory<T> =
    Arc<dyn Fn(&Table, &Scope, &<T as Kind>::Material) -> Result<Box<T>, ConfigError> + Send + Sync>;

/// Custom parts by the names under which a configuration chooses them.
///
/// A part is made anew for every run. Its name goes into labels, configuration and records like that of any
/// other part, and `[custom]` of the configuration records where it comes from.
///
/// ```
/// use fedlink::parts::Parts;
/// use fedlink::schedule::policy::Random;
/// let mut config = fedlink::config::Config::default();
/// config.schedule.policy = "mine".into();
/// let parts = Parts::default().policy("mine", "an example", |_, _| Ok(Box::new(Random {})));
/// config.run.rounds = 2;
/// # config.learn.model = "softmax".into();
/// let dataset = fedlink::data::load("digits", &[]).unwrap();
/// let simulation = fedlink::simulation::Simulation::with_parts(&config, dataset, &parts).unwrap();
/// assert_eq!(simulation.config().custom["mine"], "an example");
/// ```
#[derive(Clone, Default)]
pub struct Parts {
    policies: Customs<dyn Policy>,
    compressors: Customs<dyn Compressor>,
    fadings: Customs<dyn Fading>,
    partitions: Customs<dyn Partition>,
}

struct Customs<T: ?Sized + Kind>(BTreeMap<String, Custom<T>>);

struct Custom<T: ?Sized + Kind> {
    origin: String,
    make: Factory<T>,
}

impl<T: ?Sized + Kind> Default for Customs<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: ?Sized + Kind> Clone for Customs<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: ?Sized + Kind> Clone for Custom<T> {
    fn clone(&self) -> Self {
        Self { origin: self.origin.clone(), make: Arc::clone(&self.make) }
    }
}

impl<T: ?Sized + Kind> Customs<T> {
    fn insert(&mut self, name: impl Into<String>, origin: impl Into<String>, make: Factory<T>) {
        self.0.insert(name.into(), Custom { origin: origin.into(), make });
    }

    /// The part called `name`: the custom one, or the library's.
    fn build(&self, config: &Config, name: &str, material: &T::Material) -> Result<Box<T>, ConfigError> {
        match self.0.get(name) {
            Some(_) if find::<T>(name).is_ok() => {
                let problem =
                    format!("is \"{name}\", a custom part with the name of a built-in one; give it another");
                Err(ConfigError::new(T::KEY, problem))
            }
            Some(custom) => (custom.make)(config.own_table(T::TABLE, name), &config.scope(), material),
            None => config.build::<T>(name, material),
        }
    }
}

impl Parts {
    /// Adds a policy; `origin` records where it comes from.
    #[must_use]
    pub fn policy(
        mut self,
        name: impl Into<String>,
        origin: impl Into<String>,
        make: impl Fn(&Table, &Scope) -> Result<Box<dyn Policy>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        self.policies.insert(name, origin, Arc::new(move |own, scope, (): &()| make(own, scope)));
        self
    }

    /// Adds a compressor.
    #[must_use]
    pub fn compressor(
        mut self,
        name: impl Into<String>,
        origin: impl Into<String>,
        make: impl Fn(&Table, &Scope) -> Result<Box<dyn Compressor>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        self.compressors.insert(name, origin, Arc::new(move |own, scope, (): &()| make(own, scope)));
        self
    }

    /// Adds a fading law, which brings its own antennas and correlation over rounds.
    #[must_use]
    pub fn fading(
        mut self,
        name: impl Into<String>,
        origin: impl Into<String>,
        make: impl Fn(&Table, &Scope) -> Result<Box<dyn Fading>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        self.fadings.insert(name, origin, Arc::new(move |own, scope, _: &Propagation| make(own, scope)));
        self
    }

    /// Adds a partition of the training set, listed sample by sample for every device.
    #[must_use]
    pub fn partition(
        mut self,
        name: impl Into<String>,
        origin: impl Into<String>,
        lists: Vec<Vec<u32>>,
    ) -> Self {
        let lists = Arc::new(lists);
        let make = move |_: &Table, scope: &Scope, dataset: &Dataset| {
            let indices = Indices::new(lists.as_ref().clone(), scope.devices, dataset)?;
            Ok(Box::new(indices) as Box<dyn Partition>)
        };
        self.partitions.insert(name, origin, Arc::new(make));
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.origins().next().is_none()
    }

    /// Names and origins of all parts.
    pub fn origins(&self) -> impl Iterator<Item = (&str, &str)> {
        fn of<T: ?Sized + Kind>(customs: &Customs<T>) -> impl Iterator<Item = (&str, &str)> {
            customs.0.iter().map(|(name, custom)| (name.as_str(), custom.origin.as_str()))
        }
        of(&self.policies).chain(of(&self.compressors)).chain(of(&self.fadings)).chain(of(&self.partitions))
    }

    /// The names of all parts, each with the key that chooses it.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        fn of<T: ?Sized + Kind>(customs: &Customs<T>) -> impl Iterator<Item = (&'static str, &str)> {
            customs.0.keys().map(|name| (T::KEY, name.as_str()))
        }
        of(&self.policies).chain(of(&self.compressors)).chain(of(&self.fadings)).chain(of(&self.partitions))
    }

    /// Notes in `config` where the custom parts come from that it chooses.
    pub fn declare(&self, config: &mut Config) {
        let chosen =
            [&config.schedule.policy, &config.compress.scheme, &config.radio.fading, &config.data.partition];
        let used: Vec<(String, String)> = self
            .origins()
            .filter(|(name, _)| chosen.iter().any(|chosen| chosen == name))
            .map(|(name, origin)| (name.to_owned(), origin.to_owned()))
            .collect();
        config.custom.extend(used);
    }

    pub(crate) fn build_policy(&self, config: &Config) -> Result<Box<dyn Policy>, ConfigError> {
        self.policies.build(config, &config.schedule.policy, &())
    }

    pub(crate) fn build_compressor(&self, config: &Config) -> Result<Box<dyn Compressor>, ConfigError> {
        self.compressors.build(config, &config.compress.scheme, &())
    }

    pub(crate) fn build_fading(
        &self,
        config: &Config,
        propagation: &Propagation,
    ) -> Result<Box<dyn Fading>, ConfigError> {
        let name = config.radio.fading.as_str();
        if self.fadings.0.contains_key(name) {
            propagation.refuse_amplitudes(name, "a custom part, which has its own")?;
            if propagation.antennas != 1 {
                let problem = format!(
                    "is {}, but has no effect on radio.fading = \"{name}\", a custom part, whose gain is \
                     that over all antennas; set it to 1",
                    propagation.antennas
                );
                return Err(ConfigError::new("radio.antennas", problem));
            }
        }
        self.fadings.build(config, name, propagation)
    }

    /// The split of `dataset` that `config` chooses.
    pub fn build_partition(
        &self,
        config: &Config,
        dataset: &Dataset,
    ) -> Result<Box<dyn Partition>, ConfigError> {
        self.partitions.build(config, &config.data.partition, dataset)
    }
}
