//! The entries at both ends of an update, found in one pass.

use crate::learn::kernels::{Arithmetic, Kernel, run};

/// An entry of an update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extreme {
    pub place: u32,
    pub value: f32,
}

/// Every how manieth entry is looked at for a first guess; prime, so that it meets all columns of a layer.
const STRIDE: usize = 31;

/// Below this size nothing is gained by guessing.
const SMALL: usize = 8192;

/// Writes to `extremes`, by ascending place, a superset of the `q` largest positive and the `q` smallest negative
/// entries of `update` (of all positive or negative ones if there are fewer): all entries on or beyond two
/// thresholds that are guessed from a sample of the entries, and lowered to zero if they were too high.
///
/// Zeros and NaN are in no case among them.
pub(super) fn gather(update: &[f32], q: usize, keys: &mut Vec<u32>, extremes: &mut Vec<Extreme>) {
    let (mut top, mut bottom) = (0.0, 0.0);
    if update.len() >= SMALL && q <= update.len() / 8 {
        top = guess(update.iter().step_by(STRIDE).copied(), q, keys);
        bottom = guess(update.iter().step_by(STRIDE).map(|x| -x), q, keys);
    }
    collect(update, top, bottom, extremes);
    let positives = extremes.iter().filter(|entry| entry.value > 0.0).count();
    let enough_above = top == 0.0 || positives >= q;
    let enough_below = bottom == 0.0 || extremes.len() - positives >= q;
    if !(enough_above && enough_below) {
        let lowered = |threshold, enough: bool| if enough { threshold } else { 0.0 };
        collect(update, lowered(top, enough_above), lowered(bottom, enough_below), extremes);
    }
}

/// A magnitude that most likely a few more than `q` positive entries reach, judged by every `STRIDE`-th entry;
/// 0 if there may be no more than `q` of them.
fn guess(sample: impl Iterator<Item = f32>, q: usize, keys: &mut Vec<u32>) -> f32 {
    keys.clear();
    // Bit patterns of positive floats are ordered like the floats.
    keys.extend(sample.filter(|&x| x > 0.0).map(f32::to_bits));
    // Four standard deviations of a count with the mean q/STRIDE.
    let expected = q as f64 / STRIDE as f64;
    let rank = (expected + 4.0 * expected.sqrt()) as usize + 4;
    if rank >= keys.len() {
        return 0.0;
    }
    f32::from_bits(*keys.select_nth_unstable_by(rank, |a, b| b.cmp(a)).1)
}

/// All entries ≥ `top` or ≤ −`bottom` except zeros, by ascending place.
fn collect(update: &[f32], top: f32, bottom: f32, extremes: &mut Vec<Extreme>) {
    extremes.clear();
    let least = f32::from_bits(1);
    run(Collect { update, top: top.max(least), bottom: -bottom.max(least), extremes });
}

struct Collect<'a> {
    update: &'a [f32],
    top: f32,
    bottom: f32,
    extremes: &'a mut Vec<Extreme>,
}

impl Kernel for Collect<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let (chunks, rest) = self.update.as_chunks::<64>();
        for (i, chunk) in chunks.iter().enumerate() {
            let mut flags = [0u8; 64];
            for (flag, &x) in flags.iter_mut().zip(chunk) {
                *flag = u8::from(x >= self.top) | u8::from(x <= self.bottom);
            }
            let mut mask = bits_of(&flags);
            while mask != 0 {
                let place = mask.trailing_zeros() as usize;
                self.extremes.push(Extreme { place: (i * 64 + place) as u32, value: chunk[place] });
                mask &= mask - 1;
            }
        }
        for (i, &value) in rest.iter().enumerate() {
            if value >= self.top || value <= self.bottom {
                self.extremes.push(Extreme { place: (chunks.len() * 64 + i) as u32, value });
            }
        }
    }
}

/// Bit i is flag i, each flag being 0 or 1.
#[inline(always)]
fn bits_of(flags: &[u8; 64]) -> u64 {
    let mut mask = 0;
    let (bytes, _) = flags.as_chunks::<8>();
    for (i, &eight) in bytes.iter().enumerate() {
        // The multiplication brings flag j of the eight to bit 56 + j; no two terms meet, so nothing carries.
        let gathered = u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= gathered << (8 * i);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bits_are_the_flags() {
        for bit in 0..64 {
            let mut flags = [0; 64];
            flags[bit] = 1;
            assert_eq!(bits_of(&flags), 1 << bit);
            assert_eq!(bits_of(&flags.map(|flag| 1 - flag)), !(1 << bit));
        }
    }

    /// Long updates: smooth, with few distinct values, with all large entries where the guess does not look or
    /// only where it looks, and with infinities, NaN and subnormals.
    fn updates() -> impl Strategy<Value = Vec<f32>> {
        (SMALL..SMALL + 3000, 0u64..1000, 0u8..5).prop_map(|(len, seed, kind)| {
            let mut s = crate::rng::stream(seed, crate::rng::Purpose::Test, 0, 0);
            let value = |i: usize| {
                let x = s.normal() as f32;
                match kind {
                    0 => x,
                    1 => x.round(),
                    2 => x * if i.is_multiple_of(STRIDE) { 1e-3 } else { 1.0 },
                    3 => x * if i.is_multiple_of(STRIDE) { 1.0 } else { 1e-3 },
                    _ => [x * 1e-42, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0][i % 5],
                }
            };
            (0..len).map(value).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn the_superset_holds_both_ends_in_order(update in updates(), q in 0usize..2000) {
            let mut extremes = Vec::new();
            gather(&update, q, &mut Vec::new(), &mut extremes);
            prop_assert!(extremes.windows(2).all(|pair| pair[0].place < pair[1].place));
            for entry in &extremes {
                prop_assert_eq!(update[entry.place as usize].to_bits(), entry.value.to_bits());
                prop_assert!(entry.value != 0.0 && !entry.value.is_nan());
            }
            for sign in [1.0, -1.0] {
                let mut all: Vec<f32> = update.iter().map(|x| sign * x).filter(|&x| x > 0.0).collect();
                all.sort_by(|a, b| b.total_cmp(a));
                let mut ours: Vec<f32> =
                    extremes.iter().map(|entry| sign * entry.value).filter(|&x| x > 0.0).collect();
                ours.sort_by(|a, b| b.total_cmp(a));
                let least = q.min(all.len());
                prop_assert!(ours.len() >= least);
                // A threshold cuts: what is there are the largest, and all that equal the last of them.
                prop_assert_eq!(&ours[..], &all[..ours.len()]);
                prop_assert!(ours.len() == all.len() || ours.is_empty() || all[ours.len()] < ours[ours.len() - 1]);
            }
        }
    }

    #[test]
    fn a_smooth_update_leaves_little_more_than_was_asked_for() {
        let mut s = crate::rng::stream(8, crate::rng::Purpose::Test, 0, 0);
        let update: Vec<f32> = (0..200_000).map(|_| s.normal() as f32).collect();
        let mut extremes = Vec::new();
        gather(&update, 2500, &mut Vec::new(), &mut extremes);
        assert!((5000..9000).contains(&extremes.len()), "{}", extremes.len());
    }
}
