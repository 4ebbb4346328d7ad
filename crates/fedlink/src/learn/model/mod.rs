//! Models over one flat vector of parameters θ.

mod cnn;
mod convolution;
mod mlp;
mod softmax;

pub use cnn::Cnn;
pub use mlp::Mlp;

use crate::config::{Config, ConfigError, validate_dim};
use crate::data::Dataset;
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
    /// Convolutional network of a fixed size, for pictures.
    Cnn,
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
    /// All zero (of use for softmax regression only: other models would never leave it).
    Zeros,
}

impl Init {
    /// Draws weights that lead from `inputs` numbers to `outputs` numbers.
    fn fill(self, weights: &mut [f32], inputs: usize, outputs: usize, stream: &mut Stream) {
        let (inputs, both) = (inputs as f64, (inputs + outputs) as f64);
        for weight in weights {
            *weight = match self {
                Init::GlorotUniform => stream.between(-1.0, 1.0) * (6.0 / both).sqrt(),
                Init::GlorotNormal => stream.normal() * (2.0 / both).sqrt(),
                Init::HeUniform => stream.between(-1.0, 1.0) * (6.0 / inputs).sqrt(),
                Init::Zeros => 0.0,
            } as f32;
        }
    }
}

/// Samples to learn from or to be judged on, as floats, one row each.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// `labels.len() × features` numbers.
    pub inputs: &'a [f32],
    /// The class of each row.
    pub labels: &'a [u8],
}

/// Memory a model reuses from one batch to the next; made by [`Model::workspace`]: that of dense layers, and of the
/// convolutions before them, if there are any.
#[derive(Clone, Debug)]
pub struct Workspace(Vec<Vec<f32>>, Option<Box<cnn::Memory>>);

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

    /// The mean loss over the batch; its gradient goes to `gradient`.
    fn gradient(&self, theta: &[f32], batch: Batch, work: &mut Workspace, gradient: &mut [f32]) -> f64;

    /// How well θ does on the batch.
    fn score(&self, theta: &[f32], batch: Batch, work: &mut Workspace) -> Score;
}

/// The model that `config` asks for, with the inputs and classes of `dataset`.
pub fn model(config: &Config, dataset: &Dataset) -> Result<Box<dyn Model>, ConfigError> {
    let mlp = |hidden: &[usize]| Box::new(Mlp::new(dataset.features, hidden, dataset.classes));
    let (model, key): (Box<dyn Model>, _) = match config.learn.model {
        ModelKind::Softmax => (mlp(&[]), "data.dataset"),
        ModelKind::Mlp => (mlp(&config.learn.hidden), "learn.hidden"),
        ModelKind::Cnn => match Cnn::new(dataset.shape, dataset.classes) {
            Some(cnn) => (Box::new(cnn), "learn.model"),
            None => return Err(no_pictures(dataset)),
        },
    };
    validate_dim(key, model.dim())?;
    Ok(model)
}

/// The samples of `dataset` are not what a CNN can look at.
fn no_pictures(dataset: &Dataset) -> ConfigError {
    let samples = match dataset.shape {
        [1, features, 1] => format!("plain vectors of {features} numbers"),
        [height, width, _] => format!("{height} × {width}"),
    };
    let problem = format!(
        "is \"cnn\", which needs pictures of at least {0} × {0} pixels, but the samples of {1} are {samples}; \
         write \"mlp\" or \"softmax\"",
        Cnn::SMALLEST,
        dataset.name
    );
    ConfigError::new("learn.model", problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Features, Samples};

    fn dataset(shape: [usize; 3]) -> Dataset {
        let features = shape.iter().product();
        let samples = Samples { features: Features::Bytes(vec![0; features]), labels: vec![0] };
        Dataset { name: "mine".into(), features, shape, classes: 10, train: samples.clone(), test: samples }
    }

    fn dim(kind: ModelKind, shape: [usize; 3]) -> Result<usize, ConfigError> {
        let mut config = Config::default();
        config.learn.model = kind;
        model(&config, &dataset(shape)).map(|model| model.dim())
    }

    #[test]
    fn each_kind_makes_its_model_for_the_data_at_hand() {
        assert_eq!(dim(ModelKind::Softmax, [28, 28, 1]), Ok(7_850));
        assert_eq!(dim(ModelKind::Mlp, [28, 28, 1]), Ok(203_530));
        assert_eq!(dim(ModelKind::Cnn, [28, 28, 1]), Ok(582_026));
        assert_eq!(dim(ModelKind::Cnn, [32, 32, 3]), Ok(878_538));
    }

    #[test]
    fn a_cnn_for_vectors_or_tiny_pictures_is_refused_with_what_to_write_instead() {
        let rule = "learn.model: is \"cnn\", which needs pictures of at least 16 × 16 pixels, but the samples of mine are";
        for (shape, samples) in [
            ([1, 784, 1], "plain vectors of 784 numbers"),
            ([15, 40, 3], "15 × 40"),
            ([40, 15, 3], "40 × 15"),
        ] {
            let message = dim(ModelKind::Cnn, shape).unwrap_err().to_string();
            assert_eq!(message, format!("{rule} {samples}; write \"mlp\" or \"softmax\""));
        }
        assert!(dim(ModelKind::Cnn, [Cnn::SMALLEST, Cnn::SMALLEST, 1]).is_ok());
    }
}
