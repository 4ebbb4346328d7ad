//! The cost of a round: seconds by phase, joules by kind.

use crate::base::units::DeviceId;
use serde::{Deserialize, Deserializer, Serialize};
use std::ops::AddAssign;

/// The seconds of a round, phase after phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// θ(t) goes out to the devices that train.
    pub down_s: f64,
    /// The devices that must train before selection train.
    pub train_s: f64,
    /// They report.
    pub report_s: f64,
    /// The scheduled ones send.
    pub up_s: f64,
}

impl Phases {
    /// The duration of the round.
    pub fn total(&self) -> f64 {
        self.down_s + self.train_s + self.report_s + self.up_s
    }
}

impl AddAssign for Phases {
    fn add_assign(&mut self, other: Self) {
        self.down_s += other.down_s;
        self.train_s += other.train_s;
        self.report_s += other.report_s;
        self.up_s += other.up_s;
    }
}

/// Joules by kind, of one device or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// Local training.
    pub compute_j: f64,
    /// Sending reports.
    pub report_j: f64,
    /// Sending updates.
    pub transmit_j: f64,
    /// Receiving θ(t).
    pub receive_j: f64,
    /// Waiting.
    pub idle_j: f64,
}

impl Energy {
    /// The sum over all kinds.
    pub fn total(&self) -> f64 {
        self.compute_j + self.report_j + self.transmit_j + self.receive_j + self.idle_j
    }
}

impl AddAssign for Energy {
    fn add_assign(&mut self, other: Self) {
        self.compute_j += other.compute_j;
        self.report_j += other.report_j;
        self.transmit_j += other.transmit_j;
        self.receive_j += other.receive_j;
        self.idle_j += other.idle_j;
    }
}

/// The cost of a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Cost {
    /// Seconds by phase.
    pub phases: Phases,
    /// Joules of all devices by kind: the sum over `devices`.
    pub energy: Energy,
    /// Joules of each device that spent any, ascending by device.
    #[serde(skip)]
    pub devices: Vec<(DeviceId, Energy)>,
    /// Devices that trained and could not report in time, so that they could not be scheduled.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub unreported: u64,
    /// Devices whose batteries do not last for a training and an upload of this round; none where no device
    /// has a battery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty: Option<u64>,
}

impl Cost {
    /// The cost of a round whose devices spent `devices`.
    pub fn new(phases: Phases, devices: Vec<(DeviceId, Energy)>) -> Self {
        let mut energy = Energy::default();
        devices.iter().for_each(|(_, spent)| energy += *spent);
        Self { phases, energy, devices, unreported: 0, empty: None }
    }

    /// The numbers that the digest of a run takes.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> {
        let Phases { down_s, train_s, report_s, up_s } = self.phases;
        let Energy { compute_j, report_j, transmit_j, receive_j, idle_j } = self.energy;
        [down_s, train_s, report_s, up_s, compute_j, report_j, transmit_j, receive_j, idle_j]
            .map(f64::to_bits)
            .into_iter()
            .chain((self.unreported > 0).then_some(self.unreported))
            .chain(self.empty.filter(|empty| *empty > 0).map(|empty| u64::MAX - empty))
    }
}

/// Costs summed up over the rounds of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CostSums {
    rounds: u64,
    phases: Phases,
    energy: Energy,
    outages: u64,
    late: u64,
}

impl CostSums {
    fn add(&mut self, cost: Option<&Cost>, outages: u64, late: u64) {
        if let Some(cost) = cost {
            self.rounds += 1;
            self.phases += cost.phases;
            self.energy += cost.energy;
        }
        self.outages += outages;
        self.late += late;
    }
}

/// Rounds in which batteries ran empty: after each of them a device can no longer pay a training and an
/// upload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Batteries {
    /// The first round, from 1, in which the battery of any device was empty.
    pub first_empty: Option<u64>,
    /// Those of at least half of the devices.
    pub half_empty: Option<u64>,
    /// Those of all devices.
    pub last_empty: Option<u64>,
    /// Devices whose batteries were empty in the last round.
    pub empty: u64,
}

impl Batteries {
    fn add(&mut self, round: u64, empty: u64, devices: u64) {
        self.empty = empty;
        for (mark, least) in [
            (&mut self.first_empty, 1),
            (&mut self.half_empty, devices.div_ceil(2)),
            (&mut self.last_empty, devices),
        ] {
            if empty >= least {
                mark.get_or_insert(round);
            }
        }
    }
}

/// The batteries of a run as its rounds come in, and the empty ones at each row. It is a part of a checkpoint
/// of its own, so that runs without batteries have the checkpoints that they always had.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct BatteryLedger {
    now: Option<Batteries>,
    rows: Vec<u64>,
}

impl BatteryLedger {
    pub(crate) fn add(&mut self, cost: Option<&Cost>, round: u64, devices: usize) {
        if let Some(empty) = cost.and_then(|cost| cost.empty) {
            self.now.get_or_insert_default().add(round, empty, devices as u64);
        }
    }

    /// The empty batteries of a row that ends with the last round.
    pub(crate) fn close_row(&mut self) -> Option<u64> {
        let empty = self.now?.empty;
        self.rows.push(empty);
        Some(empty)
    }

    pub(crate) fn rows(&self) -> &[u64] {
        &self.rows
    }

    pub(crate) fn now(&self) -> Option<Batteries> {
        self.now
    }

    /// Whether it can be that of a run after `done` rounds with `rows` rows and this number of devices.
    pub(crate) fn is_consistent(&self, done: u64, rows: usize, devices: usize) -> bool {
        let within = |round: Option<u64>| round.is_none_or(|round| (1..=done).contains(&round));
        self.rows.iter().all(|&empty| empty <= devices as u64)
            && self.now.map_or(self.rows.is_empty(), |now| {
                let Batteries { first_empty, half_empty, last_empty, empty } = now;
                let marks = [first_empty, half_empty, last_empty];
                self.rows.len() == rows && marks.into_iter().all(within) && empty <= devices as u64
            })
    }
}

/// Costs of a run as they come in: of all rounds, since the row before, and of each device. Empty as long as
/// no round has a cost and no upload was late or in outage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CostLedger {
    all: CostSums,
    since_row: CostSums,
    /// Joules of each device; empty if nothing was spent.
    devices: Vec<Energy>,
    /// The cost of each row.
    rows: Vec<RowCost>,
    /// Symbols of the reports of all rounds; and of those since the row before, with their number.
    report_symbols: u64,
    reports_since_row: (u64, u64),
    /// Joules so far of the device that has spent the most, at each row. A checkpoint of a version before 0.3
    /// ends before this list: it is then empty.
    #[serde(deserialize_with = "or_empty")]
    worst_device: Vec<f64>,
}

/// A list, or an empty one where the bytes end before it.
#[expect(clippy::unnecessary_wraps, reason = "serde's signature")]
fn or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    Ok(Vec::deserialize(deserializer).unwrap_or_default())
}

/// The costs in a row of `results.csv`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RowCost {
    /// Seconds and joules of all rounds so far; none if nothing has a unit.
    pub total: Option<(f64, f64)>,
    /// Means over the rounds since the row before.
    pub phases: Phases,
    pub energy: Energy,
    /// Counts since the row before.
    pub outages: u64,
    pub late: u64,
    /// Mean over the rounds since the row before.
    pub report_symbols: f64,
    /// Joules so far of the device that has spent the most; none if nothing has a unit. It is saved beside
    /// the rows.
    #[serde(skip)]
    pub worst_device: Option<f64>,
}

impl CostLedger {
    /// Adds the cost of the reports of a round.
    pub(crate) fn add_reports(&mut self, symbols: u64) {
        self.report_symbols = self.report_symbols.saturating_add(symbols);
        let (sum, rounds) = &mut self.reports_since_row;
        (*sum, *rounds) = (sum.saturating_add(symbols), *rounds + 1);
    }

    /// Symbols of the reports of all rounds.
    pub(crate) fn report_symbols(&self) -> u64 {
        self.report_symbols
    }

    pub(crate) fn add(&mut self, cost: Option<&Cost>, (outages, late): (u64, u64), devices: usize) {
        self.all.add(cost, outages, late);
        self.since_row.add(cost, outages, late);
        if let Some(cost) = cost {
            self.devices.resize(devices, Energy::default());
            cost.devices.iter().for_each(|(device, spent)| self.devices[device.index()] += *spent);
        }
    }

    /// Closes the interval since the row before.
    pub(crate) fn close_row(&mut self) -> RowCost {
        let interval = std::mem::take(&mut self.since_row);
        let mut row = self.row_of(&interval);
        let (symbols, rounds) = std::mem::take(&mut self.reports_since_row);
        row.report_symbols = symbols as f64 / rounds.max(1) as f64;
        self.rows.push(row);
        // Rows of a checkpoint without the list have no number.
        self.worst_device.resize(self.rows.len() - 1, f64::NAN);
        self.worst_device.push(row.worst_device.unwrap_or(f64::NAN));
        row
    }

    /// The row of one round by itself.
    pub(crate) fn row_alone(&self, cost: Option<&Cost>, outages: u64, late: u64) -> RowCost {
        let mut alone = CostSums::default();
        alone.add(cost, outages, late);
        self.row_of(&alone)
    }

    fn row_of(&self, interval: &CostSums) -> RowCost {
        let CostSums { rounds, phases, energy, outages, late } = interval;
        let each = 1.0 / (*rounds).max(1) as f64;
        let total = (self.all.rounds > 0).then(|| (self.all.phases.total(), self.all.energy.total()));
        RowCost {
            total,
            phases: Phases {
                down_s: phases.down_s * each,
                train_s: phases.train_s * each,
                report_s: phases.report_s * each,
                up_s: phases.up_s * each,
            },
            energy: Energy {
                compute_j: energy.compute_j * each,
                report_j: energy.report_j * each,
                transmit_j: energy.transmit_j * each,
                receive_j: energy.receive_j * each,
                idle_j: energy.idle_j * each,
            },
            outages: *outages,
            late: *late,
            report_symbols: 0.0,
            worst_device: total.and_then(|_| self.devices.iter().map(Energy::total).reduce(f64::max)),
        }
    }

    /// Joules of each device so far; empty if nothing was spent.
    pub(crate) fn devices(&self) -> &[Energy] {
        &self.devices
    }

    /// The cost of each row.
    pub(crate) fn rows(&self) -> impl Iterator<Item = RowCost> {
        let worst = self.worst_device.iter().map(|joules| Some(*joules).filter(|joules| !joules.is_nan()));
        let worst = worst.chain(std::iter::repeat(None));
        self.rows.iter().zip(worst).map(|(row, worst_device)| RowCost { worst_device, ..*row })
    }

    /// Seconds by phase and joules by kind of all rounds; none if nothing has a unit.
    pub(crate) fn totals(&self) -> Option<(Phases, Energy)> {
        (self.all.rounds > 0).then_some((self.all.phases, self.all.energy))
    }

    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.all.outages, self.all.late)
    }

    /// Whether it is empty but for values that a run without units has too.
    pub(crate) fn is_empty(&self) -> bool {
        let CostSums { rounds, outages, late, .. } = self.all;
        rounds == 0 && outages == 0 && late == 0 && self.report_symbols == 0
    }

    /// Whether it can be that of a run after `done` rounds with `rows` rows and this number of devices.
    pub(crate) fn is_consistent(&self, done: u64, rows: usize, devices: usize) -> bool {
        let counts = [self.all.outages, self.all.late, self.since_row.outages, self.since_row.late];
        self.all.rounds <= done
            && self.since_row.rounds <= done
            && self.reports_since_row.1 <= done
            && counts.iter().all(|&count| count <= crate::base::state::MAX_COUNT)
            && (self.rows.len() == rows || self.is_empty())
            && self.worst_device.len() <= self.rows.len()
            && [0, devices].contains(&self.devices.len())
    }
}
