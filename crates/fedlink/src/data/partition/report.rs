//! Statistics of a split: the number of samples of each class on each device, and the distance from IID.

use super::Partition;
use crate::base::units::DeviceId;
use crate::data::Dataset;
use serde::Serialize;

/// The maximum number of devices that a report describes.
const MAX_DESCRIBED: usize = 1000;

/// A split in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SplitReport {
    /// M.
    pub devices: usize,
    /// The number of described devices, the first of all: fewer than `devices` if there are more than
    /// 1000.
    pub described: usize,
    /// The number of samples of each class in the whole training set.
    pub train_counts: Vec<usize>,
    /// The number of samples of each described device.
    pub sizes: Vec<usize>,
    /// The number of samples of each class (second index) of each described device (first index).
    pub class_counts: Vec<Vec<usize>>,
    /// The mean over the described devices of the total-variation distance ½·Σ_c |p_m(c) − p(c)| between the
    /// device's mix of classes and that of the training set: 0 if all are alike, 1 − min p(c) at most.
    pub heterogeneity: f64,
}

/// Describes the split of `dataset` among `devices` devices.
///
/// `partition` must have been made for these.
///
/// ```
/// use fedlink::data::partition::describe;
/// # fn main() -> Result<(), fedlink::Error> {
/// let mut config = fedlink::spec::Config::default();
/// config.data.partition = "classes".into();
/// let dataset = fedlink::data::load(&config.data.dataset, &[])?;
/// let report = describe(&*config.resolve(&Default::default())?.partition(&dataset)?, &dataset, 40);
/// assert_eq!(report.sizes, [1000; 40]);
/// println!("{:.2} away from IID", report.heterogeneity);
/// # Ok(())
/// # }
/// ```
pub fn describe(partition: &dyn Partition, dataset: &Dataset, devices: usize) -> SplitReport {
    let labels = &dataset.train.labels;
    let mut train_counts = vec![0; dataset.classes];
    labels.iter().for_each(|&label| train_counts[usize::from(label)] += 1);
    let described = devices.min(MAX_DESCRIBED);
    let mut samples = Vec::new();
    let class_counts: Vec<Vec<usize>> = (0..described)
        .map(|device| {
            partition.samples_of(DeviceId::new(device), &mut samples);
            let mut counts = vec![0; dataset.classes];
            samples.iter().for_each(|&sample| counts[dataset.train.label(sample as usize)] += 1);
            counts
        })
        .collect();
    let distances = class_counts.iter().map(|counts| total_variation(counts, &train_counts));
    SplitReport {
        devices,
        described,
        heterogeneity: distances.sum::<f64>() / described.max(1) as f64,
        sizes: class_counts.iter().map(|counts| counts.iter().sum()).collect(),
        train_counts,
        class_counts,
    }
}

/// ½·Σ_c |a_c/Σa − b_c/Σb|, in whole numbers up to the one division; 0 if one of the two is empty.
fn total_variation(a: &[usize], b: &[usize]) -> f64 {
    let total = |counts: &[usize]| counts.iter().sum::<usize>() as u128;
    let (in_a, in_b) = (total(a), total(b));
    let apart: u128 = a.iter().zip(b).map(|(&a, &b)| (a as u128 * in_b).abs_diff(b as u128 * in_a)).sum();
    if in_a == 0 || in_b == 0 { 0.0 } else { apart as f64 / (2 * in_a * in_b) as f64 }
}
