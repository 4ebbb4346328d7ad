//! One layer of a convolutional network, one image at a time.
//!
//! An image's patches then stay in the cache; matrix products over 2 to 16 images at once were no faster,
//! over 64 slower.

use crate::base::kernels::{
    Filters, Matrix, SparseBatch, Window, matmul, pool, pooled_shape, unpool, unpool_sparse,
};
use std::ops::Range;

/// A convolution with bias, `ReLU` and pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Convolution {
    /// Over the images it sees.
    pub(super) window: Window,
    /// Output channels.
    pub(super) outputs: usize,
    /// Where in θ the weights begin; the biases follow them.
    pub(super) start: usize,
}

/// Memory that a convolution works in.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    filters: Filters,
    /// The patches and maps of one image; the latter are, on the way back, the gradient by them.
    patches: Vec<f32>,
    maps: Vec<f32>,
    /// The gradient by the maps of one image by its non-zeros.
    sparse: SparseBatch,
    /// The weights, for the way back to the image.
    weights: Vec<f32>,
    /// The gradient by the weights, transposed if it is made by non-zeros.
    sums: Vec<f32>,
}

/// What a convolution gave for the images of a batch.
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// Its pooled maps; on the way back the loss's gradient by them.
    pub(super) pooled: Vec<f32>,
    pub(super) winners: Vec<u8>,
}

impl Output {
    /// What it gave for image `row`: `len` numbers and who won them.
    pub(super) fn row(&self, row: usize, len: usize) -> (&[f32], &[u8]) {
        (&self.pooled[row_range(row, len)], &self.winners[row_range(row, len)])
    }

    pub(super) fn row_mut(&mut self, row: usize, len: usize) -> (&mut [f32], &mut [u8]) {
        (&mut self.pooled[row_range(row, len)], &mut self.winners[row_range(row, len)])
    }
}

/// Where row `row` lies if each has `len` numbers.
pub(super) fn row_range(row: usize, len: usize) -> Range<usize> {
    row * len..(row + 1) * len
}

/// Numbers in a row of the window from which on a gradient by non-zeros is the faster one: a vector.
const SPARSE_FROM: usize = 16;

impl Convolution {
    pub(super) fn weights(self) -> Range<usize> {
        self.start..self.start + self.window.patch_len() * self.outputs
    }

    pub(super) fn biases(self) -> Range<usize> {
        let start = self.weights().end;
        start..start + self.outputs
    }

    pub(super) fn parameters(self) -> Range<usize> {
        self.start..self.biases().end
    }

    /// Height, width and channels before pooling.
    pub(super) fn maps(self) -> [usize; 3] {
        let [rows, columns] = self.window.positions();
        [rows, columns, self.outputs]
    }

    /// Height, width and channels after pooling.
    pub(super) fn pooled(self) -> [usize; 3] {
        pooled_shape(self.maps())
    }

    pub(super) fn pooled_len(self) -> usize {
        self.pooled().iter().product()
    }

    fn is_sparse(self) -> bool {
        self.window.run() >= SPARSE_FROM
    }

    pub(super) fn scratch(self) -> Scratch {
        Scratch {
            filters: Filters::new(self.window, self.outputs),
            patches: vec![0.0; self.window.patches_len()],
            maps: vec![0.0; self.maps().iter().product()],
            sparse: SparseBatch::default(),
            weights: Vec::new(),
            sums: vec![0.0; self.weights().len()],
        }
    }

    /// The pooled maps of an image, and who won them.
    pub(super) fn forward(
        self,
        theta: &[f32],
        image: &[f32],
        scratch: &mut Scratch,
        (pooled, winners): (&mut [f32], &mut [u8]),
    ) {
        let Scratch { patches, maps, .. } = scratch;
        self.window.gather(image, patches);
        let weights = Matrix::new(&theta[self.weights()], self.window.patch_len(), self.outputs);
        matmul(self.patch_matrix(patches), weights, maps, false);
        pool(maps, self.maps(), &theta[self.biases()], pooled, winners);
    }

    /// Makes `scratch` ready to go back, as far as to the images if that is wanted.
    pub(super) fn begin_back(self, theta: &[f32], to_images: bool, scratch: &mut Scratch) {
        if to_images {
            scratch.filters.pack_back(&theta[self.weights()], &mut scratch.weights);
        }
        scratch.sums.fill(0.0);
    }

    /// Adds an image's part to the gradient, given the one by its pooled maps, and replaces the image by the
    /// gradient by it, if that is wanted.
    pub(super) fn go_back(
        self,
        image: Image,
        (pooled, winners): (&[f32], &[u8]),
        scratch: &mut Scratch,
        bias_gradient: &mut [f32],
    ) {
        let Scratch { filters, patches, maps, sparse, weights, sums } = scratch;
        if self.is_sparse() {
            unpool_sparse(pooled, winners, self.maps(), bias_gradient, sparse);
            filters.add_gradient(sparse, image.pixels(), sums);
        } else {
            unpool(pooled, winners, self.maps(), bias_gradient, maps);
            self.window.gather(image.pixels(), patches);
            let maps = Matrix::new(maps, maps.len() / self.outputs, self.outputs);
            matmul(self.patch_matrix(patches).t(), maps, sums, true);
        }
        if let Image::Replaced(image) = image {
            if !self.is_sparse() {
                *sparse = SparseBatch::of_dense(maps, self.outputs);
            }
            filters.pull_back(weights, sparse, image);
        }
    }

    /// The gradient by the weights, once all images have [gone back](Self::go_back).
    pub(super) fn weight_gradient(self, scratch: &Scratch, gradient: &mut [f32]) {
        if !self.is_sparse() {
            return gradient.copy_from_slice(&scratch.sums);
        }
        for (output, sums) in scratch.sums.chunks_exact(self.window.patch_len()).enumerate() {
            for (row, sum) in gradient.chunks_exact_mut(self.outputs).zip(sums) {
                row[output] = *sum;
            }
        }
    }

    fn patch_matrix(self, patches: &[f32]) -> Matrix<'_> {
        Matrix::new(patches, patches.len() / self.window.patch_len(), self.window.patch_len())
    }
}

/// An image that a gradient is taken at.
pub(super) enum Image<'a> {
    /// It stays.
    Kept(&'a [f32]),
    /// It becomes the gradient by it.
    Replaced(&'a mut [f32]),
}

impl Image<'_> {
    fn pixels(&self) -> &[f32] {
        match self {
            Image::Kept(pixels) => pixels,
            Image::Replaced(pixels) => pixels,
        }
    }
}
