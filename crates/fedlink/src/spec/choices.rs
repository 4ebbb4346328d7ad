//! The parts that a configuration chooses, and the facts that they declare.

use super::Config;
use crate::adversary::Attack;
use crate::aggregate::Aggregator;
use crate::aggregate::optimizer::ServerOptimizer;
use crate::clock::compute::Compute;
use crate::clock::downlink::Downlink;
use crate::clock::jitter::Jitter;
use crate::clock::spread::Spread;
use crate::compress::{Compressor, ErrorFeedback};
use crate::data::partition::Partition;
use crate::learn::correction::Correction;
use crate::learn::model::Model;
use crate::learn::optimizer::Optimizer;
use crate::parts::chosen::absent;
use crate::parts::{Chosen, ConfigError, Kind, Listing, Parts, Scope, find};
use crate::radio::access::Access;
use crate::radio::cell::layout::Layout;
use crate::radio::cell::pathloss::PathLoss;
use crate::radio::fading::Fading;
use crate::radio::power::PowerPolicy;
use crate::radio::rate::Rate;
use crate::schedule::Policy;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use toml::Table;

/// States every kind of part once, in the order of the file.
macro_rules! kinds {
    ($($(#[$doc:meta])* $part:ident: $kind:ty, $($field:ident).+;)*) => {
        /// The parts that a configuration chooses, each as its typed configuration.
        #[derive(Clone)]
        #[non_exhaustive]
        pub struct Choices {
            $($(#[$doc])* pub $part: Chosen<$kind>,)*
        }

        /// The facts of the chosen parts.
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub struct Facts {
            $($(#[$doc])* pub $part: <$kind as Kind>::Facts,)*
        }

        impl Choices {
            /// The parts that `config` chooses among the built-in ones and `parts`.
            pub(super) fn of(config: &Config, parts: &Parts, scope: &Scope) -> Result<Self, ConfigError> {
                Ok(Self { $($part: choose::<$kind>(config, &config.$($field).+, parts, scope)?,)* })
            }

            /// The facts of the chosen parts.
            pub(super) fn facts(&self, scope: &Scope) -> Result<Facts, ConfigError> {
                Ok(Facts { $($part: self.$part.facts(scope)?,)* })
            }

            /// The own tables of the chosen parts by their headings, with every default written out.
            pub(super) fn tables(&self) -> BTreeMap<String, Table> {
                let all = [$((self.$part.path(), self.$part.table()),)*];
                all.into_iter().filter(|(_, table)| !table.is_empty()).collect()
            }

            /// The custom parts among them: names and origins.
            pub(super) fn customs(&self) -> Vec<(String, String)> {
                let all = [$((self.$part.name(), self.$part.origin()),)*];
                let owned =
                    |(name, origin): (&str, Option<&str>)| Some((name.to_owned(), origin?.to_owned()));
                all.into_iter().filter_map(owned).collect()
            }
        }

        /// Every kind of part that a key chooses among, in the order of the file.
        pub fn kinds() -> &'static [Listing] {
            // Every section that is read looks kinds up.
            static KINDS: LazyLock<Vec<Listing>> = LazyLock::new(|| vec![$(Listing::of::<$kind>(),)*]);
            &KINDS
        }

        impl Config {
            /// The names of the chosen parts.
            pub(super) fn chosen_names(&self) -> Vec<&str> {
                vec![$(self.$($field).+.as_str(),)*]
            }
        }
    };
}

kinds! {
    /// `data.partition`.
    partition: dyn Partition, data.partition;
    /// `learn.model`.
    model: dyn Model, learn.model;
    /// `learn.optimizer`.
    optimizer: dyn Optimizer, learn.optimizer;
    /// `learn.correction`.
    correction: dyn Correction, learn.correction;
    /// `learn.aggregate`.
    aggregate: dyn Aggregator, learn.aggregate;
    /// `learn.server_optimizer`.
    server_optimizer: dyn ServerOptimizer, learn.server_optimizer;
    /// `radio.fading`.
    fading: dyn Fading, radio.fading;
    /// `radio.power_policy`.
    power: dyn PowerPolicy, radio.power_policy;
    /// `radio.rate`.
    rate: dyn Rate, radio.rate;
    /// `radio.access`.
    access: dyn Access, radio.access;
    /// `cell.layout`.
    layout: dyn Layout, cell.layout;
    /// `cell.pathloss`.
    pathloss: dyn PathLoss, cell.pathloss;
    /// `clock.compute`.
    compute: dyn Compute, clock.compute;
    /// `clock.spread`.
    spread: dyn Spread, clock.spread;
    /// `clock.jitter`.
    jitter: dyn Jitter, clock.jitter;
    /// `clock.downlink`.
    downlink: dyn Downlink, clock.downlink;
    /// `schedule.policy`.
    policy: dyn Policy, schedule.policy;
    /// `compress.scheme`.
    scheme: dyn Compressor, compress.scheme;
    /// `compress.feedback`.
    feedback: dyn ErrorFeedback, compress.feedback;
    /// `adversary.kind`.
    attack: dyn Attack, adversary.kind;
}

/// The part `name`: one of `parts`, a built-in one, or one that the configuration notes as custom.
fn choose<T: ?Sized + Kind>(
    config: &Config,
    name: &str,
    parts: &Parts,
    scope: &Scope,
) -> Result<Chosen<T>, ConfigError> {
    let own = config.own_table(T::TABLE, name);
    if let Some(custom) = parts.choose::<T>(name, own, scope)? {
        return Ok(custom);
    }
    match (find::<T>(name), config.custom.get(name)) {
        (Ok(entry), _) => {
            let chosen = entry.choose(own, scope)?;
            chosen.fits(scope)?;
            Ok(chosen)
        }
        (Err(_), Some(origin)) => Ok(absent(name, origin, own)),
        (Err(unknown), None) => Err(unknown),
    }
}
