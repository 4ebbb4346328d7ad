//! FedProx: a pull back to the model that was broadcast.

use super::Correction;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this correction.
pub const ENTRY: Entry<dyn Correction> = Entry::of::<Prox>();

/// FedProx: each local step follows the gradient of F_m(θ_m) + (μ/2)·‖θ_m − θ(t)‖², that is g + μ·(θ_m −
/// θ(t)).
///
/// Source: Li et al., *Federated Optimization in Heterogeneous Networks* (2018); their μ is 0.001 to 1.
/// Bits: none besides θ and Δ̂. State: none. Invariants: μ = 0 changes nothing; μ does not change the
/// first step of a round; Δ → 0 as μ grows, as long as η·μ < 2. On a quadratic loss with curvature a, τ
/// steps of plain descent from θ(t) give Δ = −g(θ(t))·(1 − (1 − η(a + μ))^τ)/(a + μ).
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Prox {
    /// μ, the strength of the pull
    #[key(default = 0.01, range = "0 ..= 1e9")]
    pub mu: f64,
}

impl PartConfig for Prox {
    type Part = dyn Correction;
    const NAME: &'static str = "prox";
    const MEANING: &'static str = "FedProx: a pull of learn.prox.mu back to the model that was broadcast";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Correction>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Correction for Prox {
    fn proximal(&self) -> f32 {
        self.mu as f32
    }
}
