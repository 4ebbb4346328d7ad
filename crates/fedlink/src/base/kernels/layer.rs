//! The passes of a dense layer other than its products.

use super::instructions::{Arithmetic, Kernel, run};

/// Makes every row of `matrix` a copy of `row`.
pub fn fill_rows(matrix: &mut [f32], row: &[f32]) {
    run(FillRows(matrix, row));
}

/// Writes the column sums of `matrix`, added in the order of its rows, to `sums`.
pub fn sum_rows(matrix: &[f32], sums: &mut [f32]) {
    run(SumRows(matrix, sums));
}

/// `ReLU`: max(x, 0) of every value; a NaN becomes zero.
pub fn relu(values: &mut [f32]) {
    run(Relu(values));
}

/// Replaces the outputs of a `ReLU` by the gradient with respect to its inputs: `gradient` (with respect
/// to its outputs) if the output was positive, else zero.
pub fn relu_gradient(outputs: &mut [f32], gradient: &[f32]) {
    run(ReluGradient(outputs, gradient));
}

struct FillRows<'a>(&'a mut [f32], &'a [f32]);

impl Kernel for FillRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        for row in self.0.chunks_exact_mut(self.1.len()) {
            row.copy_from_slice(self.1);
        }
    }
}

struct SumRows<'a>(&'a [f32], &'a mut [f32]);

/// Columns whose sums are kept in registers.
const STRIP: usize = 64;

impl Kernel for SumRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let Self(matrix, sums) = self;
        let width = sums.len();
        let (strips, rest) = sums.as_chunks_mut::<STRIP>();
        let start = strips.len() * STRIP;
        for (i, strip) in strips.iter_mut().enumerate() {
            let mut total = [0.0; STRIP];
            for row in matrix.chunks_exact(width) {
                for (sum, x) in total.iter_mut().zip(&row[i * STRIP..(i + 1) * STRIP]) {
                    *sum += x;
                }
            }
            *strip = total;
        }
        rest.fill(0.0);
        for row in matrix.chunks_exact(width) {
            for (sum, x) in rest.iter_mut().zip(&row[start..]) {
                *sum += x;
            }
        }
    }
}

struct Relu<'a>(&'a mut [f32]);

impl Kernel for Relu<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        for z in self.0 {
            *z = z.max(0.0);
        }
    }
}

struct ReluGradient<'a>(&'a mut [f32], &'a [f32]);

impl Kernel for ReluGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        for (a, &g) in self.0.iter_mut().zip(self.1) {
            *a = if *a > 0.0 { g } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::instructions::{InstructionSet, run_on};
    use super::super::tests::any_floats;
    use super::*;
    use proptest::prelude::*;

    /// A matrix, another of the same size, and their number of columns.
    fn matrices() -> impl Strategy<Value = (Vec<f32>, Vec<f32>, usize)> {
        (1usize..5, 1usize..200)
            .prop_flat_map(|(rows, width)| (any_floats(rows * width), any_floats(rows * width), Just(width)))
    }

    fn same(ours: &[f32], truth: impl Iterator<Item = f32>) -> bool {
        let equal = |(a, b): (&f32, f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        ours.iter().zip(truth).all(equal)
    }

    proptest! {
        #[test]
        fn every_pass_equals_its_definition_on_every_instruction_set((matrix, other, width) in matrices()) {
            for set in InstructionSet::available() {
                let mut filled = vec![f32::NAN; matrix.len()];
                run_on(set, FillRows(&mut filled, &other[..width]));
                prop_assert!(same(&filled, other[..width].iter().copied().cycle()));
                let mut sums = vec![f32::NAN; width];
                run_on(set, SumRows(&matrix, &mut sums));
                let sum = |c: usize| matrix[c..].iter().step_by(width).fold(0.0, |sum: f32, x| sum + x);
                prop_assert!(same(&sums, (0..width).map(sum)));
                let mut positive = matrix.clone();
                run_on(set, Relu(&mut positive));
                // A zero of either sign stays as it is.
                let truth = matrix.iter().map(|&z| if z > 0.0 { z } else { 0.0 });
                prop_assert!(positive.iter().zip(truth).all(|(a, b)| *a == b));
                let mut gradient = matrix.clone();
                run_on(set, ReluGradient(&mut gradient, &other));
                let truth = matrix.iter().zip(&other).map(|(&a, &g)| if a > 0.0 { g } else { 0.0 });
                prop_assert!(same(&gradient, truth));
            }
        }
    }
}
