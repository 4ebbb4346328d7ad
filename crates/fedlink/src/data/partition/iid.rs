//! IID: every device draws uniformly from the training set.

use super::{
    Draw, Partition, Sharing, check_disjoint, check_one_device, draw_distinct, random_order, stream,
};
use crate::config::{Config, ConfigError};
use crate::data::Dataset;
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
        config.data.validate()?;
        let (seed, train) = (config.run.seed, dataset.train.len());
        let order = match config.data.sharing() {
            Sharing::Overlapping => {
                check_one_device(config, dataset)?;
                None
            }
            Sharing::Disjoint => {
                check_disjoint(config, dataset)?;
                Some(random_order(seed, train))
            }
        };
        Ok(Self { seed, per_device: config.data.samples_per_device as usize, train, order })
    }
}

impl Partition for Iid {
    fn samples_of(&self, device: DeviceId, samples: &mut Vec<u32>) {
        samples.clear();
        if let Some(order) = &self.order {
            let start = device.index() * self.per_device;
            samples.extend_from_slice(&order[start..start + self.per_device]);
        } else {
            let mut stream = stream(self.seed, Draw::Samples, device);
            draw_distinct(&mut stream, self.train, self.per_device, samples, |i| i as u32);
        }
    }

    fn size_of(&self, _: DeviceId) -> usize {
        self.per_device
    }
}
