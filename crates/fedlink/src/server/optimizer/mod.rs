//! Server optimizers, one file each: what the server does with the step that a round's updates come to.

crate::register! {
    /// All server optimizers.
    SERVER_OPTIMIZERS: dyn ServerOptimizer;
    add,
    momentum,
}

pub use add::Add;
pub use momentum::ServerMomentum;

use super::aggregate::Delta;
use crate::registry::{Entry, Kind};
use crate::state::Persist;

/// A server optimizer (`learn.server_optimizer`).
pub trait ServerOptimizer: Persist + Send {
    /// θ(t) becomes θ(t+1) by a step along `delta` with the server rate `rate`.
    fn step(&mut self, theta: &mut [f32], delta: &Delta, rate: f32);
}

impl Kind for dyn ServerOptimizer {
    type Material = ();
    const PLURAL: &'static str = "server optimizers";
    const KEY: &'static str = "learn.server_optimizer";
    const TABLE: &'static str = "learn.server";

    fn entries() -> &'static [Entry<Self>] {
        SERVER_OPTIMIZERS
    }
}

#[cfg(test)]
mod tests;
