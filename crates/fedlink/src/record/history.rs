//! Every round of a run, not only its evaluated rounds.

use super::{RoundRecord, Row, Transmission};
use crate::base::state::{State, StateError};

/// Every round and every transmission of a run, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct History {
    /// One row for each round.
    pub rounds: Vec<Row>,
    /// One for each transmission.
    pub transmissions: Vec<Transmission>,
}

impl History {
    /// Adds a round, `row` being its record as a row by itself.
    pub fn add(&mut self, row: Row, record: &RoundRecord) {
        self.rounds.push(row);
        self.transmissions.extend_from_slice(&record.transmissions);
    }

    /// As bytes.
    pub fn save(&self) -> State {
        let rows: Vec<Stored> = self.rounds.iter().map(stored).collect();
        let later: Vec<Later> = self.rounds.iter().map(|row| (row.worst_device_joules, row.empty)).collect();
        State::of(&(rows, &self.transmissions, later))
    }

    /// The state that [`History::save`] wrote, in this version or an earlier one.
    pub fn read(state: &State) -> Result<Self, StateError> {
        let (rows, transmissions, later) = if let Ok(all) = state.read() {
            all
        } else {
            // Before 0.3 there were only rows and transmissions.
            let (rows, transmissions): (Vec<Stored>, Vec<Transmission>) = state.read()?;
            (rows, transmissions, Vec::<Later>::new())
        };
        let later = later.into_iter().chain(std::iter::repeat(Later::default()));
        let rounds = rows.into_iter().zip(later).map(|(row, later)| read(row, later)).collect();
        Ok(Self { rounds, transmissions })
    }
}

/// The fields of a row that version 0.2 stored, in its order.
type Stored = (Counts, Costs);
type Counts = (u64, f64, f64, f64, u64, f64, f64, f64, u64, Option<f64>, u64, u64, u64, u64, u64, f64);
type Costs = ([Option<f64>; 11], Vec<(String, f64)>);

/// The fields of a row that came later.
type Later = (Option<f64>, Option<u64>);

fn stored(row: &Row) -> Stored {
    let row = row.clone();
    let counts = (
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
        row.outages,
        row.late,
        row.report_symbols,
    );
    let costs = [
        row.total_seconds,
        row.down_s,
        row.train_s,
        row.report_s,
        row.up_s,
        row.total_joules,
        row.compute_j,
        row.report_j,
        row.transmit_j,
        row.receive_j,
        row.idle_j,
    ];
    (counts, (costs, row.metrics))
}

fn read((counts, (costs, metrics)): Stored, (worst_device_joules, empty): Later) -> Row {
    let [total_seconds, down_s, train_s, report_s, up_s, total_joules, compute_j, rest @ ..] = costs;
    let [report_j, transmit_j, receive_j, idle_j] = rest;
    Row {
        round: counts.0,
        test_accuracy: counts.1,
        test_loss: counts.2,
        train_loss: counts.3,
        trained: counts.4,
        bits: counts.5,
        total_bits: counts.6,
        mean_q: counts.7,
        silent_devices: counts.8,
        wire_bits: counts.9,
        undecodable: counts.10,
        flagged: counts.11,
        lost: counts.12,
        outages: counts.13,
        late: counts.14,
        report_symbols: counts.15,
        total_seconds,
        down_s,
        train_s,
        report_s,
        up_s,
        total_joules,
        compute_j,
        report_j,
        transmit_j,
        receive_j,
        idle_j,
        worst_device_joules,
        empty,
        metrics,
    }
}
