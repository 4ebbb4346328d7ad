//! Weight decay, clipping and adjustment around a local step.

use super::correction::Adjustment;
use super::optimizer::Descent;
use crate::base::kernels::norm;
use std::ops::Range;

/// Options of local steps that hold for every optimizer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DescentOptions {
    /// λ, decoupled weight decay: θ ← θ·(1 − η·λ) before each step.
    ///
    /// Source: Loshchilov and Hutter, *Decoupled Weight Decay Regularization* (2017). With a gradient of
    /// zero τ steps leave θ·(1 − ηλ)^τ.
    pub weight_decay: f64,
    /// G, the norm to which the gradient of each mini-batch is clipped; infinite: no clipping.
    ///
    /// g ← g·min(1, G/‖g‖): never longer, in the same direction. It gives a value to the bound on
    /// gradients that convergence theory assumes. The term of a [correction](super::correction) is added
    /// after it.
    pub clip: f64,
}

impl Default for DescentOptions {
    fn default() -> Self {
        Self { weight_decay: 0.0, clip: f64::INFINITY }
    }
}

impl DescentOptions {
    /// The factor of the weights before a step with the rate η.
    pub(super) fn kept(&self, rate: f64) -> f32 {
        (1.0 - rate * self.weight_decay) as f32
    }

    /// Whether gradients are clipped.
    pub(super) fn clips(&self) -> bool {
        self.clip.is_finite()
    }

    /// Clips a gradient.
    pub(super) fn clip(&self, gradient: &mut [f32]) {
        let length = norm(gradient);
        if length > self.clip {
            let factor = (self.clip / length) as f32;
            gradient.iter_mut().for_each(|entry| *entry *= factor);
        }
    }
}

/// Entries that are processed together, in memory on the stack.
const STRETCH: usize = 256;

/// A step whose gradient is adjusted and whose weights decay.
pub(super) struct Adjusted<'a> {
    /// The step itself.
    pub(super) inner: &'a mut dyn Descent,
    /// The term added to the gradient.
    pub(super) adjustment: Adjustment<'a>,
    /// θ(t), the device's starting point.
    pub(super) origin: &'a [f32],
    /// 1 − η·λ.
    pub(super) kept: f32,
}

impl Descent for Adjusted<'_> {
    fn apply(&mut self, start: usize, theta: &mut [f32], gradient: &[f32]) {
        let mut buffer = [0.0; STRETCH];
        let stretches = theta.chunks_mut(STRETCH).zip(gradient.chunks(STRETCH));
        for ((theta, gradient), start) in stretches.zip((start..).step_by(STRETCH)) {
            let sum = &mut buffer[..gradient.len()];
            sum.copy_from_slice(gradient);
            self.adjustment.add_to(sum, start, theta, self.origin);
            if self.kept != 1.0 {
                theta.iter_mut().for_each(|weight| *weight *= self.kept);
            }
            self.inner.apply(start, theta, sum);
        }
    }

    /// The added term and the decay move θ even without a gradient.
    fn is_at_rest(&self, _: Range<usize>) -> bool {
        false
    }
}

/// Stores the gradient and moves nothing.
pub(super) struct Collect<'a> {
    /// The whole gradient, zero at first.
    pub(super) gradient: &'a mut [f32],
}

impl Descent for Collect<'_> {
    fn apply(&mut self, start: usize, _: &mut [f32], gradient: &[f32]) {
        self.gradient[start..start + gradient.len()].copy_from_slice(gradient);
    }

    fn is_at_rest(&self, _: Range<usize>) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::optimizer::{AdaGrad, Adam, Optimizer, Sgd};
    use crate::learn::task::DeviceState;
    use proptest::prelude::*;

    fn optimizers() -> Vec<Box<dyn Optimizer>> {
        vec![
            Box::new(Sgd { momentum: 0.0 }),
            Box::new(Sgd { momentum: 0.9 }),
            Box::new(Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-7 }),
            Box::new(AdaGrad { epsilon: 1e-7, initial_accumulator: [0.1] }),
        ]
    }

    #[test]
    fn weights_decay_by_a_power_without_a_gradient_under_every_optimizer() {
        // 1 − 0.5·0.5 = 0.75, whose powers are exact.
        let options = DescentOptions { weight_decay: 0.5, ..DescentOptions::default() };
        for optimizer in optimizers() {
            let mut theta: Vec<f32> = (0..600).map(|i| (i % 7) as f32 - 3.0).collect();
            let before = theta.clone();
            let mut state = DeviceState::filled(600, optimizer.starts());
            for _ in 0..5 {
                optimizer.step(0.5, &mut state, &mut |inner| {
                    let adjustment = Adjustment::default();
                    let mut step = Adjusted { inner, adjustment, origin: &before, kept: options.kept(0.5) };
                    crate::learn::optimizer::apply_zero_gradient(&mut step, 0, &mut theta);
                });
            }
            for (after, before) in theta.iter().zip(&before) {
                assert_eq!(*after, before * 0.75f32.powi(5));
            }
        }
    }

    proptest! {
        #[test]
        fn a_clipped_gradient_is_never_longer_and_keeps_its_direction(
            gradient in prop::collection::vec(-10.0..10.0f32, 1..600), limit in 0.01..100.0f64,
        ) {
            let options = DescentOptions { clip: limit, ..DescentOptions::default() };
            let mut clipped = gradient.clone();
            options.clip(&mut clipped);
            let exact = |v: &[f32]| v.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            let (before, after) = (exact(&gradient), exact(&clipped));
            prop_assert!(after <= before && after <= limit * (1.0 + 1e-6), "{before} {after}");
            if before <= limit * (1.0 - 1e-9) {
                prop_assert_eq!(&clipped, &gradient);
            } else {
                prop_assert!((after - limit).abs() < 1e-5 * limit, "{after}");
            }
            let products = gradient.iter().zip(&clipped).map(|(&a, &b)| f64::from(a) * f64::from(b));
            let product: f64 = products.sum();
            prop_assert!((product - before * after).abs() <= 1e-6 * before * after);
        }

        #[test]
        fn a_step_with_all_options_follows_the_formula_block_by_block(
            gradient in prop::collection::vec(-1.0..1.0f32, 600), split in 1usize..599,
            proximal in 0.0..2.0f32, decay in 0.0..1.0f64,
        ) {
            let linear: Vec<f32> = gradient.iter().rev().map(|x| 0.5 * x).collect();
            let origin: Vec<f32> = gradient.iter().map(|x| x * x).collect();
            let start: Vec<f32> = gradient.iter().map(|x| 1.0 - x).collect();
            let options = DescentOptions { weight_decay: decay, ..DescentOptions::default() };
            let sgd = Sgd { momentum: 0.0 };
            let mut theta = start.clone();
            sgd.step(0.1, &mut DeviceState::default(), &mut |inner| {
                let adjustment = Adjustment { linear: &linear, proximal };
                let mut step = Adjusted { inner, adjustment, origin: &origin, kept: options.kept(0.1) };
                let (low, high) = theta.split_at_mut(split);
                step.apply(split, high, &gradient[split..]);
                step.apply(0, low, &gradient[..split]);
            });
            for i in 0..600 {
                let [theta0, origin, linear, gradient] =
                    [start[i], origin[i], linear[i], gradient[i]].map(f64::from);
                let adjusted = gradient + linear + f64::from(proximal) * (theta0 - origin);
                let exact = theta0 * (1.0 - 0.1 * decay) - 0.1 * adjusted;
                prop_assert!((f64::from(theta[i]) - exact).abs() < 1e-6, "{i}: {} {exact}", theta[i]);
            }
        }
    }
}
