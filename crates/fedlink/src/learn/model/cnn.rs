//! Convolutional network for images.

use super::convolution::{Convolution, Image, Output, Scratch, row_range};
use super::{Batch, Init, Mlp, Model, ModelFacts, Rows, Score, Workspace, no_images, validate_dim};
use crate::base::kernels::Window;
use crate::base::rng::Stream;
use crate::base::units::Shape;
use crate::data::Dataset;
use crate::learn::optimizer::{Descent, Tail};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use std::borrow::Cow;

/// The entry of this model.
pub const ENTRY: Entry<dyn Model> = Entry::of::<CnnConfig>();

/// `[learn.cnn]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct CnnConfig {}

impl PartConfig for CnnConfig {
    type Part = dyn Model;
    const NAME: &'static str = "cnn";
    const MEANING: &'static str = "two 5×5 convolutions (32, 64) with 2×2 max-pooling, then 512 units, for \
                                   images (28×28×1: d = 582 026; 32×32×3: d = 878 538)";

    fn facts(&self) -> ModelFacts {
        ModelFacts { needs_images: true }
    }

    fn build(self, _: &Scope, dataset: &Dataset) -> Result<Box<dyn Model>, ConfigError> {
        let model = Cnn::new(dataset.shape, dataset.classes).ok_or_else(|| no_images(dataset))?;
        validate_dim("learn.model", model.dim())?;
        Ok(Box::new(model))
    }
}

/// Side of the window of every convolution.
const SIDE: usize = 5;

/// Output channels of the convolutions.
const CHANNELS: [usize; 2] = [32, 64];

/// Width of the dense layer after them.
const HIDDEN: usize = 512;

/// Two 5×5 convolutions with 32 and 64 output channels, each followed by `ReLU` and 2×2 maximum pooling, then
/// dense layers to 512 units (`ReLU`) and to the classes, with softmax cross-entropy at the end.
///
/// The layers are those of the image network with which federated averaging was introduced (McMahan et
/// al., AISTATS 2017), but the window stays inside the image ("valid" padding): 28×28 becomes 24×24,
/// pooled to 12×12, then 8×8, pooled to 4×4. Compared with a padded border this takes less than half of
/// the work and of the parameters. Pooling drops an odd last row or column.
///
/// θ holds for each convolution its weights (5 · 5 · input channels × output channels, row-major, in the
/// order row, column, channel of the window) and biases, and then the dense layers as [`Mlp`] stores them. d
/// is 582 026 for images of 28×28×1 with 10 classes, and 878 538 for 32×32×3.
///
/// ```
/// use fedlink::learn::model::{Cnn, Model};
/// assert_eq!(Cnn::new([28, 28, 1], 10).unwrap().dim(), 582_026);
/// assert_eq!(Cnn::new([32, 32, 3], 10).unwrap().dim(), 878_538);
/// ```
#[derive(Clone, Debug)]
pub struct Cnn {
    convolutions: Vec<Convolution>,
    head: Mlp,
}

/// Memory of the convolutions beside the dense layers' workspace.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// The convolutions and the number of images that it was made for.
    made_for: (Vec<Convolution>, usize),
    /// One per convolution, for all images of a batch.
    outputs: Vec<Output>,
    /// The gradient with respect to the pooled maps of the last convolution.
    back: Vec<f32>,
    /// One per convolution.
    scratch: Vec<Scratch>,
}

impl Cnn {
    /// The smallest height and width of an image: 16 → 12 → 6 → 2 → 1.
    pub const SMALLEST: usize = 16;

    /// The network for images of shape height × width × channels; none if they are too small.
    pub fn new(image: [usize; 3], classes: usize) -> Option<Self> {
        Self::build(image, SIDE, &CHANNELS, HIDDEN, classes)
    }

    fn build(
        image: [usize; 3],
        side: usize,
        channels: &[usize],
        hidden: usize,
        classes: usize,
    ) -> Option<Self> {
        let mut convolutions: Vec<Convolution> = Vec::new();
        for &outputs in channels {
            let (input, start) = convolutions.last().map_or((image, 0), |c| (c.pooled(), c.biases().end));
            convolutions.push(Convolution { window: Window::new(input, side)?, outputs, start });
        }
        let features = convolutions.last()?.pooled_len();
        (features > 0).then(|| Self { convolutions, head: Mlp::new(features, &[hidden], classes) })
    }

    fn last(&self) -> Convolution {
        *self.convolutions.last().expect("a CNN has a convolution")
    }

    /// The index in θ of the first dense parameter.
    fn head_start(&self) -> usize {
        self.last().biases().end
    }

    /// Fills `memory` with every convolution's output for the batch.
    fn forward(&self, theta: &[f32], batch: Batch, memory: &mut Memory) {
        let Memory { outputs, scratch, .. } = memory;
        for ((l, convolution), scratch) in self.convolutions.iter().enumerate().zip(scratch) {
            let (before, after) = outputs.split_at_mut(l);
            let input = before.last().map_or(images(batch), |output| &output.pooled);
            for row in 0..batch.labels.len() {
                let image = &input[row_range(row, convolution.window.image_len())];
                let output = after[0].row_mut(row, convolution.pooled_len());
                convolution.forward(theta, image, scratch, output);
            }
        }
    }

    /// Moves all convolutions' parameters, given the gradient with respect to the last output in
    /// `memory`.
    fn backward(
        &self,
        theta: &mut [f32],
        batch: Batch,
        memory: &mut Memory,
        gradient: &mut Vec<f32>,
        descent: &mut dyn Descent,
    ) {
        let Memory { outputs, scratch, .. } = memory;
        gradient.resize(gradient.len().max(self.head_start()), 0.0);
        for ((l, convolution), scratch) in self.convolutions.iter().enumerate().zip(scratch).rev() {
            let (before, after) = outputs.split_at_mut(l);
            convolution.begin_back(theta, l > 0, scratch);
            gradient[convolution.biases()].fill(0.0);
            for row in 0..batch.labels.len() {
                let image = row_range(row, convolution.window.image_len());
                // Once an output has been used, the gradient with respect to it overwrites it.
                let image = match before.last_mut() {
                    None => Image::Kept(&images(batch)[image]),
                    Some(input) => Image::Replaced(&mut input.pooled[image]),
                };
                let output = after[0].row(row, convolution.pooled_len());
                convolution.go_back(image, output, scratch, &mut gradient[convolution.biases()]);
            }
            convolution.weight_gradient(scratch, &mut gradient[convolution.weights()]);
            let block = convolution.parameters();
            descent.apply(block.start, &mut theta[block.clone()], &gradient[block]);
        }
    }

    /// Replaces a workspace of another model, or of fewer images, by one of this model.
    fn make_fit(&self, work: &mut Workspace, rows: usize) {
        let made_for = work.convolutions.as_ref().map(|memory| &memory.made_for);
        if !made_for.is_some_and(|(convolutions, most)| *convolutions == self.convolutions && rows <= *most) {
            *work = self.workspace(rows);
        }
    }

    /// Memory of the convolutions for batches of up to `rows` images.
    fn new_memory(&self, rows: usize) -> Memory {
        let output = |convolution: &Convolution| {
            let len = rows * convolution.pooled_len();
            Output { pooled: vec![0.0; len], winners: vec![0; len] }
        };
        let scratch = self.convolutions.iter().map(|convolution| convolution.scratch()).collect();
        let outputs = self.convolutions.iter().map(output).collect();
        let back = vec![0.0; rows * self.last().pooled_len()];
        Memory { made_for: (self.convolutions.clone(), rows), outputs, back, scratch }
    }

    /// The input of the dense layers for a batch: the last convolution's output.
    fn features<'a>(&self, batch: Batch, memory: &'a Memory) -> &'a [f32] {
        let output = memory.outputs.last().expect("a CNN has a convolution");
        &output.pooled[..batch.labels.len() * self.last().pooled_len()]
    }
}

/// The images of a batch that [`dense`] has written out.
fn images(batch: Batch<'_>) -> &[f32] {
    match batch.inputs {
        Rows::Dense(images) => images,
        Rows::Sparse(_) => &[],
    }
}

/// All numbers of a batch: as they are, or written out if the batch is sparse.
fn dense(batch: Batch<'_>) -> Cow<'_, [f32]> {
    match batch.inputs {
        Rows::Dense(images) => Cow::Borrowed(images),
        Rows::Sparse(rows) => Cow::Owned(rows.to_dense()),
    }
}

impl Model for Cnn {
    fn dim(&self) -> usize {
        self.head_start() + self.head.dim()
    }

    fn shapes(&self) -> Vec<Shape> {
        let of = |convolution: &Convolution| {
            let (weights, cols) = (convolution.biases().start - convolution.start, convolution.outputs);
            [Shape { rows: weights / cols, cols }, Shape { rows: cols, cols: 1 }]
        };
        self.convolutions.iter().flat_map(of).chain(self.head.shapes()).collect()
    }

    fn init(&self, init: Init, stream: &mut Stream) -> Vec<f32> {
        let mut theta = vec![0.0; self.head_start()];
        for convolution in &self.convolutions {
            // A pixel of the input is multiplied with side² weights of each output, and an output with
            // side² weights of each input.
            let inputs = convolution.window.patch_len();
            let outputs = convolution.window.area() * convolution.outputs;
            init.fill(&mut theta[convolution.weights()], inputs, outputs, stream);
        }
        theta.extend(self.head.init(init, stream));
        theta
    }

    fn workspace(&self, rows: usize) -> Workspace {
        Workspace { convolutions: Some(Box::new(self.new_memory(rows))), ..self.head.workspace(rows) }
    }

    fn takes_non_zeros(&self) -> bool {
        false
    }

    fn descend(
        &self,
        theta: &mut [f32],
        batch: Batch,
        work: &mut Workspace,
        descent: &mut dyn Descent,
    ) -> f64 {
        let images = dense(batch);
        let batch = Batch { inputs: Rows::Dense(&images), ..batch };
        let (theta, head_theta) = theta.split_at_mut(self.head_start());
        self.make_fit(work, batch.labels.len());
        let mut memory = work.convolutions.take().expect("it was made to fit");
        self.forward(theta, batch, &mut memory);
        let mut back = std::mem::take(&mut memory.back);
        let features = self.features(batch, &memory);
        let seen = Batch { inputs: Rows::Dense(features), labels: batch.labels };
        let feature_gradient = Some(&mut back[..features.len()]);
        let mut tail = Tail { whole: descent, start: self.head_start() };
        let loss = self.head.descend_through(None, head_theta, seen, work, &mut tail, feature_gradient);
        // The features have been used: the gradient with respect to them overwrites them.
        let output = memory.outputs.last_mut().expect("a CNN has a convolution");
        memory.back = std::mem::replace(&mut output.pooled, back);
        self.backward(theta, batch, &mut memory, &mut work.gradient, descent);
        work.convolutions = Some(memory);
        loss
    }

    fn score(&self, theta: &[f32], batch: Batch, work: &mut Workspace) -> Score {
        let images = dense(batch);
        let batch = Batch { inputs: Rows::Dense(&images), ..batch };
        let (theta, head_theta) = theta.split_at(self.head_start());
        self.make_fit(work, batch.labels.len());
        let mut memory = work.convolutions.take().expect("it was made to fit");
        self.forward(theta, batch, &mut memory);
        let seen = Batch { inputs: Rows::Dense(self.features(batch, &memory)), labels: batch.labels };
        let score = self.head.score(head_theta, seen, work);
        work.convolutions = Some(memory);
        score
    }
}

#[cfg(test)]
mod tests;
