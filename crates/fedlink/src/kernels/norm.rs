//! Norm and difference of long vectors.

use super::instructions::{Arithmetic, Kernel, run};

/// ‖v‖₂, accumulated in double precision over eight interleaved lanes (a fixed order for any machine).
// One copy, compiled here: inlined into a crate that is built with less effort it would not be vectorized.
#[inline(never)]
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
            // Widened as a whole first: the compiler then sees vectors, whatever it makes of
            // the loop around them.
            let wide = chunk.map(f64::from);
            for lane in 0..8 {
                lanes[lane] += wide[lane] * wide[lane];
            }
        }
        let rest: f64 = rest.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        (lanes.iter().sum::<f64>() + rest).sqrt()
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
        fn differences_are_the_definition_s(a in any_floats(0..70), b in any_floats(0..70)) {
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
