//! Data sets and their split among devices.

/// Labelled samples, features kept as bytes until training needs floats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Samples {
    /// `labels.len() × features` bytes, one sample after the other.
    pub pixels: Vec<u8>,
    /// The class of each sample.
    pub labels: Vec<u8>,
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
