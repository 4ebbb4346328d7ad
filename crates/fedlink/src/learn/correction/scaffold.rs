//! SCAFFOLD: control variates, without a second upload.

use super::{AddUpdate, Correction};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this correction.
pub const ENTRY: Entry<dyn Correction> = Entry::of::<Scaffold>();

/// SCAFFOLD, option II: local steps follow g − c_m + c. After an upload of τ_m steps with the rate η, c_m
/// ← c_m − c − Δ̂_m/(τ_m·η), and c ← c + (1/M)·Σ (c_m⁺ − c_m) over the devices whose uploads arrived.
///
/// The change of c_m is a function of Δ̂_m and of the broadcast c, so the server computes it: **no bits
/// besides Δ̂ on the uplink** (public code sends d numbers more), and d numbers more on the downlink,
/// which the clock includes. The device must use Δ̂_m too, not its own Δ_m, or the two would diverge. A
/// lost upload changes neither c nor c_m.
///
/// Source: Karimireddy et al., *SCAFFOLD* (2019). State: d numbers for each device and d at the server.
/// Needs `learn.optimizer = "sgd"` without momentum: with any other optimizer, Δ/(τη) is not a gradient.
/// Invariants: c is the mean of all c_m; the fixed points are the points where the mean gradient is zero,
/// for any τ. Caution: a compressor that sends a few percent of the update leaves c_m near zero, and little
/// is corrected.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Scaffold {}

impl PartConfig for Scaffold {
    type Part = dyn Correction;
    const NAME: &'static str = "scaffold";
    const MEANING: &'static str =
        "SCAFFOLD: control variates, which the server computes from the updates; for sgd without momentum";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Correction>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Correction for Scaffold {
    fn keeps_state(&self) -> bool {
        true
    }

    fn broadcast_vectors(&self) -> usize {
        1
    }

    fn needs_plain_descent(&self) -> bool {
        true
    }

    fn write_linear(&self, own: &[f32], control: &[f32], linear: &mut [f32]) {
        for ((term, own), control) in linear.iter_mut().zip(own).zip(control) {
            *term = control - own;
        }
    }

    fn settle_device(&self, own: &mut [f32], control: &[f32], update: AddUpdate, length: f64) {
        own.iter_mut().zip(control).for_each(|(own, control)| *own -= control);
        update(own, (-1.0 / length) as f32);
    }

    fn settle_server(
        &self,
        control: &mut [f32],
        updates: &[(AddUpdate, f64)],
        devices: usize,
        _: &mut [f32],
    ) {
        let others = (1.0 - updates.len() as f64 / devices as f64) as f32;
        control.iter_mut().for_each(|entry| *entry *= others);
        for (update, length) in updates {
            update(control, (-1.0 / (length * devices as f64)) as f32);
        }
    }
}
