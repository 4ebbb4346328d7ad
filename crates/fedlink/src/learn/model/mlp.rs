//! Multi-layer perceptron; with no hidden layer, softmax regression.

use super::{Batch, Init, Model, Score, Workspace, softmax};
use crate::learn::kernels::{Matrix, matmul};
use crate::rng::Stream;

/// Dense layers with `ReLU` between them and softmax cross-entropy at the end.
///
/// Layer l maps a to a·W_l + b_l. θ holds, layer after layer, `W_l` (inputs × outputs, row-major) and then
/// `b_l`; a first layer stored by input row is what the sparse pictures want. 784→256→10 has d = 203 530
/// parameters, 784→10 (softmax regression) 7 850.
///
/// ```
/// use fedlink::learn::model::{Mlp, Model};
/// assert_eq!(Mlp::new(784, &[256], 10).dim(), 203_530);
/// assert_eq!(Mlp::new(784, &[], 10).dim(), 7_850);
/// ```
#[derive(Clone, Debug)]
pub struct Mlp {
    layers: Vec<Layer>,
}

#[derive(Clone, Copy, Debug)]
struct Layer {
    inputs: usize,
    outputs: usize,
    /// Where in θ the layer's weights begin; its biases follow them.
    start: usize,
}

impl Layer {
    fn weights(self) -> std::ops::Range<usize> {
        self.start..self.start + self.inputs * self.outputs
    }

    fn biases(self) -> std::ops::Range<usize> {
        let start = self.weights().end;
        start..start + self.outputs
    }
}

impl Mlp {
    /// `inputs` → `hidden`… → `classes`.
    pub fn new(inputs: usize, hidden: &[usize], classes: usize) -> Self {
        let widths: Vec<usize> = [&[inputs], hidden, &[classes]].concat();
        let mut start = 0;
        let layers = widths
            .windows(2)
            .map(|pair| {
                let layer = Layer { inputs: pair[0], outputs: pair[1], start };
                start = layer.biases().end;
                layer
            })
            .collect();
        Self { layers }
    }

    /// Fills `work` with every layer's output for the batch: `ReLU` after hidden layers, logits at the end.
    fn forward(&self, theta: &[f32], batch: Batch, work: &mut Workspace) {
        let rows = batch.labels.len();
        for (l, layer) in self.layers.iter().enumerate() {
            let (before, after) = work.0.split_at_mut(l);
            let input = if l == 0 { batch.inputs } else { &before[l - 1][..rows * layer.inputs] };
            let output = &mut after[0][..rows * layer.outputs];
            for row in output.chunks_exact_mut(layer.outputs) {
                row.copy_from_slice(&theta[layer.biases()]);
            }
            let weights = Matrix::new(&theta[layer.weights()], layer.inputs, layer.outputs);
            matmul(Matrix::new(input, rows, layer.inputs), weights, output, true);
            if l + 1 < self.layers.len() {
                output.iter_mut().for_each(|z| *z = z.max(0.0));
            }
        }
    }

    /// The loss's gradient by the inputs of the batch for which `work` has just been through [`Model::gradient`].
    pub(super) fn input_gradient(&self, theta: &[f32], work: &Workspace, back: &mut [f32]) {
        let layer = self.layers[0];
        let rows = back.len() / layer.inputs;
        let output_gradient = Matrix::new(&work.0[0][..rows * layer.outputs], rows, layer.outputs);
        let weights = Matrix::new(&theta[layer.weights()], layer.inputs, layer.outputs);
        matmul(output_gradient, weights.t(), back, false);
    }
}

impl Model for Mlp {
    fn dim(&self) -> usize {
        self.layers.last().expect("an MLP has an output layer").biases().end
    }

    fn init(&self, init: Init, stream: &mut Stream) -> Vec<f32> {
        let mut theta = vec![0.0; self.dim()];
        for layer in &self.layers {
            init.fill(&mut theta[layer.weights()], layer.inputs, layer.outputs, stream);
        }
        theta
    }

    fn workspace(&self, rows: usize) -> Workspace {
        // One output for each layer, and one more buffer for the gradient on its way back.
        let widest = self.layers.iter().map(|l| l.outputs).max().unwrap_or(0);
        let widths = self.layers.iter().map(|l| l.outputs).chain([widest]);
        Workspace(widths.map(|width| vec![0.0; rows * width]).collect(), None)
    }

    fn gradient(&self, theta: &[f32], batch: Batch, work: &mut Workspace, gradient: &mut [f32]) -> f64 {
        let rows = batch.labels.len();
        self.forward(theta, batch, work);
        let last = self.layers.len() - 1;
        let logits = &mut work.0[last][..rows * self.layers[last].outputs];
        let loss = softmax::loss_and_gradient(logits, batch.labels);
        for (l, layer) in self.layers.iter().enumerate().rev() {
            // `work[l]` holds ∂loss/∂(output of layer l), `work[l-1]` the layer's input.
            let (before, after) = work.0.split_at_mut(l);
            let (output, spare) = after.split_first_mut().expect("one buffer for each layer and one spare");
            let output = &output[..rows * layer.outputs];
            let input = if l == 0 { batch.inputs } else { &before[l - 1][..rows * layer.inputs] };
            let output_gradient = Matrix::new(output, rows, layer.outputs);
            let weight_gradient = &mut gradient[layer.weights()];
            matmul(Matrix::new(input, rows, layer.inputs).t(), output_gradient, weight_gradient, false);
            let bias_gradient = &mut gradient[layer.biases()];
            bias_gradient.fill(0.0);
            for row in output.chunks_exact(layer.outputs) {
                bias_gradient.iter_mut().zip(row).for_each(|(sum, g)| *sum += g);
            }
            if l > 0 {
                let back = &mut spare.last_mut().expect("the spare buffer")[..rows * layer.inputs];
                let weights = Matrix::new(&theta[layer.weights()], layer.inputs, layer.outputs);
                matmul(output_gradient, weights.t(), back, false);
                // ReLU passes the gradient where its output was positive.
                for (a, &g) in before[l - 1][..rows * layer.inputs].iter_mut().zip(back.iter()) {
                    *a = if *a > 0.0 { g } else { 0.0 };
                }
            }
        }
        loss
    }

    fn score(&self, theta: &[f32], batch: Batch, work: &mut Workspace) -> Score {
        self.forward(theta, batch, work);
        let last = self.layers.len() - 1;
        softmax::score(&work.0[last][..batch.labels.len() * self.layers[last].outputs], batch.labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};

    /// The network in double precision, written from its definition: the mean loss over the batch.
    fn plain_loss(widths: &[usize], theta: &[f64], inputs: &[f64], labels: &[u8]) -> f64 {
        let mut total = 0.0;
        for (x, &label) in inputs.chunks_exact(widths[0]).zip(labels) {
            let mut a = x.to_vec();
            let mut at = 0;
            for (l, pair) in widths.windows(2).enumerate() {
                let (weights, biases) = (&theta[at..], &theta[at + pair[0] * pair[1]..]);
                let z: Vec<f64> = (0..pair[1])
                    .map(|o| biases[o] + (0..pair[0]).map(|i| a[i] * weights[i * pair[1] + o]).sum::<f64>())
                    .collect();
                at += (pair[0] + 1) * pair[1];
                let hidden = l + 2 < widths.len();
                a = z.into_iter().map(|z| if hidden { z.max(0.0) } else { z }).collect();
            }
            total += a.iter().map(|z| z.exp()).sum::<f64>().ln() - a[usize::from(label)];
        }
        total / labels.len() as f64
    }

    #[test]
    fn gradients_match_finite_differences_of_an_independent_network() {
        for widths in [vec![7, 4], vec![7, 5, 4], vec![6, 5, 4, 3], vec![3, 9, 8, 7, 2]] {
            let classes = *widths.last().unwrap();
            let model = Mlp::new(widths[0], &widths[1..widths.len() - 1], classes);
            let mut s = stream(4, Purpose::Test, 0, widths.len() as u64);
            let rows = 6;
            let theta: Vec<f32> = (0..model.dim()).map(|_| s.normal() as f32 * 0.5).collect();
            let inputs: Vec<f32> = (0..rows * widths[0]).map(|_| s.normal() as f32).collect();
            let labels: Vec<u8> = (0..rows).map(|_| s.below(classes as u64) as u8).collect();
            let mut gradient = vec![f32::NAN; model.dim()];
            // A workspace for more rows than the batch has, and used before: nothing stale may leak in.
            let mut work = model.workspace(rows + 3);
            let batch = Batch { inputs: &inputs, labels: &labels };
            model.gradient(&theta, batch, &mut work, &mut gradient);
            let loss = model.gradient(&theta, batch, &mut work, &mut gradient);

            let theta: Vec<f64> = theta.iter().map(|&x| f64::from(x)).collect();
            let inputs: Vec<f64> = inputs.iter().map(|&x| f64::from(x)).collect();
            let truth = |theta: &[f64]| plain_loss(&widths, theta, &inputs, &labels);
            assert!((loss - truth(&theta)).abs() < 1e-5);
            for i in 0..model.dim() {
                let step = 1e-5;
                let mut moved = theta.clone();
                moved[i] += step;
                let above = truth(&moved);
                moved[i] -= 2.0 * step;
                let slope = (above - truth(&moved)) / (2.0 * step);
                assert!(
                    (f64::from(gradient[i]) - slope).abs() < 2e-5,
                    "{widths:?} θ[{i}]: {} {slope}",
                    gradient[i]
                );
            }
        }
    }

    #[test]
    fn the_paper_s_models_have_the_paper_s_dimensions() {
        assert_eq!(Mlp::new(784, &[256], 10).dim(), 203_530);
        assert_eq!(Mlp::new(784, &[], 10).dim(), 7_850);
        assert_eq!(Mlp::new(784, &[128, 64], 10).dim(), 785 * 128 + 129 * 64 + 65 * 10);
    }

    #[test]
    fn glorot_weights_fill_their_range_and_biases_are_zero() {
        let model = Mlp::new(784, &[256], 10);
        let theta = model.init(Init::GlorotUniform, &mut stream(0, Purpose::Init, 0, 0));
        let limit = (6.0f32 / (784.0 + 256.0)).sqrt();
        let first = &theta[..784 * 256];
        assert!(first.iter().all(|w| w.abs() <= limit));
        let variance = first.iter().map(|w| f64::from(w * w)).sum::<f64>() / first.len() as f64;
        assert!((variance / f64::from(limit * limit / 3.0) - 1.0).abs() < 0.02);
        assert!(theta[784 * 256..784 * 256 + 256].iter().all(|&b| b == 0.0));
        assert!(theta[203_520..].iter().all(|&b| b == 0.0));
    }

    #[test]
    fn scores_count_right_answers_and_add_up_losses() {
        // Two inputs, two classes, weights that copy the inputs to the logits.
        let model = Mlp::new(2, &[], 2);
        let theta = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];
        let batch = Batch { inputs: &[5.0, 0.0, 0.0, 5.0, 5.0, 0.0], labels: &[0, 1, 1] };
        let score = model.score(&theta, batch, &mut model.workspace(3));
        let right = (1.0 + (-5f64).exp()).ln();
        assert_eq!(score.correct, 2);
        assert!((score.loss - (2.0 * right + right + 5.0)).abs() < 1e-5);
    }
}
