//! How the server makes one of what several devices bring.

use serde::{Deserialize, Serialize};

/// What a device counts in a mean over devices (`learn.aggregate`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// Each the same: 1/K, as in the paper.
    #[default]
    Mean,
    /// By its number of training samples: n_m/Σn, so that every sample counts the same.
    BySize,
}

/// A number that belongs to a device, with the device's number of training samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfSize {
    /// The number.
    pub value: f64,
    /// n_m.
    pub size: usize,
}

impl Aggregate {
    /// What each of `devices` devices counts, the i-th having `size_of(i)` samples. They add up to 1.
    ///
    /// ```
    /// use fedlink::learn::aggregate::Aggregate;
    /// let sizes = [30, 10];
    /// assert_eq!(Aggregate::Mean.shares(2, |i| sizes[i]), [0.5, 0.5]);
    /// assert_eq!(Aggregate::BySize.shares(2, |i| sizes[i]), [0.75, 0.25]);
    /// ```
    pub fn shares(self, devices: usize, size_of: impl Fn(usize) -> usize) -> Vec<f32> {
        match self {
            Self::Mean => vec![1.0 / devices as f32; devices],
            Self::BySize => {
                let sizes: Vec<usize> = (0..devices).map(size_of).collect();
                let total: usize = sizes.iter().sum();
                sizes.iter().map(|&size| (size as f64 / total as f64) as f32).collect()
            }
        }
    }

    /// The mean of `numbers`, each counting what its device counts.
    ///
    /// ```
    /// use fedlink::learn::aggregate::{Aggregate, OfSize};
    /// let losses = [OfSize { value: 1.0, size: 30 }, OfSize { value: 2.0, size: 10 }];
    /// assert_eq!(Aggregate::Mean.mean(&losses), 1.5);
    /// assert_eq!(Aggregate::BySize.mean(&losses), 1.25);
    /// ```
    pub fn mean(self, numbers: &[OfSize]) -> f64 {
        match self {
            Self::Mean => numbers.iter().map(|n| n.value).sum::<f64>() / numbers.len() as f64,
            Self::BySize => {
                let total: usize = numbers.iter().map(|n| n.size).sum();
                numbers.iter().map(|n| n.value * n.size as f64).sum::<f64>() / total as f64
            }
        }
    }
}
