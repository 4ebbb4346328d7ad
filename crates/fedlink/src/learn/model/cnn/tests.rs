use super::*;
use crate::base::rng::{Purpose, stream};
use crate::learn::model::tests::gradient;
use crate::learn::optimizer::{Adam, Optimizer};
use crate::learn::task::DeviceState;

/// A network small enough for finite differences in every parameter.
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
        // A used workspace for more rows than the batch has: no stale number may affect the result.
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
    for (inputs, outputs, fans) in [(75, 32, 25 * (3 + 32)), (800, 64, 25 * (32 + 64)), (1600, 512, 2112)] {
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

/// Noisy images of 16×16 with a bar of seven bright pixels somewhere: horizontal (0), vertical (1),
/// falling (2) or rising (3). Every pixel is bright equally often in each class, so that single pixels
/// are no evidence.
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
fn sparse_batches_and_a_workspace_of_another_model_give_the_same_numbers() {
    let model = Cnn::new([16, 16, 1], 4).unwrap();
    let theta = model.init(Init::GlorotUniform, &mut stream(0, Purpose::Init, 0, 0));
    let (inputs, labels) = bars(8, 1);
    let rows = crate::base::kernels::SparseBatch::of_dense(&inputs, 256);
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
