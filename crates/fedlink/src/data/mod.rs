//! Data sets and their split among devices.
//!
//! [`catalog::load`] finds a data set by name or path. The readers ([`idx`], [`cifar`], [`npz`], [`csv`])
//! each parse one format from a file or from bytes. None of them panics on bad input, and none allocates
//! more than deflate's greatest ratio (1032) times the length of its input.

pub mod catalog;
pub mod cifar;
pub mod csv;
pub mod digits;
mod error;
pub mod idx;
#[cfg(feature = "files")]
pub mod npz;
pub mod partition;
pub mod scaling;
pub mod source;
#[cfg(test)]
mod test_files;

use sha2::{Digest as _, Sha256};
use std::path::PathBuf;
use std::sync::Arc;

pub use error::{DataError, Flaw, Position};
pub use scaling::{Scaler, Scaling};

/// The numbers of all samples, one sample after the other.
///
/// An image is stored row by row, with the channels of a pixel adjacent (height × width × channels).
#[derive(Clone, Debug, PartialEq)]
pub enum Features {
    /// Pixels as in the file; training converts them to floats.
    Bytes(Vec<u8>),
    /// Custom data in float form, all finite.
    Floats(Vec<f32>),
}

impl Features {
    /// The number of numbers in all samples together.
    pub fn len(&self) -> usize {
        match self {
            Features::Bytes(values) => values.len(),
            Features::Floats(values) => values.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same numbers as floats (bytes become 0.0 to 255.0).
    #[must_use]
    pub fn into_floats(self) -> Vec<f32> {
        match self {
            Features::Bytes(values) => values.into_iter().map(f32::from).collect(),
            Features::Floats(values) => values,
        }
    }
}

/// Labeled samples. Invariant: `features.len()` is `labels.len()` times the features of one sample.
///
/// [`Scaler::write`] turns one sample into the floats that a model sees.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// The numbers of each sample.
    pub features: Features,
    /// The class of each sample.
    pub labels: Vec<u8>,
}

impl Samples {
    /// The number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The class of sample `i`.
    ///
    /// # Panics
    /// If there is no sample `i`.
    pub fn label(&self, i: usize) -> usize {
        usize::from(self.labels[i])
    }

    /// The bytes of sample `i`; none if the data are floats. `size` is the number of features.
    pub fn image(&self, i: usize, size: usize) -> Option<&[u8]> {
        match &self.features {
            Features::Bytes(values) => values.get(i * size..(i + 1) * size),
            Features::Floats(_) => None,
        }
    }

    /// One more than the greatest label, or 0 without samples.
    fn classes(&self) -> usize {
        self.labels.iter().max().map_or(0, |&label| usize::from(label) + 1)
    }
}

/// A data set: training and test samples of one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// Its name.
    pub name: String,
    /// Numbers per sample: the product of `shape`.
    pub features: usize,
    /// Height, width and channels of a sample as an image. A plain vector of F numbers is 1 × F × 1.
    pub shape: [usize; 3],
    /// Number of classes, at most 256; labels are below it.
    pub classes: usize,
    /// The samples for training.
    pub train: Samples,
    /// The samples for measuring accuracy.
    pub test: Samples,
}

impl Dataset {
    /// The embedded data set of generated digits ([`digits`](mod@digits)).
    pub fn digits() -> std::sync::Arc<Self> {
        std::sync::Arc::new(digits::digits())
    }

    /// Custom data, given by their samples only; the greatest label determines the number of classes.
    fn custom(name: String, shape: [usize; 3], train: Samples, test: Samples) -> Self {
        let classes = train.classes().max(test.classes());
        Dataset { name, features: shape.iter().product(), shape, classes, train, test }
    }

    /// SHA-256 of shape, classes and every sample, in hexadecimal: equal for equal data, from any file.
    pub fn digest(&self) -> String {
        let mut digest = Sha256::new();
        let mut word = |number: usize| digest.update((number as u64).to_le_bytes());
        self.shape.into_iter().chain([self.classes, self.train.len(), self.test.len()]).for_each(&mut word);
        for samples in [&self.train, &self.test] {
            match &samples.features {
                Features::Bytes(values) => digest.update(values),
                Features::Floats(values) => {
                    values.iter().for_each(|value| digest.update(value.to_le_bytes()));
                }
            }
            digest.update(&samples.labels);
        }
        crate::base::hex::hexadecimal(&digest.finalize())
    }
}

/// The data set of this name or path (`data.dataset`), searched in `folders`; the embedded one needs
/// none.
pub fn load(name: &str, folders: &[PathBuf]) -> Result<Arc<Dataset>, DataError> {
    catalog::load(name, folders).map(Arc::new)
}
