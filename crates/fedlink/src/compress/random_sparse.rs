//! Random sparsification: the scheme of the convergence analysis.
//!
//! # Audit
//! A random part gives a lower bound on the whole only: ‖Δ̂‖ ≤ ‖Δ‖. A device draws the same indices for
//! its report and for its transmission, and those of q are among those of q*, so ‖Δ̂(q)‖ ≤ ‖Δ̂(q*)‖ as
//! well. There is no bound on an inflated report.

use super::audit::{ROUNDING, Sent};
use super::wire::Layout;
use super::{Compressor, Properties, Scratch, SparseScheme, SparseUpdate, Values, bits};
use crate::base::kernels::norm;
use crate::base::rng::Stream;
use crate::base::units::Bits;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use std::ops::RangeInclusive;

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Compressor> = Entry::of::<RandomSparse>();

/// Keeps q entries chosen uniformly at random and sends the value of each.
///
/// - Bits: `r(q) = log2 C(d,q) + 33·q`: the indices, and 32 bits and a sign for each value.
/// - Value: a kept entry is unchanged. The analysis has 32 bits of magnitude beside the sign and
///   specifies no scale for them. An `f32` is 32 bits with its sign, so it fits, and a uniform grid of
///   2³² steps up to the largest kept magnitude has steps below the resolution of an `f32` for all
///   entries within a factor 2⁸ of it. The code therefore computes the scheme without quantization error,
///   as the analysis does.
/// - ρ = q/d. Over the random indices E\[Δ̂\] = ρ·Δ and E‖Δ̂‖² = ρ·‖Δ‖²: the update shrinks by ρ and is
///   not scaled back up.
///
/// Source: section V of the paper (Lemma 1). Invariants: exactly min(q, d) indices, ascending, each kept
/// entry unchanged; r(q) ≤ R < r(q+1) for the q chosen at budget R.
///
/// ```
/// use fedlink::compress::{RandomSparse, Scratch, SparseScheme, SparseUpdate};
/// use fedlink::base::rng::{Purpose, stream};
/// let mut sent = SparseUpdate::default();
/// let mut rng = stream(0, Purpose::Sparsify, 0, 0);
/// RandomSparse {}.compress(&[0.5, -4.0, 1.5, 0.0, -2.0], 2, &mut rng, &mut Scratch::default(), &mut sent);
/// assert_eq!(sent.indices.len(), 2);
/// ```
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct RandomSparse {}

impl PartConfig for RandomSparse {
    type Part = dyn Compressor;
    const NAME: &'static str = "random-sparse";
    const FAMILY: &'static str = "random";
    const MEANING: &'static str =
        "random sparsification: the indices of q random entries and a value for each";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Compressor>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl SparseScheme for RandomSparse {
    const LAYOUT: Layout = Layout::Each;
    const WHOLE: bool = true;

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
        rng: &mut Stream,
        scratch: &mut Scratch,
        out: &mut SparseUpdate,
    ) {
        let q = q.min(update.len());
        let mut values = out.take_values();
        if q == update.len() {
            // Every draw of all indices is the same, so a budget for every entry needs no draw and no
            // sort.
            out.fill_indices(q);
            values.extend_from_slice(update);
        } else {
            out.indices.clear();
            scratch.keys.clear();
            scratch.keys.extend(0..update.len() as u32);
            rng.shuffle_prefix(&mut scratch.keys, q);
            out.indices.extend_from_slice(&scratch.keys[..q]);
            out.indices.sort_unstable();
            values.extend(out.indices.iter().map(|&i| update[i as usize]));
        }
        out.values = Values::Each(values);
    }

    fn properties(&self, dim: usize, q: usize) -> Properties {
        Properties::projection(q.min(dim) as f64 / dim as f64)
    }

    fn honest_norm(&self, sent: &Sent) -> RangeInclusive<f64> {
        norm_of_more(sent, sent.dim)
    }

    fn honest_compressed_norm(&self, sent: &Sent) -> RangeInclusive<f64> {
        norm_of_more(sent, sent.alone)
    }
}

/// The norm of the first `max` random entries; the sent ones are a part of them.
fn norm_of_more(sent: &Sent, max: usize) -> RangeInclusive<f64> {
    let Values::Each(values) = &sent.update.values else { return 0.0..=f64::INFINITY };
    let norm = norm(values);
    let (low, high) = (norm * (1.0 - ROUNDING), norm * (1.0 + ROUNDING));
    if max < sent.q {
        // Rounding of the shares of symbols has made the part larger than the whole.
        return if sent.exact { 0.0..=high } else { 0.0..=f64::INFINITY };
    }
    let all_were_sent = max <= values.len();
    low..=if all_were_sent { high } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::super::{Context, Encoded};
    use super::*;
    use crate::base::rng::{Purpose, stream};
    use proptest::prelude::*;

    fn compress(update: &[f32], q: usize, round: u64) -> SparseUpdate {
        let mut out = SparseUpdate::default();
        let mut rng = stream(3, Purpose::Test, round, 0);
        RandomSparse {}.compress(update, q, &mut rng, &mut Scratch::default(), &mut out);
        out
    }

    fn dense(sent: &SparseUpdate, dim: usize) -> Vec<f32> {
        let mut dense = vec![0.0; dim];
        sent.add_to(&mut dense, 1.0);
        dense
    }

    #[test]
    fn a_budget_for_every_entry_sends_the_whole_update() {
        let update = [4.0f32, -1.0, 0.0, -0.0, f32::MIN_POSITIVE];
        for q in [5, 6, usize::MAX] {
            let sent = compress(&update, q, 0);
            assert_eq!(sent.indices, [0, 1, 2, 3, 4]);
            let Values::Each(values) = sent.values else { panic!("one value for each index") };
            assert!(values.iter().zip(&update).all(|(sent, own)| sent.to_bits() == own.to_bits()));
        }
    }

    #[test]
    fn moving_a_whole_update_equals_copying_it() {
        let update: Vec<f32> = (0..40).map(|i| i as f32 - 17.5).collect();
        let bits = RandomSparse {}.bits(40, 40);
        let mut moved_to = Encoded::default();
        // With no memory, with memory of an update of equal length, and of a shorter one.
        for budget in [bits, bits, Bits(100.0), bits] {
            let context = Context::new(40, budget);
            let (mut scratch, mut copied) = (Scratch::default(), Encoded::default());
            let mut rng = stream(3, Purpose::Test, 0, 0);
            let spent = RandomSparse {}.encode(&update, &context, &mut rng, &mut scratch, &mut copied);
            let mut moved = update.clone();
            let whole = RandomSparse {}.encode_whole(&mut moved, &context, &mut moved_to);
            if budget == bits {
                assert_eq!((whole, moved.len()), (Some(spent), 40));
                assert_eq!(moved_to, copied);
            } else {
                assert_eq!((whole, moved), (None, update.clone()));
                moved_to = copied;
            }
        }
        let empty = RandomSparse {}.encode_whole(&mut Vec::new(), &Context::new(0, bits), &mut moved_to);
        assert_eq!(empty, None);
    }

    #[test]
    fn lemma_1_the_mean_is_rho_g_and_the_mean_square_norm_is_rho_g_squared() {
        let update = [4.0f32, -1.0, 0.5, 0.0, -3.0, 2.0, 1e-3, 7.0, -0.25, 1.0];
        let (dim, draws) = (update.len() as f64, 40_000u32);
        let square = |x: f32| f64::from(x).powi(2);
        for q in [1usize, 3, 9, 10] {
            let rho = q as f64 / dim;
            let mut mean = vec![0.0; update.len()];
            let (mut norm, mut norm_square) = (0.0, 0.0);
            for round in 0..draws {
                let sent = dense(&compress(&update, q, u64::from(round)), update.len());
                mean.iter_mut().zip(&sent).for_each(|(sum, &x)| *sum += f64::from(x) / f64::from(draws));
                let size: f64 = sent.iter().map(|&x| square(x)).sum();
                norm += size / f64::from(draws);
                norm_square += size * size / f64::from(draws);
            }
            // Each entry is g·Bernoulli(ρ): five standard errors of its mean over the draws (plus rounding).
            for (index, &g) in update.iter().enumerate() {
                let g = f64::from(g);
                let slack = 5.0 * g.abs() * (rho * (1.0 - rho) / f64::from(draws)).sqrt() + 1e-9;
                assert!((mean[index] - rho * g).abs() < slack, "q = {q}, entry {index}: {}", mean[index]);
            }
            let truth = rho * update.iter().map(|&x| square(x)).sum::<f64>();
            let slack = 5.0 * ((norm_square - norm * norm).max(0.0) / f64::from(draws)).sqrt() + 1e-9;
            assert!((norm - truth).abs() < slack, "q = {q}: {norm} is not within {slack} of {truth}");
        }
    }

    #[test]
    fn every_pair_of_indices_is_equally_likely() {
        // 10 pairs out of 5 indices: χ² on 9 degrees of freedom, 99.99 % point 33.7.
        let mut counts = std::collections::BTreeMap::new();
        let update = [1.0; 5];
        (0..20_000).for_each(|t| *counts.entry(compress(&update, 2, t).indices).or_insert(0u32) += 1);
        assert_eq!(counts.len(), 10);
        let chi2: f64 = counts.values().map(|&c| (f64::from(c) - 2000.0).powi(2) / 2000.0).sum();
        assert!(chi2 < 33.7, "χ² = {chi2}");
    }

    #[test]
    fn the_cost_rises_with_every_entry_up_to_the_largest_dimension() {
        // The step r(q+1) − r(q) is least at q = d−1, where it is 33 − log2 d.
        for dim in [1usize, 2, 7, 203_530, (1 << 31) - 1] {
            let last = (RandomSparse {}.bits(dim, dim).0 - RandomSparse {}.bits(dim, dim - 1).0)
                - (33.0 - (dim as f64).log2());
            assert!(last.abs() < 1e-4, "d = {dim}: {last}");
        }
        let costs: Vec<f64> = (0..=5000).map(|q| RandomSparse {}.bits(5000, q).0).collect();
        assert!(costs.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn q_is_right_at_the_ends_of_the_range() {
        let dim = 1024; // r(1) = 10 + 33 bits, r(d) = 33·d bits
        assert_eq!(RandomSparse {}.largest_q(dim, Bits(42.999)), 0);
        assert_eq!(RandomSparse {}.largest_q(dim, Bits(43.001)), 1);
        assert_eq!(RandomSparse {}.largest_q(dim, Bits(33.0 * 1024.0)), 1024);
        assert_eq!(RandomSparse {}.largest_q(dim, Bits(f64::INFINITY)), 1024);
        assert_eq!(RandomSparse {}.largest_q(dim, Bits(f64::NAN)), 0);
        assert_eq!(RandomSparse {}.largest_q(dim, Bits(-1.0)), 0);
        assert_eq!(RandomSparse {}.largest_q(0, Bits(100.0)), 0);
    }

    proptest! {
        #[test]
        fn q_is_the_largest_that_fits(dim in 1usize..3000, share in 0.0..1.2f64) {
            let budget = share * 33.0 * dim as f64;
            let q = RandomSparse {}.largest_q(dim, Bits(budget));
            let cost = |q| RandomSparse {}.bits(dim, q).0;
            let scan = (1..=dim).take_while(|&q| cost(q) <= budget).last().unwrap_or(0);
            prop_assert_eq!(q, scan);
        }

        #[test]
        fn kept_entries_are_unchanged_and_the_norm_is_that_of_the_dense_vector(
            update in prop::collection::vec(-1e3..1e3f32, 0..200), q in 0usize..250, round in 0..1000u64,
        ) {
            let sent = compress(&update, q, round);
            prop_assert_eq!(sent.indices.len(), q.min(update.len()));
            prop_assert!(sent.indices.windows(2).all(|pair| pair[0] < pair[1]));
            let dense = dense(&sent, update.len());
            for (i, &x) in dense.iter().enumerate() {
                let kept = sent.indices.binary_search(&(i as u32)).is_ok();
                prop_assert_eq!(x, if kept { update[i] } else { 0.0 });
            }
            let norm = dense.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            prop_assert!((f64::from(sent.norm()) - norm).abs() <= 1e-6 * norm);
        }

        #[test]
        fn memory_of_an_earlier_update_does_not_affect_the_result(
            update in prop::collection::vec(-1.0..1.0f32, 1..50), q in 0usize..50,
        ) {
            let (mut scratch, mut reused) = (Scratch::default(), SparseUpdate::default());
            let mut before = stream(3, Purpose::Test, 77, 0);
            RandomSparse {}.compress(&[9.0; 60], 40, &mut before, &mut scratch, &mut reused);
            let mut rng = stream(3, Purpose::Test, 5, 0);
            RandomSparse {}.compress(&update, q, &mut rng, &mut scratch, &mut reused);
            prop_assert_eq!(reused, compress(&update, q, 5));
        }
    }
}
