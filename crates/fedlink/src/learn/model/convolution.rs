//! One layer of a convolutional network, per image.
//!
//! The patches of one image fit in the cache. Matrix products over 2 to 16 images at once were no faster,
//! over 64 slower.

use crate::base::kernels::{
    Filters, Matrix, SparseBatch, Window, matmul, pool, pooled_shape, unpool, unpool_sparse,
};
use std::ops::Range;

/// A convolution with bias, `ReLU` and pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Convolution {
    /// The window over its input images.
    pub(super) window: Window,
    /// Output channels.
    pub(super) outputs: usize,
    /// The index in θ of the first weight; the biases follow the weights.
    pub(super) start: usize,
}

/// Memory of a convolution.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    filters: Filters,
    /// The patches and maps of one image; in the backward pass, the gradient with respect to the maps.
    patches: Vec<f32>,
    maps: Vec<f32>,
    /// The non-zeros of the gradient with respect to the maps of one image.
    sparse: SparseBatch,
    /// The weights, packed for the gradient with respect to the image.
    weights: Vec<f32>,
    /// The gradient with respect to the weights, transposed if it comes from non-zeros.
    sums: Vec<f32>,
}

/// The output of a convolution for the images of a batch.
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// Its pooled maps; in the backward pass the loss's gradient with respect to them.
    pub(super) pooled: Vec<f32>,
    pub(super) winners: Vec<u8>,
}

impl Output {
    /// The output for image `row`: `len` numbers and their winners.
    pub(super) fn row(&self, row: usize, len: usize) -> (&[f32], &[u8]) {
        (&self.pooled[row_range(row, len)], &self.winners[row_range(row, len)])
    }

    pub(super) fn row_mut(&mut self, row: usize, len: usize) -> (&mut [f32], &mut [u8]) {
        (&mut self.pooled[row_range(row, len)], &mut self.winners[row_range(row, len)])
    }
}

/// The range of row `row` if each row has `len` numbers.
pub(super) fn row_range(row: usize, len: usize) -> Range<usize> {
    row * len..(row + 1) * len
}

/// The smallest row of the window, in numbers, for which a gradient over non-zeros is faster: a vector.
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

    /// The pooled maps of an image, and their winners.
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

    /// Prepares `scratch` for the backward pass, down to the images if `to_images`.
    pub(super) fn begin_back(self, theta: &[f32], to_images: bool, scratch: &mut Scratch) {
        if to_images {
            scratch.filters.pack_back(&theta[self.weights()], &mut scratch.weights);
        }
        scratch.sums.fill(0.0);
    }

    /// Adds an image's part to the gradient, given the one with respect to its pooled maps, and replaces
    /// the image by the gradient with respect to it, if requested.
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

    /// The gradient with respect to the weights, after [`go_back`](Self::go_back) of all images.
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

/// An image in the backward pass.
pub(super) enum Image<'a> {
    /// It stays as it is.
    Kept(&'a [f32]),
    /// The gradient with respect to it replaces it.
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
