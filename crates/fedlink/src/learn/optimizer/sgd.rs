//! Stochastic gradient descent.

use super::descent::all_zero;
use super::{Descent, Optimizer};
use crate::base::kernels::{Arithmetic, Kernel, run};
use crate::learn::task::DeviceState;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use std::ops::Range;

/// The entry of this optimizer.
pub const ENTRY: Entry<dyn Optimizer> = Entry::of::<SgdConfig>();

/// `[learn.sgd]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct SgdConfig {
    /// μ, momentum
    #[key(range = "≥ 0 and < 1")]
    pub momentum: f64,
}

impl PartConfig for SgdConfig {
    type Part = dyn Optimizer;
    const NAME: &'static str = "sgd";
    const MEANING: &'static str = "stochastic gradient descent, with momentum";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Optimizer>, ConfigError> {
        Ok(Box::new(Sgd { momentum: self.momentum as f32 }))
    }
}

/// v ← μ·v + g, θ ← θ − η·v; without momentum (μ = 0) θ ← θ − η·g and there is no state.
#[derive(Clone, Copy, Debug)]
pub struct Sgd {
    /// μ, in 0..1.
    pub momentum: f32,
}

impl Optimizer for Sgd {
    fn is_plain_descent(&self) -> bool {
        self.momentum == 0.0
    }

    fn default_rate(&self) -> f64 {
        0.1
    }

    fn starts(&self) -> &[f32] {
        if self.momentum == 0.0 { &[] } else { &[0.0] }
    }

    fn step(&self, rate: f32, state: &mut DeviceState, work: &mut dyn FnMut(&mut dyn Descent)) {
        state.steps += 1;
        match state.vectors.first_mut() {
            None => work(&mut Plain { rate }),
            Some(velocity) => work(&mut Heavy { momentum: self.momentum, rate, velocity }),
        }
    }
}

/// A step without momentum.
struct Plain {
    rate: f32,
}

impl Descent for Plain {
    fn apply(&mut self, _: usize, theta: &mut [f32], gradient: &[f32]) {
        run(PlainBlock { rate: self.rate, theta, gradient });
    }

    fn is_at_rest(&self, _: Range<usize>) -> bool {
        true
    }
}

/// A step with momentum.
struct Heavy<'a> {
    momentum: f32,
    rate: f32,
    velocity: &'a mut [f32],
}

impl Descent for Heavy<'_> {
    fn apply(&mut self, start: usize, theta: &mut [f32], gradient: &[f32]) {
        let velocity = &mut self.velocity[start..start + theta.len()];
        run(HeavyBlock { momentum: self.momentum, rate: self.rate, theta, gradient, velocity });
    }

    fn reads(&self) -> [&[f32]; 2] {
        [self.velocity, &[]]
    }

    fn is_at_rest(&self, range: Range<usize>) -> bool {
        all_zero(&self.velocity[range])
    }
}

struct PlainBlock<'a> {
    rate: f32,
    theta: &'a mut [f32],
    gradient: &'a [f32],
}

impl Kernel for PlainBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        for (w, &g) in self.theta.iter_mut().zip(self.gradient) {
            *w -= self.rate * g;
        }
    }
}

struct HeavyBlock<'a> {
    momentum: f32,
    rate: f32,
    theta: &'a mut [f32],
    gradient: &'a [f32],
    velocity: &'a mut [f32],
}

impl Kernel for HeavyBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        for ((w, &g), v) in self.theta.iter_mut().zip(self.gradient).zip(self.velocity) {
            let velocity = self.momentum * *v + g;
            *v = velocity;
            *w -= self.rate * velocity;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn momentum_accumulates_past_gradients_geometrically() {
        let sgd = Sgd { momentum: 0.5 };
        let mut state = DeviceState::filled(1, sgd.starts());
        let mut theta = [0.0];
        for _ in 0..3 {
            sgd.step(0.1, &mut state, &mut |descent| descent.apply(0, &mut theta, &[1.0]));
        }
        // Velocities 1, 1.5, 1.75.
        assert!((theta[0] + 0.1 * (1.0 + 1.5 + 1.75)).abs() < 1e-7);
    }

    #[test]
    fn plain_descent_keeps_no_state() {
        let sgd = Sgd { momentum: 0.0 };
        let mut state = DeviceState::filled(2, sgd.starts());
        let mut theta = [1.0, 2.0];
        sgd.step(0.05, &mut state, &mut |descent| descent.apply(0, &mut theta, &[10.0, -10.0]));
        assert_eq!(theta, [0.5, 2.5]);
        assert!(state.vectors.is_empty());
    }
}
