//! Convolutional network for images.

use super::convolution::{Convolution, Image, Output, Scratch, row_range};
use super::{Batch, Init, Mlp, Model, Rows, Score, Workspace, no_images, validate_dim};
use crate::data::Dataset;
use crate::kernels::Window;
use crate::learn::optimizer::{Descent, Tail};
use crate::registry::{ConfigError, Entry, PartConfig, Scope};
use crate::rng::Stream;
use crate::units::Shape;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The entry of this model.
pub const ENTRY: Entry<dyn Model> = Entry::of::<CnnConfig>();

/// `[learn.cnn]` has no keys.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CnnConfig {}

impl PartConfig for CnnConfig {
    type Part = dyn Model;
    const NAME: &'static str = "cnn";
    const MEANING: &'static str = "two 5×5 convolutions (32, 64) with 2×2 max-pooling, then 512 units, for \
                                   images (28×28×1: d = 582 026; 32×32×3: d = 878 538)";

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
/// The layers are those of the image network with which federated averaging was introduced (McMahan et al.,
/// AISTATS 2017), but the window stays inside the image ("valid" padding): 28×28 becomes 24×24, pooled to
/// 12×12, then 8×8, pooled to 4×4. Next to a padded border this takes less than half of the work and
/// of the parameters. An odd row or column at the end is left out by pooling.
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

/// What the convolutions need beside the dense layers' workspace.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// Whose it is, and for how many images.
    made_for: (Vec<Convolution>, usize),
    /// One for each convolution, for all images of a batch.
    outputs: Vec<Output>,
    /// The gradient by the last one's pooled maps.
    back: Vec<f32>,
    /// One for each convolution.
    scratch: Vec<Scratch>,
}

impl Cnn {
    /// Height and width that an image must have at least: 16 → 12 → 6 → 2 → 1.
    pub const SMALLEST: usize = 16;

    /// The network for images of shape height × width × channels; none if they are too small for it.
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

    /// Where in θ the dense layers begin.
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

    /// Moves all convolutions' parameters, given the gradient by the last one's output in `memory`.
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
                // Once it has been used, the gradient by it takes the memory of an image that a convolution
                // made.
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

    /// A workspace that some other model made, or that is for fewer images, becomes one of this model.
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

    /// What the dense layers see of a batch: the last convolution's output.
    fn features<'a>(&self, batch: Batch, memory: &'a Memory) -> &'a [f32] {
        let output = memory.outputs.last().expect("a CNN has a convolution");
        &output.pooled[..batch.labels.len() * self.last().pooled_len()]
    }
}

/// The images of a batch that [`dense`] has made number by number.
fn images(batch: Batch<'_>) -> &[f32] {
    match batch.inputs {
        Rows::Dense(images) => images,
        Rows::Sparse(_) => &[],
    }
}

/// All numbers of a batch: as they are, or written out if it came by its non-zeros.
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
            // A pixel of the input meets side² weights of each output, as an output meets
            // side² of each input.
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
        // The features have been used: the gradient by them takes their memory.
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
mod tests {
    use super::*;
    use crate::learn::model::tests::gradient;
    use crate::learn::optimizer::{Adam, Optimizer};
    use crate::learn::task::DeviceState;
    use crate::rng::{Purpose, stream};

    /// A network small enough to be differentiated number by number.
    struct Tiny {
        image: [usize; 3],
        side: usize,
        channels: Vec<usize>,
        hidden: usize,
        classes: usize,
    }

    /// `maps[y][x][channel]`.
    type Maps = Vec<Vec<Vec<f64>>>;

    impl Tiny {
        fn model(&self) -> Cnn {
            Cnn::build(self.image, self.side, &self.channels, self.hidden, self.classes).unwrap()
        }

        /// The network in double precision, written from its definition: the mean loss over the batch.
        fn plain_loss(&self, theta: &[f64], inputs: &[f64], labels: &[u8]) -> f64 {
            let [height, width, channels] = self.image;
            let mut total = 0.0;
            for (image, &label) in inputs.chunks_exact(height * width * channels).zip(labels) {
                let mut theta = theta.iter().copied();
                let mut pixels = image.iter().copied();
                let mut maps: Maps = (0..height)
                    .map(|_| (0..width).map(|_| pixels.by_ref().take(channels).collect()).collect())
                    .collect();
                for &outputs in &self.channels {
                    let weights: Maps = (0..self.side * self.side)
                        .map(|_| {
                            let inputs = 0..maps[0][0].len();
                            inputs.map(|_| theta.by_ref().take(outputs).collect()).collect()
                        })
                        .collect();
                    let biases: Vec<f64> = theta.by_ref().take(outputs).collect();
                    maps = Self::plain_pool(&self.plain_convolution(&maps, &weights, &biases));
                }
                let mut a: Vec<f64> = maps.concat().concat();
                for (outputs, last) in [(self.hidden, false), (self.classes, true)] {
                    let weights: Vec<Vec<f64>> =
                        a.iter().map(|_| theta.by_ref().take(outputs).collect()).collect();
                    let biases: Vec<f64> = theta.by_ref().take(outputs).collect();
                    a = (0..outputs)
                        .map(|o| biases[o] + a.iter().zip(&weights).map(|(a, w)| a * w[o]).sum::<f64>())
                        .map(|z| if last { z } else { z.max(0.0) })
                        .collect();
                }
                assert_eq!(theta.next(), None);
                total += a.iter().map(|z| z.exp()).sum::<f64>().ln() - a[usize::from(label)];
            }
            total / labels.len() as f64
        }

        fn plain_convolution(&self, maps: &Maps, weights: &Maps, biases: &[f64]) -> Maps {
            let at = |y: usize, x: usize, o: usize| {
                let mut z = biases[o];
                for i in 0..self.side {
                    for j in 0..self.side {
                        for (c, pixel) in maps[y + i][x + j].iter().enumerate() {
                            z += pixel * weights[i * self.side + j][c][o];
                        }
                    }
                }
                z.max(0.0)
            };
            let (rows, columns) = (maps.len() - self.side + 1, maps[0].len() - self.side + 1);
            let pixel = |y, x| (0..biases.len()).map(|o| at(y, x, o)).collect();
            (0..rows).map(|y| (0..columns).map(|x| pixel(y, x)).collect()).collect()
        }

        fn plain_pool(maps: &Maps) -> Maps {
            let largest = |y: usize, x: usize, c: usize| {
                let block = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| maps[2 * y + i][2 * x + j][c]);
                block.into_iter().fold(f64::NEG_INFINITY, f64::max)
            };
            let pixel = |y, x| (0..maps[0][0].len()).map(|c| largest(y, x, c)).collect();
            (0..maps.len() / 2).map(|y| (0..maps[0].len() / 2).map(|x| pixel(y, x)).collect()).collect()
        }
    }

    #[test]
    fn gradients_match_finite_differences_of_an_independent_network() {
        for (case, tiny) in [
            Tiny { image: [4, 4, 1], side: 3, channels: vec![2], hidden: 4, classes: 2 },
            Tiny { image: [7, 6, 2], side: 2, channels: vec![3], hidden: 5, classes: 3 },
            Tiny { image: [12, 11, 2], side: 3, channels: vec![3, 4], hidden: 5, classes: 4 },
            Tiny { image: [16, 17, 1], side: 5, channels: vec![2, 3], hidden: 3, classes: 3 },
        ]
        .iter()
        .enumerate()
        {
            let model = tiny.model();
            let mut s = stream(5, Purpose::Test, 0, case as u64);
            let rows = 6;
            let numbers = tiny.image.iter().product::<usize>();
            let theta: Vec<f32> = (0..model.dim()).map(|_| s.normal() as f32 * 0.4).collect();
            let inputs: Vec<f32> = (0..rows * numbers).map(|_| s.normal() as f32).collect();
            let labels: Vec<u8> = (0..rows).map(|_| s.below(tiny.classes as u64) as u8).collect();
            // A workspace for more rows than the batch has, and used before: nothing stale may leak in.
            let mut work = model.workspace(rows + 3);
            let batch = Batch { inputs: Rows::Dense(&inputs), labels: &labels };
            gradient(&model, &theta, batch, &mut work);
            let (loss, gradient) = gradient(&model, &theta, batch, &mut work);
            let score = model.score(&theta, batch, &mut work);

            let theta: Vec<f64> = theta.iter().map(|&x| f64::from(x)).collect();
            let inputs: Vec<f64> = inputs.iter().map(|&x| f64::from(x)).collect();
            let truth = |theta: &[f64]| tiny.plain_loss(theta, &inputs, &labels);
            assert!((loss - truth(&theta)).abs() < 1e-5, "{loss} {}", truth(&theta));
            assert!((score.loss / rows as f64 - loss).abs() < 1e-6);
            let mut moving = 0;
            for i in 0..model.dim() {
                let step = 1e-5;
                let mut moved = theta.clone();
                moved[i] += step;
                let above = truth(&moved);
                moved[i] -= 2.0 * step;
                let slope = (above - truth(&moved)) / (2.0 * step);
                let ours = f64::from(gradient[i]);
                assert!((ours - slope).abs() < 2e-5, "case {case} θ[{i}]: {ours} {slope}");
                moving += usize::from(slope.abs() > 1e-3);
            }
            assert!(2 * moving > model.dim(), "case {case}: too few parameters matter to prove anything");
        }
    }

    #[test]
    fn the_dimensions_are_the_sums_of_the_layers() {
        let dense = |inputs: usize| (inputs + 1) * 512 + 513 * 10;
        let dim = |shape| Cnn::new(shape, 10).unwrap().dim();
        assert_eq!(dim([28, 28, 1]), 26 * 32 + 801 * 64 + dense(4 * 4 * 64));
        assert_eq!(dim([28, 28, 1]), 582_026);
        assert_eq!(dim([32, 32, 3]), 76 * 32 + 801 * 64 + dense(5 * 5 * 64));
        assert_eq!(dim([32, 32, 3]), 878_538);
    }

    #[test]
    fn the_smallest_images_are_sixteen_pixels_high_and_wide() {
        let fits = |height, width| Cnn::new([height, width, 1], 10).is_some();
        assert!(fits(Cnn::SMALLEST, Cnn::SMALLEST));
        assert!(!fits(Cnn::SMALLEST - 1, 28) && !fits(28, Cnn::SMALLEST - 1) && !fits(1, 784));
        assert!(Cnn::new([28, 28, 0], 10).is_none());
    }

    #[test]
    fn glorot_limits_count_the_whole_window_on_both_sides_and_biases_are_zero() {
        let model = Cnn::new([32, 32, 3], 10).unwrap();
        let theta = model.init(Init::GlorotUniform, &mut stream(0, Purpose::Init, 0, 0));
        assert_eq!(theta.len(), model.dim());
        let mut start = 0;
        for (inputs, outputs, fans) in [(75, 32, 25 * (3 + 32)), (800, 64, 25 * (32 + 64)), (1600, 512, 2112)]
        {
            let weights = &theta[start..start + inputs * outputs];
            let limit = (6.0 / f64::from(fans)).sqrt();
            assert!(weights.iter().all(|&w| f64::from(w).abs() <= limit));
            let variance = weights.iter().map(|w| f64::from(w * w)).sum::<f64>() / weights.len() as f64;
            assert!((variance / (limit * limit / 3.0) - 1.0).abs() < 0.05, "{inputs}×{outputs}: {variance}");
            start += inputs * outputs;
            assert!(theta[start..start + outputs].iter().all(|&b| b == 0.0));
            start += outputs;
        }
    }

    /// Noisy images of 16×16 with a bar of seven bright pixels somewhere: lying (0), standing (1), falling
    /// (2) or rising (3). Every pixel is as often bright in one class as in another, so that pixels alone are
    /// no evidence.
    fn bars(count: usize, split: u64) -> (Vec<f32>, Vec<u8>) {
        let mut s = stream(6, Purpose::Test, split, 0);
        let (mut inputs, mut labels) = (Vec::new(), Vec::new());
        for i in 0..count {
            let label = (i % 4) as u8;
            let mut image: Vec<f32> = (0..256).map(|_| 0.1 * s.normal() as f32).collect();
            let (y, x) = (3 + s.below(10) as isize, 3 + s.below(10) as isize);
            let (down, right) = [(0, 1), (1, 0), (1, 1), (-1, 1)][i % 4];
            for step in -3..=3 {
                image[((y + step * down) * 16 + x + step * right) as usize] += 1.0;
            }
            inputs.extend(image);
            labels.push(label);
        }
        (inputs, labels)
    }

    #[test]
    fn non_zeros_and_a_workspace_of_another_model_give_the_same_numbers() {
        let model = Cnn::new([16, 16, 1], 4).unwrap();
        let theta = model.init(Init::GlorotUniform, &mut stream(0, Purpose::Init, 0, 0));
        let (inputs, labels) = bars(8, 1);
        let rows = crate::kernels::SparseBatch::of_dense(&inputs, 256);
        let plain = Batch { inputs: Rows::Dense(&inputs), labels: &labels };
        let expected = model.score(&theta, plain, &mut model.workspace(8));
        let sparse = Batch { inputs: Rows::Sparse(&rows), labels: &labels };
        assert_eq!(model.score(&theta, sparse, &mut model.workspace(8)), expected);
        let other = Cnn::new([20, 17, 2], 3).unwrap();
        for mut work in [Mlp::new(3, &[2], 2).workspace(8), other.workspace(8), model.workspace(2)] {
            assert_eq!(model.score(&theta, plain, &mut work), expected);
        }
    }

    #[test]
    fn a_few_steps_train_it_to_classify_bars_by_their_direction_wherever_they_are() {
        let model = Cnn::new([16, 16, 1], 4).unwrap();
        let mut theta = model.init(Init::GlorotUniform, &mut stream(0, Purpose::Init, 0, 0));
        let mut work = model.workspace(200);
        let (inputs, labels) = bars(200, 1);
        let unseen = Batch { inputs: Rows::Dense(&inputs), labels: &labels };
        let before = model.score(&theta, unseen, &mut work).correct;
        let adam = Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-7 };
        let mut state = DeviceState::filled(model.dim(), adam.starts());
        for step in 0..30 {
            let (inputs, labels) = bars(32, 2 + step);
            let batch = Batch { inputs: Rows::Dense(&inputs), labels: &labels };
            adam.step(2e-3, &mut state, &mut |descent| {
                model.descend(&mut theta, batch, &mut work, descent);
            });
        }
        let after = model.score(&theta, unseen, &mut work).correct;
        assert!(before < 100 && after > 180, "of 200 right: {before} before, {after} after");
    }
}
