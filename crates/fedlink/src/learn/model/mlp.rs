//! Multi-layer perceptron; with no hidden layer, softmax regression.

use super::softmax::SoftmaxConfig;
use super::{Batch, Init, Model, Rows, Score, Workspace, cross_entropy, validate_dim};
use crate::base::kernels::{
    Ahead, Matrix, Panels, SparseBatch, fill_rows, matmul, pack_output_gradient, relu, relu_gradient,
    sparse_forward_ahead, sparse_gradient, sparse_gradient_by_row, sum_rows,
};
use crate::base::rng::Stream;
use crate::base::units::Shape;
use crate::data::Dataset;
use crate::learn::optimizer::{Descent, FirstStep, apply_zero_gradient};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys, within};

/// The entry of this model.
pub const ENTRY: Entry<dyn Model> = Entry::of::<MlpConfig>();

/// `[learn.mlp]`.
#[keys]
#[derive(Clone, Debug)]
pub struct MlpConfig {
    /// widths of the hidden layers
    #[key(default = vec![256], allowed = "a list of widths ≥ 1")]
    pub hidden: Vec<usize>,
}

impl PartConfig for MlpConfig {
    type Part = dyn Model;
    const NAME: &'static str = "mlp";
    const MEANING: &'static str =
        "multi-layer perceptron with learn.mlp.hidden layers, ReLU (784→256→10: d = 203 530)";

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        if self.hidden.is_empty() {
            let problem = format!(
                "is empty, but an MLP needs a hidden layer; for a model without one write learn.model = \
                 \"{}\"",
                SoftmaxConfig::NAME
            );
            return Err(ConfigError::new("hidden", problem));
        }
        within("hidden", self.hidden.len() as u64, 1..=64, " layers")?;
        self.hidden
            .iter()
            .try_for_each(|&width| within("hidden", width as u64, 1..=1_000_000, " in every layer"))
    }

    fn build(self, _: &Scope, dataset: &Dataset) -> Result<Box<dyn Model>, ConfigError> {
        let model = Mlp::new(dataset.features, &self.hidden, dataset.classes);
        validate_dim("hidden", model.dim())?;
        Ok(Box::new(model))
    }
}

/// Dense layers with `ReLU` between them and softmax cross-entropy at the end.
///
/// Layer l maps a to a·W_l + b_l. θ holds, layer after layer, `W_l` (inputs × outputs, row-major) and
/// then `b_l`. Storing the first layer by input row suits sparse images. 784→256→10 has d = 203 530
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

/// Floats of the first layer's gradient that are computed and applied at a time: 16 kB.
const GRADIENT_BLOCK: usize = 4096;

/// The most outputs of a first layer for which its gradient is computed from the batch by row.
const BY_ROW_UP_TO: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Layer {
    inputs: usize,
    outputs: usize,
    /// The index in θ of the layer's first weight; its biases follow its weights.
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

    fn parameters(self) -> std::ops::Range<usize> {
        self.start..self.biases().end
    }
}

/// The input of layer `l`: the batch, or the output of the layer before.
fn input_of<'a>(layer: &Layer, l: usize, batch: Batch<'a>, outputs: &'a [Vec<f32>]) -> Rows<'a> {
    match l {
        0 => batch.inputs,
        _ => Rows::Dense(&outputs[l - 1][..batch.labels.len() * layer.inputs]),
    }
}

impl Layer {
    /// Moves the layer's parameters, given its input and the gradient of its output.
    fn descend(
        self,
        theta: &mut [f32],
        input: &[f32],
        output_gradient: &[f32],
        gradient: &mut Vec<f32>,
        descent: &mut dyn Descent,
    ) {
        let rows = output_gradient.len() / self.outputs;
        gradient.resize(gradient.len().max(theta.len()), 0.0);
        let gradient = &mut gradient[..theta.len()];
        let (weights, biases) = gradient.split_at_mut(self.inputs * self.outputs);
        let input = Matrix::new(input, rows, self.inputs);
        matmul(input.t(), Matrix::new(output_gradient, rows, self.outputs), weights, false);
        sum_rows(output_gradient, biases);
        descent.apply(self.start, theta, gradient);
    }

    /// As [`Layer::descend`] with sparse inputs: the weights of a few inputs at a time, and only of
    /// inputs that are non-zero somewhere in the batch, since the others have no gradient.
    fn descend_sparse(
        self,
        theta: &mut [f32],
        input: &SparseBatch,
        output_gradient: &[f32],
        (gradient, panels): (&mut Vec<f32>, &mut Panels),
        descent: &mut dyn Descent,
    ) {
        let (weights, biases) = theta.split_at_mut(self.inputs * self.outputs);
        let by_row = !input.has_columns();
        let max = if by_row { self.inputs } else { (GRADIENT_BLOCK / self.outputs).max(1) };
        gradient.resize(gradient.len().max(max * self.outputs), 0.0);
        let packed = if by_row {
            sparse_gradient_by_row(input, output_gradient, &mut gradient[..weights.len()], panels);
            None
        } else {
            Some(pack_output_gradient(input, output_gradient, panels))
        };
        let mut first = 0;
        while first < self.inputs {
            let idle = input.is_column_empty(first);
            let alike = |i: &usize| input.is_column_empty(*i) == idle;
            let count =
                (first..self.inputs).take(if idle { usize::MAX } else { max }).take_while(alike).count();
            let inputs = first..first + count;
            let block = inputs.start * self.outputs..inputs.end * self.outputs;
            let start = self.start + block.start;
            if idle {
                apply_zero_gradient(descent, start, &mut weights[block]);
            } else if let Some(packed) = &packed {
                let gradient = &mut gradient[..block.len()];
                sparse_gradient(packed, inputs, gradient);
                descent.apply(start, &mut weights[block], gradient);
            } else {
                descent.apply(start, &mut weights[block.clone()], &gradient[block]);
            }
            first += count;
        }
        let gradient = &mut gradient[..self.outputs];
        sum_rows(output_gradient, gradient);
        descent.apply(self.biases().start, biases, gradient);
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

    /// The length of each buffer of a workspace for batches of up to `rows` samples: the layers' outputs,
    /// and one with room for any of them.
    fn buffers(&self, rows: usize) -> impl Iterator<Item = usize> {
        let widest = self.layers.iter().map(|l| l.outputs).max().unwrap_or(0);
        self.layers.iter().map(|l| l.outputs).chain([widest]).map(move |width| rows * width)
    }

    /// Replaces a workspace of another model, or of fewer samples, by one of this model.
    fn make_fit(&self, work: &mut Workspace, rows: usize) {
        let fits = work.outputs.len() == self.layers.len() + 1
            && work.outputs.iter().zip(self.buffers(rows)).all(|(buffer, least)| buffer.len() >= least);
        if !fits {
            work.outputs = self.buffers(rows).map(|len| vec![0.0; len]).collect();
        }
    }

    /// Fills `work` with every layer's output for the batch: `ReLU` after hidden layers, logits at the
    /// end. `ahead` is fetched beside the first layer's product.
    fn forward(&self, theta: &[f32], batch: Batch, work: &mut Workspace, ahead: Ahead) {
        let mut ahead = Some(ahead);
        let rows = batch.labels.len();
        self.make_fit(work, rows);
        for (l, layer) in self.layers.iter().enumerate() {
            let (before, after) = work.outputs.split_at_mut(l);
            let output = &mut after[0][..rows * layer.outputs];
            fill_rows(output, &theta[layer.biases()]);
            let weights = &theta[layer.weights()];
            match input_of(layer, l, batch, before) {
                Rows::Sparse(input) => {
                    let ahead = ahead.take().unwrap_or_default();
                    sparse_forward_ahead(input, weights, output, &mut work.panels, ahead);
                }
                Rows::Dense(input) => {
                    let weights = Matrix::new(weights, layer.inputs, layer.outputs);
                    matmul(Matrix::new(input, rows, layer.inputs), weights, output, true);
                }
            }
            if l + 1 < self.layers.len() {
                relu(output);
            }
        }
    }

    /// As [`Model::descend`]; `input_gradient`, if given, receives the loss's gradient with respect to
    /// the inputs. If the step starts from another model `from`, `descent` fills θ from it.
    pub(super) fn descend_through(
        &self,
        from: Option<&[f32]>,
        theta: &mut [f32],
        batch: Batch,
        work: &mut Workspace,
        descent: &mut dyn Descent,
        mut input_gradient: Option<&mut [f32]>,
    ) -> f64 {
        let rows = batch.labels.len();
        // All operands of the first step are in memory, and θ is written, too.
        let ahead = from.map_or_else(Ahead::default, |_| {
            let [a, b] = descent.reads();
            Ahead::new([a, b, theta])
        });
        self.forward(from.unwrap_or(theta), batch, work, ahead);
        let last = self.layers.len() - 1;
        let logits = &mut work.outputs[last][..rows * self.layers[last].outputs];
        let (loss, square) = cross_entropy::loss_and_gradient(logits, batch.labels);
        work.square = square;
        for (l, layer) in self.layers.iter().enumerate().rev() {
            // `outputs[l]` holds ∂loss/∂(output of layer l), `outputs[l-1]` the layer's input.
            let (before, after) = work.outputs.split_at_mut(l);
            let (output, spare) = after.split_first_mut().expect("one buffer for each layer and one spare");
            let output = &output[..rows * layer.outputs];
            let mut back = match l {
                0 => input_gradient.take(),
                _ => spare.last_mut().map(|back| &mut back[..rows * layer.inputs]),
            };
            // The backward pass uses the weights from before the step, so it comes first.
            if let Some(back) = &mut back {
                let weights = &from.unwrap_or(theta)[layer.weights()];
                let weights = Matrix::new(weights, layer.inputs, layer.outputs);
                matmul(Matrix::new(output, rows, layer.outputs), weights.t(), back, false);
            }
            let theta = &mut theta[layer.parameters()];
            match input_of(layer, l, batch, before) {
                Rows::Dense(input) => layer.descend(theta, input, output, &mut work.gradient, descent),
                Rows::Sparse(input) => {
                    let memory = (&mut work.gradient, &mut work.panels);
                    layer.descend_sparse(theta, input, output, memory, descent);
                }
            }
            if let (Some(before), Some(back)) = (before.last_mut(), back) {
                relu_gradient(before, back);
            }
        }
        loss
    }
}

impl Model for Mlp {
    fn dim(&self) -> usize {
        self.layers.last().expect("an MLP has an output layer").biases().end
    }

    fn shapes(&self) -> Vec<Shape> {
        let of = |layer: &Layer| {
            [Shape { rows: layer.inputs, cols: layer.outputs }, Shape { rows: layer.outputs, cols: 1 }]
        };
        self.layers.iter().flat_map(of).collect()
    }

    fn init(&self, init: Init, stream: &mut Stream) -> Vec<f32> {
        let mut theta = vec![0.0; self.dim()];
        for layer in &self.layers {
            init.fill(&mut theta[layer.weights()], layer.inputs, layer.outputs, stream);
        }
        theta
    }

    fn workspace(&self, rows: usize) -> Workspace {
        let outputs = self.buffers(rows).map(|len| vec![0.0; len]).collect();
        let (gradient, panels) = (Vec::new(), Panels::default());
        Workspace { outputs, gradient, panels, convolutions: None, square: 0.0 }
    }

    fn takes_non_zeros(&self) -> bool {
        true
    }

    fn takes_columns(&self) -> bool {
        self.layers[0].outputs > BY_ROW_UP_TO
    }

    fn descend(
        &self,
        theta: &mut [f32],
        batch: Batch,
        work: &mut Workspace,
        descent: &mut dyn Descent,
    ) -> f64 {
        self.descend_through(None, theta, batch, work, descent, None)
    }

    fn descend_from(
        &self,
        from: &[f32],
        theta: &mut [f32],
        batch: Batch,
        work: &mut Workspace,
        descent: &mut dyn Descent,
    ) -> f64 {
        let mut first = FirstStep { step: descent, from };
        self.descend_through(Some(from), theta, batch, work, &mut first, None)
    }

    fn score(&self, theta: &[f32], batch: Batch, work: &mut Workspace) -> Score {
        self.forward(theta, batch, work, Ahead::default());
        let last = self.layers.len() - 1;
        cross_entropy::score(
            &work.outputs[last][..batch.labels.len() * self.layers[last].outputs],
            batch.labels,
        )
    }
}

#[cfg(test)]
mod tests;
