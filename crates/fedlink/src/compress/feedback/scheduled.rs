//! Error feedback of the devices that send.

use super::ErrorFeedback;
use crate::compress::Encoded;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this part.
pub const ENTRY: Entry<dyn ErrorFeedback> = Entry::of::<Scheduled>();

/// v = Δ + e; e ← v − v̂ after an upload that arrived. Source: Seide et al., *1-Bit Stochastic Gradient
/// Descent* (2014). Invariant: the sum of all v̂ and e is the sum of all Δ. State: d numbers per device.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Scheduled {}

impl PartConfig for Scheduled {
    type Part = dyn ErrorFeedback;
    const NAME: &'static str = "scheduled";
    const MEANING: &'static str = "a scheduled device adds what compression dropped to its next update";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn ErrorFeedback>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl ErrorFeedback for Scheduled {
    fn vectors(&self) -> usize {
        1
    }

    fn prepare(&self, state: &mut Vec<f32>, update: &mut [f32], _: u64) {
        super::add_residual(state, update);
    }

    fn settle(&self, state: &mut Vec<f32>, v: &[f32], sent: &Encoded, _: u64) {
        super::keep_rest(state, v, sent);
    }
}
