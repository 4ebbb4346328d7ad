//! Budgeted ternary quantization: random entries, each with a sign, and one magnitude; unbiased.
//!
//! # The choice of λ
//! An entry is sent as λ·sgn v_i with probability |v_i|/λ. Let U_i be uniform on (0, 1\] and p_i =
//! |v_i|/U_i its priority: an entry is sent if p_i ≥ λ. The smaller λ, the more entries are sent. If q of
//! them fit, the smallest possible λ is the (q+1)-th largest priority τ; and λ must be at least s =
//! max|v_i|, or entries above it would be too small on arrival:
//!
//! > λ = max(s, τ), and the entries among the q of largest priority with p_i ≥ s are sent.
//!
//! λ = s is TernGrad. **This is exactly unbiased**, although λ depends on the draw: let τ_i be the q-th
//! largest priority among the *other* entries. Entry i is sent if and only if p_i > τ_i and p_i ≥ s, and
//! then τ = τ_i. So given the others it arrives as max(s, τ_i)·sgn v_i with probability |v_i|/max(s,
//! τ_i). (The argument is that of priority sampling, Duffield, Lund and Thorup, 2007, which sends
//! max(|v_i|, τ).)
//!
//! # Variance
//! E‖v̂‖² = Σ|v_i|·E max(s, τ_i) ≤ s·‖v‖₁ + Σ|v_i|·E τ_i. At least q ≥ 2 of the other priorities exceed x
//! with probability at most E C(N,2)/C(q,2) ≤ (‖v‖₁/x)²/(q·(q−1)), where N is the number that do, so that
//! E τ_i ≤ ∫min(1, a²/x²)dx = 2·a with a = ‖v‖₁/√(q·(q−1)) < ‖v‖₁/(q−1). With s·‖v‖₁ ≤ ½(1+√d)·‖v‖² (the
//! maximum is at one large entry among equal ones) and ‖v‖₁² ≤ d·‖v‖²,
//!
//! > ω = ½(1 + √d) + 2·d/√(q·(q−1)) − 1 for q ≥ 2. For q = 1 the variance is infinite if two entries are not
//! > 0.
//!
//! # Audit
//! Let c entries ±λ arrive. All magnitudes are at most λ, so **‖v‖ ≤ λ·√d**. Fewer than q arrive only if
//! λ = s: then ‖v‖ ≥ λ, and an update without entries arrives only if v = 0 (the largest entry always has
//! p ≥ s).
//!
//! A device draws the same U for its report and for its transmission. With q\* ≥ q: λ\* ≤ λ and c\* ≤
//! q\*, so ‖v̂(q\*)‖ ≤ λ·√q\*; and if c < q, τ\* ≤ τ ≤ s, so it is ‖v̂‖ to the bit. With q\* < q: if c >
//! q\*, then c\* = q\* and λ\* ≥ λ, so ‖v̂(q\*)‖ ≥ λ·√q\*; if c ≤ q\* < q, then c < q and no more than c
//! priorities reach s, so it is ‖v̂‖ to the bit. If the device may have had to send less than q, only the
//! bounds for every q remain.

use super::audit::{IMPOSSIBLE, Sent, TINY};
use super::stc::{is_complete, largest_ternary_q, magnitude, ternary_bits};
use super::wire::Layout;
use super::{Compressor, Properties, Scratch, SparseScheme, SparseUpdate, Values};
use crate::base::rng::Stream;
use crate::base::units::Bits;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use std::ops::RangeInclusive;

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Compressor> = Entry::of::<Ternary>();

/// Sends at most q entries as ±λ, each with probability |v_i|/λ, for the smallest λ ≥ max|v_i| that the
/// budget allows.
///
/// - Bits: `r(q) = log2 C(d,q) + q + 32`: the indices, a sign for each entry, and λ. 0 ≤ q ≤ ⌈2d/3⌉, the
///   range on which r rises.
/// - Value: ±λ, λ = max(max|v_i|, τ), where τ is the (q+1)-th largest of |v_i|/U_i with uniform U_i.
///   Fewer than q entries are sent if λ = max|v_i|, which is `TernGrad`.
///
/// Source: Wen et al., *TernGrad* (2017), arXiv 1705.07878, without layers and clipping; the budget after
/// Wangni et al. (2018), in our reading, with the threshold of priority sampling. Invariants: E\[v̂\] =
/// v; at given λ E‖v̂‖² = λ·‖v‖₁; v̂ of a·v is a·v̂; r(q) ≤ R < r(q+1) for the q < ⌈2d/3⌉ chosen at
/// budget R.
///
/// ```
/// use fedlink::compress::{Scratch, SparseScheme, SparseUpdate, Ternary, Values};
/// use fedlink::base::rng::{Purpose, stream};
/// let (mut sent, mut rng) = (SparseUpdate::default(), stream(0, Purpose::Sparsify, 0, 0));
/// Ternary {}.compress(&[1.0, -1.0, 0.0, 1.0], 3, &mut rng, &mut Scratch::default(), &mut sent);
/// // Entries of the largest magnitude are always sent, zeros never.
/// assert_eq!(sent, SparseUpdate { indices: vec![0, 1, 3], values: Values::Each(vec![1.0, -1.0, 1.0]) });
/// ```
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Ternary {}

impl PartConfig for Ternary {
    type Part = dyn Compressor;
    const NAME: &'static str = "ternary";
    const FAMILY: &'static str = "rounded";
    const MEANING: &'static str =
        "budgeted TernGrad, unbiased: the indices and signs of up to q random entries and one magnitude";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Compressor>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl SparseScheme for Ternary {
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
        rng: &mut Stream,
        scratch: &mut Scratch,
        out: &mut SparseUpdate,
    ) {
        let mut values = out.take_values();
        out.indices.clear();
        let max = f64::from(update.iter().fold(0.0f32, |max, x| max.max(x.abs())));
        // Only entries whose priority reaches the largest magnitude can be sent.
        let priorities = &mut scratch.priorities;
        priorities.clear();
        for (i, &x) in (0u32..).zip(update) {
            // Uniform on (0, 1], also for zeros: the draws of an entry do not depend on others.
            let uniform = 1.0 - rng.uniform();
            let priority = f64::from(x.abs()) / uniform;
            if x != 0.0 && priority >= max {
                priorities.push((priority, i));
            }
        }
        let mut lambda = max;
        if priorities.len() > q {
            let (_, &mut (tau, _), _) =
                priorities.select_nth_unstable_by(q, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            // λ is limited to the largest float.
            lambda = tau.min(f64::from(f32::MAX));
            priorities.truncate(q);
        }
        out.indices.extend(priorities.iter().map(|&(_, i)| i));
        out.indices.sort_unstable();
        let lambda = lambda as f32;
        values.extend(out.indices.iter().map(|&i| lambda.copysign(update[i as usize])));
        out.values = Values::Each(values);
    }

    fn properties(&self, dim: usize, q: usize) -> Properties {
        let (dim, q) = (dim as f64, q as f64);
        let omega = 0.5 * (1.0 + dim.sqrt()) + 2.0 * dim / (q * (q - 1.0)).sqrt() - 1.0;
        Properties::unbiased(Some(omega).filter(|omega| omega.is_finite()))
    }

    fn honest_norm(&self, sent: &Sent) -> RangeInclusive<f64> {
        if sent.update.indices.is_empty() {
            return 0.0..=0.0;
        }
        let Some([low, high]) = magnitude(sent) else { return IMPOSSIBLE };
        let min = if is_complete(sent) { low } else { 0.0 };
        min..=high * (sent.dim as f64).sqrt()
    }

    fn honest_compressed_norm(&self, sent: &Sent) -> RangeInclusive<f64> {
        let (entries, alone) = (sent.update.indices.len(), sent.alone.min(sent.dim));
        if entries == 0 || alone == 0 {
            return 0.0..=0.0;
        }
        let Some([low, high]) = magnitude(sent) else { return IMPOSSIBLE };
        let root = (alone as f64).sqrt();
        let rounded = TINY * root;
        if is_complete(sent) && alone >= entries {
            let norm = f64::from(sent.update.norm());
            norm..=norm
        } else if !sent.exact {
            0.0..=f64::INFINITY
        } else if alone >= sent.q {
            0.0..=high * root + rounded
        } else {
            (low * root - rounded).max(0.0)..=f64::INFINITY
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};

    fn compress(update: &[f32], q: usize, draw: u64) -> (Vec<f64>, usize) {
        let (mut out, mut rng) = (SparseUpdate::default(), stream(2, Purpose::Test, draw, 0));
        Ternary {}.compress(update, q, &mut rng, &mut Scratch::default(), &mut out);
        let mut dense = vec![0.0f32; update.len()];
        out.add_to(&mut dense, 1.0);
        (dense.iter().map(|&x| f64::from(x)).collect(), out.indices.len())
    }

    /// The update sent at the uniform numbers `u`, by the definition: sort the priorities.
    fn by_definition(update: &[f64], u: &[f64], q: usize) -> (f64, Vec<f64>) {
        let mut priorities: Vec<f64> = update.iter().zip(u).map(|(x, u)| x.abs() / u).collect();
        priorities.sort_by(|a, b| b.total_cmp(a));
        let max = update.iter().fold(0.0f64, |max, x| max.max(x.abs()));
        let lambda = max.max(priorities.get(q).copied().unwrap_or(0.0));
        let sent = |(x, u): (&f64, &f64)| {
            let is_sent = x.abs() / u > lambda || (lambda == max && x.abs() / u >= max);
            if is_sent { lambda * x.signum() } else { 0.0 }
        };
        (lambda, update.iter().zip(u).map(sent).collect())
    }

    #[test]
    fn the_result_equals_the_definition_up_to_the_rounding_of_lambda() {
        let update = [0.5f32, -0.25, 1.0, 0.125, -0.75, 0.0];
        let wide: Vec<f64> = update.iter().map(|&x| f64::from(x)).collect();
        for draw in 0..500 {
            for q in 1..=4 {
                let mut rng = stream(2, Purpose::Test, draw, 0);
                let u: Vec<f64> = update.iter().map(|_| 1.0 - rng.uniform()).collect();
                let (_, expected) = by_definition(&wide, &u, q);
                let (sent, entries) = compress(&update, q, draw);
                assert!(entries <= q);
                for (a, b) in sent.iter().zip(&expected) {
                    assert!((a - b).abs() <= 1e-6 * b.abs(), "draw {draw}, q {q}: {sent:?}, {expected:?}");
                }
            }
        }
    }

    #[test]
    fn on_a_grid_of_all_uniform_numbers_the_mean_is_the_update() {
        // Three entries, each U on the midpoints of n cells: an integral over the cube, whose error falls as
        // 1/n.
        let update = [0.5f64, -0.2, 0.3];
        for q in 1..=2 {
            let off = |n: usize| {
                let mut mean = [0.0f64; 3];
                for cell in 0..n * n * n {
                    let at = |i: usize| (i as f64 + 0.5) / n as f64;
                    let u = [at(cell % n), at(cell / n % n), at(cell / n / n)];
                    let (_, sent) = by_definition(&update, &u, q);
                    mean.iter_mut().zip(sent).for_each(|(m, x)| *m += x / (n * n * n) as f64);
                }
                mean.iter().zip(update).map(|(m, x)| (m - x).abs()).fold(0.0, f64::max)
            };
            let [coarse, fine] = [off(20), off(80)];
            assert!(fine < 0.02 && fine < coarse, "q = {q}: {coarse}, {fine}");
        }
    }

    #[test]
    fn a_budget_for_all_entries_gives_terngrad_with_exact_moments() {
        // λ = max|v|: independent draws. All 2^d outcomes with their probabilities.
        let update = [0.6f64, -0.3, 0.1, 0.0, 0.45];
        let lambda = 0.6;
        let l1: f64 = update.iter().map(|x| x.abs()).sum();
        let (mut mean, mut second, mut entries) = ([0.0; 5], 0.0, 0.0);
        for outcome in 0u32..32 {
            let on = |i: usize| outcome >> i & 1 == 1;
            let p: f64 = update
                .iter()
                .enumerate()
                .map(|(i, x)| if on(i) { x.abs() / lambda } else { 1.0 - x.abs() / lambda })
                .product();
            second += p * lambda * lambda * f64::from(outcome.count_ones());
            entries += p * f64::from(outcome.count_ones());
            (0..5).filter(|&i| on(i)).for_each(|i| mean[i] += p * lambda * update[i].signum());
        }
        assert!((second - lambda * l1).abs() < 1e-12);
        assert!(mean.iter().zip(update).all(|(m, x)| (m - x).abs() < 1e-12));
        // The draws agree: the number of entries is Poisson-binomial with these moments.
        let narrow: Vec<f32> = update.iter().map(|&x| x as f32).collect();
        let (draws, mut sum, mut squares, mut energy) = (20_000u64, 0.0, 0.0, 0.0);
        for draw in 0..draws {
            let (sent, count) = compress(&narrow, 5, draw);
            assert!(sent.iter().all(|x| *x == 0.0 || (x.abs() - 0.6).abs() < 1e-6));
            assert!(sent[0] > 0.0 && sent[3] == 0.0);
            sum += count as f64;
            squares += (count * count) as f64;
            energy += sent.iter().map(|x| x * x).sum::<f64>();
        }
        let n = draws as f64;
        let variance: f64 = update.iter().map(|x| x.abs() / lambda * (1.0 - x.abs() / lambda)).sum();
        assert!((sum / n - entries).abs() < 4.0 * (variance / n).sqrt());
        let measured = squares / n - (sum / n).powi(2);
        assert!((measured / variance - 1.0).abs() < 0.05, "{measured}, {variance}");
        assert!((energy / n - lambda * l1).abs() < 4.0 * lambda * lambda * (variance / n).sqrt());
    }

    #[test]
    fn the_declared_variance_holds_for_one_large_entry_among_equal_ones() {
        // s·‖v‖₁ = ½(1+√d)·‖v‖² there: with a budget for all entries, ω is the rest of it.
        for dim in [4usize, 9, 100] {
            let small = 1.0 / ((dim as f64).sqrt() + 1.0);
            let l1 = 1.0 + (dim - 1) as f64 * small;
            let square = 1.0 + (dim - 1) as f64 * small * small;
            let ratio = l1 / square;
            assert!((ratio - 0.5 * (1.0 + (dim as f64).sqrt())).abs() < 1e-9, "d = {dim}: {ratio}");
        }
    }
}
