//! Error feedback that forgets.

use super::ErrorFeedback;
use crate::compress::Encoded;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this part.
pub const ENTRY: Entry<dyn ErrorFeedback> = Entry::of::<Decay>();

/// v = Δ + e; e ← λ·(v − v̂) after an upload that arrived.
///
/// A residual describes the model of the round that it comes from; λ < 1 limits its lifetime. λ = 1 is
/// [`Scheduled`](super::Scheduled), λ = 0 none. Invariant: ‖e‖ ≤ λ·‖v‖ for a scheme with δ ≥ 0. State: d
/// numbers per device.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Decay {
    /// λ, what the kept part is multiplied by
    #[key(default = 0.9, range = "0 ..= 1")]
    pub lambda: f64,
}

impl PartConfig for Decay {
    type Part = dyn ErrorFeedback;
    const NAME: &'static str = "decay";
    const MEANING: &'static str = "as scheduled, and what is kept shrinks by a factor each time";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn ErrorFeedback>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl ErrorFeedback for Decay {
    fn vectors(&self) -> usize {
        1
    }

    fn prepare(&self, state: &mut Vec<f32>, update: &mut [f32], _: u64) {
        super::add_residual(state, update);
    }

    fn settle(&self, state: &mut Vec<f32>, v: &[f32], sent: &Encoded, _: u64) {
        super::keep_rest(state, v, sent);
        let lambda = self.lambda as f32;
        state.iter_mut().for_each(|rest| *rest *= lambda);
    }
}
