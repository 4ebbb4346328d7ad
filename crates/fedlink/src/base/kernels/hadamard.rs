//! The Walsh–Hadamard transform.

use super::instructions::{Arithmetic, Kernel, run};

/// Numbers that are transformed together before the next are read: 32 KB.
const BLOCK: usize = 1 << 13;

/// `x ← H·x` in place. H is the Hadamard matrix of entries ±1 in Sylvester's order, H_ij = (−1)^|i∧j|.
/// The length of `x` must be a power of two.
///
/// Invariants: H² = d·I and ‖H·x‖² = d·‖x‖², up to rounding. Cost: d·log2 d additions and no allocation.
/// Stages within a block of 32 KB take one pass over the memory, and every two stages beyond it take
/// another: four passes for d = 2¹⁸. All operations are sums and differences, in the same order on every
/// instruction set.
pub fn hadamard(x: &mut [f32]) {
    assert!(x.len().is_power_of_two(), "{} numbers are not a power of two", x.len());
    run(Hadamard(x));
}

struct Hadamard<'a>(&'a mut [f32]);

impl Kernel for Hadamard<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let x = self.0;
        for block in x.chunks_mut(BLOCK) {
            let (chunks, rest) = block.as_chunks_mut::<8>();
            chunks.iter_mut().for_each(eight);
            // Fewer than eight numbers.
            stages(rest, 1);
            stages(block, 8);
        }
        stages(x, BLOCK);
    }
}

/// All stages from half-length `half` on, two per pass.
#[inline(always)]
fn stages(x: &mut [f32], mut half: usize) {
    while 4 * half <= x.len() {
        for part in x.chunks_exact_mut(4 * half) {
            let (low, high) = part.split_at_mut(2 * half);
            let ((a, b), (c, d)) = (low.split_at_mut(half), high.split_at_mut(half));
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                let (p, q, r, s) = (*a + *b, *a - *b, *c + *d, *c - *d);
                (*a, *b, *c, *d) = (p + r, q + s, p - r, q - s);
            }
        }
        half *= 4;
    }
    if 2 * half <= x.len() {
        for part in x.chunks_exact_mut(2 * half) {
            let (a, b) = part.split_at_mut(half);
            a.iter_mut().zip(b).for_each(|(a, b)| (*a, *b) = (*a + *b, *a - *b));
        }
    }
}

/// The first three stages.
#[inline(always)]
fn eight(x: &mut [f32; 8]) {
    let [a, b, c, d, e, f, g, h] = *x;
    let [a, b, c, d, e, f, g, h] = [a + b, a - b, c + d, c - d, e + f, e - f, g + h, g - h];
    let [a, b, c, d, e, f, g, h] = [a + c, b + d, a - c, b - d, e + g, f + h, e - g, f - h];
    *x = [a + e, b + f, c + g, d + h, a - e, b - f, c - g, d - h];
}

#[cfg(test)]
mod tests {
    use super::super::instructions::{InstructionSet, run_on};
    use super::*;
    use proptest::prelude::*;

    fn powers() -> impl Strategy<Value = Vec<f32>> {
        (0u32..9).prop_flat_map(|log| prop::collection::vec(-1e3..1e3f32, 1 << log))
    }

    proptest! {
        #[test]
        fn the_transform_is_the_product_with_the_matrix(x in powers()) {
            let mut ours = x.clone();
            hadamard(&mut ours);
            let scale = x.iter().map(|&x| f64::from(x).abs()).sum::<f64>() + 1.0;
            for (i, &ours) in ours.iter().enumerate() {
                let sign = |j: usize| if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
                let plain: f64 = x.iter().enumerate().map(|(j, &x)| sign(j) * f64::from(x)).sum();
                prop_assert!((f64::from(ours) - plain).abs() <= 1e-6 * scale, "{} {}", ours, plain);
            }
        }

        #[test]
        fn the_transform_applied_twice_is_d_times_the_identity(x in powers()) {
            let mut twice = x.clone();
            hadamard(&mut twice);
            let energy = |x: &[f32]| x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
            let dim = x.len() as f64;
            prop_assert!((energy(&twice) - dim * energy(&x)).abs() <= 1e-5 * dim * energy(&x));
            hadamard(&mut twice);
            let largest = x.iter().fold(0.0f64, |max, &x| max.max(f64::from(x).abs()));
            for (&twice, &x) in twice.iter().zip(&x) {
                prop_assert!((f64::from(twice) / dim - f64::from(x)).abs() <= 1e-5 * (largest + 1e-30));
            }
        }
    }

    #[test]
    fn whole_numbers_are_exact_beyond_a_block_and_on_every_instruction_set() {
        // Sums of 2¹⁵ numbers up to 3 are exact in 32-bit floats.
        let x: Vec<f32> = (0..1u32 << 15).map(|i| (i.wrapping_mul(2_654_435_761) >> 30) as f32).collect();
        let mut whole: Vec<i64> = x.iter().map(|&x| x as i64).collect();
        let mut half = 1;
        while half < whole.len() {
            for i in (0..whole.len()).filter(|i| i & half == 0) {
                (whole[i], whole[i + half]) = (whole[i] + whole[i + half], whole[i] - whole[i + half]);
            }
            half *= 2;
        }
        for set in InstructionSet::available() {
            let mut ours = x.clone();
            run_on(set, Hadamard(&mut ours));
            assert!(ours.iter().zip(&whole).all(|(&ours, &whole)| ours as i64 == whole));
        }
    }

    #[test]
    #[should_panic(expected = "3 numbers are not a power of two")]
    fn a_length_that_is_not_a_power_of_two_is_refused() {
        hadamard(&mut [1.0; 3]);
    }
}
