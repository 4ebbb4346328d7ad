//! `AdaGrad`.

use super::{Descent, Optimizer};
use crate::base::kernels::{Arithmetic, Kernel, run};
use crate::learn::task::DeviceState;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use std::ops::Range;

/// The entry of this optimizer.
pub const ENTRY: Entry<dyn Optimizer> = Entry::of::<AdaGradConfig>();

/// `[learn.adagrad]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct AdaGradConfig {
    /// ε in the denominator
    #[key(default = 1e-7, range = "≥ 1e-30")]
    pub epsilon: f64,
    /// initial sum of squares
    #[key(default = 0.1, range = "≥ 0")]
    pub initial_accumulator: f64,
}

impl PartConfig for AdaGradConfig {
    type Part = dyn Optimizer;
    const NAME: &'static str = "adagrad";
    const MEANING: &'static str = "AdaGrad";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Optimizer>, ConfigError> {
        let initial_accumulator = [self.initial_accumulator as f32];
        Ok(Box::new(AdaGrad { epsilon: self.epsilon as f32, initial_accumulator }))
    }
}

/// G ← G + g², θ ← θ − η·g/(√G + ε), G starting from `initial_accumulator`.
///
/// Source: Duchi, Hazan & Singer, *Adaptive Subgradient Methods*, diagonal form. Invariant: no entry ever
/// moves by more than η in one step.
#[derive(Clone, Copy, Debug)]
pub struct AdaGrad {
    /// ε, keeps the division finite.
    pub epsilon: f32,
    /// The initial G, as the one start value of the state.
    pub initial_accumulator: [f32; 1],
}

impl Optimizer for AdaGrad {
    fn default_rate(&self) -> f64 {
        0.2
    }

    fn starts(&self) -> &[f32] {
        &self.initial_accumulator
    }

    fn step(&self, rate: f32, state: &mut DeviceState, work: &mut dyn FnMut(&mut dyn Descent)) {
        state.steps += 1;
        work(&mut Step { epsilon: self.epsilon, rate, sums: &mut state.vectors[0] });
    }
}

struct Step<'a> {
    epsilon: f32,
    rate: f32,
    sums: &'a mut [f32],
}

impl Descent for Step<'_> {
    fn apply(&mut self, start: usize, theta: &mut [f32], gradient: &[f32]) {
        let sums = &mut self.sums[start..start + theta.len()];
        run(Block { epsilon: self.epsilon, rate: self.rate, theta, gradient, sums });
    }

    fn reads(&self) -> [&[f32]; 2] {
        [self.sums, &[]]
    }

    fn is_at_rest(&self, _: Range<usize>) -> bool {
        true
    }
}

struct Block<'a> {
    epsilon: f32,
    rate: f32,
    theta: &'a mut [f32],
    gradient: &'a [f32],
    sums: &'a mut [f32],
}

impl Kernel for Block<'_> {
    type Output = ();

    /// Without fused operations, so that every machine gets the same bits; division and root dominate the
    /// time.
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        for ((w, &g), sum) in self.theta.iter_mut().zip(self.gradient).zip(self.sums) {
            let total = *sum + g * g;
            *sum = total;
            *w -= self.rate * g / (total.sqrt() + self.epsilon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_match_the_formula_in_double_precision() {
        let adagrad = AdaGrad { epsilon: 1e-7, initial_accumulator: [0.1] };
        let mut state = DeviceState::filled(1, adagrad.starts());
        let mut theta = [1.0f32];
        let (mut w, mut sum) = (1.0f64, 0.1f64);
        for g in [0.5, -2.0, 0.0, 1e-3, 3.0] {
            adagrad.step(0.2, &mut state, &mut |descent| descent.apply(0, &mut theta, &[g as f32]));
            sum += g * g;
            w -= 0.2 * g / (sum.sqrt() + 1e-7);
            assert!((f64::from(theta[0]) - w).abs() < 1e-6);
        }
    }

    #[test]
    fn an_entry_without_gradient_does_not_move_even_with_an_empty_accumulator() {
        let adagrad = AdaGrad { epsilon: 1e-7, initial_accumulator: [0.0] };
        let mut state = DeviceState::filled(1, adagrad.starts());
        let mut theta = [1.0f32];
        adagrad.step(0.2, &mut state, &mut |descent| descent.apply(0, &mut theta, &[0.0]));
        assert_eq!(theta, [1.0]);
    }
}
