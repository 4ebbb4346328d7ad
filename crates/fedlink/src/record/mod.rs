//! The record of a run: one row per round, declared once as columns.

mod columns;
mod cost;
mod details;
mod history;
mod ledger;

pub use crate::base::hex::hexadecimal;
pub use columns::{Cell, CellKind, Column, ROW_COLUMNS, TRANSMISSION_COLUMNS};
pub(crate) use cost::{BatteryLedger, CostLedger, RowCost};
pub use cost::{Cost, Energy, Phases};
pub use details::{DECISION_COLUMNS, Decision, Details, Quantity};
pub use history::History;
pub(crate) use ledger::Ledger;

use crate::base::units::{Airtime, Bits, DeviceId, Power, Symbols};
use crate::learn::task::Evaluation;
use serde::{Deserialize, Serialize};

/// The server's treatment of an upload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Arrival {
    /// It was added up.
    #[default]
    Used,
    /// Silence, because the budget held no update.
    Silent,
    /// It could not be decoded; the device counts as silent.
    Undecodable,
    /// It contradicted the device's report and was dropped (`defense.audit`).
    Flagged,
    /// It did not arrive, and does not count.
    Lost,
    /// The channel did not carry it, or a packet was lost; it adds nothing and counts.
    Outage,
    /// It came after the deadline; it adds nothing and counts.
    Late,
    /// There was none: the device was not scheduled.
    NotScheduled,
}

impl Arrival {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Silent => "silent",
            Self::Undecodable => "undecodable",
            Self::Flagged => "flagged",
            Self::Lost => "lost",
            Self::Outage => "outage",
            Self::Late => "late",
            Self::NotScheduled => "not-scheduled",
        }
    }
}

/// The transmission of one scheduled device in a round: a row of `rounds.csv`. [`TRANSMISSION_COLUMNS`] has
/// the meaning of each field.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "TRANSMISSION_COLUMNS documents every column")]
#[non_exhaustive]
pub struct Transmission {
    pub round: u64,
    pub device: DeviceId,
    pub report: f32,
    pub gain: f64,
    pub capacity: f64,
    pub bit_weight: f64,
    pub symbols: Symbols,
    pub power: Power,
    pub airtime: Airtime,
    pub budget: Bits,
    pub bits: Bits,
    pub q: usize,
    pub entries: usize,
    pub weight: Option<f64>,
    pub wire_bits: Option<u64>,
    pub arrival: Arrival,
    #[serde(default)]
    pub report_symbols: u64,
}

/// The training of a round in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Training {
    /// Devices that trained.
    pub devices: usize,
    /// Mean over them of the mean mini-batch loss, weighted as `learn.aggregate` specifies;
    /// 0 if no device trained.
    pub loss: f64,
}

impl Training {
    /// `devices` trained, with this mean loss.
    pub fn new(devices: usize, loss: f64) -> Self {
        Self { devices, loss }
    }

    /// The training of devices with these losses; each loss counts by the device's number of samples, or as
    /// much as any other if there is none.
    pub fn of(losses: impl Iterator<Item = (f64, Option<usize>)>) -> Self {
        let (mut devices, mut sum, mut total) = (0, 0.0, 0);
        for (loss, samples) in losses {
            devices += 1;
            total += samples.unwrap_or(1);
            sum += samples.map_or(loss, |samples| loss * samples as f64);
        }
        Self { devices, loss: if devices == 0 { 0.0 } else { sum / total as f64 } }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// `round 3: 4 scheduled, 40 trained, loss 0.512, accuracy 81.25 %`.
impl std::fmt::Display for RoundRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Training { devices, loss } = self.training;
        write!(
            f,
            "round {}: {} scheduled, {devices} trained, loss {loss:.3}",
            self.round,
            self.transmissions.len()
        )?;
        match self.evaluation.as_ref().map(|evaluation| evaluation.accuracy) {
            Some(accuracy) => write!(f, ", accuracy {:.2} %", 100.0 * accuracy),
            None => Ok(()),
        }
    }
}

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RoundRecord {
    /// Counted from 1: the state after this number of rounds.
    pub round: u64,
    /// The scheduled devices, in the order of the policy.
    pub transmissions: Vec<Transmission>,
    /// The devices that were not scheduled, ascending, with their links and reports; empty unless they are
    /// [logged](crate::system::simulation::Simulation::log_all_devices), or the policy
    /// [observes](crate::schedule::Policy::observes_all) them. No digest depends on them.
    #[serde(skip)]
    pub others: Vec<Transmission>,
    /// The numbers that the policy decided by, and the channel of every device in detail; empty unless all
    /// devices are [logged](crate::system::simulation::Simulation::log_all_devices). No digest depends on
    /// them.
    #[serde(skip)]
    pub details: Details,
    /// The training of the round.
    pub training: Training,
    /// Symbols that the reports of the candidates took, all together; 0: reports are free.
    #[serde(skip_serializing_if = "is_zero")]
    pub report_symbols: u64,
    /// Seconds and joules, where the radio has units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The evaluation of the model, in the rounds that are evaluated.
    pub evaluation: Option<Evaluation>,
}

/// One or more rounds in numbers: a row of `results.csv` (an evaluated round with what has happened since the
/// evaluation before it), or one round by itself. [`ROW_COLUMNS`] has the meaning of each field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "ROW_COLUMNS documents every column")]
#[non_exhaustive]
pub struct Row {
    pub round: u64,
    pub test_accuracy: f64,
    pub test_loss: f64,
    pub train_loss: f64,
    pub trained: u64,
    pub bits: f64,
    pub total_bits: f64,
    pub mean_q: f64,
    pub silent_devices: u64,
    pub wire_bits: Option<f64>,
    pub undecodable: u64,
    pub flagged: u64,
    pub lost: u64,
    #[serde(default)]
    pub outages: u64,
    #[serde(default)]
    pub late: u64,
    #[serde(default)]
    pub report_symbols: f64,
    #[serde(default)]
    pub total_seconds: Option<f64>,
    #[serde(default)]
    pub down_s: Option<f64>,
    #[serde(default)]
    pub train_s: Option<f64>,
    #[serde(default)]
    pub report_s: Option<f64>,
    #[serde(default)]
    pub up_s: Option<f64>,
    #[serde(default)]
    pub total_joules: Option<f64>,
    #[serde(default)]
    pub compute_j: Option<f64>,
    #[serde(default)]
    pub report_j: Option<f64>,
    #[serde(default)]
    pub transmit_j: Option<f64>,
    #[serde(default)]
    pub receive_j: Option<f64>,
    #[serde(default)]
    pub idle_j: Option<f64>,
    #[serde(default)]
    pub worst_device_joules: Option<f64>,
    #[serde(default)]
    pub empty: Option<u64>,
    /// Further metrics of the task, by name.
    pub metrics: Vec<(String, f64)>,
}

/// The privacy guarantee of a run for one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Guarantee {
    /// ε at `delta`; none if there is no guarantee.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// The same by a tighter conversion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tight_epsilon: Option<f64>,
    /// δ.
    pub delta: f64,
    /// The order of the Rényi divergence that gives ε.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<u32>,
    /// z.
    pub noise: f64,
    /// S.
    pub clip: f64,
    /// q where sampling amplifies privacy; none where every transmission counts in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The number of compositions in ε: the rounds where sampling amplifies, otherwise the transmissions of
    /// the busiest device.
    pub compositions: u64,
    /// The limits of the number, one sentence each.
    pub caveats: Vec<String>,
}

/// A run in numbers, ready to be printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Rounds done.
    pub rounds: u64,
    /// Accuracy at the last evaluation; none if there was no evaluation.
    pub final_accuracy: Option<f64>,
    /// The best accuracy at any evaluation.
    pub best_accuracy: Option<f64>,
    /// Mean loss on the test set at the last evaluation.
    pub final_loss: Option<f64>,
    /// `run.target`, the accuracy of `rounds_to_target`.
    #[serde(default)]
    pub target: f64,
    /// The first evaluated round with an accuracy of at least `target`.
    #[serde(default)]
    pub rounds_to_target: Option<u64>,
    /// Mean bits sent in a round.
    pub bits_per_round: f64,
    /// Mean q over all transmissions.
    pub mean_q: f64,
    /// Transmissions whose budget held nothing.
    pub silent_transmissions: u64,
    /// Bits sent as a share of the bits that were granted; none if nothing was granted.
    #[serde(default)]
    pub budget_used: Option<f64>,
    /// Share of the transmissions in which the scheme was at its highest level, so that it could not have
    /// used a larger budget; none if the scheme does not say which level that is, or if nothing was sent.
    #[serde(default)]
    pub at_highest_level: Option<f64>,
    /// The largest of `average_power`, to be compared with `radio.power`.
    pub worst_average_power: Power,
    /// The device that has it, the first of equals.
    pub worst_device: DeviceId,
    /// Average transmit power of each device over the rounds done, as the paper's power constraint counts it:
    /// P = M·P̄/K for the whole of every round in which the device is scheduled, however few of the n symbols
    /// it sends, and 0 for the others. So it is P̄ where a device is scheduled in K/M of the rounds. The
    /// power that it radiates is lower by its share of the symbols.
    #[serde(default)]
    pub average_power: Vec<f64>,
    /// The number of rounds in which each device was scheduled.
    pub scheduled: Vec<u32>,
    /// Mean bits of the payloads sent in a round; none if nothing is encoded.
    pub wire_bits_per_round: Option<f64>,
    /// Uploads that could not be decoded.
    pub undecodable_transmissions: u64,
    /// Uploads that the audit dropped.
    pub flagged_transmissions: u64,
    /// Uploads that the channel did not carry.
    #[serde(default)]
    pub outages: u64,
    /// Trainings and uploads that ended after the deadline.
    #[serde(default)]
    pub late: u64,
    /// Mean symbols that the reports of a round took; 0: reports are free.
    #[serde(default)]
    pub report_symbols_per_round: f64,
    /// Seconds of all rounds by phase; none where the radio has no units.
    #[serde(default)]
    pub phases: Option<Phases>,
    /// Joules of all devices by kind; none where the radio has no units.
    #[serde(default)]
    pub energy: Option<Energy>,
    /// Joules of each device by kind; empty where the radio has no units.
    #[serde(default)]
    pub device_energy: Vec<Energy>,
    /// The first round, from 1, in which the battery of any device did not last for a training and an upload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_empty: Option<u64>,
    /// The first round in which those of at least half of the devices did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_empty: Option<u64>,
    /// The first round in which that of no device did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_empty: Option<u64>,
    /// Devices whose batteries did not last in the last round; none where no device has a battery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<u64>,
    /// Accuracy of each device at the last evaluation, from its mix of classes; none for one that has no
    /// class of the test set. Empty without `run.fairness`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_accuracy: Vec<Option<f64>>,
    /// The privacy guarantee for one device; none without `privacy.noise`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Guarantee>,
    /// Devices that the audit has excluded.
    pub excluded: Vec<DeviceId>,
    /// Warnings about the run, as whole sentences.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// SHA-256 over every record and the model, in hexadecimal: equal for equal runs.
    pub digest: String,
}

impl RoundRecord {
    /// A round in which these devices sent something.
    pub(crate) fn of_devices(round: u64, devices: &[DeviceId]) -> Self {
        let sent = |&device: &DeviceId| Transmission {
            round,
            device,
            report: 0.0,
            gain: 1.0,
            capacity: 1.0,
            bit_weight: 1.0,
            symbols: Symbols(1.0),
            power: Power(1.0),
            airtime: Airtime(1.0),
            budget: Bits(1.0),
            bits: Bits(1.0),
            q: 1,
            entries: 1,
            weight: None,
            wire_bits: None,
            arrival: Arrival::Used,
            report_symbols: 0,
        };
        Self {
            round,
            transmissions: devices.iter().map(sent).collect(),
            others: Vec::new(),
            details: Details::default(),
            training: Training::default(),
            report_symbols: 0,
            cost: None,
            evaluation: None,
        }
    }
}

impl Outcome {
    /// Seconds of all rounds; none where the radio has no units.
    pub fn seconds(&self) -> Option<f64> {
        self.phases.map(|phases| phases.total())
    }

    /// Devices that were ever scheduled.
    pub fn heard(&self) -> usize {
        self.scheduled.iter().filter(|count| **count > 0).count()
    }

    /// Joules of all devices; none where the radio has no units.
    pub fn joules(&self) -> Option<f64> {
        self.energy.map(|energy| energy.total())
    }

    /// That devices have dropped out because their batteries are empty, if any have.
    pub(crate) fn battery_warning(&self) -> Option<String> {
        let Self { half_empty, last_empty, .. } = self;
        let (first, empty) = (self.first_empty?, self.empty?);
        let devices = self.scheduled.len();
        let half = half_empty.map_or_else(String::new, |round| format!(", half of them in round {round}"));
        let last = last_empty.map_or_else(String::new, |round| format!(", all in round {round}"));
        Some(format!(
            "batteries ran empty: the first in round {first}{half}{last}; {empty} of {devices} devices can \
             no longer pay a training and an upload in round {}",
            self.rounds
        ))
    }

    /// The joules of the device that spent the most; none where the radio has no units.
    pub fn worst_device_joules(&self) -> Option<f64> {
        self.device_energy.iter().map(Energy::total).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests;
