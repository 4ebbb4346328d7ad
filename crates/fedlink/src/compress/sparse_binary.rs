//! D-SGD: sparse binary compression, the paper's quantizer.
//!
//! # Audit
//! Let Δ̂ have c entries of value ±v. Take v > 0; the other sign is symmetric. For q ≥ 1 let a(q) be the
//! mean of the up to q largest positive entries of Δ, and b(q) that of the magnitudes of the up to q
//! smallest negative ones: v = a(q) ≥ b(q). A device may also have sent a smaller q than the budget's
//! (`compress.budget = "wire"`).
//!
//! **‖Δ‖ reported (BN2, BC-BN2).** By Cauchy–Schwarz c·v² ≤ Σ x² over the kept entries, so **v·√c ≤
//! ‖Δ‖**. There is an upper bound too. The kept positives add up to c·v. If m is the least of them, no
//! omitted positive entry exceeds m. The squares of both are then largest if one kept entry has the whole
//! excess of the others over m: (cv − (c−1)m)² + (c−1)m² + u·m², with u omitted entries. That is convex
//! in m, so it is largest at m = 0, where it is c²v², or at m = v, where it is (c + u)v². On the negative
//! side the same holds with e ≤ q kept entries that add up to at most e·v. As c + u + e + w ≤ d and u > 0
//! only if c is all that q allows,
//!
//! > ‖Δ‖² ≤ v²·max(c² + E², c² + d − c, d − E + E²),  E = min(q, d − c),
//!
//! and there are updates that attain it. It is about √(2q) times ‖Δ̂‖: D-SGD averages one huge entry
//! among zeros away, and the server cannot exclude this case. **An inflation below that factor cannot be
//! proved** from v, c and q by any method.
//!
//! **‖Δ̂(q*)‖ reported (BN2-C).** If q = q* (K = 1, the paper's count of bits) the device sends the
//! update of its report: **equality**. Otherwise q ≤ q*. Means over more of the largest entries fall, so
//! v(q*) ≤ v(q), with at most q* entries: ‖Δ̂(q*)‖ ≤ v·√q*. And a(q*) ≥ c·v/q*, so that ‖Δ̂(q*)‖ ≥
//! c·v/q*. A report can exceed the truth by a factor of at most √(q*/q), about √K.

use super::audit::{Sent, unrounded};
use super::extremes::{End, nth_largest};
use super::wire::Layout;
use super::{Compressor, Properties, Scratch, SparseScheme, SparseUpdate, Values, bits};
use crate::base::rng::Stream;
use crate::base::units::Bits;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use std::ops::RangeInclusive;

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Compressor> = Entry::of::<SparseBinary>();

/// D-SGD(q): of the q largest and the q smallest entries, keep the side with the larger mean magnitude and
/// send that mean and the indices.
///
/// - Bits: `r(q) = log2 C(d,q) + 33`, 32 for the value, one for its sign, the rest for the indices.
/// - Value: a = mean of the positive ones among the q largest, b = mean of the negative ones among the q
///   smallest. If a ≥ |b| every kept positive entry becomes a and all else 0, otherwise every kept negative
///   entry becomes b. Ties on the boundary go to the lower index.
///
/// Source: section III of the paper, after Sattler et al., *Sparse Binary Compression*. Invariants: at most q
/// entries, all of one sign; ‖Δ̂‖₂ ≤ ‖Δ‖₂; r(q) ≤ R < r(q+1) for the q chosen at budget R.
///
/// ```
/// use fedlink::compress::{Scratch, SparseBinary, SparseScheme, SparseUpdate, Values};
/// use fedlink::base::rng::{Purpose, stream};
/// let mut sent = SparseUpdate::default();
/// let mut unused = stream(0, Purpose::Sparsify, 0, 0); // D-SGD draws no random numbers
/// let update = [0.5, -4.0, 1.5, 0.0, -2.0];
/// SparseBinary {}.compress(&update, 2, &mut unused, &mut Scratch::default(), &mut sent);
/// assert_eq!(sent, SparseUpdate { indices: vec![1, 4], values: Values::Shared(-3.0) });
/// ```
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct SparseBinary {}

impl PartConfig for SparseBinary {
    type Part = dyn Compressor;
    const NAME: &'static str = "d-sgd";
    const FAMILY: &'static str = "largest";
    const MEANING: &'static str = "sparse binary compression: one value and the indices of q entries";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Compressor>, ConfigError> {
        Ok(Box::new(self))
    }
}

/// Bits for the value (32) and its sign (1).
const VALUE_BITS: f64 = 33.0;

impl SparseScheme for SparseBinary {
    const LAYOUT: Layout = Layout::Shared;

    fn bits(&self, dim: usize, q: usize) -> Bits {
        Bits(bits::log2_choose(dim as u64, q as u64) + VALUE_BITS)
    }

    fn largest_q(&self, dim: usize, budget: Bits) -> usize {
        bits::largest_q(dim as u64 / 2, budget, |q| self.bits(dim, q as usize)) as usize
    }

    fn compress(
        &self,
        update: &[f32],
        q: usize,
        _: &mut Stream,
        scratch: &mut Scratch,
        out: &mut SparseUpdate,
    ) {
        let Scratch { keys, extremes, .. } = scratch;
        extremes.gather(update, q, keys);
        let top = Side::of(&extremes.top, q, keys);
        let bottom = Side::of(&extremes.bottom, q, keys);
        let (kept, mean) = if top.mean >= bottom.mean { (&top, top.mean) } else { (&bottom, -bottom.mean) };
        out.values = Values::Shared(mean as f32);
        kept.write_indices(&mut out.indices);
    }

    fn best_q(&self, update: &[f32], max: usize, scratch: &mut Scratch) -> Option<usize> {
        let Scratch { keys, extremes, .. } = scratch;
        extremes.gather(update, max, keys);
        let sorted = |end: &End| {
            let mut magnitudes = end.magnitudes.clone();
            magnitudes.sort_unstable_by(|a, b| b.total_cmp(a));
            magnitudes
        };
        let [top, bottom] = [sorted(&extremes.top), sorted(&extremes.bottom)];
        let (mut sums, mut counts, mut best) = ([0.0; 2], [0usize; 2], (1, 0.0));
        for q in 1..=max {
            for (side, magnitudes) in [&top, &bottom].into_iter().enumerate() {
                if let Some(x) = magnitudes.get(q - 1) {
                    sums[side] += f64::from(*x);
                    counts[side] = q;
                }
            }
            // The side with the larger mean is sent.
            let mean = |side: usize| sums[side] / counts[side].max(1) as f64;
            let side = usize::from(mean(0) < mean(1));
            let energy = sums[side] * mean(side);
            if energy > best.1 {
                best = (q, energy);
            }
        }
        Some(best.0)
    }

    fn properties(&self, dim: usize, q: usize) -> Properties {
        // c·v²/‖Δ‖² by the audit. With c < q kept entries, these are all of their sign and ‖Δ‖² is at
        // most v²·(c² + max(q², d − c)), largest for c = 1; with q of them it is at most v²·(q² + max(q²,
        // d − q)).
        let (dim, q) = (dim as f64, q as f64);
        let one = 1.0 / (1.0 + (q * q).max(dim - 1.0));
        Properties::projection(one.min(q / (q * q + (q * q).max(dim - q))))
    }

    fn honest_norm(&self, sent: &Sent) -> RangeInclusive<f64> {
        let Some([low, high]) = shared_value(sent) else { return 0.0..=f64::INFINITY };
        let (dim, entries) = (sent.dim as f64, sent.update.indices.len());
        let count = entries as f64;
        if entries == 0 {
            // Neither side has an entry.
            return 0.0..=0.0;
        }
        let others = (sent.q as f64).min(dim - count);
        let both = (count * count + others * others).max(count * count + dim - count);
        let min_is_all = if sent.exact && entries < sent.q {
            // Every positive entry was kept.
            0.0
        } else {
            dim - others + others * others
        };
        low * count.sqrt()..=high * both.max(min_is_all).sqrt()
    }

    fn honest_compressed_norm(&self, sent: &Sent) -> RangeInclusive<f64> {
        let Some([low, high]) = shared_value(sent) else { return 0.0..=f64::INFINITY };
        let (count, q, alone) = (sent.update.indices.len() as f64, sent.q as f64, sent.alone as f64);
        if count == 0.0 || alone == 0.0 {
            return 0.0..=0.0;
        }
        if sent.q <= sent.alone {
            low * count / alone..=high * alone.sqrt()
        } else {
            // Rounding of the shares of symbols has made the part larger than the whole. Means over fewer
            // of the largest entries rise by at most q*/q. With "wire" the sent q may be on either side.
            let min = if sent.exact { low } else { low * count / q };
            min..=high * q / alone.sqrt()
        }
    }
}

/// The range of |v| before it was rounded.
fn shared_value(sent: &Sent) -> Option<[f64; 2]> {
    match sent.update.values {
        Values::Shared(value) => Some(unrounded(value)),
        Values::Each(_) | Values::Grid(_) => None,
    }
}

/// The kept entries of one sign: those above `threshold` in magnitude, and the first `ties` equal to it.
struct Side<'a> {
    end: &'a End,
    threshold: f32,
    ties: usize,
    /// Mean magnitude of the kept entries, summed in index order; 0 if there are none.
    mean: f64,
}

impl<'a> Side<'a> {
    fn of(end: &'a End, q: usize, keys: &mut Vec<u32>) -> Self {
        let kept = q.min(end.magnitudes.len());
        if kept == 0 {
            return Self { end, threshold: f32::INFINITY, ties: 0, mean: 0.0 };
        }
        keys.clear();
        // Bit patterns of positive floats have the order of the floats.
        keys.extend(end.magnitudes.iter().map(|magnitude| magnitude.to_bits()));
        let threshold = f32::from_bits(nth_largest(keys, kept - 1));
        let count = |is: fn(&f32, &f32) -> bool| end.magnitudes.iter().filter(|x| is(x, &threshold)).count();
        let ties = kept - count(f32::gt);
        let mut side = Self { end, threshold, ties, mean: 0.0 };
        // An omitted entry adds zero, which changes no sum and needs no branch. Nearly always all entries
        // equal to the threshold are kept.
        let sum: f64 = if ties == count(f32::eq) {
            end.magnitudes.iter().map(|&x| f64::from(if x >= threshold { x } else { 0.0 })).sum()
        } else {
            side.magnitudes().sum()
        };
        side.mean = sum / kept as f64;
        side
    }

    /// Whether each entry is kept, by ascending index.
    fn keeps(&self) -> impl Iterator<Item = bool> {
        let mut ties = self.ties;
        self.end.magnitudes.iter().map(move |&magnitude| {
            let tie = magnitude == self.threshold && ties > 0;
            ties -= usize::from(tie);
            tie || magnitude > self.threshold
        })
    }

    /// The magnitude of each entry, or 0 if it is not kept.
    fn magnitudes(&self) -> impl Iterator<Item = f64> {
        let magnitudes = self.end.magnitudes.iter().map(|&magnitude| f64::from(magnitude));
        magnitudes.zip(self.keeps()).map(|(magnitude, kept)| if kept { magnitude } else { 0.0 })
    }

    /// Writes the indices of the kept entries, ascending, to `indices`.
    fn write_indices(&self, indices: &mut Vec<u32>) {
        // Kept entries are hard to predict for a branch: all are written, and the index advances after a
        // kept one.
        indices.resize(self.end.indices.len(), 0);
        let mut len = 0;
        for (&index, kept) in self.end.indices.iter().zip(self.keeps()) {
            indices[len] = index;
            len += usize::from(kept);
        }
        indices.truncate(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};
    use crate::compress::sparse::tests::best_level_by_brute_force;
    use proptest::prelude::*;

    fn compress(update: &[f32], q: usize) -> SparseUpdate {
        let mut out = SparseUpdate::default();
        let mut unused = stream(0, Purpose::Test, 0, 0);
        SparseBinary {}.compress(update, q, &mut unused, &mut Scratch::default(), &mut out);
        out
    }

    /// The definition: sort the entries, take both ends, compare the means.
    fn by_sorting(update: &[f32], q: usize) -> SparseUpdate {
        let mut order: Vec<usize> = (0..update.len()).collect();
        order.sort_by(|&i, &j| update[j].total_cmp(&update[i]).then(i.cmp(&j)));
        let mut top: Vec<usize> = order.iter().copied().take(q).filter(|&i| update[i] > 0.0).collect();
        order.sort_by(|&i, &j| update[i].total_cmp(&update[j]).then(i.cmp(&j)));
        let mut bottom: Vec<usize> = order.iter().copied().take(q).filter(|&i| update[i] < 0.0).collect();
        top.sort_unstable();
        bottom.sort_unstable();
        let mean = |side: &[usize]| match side.len() {
            0 => 0.0,
            count => side.iter().map(|&i| f64::from(update[i])).sum::<f64>() / count as f64,
        };
        let (a, b) = (mean(&top), mean(&bottom));
        let (side, value) = if a >= b.abs() { (top, a) } else { (bottom, b) };
        SparseUpdate {
            indices: side.iter().map(|&i| i as u32).collect(),
            values: Values::Shared(value as f32),
        }
    }

    /// Few distinct values, so that ties, zeros and one-sided vectors are common.
    fn updates() -> impl Strategy<Value = Vec<f32>> {
        prop_oneof![
            prop::collection::vec(-1e3..1e3f32, 1..200),
            prop::collection::vec((-3i8..=3).prop_map(f32::from), 1..200),
            prop::collection::vec((0u8..=2).prop_map(|x| f32::from(x) * 1e-40), 1..50),
            prop::collection::vec(Just(-0.0f32), 1..10),
            prop::collection::vec((-300i16..=300).prop_map(f32::from), 8192..10_000),
        ]
    }

    proptest! {
        #[test]
        fn the_result_equals_that_of_sorting(update in updates(), share in 0.0..=1.0f64) {
            let q = (share * update.len() as f64 / 2.0) as usize;
            let (ours, sorted) = (compress(&update, q), by_sorting(&update, q));
            prop_assert_eq!(&ours.indices, &sorted.indices);
            prop_assert_eq!(ours.values, sorted.values);
        }

        #[test]
        fn the_norm_is_that_of_the_dense_vector_and_at_most_that_of_the_update(
            update in updates(),
            q in 0usize..100,
        ) {
            let q = q.min(update.len() / 2);
            let sent = compress(&update, q);
            let mut dense = vec![0.0f32; update.len()];
            sent.add_to(&mut dense, 1.0);
            let norm = |v: &[f32]| v.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            // One unit in the last place, which for subnormal values is an absolute amount.
            let rounding = 1e-6 * norm(&dense) + f64::from(f32::from_bits(1));
            prop_assert!((f64::from(sent.norm()) - norm(&dense)).abs() <= rounding);
            prop_assert!(norm(&dense) <= norm(&update) + rounding * (q as f64).sqrt());
            prop_assert!(sent.indices.len() <= q);
        }

        #[test]
        fn q_is_the_largest_that_fits(dim in 1usize..5000, budget in 0.0..3000.0f64) {
            let q = SparseBinary {}.largest_q(dim, Bits(budget));
            let cost = |q| SparseBinary {}.bits(dim, q).0;
            prop_assert!(q <= dim / 2);
            prop_assert!(q == 0 || cost(q) <= budget);
            prop_assert!(q == dim / 2 || budget < cost(q + 1));
        }
    }

    #[test]
    fn q_matches_a_linear_scan_over_exact_binomials() {
        // C(d,q) ≤ 2^(R−33) in integers, for whole R.
        for dim in 1..=60u128 {
            let choose = |q: u128| (0..q).fold(1u128, |product, i| product * (dim - i) / (i + 1));
            for budget in 0..=100u32 {
                let fits = |q: &u128| budget >= 33 && choose(*q) <= 1u128 << (budget - 33);
                let scan = (1..=dim / 2).filter(fits).max().unwrap_or(0);
                // At exact powers of two the logarithm may round up by one unit in the last place.
                let ours = SparseBinary {}.largest_q(dim as usize, Bits(f64::from(budget) + 1e-9)) as u128;
                assert_eq!(ours, scan, "d = {dim}, R = {budget}");
            }
        }
    }

    #[test]
    fn the_link_of_the_paper_holds_the_formulas_number_of_entries() {
        // 16 435 bits identify 2 035 indices among 203 530, and 33 more carry the value.
        let cost = SparseBinary {}.bits(203_530, 2_035).0;
        assert_eq!(cost as u64, 16_435 + 33);
        assert_eq!(SparseBinary {}.largest_q(203_530, Bits(cost)), 2_035);
        assert_eq!(SparseBinary {}.largest_q(203_530, Bits(cost - 1e-6)), 2_034);
    }

    #[test]
    fn a_budget_below_one_entry_sends_nothing() {
        assert_eq!(SparseBinary {}.largest_q(1024, Bits(42.999)), 0);
        assert_eq!(SparseBinary {}.largest_q(1024, Bits(43.001)), 1);
        assert_eq!(compress(&[1.0, -2.0], 0), SparseUpdate::default());
    }

    #[test]
    fn the_best_level_equals_brute_force_and_is_the_largest_for_one_magnitude() {
        best_level_by_brute_force(&SparseBinary {}, 40);
        assert_eq!(SparseBinary {}.best_q(&[1.5; 12], 6, &mut Scratch::default()), Some(6));
    }
}
