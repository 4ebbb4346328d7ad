//! The sections of a configuration. [`KEYS`](super::KEYS) has the meaning of each key.

use crate::compress::{BudgetRule, Feedback};
use crate::data::Scaling;
use crate::learn::model::Init;
use crate::learn::optimizer::StateMode;
use crate::radio::access::slots::SlotKind;
use crate::registry::count::{BatchSize, count};
use crate::server::Clip;
use serde::{Deserialize, Serialize};

/// `[data]`: what is learned from, and who has which part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct DataConfig {
    pub dataset: String,
    pub scaling: Scaling,
    pub partition: String,
    #[serde(deserialize_with = "count")]
    pub devices: u64,
    #[serde(deserialize_with = "count")]
    pub samples_per_device: u64,
}

/// `[learn]`: model, local training, and what the server makes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct LearnConfig {
    pub model: String,
    pub init: Init,
    #[serde(deserialize_with = "count")]
    pub local_steps: u64,
    pub batch: BatchSize,
    pub optimizer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    pub state: StateMode,
    pub aggregate: String,
    pub server_optimizer: String,
    pub server_rate: f64,
}

/// `[radio]`: the uplink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct RadioConfig {
    pub fading: String,
    pub mean_gains: String,
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
    pub policy: String,
    #[serde(deserialize_with = "count")]
    pub k: u64,
}

/// `[compress]`: how an update is squeezed into its bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct CompressConfig {
    pub scheme: String,
    pub feedback: Feedback,
    pub budget: BudgetRule,
}

/// `[adversary]`: devices that do not play by the rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct AdversaryConfig {
    pub share: f64,
    pub kind: String,
}

/// `[defense]`: what the server does about them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
pub struct DefenseConfig {
    pub audit: bool,
    #[serde(deserialize_with = "count")]
    pub strikes: u64,
    pub clip: Clip,
    pub participation_cap: bool,
    #[serde(deserialize_with = "count")]
    pub cap_slack: u64,
}

/// `[run]`: rounds, evaluation interval, seeds.
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
    pub target: f64,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            dataset: "digits".into(),
            scaling: Scaling::Unit,
            partition: "iid".into(),
            devices: 40,
            samples_per_device: 1000,
        }
    }
}

impl Default for LearnConfig {
    fn default() -> Self {
        Self {
            model: "mlp".into(),
            init: Init::GlorotUniform,
            local_steps: 3,
            batch: BatchSize::Count(64),
            optimizer: "adam".into(),
            rate: None,
            state: StateMode::Keep,
            aggregate: "mean".into(),
            server_optimizer: "add".into(),
            server_rate: 1.0,
        }
    }
}

impl Default for RadioConfig {
    fn default() -> Self {
        Self {
            fading: "rayleigh".into(),
            mean_gains: String::new(),
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
        Self { policy: "bn2-c".into(), k: 1 }
    }
}

impl Default for CompressConfig {
    fn default() -> Self {
        Self { scheme: "d-sgd".into(), feedback: Feedback::Off, budget: BudgetRule::Formula }
    }
}

impl Default for AdversaryConfig {
    fn default() -> Self {
        Self { share: 0.0, kind: "inflated-norm".into() }
    }
}

impl Default for DefenseConfig {
    fn default() -> Self {
        Self { audit: false, strikes: 3, clip: Clip::Off, participation_cap: false, cap_slack: 1 }
    }
}

impl Default for RunConfig {
    fn default() -> Self {
        Self { rounds: 500, evaluate_every: 10, seed: 0, seeds: 1, target: 0.8 }
    }
}
