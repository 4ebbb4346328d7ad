//! Scaled sign: one bit per entry, and one magnitude.
//!
//! # Audit
//! Let S be the m entries whose signs arrive, all with magnitude μ: Σ|v_i| over S is m·μ. The squares of
//! S are at least m·μ² (Cauchy–Schwarz) and at most (m·μ)², so
//!
//! > μ·√m ≤ ‖v‖, and ‖v‖ ≤ d·μ if m = d.
//!
//! The entries of a smaller m are the first of those of a larger one, and ‖v̂(m\*)‖ = Σ|v_i|/√m\* over
//! the first m\*. That is at least m·μ/√m\* if m\* ≥ m, and at most that if m\* ≤ m. There is no bound on
//! entries that were not sent. The device does not choose the entries.

use super::audit::{Evidence, IMPOSSIBLE, TINY, unrounded};
use super::rand_k::{are_shared, shared_indices};
use super::wire::{Coder, WireError};
use super::{Codec, Compressor, Context, Encoded, Properties, Scratch, SparseUpdate, Spent, Values};
use crate::base::rng::Stream;
use crate::base::units::Bits;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::Ask;
use fedlink_wire::{Packer, Unpacker};
use std::ops::RangeInclusive;

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Compressor> = Entry::of::<Sign>();

/// Sends the signs of m entries and their mean magnitude μ: of all entries if R ≥ d + 32, else of m = ⌊R
/// − 32⌋ entries that both ends draw from the seed.
///
/// - Bits: `r(m) = m + 32`, 1 ≤ m ≤ d. The indices cost nothing: they are the first m of a random order
///   that is a function of (seed, round, device).
/// - Value: v̂_i = μ·sgn v_i on them, μ = Σ|v_i|/m, and 0 elsewhere; sgn 0 = +1.
///
/// Source: Karimireddy et al., *Error Feedback Fixes SignSGD* (2019), arXiv 1901.09847, of signSGD
/// (Bernstein et al., 2018); the subset is the same on part of the entries. Invariants: a projection,
/// ⟨v, v̂⟩ = ‖v̂‖² = m·μ²; δ = ‖v‖₁²/(d·‖v‖²) if m = d (2/π for Gaussian entries), m/d of that on average
/// otherwise; r(m) ≤ R < r(m+1) for the m < d chosen at budget R.
///
/// ```
/// use fedlink::compress::{Compressor, Context, Encoded, Scratch, Sign, Spent};
/// use fedlink::base::rng::{Purpose, stream};
/// use fedlink::base::units::Bits;
/// let (known, mut sent) = (Context::new(4, Bits(40.0)), Encoded::default());
/// let mut unused = stream(0, Purpose::Sparsify, 0, 0); // both ends draw from their common knowledge
/// let update = [3.0, -1.0, 0.0, -4.0];
/// let spent = Sign {}.encode(&update, &known, &mut unused, &mut Scratch::default(), &mut sent);
/// assert_eq!(spent, Spent::new(Bits(36.0), 4));
/// assert_eq!(sent, Encoded::Dense(vec![2.0, -2.0, 2.0, -2.0]));
/// ```
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Sign {}

impl PartConfig for Sign {
    type Part = dyn Compressor;
    const NAME: &'static str = "sign";
    const FAMILY: &'static str = "signs";
    const MEANING: &'static str =
        "scaled sign: the sign of every entry, or of as many random ones as fit, and one magnitude";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Compressor>, ConfigError> {
        Ok(Box::new(self))
    }
}

/// Bits for μ.
const MAGNITUDE_BITS: u32 = 32;

/// The largest m with m + 32 ≤ R.
fn largest_m(dim: usize, budget: Bits) -> usize {
    // A negative or undefined number becomes 0 in the conversion, an infinite one the largest integer.
    ((budget.0 - f64::from(MAGNITUDE_BITS)) as usize).min(dim)
}

/// The sent values by ascending index, if their indices are the shared ones.
fn values_of<'a>(context: &Context, update: &'a Encoded) -> Option<&'a [f32]> {
    match update {
        Encoded::Dense(values) if values.len() == context.dim => Some(values),
        Encoded::Sparse(SparseUpdate { indices, values: Values::Each(values) })
            if indices.len() == values.len()
                && indices.len() < context.dim
                && are_shared(context, indices) =>
        {
            Some(values)
        }
        _ => None,
    }
}

/// Whether all values are finite and of one magnitude.
fn have_one_magnitude(values: &[f32]) -> bool {
    values
        .first()
        .is_some_and(|first| first.is_finite() && values.iter().all(|value| value.abs() == first.abs()))
}

impl Compressor for Sign {
    fn encode(
        &self,
        update: &[f32],
        context: &Context,
        _: &mut Stream,
        scratch: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent {
        let m = largest_m(update.len(), context.budget);
        if m == 0 {
            *out = Encoded::Silent;
            return Spent::default();
        }
        // In index order and double precision. The sign of a zero is ignored: zeros are positive.
        let signed = |x: f32, magnitude: f32| if x < 0.0 { -magnitude } else { magnitude };
        if m == update.len() {
            let magnitude = mean_magnitude(update.iter());
            out.make_dense().extend(update.iter().map(|&x| signed(x, magnitude)));
        } else {
            let out = out.make_sparse();
            let mut values = out.take_values();
            shared_indices(context, m, &mut scratch.keys, &mut out.indices);
            let kept = || out.indices.iter().map(|&i| &update[i as usize]);
            let magnitude = mean_magnitude(kept());
            values.extend(kept().map(|&x| signed(x, magnitude)));
            out.values = Values::Each(values);
        }
        Spent { bits: Bits(m as f64 + f64::from(MAGNITUDE_BITS)), level: m }
    }

    fn codec(&self) -> Option<&dyn Codec> {
        Some(self)
    }

    fn properties(&self, dim: usize, _: usize) -> Properties {
        // E(Σ|v_i|)²/m ≥ E Σ v_i²/m = ‖v‖²/d over the random entries; one entry alone attains it.
        Properties::projection(1.0 / dim as f64)
    }

    fn largest_level(&self, dim: usize, budget: Bits) -> Option<usize> {
        Some(largest_m(dim, budget))
    }

    fn has_audit(&self) -> bool {
        true
    }

    fn honest_reports(&self, evidence: &Evidence) -> RangeInclusive<f64> {
        let Evidence { ask, context, alone, exact, received } = *evidence;
        let dim = context.dim;
        let max = largest_m(dim, context.budget);
        let values = values_of(&context, received).filter(|values| have_one_magnitude(values));
        let Some(values) = values.filter(|values| values.len() == max || !exact && values.len() < max) else {
            return IMPOSSIBLE;
        };
        let m = values.len() as f64;
        let [low, high] = unrounded(values[0]);
        match ask {
            Ask::Norm => low * m.sqrt()..=if values.len() == dim { high * m } else { f64::INFINITY },
            Ask::CompressedNorm => {
                let alone = largest_m(dim, alone);
                if alone == 0 {
                    return 0.0..=0.0;
                }
                if alone == values.len() {
                    // The device sends the update of its report.
                    let norm = f64::from(received.norm());
                    return norm..=norm;
                }
                let root = (alone as f64).sqrt();
                // The reported magnitude was rounded too.
                let rounded = TINY * root;
                if alone > values.len() {
                    (low * m / root - rounded).max(0.0)..=f64::INFINITY
                } else {
                    0.0..=high * m / root + rounded
                }
            }
            // An update is no evidence about the loss.
            Ask::Loss | Ask::RmsLoss => 0.0..=f64::INFINITY,
        }
    }
}

fn mean_magnitude<'a>(values: impl ExactSizeIterator<Item = &'a f32>) -> f32 {
    let count = values.len() as f64;
    (values.map(|value| f64::from(value.abs())).sum::<f64>() / count) as f32
}

/// A payload is μ with the first sign, 32 bits, and a bit for every further sign, one for a negative
/// entry: with the one on top exactly r(m) bits.
impl Codec for Sign {
    fn write(
        &self,
        _: &mut Coder,
        context: &Context,
        update: &Encoded,
        payload: &mut Vec<u8>,
    ) -> Result<u64, WireError> {
        let max = largest_m(context.dim, context.budget);
        let values = values_of(context, update)
            .filter(|values| values.len() <= max && have_one_magnitude(values))
            .ok_or_else(|| WireError::Update {
                problem: "only one magnitude for the entries that both ends draw has this format".into(),
            })?;
        let mut packer = Packer::new(u64::from(MAGNITUDE_BITS) + values.len() as u64 - 1, payload);
        packer.put(values[0].to_bits(), MAGNITUDE_BITS);
        values[1..].iter().for_each(|value| packer.put(u32::from(value.is_sign_negative()), 1));
        Ok(packer.finish())
    }

    fn read(
        &self,
        _: &mut Coder,
        context: &Context,
        payload: &[u8],
        update: &mut Encoded,
    ) -> Result<(), WireError> {
        let (mut unpacker, bits) = Unpacker::within(payload, self.longest(context))?;
        if bits < u64::from(MAGNITUDE_BITS) {
            return Err(WireError::Length { short: true });
        }
        let count = (bits - u64::from(MAGNITUDE_BITS)) as usize + 1;
        let first = f32::from_bits(unpacker.take(MAGNITUDE_BITS));
        if !first.is_finite() {
            return Err(WireError::NotFinite { entry: 0, value: first });
        }
        let magnitude = first.abs();
        let mut sign = || if unpacker.take(1) == 1 { -magnitude } else { magnitude };
        let values = |values: &mut Vec<f32>| {
            values.push(first);
            values.extend((1..count).map(|_| sign()));
        };
        if count == context.dim {
            let mut values = values;
            values(update.make_dense());
        } else {
            let update = update.make_sparse();
            let (mut all, mut values) = (update.take_values(), values);
            shared_indices(context, count, &mut Vec::new(), &mut update.indices);
            values(&mut all);
            update.values = Values::Each(all);
        }
        Ok(())
    }

    fn accepts(&self, update: &Encoded) -> bool {
        match update {
            Encoded::Dense(values) | Encoded::Sparse(SparseUpdate { values: Values::Each(values), .. }) => {
                have_one_magnitude(values)
            }
            _ => false,
        }
    }

    fn longest(&self, context: &Context) -> u64 {
        match largest_m(context.dim, context.budget) {
            0 => 0,
            m => m as u64 + u64::from(MAGNITUDE_BITS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};
    use crate::base::units::DeviceId;
    use crate::compress::{SparseScheme, Stc};
    use proptest::prelude::*;

    fn encode(update: &[f32], budget: f64, t: u64) -> (Spent, Encoded) {
        let context = Context::new(update.len(), Bits(budget)).of(1, (t, DeviceId(0)));
        let (mut unused, mut out) = (stream(0, Purpose::Test, 0, 0), Encoded::Dense(vec![3.0]));
        let spent = Sign {}.encode(update, &context, &mut unused, &mut Scratch::default(), &mut out);
        (spent, out)
    }

    fn dense(update: &Encoded, dim: usize) -> Vec<f64> {
        let mut dense = vec![0.0; dim];
        update.for_each(|i, value| dense[i as usize] = f64::from(value));
        dense
    }

    proptest! {
        #[test]
        fn the_error_has_one_minus_delta_of_the_energy(
            update in prop::collection::vec(prop_oneof![-9.0..9.0f32, Just(0.0f32)], 1..80),
        ) {
            let (spent, out) = encode(&update, 1e4, 0);
            let sent = dense(&out, update.len());
            let wide = || update.iter().map(|&x| f64::from(x));
            let (l1, square): (f64, f64) = (wide().map(f64::abs).sum(), wide().map(|x| x * x).sum());
            let left: f64 = wide().zip(&sent).map(|(a, b)| (a - b).powi(2)).sum();
            let delta = if square > 0.0 { l1 * l1 / (update.len() as f64 * square) } else { 0.0 };
            prop_assert!((left - (1.0 - delta) * square).abs() <= 1e-6 * square);
            prop_assert_eq!(spent, Spent { bits: Bits(update.len() as f64 + 32.0), level: update.len() });
        }

        #[test]
        fn without_zeros_it_is_sparse_ternary_compression_of_all_entries(
            update in prop::collection::vec(prop_oneof![0.01..9.0f32, -9.0..-0.01f32], 1..80),
        ) {
            let (mut ternary, mut unused) = (SparseUpdate::default(), stream(0, Purpose::Test, 0, 0));
            Stc {}.compress(&update, update.len(), &mut unused, &mut Scratch::default(), &mut ternary);
            let (_, out) = encode(&update, 1e4, 0);
            prop_assert_eq!(Values::Each(dense(&out, update.len()).iter().map(|&x| x as f32).collect()),
                            ternary.values);
        }

        #[test]
        fn a_payload_has_as_many_bits_as_the_formula(
            update in prop::collection::vec(-9.0..9.0f32, 1..80), budget in 33.0..150.0f64,
        ) {
            let (spent, out) = encode(&update, budget, 0);
            let context = Context::new(update.len(), Bits(budget)).of(1, (0, DeviceId(0)));
            let bits = Sign {}.write(&mut Coder::default(), &context, &out, &mut Vec::new());
            prop_assert_eq!(bits, Ok(spent.bits.0 as u64));
            prop_assert!(spent.level == update.len() || budget < spent.bits.0 + 1.0);
        }
    }

    #[test]
    fn a_random_part_keeps_its_share_of_the_energy_on_average() {
        // E of (Σ_S|v|)²/m over all subsets, by enumeration: entries of S in pairs.
        let update = [3.0f32, -1.0, 4.0, 0.5, -5.0];
        let (dim, m) = (update.len(), 3);
        let mut exact = Vec::new();
        for subset in 0u32..1 << dim {
            if subset.count_ones() == m {
                let kept = (0..dim).filter(|i| subset >> i & 1 == 1);
                exact.push(kept.map(|i| f64::from(update[i].abs())).sum::<f64>().powi(2) / f64::from(m));
            }
        }
        let energies: Vec<f64> =
            (0..4000).map(|t| dense(&encode(&update, 35.0, t).1, dim).iter().map(|x| x * x).sum()).collect();
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        let variance = exact.iter().map(|x| (x - mean(&exact)).powi(2)).sum::<f64>() / exact.len() as f64;
        assert!((mean(&energies) - mean(&exact)).abs() < 4.0 * (variance / 4000.0).sqrt());
    }

    #[test]
    fn zeros_are_positive_and_a_zero_update_is_zero() {
        assert_eq!(encode(&[0.0, -0.0, -6.0], 35.0, 0).1, Encoded::Dense(vec![2.0, 2.0, -2.0]));
        let (spent, zero) = encode(&[0.0; 3], 100.0, 0);
        assert_eq!((spent.level, zero), (3, Encoded::Dense(vec![0.0; 3])));
        assert_eq!(encode(&[1.0; 3], 32.9, 0), (Spent::default(), Encoded::Silent));
    }
}
