//! Error feedback: the state that a device keeps of an update that was not sent in full, one file each.
//!
//! v is the vector that a device compresses, v̂ the vector that it sends. The state changes only with an
//! upload that counts: a device that is not scheduled, or whose upload is lost, has the same state before and
//! after the round (except under `always`).
//!
//! | `compress.feedback` | v | after an upload | state |
//! |---|---|---|---|
//! | `off` | Δ | – | – |
//! | `scheduled`, `always` | Δ + e | e ← v − v̂ | e: M·d on the devices |
//! | `decay` | Δ + e | e ← λ·(v − v̂) | e: M·d on the devices |
//! | `momentum` | z + u, u ← μ·u + Δ | u, z ← 0 where sent | u, z: 2·M·d on the devices |
//! | `ef21` | Δ − h | h ← h + v̂ on both sides | h: M·d on the devices and M·d at the server |

crate::register! {
    /// All kinds of error feedback.
    FEEDBACKS: dyn ErrorFeedback;
    off,
    scheduled,
    always,
    decay,
    momentum,
    ef21,
}

pub use always::Always;
pub use decay::Decay;
pub use ef21::Ef21;
pub(crate) use ef21::{advance, age_factor};
pub use momentum::Momentum;
pub use off::Off;
pub use scheduled::Scheduled;

use super::Encoded;
use crate::parts::{Entry, Kind};

/// A kind of error feedback: the device's half of it. `state` is the state of one device: empty, which is the
/// initial state of every device and means zeros, or [`vectors`](ErrorFeedback::vectors) vectors of d numbers
/// one after another.
pub trait ErrorFeedback: Send + Sync {
    /// Vectors of d numbers that a device keeps.
    fn vectors(&self) -> usize;

    /// Whether a device's training changes its state even if it sends nothing.
    fn everyone_trains(&self) -> bool {
        false
    }

    /// Turns Δ into v, the vector that the device reports on and compresses. `gap` are the rounds since its
    /// last upload that counts.
    fn prepare(&self, state: &mut Vec<f32>, update: &mut [f32], gap: u64);

    /// After an upload that counts: `v` is the result of [`prepare`](ErrorFeedback::prepare), `sent` is v̂.
    fn settle(&self, state: &mut Vec<f32>, v: &[f32], sent: &Encoded, gap: u64);

    /// κ, if the server keeps h_m of every device and steps by their aggregate. An upload then counts only if
    /// the server uses it.
    fn state_decay(&self) -> Option<f64> {
        None
    }
}

/// `update += e`.
fn add_residual(state: &[f32], update: &mut [f32]) {
    update.iter_mut().zip(state).for_each(|(delta, residual)| *delta += residual);
}

/// `state = v − v̂`.
fn keep_rest(state: &mut Vec<f32>, v: &[f32], sent: &Encoded) {
    state.clear();
    state.extend_from_slice(v);
    sent.add_to(state, -1.0);
}

/// Facts of a rule of error feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FeedbackFacts {
    /// Vectors of d numbers that a device keeps.
    pub vectors: usize,
    /// Whether every device must train in every round, for the state that it keeps.
    pub everyone_trains: bool,
    /// Whether the unsent part is added to later updates.
    pub keeps_rest: bool,
    /// The factor of states that server and devices keep, for a rule that has them.
    pub state_decay: Option<f64>,
}

impl Kind for dyn ErrorFeedback {
    type Material = ();
    type Facts = FeedbackFacts;
    const PROBE: Option<&'static ()> = Some(&());
    const PLURAL: &'static str = "feedbacks";
    const KEY: &'static str = "compress.feedback";
    const TABLE: &'static str = "compress";

    fn entries() -> &'static [Entry<Self>] {
        FEEDBACKS
    }

    fn facts_of(part: &Self) -> FeedbackFacts {
        FeedbackFacts {
            vectors: part.vectors(),
            everyone_trains: part.everyone_trains(),
            keeps_rest: part.vectors() > 0 && part.state_decay().is_none(),
            state_decay: part.state_decay(),
        }
    }
}

#[cfg(test)]
mod tests;
