//! Models over one flat vector of parameters θ.

mod convolution;
mod cross_entropy;

crate::register! {
    /// All models.
    MODELS: dyn Model;
    softmax,
    mlp,
    cnn,
}

pub use cnn::Cnn;
pub use mlp::Mlp;

use crate::base::kernels::{Panels, SparseBatch};
use crate::base::rng::Stream;
use crate::base::units::Shape;
use crate::data::Dataset;
use crate::learn::optimizer::Descent;
use crate::parts::{ConfigError, Entry, Kind, PartConfig as _, parts_with};
use serde::{Deserialize, Serialize};

/// The initial weights (`learn.init`); biases start at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Init {
    /// Uniform in ±√(6/(inputs + outputs)).
    #[default]
    GlorotUniform,
    /// Normal with variance 2/(inputs + outputs).
    GlorotNormal,
    /// Uniform in ±√(6/inputs).
    HeUniform,
    /// All zero (for softmax regression only: the gradient of other models would stay zero).
    Zeros,
}

impl Init {
    /// Draws weights from `inputs` numbers to `outputs` numbers.
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

/// The inputs of some samples, one row each.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// Every number, row after row.
    Dense(&'a [f32]),
    /// The non-zeros.
    Sparse(&'a SparseBatch),
}

/// Samples for training or evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// `labels.len()` rows.
    pub inputs: Rows<'a>,
    /// The class of each row.
    pub labels: &'a [u8],
}

/// Memory that a model reuses from batch to batch, made by [`Model::workspace`]: that of dense layers,
/// and of the convolutions before them, if there are any.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The output of each layer, and one more buffer for the gradient in the backward pass.
    outputs: Vec<Vec<f32>>,
    /// The gradient of one block of θ.
    gradient: Vec<f32>,
    panels: Panels,
    /// Memory of the convolutions of a CNN.
    convolutions: Option<Box<cnn::Memory>>,
    /// The mean of the squared losses over the samples of the last training batch.
    square: f64,
}

impl Workspace {
    /// The mean of the squared losses over the samples of the last batch of [`Model::descend`].
    pub fn mean_square(&self) -> f64 {
        self.square
    }
}

/// Total loss and number of right answers over some samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// Sum of the samples' losses.
    pub loss: f64,
    /// Samples whose most likely class is the true one.
    pub correct: usize,
    /// The same, by class.
    pub correct_of_class: Vec<u32>,
}

/// A differentiable classifier.
pub trait Model: Send + Sync {
    /// d, the number of parameters.
    fn dim(&self) -> usize;

    /// Its layers as matrices, in the order of θ: d numbers in all.
    fn shapes(&self) -> Vec<Shape>;

    /// θ(0).
    fn init(&self, init: Init, stream: &mut Stream) -> Vec<f32>;

    /// Floating-point operations per sample and step, forward and backward: 6 per use of a weight.
    fn flops_per_sample(&self) -> f64 {
        6.0 * self.dim() as f64
    }

    /// Memory for batches of up to `rows` samples.
    fn workspace(&self, rows: usize) -> Workspace;

    /// Whether sparse batches ([`Rows::Sparse`]) help; if not, they are written out first.
    fn takes_non_zeros(&self) -> bool;

    /// Whether a sparse batch should have its columns as well, for a step. The result does not depend on
    /// it.
    fn takes_columns(&self) -> bool {
        true
    }

    /// Computes the mean loss over the batch; `descent` moves θ along its gradient, block by block.
    ///
    /// Each block of θ is passed to `descent` once, after its last use.
    fn descend(
        &self,
        theta: &mut [f32],
        batch: Batch,
        work: &mut Workspace,
        descent: &mut dyn Descent,
    ) -> f64;

    /// As [`Model::descend`], from a model `from` that does not change: the moved θ goes to `theta`,
    /// whose previous content is undefined.
    fn descend_from(
        &self,
        from: &[f32],
        theta: &mut [f32],
        batch: Batch,
        work: &mut Workspace,
        descent: &mut dyn Descent,
    ) -> f64 {
        theta.copy_from_slice(from);
        self.descend(theta, batch, work, descent)
    }

    /// The score of θ on the batch.
    fn score(&self, theta: &[f32], batch: Batch, work: &mut Workspace) -> Score;
}

/// Facts of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelFacts {
    /// Whether samples must be images.
    pub needs_images: bool,
}

impl Kind for dyn Model {
    type Material = Dataset;
    type Facts = ModelFacts;
    const PLURAL: &'static str = "models";
    const KEY: &'static str = "learn.model";
    const TABLE: &'static str = "learn";

    fn entries() -> &'static [Entry<Self>] {
        MODELS
    }
}

/// Entries of an update are numbered by 32 bits, and one update must fit in memory.
const MAX_DIM: u64 = 1 << 31;

/// Checks that an update of `dim` entries can be handled; `key` determines the size of the model.
pub(crate) fn validate_dim(key: &str, dim: usize) -> Result<(), ConfigError> {
    if (dim as u64) < MAX_DIM {
        return Ok(());
    }
    let problem = format!("makes a model of {dim} parameters, but at most {} can be handled", MAX_DIM - 1);
    Err(ConfigError::new(key, problem))
}

/// The error of a CNN for a `dataset` without suitable images.
fn no_images(dataset: &Dataset) -> ConfigError {
    let samples = match dataset.shape {
        [1, features, 1] => format!("plain vectors of {features} numbers"),
        [height, width, _] => format!("{height} × {width}"),
    };
    let problem = format!(
        "is \"{}\", which needs images of at least {1} × {1} pixels, but the samples of {2} are {samples}; \
         write {3}",
        cnn::CnnConfig::NAME,
        Cnn::SMALLEST,
        dataset.name,
        parts_with::<dyn Model>(|facts| !facts.needs_images)
    );
    ConfigError::new("learn.model", problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Features, Samples};

    /// Stores the gradient, and overwrites each passed block of θ with NaN to detect later use.
    struct Note(Vec<f32>);

    impl Descent for Note {
        fn apply(&mut self, start: usize, theta: &mut [f32], gradient: &[f32]) {
            let noted = &mut self.0[start..start + theta.len()];
            assert!(noted.iter().all(|g| g.is_nan()), "a block is offered once");
            noted.copy_from_slice(gradient);
            theta.fill(f32::NAN);
        }

        fn is_at_rest(&self, _: std::ops::Range<usize>) -> bool {
            false
        }
    }

    /// The mean loss over the batch and the whole of its gradient.
    pub fn gradient(model: &dyn Model, theta: &[f32], batch: Batch, work: &mut Workspace) -> (f64, Vec<f32>) {
        let mut note = Note(vec![f32::NAN; theta.len()]);
        let loss = model.descend(&mut theta.to_vec(), batch, work, &mut note);
        assert!(note.0.iter().all(|g| !g.is_nan()), "every block is offered");
        (loss, note.0)
    }

    #[test]
    fn the_layers_are_matrices_that_make_up_theta() {
        let layers = |model: &dyn Model| -> Vec<(usize, usize)> {
            assert_eq!(model.shapes().iter().map(|shape| shape.len()).sum::<usize>(), model.dim());
            model.shapes().iter().map(|shape| (shape.rows, shape.cols)).collect()
        };
        assert_eq!(layers(&Mlp::new(784, &[256], 10)), [(784, 256), (256, 1), (256, 10), (10, 1)]);
        assert_eq!(layers(&Mlp::new(784, &[], 10)), [(784, 10), (10, 1)]);
        // 5 · 5 · 1 and 5 · 5 · 32 inputs; the head has 4 · 4 · 64 inputs.
        assert_eq!(
            layers(&Cnn::new([28, 28, 1], 10).unwrap()),
            [(25, 32), (32, 1), (800, 64), (64, 1), (1024, 512), (512, 1), (512, 10), (10, 1)]
        );
    }

    fn dataset(shape: [usize; 3]) -> Dataset {
        let features = shape.iter().product();
        let samples = Samples { features: Features::Bytes(vec![0; features]), labels: vec![0] };
        Dataset { name: "mine".into(), features, shape, classes: 10, train: samples.clone(), test: samples }
    }

    fn dim(name: &str, shape: [usize; 3]) -> Result<usize, ConfigError> {
        let entry = crate::parts::find::<dyn Model>(name)?;
        let model = entry.build(&toml::Table::new(), &crate::parts::Scope::default(), &dataset(shape))?;
        Ok(model.dim())
    }

    #[test]
    fn the_error_of_a_model_that_is_too_large_names_its_key() {
        assert_eq!(validate_dim("learn.model", MAX_DIM as usize - 1), Ok(()));
        let message = validate_dim("learn.model", MAX_DIM as usize).unwrap_err().to_string();
        assert!(message.starts_with("learn.model: makes a model of 2147483648 parameters"), "{message}");
    }

    #[test]
    fn each_kind_makes_its_model_for_the_data_at_hand() {
        assert_eq!(dim("softmax", [28, 28, 1]), Ok(7_850));
        assert_eq!(dim("mlp", [28, 28, 1]), Ok(203_530));
        assert_eq!(dim("cnn", [28, 28, 1]), Ok(582_026));
        assert_eq!(dim("cnn", [32, 32, 3]), Ok(878_538));
    }

    #[test]
    fn a_cnn_for_vectors_or_tiny_images_is_refused_with_a_remedy() {
        let rule = "learn.model: is \"cnn\", which needs images of at least 16 × 16 pixels, but the samples \
            of mine are";
        for (shape, samples) in [
            ([1, 784, 1], "plain vectors of 784 numbers"),
            ([15, 40, 3], "15 × 40"),
            ([40, 15, 3], "40 × 15"),
        ] {
            let message = dim("cnn", shape).unwrap_err().to_string();
            assert_eq!(message, format!("{rule} {samples}; write learn.model = \"softmax\" or \"mlp\""));
        }
        assert!(dim("cnn", [Cnn::SMALLEST, Cnn::SMALLEST, 1]).is_ok());
    }
}
