//! Plain addition.

use super::ServerOptimizer;
use crate::registry::{ConfigError, Entry, PartConfig, Scope};
use crate::server::aggregate::Delta;
use crate::state::Persist;
use serde::{Deserialize, Serialize};

/// The entry of this optimizer.
pub const ENTRY: Entry<dyn ServerOptimizer> = Entry::of::<Add>();

/// θ(t+1) = θ(t) + c·Δ̄, c being the server rate; at c = 1 the paper's.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Add {}

impl PartConfig for Add {
    type Part = dyn ServerOptimizer;
    const NAME: &'static str = "add";
    const MEANING: &'static str = "adds learn.server_rate times the step";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn ServerOptimizer>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for Add {}

impl ServerOptimizer for Add {
    fn step(&mut self, theta: &mut [f32], delta: &Delta, rate: f32) {
        delta.add_to(theta, rate);
    }
}
