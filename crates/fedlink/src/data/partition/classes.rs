//! Classes: a few classes on each device, the paper's non-IID split.

use super::{Draw, Partition, by_class, draw_distinct, stream};
use crate::config::{Config, ConfigError};
use crate::data::Dataset;
use crate::units::DeviceId;

/// `classes_per_device` distinct classes at random for each device, and B/`classes_per_device` samples of
/// each, without replacement within a device. Where B is no multiple, the first classes give one more.
///
/// Devices draw on their own (`sharing = "overlapping"`). Every class must have the samples that one device
/// asks of it, since every class may be asked.
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
        config.data.validate()?;
        let (per_device, chosen) = (config.data.samples_per_device, config.data.classes_per_device);
        let (name, classes) = (&dataset.name, dataset.classes as u64);
        if chosen > classes {
            let problem = format!("is {chosen}, but must be in 1..={classes}, the classes of {name}");
            return Err(ConfigError::new("data.classes_per_device", problem));
        }
        let by_class = by_class(dataset);
        let (rarest, fewest) =
            by_class.iter().map(Vec::len).enumerate().min_by_key(|&(_, count)| count).unwrap_or_default();
        let most = chosen * fewest as u64;
        if !(chosen..=most).contains(&per_device) {
            let problem = if most == 0 {
                format!(
                    "cannot be met: {name} has no training samples of class {rarest}; partition = \"dirichlet\" does without"
                )
            } else {
                format!(
                    "is {per_device}, but must be in {chosen}..={most}: at least one sample of each of {chosen} \
                     classes, and no more than the {fewest} that {name} has of class {rarest}"
                )
            };
            return Err(ConfigError::new("data.samples_per_device", problem));
        }
        let (per_device, classes_per_device) = (per_device as usize, chosen as usize);
        Ok(Self { seed: config.run.seed, per_device, classes_per_device, by_class })
    }
}

impl Partition for Classes {
    fn samples_of(&self, device: DeviceId, samples: &mut Vec<u32>) {
        samples.clear();
        let mut stream = stream(self.seed, Draw::Samples, device);
        let mut classes: Vec<usize> = (0..self.by_class.len()).collect();
        stream.shuffle_prefix(&mut classes, self.classes_per_device);
        for (i, &class) in classes[..self.classes_per_device].iter().enumerate() {
            let (share, rest) =
                (self.per_device / self.classes_per_device, self.per_device % self.classes_per_device);
            let pool = &self.by_class[class];
            draw_distinct(&mut stream, pool.len(), share + usize::from(i < rest), samples, |i| pool[i]);
        }
    }

    fn size_of(&self, _: DeviceId) -> usize {
        self.per_device
    }
}
