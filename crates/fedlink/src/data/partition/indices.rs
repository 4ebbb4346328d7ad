//! A split given as lists of samples.

use super::Partition;
use crate::base::units::DeviceId;
use crate::data::Dataset;
use crate::parts::ConfigError;

/// The training samples of every device, from given lists.
///
/// Invariants: M lists, none empty, no sample twice on a device, every index below the size
/// of the training set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indices {
    of: Vec<Vec<u32>>,
}

impl Indices {
    /// Checks `lists`, one for each of `devices` devices, against the training set of `dataset`.
    pub fn new(lists: Vec<Vec<u32>>, devices: u64, dataset: &Dataset) -> Result<Self, ConfigError> {
        let refuse = |problem: String| Err(ConfigError::new("data.partition", problem));
        if lists.len() as u64 != devices {
            return refuse(format!("has lists for {} devices, but data.devices is {devices}", lists.len()));
        }
        let train = dataset.train.len();
        for (m, list) in lists.iter().enumerate() {
            if list.is_empty() {
                return refuse(format!("device {m} has no sample; each needs at least one"));
            }
            if let Some(index) = list.iter().find(|&&index| index as usize >= train) {
                return refuse(format!("device {m} has sample {index}, but {} has 0..{train}", dataset.name));
            }
            let mut sorted = list.clone();
            sorted.sort_unstable();
            if let Some([twice, ..]) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                return refuse(format!("device {m} has sample {twice} twice"));
            }
        }
        Ok(Self { of: lists })
    }
}

impl Partition for Indices {
    fn samples_of(&self, device: DeviceId, samples: &mut Vec<u32>) {
        samples.clear();
        samples.extend_from_slice(&self.of[device.index()]);
    }

    fn size_of(&self, device: DeviceId) -> usize {
        self.of[device.index()].len()
    }
}
