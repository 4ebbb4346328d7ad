//! QSGD: every entry rounded at random to a multiple of ‖v‖/s; unbiased at a given s.
//!
//! # Length
//! The length of a payload depends on the data and on the draw: more steps, more entries that are not zero. A
//! device therefore encodes. It goes up through the numbers of steps s ∈ {⌊2^(j/4)⌋} = {1, 2, 3, 4, 5, 6, 8,
//! …, 2¹⁵} with the same uniform numbers for all, and sends the last one before the first whose payload is
//! longer than the budget. The bits of s are the most that any number of steps up to s took: r(s) ≤ R <
//! r(next s) to the bit. (A search by halves would take fewer encodings, but lengths do not rise strictly,
//! and the largest level that fits would not be well defined. The short payloads come first, so that all
//! encodings take about three times as long as the last.)
//!
//! **Bias.** At a given s the scheme is unbiased. Within a budget it is not: s depends on the draw. A draw
//! with more entries than the mean may have to take fewer steps, and one that does not fit at s = 1 is
//! silent. That leaves a bias toward draws with few entries, of the order of their relative spread,
//! 1/√(entries), where every draw fits at s = 1, and a large one where most do not: for normal entries with d
//! = 120, ⟨E\[v̂\], v⟩/‖v‖² is 0.2 at 100 bits and 1 from about 140 bits on. The scheme is therefore declared
//! biased.
//!
//! # Audit
//! The payload names s and the unit ‖v‖/s. So **‖v‖ is known**, up to rounding, and a report of it must be
//! that. With the same budget alone and on the air, ‖v̂‖ equals the report, to the bit. For another budget,
//! let s\* be its steps: |v̂_i| ≤ |v_i| + ‖v‖/s\*, so ‖v̂(s\*)‖ ≤ (1 + √d)·‖v‖; there is no lower bound,
//! since it may be silent.

use super::audit::{Evidence, IMPOSSIBLE, unrounded};
use super::wire::{Coder, WireError};
use super::{Codec, Compressor, Context, Encoded, Properties, Scratch, SparseUpdate, Spent, Values};
use crate::base::kernels::norm;
use crate::base::rng::Stream;
use crate::base::units::Bits;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::Ask;
use fedlink_wire::{Grid, MAX_STEPS, steps};
use std::ops::RangeInclusive;

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Compressor> = Entry::of::<Qsgd>();

/// Sends every entry as ‖v‖·sgn(v_i)·ξ_i/s with ξ_i = ⌊u⌋ or ⌊u⌋ + 1, at random with mean u = s·|v_i|/‖v‖.
///
/// - Bits: those of the payload: about 33 for ‖v‖/s, 14 for s and the law of the levels, log2(d+1) for the
///   number of entries that are not zero, log2 C(d, entries), a sign for each, and its level by a geometric
///   law. The level of the scheme is s, the largest of {⌊2^(j/4)⌋} up to 2¹⁵ that fits.
/// - Value: at given s, E\[v̂\] = v and E‖v̂ − v‖² = (‖v‖/s)²·Σ f_i(1 − f_i), f_i = u − ⌊u⌋, which is at most
///   ω = min(d/s², √d/s) times ‖v‖².
///
/// Source: Alistarh et al., *QSGD* (2017), arXiv 1610.02132, with the 2-norm and an entropy code of our own.
/// Invariants: no level above s; at given s v̂ of a·v is a·v̂; the payload is no longer than the budget. The
/// largest s that fits may differ between v and a·v: the unit is part of the number that a payload encodes,
/// which may have one more digit.
///
/// ```
/// use fedlink::compress::{Compressor, Context, Encoded, Qsgd, Scratch};
/// use fedlink::base::rng::{Purpose, stream};
/// use fedlink::base::units::Bits;
/// let (known, mut sent) = (Context::new(4, Bits(200.0)), Encoded::default());
/// let mut rng = stream(0, Purpose::Sparsify, 0, 0);
/// let update = [0.6, -0.3, 0.1, 0.0];
/// let spent = Qsgd {}.encode(&update, &known, &mut rng, &mut Scratch::default(), &mut sent);
/// // With 2¹⁵ steps nothing is far off.
/// assert!(spent.level == 32_768 && spent.bits.0 <= 200.0);
/// sent.for_each(|i, value| assert!((value - update[i as usize]).abs() < 1e-4));
/// ```
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Qsgd {}

impl PartConfig for Qsgd {
    type Part = dyn Compressor;
    const NAME: &'static str = "qsgd";
    const FAMILY: &'static str = "rounded";
    const MEANING: &'static str = "QSGD: entries rounded at random to multiples of the norm over s, sized by \
        encoding; unbiased at a given s";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Compressor>, ConfigError> {
        Ok(Box::new(self))
    }
}

/// Writes `update` quantized to s steps to `indices` and `grid`: entry i is rounded up if `uniforms[i]` is
/// below the fraction.
fn quantize(
    update: &[f32],
    norm: f64,
    steps: u32,
    uniforms: &[f64],
    indices: &mut Vec<u32>,
    grid: &mut Grid,
) {
    indices.clear();
    grid.levels.clear();
    grid.steps = steps;
    grid.unit = (norm / f64::from(steps)).min(f64::from(f32::MAX)) as f32;
    if grid.unit == 0.0 {
        return;
    }
    let (unit, max) = (f64::from(grid.unit), f64::from(steps));
    for ((i, &x), &uniform) in (0u32..).zip(update).zip(uniforms) {
        // The rounding of the unit must not lift a level above s.
        let exact = (f64::from(x.abs()) / unit).min(max);
        let level = exact as i32;
        let level = level + i32::from(uniform < exact - f64::from(level));
        if level > 0 {
            indices.push(i);
            grid.levels.push(if x < 0.0 { -level } else { level });
        }
    }
}

impl Compressor for Qsgd {
    fn encode(
        &self,
        update: &[f32],
        context: &Context,
        rng: &mut Stream,
        scratch: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent {
        let dim = update.len() as u32;
        let uniforms = &mut scratch.uniforms;
        uniforms.clear();
        uniforms.extend(update.iter().map(|_| rng.uniform()));
        let norm = norm(update);
        let (mut coder, mut payload, mut spent) =
            (fedlink_wire::Coder::default(), Vec::new(), Spent::default());
        let (mut trial, mut best) = (SparseUpdate::default(), SparseUpdate::default());
        for steps in steps().take_while(|_| dim > 0) {
            let mut grid = take_grid(&mut trial);
            quantize(update, norm, steps, uniforms, &mut trial.indices, &mut grid);
            // A unit with fewer digits than others would bias the upload.
            let is_coarse = steps > 1 && norm > 0.0 && grid.unit < f32::MIN_POSITIVE;
            let bits = coder.encode_grid(dim, &trial.indices, &grid, &mut payload);
            trial.values = Values::Grid(grid);
            match bits {
                Ok(bits) if bits as f64 <= context.budget.0 && !is_coarse => {
                    spent = Spent { bits: Bits(spent.bits.0.max(bits as f64)), level: steps as usize };
                    std::mem::swap(&mut trial, &mut best);
                }
                _ => break,
            }
        }
        *out = if spent.level == 0 { Encoded::Silent } else { Encoded::Sparse(best) };
        spent
    }

    fn codec(&self) -> Option<&dyn Codec> {
        Some(self)
    }

    fn properties(&self, dim: usize, level: usize) -> Properties {
        let (dim, s) = (dim as f64, level as f64);
        // At a given s; which s fits depends on the draw.
        Properties { unbiased: false, ..Properties::unbiased(Some((dim / (s * s)).min(dim.sqrt() / s))) }
    }

    fn highest_level(&self, _: usize) -> Option<usize> {
        Some(MAX_STEPS as usize)
    }

    fn has_audit(&self) -> bool {
        true
    }

    fn honest_reports(&self, evidence: &Evidence) -> RangeInclusive<f64> {
        let Evidence { ask, context, alone, received, .. } = *evidence;
        let Encoded::Sparse(SparseUpdate { values: Values::Grid(grid), .. }) = received else {
            return IMPOSSIBLE;
        };
        let [low, high] = unrounded(grid.unit).map(|unit| unit * f64::from(grid.steps));
        // A unit that was cut to the largest float gives no upper bound.
        let high = if grid.unit == f32::MAX { f64::INFINITY } else { high };
        match ask {
            Ask::Norm => low..=high,
            Ask::CompressedNorm if alone == context.budget => {
                // The upload is the vector that the device reported on.
                let norm = f64::from(received.norm());
                norm..=norm
            }
            Ask::CompressedNorm => 0.0..=high * (1.0 + (context.dim as f64).sqrt()),
            // An update is no evidence about the loss.
            Ask::Loss | Ask::RmsLoss => 0.0..=f64::INFINITY,
        }
    }
}

/// The grid of an update with its memory.
fn take_grid(update: &mut SparseUpdate) -> Grid {
    match std::mem::take(&mut update.values) {
        Values::Grid(grid) => grid,
        Values::Shared(_) | Values::Each(_) => Grid::default(),
    }
}

impl Codec for Qsgd {
    fn write(
        &self,
        coder: &mut Coder,
        context: &Context,
        update: &Encoded,
        payload: &mut Vec<u8>,
    ) -> Result<u64, WireError> {
        match update {
            Encoded::Sparse(SparseUpdate { indices, values: Values::Grid(grid) }) => {
                coder.bits.encode_grid(context.dim as u32, indices, grid, payload)
            }
            _ => Err(WireError::Update { problem: "only values on a grid have this format".into() }),
        }
    }

    fn read(
        &self,
        coder: &mut Coder,
        context: &Context,
        payload: &[u8],
        update: &mut Encoded,
    ) -> Result<(), WireError> {
        let (bits, longest) = (super::wire::bit_length(payload), self.longest(context));
        if bits > longest || context.dim == 0 {
            return Err(WireError::TooLong { bits, longest });
        }
        let update = update.make_sparse();
        match coder.bits.decode_grid(context.dim as u32, payload, &mut update.indices) {
            Ok(grid) => update.values = Values::Grid(grid),
            Err(error) => {
                *update = SparseUpdate::default();
                return Err(error);
            }
        }
        Ok(())
    }

    fn accepts(&self, update: &Encoded) -> bool {
        matches!(update, Encoded::Sparse(SparseUpdate { values: Values::Grid(_), .. })) && update.is_finite()
    }

    fn longest(&self, context: &Context) -> u64 {
        // No device sends more than its budget, which is infinite only where there is no limit.
        context.budget.0 as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};

    fn quantized(update: &[f32], steps: u32, uniforms: &[f64]) -> Vec<f64> {
        let (mut indices, mut grid) = (Vec::new(), Grid::default());
        quantize(update, norm(update), steps, uniforms, &mut indices, &mut grid);
        let mut dense = vec![0.0; update.len()];
        indices.iter().zip(grid.values()).for_each(|(&i, value)| dense[i as usize] = f64::from(value));
        dense
    }

    #[test]
    fn the_mean_is_exact_and_the_variance_that_of_the_closed_form() {
        // Every combination of rounding down (a uniform number of 1) and up (0), with its probability.
        let update = [0.6f32, -0.3, 0.1, 0.0];
        for steps in [1u32, 2, 3, 5] {
            let unit = norm(&update) / f64::from(steps);
            let fractions: Vec<f64> = update.iter().map(|x| (f64::from(x.abs()) / unit).fract()).collect();
            let (mut mean, mut variance) = ([0.0; 4], 0.0);
            for outcome in 0u32..16 {
                let up = |i: usize| outcome >> i & 1 == 1;
                let p: f64 =
                    fractions.iter().enumerate().map(|(i, f)| if up(i) { *f } else { 1.0 - f }).product();
                if p == 0.0 {
                    continue;
                }
                let uniforms: Vec<f64> = (0..4).map(|i| if up(i) { 0.0 } else { 1.0 }).collect();
                let sent = quantized(&update, steps, &uniforms);
                for i in 0..4 {
                    mean[i] += p * sent[i];
                    variance += p * (sent[i] - f64::from(update[i])).powi(2);
                }
            }
            assert!(mean.iter().zip(&update).all(|(m, x)| (m - f64::from(*x)).abs() < 1e-7), "{mean:?}");
            let closed: f64 = unit * unit * fractions.iter().map(|f| f * (1.0 - f)).sum::<f64>();
            assert!((variance - closed).abs() < 1e-7, "s = {steps}: {variance}, {closed}");
            if steps == 2 {
                assert!((variance - 0.056_056_30).abs() < 1e-7, "{variance}");
            }
            let omega = Qsgd {}.properties(4, steps as usize).omega.unwrap();
            assert!(variance <= omega * norm(&update).powi(2));
        }
    }

    #[test]
    fn a_power_of_two_times_the_update_has_the_same_levels_and_its_payload_at_most_a_bit_more() {
        let mut lengths = std::collections::BTreeSet::new();
        for draw in 0..300 {
            let mut rng = stream(draw, Purpose::Test, 0, 0);
            let update: Vec<f32> = (0..40).map(|_| rng.normal() as f32).collect();
            let uniforms: Vec<f64> = update.iter().map(|_| rng.uniform()).collect();
            let length = |factor: f32, steps: u32| {
                let scaled: Vec<f32> = update.iter().map(|x| factor * x).collect();
                let (mut indices, mut grid) = (Vec::new(), Grid::default());
                quantize(&scaled, norm(&scaled), steps, &uniforms, &mut indices, &mut grid);
                let bits =
                    fedlink_wire::Coder::default().encode_grid(40, &indices, &grid, &mut Vec::new()).unwrap();
                ((indices, grid.levels, grid.unit / factor), bits)
            };
            for steps in steps().take(40) {
                let (once, bits) = length(1.0, steps);
                for factor in [4.0, 1024.0, 0.125] {
                    let (scaled, other) = length(factor, steps);
                    assert_eq!(scaled, once, "draw {draw}, s = {steps}");
                    lengths.insert(other as i64 - bits as i64);
                }
            }
        }
        assert!(lengths.iter().all(|difference| difference.abs() <= 1), "{lengths:?}");
        assert!(lengths.len() > 1, "lengths do differ: {lengths:?}");
    }

    #[test]
    fn the_next_number_of_steps_does_not_fit_and_bits_are_those_of_the_payload() {
        let update: Vec<f32> = {
            let mut rng = stream(3, Purpose::Test, 0, 0);
            (0..500).map(|_| rng.normal() as f32).collect()
        };
        let mut highest = 0;
        for budget in [60.0, 200.0, 300.0, 700.0, 1500.0, 4000.0] {
            let context = Context::new(500, Bits(budget));
            let (mut rng, mut out) = (stream(3, Purpose::Test, 1, 0), Encoded::default());
            let spent = Qsgd {}.encode(&update, &context, &mut rng, &mut Scratch::default(), &mut out);
            let mut rng = stream(3, Purpose::Test, 1, 0);
            let uniforms: Vec<f64> = update.iter().map(|_| rng.uniform()).collect();
            let length = |steps: u32| {
                let (mut indices, mut grid) = (Vec::new(), Grid::default());
                quantize(&update, norm(&update), steps, &uniforms, &mut indices, &mut grid);
                fedlink_wire::Coder::default().encode_grid(500, &indices, &grid, &mut Vec::new()).unwrap()
            };
            // By encoding all of them.
            let fits = steps().take_while(|&s| length(s) as f64 <= budget).last();
            assert_eq!(spent.level, fits.map_or(0, |s| s as usize), "R = {budget}");
            if let Some(s) = fits {
                let most = steps().take_while(|&t| t <= s).map(length).max();
                assert_eq!(Some(spent.bits.0 as u64), most);
            }
            assert!(spent.level >= highest);
            highest = spent.level;
        }
        assert!(highest > 8, "{highest}");
    }

    #[test]
    fn a_report_of_another_norm_is_a_lie() {
        let (update, context) = ([0.6f32, -0.3, 0.1, 0.0], Context::new(4, Bits(90.0)));
        let (mut rng, mut received) = (stream(3, Purpose::Test, 1, 0), Encoded::default());
        Qsgd {}.encode(&update, &context, &mut rng, &mut Scratch::default(), &mut received);
        let evidence =
            Evidence { ask: Ask::Norm, context, alone: Bits(1e3), exact: true, received: &received };
        let truth = norm(&update) as f32;
        assert!(evidence.allows(&Qsgd {}, truth));
        assert!(!evidence.allows(&Qsgd {}, truth * 1.001) && !evidence.allows(&Qsgd {}, truth * 0.999));
    }
}
