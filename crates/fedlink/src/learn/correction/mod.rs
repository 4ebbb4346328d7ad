//! Corrections of local training against client drift, one file each.
//!
//! Every correction adds a term to the gradient of a local step that does not depend on the mini-batch: a
//! vector, and a pull back to the broadcast model ([`Adjustment`]). The vector comes from state of the
//! device and the server. Both update their state with Δ̂, the update as it arrived, not with Δ. So the
//! server needs nothing but the update, and a lost update changes neither.

crate::register! {
    /// All corrections.
    CORRECTIONS: dyn Correction;
    none,
    prox,
    scaffold,
    feddyn,
}

mod devices;

pub(crate) use devices::DeviceCorrections;
pub use feddyn::FedDyn;
pub use none::NoCorrection;
pub use prox::Prox;
pub use scaffold::Scaffold;

use crate::parts::{Entry, Kind};

/// The term added to the gradient of each local step: `linear` + μ·(θ_m − θ(t)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Adjustment<'a> {
    /// d numbers, or none.
    pub linear: &'a [f32],
    /// μ.
    pub proximal: f32,
}

impl Adjustment<'_> {
    /// Whether nothing is added.
    pub fn is_none(&self) -> bool {
        self.linear.is_empty() && self.proximal == 0.0
    }

    /// Adds it to the gradient of the entries from `start` on; `theta` is θ_m there, `origin` the whole
    /// θ(t).
    pub fn add_to(&self, gradient: &mut [f32], start: usize, theta: &[f32], origin: &[f32]) {
        let range = start..start + gradient.len();
        if !self.linear.is_empty() {
            let linear = &self.linear[range.clone()];
            gradient.iter_mut().zip(linear).for_each(|(entry, term)| *entry += term);
        }
        if self.proximal != 0.0 {
            let moved = theta.iter().zip(&origin[range]);
            for (entry, (now, then)) in gradient.iter_mut().zip(moved) {
                *entry += self.proximal * (now - then);
            }
        }
    }
}

/// Access of a correction to Δ̂: adds the given multiple of Δ̂ to the given vector.
pub type AddUpdate<'a> = &'a dyn Fn(&mut [f32], f32);

/// A correction of local training (`learn.correction`). Its callers keep its state: a vector of d numbers
/// for each device, and one for the server, which start at zero.
pub trait Correction: Send + Sync {
    /// Whether it corrects anything.
    fn corrects(&self) -> bool {
        true
    }

    /// μ, the strength of the pull back to θ(t).
    fn proximal(&self) -> f32 {
        0.0
    }

    /// Whether devices and the server keep a vector.
    fn keeps_state(&self) -> bool {
        false
    }

    /// Vectors of the size of θ that the server broadcasts with θ(t).
    fn broadcast_vectors(&self) -> usize {
        0
    }

    /// Whether it uses Δ/(τ·η) as a gradient, which holds for plain stochastic gradient descent only.
    fn needs_plain_descent(&self) -> bool {
        false
    }

    /// Whether it moves θ itself after the step, so that the server must add the step with the rate 1.
    fn moves_model(&self) -> bool {
        false
    }

    /// Writes the vector that a device with the state `own` adds to its gradients to `linear`; `control`
    /// is the server's vector as broadcast. All three have d entries.
    fn write_linear(&self, _own: &[f32], _control: &[f32], _linear: &mut [f32]) {}

    /// Updates the state of a device after `update` arrived, Δ̂ of steps of the given `length` τ_m·η.
    fn settle_device(&self, _own: &mut [f32], _control: &[f32], _update: AddUpdate, _length: f64) {}

    /// Updates the state of the server after `updates` arrived, each Δ̂ with its τ_m·η, of `devices`
    /// devices in all, and moves θ(t+1) besides the step.
    fn settle_server(
        &self,
        _control: &mut [f32],
        _updates: &[(AddUpdate, f64)],
        _devices: usize,
        _theta: &mut [f32],
    ) {
    }
}

/// Facts of a correction of local steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact")]
#[non_exhaustive]
pub struct CorrectionFacts {
    /// Whether it corrects anything.
    pub corrects: bool,
    /// Whether local steps must be those of plain descent.
    pub needs_plain_descent: bool,
    /// Whether it moves the model of the server.
    pub moves_model: bool,
    /// Whether devices and server keep vectors for it.
    pub keeps_state: bool,
}

impl Kind for dyn Correction {
    type Material = ();
    type Facts = CorrectionFacts;
    const PROBE: Option<&'static ()> = Some(&());
    const PLURAL: &'static str = "corrections";
    const KEY: &'static str = "learn.correction";
    const TABLE: &'static str = "learn";

    fn entries() -> &'static [Entry<Self>] {
        CORRECTIONS
    }

    fn facts_of(part: &Self) -> CorrectionFacts {
        CorrectionFacts {
            corrects: part.corrects(),
            needs_plain_descent: part.needs_plain_descent(),
            moves_model: part.moves_model(),
            keeps_state: part.keeps_state(),
        }
    }
}

#[cfg(test)]
mod tests;
