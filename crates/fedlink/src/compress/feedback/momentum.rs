//! Momentum correction.

use super::ErrorFeedback;
use crate::compress::Encoded;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this part.
pub const ENTRY: Entry<dyn ErrorFeedback> = Entry::of::<Momentum>();

/// u ← μ·u + Δ; z ← z + u; the device sends v̂ = C(z); u and z become zero where v̂ is not.
///
/// An entry is sent in full: entries that wait gather momentum, those that were sent start anew ("momentum
/// correction" and "momentum factor masking"). A device that is not scheduled, or whose upload was lost,
/// keeps u and z as they were. Source: after Lin et al., *Deep Gradient Compression* (2018), arXiv
/// 1712.01887, as we read it, with local updates in place of gradients. It is made for sparse schemes: one
/// that sends all d entries leaves nothing to keep. Invariant: u_i = z_i = 0 wherever the last upload was not
/// zero. State: 2·d numbers per device, u before z.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Momentum {
    /// μ, what the momentum is multiplied by
    #[key(default = 0.9, range = "≥ 0 and < 1")]
    pub mu: f64,
}

impl PartConfig for Momentum {
    type Part = dyn ErrorFeedback;
    const NAME: &'static str = "momentum";
    const MEANING: &'static str =
        "momentum correction: unsent entries gather with momentum, sent ones start anew";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn ErrorFeedback>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl ErrorFeedback for Momentum {
    fn vectors(&self) -> usize {
        2
    }

    fn prepare(&self, state: &mut Vec<f32>, update: &mut [f32], _: u64) {
        if state.is_empty() {
            return;
        }
        let mu = self.mu as f32;
        let (momentum, sum) = state.split_at(update.len());
        for ((delta, u), z) in update.iter_mut().zip(momentum).zip(sum) {
            *delta = z + (mu * u + *delta);
        }
    }

    fn settle(&self, state: &mut Vec<f32>, v: &[f32], sent: &Encoded, _: u64) {
        state.resize(2 * v.len(), 0.0);
        let (momentum, sum) = state.split_at_mut(v.len());
        for ((u, z), v) in momentum.iter_mut().zip(&mut *sum).zip(v) {
            // v = z + u: the new u is the amount that v adds to the old z.
            (*u, *z) = (v - *z, *v);
        }
        sent.for_each(|i, value| {
            if value != 0.0 {
                momentum[i as usize] = 0.0;
                sum[i as usize] = 0.0;
            }
        });
    }
}
