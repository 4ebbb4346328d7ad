//! A run stated in Rust.

use super::{Config, Spec};
use crate::adversary::Attack;
use crate::aggregate::Aggregator;
use crate::aggregate::optimizer::ServerOptimizer;
use crate::clock::compute::Compute;
use crate::clock::downlink::Downlink;
use crate::clock::jitter::Jitter;
use crate::clock::spread::Spread;
use crate::compress::{Compressor, ErrorFeedback};
use crate::data::Dataset;
use crate::data::partition::Partition;
use crate::learn::correction::Correction;
use crate::learn::model::Model;
use crate::learn::optimizer::Optimizer;
use crate::learn::task::{Task, Work};
use crate::parts::{Chosen, ConfigError, Kind, Parts, find};
use crate::radio::access::Access;
use crate::radio::cell::layout::Layout;
use crate::radio::cell::pathloss::PathLoss;
use crate::radio::fading::Fading;
use crate::radio::power::PowerPolicy;
use crate::radio::rate::Rate;
use crate::schedule::Policy;
use std::sync::Arc;
use toml::Value;

/// Builds a [`Spec`]; keys that are not set have their defaults.
///
/// A method takes the typed configuration of a part, built-in or not, or an object of one's own
/// ([`own`](crate::parts::own)).
///
/// ```
/// use fedlink::prelude::*;
/// # fn main() -> Result<(), fedlink::Error> {
/// let spec = Spec::builder()
///     .dataset(Dataset::digits()).devices(40).policy(BcBn2 { kc: 20 }).k(4).rounds(50).build()?;
/// Simulation::new(spec)?.run(|round| println!("{round}"))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Builder {
    config: Config,
    parts: Parts,
    work: Option<Work>,
    error: Option<ConfigError>,
}

impl Spec {
    /// A run stated in Rust.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

/// A method for each part that a run chooses.
macro_rules! parts {
    ($($(#[$doc:meta])* $method:ident: $kind:ty, $($field:ident).+;)*) => {
        impl Builder {
            $($(#[$doc])*
            pub fn $method(mut self, part: impl Into<Chosen<$kind>>) -> Self {
                let part = part.into();
                part.name().clone_into(&mut self.config.$($field).+);
                self.choose(&part)
            })*
        }
    };
}

parts! {
    /// The split of the data set among the devices.
    partition: dyn Partition, data.partition;
    /// The model.
    model: dyn Model, learn.model;
    /// The local optimizer.
    optimizer: dyn Optimizer, learn.optimizer;
    /// The correction of local steps.
    correction: dyn Correction, learn.correction;
    /// The aggregation rule.
    aggregate: dyn Aggregator, learn.aggregate;
    /// The server optimizer.
    server_optimizer: dyn ServerOptimizer, learn.server_optimizer;
    /// The fading law.
    fading: dyn Fading, radio.fading;
    /// The power policy.
    power_policy: dyn PowerPolicy, radio.power_policy;
    /// The rate model.
    rate_model: dyn Rate, radio.rate;
    /// The access scheme.
    access: dyn Access, radio.access;
    /// The layout of the cell.
    layout: dyn Layout, cell.layout;
    /// The law of path loss.
    pathloss: dyn PathLoss, cell.pathloss;
    /// The model of training times.
    compute: dyn Compute, clock.compute;
    /// The spread of training times over devices.
    spread: dyn Spread, clock.spread;
    /// The jitter of training times over rounds.
    jitter: dyn Jitter, clock.jitter;
    /// The downlink.
    downlink: dyn Downlink, clock.downlink;
    /// The scheduling policy.
    policy: dyn Policy, schedule.policy;
    /// The compressor.
    compressor: dyn Compressor, compress.scheme;
    /// The rule of error feedback.
    feedback: dyn ErrorFeedback, compress.feedback;
    /// The attack of the adversarial devices.
    attack: dyn Attack, adversary.kind;
}

impl Builder {
    /// Starts from a configuration.
    pub fn config(self, config: Config) -> Self {
        Self { config, ..self }
    }

    /// The data set.
    pub fn dataset(mut self, dataset: impl Into<Arc<Dataset>>) -> Self {
        let dataset = dataset.into();
        self.config.data.dataset.clone_from(&dataset.name);
        Self { work: Some(Work::Dataset(dataset)), ..self }
    }

    /// A custom task in place of a data set and a model.
    pub fn task(self, task: impl Task + 'static) -> Self {
        Self { work: Some(Work::Custom(Arc::new(task))), ..self }
    }

    /// M, the number of devices.
    pub fn devices(mut self, devices: u64) -> Self {
        self.config.data.devices = devices;
        self
    }

    /// K, the largest number of devices scheduled per round.
    pub fn k(mut self, k: u64) -> Self {
        self.config.schedule.k = k;
        self
    }

    /// T, the number of rounds.
    pub fn rounds(mut self, rounds: u64) -> Self {
        self.config.run.rounds = rounds;
        self
    }

    /// The seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.run.seed = seed;
        self
    }

    /// τ, local steps per round.
    pub fn local_steps(mut self, steps: u64) -> Self {
        self.config.learn.local_steps = steps;
        self
    }

    /// η, the local learning rate.
    pub fn rate(mut self, rate: f64) -> Self {
        self.config.learn.rate = Some(rate);
        self
    }

    /// Any other key, `section.name` or `section.part.name`. [`Builder::build`] returns the error of a key
    /// that does not exist or a value of the wrong type.
    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        let error = self.config.set(key, value).err();
        self.error = self.error.or(error);
        self
    }

    /// The run, after the checks of [`Config::resolve`].
    pub fn build(self) -> Result<Spec, ConfigError> {
        match (self.error, self.work) {
            (Some(error), _) => Err(error),
            (None, Some(work)) => self.config.resolve_on(work, &self.parts),
            (None, None) => self.config.resolve(&self.parts),
        }
    }

    fn choose<T: ?Sized + Kind>(mut self, part: &Chosen<T>) -> Self {
        self.config.own.insert(part.path(), part.table());
        if part.is_custom() || find::<T>(part.name()).is_err() {
            self.parts = self.parts.chosen(part);
        }
        self
    }
}
