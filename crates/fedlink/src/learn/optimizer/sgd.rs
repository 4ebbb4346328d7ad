//! Stochastic gradient descent.

use super::{Optimizer, OptimizerState};

/// v ← μ·v + g, θ ← θ − η·v; without momentum (μ = 0) θ ← θ − η·g and nothing is remembered.
#[derive(Clone, Copy, Debug)]
pub struct Sgd {
    /// μ, in 0..1.
    pub momentum: f32,
}

impl Optimizer for Sgd {
    fn starts(&self) -> &[f32] {
        if self.momentum == 0.0 { &[] } else { &[0.0] }
    }

    fn step(&self, theta: &mut [f32], gradient: &[f32], rate: f32, state: &mut OptimizerState) {
        state.steps += 1;
        match state.slots.first_mut() {
            None => theta.iter_mut().zip(gradient).for_each(|(w, g)| *w -= rate * g),
            Some(velocity) => {
                for ((w, &g), v) in theta.iter_mut().zip(gradient).zip(velocity) {
                    *v = self.momentum * *v + g;
                    *w -= rate * *v;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn momentum_accumulates_past_gradients_geometrically() {
        let sgd = Sgd { momentum: 0.5 };
        let mut state = OptimizerState::filled(1, sgd.starts());
        let mut theta = [0.0];
        for _ in 0..3 {
            sgd.step(&mut theta, &[1.0], 0.1, &mut state);
        }
        // Velocities 1, 1.5, 1.75.
        assert!((theta[0] + 0.1 * (1.0 + 1.5 + 1.75)).abs() < 1e-7);
    }

    #[test]
    fn plain_descent_remembers_nothing() {
        let sgd = Sgd { momentum: 0.0 };
        let mut state = OptimizerState::filled(2, sgd.starts());
        let mut theta = [1.0, 2.0];
        sgd.step(&mut theta, &[10.0, -10.0], 0.05, &mut state);
        assert_eq!(theta, [0.5, 2.5]);
        assert!(state.slots.is_empty());
    }
}
