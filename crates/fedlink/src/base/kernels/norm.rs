//! Norm and difference of long vectors.

use super::instructions::{Arithmetic, Kernel, run};

/// ‖v‖₂, accumulated in double precision over eight interleaved lanes (the same order on any machine).
pub fn norm(vector: &[f32]) -> f64 {
    run(Norm(vector))
}

struct Norm<'a>(&'a [f32]);

impl Kernel for Norm<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> f64 {
        let mut lanes = [0.0f64; 8];
        let (chunks, rest) = self.0.as_chunks::<8>();
        for chunk in chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane += f64::from(x) * f64::from(x);
            }
        }
        let rest: f64 = rest.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        (lanes.iter().sum::<f64>() + rest).sqrt()
    }
}

/// Whether ‖v‖₂ as an `f32` is finite: all entries are finite and the norm is within range.
///
/// For all but enormous vectors the largest magnitude decides it, in a fifth of the time of the norm.
pub fn has_finite_norm(vector: &[f32]) -> bool {
    // ‖v‖₂ ≤ √d·max|v|; half of the range is a margin for rounding. A NaN is larger than every number.
    let bound = f64::from(run(Largest(vector))) * (vector.len() as f64).sqrt();
    bound < 0.5 * f64::from(f32::MAX) || (norm(vector) as f32).is_finite()
}

/// The largest magnitude of an entry; NaN if an entry is NaN.
struct Largest<'a>(&'a [f32]);

impl Kernel for Largest<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> f32 {
        // Bit patterns of positive floats have the order of the floats, and those of NaN are above all.
        let magnitude = |x: &f32| x.to_bits() & 0x7fff_ffff;
        f32::from_bits(self.0.iter().map(magnitude).fold(0, u32::max))
    }
}

/// `target -= other`, entry by entry.
pub fn subtract(target: &mut [f32], other: &[f32]) {
    run(Subtract(target, other));
}

struct Subtract<'a>(&'a mut [f32], &'a [f32]);

impl Kernel for Subtract<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        for (x, y) in self.0.iter_mut().zip(self.1) {
            *x -= y;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::instructions::{InstructionSet, run_on};
    use super::super::tests::any_floats;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_norm_matches_a_plain_sum(vector in prop::collection::vec(-1e18..1e18f32, 0..70)) {
            let plain = vector.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            prop_assert!((norm(&vector) - plain).abs() <= 1e-12 * plain);
        }

        #[test]
        fn every_instruction_set_gives_the_same_bits(vector in any_floats(0..100)) {
            let portable = run_on(InstructionSet::PORTABLE, Norm(&vector));
            for set in InstructionSet::available() {
                let ours = run_on(set, Norm(&vector));
                prop_assert!(ours.to_bits() == portable.to_bits() || ours.is_nan() && portable.is_nan());
            }
        }

        #[test]
        fn has_finite_norm_agrees_with_the_norm(vector in any_floats(0..70), scale in 0usize..3) {
            let scale = [1.0, 1e30, 1e37][scale];
            let vector: Vec<f32> = vector.iter().map(|x| x * scale).collect();
            prop_assert_eq!(has_finite_norm(&vector), (norm(&vector) as f32).is_finite());
        }

        #[test]
        fn a_difference_equals_its_definition(a in any_floats(0..70), b in any_floats(0..70)) {
            let expected: Vec<u32> = a.iter().zip(&b).map(|(a, b)| (a - b).to_bits()).collect();
            for set in InstructionSet::available() {
                let mut ours = a[..expected.len()].to_vec();
                run_on(set, Subtract(&mut ours, &b));
                for (ours, &truth) in ours.iter().zip(&expected) {
                    prop_assert!(ours.to_bits() == truth || ours.is_nan() && f32::from_bits(truth).is_nan());
                }
            }
        }
    }
}
