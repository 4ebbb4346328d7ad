//! What a run leaves behind.

use crate::units::{Bits, DeviceId, Power, Symbols};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt::Write;

/// What the server made of what a device sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// It was added up.
    #[default]
    Used,
    /// Nothing was sent, because the budget held nothing.
    Silent,
    /// It could not be decoded; the device counts as silent.
    Undecodable,
    /// It contradicted the device's report and was dropped (`defence.audit`).
    Flagged,
}

/// What one scheduled device sent in a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Transmission {
    /// Who.
    pub device: DeviceId,
    /// g, the channel's power gain.
    pub gain: f64,
    /// C, bits a symbol.
    pub capacity: f64,
    /// What the device reported before selection (0 if the policy asks for nothing).
    pub report: f32,
    /// w, the weight of its share of bits.
    pub weight: f64,
    /// n_m, its share of the round's symbols.
    pub symbols: Symbols,
    /// R = n_m·C, the bits it may send.
    pub budget: Bits,
    /// The parameter of the compression; 0 means that the budget held nothing and the device was silent.
    pub q: usize,
    /// r(q), the bits it sent (0 if silent).
    pub bits: Bits,
    /// Entries of Δ̂ that are not zero.
    pub entries: usize,
    /// The length of the payload in bits, if updates are encoded (`radio.wire`, or `compress.budget = "wire"`).
    pub wire_bits: Option<u64>,
    /// What became of it.
    pub arrival: Arrival,
}

/// How well the model does on the test set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// Share of right answers.
    pub accuracy: f64,
    /// Mean cross-entropy.
    pub loss: f64,
}

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundRecord {
    /// Counted from 1: the state after so many rounds.
    pub round: u64,
    /// The scheduled devices, in the order of the policy.
    pub transmissions: Vec<Transmission>,
    /// Devices that trained.
    pub trained: usize,
    /// Mean over them of the mean mini-batch loss, weighted as `learn.aggregate` says; 0 if nobody trained.
    pub train_loss: f64,
    /// The test set's verdict, in the rounds that ask for it.
    pub evaluation: Option<Evaluation>,
}

/// One evaluated round with what has happened since the evaluation before it: a row of `results.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Rounds done.
    pub round: u64,
    /// Share of right answers on the test set.
    pub test_accuracy: f64,
    /// Mean cross-entropy on the test set.
    pub test_loss: f64,
    /// Mean local training loss over the rounds since the row before.
    pub train_loss: f64,
    /// Bits sent in a round, mean over the rounds since the row before.
    pub bits: f64,
    /// Bits sent in all rounds so far.
    pub total_bits: f64,
    /// Mean q over the transmissions since the row before.
    pub mean_q: f64,
    /// Scheduled devices since the row before whose budget held nothing.
    pub silent_devices: u64,
    /// Bits of the payloads sent in a round, mean over the rounds since the row before; none if nothing is encoded.
    pub wire_bits: Option<f64>,
    /// Uploads since the row before that could not be decoded.
    pub undecodable: u64,
    /// Uploads since the row before that the audit dropped.
    pub flagged: u64,
}

/// Sums over rounds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Sums {
    rounds: u64,
    /// Rounds in which anybody trained.
    trained: u64,
    train_loss: f64,
    bits: f64,
    wire_bits: Option<u64>,
    q: u64,
    transmissions: u64,
    silent: u64,
    undecodable: u64,
    flagged: u64,
}

impl Sums {
    fn add(&mut self, record: &RoundRecord) {
        self.rounds += 1;
        self.trained += u64::from(record.trained > 0);
        self.train_loss += record.train_loss;
        for sent in &record.transmissions {
            self.bits += sent.bits.0;
            self.q += sent.q as u64;
            self.transmissions += 1;
            self.silent += u64::from(sent.q == 0);
            self.undecodable += u64::from(sent.arrival == Arrival::Undecodable);
            self.flagged += u64::from(sent.arrival == Arrival::Flagged);
            if let Some(bits) = sent.wire_bits {
                self.wire_bits = Some(self.wire_bits.unwrap_or(0) + bits);
            }
        }
    }

    fn wire_bits_per_round(&self) -> Option<f64> {
        self.wire_bits.map(|bits| ratio(bits, self.rounds))
    }
}

/// A run in numbers, ready to be printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Rounds done.
    pub rounds: u64,
    /// Accuracy at the last evaluation; none if there was no evaluation.
    pub final_accuracy: Option<f64>,
    /// The best accuracy at any evaluation.
    pub best_accuracy: Option<f64>,
    /// Mean cross-entropy on the test set at the last evaluation.
    pub final_loss: Option<f64>,
    /// The first evaluated round with an accuracy of at least 80 %.
    pub rounds_to_80: Option<u64>,
    /// Mean bits sent in a round.
    pub bits_per_round: f64,
    /// Mean q over all transmissions.
    pub mean_q: f64,
    /// Transmissions whose budget held nothing.
    pub silent_transmissions: u64,
    /// Average power of the device that spent most, to be set against `radio.power`.
    pub worst_average_power: Power,
    /// That device.
    pub worst_device: DeviceId,
    /// How often each device was scheduled.
    pub scheduled: Vec<u32>,
    /// Mean bits of the payloads sent in a round; none if nothing is encoded.
    pub wire_bits_per_round: Option<f64>,
    /// Uploads that could not be decoded.
    pub undecodable_transmissions: u64,
    /// Uploads that the audit dropped.
    pub flagged_transmissions: u64,
    /// Devices that the audit has excluded.
    pub excluded: Vec<DeviceId>,
    /// SHA-256 over every record and the model, in hexadecimal: equal for equal runs.
    pub digest: String,
}

/// Takes in the records of a run one by one.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Ledger {
    /// SHA-256 over the records so far, each hashed with the link before it.
    chain: [u8; 32],
    since_row: Sums,
    rounds: u64,
    all: Sums,
    scheduled: Vec<u32>,
    rows: Vec<Row>,
}

impl Ledger {
    pub(crate) fn new(devices: usize) -> Self {
        Self {
            chain: [0; 32],
            since_row: Sums::default(),
            rounds: 0,
            all: Sums::default(),
            scheduled: vec![0; devices],
            rows: Vec::new(),
        }
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
        self.since_row.add(record);
        self.all.add(record);
        record.transmissions.iter().for_each(|sent| self.scheduled[sent.device.index()] += 1);
        self.digest_record(record);
        if let Some(evaluation) = record.evaluation {
            let interval = std::mem::take(&mut self.since_row);
            self.rows.push(Row {
                round: record.round,
                test_accuracy: evaluation.accuracy,
                test_loss: evaluation.loss,
                train_loss: interval.train_loss / interval.trained.max(1) as f64,
                bits: interval.bits / interval.rounds as f64,
                total_bits: self.all.bits,
                mean_q: ratio(interval.q, interval.transmissions),
                silent_devices: interval.silent,
                wire_bits: interval.wire_bits_per_round(),
                undecodable: interval.undecodable,
                flagged: interval.flagged,
            });
        }
    }

    /// Every number of the record, as bits: two runs agree in the digest only if they agree exactly.
    fn digest_record(&mut self, record: &RoundRecord) {
        let mut digest = Sha256::new_with_prefix(self.chain);
        let mut word = |bits: u64| digest.update(bits.to_le_bytes());
        word(record.round);
        word(record.trained as u64);
        word(record.train_loss.to_bits());
        for sent in &record.transmissions {
            word(u64::from(sent.device.0));
            word(u64::from(sent.report.to_bits()));
            for number in [sent.gain, sent.capacity, sent.weight, sent.symbols.0, sent.budget.0, sent.bits.0]
            {
                word(number.to_bits());
            }
            word(sent.q as u64);
            word(sent.entries as u64);
            // What became of it; nothing of the bytes, so that a run on bytes can be told to be the same.
            match sent.arrival {
                Arrival::Used | Arrival::Silent => {}
                Arrival::Undecodable => word(u64::MAX),
                Arrival::Flagged => word(u64::MAX - 1),
            }
        }
        if let Some(evaluation) = record.evaluation {
            word(evaluation.accuracy.to_bits());
            word(evaluation.loss.to_bits());
        }
        self.chain = digest.finalize().into();
    }

    /// The run so far, `theta` being its model and `power` what a scheduled device sends with.
    pub(crate) fn outcome(&self, theta: &[f32], power: Power) -> Outcome {
        let mut digest = Sha256::new_with_prefix(self.chain);
        theta.iter().for_each(|weight| digest.update(weight.to_le_bytes()));
        let digest = hexadecimal(&digest.finalize());
        let accuracies = self.rows.iter().map(|row| row.test_accuracy);
        // The first of equals, so that ties go to the lower index.
        let worst = (0..self.scheduled.len()).rev().max_by_key(|&m| self.scheduled[m]).unwrap_or(0);
        let share = ratio(self.scheduled.get(worst).map_or(0, |&times| u64::from(times)), self.rounds);
        Outcome {
            rounds: self.rounds,
            final_accuracy: accuracies.clone().next_back(),
            best_accuracy: accuracies.clone().reduce(f64::max),
            final_loss: self.rows.last().map(|row| row.test_loss),
            rounds_to_80: self.rows.iter().find(|row| row.test_accuracy >= 0.8).map(|row| row.round),
            bits_per_round: self.all.bits / (self.rounds.max(1)) as f64,
            mean_q: ratio(self.all.q, self.all.transmissions),
            silent_transmissions: self.all.silent,
            worst_average_power: Power(power.0 * share),
            worst_device: DeviceId::new(worst),
            scheduled: self.scheduled.clone(),
            wire_bits_per_round: self.all.wire_bits_per_round(),
            undecodable_transmissions: self.all.undecodable,
            flagged_transmissions: self.all.flagged,
            excluded: Vec::new(),
            digest,
        }
    }
}

/// Bytes in hexadecimal, as digests are written.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn ratio(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}
