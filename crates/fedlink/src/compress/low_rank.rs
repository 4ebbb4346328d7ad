//! Low rank: layers as sums of a few quantized outer products, and sparse ternary compression of the rest.
//!
//! # Terms
//! A term of a layer W (rows × cols) is s·û·v̂ᵀ. u is the leading left singular vector of the residual of
//! W, by at most six power iterations from its heaviest row; û is u with b bits per entry, by the
//! centroids of Lloyd's quantizer for normal numbers; v = Wᵀû, v̂ likewise, and s = ûᵀWv̂/(‖û‖²·‖v̂‖²) is
//! the optimum for them. The term is subtracted before the search for the next one. So every term is the
//! projection of the residual on its direction, and energies add up: ‖v − Σ terms‖² = ‖v‖² − Σ
//! s²·‖û‖²·‖v̂‖². (Directions of several terms are not orthogonal, so their sum is not a projection.)
//!
//! The next term is that of the layer with the largest reduction of energy per bit, as long as a term
//! fits beside one entry of the rest. The remaining budget is for [`Stc`] on the residuals of all layers:
//! biases, layers whose terms do not fit, single entries. If no term fits, or layers are not known,
//! [`Stc`] gets everything.
//!
//! # Audit
//! With the energies e_j of the terms, and c entries ±μ of the rest: ‖v‖² = Σ e_j + ‖rest‖², and the
//! bounds of [`Stc`] hold for the rest: Σ e_j + c·μ² ≤ ‖v‖² ≤ Σ e_j + μ²·max(c², d).

use super::audit::{Evidence, TINY};
use super::eden::{CENTROIDS, nearest};
use super::singular_vectors::{leading, transposed_product};
use super::stc::Stc;
use super::wire::{Coder, Format, Layout, WireError, bit_length, check_values};
use super::{Codec, Coded, Compressor, Context, Encoded, Properties, Scratch, SparseScheme, Spent, Values};
use crate::base::kernels::norm;
use crate::base::rng::Stream;
use crate::base::units::{Bits, Shape};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::schedule::Ask;
use fedlink_wire::{Packer, Unpacker, check_finite};
use std::ops::RangeInclusive;

/// The entry of this scheme.
pub const ENTRY: Entry<dyn Compressor> = Entry::of::<LowRank>();

/// Sends outer products of quantized factors, per layer, and the rest as [`Stc`] does.
///
/// - Bits: `r = Σ_terms (⌈log2(L+1)⌉ + 32 + (rows + cols)·b) + ⌈log2(L+1)⌉ + ⌈r_stc(q)⌉`, where L is the
///   number of layers with at least two rows and columns: the layer, s, both factors; the end of the
///   terms; the rest. The level is r, a whole number.
/// - Value: the sum of the terms and of ±μ on the entries of the rest.
///
/// Source: after Vogels, Karimireddy and Jaggi, *PowerSGD* (2019), arXiv 1905.13727, in our reading, with
/// quantized factors and without its state from round to round. Invariants: homogeneous; ‖v − v̂‖² = ‖v‖²
/// minus the energies of terms and rest, so that δ ≥ 1/d; r ≤ R. Cost: twelve passes over a layer per
/// term.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct LowRank {
    /// b, bits per entry of a factor: 1 for a budget of one term, 2 up to about six, 3 above
    #[key(default = 2, range = "1 ..= 4")]
    pub bits: u64,
}

impl PartConfig for LowRank {
    type Part = dyn Compressor;
    const NAME: &'static str = "low-rank";
    const FAMILY: &'static str = "low rank";
    const MEANING: &'static str =
        "layers as sums of a few outer products of quantized factors, and the rest as stc has it";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Compressor>, ConfigError> {
        Ok(Box::new(self))
    }
}

/// Power iterations per term.
const ITERATIONS: usize = 6;

/// Terms of a layer per row or per column, whichever are fewer: further terms remove little.
const MAX_TERMS: usize = 4;

/// Bits of s.
const SCALE_BITS: u64 = 32;

/// A layer that can have terms, and its first entry.
type Matrix = (usize, Shape);

/// Memory for the search of terms.
#[derive(Debug, Default)]
pub(super) struct Search {
    left: Vec<f32>,
    candidates: Vec<Candidate>,
    u: Vec<f32>,
    v: Vec<f32>,
}

/// The next term of a layer.
#[derive(Debug, Default)]
struct Candidate {
    is_current: bool,
    /// Terms of the layer so far.
    terms: usize,
    energy: f64,
    scale: f64,
    symbols: Vec<u8>,
}

/// The largest number of layers with terms: a byte identifies the layer of a term.
const MAX_MATRICES: usize = 256;

/// The layers that can have terms: the first matrices, up to the largest number.
fn matrices(context: &Context) -> Vec<Matrix> {
    let mut start = 0;
    let mut found = Vec::new();
    for &shape in context.shapes {
        if shape.rows >= 2 && shape.cols >= 2 && found.len() < MAX_MATRICES {
            found.push((start, shape));
        }
        start += shape.len();
    }
    found
}

/// Bits that identify one of `layers` layers or none.
fn name_bits(layers: usize) -> u64 {
    u64::from(usize::BITS - layers.leading_zeros())
}

impl LowRank {
    fn centroids(self) -> &'static [f32] {
        CENTROIDS[self.bits as usize - 1]
    }

    /// Bits of a term of a layer, one of `layers`.
    fn term_bits(self, shape: Shape, layers: usize) -> u64 {
        name_bits(layers) + SCALE_BITS + (shape.rows + shape.cols) as u64 * self.bits
    }

    /// The value of a symbol: a sign above the index of a centroid.
    fn value(self, symbol: u8) -> f32 {
        let centroid = self.centroids()[usize::from(symbol & ((1 << (self.bits - 1)) - 1))];
        if symbol >> (self.bits - 1) & 1 == 0 { centroid } else { -centroid }
    }

    /// Appends the symbols of the entries of `factor`, with b bits each; replaces the factor by their
    /// values, and returns the product of both.
    fn quantize(self, factor: &mut [f32], symbols: &mut Vec<u8>) -> f64 {
        let length = norm(factor);
        let to_one = if length > 0.0 { ((factor.len() as f64).sqrt() / length) as f32 } else { 0.0 };
        let mut along = 0.0;
        for x in factor {
            let sign = u8::from(*x < 0.0) << (self.bits - 1);
            let symbol = nearest(self.centroids(), x.abs() * to_one) | sign;
            symbols.push(symbol);
            along += f64::from(*x) * f64::from(self.value(symbol));
            *x = self.value(symbol);
        }
        along
    }

    /// The next term of the residual of a layer.
    fn find(self, left: &[f32], shape: Shape, [u, v]: [&mut Vec<f32>; 2], found: &mut Candidate) {
        leading(left, shape, ITERATIONS, u, v);
        found.symbols.clear();
        self.quantize(u, &mut found.symbols);
        transposed_product(left, shape, u, v);
        let along = self.quantize(v, &mut found.symbols);
        let own = norm(u).powi(2) * norm(v).powi(2);
        found.scale = along / own;
        found.energy = found.scale.powi(2) * own;
        found.is_current = true;
    }

    /// Reads the terms in `symbols`: calls `visit` with each one's layer, symbols of û, and of v̂.
    fn for_each_term(matrices: &[Matrix], mut symbols: &[u8], mut visit: impl FnMut(Matrix, &[u8], &[u8])) {
        while let Some((&layer, rest)) = symbols.split_first() {
            let Some(&(start, shape)) = matrices.get(usize::from(layer)) else { return };
            let Some((u, rest)) = rest.split_at_checked(shape.rows) else { return };
            let Some((v, rest)) = rest.split_at_checked(shape.cols) else { return };
            visit((start, shape), u, v);
            symbols = rest;
        }
    }

    /// Fills in all entries of an update from its terms and its rest.
    fn fill(self, context: &Context, coded: &mut Coded) {
        let Coded { scales, symbols, rest, values } = coded;
        values.clear();
        values.resize(context.dim, 0.0);
        let (mut scale, mut row) = (scales.iter(), Vec::new());
        Self::for_each_term(&matrices(context), symbols, |(start, shape), u, v| {
            let scale = scale.next().copied().unwrap_or_default();
            row.clear();
            row.extend(v.iter().map(|&symbol| self.value(symbol)));
            let layer = &mut values[start..start + shape.len()];
            for (target, &symbol) in layer.chunks_exact_mut(shape.cols).zip(u) {
                let factor = scale * self.value(symbol);
                target.iter_mut().zip(&row).for_each(|(x, v)| *x += factor * v);
            }
        });
        rest.add_to(values, 1.0);
    }

    /// Σ e_j, and the bits of all terms and of their end.
    fn terms(self, context: &Context, coded: &Coded) -> (f64, u64) {
        let layers = matrices(context);
        let (mut energy, mut bits, mut scale) = (0.0, name_bits(layers.len()), coded.scales.iter());
        let square = |symbols: &[u8]| symbols.iter().map(|&s| f64::from(self.value(s)).powi(2)).sum::<f64>();
        Self::for_each_term(&layers, &coded.symbols, |(_, shape), u, v| {
            energy += f64::from(scale.next().copied().unwrap_or_default()).powi(2) * square(u) * square(v);
            bits += self.term_bits(shape, layers.len());
        });
        (energy, bits)
    }

    /// The format of the rest if the terms and their end have `bits` bits.
    fn rest_format(context: &Context, bits: u64) -> Result<Format, WireError> {
        let q = Stc {}.largest_q(context.dim, Bits((context.budget.0 - bits as f64).floor()));
        Format::new(Layout::Signs, context.dim, q)
    }
}

impl Compressor for LowRank {
    fn encode(
        &self,
        update: &[f32],
        context: &Context,
        rng: &mut Stream,
        scratch: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent {
        let layers = matrices(context);
        let end = name_bits(layers.len());
        // One entry for the rest always fits.
        let spare = Stc {}.bits(context.dim, 1).0.ceil() + end as f64;
        if context.dim == 0 || context.budget.0.is_nan() || spare > context.budget.0 {
            *out = Encoded::Silent;
            return Spent::default();
        }
        let coded = out.make_coded();
        let mut search = std::mem::take(&mut scratch.search);
        let Search { left, candidates, u, v } = &mut search;
        // Scaling by a power of two is exact, and keeps squares from overflow and underflow.
        let largest = update.iter().fold(0.0f32, |max, x| max.max(x.abs()));
        let unit = if largest > 0.0 { libm::exp2(-libm::floor(libm::log2(f64::from(largest)))) } else { 1.0 };
        left.clear();
        left.extend(update.iter().map(|&x| (f64::from(x) * unit) as f32));
        candidates.resize_with(layers.len(), Candidate::default);
        candidates.iter_mut().for_each(|candidate| (candidate.is_current, candidate.terms) = (false, 0));
        let mut free = context.budget.0.min(u32::MAX.into()) as u64 - spare as u64;
        loop {
            let mut best: Option<(f64, usize)> = None;
            for (i, &(start, shape)) in layers.iter().enumerate() {
                let cost = self.term_bits(shape, layers.len());
                let full = candidates[i].terms >= MAX_TERMS * shape.rows.min(shape.cols);
                if cost > free || full || i > usize::from(u8::MAX) {
                    continue;
                }
                if !candidates[i].is_current {
                    self.find(&left[start..start + shape.len()], shape, [u, v], &mut candidates[i]);
                }
                let worth = candidates[i].energy / cost as f64;
                if worth > best.map_or(0.0, |(worth, _)| worth) {
                    best = Some((worth, i));
                }
            }
            let Some((_, i)) = best else { break };
            let ((start, shape), candidate) = (layers[i], &mut candidates[i]);
            free -= self.term_bits(shape, layers.len());
            (candidate.is_current, candidate.terms) = (false, candidate.terms + 1);
            coded.scales.push((candidate.scale / unit) as f32);
            coded.symbols.push(i as u8);
            coded.symbols.extend_from_slice(&candidate.symbols);
            let (of_u, of_v) = candidate.symbols.split_at(shape.rows);
            let layer = &mut left[start..start + shape.len()];
            for (row, &symbol) in layer.chunks_exact_mut(shape.cols).zip(of_u) {
                let factor = candidate.scale as f32 * self.value(symbol);
                row.iter_mut().zip(of_v).for_each(|(x, &symbol)| *x -= factor * self.value(symbol));
            }
        }
        let (_, bits) = self.terms(context, coded);
        let within = Bits((context.budget.0 - bits as f64).floor());
        let q = Stc {}.largest_q(context.dim, within);
        Stc {}.compress(left, q, rng, scratch, &mut coded.rest);
        if let Values::Each(values) = &mut coded.rest.values {
            values.iter_mut().for_each(|value| *value = (f64::from(*value) / unit) as f32);
            // A magnitude below the smallest float would be zero.
            if values.first() == Some(&0.0) || values.first() == Some(&-0.0) {
                values.clear();
                coded.rest.indices.clear();
            }
        }
        scratch.search = search;
        self.fill(context, coded);
        let bits = bits as f64 + Stc {}.bits(context.dim, q).0.ceil();
        Spent { bits: Bits(bits), level: bits as usize }
    }

    fn codec(&self) -> Option<&dyn Codec> {
        Some(self)
    }

    fn properties(&self, dim: usize, _: usize) -> Properties {
        Properties { projection: false, ..Properties::projection(1.0 / dim.max(1) as f64) }
    }

    fn has_audit(&self) -> bool {
        true
    }

    fn honest_reports(&self, evidence: &Evidence) -> RangeInclusive<f64> {
        let Evidence { ask, context, alone, exact, received } = *evidence;
        let Encoded::Coded(coded) = received else { return 0.0..=f64::INFINITY };
        match ask {
            Ask::Norm => {
                let (energy, _) = self.terms(&context, coded);
                let count = coded.rest.indices.len() as f64;
                let magnitude = f64::from(coded.rest.norm()) / count.max(1.0).sqrt();
                let least = (energy + count * magnitude.powi(2)).sqrt();
                let most = (energy + magnitude.powi(2) * count.powi(2).max(context.dim as f64)).sqrt();
                // Scales and magnitudes of the smallest numbers are rounded by up to half of the smallest.
                let tiny = 8.0 * TINY * context.dim as f64 * (1 + coded.scales.len()) as f64;
                (least * (1.0 - ROUNDED) - tiny).max(0.0)..=most * (1.0 + ROUNDED) + tiny
            }
            Ask::CompressedNorm if exact && alone == context.budget => {
                let norm = f64::from(received.norm());
                norm..=norm
            }
            _ => 0.0..=f64::INFINITY,
        }
    }
}

/// An upper bound on the relative change of a norm by rounded products.
const ROUNDED: f64 = 1e-3;

impl Codec for LowRank {
    fn write(
        &self,
        coder: &mut Coder,
        context: &Context,
        update: &Encoded,
        payload: &mut Vec<u8>,
    ) -> Result<u64, WireError> {
        let Encoded::Coded(coded) = update else {
            return Err(WireError::Update { problem: "only a coded update has this format".into() });
        };
        let layers = matrices(context);
        let (name, width) = (name_bits(layers.len()) as u32, self.bits as u32);
        let (_, bits) = self.terms(context, coded);
        let mut rest = Vec::new();
        let rest_bits = coder.encode(&Self::rest_format(context, bits)?, &coded.rest, &mut rest)?;
        check_finite(&coded.scales)?;
        let mut packer = Packer::new(bits + rest_bits, payload);
        let mut scale = coded.scales.iter();
        Self::for_each_term(&layers, &coded.symbols, |layer, u, v| {
            let number = layers.iter().position(|other| *other == layer).unwrap_or_default();
            packer.put(number as u32 + 1, name);
            packer.put(scale.next().map_or(0, |scale| scale.to_bits()), 32);
            u.iter().chain(v).for_each(|&symbol| packer.put(u32::from(symbol), width));
        });
        packer.put(0, name);
        for (i, &byte) in rest.iter().enumerate() {
            let width = if i == 0 { 8 - byte.leading_zeros() } else { 8 };
            packer.put(u32::from(byte), width);
        }
        Ok(packer.finish())
    }

    fn read(
        &self,
        coder: &mut Coder,
        context: &Context,
        payload: &[u8],
        update: &mut Encoded,
    ) -> Result<(), WireError> {
        let (mut unpacker, mut there) = Unpacker::within(payload, self.longest(context))?;
        let layers = matrices(context);
        let (name, width) = (name_bits(layers.len()), self.bits as u32);
        let short = WireError::Length { short: true };
        let mut bits = name;
        let coded = update.make_coded();
        loop {
            there = there.checked_sub(name).ok_or(short.clone())?;
            let layer = unpacker.take(name as u32) as usize;
            if layer == 0 {
                break;
            }
            let &(_, shape) = layers.get(layer - 1).ok_or(WireError::Version)?;
            let cost = self.term_bits(shape, layers.len());
            there = there.checked_sub(cost - name).ok_or(short.clone())?;
            bits += cost;
            coded.scales.push(f32::from_bits(unpacker.take(32)));
            coded.symbols.push((layer - 1) as u8);
            let symbols = (0..shape.rows + shape.cols).map(|_| unpacker.take(width) as u8);
            coded.symbols.extend(symbols);
        }
        if let Some(entry) = coded.scales.iter().position(|scale| !scale.is_finite()) {
            return Err(WireError::NotFinite { entry, value: coded.scales[entry] });
        }
        let mut rest = Vec::with_capacity(there.div_ceil(8) as usize);
        let first = (there % 8) as u32;
        if first > 0 {
            rest.push(unpacker.take(first) as u8);
        }
        rest.extend((0..there / 8).map(|_| unpacker.take(8) as u8));
        // The rest begins with a one; otherwise another payload would decode to the same update.
        if bit_length(&rest) != there {
            return Err(WireError::Padded);
        }
        let format = Self::rest_format(context, bits)?;
        if format.longest() == 0 {
            return Err(WireError::Length { short: false });
        }
        coder.decode(&format, &rest, &mut coded.rest)?;
        self.fill(context, coded);
        check_finite(&coded.values)
    }

    fn accepts(&self, update: &Encoded) -> bool {
        match update {
            Encoded::Coded(coded) => {
                update.is_finite() && check_values(Layout::Signs, &coded.rest.values).is_ok()
            }
            _ => false,
        }
    }

    fn longest(&self, context: &Context) -> u64 {
        let end = name_bits(matrices(context).len());
        let Ok(format) = Self::rest_format(context, end) else { return 0 };
        if format.longest() == 0 {
            return 0;
        }
        // The payload of the rest exceeds its count by at most the same number as with all bits, and a
        // few.
        let q = Stc {}.largest_q(context.dim, Bits((context.budget.0 - end as f64).floor()));
        let surplus = format.longest().saturating_sub(Stc {}.bits(context.dim, q).0 as u64);
        let whole =
            (context.budget.0.min(1e15) as u64).min(end + Stc {}.bits(context.dim, q).0.ceil() as u64);
        // Bits beyond the longest rest may be terms.
        let terms = if whole as f64 >= context.budget.0.floor() {
            0
        } else {
            context.budget.0.min(1e15) as u64 - whole
        };
        1 + whole + terms + surplus + 16
    }
}

#[cfg(test)]
mod tests;
