//! The largest and smallest entries of an update, found in one pass.

use crate::base::kernels::{Arithmetic, Kernel, run};

/// Entries of one sign, by ascending index.
#[derive(Debug, Default)]
pub(super) struct End {
    pub indices: Vec<u32>,
    /// The absolute value of each.
    pub magnitudes: Vec<f32>,
}

impl End {
    fn resize(&mut self, len: usize) {
        self.indices.resize(len, 0);
        self.magnitudes.resize(len, 0.0);
    }
}

/// Entries at both ends of an update.
#[derive(Debug, Default)]
pub(super) struct Extremes {
    /// Large positive ones.
    pub top: End,
    /// Large negative ones.
    pub bottom: End,
    /// Both, in the order in which they are found.
    found: Vec<(u32, f32)>,
    /// Every `STRIDE`-th entry.
    sample: Vec<f32>,
}

/// Sampling stride of the threshold estimate; prime, so that it reaches all columns of a layer.
const STRIDE: usize = 61;

/// The size below which an estimate does not pay.
const SMALL: usize = 8192;

impl Extremes {
    /// Stores a superset of the `q` largest positive and the `q` smallest negative entries of `update`
    /// (of all positive or negative ones if there are fewer): all entries at or beyond two thresholds
    /// that are estimated from a sample of the entries, and lowered to zero if they were too high.
    ///
    /// Zeros and NaN are never among them. `keys` is working memory.
    pub(super) fn gather(&mut self, update: &[f32], q: usize, keys: &mut Vec<u32>) {
        let (mut top, mut bottom) = (0.0, 0.0);
        if update.len() >= SMALL && q <= update.len() / 8 {
            let Self { sample, .. } = self;
            sample.clear();
            sample.extend(update.iter().step_by(STRIDE));
            top = guess(sample.iter().copied(), q, keys);
            bottom = guess(sample.iter().map(|x| -x), q, keys);
        }
        self.collect(update, top, bottom);
        let enough = |threshold: f32, end: &End| threshold == 0.0 || end.indices.len() >= q;
        let (enough_above, enough_below) = (enough(top, &self.top), enough(bottom, &self.bottom));
        if !(enough_above && enough_below) {
            let lowered = |threshold, enough: bool| if enough { threshold } else { 0.0 };
            self.collect(update, lowered(top, enough_above), lowered(bottom, enough_below));
        }
    }

    /// All entries ≥ `top` or ≤ −`bottom` except zeros.
    fn collect(&mut self, update: &[f32], top: f32, bottom: f32) {
        let Self { top: above, bottom: below, found, .. } = self;
        let min = f32::from_bits(1);
        run(Collect { update, top: top.max(min), bottom: -bottom.max(min), found });
        // Signs are hard to predict for a branch: every entry is written to both ends, and kept at its
        // own.
        let (mut positives, mut negatives) = (0, 0);
        above.resize(found.len());
        below.resize(found.len());
        for &(index, x) in &*found {
            (above.indices[positives], above.magnitudes[positives]) = (index, x);
            (below.indices[negatives], below.magnitudes[negatives]) = (index, -x);
            positives += usize::from(x > 0.0);
            negatives += usize::from(x < 0.0);
        }
        above.resize(positives);
        below.resize(negatives);
    }
}

/// A magnitude that most likely a few more than `q` positive entries reach, estimated from every
/// `STRIDE`-th entry; 0 if there may be at most `q` of them.
fn guess(sample: impl Iterator<Item = f32>, q: usize, keys: &mut Vec<u32>) -> f32 {
    // Bit patterns of positive floats have the order of the floats. Signs are hard to predict for a
    // branch: all are written, and the index advances after a positive one.
    let mut positives = 0;
    for x in sample {
        if positives == keys.len() {
            keys.push(0);
        }
        keys[positives] = x.to_bits();
        positives += usize::from(x > 0.0);
    }
    // Four standard deviations of a count with the mean q/STRIDE.
    let expected = q as f64 / STRIDE as f64;
    let rank = (expected + 4.0 * expected.sqrt()) as usize + 4;
    if rank >= positives {
        return 0.0;
    }
    f32::from_bits(nth_largest(&mut keys[..positives], rank))
}

/// Parts of the range of numbers that [`nth_largest`] counts.
const BUCKETS: usize = 1024;

/// The number with `rank` of `keys` before it in descending order; `keys` become undefined.
///
/// The numbers are counted in equal parts of their range, and selected within one part.
pub(super) fn nth_largest(keys: &mut [u32], mut rank: usize) -> u32 {
    let (low, high) = keys.iter().fold((u32::MAX, 0), |(low, high), &key| (low.min(key), high.max(key)));
    let shift = (u32::BITS - (high - low).leading_zeros()).saturating_sub(BUCKETS.ilog2());
    let bucket_of = |key: u32| ((key - low) >> shift) as usize % BUCKETS;
    let mut counts = [0; BUCKETS];
    keys.iter().for_each(|&key| counts[bucket_of(key)] += 1);
    let mut bucket = BUCKETS - 1;
    while rank >= counts[bucket] {
        rank -= counts[bucket];
        bucket -= 1;
    }
    // Membership is hard to predict for a branch: all are written, and the index advances after a member.
    let mut len = 0;
    for i in 0..keys.len() {
        let key = keys[i];
        keys[len] = key;
        len += usize::from(bucket_of(key) == bucket);
    }
    *keys[..len].select_nth_unstable_by(rank, |a, b| b.cmp(a)).1
}

/// Entries of 64 that [`Collect`] writes without counting them.
const FEW: usize = 4;

struct Collect<'a> {
    update: &'a [f32],
    top: f32,
    bottom: f32,
    found: &'a mut Vec<(u32, f32)>,
}

impl Kernel for Collect<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let Self { update, top, bottom, found } = self;
        let (chunks, rest) = update.as_chunks::<64>();
        let mut len = 0;
        for (i, chunk) in chunks.iter().enumerate() {
            if found.len() < len + 64 {
                found.resize(2 * len + 64, (0, 0.0));
            }
            let next = &mut found[len..len + 64];
            let mut flags = [0u8; 64];
            for (flag, &x) in flags.iter_mut().zip(chunk) {
                *flag = u8::from(x >= top) | u8::from(x <= bottom);
            }
            let mut mask = bits_of(&flags);
            let count = mask.count_ones() as usize;
            // The number is hard to predict for a branch: a few are always written, and surplus ones are
            // overwritten.
            for entry in &mut next[..FEW] {
                let index = mask.trailing_zeros() as usize % 64;
                *entry = ((i * 64 + index) as u32, chunk[index]);
                mask &= mask.wrapping_sub(1);
            }
            for entry in next.iter_mut().take(count).skip(FEW) {
                let index = mask.trailing_zeros() as usize % 64;
                *entry = ((i * 64 + index) as u32, chunk[index]);
                mask &= mask.wrapping_sub(1);
            }
            len += count;
        }
        found.truncate(len);
        for (i, &x) in rest.iter().enumerate() {
            if x >= top || x <= bottom {
                found.push(((chunks.len() * 64 + i) as u32, x));
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
        // The multiplication moves flag j of the eight to bit 56 + j; no two terms overlap, so nothing
        // carries.
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
    fn bit_i_of_the_mask_is_flag_i() {
        for bit in 0..64 {
            let mut flags = [0; 64];
            flags[bit] = 1;
            assert_eq!(bits_of(&flags), 1 << bit);
            assert_eq!(bits_of(&flags.map(|flag| 1 - flag)), !(1 << bit));
        }
    }

    /// Long updates: smooth, with few distinct values, with all large entries outside the sample or only
    /// in it, and with infinities, NaN and subnormals.
    fn updates() -> impl Strategy<Value = Vec<f32>> {
        (SMALL..SMALL + 3000, 0u64..1000, 0u8..5).prop_map(|(len, seed, kind)| {
            let mut s = crate::base::rng::stream(seed, crate::base::rng::Purpose::Test, 0, 0);
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
            let mut extremes = Extremes::default();
            // The memory was used before; its old content must go.
            extremes.gather(&[1.0, -2.0], 1, &mut Vec::new());
            extremes.gather(&update, q, &mut Vec::new());
            for (sign, end) in [(1.0, &extremes.top), (-1.0, &extremes.bottom)] {
                prop_assert!(end.indices.is_sorted_by(|a, b| a < b));
                prop_assert_eq!(end.indices.len(), end.magnitudes.len());
                for (&index, &magnitude) in end.indices.iter().zip(&end.magnitudes) {
                    prop_assert!(sign * update[index as usize] == magnitude && magnitude > 0.0);
                }
                let mut all: Vec<f32> = update.iter().map(|x| sign * x).filter(|&x| x > 0.0).collect();
                all.sort_by(|a, b| b.total_cmp(a));
                let mut ours = end.magnitudes.clone();
                ours.sort_by(|a, b| b.total_cmp(a));
                prop_assert!(ours.len() >= q.min(all.len()));
                // The threshold is a cut: the result holds the largest, and all that equal the last of
                // them.
                prop_assert_eq!(&ours[..], &all[..ours.len()]);
                let ends = ours.len() == all.len() || ours.is_empty();
                prop_assert!(ends || all[ours.len()] < ours[ours.len() - 1]);
            }
        }
    }

    proptest! {
        #[test]
        fn nth_largest_equals_the_entry_of_the_sorted_numbers(
            keys in prop::collection::vec(prop_oneof![any::<u32>(), 0..9u32, 5000..9000u32], 1..300),
            share in 0.0..1.0f64,
        ) {
            let rank = (share * keys.len() as f64) as usize;
            let mut sorted = keys.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            prop_assert_eq!(nth_largest(&mut keys.clone(), rank), sorted[rank]);
        }
    }

    #[test]
    fn the_superset_of_a_smooth_update_is_little_larger_than_requested() {
        let mut s = crate::base::rng::stream(8, crate::base::rng::Purpose::Test, 0, 0);
        let update: Vec<f32> = (0..200_000).map(|_| s.normal() as f32).collect();
        let mut extremes = Extremes::default();
        extremes.gather(&update, 2500, &mut Vec::new());
        // The threshold is the 71st largest of every 61st entry: 71·61 = 4331 entries reach it on
        // average, with a standard deviation of √71·61 = 514.
        assert_eq!(STRIDE, 61);
        for end in [extremes.top, extremes.bottom] {
            let count = end.indices.len();
            assert!(count >= 2500 && (count as f64 - 4331.0).abs() < 4.0 * 514.0, "{count}");
        }
    }
}
