//! EDEN: signs, or a few bits, of the entries of a randomly rotated update.
//!
//! # The rotation
//! d′ = 2^⌈log2 d⌉; v is filled up with zeros to d′ entries, multiplied by random signs D that both ends draw
//! from their shared stream, and by the Hadamard matrix: x = H·D·v/√d′, ‖x‖ = ‖v‖. Whatever v is, the entries
//! of x are nearly normal with variance ‖v‖²/d′. Both ends draw n of the d′ places, too; only those are
//! coded, each with b bits. Back at the server the entries beyond d are known to be zero, so that the code's
//! error there does no harm: n places out of d′ are worth as much as n out of d would be.
//!
//! # Bias
//! Over uniform rotations the unbiased scale is exact, E\[v̂\] = v. Over H·D it is so only nearly: with few
//! entries that matter x has few values. The measured bias ‖E\[v̂\] − v‖ at d = 4096 and n = d is below
//! 0.01·‖v‖ for one entry alone, for normal entries and for their cubes, and 0.06·‖v‖ for six equal entries
//! above a floor of a hundredth of them (a test measures all four). For two entries (r, 1), r > 1, and
//! nothing else, the signs of x are those of the larger entry alone, in every draw: v̂ = ((r² + 1)/r, 0), and
//! the bias is ‖v‖/r (another test). The scheme therefore does not declare "unbiased", but the equation that
//! holds for every update: since ⟨v̂, v⟩ = ‖x_s‖²/p exactly, E‖v̂ − v‖² = E‖v̂‖² − ‖v‖².
//!
//! # Bounds
//! Let x_s be the n coded entries, c their centroids, c₁ and c_L the smallest and the largest one. As every
//! centroid has the sign of its entry, c₁·‖x_s‖ ≤ c₁·‖x_s‖₁ ≤ ⟨c, x_s⟩ ≤ ‖c‖·‖x_s‖ and ‖c‖² ≤ n·c_L². With
//! E‖x_s‖² = (n/d′)·‖v‖²:
//!
//! > unbiased scale: E‖v̂ − v‖² ≤ (d′·(c_L/c₁)² − 1)·‖v‖²; projection: δ ≥ (c₁/c_L)²/d′.
//!
//! Both are loose. With Lloyd's distortion D_b = 0.36338, 0.11748, 0.034548, 0.009501 the error is that of n
//! normal numbers among d′, and orthogonal to v; of it, the first d entries have their share:
//!
//! > ω ≈ (d′/(n·(1 − D_b)) − 1)·d/d′ and δ ≈ 1/(1 + ω), which is (n/d)·(1 − D_b) for d = d′.
//!
//! # Audit
//! Of a scale A > 0 that arrives: unbiased, A = ‖x_s‖²/⟨c, x_s⟩ lies between ‖x_s‖/‖c‖ and ‖x_s‖/c₁, so that
//! ‖v‖ ≥ ‖x_s‖ ≥ c₁·A, and ‖v‖ ≤ ‖c‖·A if all places were coded. Projection: ‖v‖ ≥ ‖v̂‖, and ‖v‖ ≤ A·‖w‖²/c₁
//! if all were, with w the decoded vector of the centroids alone. The places of another budget are another
//! draw: there is no bound on ‖v̂(R\*)‖, unless R\* has the same n.

use super::audit::{Evidence, unrounded};
use super::wire::{Coder, WireError};
use super::{Codec, Coded, Compressor, Context, Encoded, Properties, Scratch, Spent};
use crate::base::kernels::{hadamard, norm};
use crate::base::rng::Stream;
use crate::base::units::Bits;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::Ask;
use fedlink_wire::{Packer, Unpacker, check_finite};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Compressor> = Entry::of::<Eden>();

/// Codes n entries of the rotated update with b bits each, and sends one scale.
///
/// - Bits: `r(n) = 32 + n·b`, exactly and without an entropy code; 1 ≤ n ≤ d′. The payload has one bit more,
///   which marks its beginning.
/// - Value: c_i is the centroid of Lloyd's quantizer for normal numbers that is nearest to x_i·√n/‖x_s‖. With
///   `scale = "unbiased"` the server makes (d′/n)·A·c of it, A = ‖x_s‖²/⟨c, x_s⟩, and rotates it back; with
///   `"projection"` the scale is that of the nearest multiple, ⟨v, v̂⟩ = ‖v̂‖², as error feedback needs it.
///
/// Source: Vargaftik et al., *EDEN* (ICML 2022), and *DRIVE* (2021), arXiv 2105.08339, as we read their code.
/// Invariants: homogeneous; r(n) ≤ R < r(n+1) for n < d′; signs and places differ by round and device, so
/// that errors do not add up. Cost: two transforms of d′·log2 d′ additions for an upload, one at the server.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Eden {
    /// b, bits of a coded entry; more than 1 pays if there are more than d bits
    #[key(default = 1, range = "1 ..= 4")]
    pub bits: u64,
    /// what the scale is chosen for
    #[key(default = Scale::Unbiased, allowed = "\"unbiased\" | \"projection\" (for error feedback)")]
    pub scale: Scale,
}

/// The target that the scale of [`Eden`] is chosen for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Scale {
    /// The mean of v̂ over the rotations is v.
    #[default]
    Unbiased,
    /// v̂ is as near to v as a multiple of its direction can be.
    Projection,
}

impl PartConfig for Eden {
    type Part = dyn Compressor;
    const NAME: &'static str = "eden";
    const FAMILY: &'static str = "signs";
    const MEANING: &'static str =
        "signs, or a few bits, of as many entries of the randomly rotated update as fit, and one scale";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Compressor>, ConfigError> {
        Ok(Box::new(self))
    }
}

/// Bits of the scale.
const SCALE_BITS: f64 = 32.0;

/// The positive centroids of Lloyd's quantizer of a standard normal number with b bits.
pub(super) const CENTROIDS: [&[f32]; 4] = [
    &[0.797_884_6],
    &[0.452_780_03, 1.510_417_6],
    &[0.245_094_18, 0.756_005_3, 1.343_909_3, 2.151_945_7],
    &[
        0.128_395_03,
        0.388_048_3,
        0.656_759_12,
        0.942_340_46,
        1.256_231_2,
        1.618_046_4,
        2.069_017_2,
        2.732_589_6,
    ],
];

/// The index of the centroid that is nearest to `magnitude`.
pub(super) fn nearest(centroids: &[f32], magnitude: f32) -> u8 {
    centroids.windows(2).take_while(|pair| magnitude > 0.5 * (pair[0] + pair[1])).count() as u8
}

/// Memory for a rotation.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    rotated: Vec<f32>,
    places: Vec<u64>,
}

/// d′.
fn padded(dim: usize) -> usize {
    dim.next_power_of_two()
}

impl Rotation {
    /// Draws `count` of the d′ places, every set of them as probable as any other.
    fn draw_places(&mut self, stream: &mut Stream, dim: usize, count: usize) {
        let all = padded(dim);
        self.places.clear();
        self.places.resize(all.div_ceil(64), 0);
        // The fewer of those that are coded and those that are not are drawn.
        let fewer = count.min(all - count);
        let mask = all as u64 - 1;
        let mut drawn = 0;
        while drawn < fewer {
            let both = stream.bits();
            for place in [both >> 32 & mask, both & mask & u64::from(u32::MAX)] {
                let (word, bit) = (&mut self.places[place as usize / 64], 1 << (place % 64));
                if drawn < fewer && *word & bit == 0 {
                    *word |= bit;
                    drawn += 1;
                }
            }
        }
        if fewer < count {
            self.places.iter_mut().for_each(|word| *word = !*word);
            if let Some(last) = self.places.last_mut().filter(|_| all < 64) {
                *last &= (1 << all) - 1;
            }
        }
    }

    /// Multiplies the first `dim` numbers by the random signs.
    fn flip(stream: &mut Stream, numbers: &mut [f32]) {
        for part in numbers.chunks_mut(64) {
            let mut signs = stream.bits();
            for x in part {
                *x = f32::from_bits(x.to_bits() ^ ((signs as u32 & 1) << 31));
                signs >>= 1;
            }
        }
    }

    /// Calls `visit` with every place that is coded, in ascending order.
    fn for_each_place(places: &[u64], mut visit: impl FnMut(usize)) {
        for (i, &word) in places.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                visit(64 * i + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }
}

impl Eden {
    /// The largest n that the budget holds.
    fn level(&self, dim: usize, budget: Bits) -> usize {
        if dim == 0 {
            return 0;
        }
        // A negative or undefined number becomes 0 in the conversion.
        let fits = ((budget.0 - SCALE_BITS) / self.bits as f64) as u64;
        fits.min(padded(dim) as u64) as usize
    }

    fn centroids(&self) -> &'static [f32] {
        CENTROIDS[self.bits as usize - 1]
    }

    /// The value of a symbol: a sign above the index of a centroid.
    fn value(&self, symbol: u8) -> f32 {
        let low = (1u8 << (self.bits - 1)) - 1;
        let centroid = self.centroids()[usize::from(symbol & low)];
        if symbol >> (self.bits - 1) & 1 == 0 { centroid } else { -centroid }
    }

    /// w: the first d entries of the centroids rotated back, without a scale; for the unbiased scale times
    /// d′/n. It is written to `values`.
    fn unscaled(&self, context: &Context, symbols: &[u8], work: &mut Rotation, values: &mut Vec<f32>) {
        let (dim, all) = (context.dim, padded(context.dim));
        let mut stream = context.shared();
        // The signs come first in the stream: they do not depend on n.
        values.clear();
        values.resize(dim, 1.0);
        Rotation::flip(&mut stream, values);
        work.draw_places(&mut stream, dim, symbols.len());
        let Rotation { rotated, places } = work;
        rotated.clear();
        rotated.resize(all, 0.0);
        let mut symbol = symbols.iter();
        Rotation::for_each_place(places, |place| {
            rotated[place] = symbol.next().map_or(0.0, |&symbol| self.value(symbol));
        });
        hadamard(rotated);
        let factor = match self.scale {
            Scale::Unbiased => all as f64 / symbols.len().max(1) as f64,
            Scale::Projection => 1.0,
        };
        let factor = (factor / (all as f64).sqrt()) as f32;
        values.iter_mut().zip(rotated).for_each(|(value, x)| *value *= *x * factor);
    }
}

/// Multiplies w by the scale.
fn apply_scale(values: &mut [f32], scale: f32) {
    values.iter_mut().for_each(|value| *value *= scale);
}

/// ⟨a, b⟩ in double precision.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

impl Compressor for Eden {
    fn encode(
        &self,
        update: &[f32],
        context: &Context,
        _: &mut Stream,
        scratch: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent {
        let n = self.level(context.dim, context.budget);
        if n == 0 {
            *out = Encoded::Silent;
            return Spent::default();
        }
        let Coded { scales, symbols, values, .. } = out.make_coded();
        let work = &mut scratch.rotation;
        // By a power of two, which is exact, so that sums neither overflow nor vanish.
        let largest = update.iter().fold(0.0f32, |max, x| max.max(x.abs()));
        let unit = if largest > 0.0 { libm::exp2(-libm::floor(libm::log2(f64::from(largest)))) } else { 1.0 };
        let mut stream = context.shared();
        work.rotated.clear();
        work.rotated.extend(update.iter().map(|&x| (f64::from(x) * unit) as f32));
        Rotation::flip(&mut stream, &mut work.rotated);
        work.draw_places(&mut stream, context.dim, n);
        work.rotated.resize(padded(context.dim), 0.0);
        hadamard(&mut work.rotated);
        let root = (padded(context.dim) as f64).sqrt();
        let (rotated, mut energy) = (&work.rotated, 0.0);
        Rotation::for_each_place(&work.places, |place| energy += f64::from(rotated[place]).powi(2));
        let to_one = if energy > 0.0 { ((n as f64 / energy).sqrt()) as f32 } else { 0.0 };
        let (mut along, sign_bit) = (0.0, self.bits - 1);
        Rotation::for_each_place(&work.places, |place| {
            let x = rotated[place];
            let symbol = nearest(self.centroids(), x.abs() * to_one) | u8::from(x < 0.0) << sign_bit;
            along += f64::from(x) * f64::from(self.value(symbol));
            symbols.push(symbol);
        });
        self.unscaled(context, symbols, work, values);
        let scale = match self.scale {
            Scale::Unbiased if along > 0.0 => energy / along / root / unit,
            Scale::Projection => {
                let own = norm(values).powi(2);
                if own > 0.0 { dot(update, values) / own } else { 0.0 }
            }
            Scale::Unbiased => 0.0,
        };
        // Beyond the largest number there is, it stays there.
        let room = (1.0 - 1e-6) * f64::from(f32::MAX)
            / values.iter().fold(1.0f64, |max, x| max.max(f64::from(x.abs())));
        let scale = scale.clamp(-room, room) as f32;
        apply_scale(values, scale);
        scales.push(scale);
        Spent { bits: Bits(SCALE_BITS + (n as u64 * self.bits) as f64), level: n }
    }

    fn codec(&self) -> Option<&dyn Codec> {
        Some(self)
    }

    fn properties(&self, dim: usize, _: usize) -> Properties {
        let (first, last) =
            (f64::from(self.centroids()[0]), f64::from(self.centroids()[self.centroids().len() - 1]));
        let worst = padded(dim) as f64 * (last / first).powi(2);
        match self.scale {
            Scale::Unbiased => Properties { unbiased: false, ..Properties::unbiased(Some(worst - 1.0)) },
            Scale::Projection => Properties::projection(1.0 / worst),
        }
    }

    fn largest_level(&self, dim: usize, budget: Bits) -> Option<usize> {
        Some(self.level(dim, budget))
    }

    fn has_audit(&self) -> bool {
        true
    }

    fn honest_reports(&self, evidence: &Evidence) -> RangeInclusive<f64> {
        let Evidence { ask, context, alone, exact, received } = *evidence;
        let Encoded::Coded(Coded { scales, symbols, values, .. }) = received else {
            return 0.0..=f64::INFINITY;
        };
        let &[scale] = scales.as_slice() else { return 0.0..=f64::INFINITY };
        if scale < 0.0 {
            // No honest device sends this.
            return f64::INFINITY..=0.0;
        }
        match ask {
            Ask::Norm => {
                let [low, high] = unrounded(scale);
                let first = f64::from(self.centroids()[0]);
                let sent = norm(values);
                let [least, most] = match self.scale {
                    Scale::Unbiased => {
                        let square = |&symbol: &u8| f64::from(self.value(symbol)).powi(2);
                        [low * first, high * symbols.iter().map(square).sum::<f64>().sqrt()]
                    }
                    Scale::Projection if scale > 0.0 => [sent, sent.powi(2) / f64::from(scale) / first],
                    Scale::Projection => [0.0, f64::INFINITY],
                };
                // The transform rounds each sum.
                let is_whole = symbols.len() == padded(context.dim);
                least * (1.0 - ROTATED)..=if is_whole { most * (1.0 + ROTATED) } else { f64::INFINITY }
            }
            Ask::CompressedNorm if exact && self.level(context.dim, alone) == symbols.len() => {
                let norm = f64::from(received.norm());
                norm..=norm
            }
            _ => 0.0..=f64::INFINITY,
        }
    }
}

/// A bound on the relative change of a norm by the roundings of a transform.
const ROTATED: f64 = 1e-4;

impl Codec for Eden {
    fn write(
        &self,
        _: &mut Coder,
        context: &Context,
        update: &Encoded,
        payload: &mut Vec<u8>,
    ) -> Result<u64, WireError> {
        let refuse = |problem: &str| WireError::Update { problem: problem.into() };
        let Encoded::Coded(Coded { scales, symbols, .. }) = update else {
            return Err(refuse("only a coded update has this format"));
        };
        let &[scale] = scales.as_slice() else { return Err(refuse("it must have one scale")) };
        if symbols.is_empty() || symbols.len() > self.level(context.dim, context.budget) {
            return Err(refuse("it has other places than the budget holds"));
        }
        if !scale.is_finite() {
            return Err(WireError::NotFinite { entry: 0, value: scale });
        }
        let width = self.bits as u32;
        let mut writer = Packer::new(32 + symbols.len() as u64 * self.bits, payload);
        writer.put(scale.to_bits(), 32);
        symbols.iter().for_each(|&symbol| writer.put(u32::from(symbol), width));
        Ok(writer.finish())
    }

    fn read(
        &self,
        coder: &mut Coder,
        context: &Context,
        payload: &[u8],
        update: &mut Encoded,
    ) -> Result<(), WireError> {
        let (mut reader, bits) = Unpacker::within(payload, self.longest(context))?;
        let coded = bits.checked_sub(32).filter(|bits| *bits > 0 && bits.is_multiple_of(self.bits));
        let n = coded.ok_or(WireError::Length { short: true })? / self.bits;
        let scale = f32::from_bits(reader.take(32));
        if !scale.is_finite() {
            return Err(WireError::NotFinite { entry: 0, value: scale });
        }
        let Coded { scales, symbols, values, .. } = update.make_coded();
        scales.push(scale);
        symbols.extend((0..n).map(|_| reader.take(self.bits as u32) as u8));
        self.unscaled(context, symbols, &mut coder.rotation, values);
        apply_scale(values, scale);
        check_finite(values)
    }

    fn accepts(&self, update: &Encoded) -> bool {
        matches!(update, Encoded::Coded(_)) && update.is_finite()
    }

    fn longest(&self, context: &Context) -> u64 {
        match self.level(context.dim, context.budget) as u64 {
            0 => 0,
            n => 33 + n * self.bits,
        }
    }
}

#[cfg(test)]
mod tests;
