//! EF21: server and device keep the same state, and the device sends the change.

use super::ErrorFeedback;
use crate::compress::Encoded;
use crate::registry::{ConfigError, Entry, Key, PartConfig, Scope, key, number};
use serde::{Deserialize, Serialize};

/// The entry of this part.
pub const ENTRY: Entry<dyn ErrorFeedback> = Entry::of::<Ef21>();

/// The device sends v̂ = C(Δ_m − h_m), and h_m ← h_m + v̂ on both sides; the server steps by c·(1/M)·Σ_m h_m,
/// over all M devices whether they were scheduled or not (`learn.aggregate` acts on the M states as it would
/// on M updates).
///
/// An upload that is lost, late, in outage, cannot be decoded or fails the audit moves neither side: the
/// server gives the round of the last upload in h_m with every call
/// ([`Call::acknowledged`](crate::server::Call)), and a device that does not have it ([`NodeState`]) starts
/// again from h_m = 0 on both sides. h_m ages between uploads: after g rounds it is κ^g·h_m, on both sides (κ
/// = 1: it does not). Shares that a policy gives its devices have no effect, since all M count in every
/// round; `defense.clip` acts on ‖h_m‖.
///
/// Source: after Richtárik, Sokolov and Fatkhullin, *EF21* (2021), arXiv 2106.05203, and EF21-PP for partial
/// participation, arXiv 2110.03294, as we read them, on local updates in place of gradients. Invariants: at
/// constant Δ and κ = 1 every upload of a scheme with constant δ multiplies ‖Δ_m − h_m‖ by at most √(1−δ),
/// and of a projection lowers Φ = Σ_m ‖Δ_m − h_m‖² by exactly ‖v̂‖². State: d numbers a device, and M·d at
/// the server. The server holds every device's last update: privacy is then that of the server.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Ef21 {
    /// κ, above 0 and at most 1.
    pub kappa: f64,
}

impl Default for Ef21 {
    fn default() -> Self {
        Self { kappa: 1.0 }
    }
}

impl PartConfig for Ef21 {
    type Part = dyn ErrorFeedback;
    const NAME: &'static str = "ef21";
    const MEANING: &'static str =
        "server and device keep the same state, devices send the change, the step is the mean of all";
    const KEYS: &'static [Key] =
        &[key("kappa", "κ, what a state is multiplied by in a round without an upload", "> 0 and ≤ 1")];

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        number("kappa", self.kappa, |x| x > 0.0 && x <= 1.0, "a number above 0, at most 1")
    }

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

/// h_m as a node keeps it, which learns only with the next call whether its last upload counts.
///
/// ```
/// use fedlink::compress::Encoded;
/// use fedlink::compress::feedback::NodeState;
/// let mut node = NodeState::new(1.0);
/// assert!(node.sync(0)); // the server has nothing of this device either
/// node.sent(1, Encoded::Dense(vec![1.0, 0.0]), 2);
/// assert!(node.sync(1)); // the server's state holds the upload of round 1
/// let mut update = [3.0, 2.0];
/// node.innovation(2, &mut update);
/// assert_eq!(update, [2.0, 2.0]);
/// assert!(!NodeState::new(1.0).sync(1)); // a node that started again has lost it
/// ```
#[derive(Clone, Debug)]
pub struct NodeState {
    kappa: f64,
    h: Vec<f32>,
    /// The round, from 1, of the last upload in h; 0: none.
    round: u64,
    /// The last upload and its round, if it is not known whether it counts.
    pending: Option<(u64, Encoded)>,
}

impl NodeState {
    /// The state of a node that has sent nothing; `kappa` is κ.
    pub fn new(kappa: f64) -> Self {
        Self { kappa, h: Vec::new(), round: 0, pending: None }
    }

    /// Takes what the server acknowledges with its call: the round, from 1, of the last upload in its h_m, 0
    /// if it has none. False: this node has lost that state. It then starts again from zero, and so must the
    /// server ([`Session::forget`](crate::session::Session::forget)).
    #[must_use]
    pub fn sync(&mut self, acknowledged: u64) -> bool {
        if let Some((round, sent)) = self.pending.take()
            && round == acknowledged
        {
            let (dim, gap) = (self.h.len(), round.saturating_sub(self.round));
            advance(&mut self.h, age_factor(self.kappa, gap), &sent, dim);
            self.round = round;
        }
        if self.round == acknowledged {
            return true;
        }
        (self.round, self.h) = (0, Vec::new());
        acknowledged == 0
    }

    /// Turns Δ of a round, from 1, into v = Δ − κ^gap·h.
    pub fn innovation(&mut self, round: u64, update: &mut [f32]) {
        self.h.resize(update.len(), 0.0);
        innovation(&self.h, age_factor(self.kappa, round.saturating_sub(self.round)), update);
    }

    /// Notes that `sent`, of `dim` entries, was sent in a round, from 1.
    pub fn sent(&mut self, round: u64, sent: Encoded, dim: usize) {
        self.h.resize(dim, 0.0);
        self.pending = Some((round, sent));
    }

    /// h_m; empty: zero.
    pub fn state(&self) -> &[f32] {
        &self.h
    }
}
