//! Data sets and their split among devices.

pub mod partition;

use crate::config::{ConfigError, DataConfig};
use std::sync::Arc;

/// Labelled samples, features kept as bytes until training needs floats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Samples {
    /// `labels.len() × features` bytes, one sample after the other.
    pub pixels: Vec<u8>,
    /// The class of each sample.
    pub labels: Vec<u8>,
}

impl Samples {
    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Writes sample `index` to `row` as numbers in 0..=1.
    pub fn write_row(&self, index: usize, row: &mut [f32]) {
        let pixels = &self.pixels[index * row.len()..(index + 1) * row.len()];
        for (x, &pixel) in row.iter_mut().zip(pixels) {
            *x = f32::from(pixel) * (1.0 / 255.0);
        }
    }
}

/// A data set: training and test samples of one shape.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The name by which it is asked for.
    pub name: String,
    /// Numbers per sample.
    pub features: usize,
    /// Height, width and channels of a sample as a picture.
    pub shape: [usize; 3],
    /// Number of classes; labels are below it.
    pub classes: usize,
    /// What devices learn from.
    pub train: Samples,
    /// What accuracy is measured on.
    pub test: Samples,
}

/// The data set that a configuration names.
pub fn load(config: &DataConfig) -> Result<Arc<Dataset>, crate::Error> {
    Err(ConfigError::new("data.dataset", format!("{:?} is not a known data set", config.dataset)).into())
}
