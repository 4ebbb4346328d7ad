//! IID: every device draws uniformly from the training set.

use super::{Partition, Sharing, draw_distinct};
use crate::config::{Config, ConfigError};
use crate::data::Dataset;
use crate::rng::{Purpose, stream};
use crate::units::DeviceId;

/// B samples for each device, drawn uniformly without replacement: from what is left by the others
/// (`sharing = "disjoint"`: device m has places m·B..(m+1)·B of one random order of the training set), or from
/// the whole training set (`"overlapping"`).
pub struct Iid {
    seed: u64,
    per_device: usize,
    train: usize,
    /// One random order of the training set, for disjoint devices.
    order: Option<Vec<u32>>,
}

impl Iid {
    /// The split of `dataset` that `config` asks for.
    pub fn new(config: &Config, dataset: &Dataset) -> Result<Self, ConfigError> {
        let (devices, per_device) = (config.data.devices, config.data.samples_per_device);
        let train = dataset.train.len();
        if per_device > train as u64 {
            let problem = format!("is {per_device}, but the training set of {} has {train}", dataset.name);
            return Err(ConfigError::new("data.samples_per_device", problem));
        }
        let order = match config.data.sharing {
            Sharing::Overlapping => None,
            Sharing::Disjoint if devices.saturating_mul(per_device) > train as u64 => {
                let problem = format!(
                    "{devices} devices × {per_device} samples is more than the {train} of {}; lower one, or \
                     write data.sharing = \"overlapping\"",
                    dataset.name
                );
                return Err(ConfigError::new("data.devices", problem));
            }
            Sharing::Disjoint => {
                let mut order: Vec<u32> = (0..train as u32).collect();
                stream(config.run.seed, Purpose::Partition, 0, 0).shuffle(&mut order);
                Some(order)
            }
        };
        Ok(Self { seed: config.run.seed, per_device: per_device as usize, train, order })
    }
}

impl Partition for Iid {
    fn samples_of(&self, device: DeviceId, samples: &mut Vec<u32>) {
        samples.clear();
        if let Some(order) = &self.order {
            let start = device.index() * self.per_device;
            samples.extend_from_slice(&order[start..start + self.per_device]);
        } else {
            let mut stream = stream(self.seed, Purpose::Partition, 1, u64::from(device.0));
            draw_distinct(&mut stream, self.train, self.per_device, samples, |i| i as u32);
        }
    }
}
