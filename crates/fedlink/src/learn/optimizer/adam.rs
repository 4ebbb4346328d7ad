//! Adam.

use super::{Optimizer, OptimizerState};

/// m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², θ ← θ − η·m̂/(√v̂ + ε) with m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ).
///
/// Source: Kingma & Ba, *Adam: A Method for Stochastic Optimization*, algorithm 1. Invariant: the first step
/// moves every entry with a gradient well above ε by η.
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    /// β₁, decay of the first moment.
    pub beta1: f32,
    /// β₂, decay of the second moment.
    pub beta2: f32,
    /// ε, keeps the division finite.
    pub epsilon: f32,
}

impl Optimizer for Adam {
    fn starts(&self) -> &[f32] {
        &[0.0, 0.0]
    }

    fn step(&self, theta: &mut [f32], gradient: &[f32], rate: f32, state: &mut OptimizerState) {
        state.steps += 1;
        let decayed = |beta: f32| 1.0 - libm::pow(f64::from(beta), state.steps as f64);
        // θ −= η·(m/c₁)/(√(v/c₂) + ε), with the two corrections taken out of the loop.
        let rate = (f64::from(rate) / decayed(self.beta1)) as f32;
        let second = (1.0 / decayed(self.beta2).sqrt()) as f32;
        let [first_moment, second_moment] = &mut state.slots[..] else {
            unreachable!("Adam's state holds two moments");
        };
        let moments = first_moment.iter_mut().zip(second_moment);
        for ((w, &g), (m, v)) in theta.iter_mut().zip(gradient).zip(moments) {
            *m = self.beta1 * *m + (1.0 - self.beta1) * g;
            *v = self.beta2 * *v + (1.0 - self.beta2) * (g * g);
            *w -= rate * *m / (v.sqrt() * second + self.epsilon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_match_the_algorithm_in_double_precision() {
        let adam = Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
        let gradients = [0.3, -1.5, 2e-4, 0.0, -0.7, 4.0];
        let mut state = OptimizerState::filled(1, adam.starts());
        let mut theta = [0.25f32];
        let (mut w, mut m, mut v) = (0.25f64, 0.0, 0.0);
        for (t, g) in (1..).zip(gradients) {
            adam.step(&mut theta, &[g as f32], 1e-2, &mut state);
            m = 0.9 * m + 0.1 * g;
            v = 0.999 * v + 0.001 * g * g;
            w -= 1e-2 * (m / (1.0 - 0.9f64.powi(t))) / ((v / (1.0 - 0.999f64.powi(t))).sqrt() + 1e-8);
            assert!((f64::from(theta[0]) - w).abs() < 1e-6, "step {t}: {} against {w}", theta[0]);
        }
    }

    #[test]
    fn a_reset_state_steps_like_a_new_one() {
        let adam = Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
        let mut state = OptimizerState::filled(2, adam.starts());
        adam.step(&mut [0.0; 2], &[1.0, -3.0], 0.1, &mut state);
        adam.reset(&mut state);
        assert_eq!(state, OptimizerState::filled(2, adam.starts()));
    }
}
