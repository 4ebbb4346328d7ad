//! Every round of a run, not only its evaluated rounds.

use super::{RoundRecord, Row, Transmission};
use crate::base::state::{State, StateError};
use serde::{Deserialize, Serialize};

/// Every round and every transmission of a run, in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
        State::of(self)
    }

    /// The state that [`History::save`] wrote.
    pub fn read(state: &State) -> Result<Self, StateError> {
        state.read()
    }
}
