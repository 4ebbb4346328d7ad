//! Sparse matrix times dense matrix: the two products of a layer with sparse inputs.

use super::instructions::{Arithmetic, InstructionSet, Kernel, run_on};
use super::sparse_batch::{Entry, SparseBatch};
use std::ops::Range;

/// Memory that the sparse products reuse from one call to the next.
///
/// The dense operand is copied to it in panels: a few columns, of as many rows as stay in the nearest cache,
/// contiguous and aligned. In the matrix they would lie a whole row apart, which for common widths (256
/// floats) uses a quarter of that cache and half of the load width.
#[derive(Clone, Debug, Default)]
pub struct Panels {
    memory: Vec<f32>,
    /// How far each row of the sparse operand has been read.
    read: Vec<u32>,
}

/// Floats in a panel of the forward pass: 24 kB, three quarters of the nearest cache of today's processors.
const TILE: usize = 6144;

/// Panels begin where a cache line does.
const LINE: usize = 64;

impl Panels {
    /// `len` floats that start at a cache line, with arbitrary content.
    fn aligned(memory: &mut Vec<f32>, len: usize) -> &mut [f32] {
        memory.resize(memory.len().max(len + LINE / size_of::<f32>()), 0.0);
        let start = memory.as_ptr().align_offset(LINE).min(memory.len() - len);
        &mut memory[start..start + len]
    }
}

/// `out[r, :] += Σ_c batch[r, c] · weights[c, :]`, both matrices row-major.
///
/// Each output is summed in the order of c. Zeros of the batch take no part, so an infinite weight of an
/// input that is zero does not spread.
pub fn sparse_forward(batch: &SparseBatch, weights: &[f32], out: &mut [f32], panels: &mut Panels) {
    forward_on(InstructionSet::current(), batch, weights, out, panels);
}

fn forward_on(
    set: InstructionSet,
    batch: &SparseBatch,
    weights: &[f32],
    out: &mut [f32],
    panels: &mut Panels,
) {
    let width = width(batch, out);
    assert_eq!(weights.len(), batch.columns() * width, "one row of weights for each input");
    panels.read.clear();
    panels.read.resize(batch.rows(), 0);
    let panel = Panels::aligned(&mut panels.memory, TILE);
    run_on(set, Forward { batch, weights, out, width, panel, read: &mut panels.read });
}

/// The gradients of a layer's outputs for a batch, ready for [`sparse_gradient`].
#[derive(Debug)]
pub struct PackedGradient<'a> {
    batch: &'a SparseBatch,
    /// Panel after panel, each with one row for each sample.
    panels: &'a [f32],
    width: usize,
}

/// Packs the gradients of a layer's outputs (row-major, one row for each sample) into `panels`.
pub fn pack_output_gradient<'a>(
    batch: &'a SparseBatch,
    output_gradient: &[f32],
    panels: &'a mut Panels,
) -> PackedGradient<'a> {
    let width = width(batch, output_gradient);
    let packed = Panels::aligned(&mut panels.memory, output_gradient.len());
    let mut start = 0;
    while let Some(columns) = next_panel(start, width) {
        start = columns.end;
        let panel = &mut packed[batch.rows() * columns.start..batch.rows() * columns.end];
        let rows = panel.chunks_exact_mut(columns.len()).zip(output_gradient.chunks_exact(width));
        rows.for_each(|(to, from)| to.copy_from_slice(&from[columns.clone()]));
    }
    PackedGradient { batch, panels: packed, width }
}

/// `out[c − first, :] = Σ_r batch[r, c] · output_gradient[r, :]` for the inputs c of a range from `first` on:
/// some rows of batchᵀ·output_gradient, both as they were packed.
///
/// Each entry is summed in the order of r.
pub fn sparse_gradient(packed: &PackedGradient, inputs: Range<usize>, out: &mut [f32]) {
    gradient_on(InstructionSet::current(), packed, inputs, out);
}

fn gradient_on(set: InstructionSet, packed: &PackedGradient, inputs: Range<usize>, out: &mut [f32]) {
    let &PackedGradient { batch, panels, width } = packed;
    assert!(inputs.end <= batch.columns(), "inputs of the batch");
    assert_eq!(out.len(), inputs.len() * width, "one row of gradients for each input");
    run_on(set, Gradient { batch, inputs, packed: panels, out, width });
}

fn width(batch: &SparseBatch, outputs: &[f32]) -> usize {
    let rows = batch.rows();
    assert!(rows > 0 && outputs.len().is_multiple_of(rows), "one row of outputs for each sample");
    outputs.len() / rows
}

/// The next panel of a matrix of `width` columns after those before `start`: 64, 16, 8, 2 or 1 columns, as
/// many as there still are.
#[inline(always)]
fn next_panel(start: usize, width: usize) -> Option<Range<usize>> {
    let columns = match width - start {
        0 => return None,
        1 => 1,
        2..8 => 2,
        8..16 => 8,
        16..64 => 16,
        _ => 64,
    };
    Some(start..start + columns)
}

/// `sums += Σ value · panel[at − first, :]` over the entries up to one at `end`; returns how many those were.
#[inline(always)]
fn accumulate<A: Arithmetic, const N: usize>(
    entries: &[Entry],
    panel: &[[f32; N]],
    first: usize,
    sums: &mut [f32; N],
) -> usize {
    let mut total = *sums;
    let mut count = 0;
    for entry in entries {
        // Columns ascend: the first one beyond the panel ends its part of the row.
        let Some(dense) = panel.get((entry.at as usize).wrapping_sub(first)) else { break };
        for (sum, &x) in total.iter_mut().zip(dense) {
            *sum = A::mul_add(entry.value, x, *sum);
        }
        count += 1;
    }
    *sums = total;
    count
}

struct Forward<'a> {
    batch: &'a SparseBatch,
    weights: &'a [f32],
    out: &'a mut [f32],
    width: usize,
    panel: &'a mut [f32],
    read: &'a mut [u32],
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(mut self) {
        let mut start = 0;
        while let Some(columns) = next_panel(start, self.width) {
            start = columns.end;
            match columns.len() {
                64 => self.columns::<A, 64>(columns),
                16 => self.columns::<A, 16>(columns),
                8 => self.columns::<A, 8>(columns),
                2 => self.columns::<A, 2>(columns),
                _ => self.columns::<A, 1>(columns),
            }
        }
    }
}

impl Forward<'_> {
    /// N output columns of all samples, tile by tile of the inputs.
    #[inline(always)]
    fn columns<A: Arithmetic, const N: usize>(&mut self, columns: Range<usize>) {
        self.read.fill(0);
        let inputs = self.batch.columns();
        for first in (0..inputs).step_by(TILE / N) {
            let count = (TILE / N).min(inputs - first);
            let (panel, _) = self.panel[..count * N].as_chunks_mut::<N>();
            for (index, packed) in panel.iter_mut().enumerate() {
                let input = first + index;
                if !self.batch.is_column_empty(input) {
                    packed.copy_from_slice(&self.weights[input * self.width + columns.start..][..N]);
                }
            }
            for (row, read) in self.read.iter_mut().enumerate() {
                let sums = &mut self.out[row * self.width + columns.start..][..N];
                let sums = sums.try_into().expect("a panel is N columns wide");
                let entries = &self.batch.row(row)[*read as usize..];
                *read += accumulate::<A, N>(entries, panel, first, sums) as u32;
            }
        }
    }
}

struct Gradient<'a> {
    batch: &'a SparseBatch,
    inputs: Range<usize>,
    packed: &'a [f32],
    out: &'a mut [f32],
    width: usize,
}

impl Kernel for Gradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(mut self) {
        let mut start = 0;
        while let Some(columns) = next_panel(start, self.width) {
            start = columns.end;
            match columns.len() {
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

#[cfg(test)]
mod tests {
    use super::super::tests::any_floats;
    use super::*;
    use proptest::prelude::*;

    /// The twin: the definition entry by entry, with the multiply-add of the set.
    fn plain(set: InstructionSet, terms: impl Iterator<Item = (f32, f32)>, start: f32) -> f32 {
        terms.filter(|(x, _)| *x != 0.0).fold(start, |sum, (x, y)| {
            if set == InstructionSet::PORTABLE { x * y + sum } else { x.mul_add(y, sum) }
        })
    }

    fn same(a: f32, b: f32) -> bool {
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
    }

    /// A batch and a dense matrix of every kind of float; wide enough for panels of each width, and more
    /// inputs than one panel of single columns holds.
    fn operands() -> impl Strategy<Value = (Vec<f32>, Vec<f32>, [usize; 3])> {
        (1usize..6, prop_oneof![Just(1), 2usize..300, Just(TILE + 3)], 1usize..160).prop_flat_map(
            |(rows, inputs, width)| {
                let width = if inputs > 300 { width % 3 + 1 } else { width };
                let batch = any_floats(rows * inputs);
                (batch, any_floats(inputs.max(rows) * width), Just([rows, inputs, width]))
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn products_are_the_definition_s_bit_for_bit_on_every_instruction_set(
            (dense, other, [rows, inputs, width]) in operands(),
        ) {
            let batch = SparseBatch::of_dense(&dense, inputs);
            let mut panels = Panels::default();
            for set in InstructionSet::available() {
                let mut out = vec![0.25; rows * width];
                forward_on(set, &batch, &other[..inputs * width], &mut out, &mut panels);
                for (i, &ours) in out.iter().enumerate() {
                    let (r, o) = (i / width, i % width);
                    let terms = (0..inputs).map(|c| (dense[r * inputs + c], other[c * width + o]));
                    prop_assert!(same(ours, plain(set, terms, 0.25)), "forward {r} {o}");
                }
                let packed = pack_output_gradient(&batch, &other[..rows * width], &mut panels);
                let some = inputs / 3..inputs;
                let mut out = vec![f32::NAN; some.len() * width];
                gradient_on(set, &packed, some.clone(), &mut out);
                for (i, &ours) in out.iter().enumerate() {
                    let (c, o) = (some.start + i / width, i % width);
                    let terms = (0..rows).map(|r| (dense[r * inputs + c], other[r * width + o]));
                    prop_assert!(same(ours, plain(set, terms, 0.0)), "gradient {c} {o}");
                }
            }
        }

        #[test]
        fn instruction_sets_differ_by_rounding_only(
            dense in prop::collection::vec(prop_oneof![Just(0.0), -1.0..1.0f32], 4 * 200),
            weights in prop::collection::vec(-1.0..1.0f32, 200 * 20),
        ) {
            let batch = SparseBatch::of_dense(&dense, 200);
            for set in InstructionSet::available() {
                let mut out = vec![0.0; 4 * 20];
                forward_on(set, &batch, &weights, &mut out, &mut Panels::default());
                for (i, &ours) in out.iter().enumerate() {
                    let term = |c: usize| {
                        f64::from(dense[i / 20 * 200 + c]) * f64::from(weights[c * 20 + i % 20])
                    };
                    let truth: f64 = (0..200).map(term).sum();
                    prop_assert!((f64::from(ours) - truth).abs() < 2e-5);
                }
            }
        }
    }
}
