//! Plain steps.

use super::ServerOptimizer;
use crate::aggregate::Delta;
use crate::base::state::Persist;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this optimizer.
pub const ENTRY: Entry<dyn ServerOptimizer> = Entry::of::<ServerSgd>();

/// θ(t+1) = θ(t) + c·Δ̄, c being the server rate; at c = 1 the paper's.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ServerSgd {}

impl PartConfig for ServerSgd {
    type Part = dyn ServerOptimizer;
    const NAME: &'static str = "sgd";
    const FORMER_NAME: &'static str = "add";
    const MEANING: &'static str = "adds learn.server_rate times the step";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn ServerOptimizer>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for ServerSgd {}

impl ServerOptimizer for ServerSgd {
    fn is_plain(&self) -> bool {
        true
    }

    fn step(&mut self, theta: &mut [f32], delta: &Delta, rate: f32) {
        delta.add_to(theta, rate);
    }
}
