//! Records summed up as they come, and their digest.

use super::{
    Arrival, BatteryLedger, CostLedger, Outcome, RoundRecord, Row, RowCost, TRANSMISSION_COLUMNS, hexadecimal,
};
use crate::base::state::MAX_COUNT;
use crate::base::units::{DeviceId, Power};
use crate::learn::fairness::WORST_DEVICE;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Sums over rounds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Sums {
    rounds: u64,
    /// Rounds in which at least one device trained.
    trained: u64,
    train_loss: f64,
    bits: f64,
    wire_bits: Option<u64>,
    q: u64,
    transmissions: u64,
    silent: u64,
    undecodable: u64,
    flagged: u64,
    lost: u64,
    /// Local trainings.
    trainings: u64,
    /// Bits granted.
    budget: f64,
    /// Transmissions at the scheme's highest level.
    highest: u64,
}

impl Sums {
    fn add(&mut self, record: &RoundRecord, highest_level: Option<u64>) {
        self.rounds += 1;
        self.trained += u64::from(record.training.devices > 0);
        self.trainings += record.training.devices as u64;
        self.train_loss += record.training.loss;
        for sent in &record.transmissions {
            self.bits += sent.bits.0;
            self.budget += sent.budget.0;
            self.highest += u64::from(Some(sent.q as u64) == highest_level);
            self.q += sent.q as u64;
            self.transmissions += 1;
            self.silent += u64::from(sent.q == 0);
            self.undecodable += u64::from(sent.arrival == Arrival::Undecodable);
            self.flagged += u64::from(sent.arrival == Arrival::Flagged);
            self.lost += u64::from(sent.arrival == Arrival::Lost);
            if let Some(bits) = sent.wire_bits {
                self.wire_bits = Some(self.wire_bits.unwrap_or(0) + bits);
            }
        }
    }

    /// Whether no count is near its limit.
    fn are_countable(&self) -> bool {
        let Self { rounds, trained, wire_bits, q, transmissions, .. } = *self;
        let Self { silent, undecodable, flagged, lost, trainings, highest, .. } = *self;
        let counts =
            [rounds, trained, q, transmissions, silent, undecodable, flagged, lost, trainings, highest];
        counts.into_iter().chain(wire_bits).all(|count| count <= MAX_COUNT)
    }

    fn wire_bits_per_round(&self) -> Option<f64> {
        self.wire_bits.map(|bits| ratio(bits, self.rounds))
    }

    /// The rounds summed up as a row that ends with `record`, `total_bits` having been sent in
    /// all rounds so far.
    fn row(&self, record: &RoundRecord, total_bits: f64) -> Row {
        let evaluation = record.evaluation.as_ref();
        Row {
            round: record.round,
            test_accuracy: evaluation.map_or(f64::NAN, |evaluation| evaluation.accuracy),
            test_loss: evaluation.map_or(f64::NAN, |evaluation| evaluation.loss),
            train_loss: self.train_loss / self.trained.max(1) as f64,
            trained: self.trainings,
            bits: self.bits / self.rounds as f64,
            total_bits,
            mean_q: ratio(self.q, self.transmissions),
            silent_devices: self.silent,
            wire_bits: self.wire_bits_per_round(),
            undecodable: self.undecodable,
            flagged: self.flagged,
            lost: self.lost,
            metrics: evaluation.map_or_else(Vec::new, |evaluation| evaluation.metrics.clone()),
            ..Row::default()
        }
    }
}

/// The outages and the late devices of a round.
fn undelivered(record: &RoundRecord) -> (u64, u64) {
    let count = |arrival| record.transmissions.iter().filter(|sent| sent.arrival == arrival).count() as u64;
    let unreported = record.cost.as_ref().map_or(0, |cost| cost.unreported);
    (count(Arrival::Outage), count(Arrival::Late) + unreported)
}

impl Row {
    /// The same row with its costs.
    fn with_cost(mut self, cost: &RowCost) -> Self {
        (self.outages, self.late) = (cost.outages, cost.late);
        self.report_symbols = cost.report_symbols;
        let Some((seconds, joules)) = cost.total else { return self };
        let (phases, energy) = (&cost.phases, &cost.energy);
        Self {
            total_seconds: Some(seconds),
            down_s: Some(phases.down_s),
            train_s: Some(phases.train_s),
            report_s: Some(phases.report_s),
            up_s: Some(phases.up_s),
            total_joules: Some(joules),
            compute_j: Some(energy.compute_j),
            report_j: Some(energy.report_j),
            transmit_j: Some(energy.transmit_j),
            receive_j: Some(energy.receive_j),
            idle_j: Some(energy.idle_j),
            worst_device_joules: cost.worst_device,
            ..self
        }
    }
}

/// Rows as a checkpoint holds them: without their costs, which are a part of their own, so that a run without
/// units has the checkpoints that it always had.
mod plain_rows {
    use super::Row;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// The fields of a row that every run has, in the order of the layout.
    type Plain =
        (u64, f64, f64, f64, u64, f64, f64, f64, u64, Option<f64>, u64, u64, u64, Vec<(String, f64)>);

    pub(super) fn serialize<S: Serializer>(rows: &[Row], serializer: S) -> Result<S::Ok, S::Error> {
        let plain = |row: &Row| -> Plain {
            let row = row.clone();
            (
                row.round,
                row.test_accuracy,
                row.test_loss,
                row.train_loss,
                row.trained,
                row.bits,
                row.total_bits,
                row.mean_q,
                row.silent_devices,
                row.wire_bits,
                row.undecodable,
                row.flagged,
                row.lost,
                row.metrics,
            )
        };
        rows.iter().map(plain).collect::<Vec<Plain>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Row>, D::Error> {
        let row = |plain: Plain| Row {
            round: plain.0,
            test_accuracy: plain.1,
            test_loss: plain.2,
            train_loss: plain.3,
            trained: plain.4,
            bits: plain.5,
            total_bits: plain.6,
            mean_q: plain.7,
            silent_devices: plain.8,
            wire_bits: plain.9,
            undecodable: plain.10,
            flagged: plain.11,
            lost: plain.12,
            metrics: plain.13,
            ..Row::default()
        };
        Ok(Vec::<Plain>::deserialize(deserializer)?.into_iter().map(row).collect())
    }
}

/// Takes in the records of a run one by one.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Ledger {
    /// SHA-256 over the records so far, each hashed with the link before it.
    chain: [u8; 32],
    since_row: Sums,
    rounds: u64,
    all: Sums,
    /// The highest level of the scheme, if the scheme states it.
    highest_level: Option<u64>,
    scheduled: Vec<u32>,
    /// Power of each device, summed over the rounds in which it sent.
    power: Vec<f64>,
    #[serde(with = "plain_rows")]
    rows: Vec<Row>,
    /// Seconds, joules and undelivered uploads.
    #[serde(skip)]
    costs: CostLedger,
    /// The batteries.
    #[serde(skip)]
    batteries: BatteryLedger,
}

impl Ledger {
    /// The empty ledger of a run with this number of devices, whose scheme has levels up to `highest_level`.
    pub(crate) fn new(devices: usize, highest_level: Option<u64>) -> Self {
        Self {
            highest_level,
            chain: [0; 32],
            since_row: Sums::default(),
            rounds: 0,
            all: Sums::default(),
            scheduled: vec![0; devices],
            power: vec![0.0; devices],
            rows: Vec::new(),
            costs: CostLedger::default(),
            batteries: BatteryLedger::default(),
        }
    }

    /// The batteries of the devices.
    pub(crate) fn batteries(&self) -> &BatteryLedger {
        &self.batteries
    }

    /// Seconds, joules and undelivered uploads.
    pub(crate) fn costs(&self) -> &CostLedger {
        &self.costs
    }

    /// Restores the costs of a checkpoint; false if they are not those of this ledger.
    pub(crate) fn restore_costs(&mut self, costs: CostLedger, batteries: BatteryLedger) -> bool {
        let (rows, devices) = (self.rows.len(), self.devices());
        if !costs.is_consistent(self.rounds, rows, devices)
            || !batteries.is_consistent(self.rounds, rows, devices)
        {
            return false;
        }
        let rows = std::mem::take(&mut self.rows);
        let of_rows = costs.rows().map(Some).chain(std::iter::repeat(None));
        let with = |(row, cost): (Row, Option<RowCost>)| match cost {
            Some(cost) => row.with_cost(&cost),
            None => row,
        };
        self.rows = rows.into_iter().zip(of_rows).map(with).collect();
        for (row, empty) in self.rows.iter_mut().zip(batteries.rows()) {
            row.empty = Some(*empty);
        }
        (self.costs, self.batteries) = (costs, batteries);
        true
    }

    /// Whether it can be that of a run after `done` rounds: columns of one length, and counts that adding to
    /// does not overflow. It checks numbers that were read from a file.
    pub(crate) fn is_consistent(&self, done: u64) -> bool {
        let Self { scheduled, power, .. } = self;
        self.rounds == done
            && power.len() == scheduled.len()
            && scheduled.iter().all(|&count| u64::from(count) <= done && count < u32::MAX)
            && self.since_row.are_countable()
            && self.all.are_countable()
    }

    /// The number of devices it counts.
    pub(crate) fn devices(&self) -> usize {
        self.scheduled.len()
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn add(&mut self, record: &RoundRecord) {
        self.rounds = record.round;
        self.since_row.add(record, self.highest_level);
        self.all.add(record, self.highest_level);
        for sent in &record.transmissions {
            self.scheduled[sent.device.index()] += 1;
            self.power[sent.device.index()] += sent.power.0;
        }
        self.digest_record(record);
        self.costs.add(record.cost.as_ref(), undelivered(record), self.scheduled.len());
        self.costs.add_reports(record.report_symbols);
        self.batteries.add(record.cost.as_ref(), record.round, self.scheduled.len());
        if record.evaluation.is_some() {
            let interval = std::mem::take(&mut self.since_row);
            let cost = self.costs.close_row();
            let empty = self.batteries.close_row();
            self.rows.push(Row { empty, ..interval.row(record, self.all.bits).with_cost(&cost) });
        }
    }

    /// The last record that was added as a row by itself.
    pub(crate) fn round_row(&self, record: &RoundRecord) -> Row {
        let mut alone = Sums::default();
        alone.add(record, self.highest_level);
        let (outages, late) = undelivered(record);
        let mut cost = self.costs.row_alone(record.cost.as_ref(), outages, late);
        cost.report_symbols = record.report_symbols as f64;
        let empty = record.cost.as_ref().and_then(|cost| cost.empty);
        Row { empty, ..alone.row(record, self.all.bits).with_cost(&cost) }
    }

    /// Every number of the record, as bits: two runs agree in the digest only if they agree exactly.
    fn digest_record(&mut self, record: &RoundRecord) {
        let mut digest = Sha256::new_with_prefix(self.chain);
        let mut word = |bits: u64| digest.update(bits.to_le_bytes());
        word(record.round);
        word(record.training.devices as u64);
        word(record.training.loss.to_bits());
        for sent in &record.transmissions {
            TRANSMISSION_COLUMNS.iter().filter_map(|column| column.digest_word(sent)).for_each(&mut word);
        }
        if let Some(cost) = &record.cost {
            cost.words().for_each(&mut word);
        }
        if let Some(evaluation) = &record.evaluation {
            word(evaluation.accuracy.to_bits());
            word(evaluation.loss.to_bits());
            for (name, value) in evaluation.metrics.iter().filter(|(name, _)| name != WORST_DEVICE) {
                name.bytes().for_each(|byte| word(byte.into()));
                word(value.to_bits());
            }
        }
        self.chain = digest.finalize().into();
    }

    /// The run so far, `theta` being its model and `target` the accuracy that rounds are counted to.
    pub(crate) fn outcome(&self, theta: &[f32], target: f64) -> Outcome {
        let mut digest = Sha256::new_with_prefix(self.chain);
        theta.iter().for_each(|weight| digest.update(weight.to_le_bytes()));
        let digest = hexadecimal(&digest.finalize());
        let accuracies = self.rows.iter().map(|row| row.test_accuracy);
        let average_power: Vec<f64> = self.power.iter().map(|sum| sum / self.rounds.max(1) as f64).collect();
        // The first of equals, so that ties go to the lower index.
        let louder = |&a: &usize, &b: &usize| average_power[a].total_cmp(&average_power[b]);
        let worst = (0..average_power.len()).rev().max_by(louder).unwrap_or(0);
        let (outages, late) = self.costs.counts();
        let (phases, energy) = self.costs.totals().unzip();
        let batteries = self.batteries.now().unwrap_or_default();
        Outcome {
            rounds: self.rounds,
            final_accuracy: accuracies.clone().next_back(),
            best_accuracy: accuracies.clone().reduce(f64::max),
            final_loss: self.rows.last().map(|row| row.test_loss),
            target,
            rounds_to_target: self.rows.iter().find(|row| row.test_accuracy >= target).map(|row| row.round),
            bits_per_round: self.all.bits / (self.rounds.max(1)) as f64,
            mean_q: ratio(self.all.q, self.all.transmissions),
            silent_transmissions: self.all.silent,
            budget_used: (self.all.budget > 0.0).then(|| self.all.bits / self.all.budget),
            at_highest_level: self
                .highest_level
                .filter(|_| self.all.transmissions > 0)
                .map(|_| ratio(self.all.highest, self.all.transmissions)),
            worst_average_power: Power(average_power.get(worst).copied().unwrap_or(0.0)),
            worst_device: DeviceId::new(worst),
            average_power,
            scheduled: self.scheduled.clone(),
            wire_bits_per_round: self.all.wire_bits_per_round(),
            undecodable_transmissions: self.all.undecodable,
            flagged_transmissions: self.all.flagged,
            outages,
            late,
            report_symbols_per_round: self.costs.report_symbols() as f64 / self.rounds.max(1) as f64,
            phases,
            energy,
            device_energy: self.costs.devices().to_vec(),
            first_empty: batteries.first_empty,
            half_empty: batteries.half_empty,
            last_empty: batteries.last_empty,
            empty: self.batteries.now().map(|now| now.empty),
            device_accuracy: Vec::new(),
            privacy: None,
            excluded: Vec::new(),
            warnings: Vec::new(),
            digest,
        }
    }
}

fn ratio(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}
