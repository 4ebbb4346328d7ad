//! FedDyn: dynamic regularization.

use super::{AddUpdate, Correction};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this correction.
pub const ENTRY: Entry<dyn Correction> = Entry::of::<FedDyn>();

/// FedDyn: a device minimizes F_m(θ_m) − ⟨h_m, θ_m⟩ + (α/2)·‖θ_m − θ(t)‖², that is, it steps along g −
/// h_m + α·(θ_m − θ(t)). After its upload, h_m ← h_m − α·Δ̂_m. The server keeps H ← H − (α/M)·Σ Δ̂_m over
/// the uploads that arrived, and moves θ by −H/α besides the step.
///
/// h_m converges to the gradient of the device at the end of its training. At a fixed point no device
/// moves and Σ h_m = 0: the optimum of the mean loss, for any τ. The device uses Δ̂_m, as the server does
/// (public code uses the exact Δ_m there).
///
/// Source: Acar et al., *Federated Learning Based on Dynamic Regularization* (2021), in the form of the
/// public codes that we read; α is 0.01 to 0.1 there. Bits: none besides θ and Δ̂. State: d numbers for
/// each device and d at the server. Needs `learn.server_optimizer = "sgd"` with the rate 1. Invariants: H
/// is the mean of all h_m; α → ∞ freezes θ. Caution: the server's step is large if α is small against the
/// curvature and K is small against M, since H/α holds the sum of all updates so far, divided by M.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct FedDyn {
    /// α, the strength of the regularization
    #[key(default = 0.1, range = "1e-9 ..= 1e9")]
    pub alpha: f64,
}

impl PartConfig for FedDyn {
    type Part = dyn Correction;
    const NAME: &'static str = "feddyn";
    const MEANING: &'static str =
        "FedDyn: a pull back to the model and a linear term that devices and server learn";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Correction>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Correction for FedDyn {
    fn proximal(&self) -> f32 {
        self.alpha as f32
    }

    fn keeps_state(&self) -> bool {
        true
    }

    fn moves_model(&self) -> bool {
        true
    }

    fn write_linear(&self, own: &[f32], _: &[f32], linear: &mut [f32]) {
        linear.iter_mut().zip(own).for_each(|(term, own)| *term = -own);
    }

    fn settle_device(&self, own: &mut [f32], _: &[f32], update: AddUpdate, _: f64) {
        update(own, -self.alpha as f32);
    }

    fn settle_server(
        &self,
        control: &mut [f32],
        updates: &[(AddUpdate, f64)],
        devices: usize,
        theta: &mut [f32],
    ) {
        for (update, _) in updates {
            update(control, (-self.alpha / devices as f64) as f32);
        }
        let share = (1.0 / self.alpha) as f32;
        theta.iter_mut().zip(control).for_each(|(weight, entry)| *weight -= share * *entry);
    }
}
