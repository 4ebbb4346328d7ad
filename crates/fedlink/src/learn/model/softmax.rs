//! Softmax regression.

use super::{Mlp, Model, validate_dim};
use crate::data::Dataset;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this model.
pub const ENTRY: Entry<dyn Model> = Entry::of::<SoftmaxConfig>();

/// `[learn.softmax]` has no keys: the model is one linear layer, an [`Mlp`] without hidden layers.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxConfig {}

impl PartConfig for SoftmaxConfig {
    type Part = dyn Model;
    const NAME: &'static str = "softmax";
    const MEANING: &'static str = "softmax regression (784→10: d = 7 850)";

    fn build(self, _: &Scope, dataset: &Dataset) -> Result<Box<dyn Model>, ConfigError> {
        let model = Mlp::new(dataset.features, &[], dataset.classes);
        validate_dim("data.dataset", model.dim())?;
        Ok(Box::new(model))
    }
}
