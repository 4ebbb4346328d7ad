//! The whole experiment as one validated value.

pub mod count;
mod keys;
pub mod position;
mod validate;

pub use count::BatchSize;
pub use keys::{KEYS, Key, commented_toml, nearest};
pub(crate) use validate::validate_dim;

use crate::adversary::{AttackKind, HostileReport, HostileUpload};
use crate::compress::{Budget, Feedback, SchemeKind};
use crate::data::Scaling;
use crate::data::partition::{PartitionKind, Sharing, Sizes};
use crate::defence::{Clip, Combine};
use crate::learn::aggregate::Aggregate;
use crate::learn::model::{Init, ModelKind};
use crate::learn::optimizer::{OptimizerKind, StateMode};
use crate::radio::channel::ChannelKind;
use crate::radio::slots::SlotKind;
use crate::schedule::policy::PolicyKind;
use count::count;
use serde::{Deserialize, Serialize};

/// One run. Every field is a key `section.name` of the configuration file; [`KEYS`] says what each means.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the sections are documented by their types")]
pub struct Config {
    pub data: DataConfig,
    pub learn: LearnConfig,
    pub radio: RadioConfig,
    pub schedule: ScheduleConfig,
    pub compress: CompressConfig,
    pub adversary: AdversaryConfig,
    pub defence: DefenceConfig,
    pub run: RunConfig,
}

/// `[data]`: what is learnt from, and who has which part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct DataConfig {
    pub dataset: String,
    pub scaling: Scaling,
    pub partition: PartitionKind,
    #[serde(deserialize_with = "count")]
    pub devices: u64,
    #[serde(deserialize_with = "count")]
    pub samples_per_device: u64,
    #[serde(deserialize_with = "count")]
    pub classes_per_device: u64,
    pub alpha: f64,
    pub sizes: Sizes,
    #[serde(deserialize_with = "count")]
    pub shards_per_device: u64,
    pub size_spread: f64,
    pub sharing: Option<Sharing>,
}

/// `[learn]`: model and local training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct LearnConfig {
    pub model: ModelKind,
    pub hidden: Vec<usize>,
    pub init: Init,
    #[serde(deserialize_with = "count")]
    pub local_steps: u64,
    pub batch: BatchSize,
    pub optimizer: OptimizerKind,
    pub rate: Option<f64>,
    pub state: StateMode,
    pub momentum: f64,
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
    pub initial_accumulator: f64,
    pub aggregate: Aggregate,
}

/// `[radio]`: the uplink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct RadioConfig {
    pub channel: ChannelKind,
    #[serde(deserialize_with = "count")]
    pub symbols: u64,
    pub power: f64,
    pub noise: f64,
    pub slots: SlotKind,
    pub wire: bool,
}

/// `[schedule]`: who sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct ScheduleConfig {
    pub policy: PolicyKind,
    #[serde(deserialize_with = "count")]
    pub k: u64,
    #[serde(deserialize_with = "count::optional", skip_serializing_if = "Option::is_none")]
    pub kc: Option<u64>,
}

/// `[compress]`: how an update is squeezed into its bits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct CompressConfig {
    pub scheme: SchemeKind,
    pub feedback: Feedback,
    pub budget: Budget,
}

/// `[adversary]`: devices that do not play by the rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct AdversaryConfig {
    pub share: f64,
    pub kind: AttackKind,
    pub report: HostileReport,
    pub amount: f64,
    pub upload: HostileUpload,
}

/// `[defence]`: what the server does about them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct DefenceConfig {
    pub audit: bool,
    #[serde(deserialize_with = "count")]
    pub strikes: u64,
    pub clip: Clip,
    pub aggregate: Combine,
    pub trim: f64,
    pub participation_cap: bool,
    #[serde(deserialize_with = "count")]
    pub cap_slack: u64,
}

/// `[run]`: how long, how often looked at, and by which dice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct RunConfig {
    #[serde(deserialize_with = "count")]
    pub rounds: u64,
    #[serde(deserialize_with = "count")]
    pub evaluate_every: u64,
    #[serde(deserialize_with = "count")]
    pub seed: u64,
    #[serde(deserialize_with = "count")]
    pub seeds: u64,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            dataset: "digits".into(),
            scaling: Scaling::Unit,
            partition: PartitionKind::Iid,
            devices: 40,
            samples_per_device: 1000,
            classes_per_device: 2,
            alpha: 0.5,
            sizes: Sizes::Equal,
            shards_per_device: 2,
            size_spread: 0.5,
            sharing: None,
        }
    }
}

impl Default for LearnConfig {
    fn default() -> Self {
        Self {
            model: ModelKind::Mlp,
            hidden: vec![256],
            init: Init::GlorotUniform,
            local_steps: 3,
            batch: BatchSize::Count(64),
            optimizer: OptimizerKind::Adam,
            rate: None,
            state: StateMode::Keep,
            momentum: 0.0,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-7,
            initial_accumulator: 0.1,
            aggregate: Aggregate::Mean,
        }
    }
}

impl Default for RadioConfig {
    fn default() -> Self {
        Self {
            channel: ChannelKind::Rayleigh,
            symbols: 5000,
            power: 1.0,
            noise: 1.0,
            slots: SlotKind::Real,
            wire: false,
        }
    }
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self { policy: PolicyKind::Bn2C, k: 1, kc: None }
    }
}

impl Default for AdversaryConfig {
    fn default() -> Self {
        Self {
            share: 0.0,
            kind: AttackKind::InflatedNorm,
            report: HostileReport::Times,
            amount: 1000.0,
            upload: HostileUpload::Honest,
        }
    }
}

impl Default for DefenceConfig {
    fn default() -> Self {
        Self {
            audit: false,
            strikes: 3,
            clip: Clip::Off,
            aggregate: Combine::Mean,
            trim: 0.1,
            participation_cap: false,
            cap_slack: 1,
        }
    }
}

impl Default for RunConfig {
    fn default() -> Self {
        Self { rounds: 500, evaluate_every: 10, seed: 0, seeds: 1 }
    }
}

impl DataConfig {
    /// `data.sharing`, or what the partition does anyway.
    pub fn sharing(&self) -> Sharing {
        self.sharing.unwrap_or(self.partition.sharings()[0])
    }
}

impl Config {
    /// η: `learn.rate`, or the default of the optimiser.
    pub fn rate(&self) -> f64 {
        self.learn.rate.unwrap_or(match self.learn.optimizer {
            OptimizerKind::Sgd => 0.1,
            OptimizerKind::Adam => 1e-3,
            OptimizerKind::Adagrad => 0.2,
        })
    }

    /// Kc: `schedule.kc`, or max(10, 2K) kept within M, which is the paper's choice at K = 1 and K = 10.
    pub fn kc(&self) -> u64 {
        let usual = self.schedule.k.saturating_mul(2).max(10);
        self.schedule.kc.unwrap_or(usual.min(self.data.devices))
    }

    /// The configuration with every value that was left to a rule written out.
    #[must_use]
    pub fn resolved(&self) -> Self {
        let mut config = self.clone();
        config.data.sharing = Some(self.data.sharing());
        config.learn.rate = Some(self.rate());
        config.schedule.kc = Some(self.kc());
        config
    }

    /// Parses TOML text into a valid configuration. Keys that are not there have their defaults.
    ///
    /// ```
    /// let config = fedlink::config::Config::from_toml("[schedule]\nk = 5").unwrap();
    /// assert_eq!((config.schedule.k, config.data.devices), (5, 40));
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        const NAME: &str = "config";
        let config: Self =
            toml::from_str(text).map_err(|error| position::parse_error(NAME, text, &error, &[]))?;
        config.validate().map_err(|error| position::value_error(NAME, text, error, &[]))?;
        Ok(config)
    }
}

/// A configuration that cannot be run: which key, what is wrong, what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ConfigError {
    /// The key at fault, as `section.name`.
    pub key: String,
    /// What is wrong with it and which values are allowed.
    pub problem: String,
}

impl ConfigError {
    /// An error of `key`.
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }
}
