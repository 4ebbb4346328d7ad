//! Models over one flat vector of parameters θ.

mod mlp;
mod softmax;

pub use mlp::Mlp;

use crate::config::{Config, ConfigError, validate_dim};
use crate::data::Dataset;
use crate::learn::kernels::{Panels, SparseBatch};
use crate::learn::optimizer::Descent;
use crate::rng::Stream;
use serde::{Deserialize, Serialize};

/// The name of a model in a configuration (`learn.model`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// Softmax regression: one linear layer.
    Softmax,
    /// Multi-layer perceptron with the layers of `learn.hidden`.
    #[default]
    Mlp,
}

/// How weights start (`learn.init`); biases start at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// Uniform in ±√(6/(inputs + outputs)).
    #[default]
    GlorotUniform,
    /// Normal with variance 2/(inputs + outputs).
    GlorotNormal,
    /// Uniform in ±√(6/inputs).
    HeUniform,
    /// All zero (of use for softmax regression only: an MLP would never leave it).
    Zeros,
}

/// The inputs of some samples, one row each.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// Every number, row after row.
    Dense(&'a [f32]),
    /// The non-zeros.
    Sparse(&'a SparseBatch),
}

/// Samples to learn from or to be judged on.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// `labels.len()` rows.
    pub inputs: Rows<'a>,
    /// The class of each row.
    pub labels: &'a [u8],
}

/// Memory a model reuses from one batch to the next; made by [`Model::workspace`].
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The output of each layer, and one more buffer for the gradient on its way back.
    outputs: Vec<Vec<f32>>,
    /// The gradient of one block of θ.
    gradient: Vec<f32>,
    panels: Panels,
}

/// Total loss and number of right answers over some samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Sum of the samples' losses.
    pub loss: f64,
    /// Samples whose most likely class is the true one.
    pub correct: usize,
}

/// A differentiable classifier.
pub trait Model: Send + Sync {
    /// d, the number of parameters.
    fn dim(&self) -> usize;

    /// θ(0).
    fn init(&self, init: Init, stream: &mut Stream) -> Vec<f32>;

    /// Memory for batches of up to `rows` samples.
    fn workspace(&self, rows: usize) -> Workspace;

    /// The mean loss over the batch; `descent` moves θ along its gradient, block by block.
    ///
    /// Each block of θ is offered to `descent` once, after its last use.
    fn descend(
        &self,
        theta: &mut [f32],
        batch: Batch,
        work: &mut Workspace,
        descent: &mut dyn Descent,
    ) -> f64;

    /// How well θ does on the batch.
    fn score(&self, theta: &[f32], batch: Batch, work: &mut Workspace) -> Score;
}

/// The model that `config` asks for, with the inputs and classes of `dataset`.
pub fn model(config: &Config, dataset: &Dataset) -> Result<Box<dyn Model>, ConfigError> {
    let hidden: &[usize] = match config.learn.model {
        ModelKind::Softmax => &[],
        ModelKind::Mlp => &config.learn.hidden,
    };
    let model = Mlp::new(dataset.features, hidden, dataset.classes);
    validate_dim(model.dim())?;
    Ok(Box::new(model))
}
