//! Momentum at the server (FedAvgM).

use super::ServerOptimizer;
use crate::aggregate::Delta;
use crate::base::state::{Persist, State, StateError};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this optimizer.
pub const ENTRY: Entry<dyn ServerOptimizer> = Entry::of::<ServerMomentumConfig>();

/// `[learn.server.momentum]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ServerMomentumConfig {
    /// β, what is left of the sum after a round
    #[key(default = 0.9, range = "≥ 0 and < 1")]
    pub beta: f64,
}

impl PartConfig for ServerMomentumConfig {
    type Part = dyn ServerOptimizer;
    const NAME: &'static str = "momentum";
    const MEANING: &'static str =
        "FedAvgM: a decaying sum of all steps, learn.server_rate times which is added in every round";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn ServerOptimizer>, ConfigError> {
        Ok(Box::new(ServerMomentum { beta: self.beta as f32, sum: Vec::new() }))
    }
}

/// m ← β·m + Δ̄, θ ← θ + c·m, m starting at zero.
///
/// Source: Hsu, Qi and Brown, *Measuring the Effects of Non-Identical Data Distribution for Federated Visual
/// Classification* (2019), FedAvgM. State: d numbers. Invariants: β = 0 is [`ServerSgd`](super::ServerSgd) up
/// to rounding; a constant step Δ̄ leads to c·Δ̄/(1−β) a round.
#[derive(Clone, Debug)]
pub struct ServerMomentum {
    beta: f32,
    /// m; empty before the first step.
    sum: Vec<f32>,
}

impl Persist for ServerMomentum {
    fn save(&self) -> State {
        State::of(&self.sum)
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        self.sum = state.read()?;
        Ok(())
    }
}

impl ServerOptimizer for ServerMomentum {
    fn step(&mut self, theta: &mut [f32], delta: &Delta, rate: f32) {
        self.sum.resize(theta.len(), 0.0);
        self.sum.iter_mut().for_each(|entry| *entry *= self.beta);
        delta.add_to(&mut self.sum, 1.0);
        theta.iter_mut().zip(&self.sum).for_each(|(weight, step)| *weight += rate * step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{Encoded, SparseUpdate, Values};
    use proptest::prelude::*;

    fn step(values: &[f32]) -> Delta<'static> {
        let indices = (0..values.len() as u32).collect();
        Delta::Step(SparseUpdate { indices, values: Values::Each(values.to_vec()) })
    }

    proptest! {
        #[test]
        fn it_follows_the_recursion_in_double_precision(
            steps in prop::collection::vec(prop::collection::vec(-1.0..1.0f32, 6), 1..30),
            beta in 0.0..0.99f64, rate in 0.1..3.0f64, cut in 0usize..30,
        ) {
            let make = || ServerMomentumConfig { beta }.build(&Scope::default(), &()).unwrap();
            let (mut ours, mut theta) = (make(), vec![0.5f32; 6]);
            let (mut exact, mut sum) = (vec![0.5f64; 6], [0.0f64; 6]);
            for (t, values) in steps.iter().enumerate() {
                if t == cut {
                    // A checkpoint in between changes nothing.
                    let state = ours.save();
                    ours = make();
                    ours.load(state).unwrap();
                }
                ours.step(&mut theta, &step(values), rate as f32);
                for i in 0..6 {
                    sum[i] = beta * sum[i] + f64::from(values[i]);
                    exact[i] += rate * sum[i];
                }
            }
            for (ours, exact) in theta.iter().zip(&exact) {
                let error = (f64::from(*ours) - exact).abs();
                prop_assert!(error < 1e-4 * (1.0 + exact.abs()), "{ours} {exact}");
            }
        }
    }

    #[test]
    fn a_constant_step_grows_by_the_geometric_sum() {
        let mut momentum = ServerMomentumConfig { beta: 0.5 }.build(&Scope::default(), &()).unwrap();
        let mut theta = [0.0f32];
        let update = Encoded::Sparse(SparseUpdate { indices: vec![0], values: Values::Shared(1.0) });
        for _ in 0..3 {
            momentum.step(&mut theta, &Delta::Sum(vec![(&update, 1.0)]), 2.0);
        }
        // 2·(1 + 1.5 + 1.75).
        assert_eq!(theta, [8.5]);
    }
}
