//! The sections of a configuration. [`KEYS`](super::KEYS) has the meaning of each key.

use crate::compress::{BudgetRule, LevelRule};
use crate::data::Scaling;
use crate::learn::model::Init;
use crate::learn::optimizer::StateMode;
use crate::learn::rate::RateSchedule;
use crate::privacy::NoiseAt;
use crate::radio::access::slots::SlotKind;
use crate::radio::cell::pathloss::LineOfSight;
use crate::radio::{Combining, PayloadMode, Snrs};
use crate::registry::count::{BatchSize, count, optional};
use crate::server::Clip;
use serde::{Deserialize, Serialize};

/// `[data]`: what is learned from, and who has which part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
#[non_exhaustive]
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
#[non_exhaustive]
pub struct LearnConfig {
    pub model: String,
    pub init: Init,
    #[serde(deserialize_with = "count")]
    pub local_steps: u64,
    #[serde(deserialize_with = "optional", skip_serializing_if = "Option::is_none")]
    pub local_steps_min: Option<u64>,
    pub batch: BatchSize,
    pub optimizer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    pub rate_schedule: RateSchedule,
    pub weight_decay: f64,
    pub gradient_clip: f64,
    pub state: StateMode,
    pub correction: String,
    pub aggregate: String,
    pub server_optimizer: String,
    pub server_rate: f64,
    pub server_rate_schedule: RateSchedule,
}

/// `[radio]`: the uplink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
#[non_exhaustive]
pub struct RadioConfig {
    pub fading: String,
    #[serde(deserialize_with = "count")]
    pub antennas: u64,
    pub correlation: f64,
    pub speed_kmh: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_s: Option<f64>,
    pub profile: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_spread_s: Option<f64>,
    pub mean_gains: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snr_db: Option<Snrs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_sizes: Option<Vec<u64>>,
    pub csi_error: f64,
    pub csi_delay_s: f64,
    pub backoff_db: f64,
    pub mode: PayloadMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_bits: Option<f64>,
    #[serde(deserialize_with = "count")]
    pub symbols: u64,
    pub power: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_max: Option<f64>,
    pub noise: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_hz: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_dbm: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_max_dbm: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_dbm_hz: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_figure_db: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interference_w: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carrier_hz: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_tx_dbi: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_rx_dbi: Option<f64>,
    pub power_policy: String,
    pub rate: String,
    #[serde(deserialize_with = "count")]
    pub attempts: u64,
    pub combining: Combining,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_threshold_db: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_floor: Option<f64>,
    pub access: String,
    pub slots: SlotKind,
    pub wire: bool,
}

/// `[cell]`: where the devices are, and what their mean gains are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
#[non_exhaustive]
pub struct CellConfig {
    pub layout: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub radius_m: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_m: Option<f64>,
    pub pathloss: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height_bs_m: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height_ut_m: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub los: Option<LineOfSight>,
    pub extrapolate: bool,
    pub shadowing_db: f64,
    pub correlation_m: f64,
    pub drift: bool,
}

/// `[clock]`: what a round takes in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
#[non_exhaustive]
pub struct ClockConfig {
    pub compute: String,
    pub spread: String,
    pub jitter: String,
    pub downlink: String,
    pub report_bits: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_efficiency: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<f64>,
    pub pipeline: bool,
}

/// `[energy]`: what a device draws from its battery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
#[non_exhaustive]
pub struct EnergyConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_w: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kappa: Option<f64>,
    pub circuit_w: f64,
    pub pa_efficiency: f64,
    pub receive_w: f64,
    pub idle_w: f64,
    pub battery_j: f64,
}

/// `[schedule]`: who sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
#[non_exhaustive]
pub struct ScheduleConfig {
    pub policy: String,
    #[serde(deserialize_with = "count")]
    pub k: u64,
    pub decay: f64,
    #[serde(deserialize_with = "count")]
    pub k_min: u64,
    #[serde(deserialize_with = "count")]
    pub report_bits: u64,
}

/// `[compress]`: how an update is squeezed into its bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
#[non_exhaustive]
pub struct CompressConfig {
    pub scheme: String,
    pub feedback: String,
    pub budget: BudgetRule,
    pub level: LevelRule,
}

/// `[adversary]`: devices that do not play by the rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
#[non_exhaustive]
pub struct AdversaryConfig {
    pub share: f64,
    pub kind: String,
}

/// `[defense]`: what the server does about them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
#[non_exhaustive]
pub struct DefenseConfig {
    pub audit: bool,
    #[serde(deserialize_with = "count")]
    pub strikes: u64,
    pub clip: Clip,
    pub participation_cap: bool,
    #[serde(deserialize_with = "count")]
    pub cap_slack: u64,
}

/// `[privacy]`: noise on the sum of the updates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
#[non_exhaustive]
pub struct PrivacyConfig {
    pub noise: f64,
    pub delta: f64,
    pub at: NoiseAt,
}

impl Default for PrivacyConfig {
    fn default() -> Self {
        Self { noise: 0.0, delta: 1e-5, at: NoiseAt::Server }
    }
}

/// `[run]`: rounds, evaluation interval, seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "KEYS documents every key")]
#[non_exhaustive]
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
    pub fairness: bool,
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
            local_steps_min: None,
            batch: BatchSize::Count(64),
            optimizer: "adam".into(),
            rate: None,
            rate_schedule: RateSchedule::default(),
            weight_decay: 0.0,
            gradient_clip: 0.0,
            state: StateMode::Keep,
            correction: "none".into(),
            aggregate: "mean".into(),
            server_optimizer: "add".into(),
            server_rate: 1.0,
            server_rate_schedule: RateSchedule::default(),
        }
    }
}

impl Default for RadioConfig {
    fn default() -> Self {
        Self {
            fading: "rayleigh".into(),
            antennas: 1,
            correlation: 0.0,
            speed_kmh: 0.0,
            period_s: None,
            profile: "flat".into(),
            delay_spread_s: None,
            mean_gains: String::new(),
            snr_db: None,
            group_sizes: None,
            csi_error: 0.0,
            csi_delay_s: 0.0,
            backoff_db: 0.0,
            mode: PayloadMode::Airtime,
            payload_bits: None,
            symbols: 5000,
            power: 1.0,
            power_max: None,
            noise: 1.0,
            bandwidth_hz: None,
            uplink_s: None,
            power_dbm: None,
            power_max_dbm: None,
            noise_dbm_hz: None,
            noise_figure_db: None,
            interference_w: None,
            overhead: None,
            carrier_hz: None,
            gain_tx_dbi: None,
            gain_rx_dbi: None,
            power_policy: "fair-share".into(),
            rate: "shannon".into(),
            attempts: 1,
            combining: Combining::None,
            loss_threshold_db: None,
            report_floor: None,
            access: "tdma".into(),
            slots: SlotKind::Real,
            wire: false,
        }
    }
}

impl Default for CellConfig {
    fn default() -> Self {
        Self {
            layout: "none".into(),
            radius_m: None,
            min_m: None,
            pathloss: "none".into(),
            height_bs_m: None,
            height_ut_m: None,
            los: None,
            extrapolate: false,
            shadowing_db: 0.0,
            correlation_m: 0.0,
            drift: false,
        }
    }
}

impl Default for ClockConfig {
    fn default() -> Self {
        Self {
            compute: "none".into(),
            spread: "equal".into(),
            jitter: "steady".into(),
            downlink: "ideal".into(),
            report_bits: 0.0,
            report_efficiency: None,
            deadline_s: None,
            pipeline: false,
        }
    }
}

impl Default for EnergyConfig {
    fn default() -> Self {
        Self {
            compute_w: None,
            kappa: None,
            circuit_w: 0.0,
            pa_efficiency: 1.0,
            receive_w: 0.0,
            idle_w: 0.0,
            battery_j: 0.0,
        }
    }
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self { policy: "bn2-c".into(), k: 1, decay: 0.0, k_min: 1, report_bits: 0 }
    }
}

impl Default for CompressConfig {
    fn default() -> Self {
        Self {
            scheme: "d-sgd".into(),
            feedback: "off".into(),
            budget: BudgetRule::Formula,
            level: LevelRule::Largest,
        }
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
        Self { rounds: 500, evaluate_every: 10, seed: 0, seeds: 1, target: 0.8, fairness: false }
    }
}
