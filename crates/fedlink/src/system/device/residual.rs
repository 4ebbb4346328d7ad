//! The state of one device from round to round, in a simulation and on a node alike: its task, and the memory
//! of error feedback.

use crate::compress::{Encoded, ErrorFeedback};
use crate::learn::task::DeviceState;
use serde::{Deserialize, Serialize};

/// The state that a device keeps between the rounds of a simulation.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct PersistentState {
    pub(crate) task: DeviceState,
    pub(crate) residual: Residual,
}

/// The vectors that error feedback keeps on one device, and the age of the last upload in them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Residual {
    /// Empty, or the vectors of the rule, of d entries each, one after another.
    pub(crate) vectors: Vec<f32>,
    /// The round, from 1, of the last upload that the server's state of this device holds; 0: none. The
    /// server gives it with every call, so that a checkpoint does not need it.
    #[serde(skip)]
    pub(crate) acknowledged: u64,
}

impl Residual {
    /// Receives the round that the server acknowledges. A device without a state at the server starts from
    /// zero.
    pub(crate) fn acknowledge(&mut self, round: u64) {
        self.acknowledged = round;
        if round == 0 {
            self.vectors.clear();
        }
    }

    /// Turns Δ of round `t` into v, which the device reports on and compresses.
    pub(crate) fn prepare(&mut self, rule: &dyn ErrorFeedback, t: u64, update: &mut [f32]) {
        rule.prepare(&mut self.vectors, update, gap(t, self.acknowledged));
    }

    /// Records that the upload of round `t` counts: `v` was compressed to `sent`.
    pub(crate) fn settle(&mut self, rule: &dyn ErrorFeedback, t: u64, v: &[f32], sent: &Encoded) {
        rule.settle(&mut self.vectors, v, sent, gap(t, self.acknowledged));
    }
}

/// Rounds from the last upload that counts, in round `acknowledged` from 1, to round `t` from 0.
fn gap(t: u64, acknowledged: u64) -> u64 {
    (t + 1).saturating_sub(acknowledged)
}
