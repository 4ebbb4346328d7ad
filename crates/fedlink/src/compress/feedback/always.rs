//! Error feedback of all devices.

use super::ErrorFeedback;
use crate::compress::Encoded;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this part.
pub const ENTRY: Entry<dyn ErrorFeedback> = Entry::of::<Always>();

/// As [`Scheduled`](super::Scheduled), and e ← v of a device that sent nothing. Everyone trains in every
/// round. State: d numbers per device.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Always {}

impl PartConfig for Always {
    type Part = dyn ErrorFeedback;
    const NAME: &'static str = "always";
    const MEANING: &'static str = "as scheduled, and a device that was not scheduled keeps its whole update";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn ErrorFeedback>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl ErrorFeedback for Always {
    fn vectors(&self) -> usize {
        1
    }

    fn everyone_trains(&self) -> bool {
        true
    }

    fn prepare(&self, state: &mut Vec<f32>, update: &mut [f32], _: u64) {
        super::add_residual(state, update);
        // As if it were not scheduled; if it is, `settle` subtracts the sent part.
        state.clear();
        state.extend_from_slice(update);
    }

    fn settle(&self, state: &mut Vec<f32>, v: &[f32], sent: &Encoded, _: u64) {
        super::keep_rest(state, v, sent);
    }
}
