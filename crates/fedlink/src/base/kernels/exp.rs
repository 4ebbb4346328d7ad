//! The exponential function of many numbers at once.

use super::instructions::{Arithmetic, Kernel, run};

/// Replaces every entry x by eˣ, with the bits of `libm::expf`.
///
/// Source of the formula: `expf` of musl and FreeBSD's msun, which `libm` contains. Without its branches
/// the loop computes sixteen numbers at once. `libm` itself computes numbers outside [−87, 0], which are
/// rare in a softmax.
pub fn exp(values: &mut [f32]) {
    run(Exp(values));
}

struct Exp<'a>(&'a mut [f32]);

/// Numbers that are computed together.
const CHUNK: usize = 16;

const LN2_HI: f32 = f32::from_bits(0x3f31_7200);
const LN2_LO: f32 = f32::from_bits(0x35bf_be8e);
const INV_LN2: f32 = f32::from_bits(0x3fb8_aa3b);
/// Coefficients 1.6666625440e-1 and −2.7667332906e-3.
const P: [f32; 2] = [f32::from_bits(0x3e2a_aa8f), f32::from_bits(0xbb35_5215)];

/// ½·ln 2, 1½·ln 2 and 2⁻¹⁴, the points at which the formula changes.
const HALF_LN2: f32 = f32::from_bits(0x3eb1_7218);
const THREE_HALVES_LN2: f32 = f32::from_bits(0x3f85_1592);
const TINY: f32 = f32::from_bits(0x3900_0000);

/// 1.5·2²³: the lowest bits of its sum with a small number are the integer part of that number.
const MAGIC: f32 = 12_582_912.0;

impl Kernel for Exp<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let (chunks, rest) = self.0.as_chunks_mut::<CHUNK>();
        for chunk in chunks {
            // False for a NaN, too.
            if chunk.iter().fold(true, |inside, &x| inside & (-87.0..=0.0).contains(&x)) {
                chunk.iter_mut().for_each(|x| *x = within_range(*x));
            } else {
                chunk.iter_mut().for_each(|x| *x = libm::expf(*x));
            }
        }
        rest.iter_mut().for_each(|x| *x = libm::expf(*x));
    }
}

/// eˣ for x in [−87, 0], for which it is a normal number.
#[inline(always)]
fn within_range(x: f32) -> f32 {
    // k is x/ln 2 − ½ rounded toward zero: the nearest integer, or the next one up if the nearest was
    // below.
    let shifted = INV_LN2 * x - 0.5;
    let nearest = (shifted + MAGIC) - MAGIC;
    let truncated = if nearest < shifted { nearest + 1.0 } else { nearest };
    let k = if x >= -THREE_HALVES_LN2 { -1.0 } else { truncated };
    let k = if x >= -HALF_LN2 { 0.0 } else { k };
    let (hi, lo) = (x - k * LN2_HI, k * LN2_LO);
    let reduced = hi - lo;
    let square = reduced * reduced;
    let c = reduced - square * (P[0] + square * P[1]);
    let y = 1.0 + (reduced * c / (2.0 - c) - lo + hi);
    // 2ᵏ: the lowest bits of the sum are k, and 127 is the exponent of 1.
    let scale = f32::from_bits((k + MAGIC).to_bits().wrapping_add(127) << 23);
    if x >= -TINY { 1.0 + x } else { y * scale }
}

#[cfg(test)]
mod tests {
    use super::super::instructions::{InstructionSet, run_on};
    use super::super::tests::any_floats;
    use super::*;
    use proptest::prelude::*;

    fn check(values: &[f32]) {
        for set in InstructionSet::available() {
            let mut ours = values.to_vec();
            run_on(set, Exp(&mut ours));
            for (&x, &y) in values.iter().zip(&ours) {
                let truth = libm::expf(x);
                assert!(y.to_bits() == truth.to_bits() || y.is_nan() && truth.is_nan(), "{x}: {y}, {truth}");
            }
        }
    }

    #[test]
    fn exp_has_the_bits_of_libm_over_the_whole_range_and_at_every_border() {
        // Every 1009th float of [−88, −0], and the neighbors of each border.
        let range = (0..=88f32.to_bits()).step_by(1009).map(|bits| -f32::from_bits(bits));
        check(&range.collect::<Vec<f32>>());
        for border in [TINY, HALF_LN2, THREE_HALVES_LN2, 87.0, 88.0, 0.0, 103.97] {
            let bits = border.to_bits();
            let near = (bits.saturating_sub(40)..bits + 40).map(|bits| -f32::from_bits(bits));
            check(&near.collect::<Vec<f32>>());
        }
        // Multiples of half of ln 2, at which k changes.
        for half in 1..252 {
            let bits = (0.5 * half as f32 * core::f32::consts::LN_2).to_bits();
            check(&(bits - 8..bits + 8).map(|bits| -f32::from_bits(bits)).collect::<Vec<f32>>());
        }
    }

    proptest! {
        #[test]
        fn exp_has_the_bits_of_libm_for_every_kind_of_float(values in any_floats(0..70)) {
            check(&values);
        }
    }
}
