//! Server optimizers, one file each: from the step of a round, Δ̄, to the step of the model.

mod adaptive;

crate::register! {
    /// All server optimizers.
    SERVER_OPTIMIZERS: dyn ServerOptimizer;
    sgd,
    momentum,
    adagrad,
    adam,
    yogi,
}

pub use adaptive::Adaptivity;
pub use momentum::ServerMomentum;
pub use sgd::ServerSgd;

use super::Delta;
use crate::base::state::Persist;
use crate::parts::{Entry, Kind};

/// A server optimizer (`learn.server_optimizer`).
pub trait ServerOptimizer: Persist + Send {
    /// θ(t) becomes θ(t+1) by a step along `delta` with the server rate `rate`.
    fn step(&mut self, theta: &mut [f32], delta: &Delta, rate: f32);

    /// Whether a step is the rate times the aggregate.
    fn is_plain(&self) -> bool {
        false
    }

    /// Whether a step is divided by its own size, so that the rate is a length.
    fn divides_by_size(&self) -> bool {
        false
    }
}

/// Facts of a server optimizer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServerOptimizerFacts {
    /// Whether a step is the rate times the aggregate.
    pub is_plain: bool,
    /// Whether a step is divided by its own size, so that the rate is a length.
    pub divides_by_size: bool,
}

impl Kind for dyn ServerOptimizer {
    type Material = ();
    type Facts = ServerOptimizerFacts;
    const PROBE: Option<&'static ()> = Some(&());
    const PLURAL: &'static str = "server optimizers";
    const KEY: &'static str = "learn.server_optimizer";
    const TABLE: &'static str = "learn.server";

    fn entries() -> &'static [Entry<Self>] {
        SERVER_OPTIMIZERS
    }

    fn facts_of(part: &Self) -> ServerOptimizerFacts {
        ServerOptimizerFacts { is_plain: part.is_plain(), divides_by_size: part.divides_by_size() }
    }
}

#[cfg(test)]
mod tests;
