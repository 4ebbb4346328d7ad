//! Sparse ternary compression: the signs of the largest entries and one magnitude.
//!
//! # The number of entries that fit
//! r(q) = log2 C(d,q) + q + 32 does not rise all the way to q = d. As
//!
//! > r(q+1) − r(q) = 1 + log2((d−q)/(q+1)) ≥ 0  if and only if  3·q ≤ 2·d − 1,
//!
//! it rises up to Q = ⌈2d/3⌉, where it is about d·log2 3 bits, and falls from there to r(d) = d + 32 bits for
//! the signs of everything. The scheme uses 0 ≤ q ≤ Q only. On that range "the largest q that fits" has one
//! meaning, r(q) ≤ R < r(q+1) for all q < Q, and an update with fewer entries than q takes fewer bits. (r(Q)
//! = r(Q−1) where 3·Q = 2·d + 2; Q is then the larger of two q that cost the same.)
//!
//! # Audit
//! Let x₁ ≥ x₂ ≥ … ≥ x_d ≥ 0 be the magnitudes of an honest device's update v, S_k the sum of the first k. If
//! c ≥ 1 entries ±μ arrive, then x_c > 0 and S_c = c·μ. There is no further information if c = q, or if the
//! device may have had to send less than q (`compress.budget = "wire"`). If it sends exactly q whenever it
//! has q entries that are not zero, c < q means that the received vector is **complete**: x_k = 0 for all k >
//! c. If nothing arrives of a budget for q ≥ 1, v = 0.
//!
//! **‖v‖ reported.** Σ x² ≥ c·μ² over the kept entries by Cauchy–Schwarz, with equality if all are μ. From
//! above: let m = x_c. The squares of the kept entries are largest if one of them takes all that the others
//! leave above m, and each of the d − c others is at most m, so that ‖v‖² ≤ (c·μ − (c−1)·m)² + (c−1)·m² +
//! (d−c)·m². This is convex in m on 0 ≤ m ≤ μ, hence largest at an end: c²·μ² at m = 0 (one entry dominates),
//! d·μ² at m = μ (all are equal):
//!
//! > μ·√c ≤ ‖v‖ ≤ μ·√max(c², d), and ‖v‖ ≤ c·μ if complete.
//!
//! **‖v̂(q\*)‖ reported.** It is S_k/√k, k being the number of entries that are not zero, but at most q\*.
//! With p = min(q\*, d):
//!
//! - p ≤ c: k = p. Means over fewer of the largest entries are not smaller, and S_p ≤ S_c:
//!   μ·√p ≤ S_p/√p ≤ c·μ/√p.
//! - p > c, complete: k = c and ‖v̂(q\*)‖ = ‖v̂‖ to the bit.
//! - p > c otherwise: c ≤ k ≤ p. S_k ≥ S_c gives S_k/√k ≥ c·μ/√p; x_k ≤ μ beyond c gives S_k ≤ k·μ, and
//!   S_k/√k ≤ μ·√p.
//!
//! > ‖v̂(q\*)‖ lies between c·μ/√p and μ·√p, in either order, and is ‖v̂‖ if complete and p > c.
//!
//! For p = c the two are the same number, ‖v̂‖ to the bit; so a device that sends exactly q = q\* can report
//! nothing else. Otherwise the room above the truth is a factor of max(p/c, c/p) at most. Each of these ends
//! is attained, or approached by entries that tend to zero: by c equal entries among zeros, by all entries
//! equal, by one large entry among tiny ones, by c equal entries among tiny ones. No bound that follows from
//! c, μ, q, q\* and d is tighter.

use super::audit::{IMPOSSIBLE, Sent, TINY, unrounded};
use super::top_k::keep_largest;
use super::wire::Layout;
use super::{Compressor, Properties, Scratch, SparseScheme, SparseUpdate, Values, bits};
use crate::base::rng::Stream;
use crate::base::units::Bits;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use std::ops::RangeInclusive;

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Compressor> = Entry::of::<Stc>();

/// Keeps the q entries of largest magnitude and sends the sign of each and their mean magnitude μ.
///
/// - Bits: `r(q) = log2 C(d,q) + q + 32`: the indices, a sign for each entry, and μ. 0 ≤ q ≤ ⌈2d/3⌉, the
///   range on which r rises.
/// - Value: a kept entry arrives as +μ or −μ, μ = Σ|v_i|/c over the c kept entries. Ties on the boundary go
///   to the lower index. Zeros are never sent: an update with fewer than q other entries sends c < q.
///
/// Source: Sattler et al., *Robust and Communication-Efficient Federated Learning from Non-IID Data* (2019),
/// arXiv 1903.02891, algorithm 1, with exactly q entries where others are equal to the last one.
///
/// Invariants: v̂ is the orthogonal projection of v onto the line through v̂, ⟨v, v̂⟩ = ‖v̂‖² = c·μ², so that
/// ‖v − v̂‖² = (1 − δ)·‖v‖² with δ = c·μ²/‖v‖²; no vector with q entries of one magnitude is nearer to v;
/// v̂ of a·v is a·v̂; r(q) ≤ R < r(q+1) for the q < ⌈2d/3⌉ chosen at budget R.
///
/// ```
/// use fedlink::compress::{Scratch, SparseScheme, SparseUpdate, Stc, Values};
/// use fedlink::base::rng::{Purpose, stream};
/// let mut sent = SparseUpdate::default();
/// let mut unused = stream(0, Purpose::Sparsify, 0, 0); // nothing is random here
/// Stc {}.compress(&[0.5, -4.0, 1.5, 0.0, 2.0], 2, &mut unused, &mut Scratch::default(), &mut sent);
/// assert_eq!(sent, SparseUpdate { indices: vec![1, 4], values: Values::Each(vec![-3.0, 3.0]) });
/// ```
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Stc {}

impl PartConfig for Stc {
    type Part = dyn Compressor;
    const NAME: &'static str = "stc";
    const FAMILY: &'static str = "largest";
    const MEANING: &'static str =
        "sparse ternary compression: the indices and signs of the q largest entries and one magnitude";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Compressor>, ConfigError> {
        Ok(Box::new(self))
    }
}

/// Bits for μ.
const MAGNITUDE_BITS: f64 = 32.0;

/// Q = ⌈2d/3⌉, up to which r(q) rises.
pub(super) fn max_q(dim: usize) -> usize {
    Layout::Signs.max_entries(dim)
}

/// r(q) = log2 C(d,q) + q + 32: indices, signs and one magnitude.
pub(super) fn ternary_bits(dim: usize, q: usize) -> Bits {
    Bits(bits::log2_choose(dim as u64, q as u64) + q as f64 + MAGNITUDE_BITS)
}

/// The largest q ≤ Q whose [`ternary_bits`] are within `budget`.
pub(super) fn largest_ternary_q(dim: usize, budget: Bits) -> usize {
    // Where r(Q) = r(Q−1), rounding may make the second the larger, and a search by halves miss Q.
    if ternary_bits(dim, max_q(dim)) <= budget {
        return max_q(dim);
    }
    // 1 ≤ C(d,q) ≤ d^q bounds r(q) on both sides; one more or less covers rounding. A negative or
    // undefined number becomes 0 in the conversion, an infinite one the largest integer.
    let left = budget.0 - MAGNITUDE_BITS;
    let max = (left as u64).saturating_add(1).min(max_q(dim) as u64);
    let costliest = 1.0 + libm::log2(dim.max(1) as f64);
    let min = ((left / costliest) as u64).saturating_sub(1).min(max);
    bits::largest_q_between(min, max, budget, |q| ternary_bits(dim, q as usize)) as usize
}

impl SparseScheme for Stc {
    const LAYOUT: Layout = Layout::Signs;

    fn bits(&self, dim: usize, q: usize) -> Bits {
        ternary_bits(dim, q)
    }

    fn largest_q(&self, dim: usize, budget: Bits) -> usize {
        largest_ternary_q(dim, budget)
    }

    fn compress(
        &self,
        update: &[f32],
        q: usize,
        _: &mut Stream,
        scratch: &mut Scratch,
        out: &mut SparseUpdate,
    ) {
        keep_largest(update, q, scratch, out);
        let Values::Each(values) = &mut out.values else { return };
        // In index order and double precision. The mean of positive numbers does not round to zero.
        let sum: f64 = values.iter().map(|value| f64::from(value.abs())).sum();
        let magnitude = (sum / values.len() as f64) as f32;
        values.iter_mut().for_each(|value| *value = magnitude.copysign(*value));
    }

    fn best_q(&self, update: &[f32], max: usize, scratch: &mut Scratch) -> Option<usize> {
        let mut kept = SparseUpdate::default();
        keep_largest(update, max, scratch, &mut kept);
        let mut magnitudes: Vec<f32> = match kept.values {
            Values::Each(values) => values.iter().map(|value| value.abs()).collect(),
            Values::Shared(_) | Values::Grid(_) => Vec::new(),
        };
        magnitudes.sort_unstable_by(|a, b| b.total_cmp(a));
        Some(best_prefix(&magnitudes).0)
    }

    fn properties(&self, dim: usize, q: usize) -> Properties {
        // By the audit's ‖v‖² ≤ μ²·max(c², d), with c = q; ‖v‖² ≤ (c·μ)² where fewer are all there are.
        Properties::projection((1.0 / q as f64).min(q as f64 / dim as f64))
    }

    fn honest_norm(&self, sent: &Sent) -> RangeInclusive<f64> {
        let entries = sent.update.indices.len();
        if entries == 0 {
            return 0.0..=0.0;
        }
        let Some([low, high]) = magnitude(sent) else { return IMPOSSIBLE };
        let count = entries as f64;
        let max = if is_complete(sent) { count } else { count.max((sent.dim as f64).sqrt()) };
        low * count.sqrt()..=high * max
    }

    fn honest_compressed_norm(&self, sent: &Sent) -> RangeInclusive<f64> {
        let (entries, alone) = (sent.update.indices.len(), sent.alone.min(sent.dim));
        if entries == 0 {
            return 0.0..=0.0;
        }
        let Some([low, high]) = magnitude(sent) else { return IMPOSSIBLE };
        if alone == 0 {
            return 0.0..=0.0;
        }
        if alone == entries || alone > entries && is_complete(sent) {
            let norm = f64::from(sent.update.norm());
            return norm..=norm;
        }
        let root = (alone as f64).sqrt();
        let (equal, uneven) = (root, entries as f64 / root);
        // The magnitude that was reported on was rounded too, for each of up to q* entries.
        let rounded = TINY * root;
        (low * equal.min(uneven) - rounded).max(0.0)..=high * equal.max(uneven) + rounded
    }
}

/// The number of the descending `magnitudes` that have the most energy S²/q with one value for all, S being
/// their sum; the smallest of equals, and at least 1. And that energy.
///
/// A further magnitude x raises S²/q if and only if x > S·(√(1 + 1/q) − 1), about half of the mean S/q.
pub(super) fn best_prefix(magnitudes: &[f32]) -> (usize, f64) {
    let (mut sum, mut best) = (0.0, (1, 0.0));
    for (q, &x) in (1usize..).zip(magnitudes) {
        sum += f64::from(x);
        let energy = sum * sum / q as f64;
        if energy > best.1 {
            best = (q, energy);
        }
    }
    best
}

/// Whether every entry that is not zero was sent.
pub(super) fn is_complete(sent: &Sent) -> bool {
    sent.exact && sent.update.indices.len() < sent.q
}

/// The magnitude of all entries as it can have been before it was rounded; none if no honest device sends it.
pub(super) fn magnitude(sent: &Sent) -> Option<[f64; 2]> {
    let Values::Each(values) = &sent.update.values else { return None };
    let magnitude = values.first()?.abs();
    let sendable = magnitude.is_finite() && magnitude > 0.0 && values.len() <= sent.q;
    (sendable && values.iter().all(|value| value.abs() == magnitude)).then(|| unrounded(magnitude))
}

#[cfg(test)]
mod tests;
