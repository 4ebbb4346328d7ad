//! Rand-k: random entries with shared indices, scaled up so that Δ̂ is unbiased.
//!
//! # Audit
//! With the factor f, d/q or 1, the kept entries of an honest device are v̂_i/f, so ‖v‖ ≥ ‖v̂‖/f, with
//! equality if all d are kept. The indices of fewer entries are the first of those of more. So with the
//! sent level c and the reported level c\*, and their factors f and f\*: ‖v̂(c\*)‖ ≥ f\*·‖v̂‖/f if c\* ≥
//! c, and at most that if c\* ≤ c. There are no other bounds on a report. The device does not choose the
//! indices: an update with other indices is not from an honest device.

use super::audit::{Evidence, IMPOSSIBLE, ROUNDING, TINY};
use super::wire::{Coder, WireError};
use super::{Codec, Compressor, Context, Encoded, Properties, Scratch, SparseUpdate, Spent, Values};
use crate::base::rng::Stream;
use crate::base::units::Bits;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::Ask;
use fedlink_wire::{Packer, Unpacker, check_finite};
use std::ops::RangeInclusive;

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Compressor> = Entry::of::<RandK>();

/// Keeps q entries that both ends draw uniformly at random from the seed, and sends d/q times the value
/// of each.
///
/// - Bits: `r(q) = 32·q`. The indices cost nothing: they are the first q of a random order that is a
///   function of (seed, round, device).
/// - Value: v̂_i = (d/q)·v_i if i is kept, else 0. Unbiased, with E‖v̂ − v‖² = (d/q − 1)·‖v‖² exactly. With
///   `compress.rand-k.scaled = false` it is v_i, a projection with δ = q/d, as error feedback needs.
///
/// Source: the sparsifier of Wangni et al. (2018) and Stich et al. (2018) with uniform probabilities, its
/// indices by shared randomness as in Konečný et al. (2016). Invariants: exactly q indices, ascending;
/// r(q) ≤ R < r(q+1) for the q < d chosen at budget R.
///
/// ```
/// use fedlink::compress::{Compressor, Context, Encoded, RandK, Scratch, Spent};
/// use fedlink::base::rng::{Purpose, stream};
/// use fedlink::base::units::Bits;
/// let (known, mut sent) = (Context::new(4, Bits(70.0)), Encoded::default());
/// let mut unused = stream(0, Purpose::Sparsify, 0, 0); // both ends draw from their common knowledge
/// let scheme = RandK::default();
/// let spent = scheme.encode(&[1.0; 4], &known, &mut unused, &mut Scratch::default(), &mut sent);
/// assert_eq!(spent, Spent::new(Bits(64.0), 2));
/// assert_eq!((sent.entries(), sent.norm()), (2, 8f32.sqrt()));
/// ```
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct RandK {
    /// multiply by d/q: unbiased; without, a projection for error feedback
    #[key(default = true)]
    pub scaled: bool,
}

impl PartConfig for RandK {
    type Part = dyn Compressor;
    const NAME: &'static str = "rand-k";
    const FAMILY: &'static str = "random";
    const MEANING: &'static str =
        "rand-k, unbiased: the values of q random entries, whose indices both ends draw from the seed";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Compressor>, ConfigError> {
        Ok(Box::new(self))
    }
}

/// Bits of a value.
const VALUE_BITS: u32 = 32;

/// The largest q with 32·q ≤ R.
fn largest_q(dim: usize, budget: Bits) -> usize {
    // The conversion turns a negative or undefined budget into 0, an infinite one into the largest
    // integer.
    ((budget.0 / f64::from(VALUE_BITS)) as usize).min(dim)
}

/// Writes the first `count` indices of the shared random order to `indices`, ascending.
pub(super) fn shared_indices(context: &Context, count: usize, keys: &mut Vec<u32>, indices: &mut Vec<u32>) {
    indices.clear();
    if count >= context.dim {
        // All of them, for any order: no draw and no sort.
        indices.extend(0..context.dim as u32);
        return;
    }
    keys.clear();
    keys.extend(0..context.dim as u32);
    context.shared().shuffle_prefix(keys, count);
    indices.extend_from_slice(&keys[..count]);
    indices.sort_unstable();
}

/// Whether `indices` are the shared ones.
pub(super) fn are_shared(context: &Context, indices: &[u32]) -> bool {
    let (mut keys, mut drawn) = (Vec::new(), Vec::new());
    shared_indices(context, indices.len(), &mut keys, &mut drawn);
    drawn == indices
}

impl RandK {
    /// The factor of values if q are sent.
    fn factor(self, dim: usize, q: usize) -> f64 {
        if self.scaled { dim as f64 / q as f64 } else { 1.0 }
    }
}

impl Compressor for RandK {
    fn encode(
        &self,
        update: &[f32],
        context: &Context,
        _: &mut Stream,
        scratch: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent {
        let q = largest_q(update.len(), context.budget);
        if q == 0 {
            *out = Encoded::Silent;
            return Spent::default();
        }
        let out = out.make_sparse();
        let mut values = out.take_values();
        shared_indices(context, q, &mut scratch.keys, &mut out.indices);
        let factor = self.factor(update.len(), q);
        // A product beyond the largest float becomes the largest float.
        let max = f64::from(f32::MAX);
        let scaled = |&i: &u32| (factor * f64::from(update[i as usize])).clamp(-max, max) as f32;
        values.extend(out.indices.iter().map(scaled));
        out.values = Values::Each(values);
        Spent { bits: Bits(f64::from(VALUE_BITS) * q as f64), level: q }
    }

    fn codec(&self) -> Option<&dyn Codec> {
        Some(self)
    }

    fn properties(&self, dim: usize, level: usize) -> Properties {
        let (dim, q) = (dim as f64, level as f64);
        if self.scaled { Properties::unbiased(Some(dim / q - 1.0)) } else { Properties::projection(q / dim) }
    }

    fn largest_level(&self, dim: usize, budget: Bits) -> Option<usize> {
        Some(largest_q(dim, budget))
    }

    fn has_audit(&self) -> bool {
        true
    }

    fn honest_reports(&self, evidence: &Evidence) -> RangeInclusive<f64> {
        let Evidence { ask, context, alone, exact, received } = *evidence;
        let Encoded::Sparse(SparseUpdate { indices, .. }) = received else { return 0.0..=f64::INFINITY };
        let (dim, q, sent) = (context.dim, largest_q(context.dim, context.budget), indices.len());
        if sent == 0 || sent > q || exact && sent < q || !are_shared(&context, indices) {
            return IMPOSSIBLE;
        }
        // ‖v‖ of the kept entries. Scaling rounded each once.
        let kept = f64::from(received.norm()) / self.factor(dim, sent);
        let tiny = TINY * (sent as f64).sqrt();
        let (low, high) =
            ((kept * (1.0 - 4.0 * ROUNDING) - tiny).max(0.0), kept * (1.0 + 4.0 * ROUNDING) + tiny);
        // A value that was limited to the largest float gives no upper bound.
        let cut = f64::from(received.norm()) >= f64::from(f32::MAX);
        let high = if cut { f64::INFINITY } else { high };
        match ask {
            Ask::Norm => low..=if sent == dim { high } else { f64::INFINITY },
            Ask::CompressedNorm => {
                let alone = largest_q(dim, alone);
                if alone == 0 {
                    return 0.0..=0.0;
                }
                let factor = self.factor(dim, alone);
                let min = if alone >= sent { factor * low } else { 0.0 };
                let max = if alone <= sent { factor * high } else { f64::INFINITY };
                let rounded = TINY * (alone as f64).sqrt();
                (min - rounded).max(0.0)..=max + rounded
            }
            // An update is no evidence about the loss.
            Ask::Loss | Ask::RmsLoss => 0.0..=f64::INFINITY,
        }
    }
}

impl Codec for RandK {
    fn write(
        &self,
        _: &mut Coder,
        context: &Context,
        update: &Encoded,
        payload: &mut Vec<u8>,
    ) -> Result<u64, WireError> {
        let refuse = |problem: &str| Err(WireError::Update { problem: problem.into() });
        let Encoded::Sparse(SparseUpdate { indices, values: Values::Each(values) }) = update else {
            return refuse("only a value for each drawn entry has this format");
        };
        if indices.is_empty()
            || indices.len() > largest_q(context.dim, context.budget)
            || values.len() != indices.len()
            || !are_shared(context, indices)
        {
            return refuse("its entries are not the first of those that both ends draw");
        }
        check_finite(values)?;
        let mut packer = Packer::new(u64::from(VALUE_BITS) * values.len() as u64, payload);
        values.iter().for_each(|value| packer.put(value.to_bits(), VALUE_BITS));
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
        if bits == 0 || bits % u64::from(VALUE_BITS) > 0 {
            return Err(WireError::Length { short: true });
        }
        let count = (bits / u64::from(VALUE_BITS)) as usize;
        let update = update.make_sparse();
        let mut values = update.take_values();
        shared_indices(context, count, &mut Vec::new(), &mut update.indices);
        values.extend((0..count).map(|_| f32::from_bits(unpacker.take(VALUE_BITS))));
        let checked = check_finite(&values);
        update.values = Values::Each(values);
        checked
    }

    fn accepts(&self, update: &Encoded) -> bool {
        matches!(update, Encoded::Sparse(SparseUpdate { values: Values::Each(_), .. })) && update.is_finite()
    }

    fn longest(&self, context: &Context) -> u64 {
        match largest_q(context.dim, context.budget) {
            0 => 0,
            q => u64::from(VALUE_BITS) * q as u64 + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};
    use crate::base::units::DeviceId;

    fn encode(scheme: RandK, update: &[f32], q: usize, t: u64) -> (Spent, Vec<f64>, Vec<u32>) {
        let context = Context::new(update.len(), Bits(32.0 * q as f64)).of(5, (t, DeviceId(2)));
        let (mut unused, mut out) = (stream(0, Purpose::Test, 0, 0), Encoded::default());
        let spent = scheme.encode(update, &context, &mut unused, &mut Scratch::default(), &mut out);
        let (mut dense, mut indices) = (vec![0.0; update.len()], Vec::new());
        out.for_each(|i, value| {
            dense[i as usize] = f64::from(value);
            indices.push(i);
        });
        (spent, dense, indices)
    }

    #[test]
    fn over_all_subsets_the_mean_is_the_update_and_the_second_moment_is_exact() {
        // Small whole numbers: d/q times each is exact in f32 or rounded by 2⁻²⁴.
        let update = [3.0f32, -1.0, 4.0, 0.0, -5.0, 2.0];
        let square: f64 = update.iter().map(|x| f64::from(*x).powi(2)).sum();
        for q in 1..=6usize {
            // Every subset drawn in many rounds, once.
            let mut subsets = std::collections::BTreeMap::new();
            for t in 0..1500 {
                let (spent, dense, indices) = encode(RandK::default(), &update, q, t);
                assert_eq!(spent, Spent { bits: Bits(32.0 * q as f64), level: q });
                subsets.insert(indices, dense);
            }
            let count = (0..q).fold(1, |product, i| product * (6 - i) / (i + 1));
            assert_eq!(subsets.len(), count, "all C(6, {q}) subsets occur");
            for (i, truth) in update.iter().enumerate() {
                let mean = subsets.values().map(|dense| dense[i]).sum::<f64>() / count as f64;
                assert!((mean - f64::from(*truth)).abs() < 1e-6, "q = {q}, entry {i}: {mean}");
            }
            let norms = subsets.values().map(|dense| dense.iter().map(|x| x * x).sum::<f64>());
            let second = norms.sum::<f64>() / count as f64;
            assert!((second - 6.0 / q as f64 * square).abs() < 1e-5, "q = {q}: {second}");
        }
    }

    #[test]
    fn every_subset_is_drawn_equally_often_within_four_standard_deviations() {
        let (draws, mut counts) = (15_000u64, std::collections::BTreeMap::new());
        for t in 0..draws {
            *counts.entry(encode(RandK::default(), &[1.0; 6], 2, t).2).or_insert(0u64) += 1;
        }
        let (expected, p) = (draws as f64 / 15.0, 1.0 / 15.0);
        let deviation = (draws as f64 * p * (1.0 - p)).sqrt();
        assert!(counts.len() == 15);
        assert!(
            counts.values().all(|&count| (count as f64 - expected).abs() < 4.0 * deviation),
            "{counts:?}"
        );
    }

    #[test]
    fn without_the_factor_kept_entries_are_unchanged() {
        let update = [3.0f32, -1.0, 4.0, 0.5, -5.0];
        let (_, dense, indices) = encode(RandK { scaled: false }, &update, 3, 1);
        assert_eq!(indices.len(), 3);
        for (i, x) in update.iter().enumerate() {
            let kept = indices.contains(&(i as u32));
            assert_eq!(dense[i], if kept { f64::from(*x) } else { 0.0 });
        }
    }

    #[test]
    fn fewer_indices_are_the_first_of_more_and_rounds_and_devices_differ() {
        let draw = |q: usize, t: u64, device: u32| {
            let context = Context::new(50, Bits(0.0)).of(1, (t, DeviceId(device)));
            let mut indices = Vec::new();
            shared_indices(&context, q, &mut Vec::new(), &mut indices);
            indices
        };
        assert!(draw(9, 1, 1).iter().all(|i| draw(20, 1, 1).contains(i)));
        assert!(draw(9, 1, 1) != draw(9, 2, 1) && draw(9, 1, 1) != draw(9, 1, 2));
    }

    #[test]
    fn a_device_that_chooses_its_own_entries_is_caught() {
        let context = Context::new(6, Bits(64.0));
        let mut drawn = Vec::new();
        shared_indices(&context, 2, &mut Vec::new(), &mut drawn);
        let other: Vec<u32> = (0..6).filter(|i| !drawn.contains(i)).take(2).collect();
        for (indices, honest) in [(drawn, true), (other, false)] {
            let received = Encoded::Sparse(SparseUpdate { indices, values: Values::Each(vec![3.0, 4.0]) });
            let evidence =
                Evidence { ask: Ask::Norm, context, alone: Bits(64.0), exact: true, received: &received };
            assert_eq!(evidence.allows(&RandK::default(), 10.0), honest);
            // ‖v‖ ≥ ‖v̂‖/(d/q) = 5/3.
            assert!(!evidence.allows(&RandK::default(), 1.6));
            let written = RandK::default().write(&mut Coder::default(), &context, &received, &mut Vec::new());
            assert_eq!(written.is_ok(), honest);
        }
    }

    #[test]
    fn a_payload_has_one_bit_more_than_the_formula() {
        let context = Context::new(100, Bits(1000.0));
        let (mut unused, mut out, mut payload) = (stream(0, Purpose::Test, 0, 0), Encoded::default(), vec![]);
        let scheme = RandK::default();
        let spent = scheme.encode(&[0.3; 100], &context, &mut unused, &mut Scratch::default(), &mut out);
        assert_eq!(spent, Spent { bits: Bits(992.0), level: 31 });
        assert_eq!(scheme.write(&mut Coder::default(), &context, &out, &mut payload), Ok(993));
        // At the paper's size a link of 36 833 bits holds 1151 values.
        assert_eq!([1500.0, 3000.0, 36_833.0].map(|r| largest_q(203_530, Bits(r))), [46, 93, 1151]);
    }
}
