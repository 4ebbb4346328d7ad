//! Sparse matrix times dense matrix: the two products of a layer with sparse inputs.

use super::instructions::{Arithmetic, InstructionSet, Kernel, run_on};
use super::prefetch::Ahead;
use super::sparse_batch::{Entry, SparseBatch};
use std::ops::Range;

/// Memory that the sparse products reuse from one call to the next.
///
/// The dense operand is copied to it in panels, contiguous and aligned: a few columns of as many rows as
/// fit in the first-level cache. In the matrix these columns lie a whole row apart, which for common
/// widths (256 floats) uses a quarter of that cache and half of the load width.
#[derive(Clone, Debug, Default)]
pub struct Panels {
    memory: Vec<f32>,
    /// The number of entries read of each row of the sparse operand.
    read: Vec<u32>,
}

/// Floats in a panel of the forward pass: 24 kB, three quarters of the first-level cache of processors
/// without 512-bit vectors; 44 kB with panels of 128 columns. That is as much as fits the 48 kB of most
/// processors with 512-bit vectors. Where they have 32 kB, the second-level cache is fast enough, and a
/// larger panel is entered less often.
const TILE: usize = 6144;
const WIDE_TILE: usize = 88 * 128;

/// The same for few columns: 64 kB, so that the weights of images are one panel. Most images use a part
/// of it.
const FEW_TILE: usize = 16_384;

/// Panels begin at a cache line.
const LINE: usize = 64;

impl Panels {
    /// `len` floats that start at a cache line, with arbitrary content.
    pub(super) fn aligned(memory: &mut Vec<f32>, len: usize) -> &mut [f32] {
        memory.resize(memory.len().max(len + LINE / size_of::<f32>()), 0.0);
        let start = memory.as_ptr().align_offset(LINE).min(memory.len() - len);
        &mut memory[start..start + len]
    }
}

/// `out[r, :] += Σ_c batch[r, c] · weights[c, :]`, both matrices row-major.
///
/// Each output is summed in the order of c. Zeros of the batch are skipped, so an infinite weight of an
/// input that is zero does not spread.
pub fn sparse_forward(batch: &SparseBatch, weights: &[f32], out: &mut [f32], panels: &mut Panels) {
    sparse_forward_ahead(batch, weights, out, panels, Ahead::default());
}

/// As [`sparse_forward`]; `ahead` is fetched beside the product.
pub fn sparse_forward_ahead(
    batch: &SparseBatch,
    weights: &[f32],
    out: &mut [f32],
    panels: &mut Panels,
    ahead: Ahead,
) {
    forward_on(InstructionSet::current(), batch, weights, out, panels, ahead);
}

fn forward_on(
    set: InstructionSet,
    batch: &SparseBatch,
    weights: &[f32],
    out: &mut [f32],
    panels: &mut Panels,
    mut ahead: Ahead,
) {
    let width = width(batch, out);
    assert_eq!(weights.len(), batch.columns() * width, "one row of weights for each input");
    panels.read.clear();
    panels.read.resize(batch.rows(), 0);
    let panel = Panels::aligned(&mut panels.memory, FEW_TILE);
    let (read, widest) = (&mut panels.read[..], widest_panel(set));
    let tile = if set.has_512_bits() { WIDE_TILE } else { TILE };
    ahead.spread(width.div_ceil(widest) * batch.columns().div_ceil(tile / widest) * batch.rows());
    run_on(set, Forward { batch, weights, out, width, widest, panel, read, ahead });
}

/// The gradients of a layer's outputs for a batch, ready for [`sparse_gradient`].
#[derive(Debug)]
pub struct PackedGradient<'a> {
    /// The set that the panels were packed for.
    set: InstructionSet,
    batch: &'a SparseBatch,
    /// Panel after panel, each with one row per sample.
    panels: &'a [f32],
    width: usize,
}

/// Packs the gradients of a layer's outputs (row-major, one row per sample) into `panels`.
pub fn pack_output_gradient<'a>(
    batch: &'a SparseBatch,
    output_gradient: &[f32],
    panels: &'a mut Panels,
) -> PackedGradient<'a> {
    pack_on(InstructionSet::current(), batch, output_gradient, panels)
}

fn pack_on<'a>(
    set: InstructionSet,
    batch: &'a SparseBatch,
    output_gradient: &[f32],
    panels: &'a mut Panels,
) -> PackedGradient<'a> {
    let width = width(batch, output_gradient);
    let widest = widest_panel(set);
    let packed = Panels::aligned(&mut panels.memory, output_gradient.len());
    let mut start = 0;
    while let Some(columns) = next_panel(start, width, widest) {
        start = columns.end;
        let panel = &mut packed[batch.rows() * columns.start..batch.rows() * columns.end];
        let rows = panel.chunks_exact_mut(columns.len()).zip(output_gradient.chunks_exact(width));
        rows.for_each(|(to, from)| to.copy_from_slice(&from[columns.clone()]));
    }
    PackedGradient { set, batch, panels: packed, width }
}

/// `out[c − first, :] = Σ_r batch[r, c] · output_gradient[r, :]` for the inputs c of a range from `first`
/// on: some rows of batchᵀ·output_gradient, both as packed.
///
/// Each entry is summed in the order of r.
pub fn sparse_gradient(packed: &PackedGradient, inputs: Range<usize>, out: &mut [f32]) {
    let &PackedGradient { set, batch, panels, width } = packed;
    assert!(inputs.end <= batch.columns(), "inputs of the batch");
    assert_eq!(out.len(), inputs.len() * width, "one row of gradients for each input");
    run_on(set, Gradient { batch, inputs, packed: panels, out, width, widest: widest_panel(set) });
}

/// `out = batchᵀ·output_gradient` as a whole, with the bits of [`sparse_gradient`], from the rows of the
/// batch alone. It suits few outputs, for which sorting the batch by column would take longer than the
/// product.
pub fn sparse_gradient_by_row(
    batch: &SparseBatch,
    output_gradient: &[f32],
    out: &mut [f32],
    panels: &mut Panels,
) {
    gradient_by_row_on(InstructionSet::current(), batch, output_gradient, out, panels);
}

fn gradient_by_row_on(
    set: InstructionSet,
    batch: &SparseBatch,
    output_gradient: &[f32],
    out: &mut [f32],
    panels: &mut Panels,
) {
    let width = width(batch, output_gradient);
    assert_eq!(out.len(), batch.columns() * width, "one row of gradients for each input");
    let sums = Panels::aligned(&mut panels.memory, batch.columns() * STRIP);
    run_on(set, GradientByRow { batch, output_gradient, out, width, sums });
}

fn width(batch: &SparseBatch, outputs: &[f32]) -> usize {
    let rows = batch.rows();
    assert!(rows > 0 && outputs.len().is_multiple_of(rows), "one row of outputs for each sample");
    outputs.len() / rows
}

/// Columns of the widest panel. Its sums are the chains of multiply-adds that a processor has in flight:
/// two per cycle of four cycles each are eight vectors.
fn widest_panel(set: InstructionSet) -> usize {
    if set.has_512_bits() { 128 } else { 64 }
}

/// The next panel of a matrix of `width` columns from `start` on: the largest of 128 (if panels are so
/// wide), 64, 16, 8, 2 or 1 columns that still fit.
#[inline(always)]
fn next_panel(start: usize, width: usize, widest: usize) -> Option<Range<usize>> {
    let columns = match width - start {
        0 => return None,
        1 => 1,
        2..8 => 2,
        8..16 => 8,
        16..64 => 16,
        rest if rest < widest => 64,
        _ => widest,
    };
    Some(start..start + columns)
}

/// `sums += Σ value · panel[at − first, :]` over the entries before the one at `end`; returns their
/// number.
#[inline(always)]
pub(super) fn accumulate<A: Arithmetic, const N: usize>(
    entries: &[Entry],
    panel: &[[f32; N]],
    first: usize,
    sums: &mut [f32; N],
) -> usize {
    let mut total = *sums;
    let mut count = 0;
    for entry in entries {
        // Columns ascend, so the first one beyond the panel ends its part of the row.
        let Some(dense) = panel.get((entry.at as usize).wrapping_sub(first)) else { break };
        add_product::<A, N>(&mut total, entry.value, dense);
        count += 1;
    }
    *sums = total;
    count
}

/// Samples that [`accumulate_few`] takes at a time.
const FEW: usize = 4;

/// As [`accumulate`] for several rows with sums of their own: in turn while each has entries, then one
/// after the other. Every sum adds its terms in their order.
#[inline(always)]
fn accumulate_few<A: Arithmetic, const N: usize>(
    entries: [&[Entry]; FEW],
    panel: &[[f32; N]],
    first: usize,
    sums: &mut [[f32; N]; FEW],
) -> [usize; FEW] {
    let [mut a, mut b, mut c, mut d] = *sums;
    let mut common = 0;
    let in_turn = entries[0].iter().zip(entries[1]).zip(entries[2]).zip(entries[3]);
    for (((at_a, at_b), at_c), at_d) in in_turn {
        let dense = |entry: &Entry| panel.get((entry.at as usize).wrapping_sub(first));
        let (Some(x_a), Some(x_b), Some(x_c), Some(x_d)) =
            (dense(at_a), dense(at_b), dense(at_c), dense(at_d))
        else {
            break;
        };
        add_product::<A, N>(&mut a, at_a.value, x_a);
        add_product::<A, N>(&mut b, at_b.value, x_b);
        add_product::<A, N>(&mut c, at_c.value, x_c);
        add_product::<A, N>(&mut d, at_d.value, x_d);
        common += 1;
    }
    *sums = [a, b, c, d];
    let mut counts = [common; FEW];
    for ((count, entries), sums) in counts.iter_mut().zip(entries).zip(sums) {
        *count += accumulate::<A, N>(&entries[common..], panel, first, sums);
    }
    counts
}

/// `sums += value · x`.
#[inline(always)]
pub(super) fn add_product<A: Arithmetic, const N: usize>(sums: &mut [f32; N], value: f32, x: &[f32; N]) {
    for (sum, &x) in sums.iter_mut().zip(x) {
        *sum = A::mul_add(value, x, *sum);
    }
}

struct Forward<'a> {
    batch: &'a SparseBatch,
    weights: &'a [f32],
    out: &'a mut [f32],
    width: usize,
    widest: usize,
    panel: &'a mut [f32],
    read: &'a mut [u32],
    ahead: Ahead<'a>,
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(mut self) {
        let mut start = 0;
        while start < self.width {
            let rest = self.width - start;
            start += match rest {
                128.. if self.widest == 128 => self.columns::<A, 128>(start, WIDE_TILE),
                64.. => self.columns::<A, 64>(start, TILE),
                9.. => self.few_columns::<A, 16>(start),
                _ => self.few_columns::<A, 8>(start),
            };
        }
    }
}

impl Forward<'_> {
    /// N output columns of all samples from `start` on, per tile of the inputs. Returns N.
    #[inline(always)]
    fn columns<A: Arithmetic, const N: usize>(&mut self, start: usize, tile: usize) -> usize {
        self.read.fill(0);
        let inputs = self.batch.columns();
        for first in (0..inputs).step_by(tile / N) {
            let count = (tile / N).min(inputs - first);
            let (panel, _) = self.panel[..count * N].as_chunks_mut::<N>();
            for (index, packed) in panel.iter_mut().enumerate() {
                let input = first + index;
                if !self.batch.is_column_empty(input) {
                    packed.copy_from_slice(&self.weights[input * self.width + start..][..N]);
                }
            }
            for (row, read) in self.read.iter_mut().enumerate() {
                let sums = &mut self.out[row * self.width + start..][..N];
                let sums = sums.try_into().expect("a panel is N columns wide");
                let entries = &self.batch.row(row)[*read as usize..];
                *read += accumulate::<A, N>(entries, panel, first, sums) as u32;
                self.ahead.next();
            }
        }
        N
    }

    /// Up to N output columns of all samples, from `start` to the last. Returns their number.
    ///
    /// Few columns are one or two vectors, whose additions form one chain of dependent instructions. Four
    /// samples at a time form four such chains. Columns beyond the last are computed from the adjacent
    /// memory and dropped.
    #[inline(always)]
    fn few_columns<A: Arithmetic, const N: usize>(&mut self, start: usize) -> usize {
        self.read.fill(0);
        let (inputs, width) = (self.batch.columns(), self.width);
        let real = N.min(width - start);
        for first in (0..inputs).step_by(FEW_TILE / N) {
            let count = (FEW_TILE / N).min(inputs - first);
            let (panel, _) = self.panel[..count * N].as_chunks_mut::<N>();
            for (index, packed) in panel.iter_mut().enumerate() {
                let at = (first + index) * width + start;
                // Numbers after the end of the row are read along if they exist; their sums are dropped.
                if let Some(weights) = self.weights.get(at..at + N) {
                    packed.copy_from_slice(weights);
                } else {
                    *packed = [0.0; N];
                    packed[..real].copy_from_slice(&self.weights[at..at + real]);
                }
            }
            let outs = self.out.chunks_mut(FEW * width);
            for (group, (outs, reads)) in outs.zip(self.read.chunks_mut(FEW)).enumerate() {
                let mut sums = [[0.0; N]; FEW];
                let mut entries: [&[Entry]; FEW] = [&[]; FEW];
                for (i, (out, read)) in outs.chunks_exact(width).zip(&*reads).enumerate() {
                    sums[i][..real].copy_from_slice(&out[start..start + real]);
                    entries[i] = &self.batch.row(group * FEW + i)[*read as usize..];
                }
                let counts = accumulate_few::<A, N>(entries, panel, first, &mut sums);
                for (i, (out, read)) in outs.chunks_exact_mut(width).zip(reads).enumerate() {
                    out[start..start + real].copy_from_slice(&sums[i][..real]);
                    *read += counts[i] as u32;
                }
            }
        }
        real
    }
}

struct Gradient<'a> {
    batch: &'a SparseBatch,
    inputs: Range<usize>,
    packed: &'a [f32],
    out: &'a mut [f32],
    width: usize,
    widest: usize,
}

impl Kernel for Gradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(mut self) {
        let mut start = 0;
        while let Some(columns) = next_panel(start, self.width, self.widest) {
            start = columns.end;
            match columns.len() {
                128 => self.columns::<A, 128>(columns),
                64 => self.columns::<A, 64>(columns),
                16 => self.columns::<A, 16>(columns),
                8 => self.columns::<A, 8>(columns),
                2 => self.columns::<A, 2>(columns),
                _ => self.columns::<A, 1>(columns),
            }
        }
    }
}

impl Gradient<'_> {
    /// N columns of the gradient of all inputs.
    #[inline(always)]
    fn columns<A: Arithmetic, const N: usize>(&mut self, columns: Range<usize>) {
        let rows = self.batch.rows();
        let (panel, _) = self.packed[rows * columns.start..rows * columns.end].as_chunks::<N>();
        for (index, input) in self.inputs.clone().enumerate() {
            let mut sums = [0.0; N];
            accumulate::<A, N>(self.batch.column(input), panel, 0, &mut sums);
            self.out[index * self.width + columns.start..][..N].copy_from_slice(&sums);
        }
    }
}

/// Columns of the gradient that [`GradientByRow`] sums at a time.
const STRIP: usize = 16;

struct GradientByRow<'a> {
    batch: &'a SparseBatch,
    output_gradient: &'a [f32],
    out: &'a mut [f32],
    width: usize,
    sums: &'a mut [f32],
}

impl Kernel for GradientByRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let Self { batch, output_gradient, out, width, sums } = self;
        let (sums, _) = sums.as_chunks_mut::<STRIP>();
        for start in (0..width).step_by(STRIP) {
            let real = STRIP.min(width - start);
            sums.fill([0.0; STRIP]);
            for (row, gradient) in output_gradient.chunks_exact(width).enumerate() {
                let mut strip = [0.0; STRIP];
                strip[..real].copy_from_slice(&gradient[start..start + real]);
                for entry in batch.row(row) {
                    add_product::<A, STRIP>(&mut sums[entry.at as usize], entry.value, &strip);
                }
            }
            // If there is room, whole strips are written, and the next strip overwrites the surplus. A
            // copy of known length takes two instructions, any other length takes a call.
            for (input, sums) in sums.iter().enumerate() {
                let at = input * width + start;
                match out.get_mut(at..at + STRIP) {
                    Some(out) if width <= STRIP => out.copy_from_slice(sums),
                    _ => out[at..at + real].copy_from_slice(&sums[..real]),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
