//! One layer of a convolutional network, one image at a time.
//!
//! An image's patches then stay in the cache; matrix products over 2 to 16 images at once were no faster,
//! over 64 slower.

use crate::kernels::{Matrix, Window, matmul, pool, pooled_shape, unpool};
use std::ops::Range;

/// A convolution with bias, `ReLU` and pooling.
#[derive(Clone, Copy, Debug)]
pub(super) struct Convolution {
    /// Over the images it sees.
    pub(super) window: Window,
    /// Output channels.
    pub(super) outputs: usize,
    /// Where in θ the weights begin; the biases follow them.
    pub(super) start: usize,
}

/// Memory for the patches and maps of one image, used by all convolutions in turn.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    pub(super) patches: Vec<f32>,
    pub(super) maps: Vec<f32>,
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

    pub(super) fn maps_len(self) -> usize {
        self.maps().iter().product()
    }

    pub(super) fn pooled_len(self) -> usize {
        self.pooled().iter().product()
    }

    /// The pooled maps of an image, and who won them.
    pub(super) fn forward(
        self,
        theta: &[f32],
        image: &[f32],
        scratch: &mut Scratch,
        (pooled, winners): (&mut [f32], &mut [u8]),
    ) {
        let (patches, maps) = self.split(scratch);
        self.window.gather(image, patches);
        matmul(self.patch_matrix(patches), self.weight_matrix(theta), maps, false);
        pool(maps, self.maps(), &theta[self.biases()], pooled, winners);
    }

    /// Adds an image's part to the gradient by weights and biases, given the one by its pooled maps; leaves
    /// the gradient by the maps in `scratch`.
    pub(super) fn add_gradient(
        self,
        image: &[f32],
        (pooled, winners): (&[f32], &[u8]),
        scratch: &mut Scratch,
        gradient: &mut [f32],
    ) {
        let (patches, maps) = self.split(scratch);
        unpool(pooled, winners, self.maps(), &mut gradient[self.biases()], maps);
        self.window.gather(image, patches);
        let weights = &mut gradient[self.weights()];
        matmul(self.patch_matrix(patches).t(), self.map_matrix(maps), weights, true);
    }

    /// Replaces an image by the gradient by it, from what `add_gradient` left in `scratch`.
    pub(super) fn pull_back(self, theta: &[f32], scratch: &mut Scratch, image: &mut [f32]) {
        let (patches, maps) = self.split(scratch);
        matmul(self.map_matrix(maps), self.weight_matrix(theta).t(), patches, false);
        self.window.scatter(patches, image);
    }

    /// The parts of `scratch` that this layer uses: patches and maps.
    fn split(self, scratch: &mut Scratch) -> (&mut [f32], &mut [f32]) {
        let patches = &mut scratch.patches[..self.window.patches_len()];
        (patches, &mut scratch.maps[..self.maps_len()])
    }

    fn weight_matrix(self, theta: &[f32]) -> Matrix<'_> {
        Matrix::new(&theta[self.weights()], self.window.patch_len(), self.outputs)
    }

    fn patch_matrix(self, patches: &[f32]) -> Matrix<'_> {
        Matrix::new(patches, self.maps_len() / self.outputs, self.window.patch_len())
    }

    fn map_matrix(self, maps: &[f32]) -> Matrix<'_> {
        Matrix::new(maps, self.maps_len() / self.outputs, self.outputs)
    }
}
