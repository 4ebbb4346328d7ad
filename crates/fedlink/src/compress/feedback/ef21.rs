//! EF21: server and device keep the same state, and the device sends the change.

use super::ErrorFeedback;
use crate::compress::Encoded;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this part.
pub const ENTRY: Entry<dyn ErrorFeedback> = Entry::of::<Ef21>();

/// The device sends v̂ = C(Δ_m − h_m), and h_m ← h_m + v̂ on both sides; the server steps by c·(1/M)·Σ_m h_m,
/// over all M devices whether they were scheduled or not (`learn.aggregate` acts on the M states as it would
/// on M updates).
///
/// An upload that is lost, late, in outage, cannot be decoded or fails the audit moves neither side: the
/// server gives the round of the last upload in h_m with every call
/// ([`Call::acknowledged`](crate::system::server::Call)), and a [device](crate::system::device::Device) that
/// does not have it starts again from h_m = 0 on both sides. h_m ages by the round: at an upload g rounds
/// after the last one it is κ^g·h_m, on both sides, with g = 1 in consecutive rounds (κ = 1: it does not
/// age). Shares that a policy gives its devices have no effect, since all M count in every round;
/// `defense.clip` acts on ‖h_m‖. A scheme that may lengthen an update is rejected: the states would diverge.
///
/// Source: after Richtárik, Sokolov and Fatkhullin, *EF21* (2021), arXiv 2106.05203, and EF21-PP for partial
/// participation, arXiv 2110.03294, as we read them, on local updates in place of gradients. Invariants: at
/// constant Δ and κ = 1 every upload of a scheme with constant δ multiplies ‖Δ_m − h_m‖ by at most √(1−δ),
/// and of a projection lowers Φ = Σ_m ‖Δ_m − h_m‖² by exactly ‖v̂‖². State: d numbers per device, and M·d at
/// the server. The server holds every device's last update: privacy is then that of the server.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Ef21 {
    /// κ, the factor of a state per round
    #[key(default = 1.0, range = "> 0 and ≤ 1")]
    pub kappa: f64,
}

impl PartConfig for Ef21 {
    type Part = dyn ErrorFeedback;
    const NAME: &'static str = "ef21";
    const MEANING: &'static str =
        "server and device keep the same state, devices send the change, the step is the mean of all";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn ErrorFeedback>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl ErrorFeedback for Ef21 {
    fn vectors(&self) -> usize {
        1
    }

    fn prepare(&self, state: &mut Vec<f32>, update: &mut [f32], gap: u64) {
        innovation(state, age_factor(self.kappa, gap), update);
    }

    fn settle(&self, state: &mut Vec<f32>, v: &[f32], sent: &Encoded, gap: u64) {
        advance(state, age_factor(self.kappa, gap), sent, v.len());
    }

    fn state_decay(&self) -> Option<f64> {
        Some(self.kappa)
    }
}

/// κ^gap, the same number on both sides.
pub(crate) fn age_factor(kappa: f64, gap: u64) -> f32 {
    if kappa == 1.0 { 1.0 } else { libm::pow(kappa, gap as f64) as f32 }
}

/// `update −= factor·h`; an empty h is zero.
fn innovation(h: &[f32], factor: f32, update: &mut [f32]) {
    update.iter_mut().zip(h).for_each(|(delta, h)| *delta -= factor * h);
}

/// `h = factor·h + v̂`, the same operations on both sides.
pub(crate) fn advance(h: &mut Vec<f32>, factor: f32, sent: &Encoded, dim: usize) {
    if matches!(sent, Encoded::Silent) {
        return;
    }
    h.resize(dim, 0.0);
    if factor != 1.0 {
        h.iter_mut().for_each(|h| *h *= factor);
    }
    sent.add_to(h, 1.0);
}
