//! Adam.

use super::descent::all_zero;
use super::{Descent, Optimizer};
use crate::base::kernels::{Arithmetic, Kernel, run};
use crate::learn::task::DeviceState;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use std::ops::Range;

/// The entry of this optimizer.
pub const ENTRY: Entry<dyn Optimizer> = Entry::of::<AdamConfig>();

/// `[learn.adam]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct AdamConfig {
    /// β₁, decay of the first moment
    #[key(default = 0.9, range = "≥ 0 and < 1")]
    pub beta1: f64,
    /// β₂, decay of the second moment
    #[key(default = 0.999, range = "≥ 0 and < 1")]
    pub beta2: f64,
    /// ε in the denominator
    #[key(default = 1e-7, range = "≥ 1e-30")]
    pub epsilon: f64,
}

impl PartConfig for AdamConfig {
    type Part = dyn Optimizer;
    const NAME: &'static str = "adam";
    const MEANING: &'static str = "Adam";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Optimizer>, ConfigError> {
        let [beta1, beta2, epsilon] = [self.beta1, self.beta2, self.epsilon].map(|x| x as f32);
        Ok(Box::new(Adam { beta1, beta2, epsilon }))
    }
}

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
    fn default_rate(&self) -> f64 {
        1e-3
    }

    fn starts(&self) -> &[f32] {
        &[0.0, 0.0]
    }

    fn step(&self, rate: f32, state: &mut DeviceState, work: &mut dyn FnMut(&mut dyn Descent)) {
        state.steps += 1;
        let decayed = |beta: f32| 1.0 - libm::pow(f64::from(beta), state.steps as f64);
        let [first_moment, second_moment] = &mut state.vectors[..] else {
            unreachable!("Adam's state holds two moments");
        };
        work(&mut Step {
            adam: *self,
            rate: (f64::from(rate) / decayed(self.beta1)) as f32,
            correction: (1.0 / decayed(self.beta2).sqrt()) as f32,
            first_moment,
            second_moment,
        });
    }
}

/// θ −= η·(m/c₁)/(√(v/c₂) + ε), with the two corrections taken out of the loop.
struct Step<'a> {
    adam: Adam,
    /// η/c₁.
    rate: f32,
    /// 1/√c₂.
    correction: f32,
    first_moment: &'a mut [f32],
    second_moment: &'a mut [f32],
}

impl Descent for Step<'_> {
    fn apply(&mut self, start: usize, theta: &mut [f32], gradient: &[f32]) {
        let range = start..start + theta.len();
        run(Block {
            adam: self.adam,
            rate: self.rate,
            correction: self.correction,
            theta,
            gradient,
            first_moment: &mut self.first_moment[range.clone()],
            second_moment: &mut self.second_moment[range],
        });
    }

    fn reads(&self) -> [&[f32]; 2] {
        [self.first_moment, self.second_moment]
    }

    fn is_at_rest(&self, range: Range<usize>) -> bool {
        all_zero(&self.first_moment[range.clone()]) && all_zero(&self.second_moment[range])
    }
}

struct Block<'a> {
    adam: Adam,
    rate: f32,
    correction: f32,
    theta: &'a mut [f32],
    gradient: &'a [f32],
    first_moment: &'a mut [f32],
    second_moment: &'a mut [f32],
}

impl Kernel for Block<'_> {
    type Output = ();

    /// Without fused operations, so that every machine gets the same bits; division and root dominate the
    /// time.
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let Adam { beta1, beta2, epsilon } = self.adam;
        let moments = self.first_moment.iter_mut().zip(self.second_moment);
        for ((w, &g), (m, v)) in self.theta.iter_mut().zip(self.gradient).zip(moments) {
            // The value is not read back from memory, because 512-bit vectors would wait for it.
            let first = beta1 * *m + (1.0 - beta1) * g;
            let second = beta2 * *v + (1.0 - beta2) * (g * g);
            (*m, *v) = (first, second);
            *w -= self.rate * first / (second.sqrt() * self.correction + epsilon);
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
        let mut state = DeviceState::filled(1, adam.starts());
        let mut theta = [0.25f32];
        let (mut w, mut m, mut v) = (0.25f64, 0.0, 0.0);
        for (t, g) in (1..).zip(gradients) {
            adam.step(1e-2, &mut state, &mut |descent| descent.apply(0, &mut theta, &[g as f32]));
            m = 0.9 * m + 0.1 * g;
            v = 0.999 * v + 0.001 * g * g;
            w -= 1e-2 * (m / (1.0 - 0.9f64.powi(t))) / ((v / (1.0 - 0.999f64.powi(t))).sqrt() + 1e-8);
            assert!((f64::from(theta[0]) - w).abs() < 1e-6, "step {t}: {} against {w}", theta[0]);
        }
    }

    #[test]
    fn a_reset_state_steps_like_a_new_one() {
        let adam = Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
        let mut state = DeviceState::filled(2, adam.starts());
        adam.step(0.1, &mut state, &mut |descent| descent.apply(0, &mut [0.0; 2], &[1.0, -3.0]));
        adam.reset(&mut state);
        assert_eq!(state, DeviceState::filled(2, adam.starts()));
    }
}
