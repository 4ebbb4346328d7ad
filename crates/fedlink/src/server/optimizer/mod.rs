//! Server optimizers, one file each: what the server does with the step that a round's updates come to.

mod adaptive;

crate::register! {
    /// All server optimizers.
    SERVER_OPTIMIZERS: dyn ServerOptimizer;
    add,
    momentum,
    adagrad,
    adam,
    yogi,
}

pub use adaptive::{AdaptiveConfig, Adaptivity};
pub use add::Add;
pub use momentum::ServerMomentum;

use super::aggregate::Delta;
use crate::registry::{ConfigError, Entry, Kind, number};
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

/// Checks a decay.
fn check_decay(key: &str, value: f64) -> Result<(), ConfigError> {
    number(key, value, |x| (0.0..1.0).contains(&x), "in 0..1 (1 excluded)")
}

#[cfg(test)]
mod tests;
