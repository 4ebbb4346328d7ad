//! One optimizer step, taken block by block.

use crate::base::kernels::subtract;
use std::ops::Range;

/// A step in progress. The model passes the gradient of θ block by block, each block once, in any order.
/// A block is applied while it is still in the cache, and the whole gradient need not exist.
///
/// The result is the same as for the whole gradient at once, since every entry is independent.
pub trait Descent {
    /// Moves `theta`, which is θ from entry `start` on, by its gradient.
    fn apply(&mut self, start: usize, theta: &mut [f32], gradient: &[f32]);

    /// The vectors that [`Descent::apply`] reads beside θ and its gradient, each as long as θ, for
    /// prefetching; empty if there are none.
    fn reads(&self) -> [&[f32]; 2] {
        [&[]; 2]
    }

    /// Whether a gradient of zero would leave θ and the optimizer's state as they are in this range.
    fn is_at_rest(&self, range: Range<usize>) -> bool;

    /// In place of [`Descent::apply`] for a block at rest: θ stays as it is from entry `start` on.
    fn rest(&mut self, _start: usize, _theta: &mut [f32]) {}
}

/// The part of a step from entry `start` of θ on, for a model that is the last part of a larger one.
pub(crate) struct Tail<'a> {
    /// The whole step.
    pub(crate) whole: &'a mut dyn Descent,
    /// The first entry of the part.
    pub(crate) start: usize,
}

impl Descent for Tail<'_> {
    fn apply(&mut self, start: usize, theta: &mut [f32], gradient: &[f32]) {
        self.whole.apply(self.start + start, theta, gradient);
    }

    fn is_at_rest(&self, range: Range<usize>) -> bool {
        self.whole.is_at_rest(self.start + range.start..self.start + range.end)
    }

    fn rest(&mut self, start: usize, theta: &mut [f32]) {
        self.whole.rest(self.start + start, theta);
    }
}

/// Entries of θ that [`FirstStep`] and [`LastStep`] process at a time: with gradient and state they fit
/// in the first-level cache.
const PIECE: usize = 1024;

/// The first step from a model that must not change: every block of θ is filled from it right before it
/// moves, which saves a pass for a copy.
pub(crate) struct FirstStep<'a> {
    /// The step.
    pub(crate) step: &'a mut dyn Descent,
    /// Its starting point.
    pub(crate) from: &'a [f32],
}

impl Descent for FirstStep<'_> {
    fn apply(&mut self, start: usize, theta: &mut [f32], gradient: &[f32]) {
        for (i, (theta, gradient)) in theta.chunks_mut(PIECE).zip(gradient.chunks(PIECE)).enumerate() {
            let start = start + i * PIECE;
            theta.copy_from_slice(&self.from[start..start + theta.len()]);
            self.step.apply(start, theta, gradient);
        }
    }

    fn reads(&self) -> [&[f32]; 2] {
        self.step.reads()
    }

    fn is_at_rest(&self, range: Range<usize>) -> bool {
        self.step.is_at_rest(range)
    }

    fn rest(&mut self, start: usize, theta: &mut [f32]) {
        theta.copy_from_slice(&self.from[start..start + theta.len()]);
        self.step.rest(start, theta);
    }
}

/// The last step, which writes the difference from the start of training in place of θ.
pub(crate) struct LastStep<'a> {
    /// The step.
    pub(crate) step: &'a mut dyn Descent,
    /// The start of training.
    pub(crate) from: &'a [f32],
}

impl Descent for LastStep<'_> {
    fn apply(&mut self, start: usize, theta: &mut [f32], gradient: &[f32]) {
        for (i, (theta, gradient)) in theta.chunks_mut(PIECE).zip(gradient.chunks(PIECE)).enumerate() {
            let start = start + i * PIECE;
            self.step.apply(start, theta, gradient);
            subtract(theta, &self.from[start..start + theta.len()]);
        }
    }

    fn reads(&self) -> [&[f32]; 2] {
        self.step.reads()
    }

    fn is_at_rest(&self, range: Range<usize>) -> bool {
        self.step.is_at_rest(range)
    }

    fn rest(&mut self, start: usize, theta: &mut [f32]) {
        self.step.rest(start, theta);
        subtract(theta, &self.from[start..start + theta.len()]);
    }
}

/// Entries that [`apply_zero_gradient`] tests together.
const STRETCH: usize = 256;

/// Applies a gradient of zero, skipping blocks where nothing would change.
pub fn apply_zero_gradient(descent: &mut dyn Descent, start: usize, theta: &mut [f32]) {
    for (i, stretch) in theta.chunks_mut(STRETCH).enumerate() {
        let start = start + i * STRETCH;
        if descent.is_at_rest(start..start + stretch.len()) {
            descent.rest(start, stretch);
        } else {
            descent.apply(start, stretch, &[0.0; STRETCH][..stretch.len()]);
        }
    }
}

/// Entries that [`all_zero`] reads before it decides to read the others.
const GLANCE: usize = 16;

/// Whether all entries are zero, of either sign. The first few nearly always show that they are not;
/// otherwise all are read, because a loop without an exit is vectorized.
pub(super) fn all_zero(values: &[f32]) -> bool {
    let (first, others) = values.split_at(GLANCE.min(values.len()));
    let bits = |values: &[f32]| values.iter().fold(0, |bits, value| bits | value.to_bits()) << 1;
    bits(first) == 0 && bits(others) == 0
}

#[cfg(test)]
mod tests {
    use crate::learn::optimizer::{AdaGrad, Adam, Descent, Optimizer, Sgd, Tail, apply_zero_gradient};
    use crate::learn::task::DeviceState;
    use proptest::prelude::*;

    fn optimizers() -> Vec<Box<dyn Optimizer>> {
        vec![
            Box::new(Sgd { momentum: 0.0 }),
            Box::new(Sgd { momentum: 0.9 }),
            Box::new(Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-7 }),
            Box::new(AdaGrad { epsilon: 1e-7, initial_accumulator: [0.1] }),
            Box::new(AdaGrad { epsilon: 1e-7, initial_accumulator: [0.0] }),
        ]
    }

    #[test]
    fn the_tail_of_a_step_acts_on_the_end_of_the_whole() {
        let momentum = Sgd { momentum: 0.5 };
        let mut state =
            DeviceState { steps: 1, bytes: Vec::new(), vectors: vec![vec![0.0, 0.0, 1.0, 0.0, 0.0]] };
        let mut theta = [0.0; 2];
        momentum.step(1.0, &mut state, &mut |whole| {
            let mut tail = Tail { whole, start: 2 };
            assert_eq!([0..1, 1..3, 0..3].map(|range| tail.is_at_rest(range)), [false, true, false]);
            tail.apply(1, &mut theta, &[3.0, 5.0]);
        });
        assert_eq!(theta, [-3.0, -5.0]);
        assert_eq!(state.vectors[0], [0.0, 0.0, 1.0, 3.0, 5.0]);
    }

    const DIM: usize = 700;

    proptest! {
        #[test]
        fn blocks_and_zero_gradients_give_the_bits_of_the_whole_gradient(
            ends in prop::collection::vec(0..DIM, 6),
            idle: [bool; 7],
            values in prop::collection::vec(-1.0..1.0f32, 4 * DIM),
        ) {
            let mut ends = [&ends[..], &[0, DIM]].concat();
            ends.sort_unstable();
            for optimizer in optimizers() {
                let mut whole = values[..DIM].to_vec();
                let mut parts = whole.clone();
                let mut whole_state = DeviceState::filled(DIM, optimizer.starts());
                let mut parts_state = whole_state.clone();
                for step in 1..4 {
                    let mut gradient = values[step * DIM..(step + 1) * DIM].to_vec();
                    // A block is idle in the first step, in the others, always or never.
                    let is_idle = |block: usize| idle[block] != (step == 1 && block.is_multiple_of(2));
                    for (block, pair) in ends.windows(2).enumerate() {
                        if is_idle(block) {
                            gradient[pair[0]..pair[1]].fill(0.0);
                        }
                    }
                    optimizer.step(0.05, &mut whole_state, &mut |descent| {
                        descent.apply(0, &mut whole, &gradient);
                    });
                    optimizer.step(0.05, &mut parts_state, &mut |descent| {
                        for (block, pair) in ends.windows(2).enumerate().rev() {
                            let range = pair[0]..pair[1];
                            if is_idle(block) {
                                apply_zero_gradient(descent, pair[0], &mut parts[range]);
                            } else {
                                descent.apply(pair[0], &mut parts[range.clone()], &gradient[range]);
                            }
                        }
                    });
                    prop_assert_eq!(&whole, &parts);
                    prop_assert_eq!(&whole_state, &parts_state);
                }
            }
        }
    }
}
