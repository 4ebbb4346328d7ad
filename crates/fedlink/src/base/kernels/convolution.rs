//! Gradients of a convolution, per image, from the non-zeros of the gradient of its maps.
//!
//! 2×2 maximum pooling passes a gradient to one of four positions, and `ReLU` to fewer. The products of
//! the backward pass have less than a quarter of the terms of dense products, and need no patches. The
//! omitted terms are zero, so the sums equal those of dense products bit for bit if all numbers are
//! finite.

use super::instructions::{Arithmetic, Kernel, run};
use super::patches::Window;
use super::sparse_batch::SparseBatch;
use super::sparse_product::{Panels, accumulate, add_product};
use std::ops::Range;

/// A window over images, and the number of outputs at each position.
#[derive(Clone, Debug)]
pub struct Filters {
    window: Window,
    outputs: usize,
    /// The corner of the patch of each position, as an index into the image.
    corners: Vec<u32>,
}

impl Filters {
    /// `window` with `outputs` output channels.
    pub fn new(window: Window, outputs: usize) -> Self {
        let [rows, columns] = window.positions();
        let row = |y: usize| (0..columns).map(move |x| (y * window.line() + x * window.channels()) as u32);
        Self { window, outputs, corners: (0..rows).flat_map(row).collect() }
    }

    /// Numbers in the weights: patch length × outputs, row-major.
    pub fn weights_len(&self) -> usize {
        self.window.patch_len() * self.outputs
    }

    /// Writes weights to `packed` in the order in which [`Filters::pull_back`] reads them.
    pub fn pack_back(&self, weights: &[f32], packed: &mut Vec<f32>) {
        assert_eq!(weights.len(), self.weights_len(), "one weight for each input and output");
        let mut target = Panels::aligned(packed, self.weights_len());
        for row in weights.chunks_exact(self.window.run() * self.outputs) {
            for chunk in chunks(self.window.run()) {
                let (part, rest) = target.split_at_mut(chunk.len() * self.outputs);
                for (i, input) in chunk.clone().enumerate() {
                    let weights = &row[input * self.outputs..(input + 1) * self.outputs];
                    for (target, weight) in part[i..].iter_mut().step_by(chunk.len()).zip(weights) {
                        *target = *weight;
                    }
                }
                target = rest;
            }
        }
    }

    /// The loss's gradient with respect to the image, from the gradient with respect to its maps (a row
    /// per position, a column per output), through the weights that were [packed](Filters::pack_back).
    /// The terms of a pixel, one per position whose patch contains it, are added in the order of the
    /// positions.
    pub fn pull_back(&self, packed: &mut Vec<f32>, maps: &SparseBatch, image: &mut [f32]) {
        self.check(maps, image);
        let weights = Panels::aligned(packed, self.weights_len());
        image.fill(0.0);
        run(PullBack { filters: self, weights, maps, image });
    }

    /// Adds the weights' gradient of an image to `sums`, transposed: one row of the patch's length per
    /// output.
    pub fn add_gradient(&self, maps: &SparseBatch, image: &[f32], sums: &mut [f32]) {
        self.check(maps, image);
        assert_eq!(sums.len(), self.weights_len(), "one sum for each weight");
        run(WeightGradient { filters: self, maps, image, sums });
    }

    fn check(&self, maps: &SparseBatch, image: &[f32]) {
        assert_eq!(
            [maps.rows(), maps.columns()],
            [self.corners.len(), self.outputs],
            "a row for each position"
        );
        assert_eq!(image.len(), self.window.image_len(), "one image");
    }
}

/// The parts of a row of a patch that are computed together, ascending: 80, 16 or 1 numbers each.
#[inline(always)]
fn chunks(run: usize) -> impl DoubleEndedIterator<Item = Range<usize>> {
    let large = run / 80 * 80;
    let middle = large + (run - large) / 16 * 16;
    let of = |range: Range<usize>, width: usize| range.step_by(width).map(move |start| start..start + width);
    of(0..large, 80).chain(of(large..middle, 16)).chain(of(middle..run, 1))
}

struct PullBack<'a> {
    filters: &'a Filters,
    weights: &'a [f32],
    maps: &'a SparseBatch,
    image: &'a mut [f32],
}

impl Kernel for PullBack<'_> {
    type Output = ();

    /// Earlier positions contain a pixel at the end of their patches. With the last part of a patch
    /// first, the pixel's terms are added in the order of the positions.
    #[inline(always)]
    fn run<A: Arithmetic>(mut self) {
        let (window, outputs) = (self.filters.window, self.filters.outputs);
        let mut end = self.weights.len();
        for row in (0..window.side()).rev() {
            for chunk in chunks(window.run()).rev() {
                let weights = &self.weights[end - chunk.len() * outputs..end];
                end -= weights.len();
                match chunk.len() {
                    80 => self.add::<A, 80>(weights, row, chunk.start),
                    16 => self.add::<A, 16>(weights, row, chunk.start),
                    _ => self.add::<A, 1>(weights, row, chunk.start),
                }
            }
        }
    }
}

impl PullBack<'_> {
    /// N numbers from `first` on of one row of every patch.
    #[inline(always)]
    fn add<A: Arithmetic, const N: usize>(&mut self, weights: &[f32], row: usize, first: usize) {
        let (weights, _) = weights.as_chunks::<N>();
        let first = row * self.filters.window.line() + first;
        for (position, &corner) in self.filters.corners.iter().enumerate() {
            let entries = self.maps.row(position);
            if entries.is_empty() {
                continue;
            }
            let mut sums = [0.0; N];
            accumulate::<A, N>(entries, weights, 0, &mut sums);
            let start = corner as usize + first;
            let pixels = &mut self.image[start..start + N];
            pixels.iter_mut().zip(&sums).for_each(|(pixel, sum)| *pixel += sum);
        }
    }
}

struct WeightGradient<'a> {
    filters: &'a Filters,
    maps: &'a SparseBatch,
    image: &'a [f32],
    sums: &'a mut [f32],
}

impl Kernel for WeightGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(mut self) {
        let window = self.filters.window;
        for output in 0..self.filters.outputs {
            for row in 0..window.side() {
                for chunk in chunks(window.run()) {
                    match chunk.len() {
                        80 => self.add::<A, 80>(output, row, chunk.start),
                        16 => self.add::<A, 16>(output, row, chunk.start),
                        _ => self.add::<A, 1>(output, row, chunk.start),
                    }
                }
            }
        }
    }
}

impl WeightGradient<'_> {
    /// The sums of N weights of one output, from `first` on in one row of the window.
    #[inline(always)]
    fn add<A: Arithmetic, const N: usize>(&mut self, output: usize, row: usize, first: usize) {
        let Filters { window, corners, .. } = self.filters;
        let start = output * window.patch_len() + row * window.run() + first;
        let first = row * window.line() + first;
        let totals: &mut [f32; N] = (&mut self.sums[start..start + N]).try_into().expect("N sums");
        let mut sums = if A::APART { [0.0; N] } else { *totals };
        for entry in self.maps.column(output) {
            let start = corners[entry.at as usize] as usize + first;
            let pixels = self.image[start..start + N].try_into().expect("N pixels");
            add_product::<A, N>(&mut sums, entry.value, pixels);
        }
        if A::APART {
            totals.iter_mut().zip(&sums).for_each(|(total, sum)| *total += sum);
        } else {
            *totals = sums;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::instructions::{InstructionSet, run_on};
    use super::super::{Matrix, matmul_on};
    use super::*;
    use crate::base::rng::{Purpose, stream};

    /// Convolutions with patches of every kind of part, some with an odd number of positions. All are
    /// large: `gemm` sums products with a vector, or of up to 256 numbers, in another order.
    const SHAPES: [([usize; 3], usize, usize); 6] = [
        ([6, 7, 3], 3, 4),
        ([8, 8, 32], 5, 9),
        ([5, 5, 17], 5, 3),
        ([12, 12, 32], 5, 64),
        ([9, 20, 1], 2, 3),
        ([7, 6, 20], 4, 33),
    ];

    /// A gradient of maps in which each number is non-zero with probability `share`.
    fn random(len: usize, share: f64, seed: u64) -> Vec<f32> {
        let mut s = stream(seed, Purpose::Test, 0, len as u64);
        (0..len).map(|_| if s.uniform() < share { s.normal() as f32 } else { 0.0 }).collect()
    }

    fn same(ours: &[f32], truth: &[f32]) -> bool {
        ours.iter().zip(truth).all(|(a, b)| a.to_bits() == b.to_bits())
    }

    #[test]
    fn gradients_by_non_zeros_have_the_bits_of_dense_products_over_patches_on_every_instruction_set() {
        for (image, side, outputs) in SHAPES {
            let window = Window::new(image, side).unwrap();
            let filters = Filters::new(window, outputs);
            let (positions, patch) = (filters.corners.len(), window.patch_len());
            let maps = random(positions * outputs, 0.15, 1);
            let (pixels, weights) =
                (random(window.image_len(), 0.7, 2), random(filters.weights_len(), 1.0, 3));
            let start = random(filters.weights_len(), 1.0, 4);
            let sparse = SparseBatch::of_dense(&maps, outputs);
            for set in InstructionSet::available() {
                let mut patches = vec![f32::NAN; window.patches_len()];
                window.gather(&pixels, &mut patches);
                let mut truth = start.clone();
                let (seen, back) =
                    (Matrix::new(&patches, positions, patch), Matrix::new(&maps, positions, outputs));
                matmul_on(set, seen.t(), back, &mut truth, true);
                let transposed = |from: &[f32], columns: usize| -> Vec<f32> {
                    (0..from.len())
                        .map(|i| from[i % (from.len() / columns) * columns + i / (from.len() / columns)])
                        .collect()
                };
                let mut sums = transposed(&start, outputs);
                run_on(
                    set,
                    WeightGradient { filters: &filters, maps: &sparse, image: &pixels, sums: &mut sums },
                );
                assert!(
                    same(&sums, &transposed(&truth, outputs)),
                    "weights of {image:?} with {}",
                    set.name()
                );

                let mut truth = vec![f32::NAN; pixels.len()];
                matmul_on(set, back, Matrix::new(&weights, patch, outputs).t(), &mut patches, false);
                window.scatter(&patches, &mut truth);
                let (mut packed, mut ours) = (Vec::new(), vec![0.0; pixels.len()]);
                filters.pack_back(&weights, &mut packed);
                let weights = Panels::aligned(&mut packed, filters.weights_len());
                run_on(set, PullBack { filters: &filters, weights, maps: &sparse, image: &mut ours });
                assert!(same(&ours, &truth), "pixels of {image:?} with {}", set.name());
            }
        }
    }

    #[test]
    fn the_parts_of_a_row_cover_it_once() {
        for run in 0..400 {
            let parts: Vec<Range<usize>> = chunks(run).collect();
            assert!(parts.iter().all(|part| [80, 16, 1].contains(&part.len())));
            assert_eq!(parts.into_iter().flatten().collect::<Vec<usize>>(), (0..run).collect::<Vec<usize>>());
        }
    }
}
