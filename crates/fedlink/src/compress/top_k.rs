//! Top-k sparsification: the largest entries, unchanged.
//!
//! # Audit
//! The omitted entries are not larger than the least kept magnitude m: ‖Δ̂‖² ≤ ‖Δ‖² ≤ ‖Δ̂‖² + (d − c)·m²,
//! and the same with q* for d if ‖Δ̂(q*)‖ is reported. Zeros are never sent, so fewer entries than q are
//! all non-zero entries.

use super::audit::{ROUNDING, Sent};
use super::coded_top_k::CodedTopK;
use super::value_code::Code;
use super::wire::Layout;
use super::{Compressor, Properties, Scratch, SparseScheme, SparseUpdate, Values, bits};
use crate::base::kernels::norm;
use crate::base::rng::Stream;
use crate::base::units::Bits;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Compressor> = Entry::of::<TopKConfig>();

/// `[compress.top-k]`: the code of the value of a kept entry.
///
/// | `value_bits` | a value arrives | r(q) beside log2 C(d,q) |
/// |---|---|---|
/// | 32 | unchanged: [`TopK`] | 33·q |
/// | 16 | in half precision, with a common power of two that keeps the largest in range | 17·q |
/// | "levels" | as one of L magnitudes, L = `levels`, each the mean of the values nearest to it | q·(1 + log2 L) + 32·L |
/// | "exponent" | as a power of two, at random with the right mean | 9·q |
///
/// With levels, Lloyd's iteration begins with equal counts; L = 1 would be sparse ternary compression.
/// They are a projection. Exponents are natural compression (Horváth et al., 2019, arXiv 1905.10988) of
/// the kept entries: given the kept indices, unbiased with E(v̂_i − v_i)² ≤ v_i²/8.
#[keys]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopKConfig {
    /// code of the value of a kept entry
    #[key(default = ValueBits::default(), allowed = "32 | 16 | \"levels\" | \"exponent\"")]
    pub value_bits: ValueBits,
    /// L, magnitudes that values are rounded to, with "levels"
    #[key(default = 2, allowed = "2 | 4")]
    pub levels: u64,
}

/// The code of the value of a kept entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be 32, 16, \"levels\" or \"exponent\"")]
#[non_exhaustive]
pub enum ValueBits {
    /// A number of bits, 32 or 16.
    Width(u64),
    /// By a code.
    Code(ValueCode),
}

impl Default for ValueBits {
    fn default() -> Self {
        Self::Width(32)
    }
}

/// A code for values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ValueCode {
    /// A sign and one of few magnitudes.
    Levels,
    /// A sign and a power of two.
    Exponent,
}

impl PartConfig for TopKConfig {
    type Part = dyn Compressor;
    const NAME: &'static str = "top-k";
    const FAMILY: &'static str = "largest";
    const MEANING: &'static str = "the indices of the q largest entries and a value for each";

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        if ![2, 4].contains(&self.levels) {
            return Err(ConfigError::new("levels", format!("is {}, but must be 2 or 4", self.levels)));
        }
        if self.levels != Self::default().levels && self.value_bits != ValueBits::Code(ValueCode::Levels) {
            let problem = "has no effect without value_bits = \"levels\"; leave it out";
            return Err(ConfigError::new("levels", problem));
        }
        match self.value_bits {
            ValueBits::Width(32 | 16) | ValueBits::Code(_) => Ok(()),
            ValueBits::Width(bits) => {
                let problem = format!("is {bits}, but must be 32, 16, \"levels\" or \"exponent\"");
                Err(ConfigError::new("value_bits", problem))
            }
        }
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Compressor>, ConfigError> {
        let code = match self.value_bits {
            ValueBits::Width(16) => Code::Half,
            ValueBits::Width(_) => return Ok(Box::new(TopK {})),
            ValueBits::Code(ValueCode::Levels) => Code::Levels(self.levels as usize),
            ValueBits::Code(ValueCode::Exponent) => Code::Exponent,
        };
        Ok(Box::new(CodedTopK { code }))
    }
}

/// Keeps the q entries of largest magnitude and sends the value of each.
///
/// - Bits: `r(q) = log2 C(d,q) + 33·q`, the count of [`RandomSparse`](super::RandomSparse): the indices, and
///   32 bits and a sign for each value. An `f32` has its sign among its 32 bits; the count is kept so that
///   schemes compare.
/// - Value: a kept entry is unchanged. Ties on the boundary go to the lower index. Zeros are never sent:
///   an update with fewer than q other entries sends fewer.
///
/// Source: Aji and Heafield, *Sparse Communication for Distributed Gradient Descent* (2017), with the
/// threshold that keeps exactly q. Invariants: at most q entries, each unchanged and at least as large as
/// every omitted one; ‖Δ − Δ̂‖ is the minimum for q entries; r(q) ≤ R < r(q+1) for the q chosen at budget
/// R.
///
/// ```
/// use fedlink::compress::{Scratch, SparseScheme, SparseUpdate, TopK, Values};
/// use fedlink::base::rng::{Purpose, stream};
/// let mut sent = SparseUpdate::default();
/// let mut unused = stream(0, Purpose::Sparsify, 0, 0); // it draws no random numbers
/// TopK {}.compress(&[0.5, -4.0, 1.5, 0.0, -2.0], 2, &mut unused, &mut Scratch::default(), &mut sent);
/// assert_eq!(sent, SparseUpdate { indices: vec![1, 4], values: Values::Each(vec![-4.0, -2.0]) });
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TopK {}

impl SparseScheme for TopK {
    const LAYOUT: Layout = Layout::Each;

    fn bits(&self, dim: usize, q: usize) -> Bits {
        bits::with_values(dim, q)
    }

    fn largest_q(&self, dim: usize, budget: Bits) -> usize {
        bits::largest_q_with_values(dim, budget)
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
    }

    fn properties(&self, dim: usize, q: usize) -> Properties {
        // The mean of the q largest squares is at least that of all.
        Properties::projection(q.min(dim) as f64 / dim as f64)
    }

    fn honest_norm(&self, sent: &Sent) -> RangeInclusive<f64> {
        norm_of_the_largest(sent, sent.dim)
    }

    fn honest_compressed_norm(&self, sent: &Sent) -> RangeInclusive<f64> {
        norm_of_the_largest(sent, sent.alone)
    }
}

/// Writes the `q` entries of `update` of largest magnitude to `out`, unchanged; ties on the boundary go
/// to the lower index, and zeros are never among them.
pub(super) fn keep_largest(update: &[f32], q: usize, scratch: &mut Scratch, out: &mut SparseUpdate) {
    let mut values = out.take_values();
    out.indices.clear();
    // Bit patterns of positive floats have the order of the floats.
    let keys = &mut scratch.keys;
    keys.clear();
    keys.extend(update.iter().map(|x| x.abs().to_bits()).filter(|&key| key > 0));
    let kept = q.min(keys.len());
    if kept > 0 {
        let (above, &mut boundary, _) = keys.select_nth_unstable_by(kept - 1, |a, b| b.cmp(a));
        let mut ties = kept - above.iter().filter(|&&key| key > boundary).count();
        for (i, &x) in (0u32..).zip(update) {
            let key = x.abs().to_bits();
            if key > boundary || (key == boundary && ties > 0) {
                ties -= usize::from(key == boundary);
                out.indices.push(i);
                values.push(x);
            }
        }
    }
    out.values = Values::Each(values);
}

/// The norm of the `max` largest entries; the sent ones are a part of them.
fn norm_of_the_largest(sent: &Sent, max: usize) -> RangeInclusive<f64> {
    let Values::Each(values) = &sent.update.values else { return 0.0..=f64::INFINITY };
    let (norm, count) = (norm(values), values.len());
    let (low, high) = (norm * (1.0 - ROUNDING), norm * (1.0 + ROUNDING));
    if max < sent.q {
        // Rounding of the shares of symbols has made the part larger than the whole.
        return if sent.exact { 0.0..=high } else { 0.0..=f64::INFINITY };
    }
    if sent.exact && count < sent.q {
        // All entries of a short update.
        return low..=high;
    }
    let min = values.iter().map(|value| f64::from(value.abs())).fold(f64::INFINITY, f64::min);
    let missing = max.saturating_sub(count) as f64;
    let left_out = if count == 0 { 0.0 } else { missing * min * min };
    low..=(high * high + left_out).sqrt() * (1.0 + ROUNDING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};
    use proptest::prelude::*;

    fn compress(update: &[f32], q: usize) -> SparseUpdate {
        // Memory of an earlier update must not affect the result.
        let (mut scratch, mut out) = (Scratch::default(), SparseUpdate::default());
        for update in [&[9.0; 60], update] {
            TopK {}.compress(update, q, &mut stream(0, Purpose::Test, 0, 0), &mut scratch, &mut out);
        }
        out
    }

    /// Few distinct values, so that ties, zeros and both signs are common.
    fn updates() -> impl Strategy<Value = Vec<f32>> {
        prop_oneof![
            prop::collection::vec(-1e3..1e3f32, 0..200),
            prop::collection::vec((-3i8..=3).prop_map(f32::from), 0..200),
            prop::collection::vec((-2i8..=2).prop_map(|x| f32::from(x) * 1e-40), 0..50),
            prop::collection::vec(Just(-0.0f32), 0..10),
        ]
    }

    proptest! {
        #[test]
        fn the_result_equals_that_of_sorting(update in updates(), q in 0usize..250) {
            let mut order: Vec<usize> = (0..update.len()).filter(|&i| update[i] != 0.0).collect();
            order.sort_by(|&i, &j| update[j].abs().total_cmp(&update[i].abs()).then(i.cmp(&j)));
            order.truncate(q);
            order.sort_unstable();
            let values = order.iter().map(|&i| update[i]).collect();
            let indices = order.iter().map(|&i| i as u32).collect();
            prop_assert_eq!(compress(&update, q), SparseUpdate { indices, values: Values::Each(values) });
        }

        #[test]
        fn no_other_choice_of_q_entries_has_a_smaller_error(
            update in prop::collection::vec(-9.0..9.0f32, 1..9),
        ) {
            let square = |x: &f32| f64::from(*x).powi(2);
            let all: f64 = update.iter().map(square).sum();
            for q in 0..=update.len() {
                let Values::Each(kept) = compress(&update, q).values else { panic!("one value each") };
                let ours = all - kept.iter().map(square).sum::<f64>();
                for choice in 0u32..1 << update.len() {
                    if choice.count_ones() as usize == q {
                        let chosen = update.iter().enumerate().filter(|(i, _)| choice >> i & 1 == 1);
                        let theirs = all - chosen.map(|(_, x)| square(x)).sum::<f64>();
                        prop_assert!(ours <= theirs + 1e-9 * all);
                    }
                }
            }
        }
    }
}
