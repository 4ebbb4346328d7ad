//! Nesterov momentum at the server.

use fedlink::aggregate::Delta;
use fedlink::aggregate::optimizer::ServerOptimizer;
use fedlink::base::state::{Persist, State, StateError};
use fedlink::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this optimizer.
pub const ENTRY: Entry<dyn ServerOptimizer> = Entry::of::<NesterovConfig>();

/// `[learn.server.nesterov]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct NesterovConfig {
    /// β, the factor of the sum from round to round
    #[key(default = 0.9, range = "≥ 0 and < 1")]
    pub beta: f64,
}

impl PartConfig for NesterovConfig {
    type Part = dyn ServerOptimizer;
    const NAME: &'static str = "nesterov";
    const MEANING: &'static str =
        "Nesterov momentum: the step of this round plus β times a decaying sum of all";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn ServerOptimizer>, ConfigError> {
        Ok(Box::new(Nesterov { beta: self.beta as f32, sum: Vec::new() }))
    }
}

/// m ← β·m + Δ̄, θ ← θ + c·(Δ̄ + β·m), with m = 0 at the start.
///
/// Source: Sutskever, Martens, Dahl and Hinton (2013), in the form of PyTorch. State: d numbers. Invariant:
/// with β = 0 a step is c·Δ̄.
pub struct Nesterov {
    beta: f32,
    /// m; empty before the first step.
    sum: Vec<f32>,
}

impl Persist for Nesterov {
    fn save(&self) -> State {
        State::of(&self.sum)
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        self.sum = state.read()?;
        Ok(())
    }
}

impl ServerOptimizer for Nesterov {
    fn step(&mut self, theta: &mut [f32], delta: &Delta, rate: f32) {
        self.sum.resize(theta.len(), 0.0);
        self.sum.iter_mut().for_each(|entry| *entry *= self.beta);
        delta.add_to(&mut self.sum, 1.0);
        theta.iter_mut().zip(&self.sum).for_each(|(weight, sum)| *weight += rate * self.beta * sum);
        delta.add_to(theta, rate);
    }
}
