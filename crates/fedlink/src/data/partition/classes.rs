//! Classes: a few classes on each device, the paper's non-IID split.

use super::{Partition, draw_distinct};
use crate::config::{Config, ConfigError};
use crate::data::Dataset;
use crate::rng::{Purpose, stream};
use crate::units::DeviceId;

/// `classes_per_device` distinct classes at random for each device, and B/`classes_per_device` samples of
/// each, without replacement within a device. Where B is no multiple, the first classes give one more.
pub struct Classes {
    seed: u64,
    per_device: usize,
    classes_per_device: usize,
    /// The training samples of each class.
    by_class: Vec<Vec<u32>>,
}

impl Classes {
    /// The split of `dataset` that `config` asks for.
    pub fn new(config: &Config, dataset: &Dataset) -> Result<Self, ConfigError> {
        let (per_device, chosen) = (config.data.samples_per_device, config.data.classes_per_device);
        let classes = dataset.classes as u64;
        if chosen > classes {
            let problem =
                format!("is {chosen}, but must be in 1..={classes}, the classes of {}", dataset.name);
            return Err(ConfigError::new("data.classes_per_device", problem));
        }
        if per_device < chosen {
            let problem = format!("is {per_device}, less than one for each of {chosen} classes");
            return Err(ConfigError::new("data.samples_per_device", problem));
        }
        let mut by_class = vec![Vec::new(); dataset.classes];
        for (sample, &label) in (0u32..).zip(&dataset.train.labels) {
            by_class[usize::from(label)].push(sample);
        }
        let wanted = per_device.div_ceil(chosen);
        if let Some(class) = by_class.iter().position(|samples| (samples.len() as u64) < wanted) {
            let problem = format!(
                "is {per_device}, which asks for {wanted} samples of one class, but class {class} of {} has {}",
                dataset.name,
                by_class[class].len()
            );
            return Err(ConfigError::new("data.samples_per_device", problem));
        }
        let (per_device, classes_per_device) = (per_device as usize, chosen as usize);
        Ok(Self { seed: config.run.seed, per_device, classes_per_device, by_class })
    }
}

impl Partition for Classes {
    fn samples_of(&self, device: DeviceId, samples: &mut Vec<u32>) {
        samples.clear();
        let mut stream = stream(self.seed, Purpose::Partition, 1, u64::from(device.0));
        let mut classes: Vec<usize> = (0..self.by_class.len()).collect();
        stream.shuffle_prefix(&mut classes, self.classes_per_device);
        for (i, &class) in classes[..self.classes_per_device].iter().enumerate() {
            let (share, rest) =
                (self.per_device / self.classes_per_device, self.per_device % self.classes_per_device);
            let pool = &self.by_class[class];
            draw_distinct(&mut stream, pool.len(), share + usize::from(i < rest), samples, |i| pool[i]);
        }
    }
}
