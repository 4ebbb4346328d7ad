//! Classes: a few classes on each device, the paper's non-IID split.

use super::{Draw, Partition, by_class, draw_distinct, stream};
use crate::base::units::DeviceId;
use crate::data::Dataset;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this partition.
pub const ENTRY: Entry<dyn Partition> = Entry::of::<ClassesConfig>();

/// `[data.classes]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ClassesConfig {
    /// distinct classes on a device
    #[key(default = 2, range = "1 ..= 256 (at most the classes of the data)")]
    pub per_device: u64,
}

impl PartConfig for ClassesConfig {
    type Part = dyn Partition;
    const NAME: &'static str = "classes";
    const MEANING: &'static str = "data.classes.per_device classes on each device, equally many samples of \
        each; devices may share samples";

    fn build(self, scope: &Scope, dataset: &Dataset) -> Result<Box<dyn Partition>, ConfigError> {
        Ok(Box::new(Classes::new(self.per_device, scope, dataset)?))
    }
}

/// `per_device` distinct classes at random for each device, and B/`per_device` samples of each, without
/// replacement within a device. If B is not a multiple, the first classes give one more.
///
/// Devices draw independently and may share samples. Every class must have enough samples for one device,
/// because every class may be drawn.
pub struct Classes {
    seed: u64,
    per_device: usize,
    classes_per_device: usize,
    /// The training samples of each class.
    by_class: Vec<Vec<u32>>,
}

impl Classes {
    /// The split of `dataset` in a run of `scope`, with `chosen` classes per device.
    pub fn new(chosen: u64, scope: &Scope, dataset: &Dataset) -> Result<Self, ConfigError> {
        let per_device = scope.samples_per_device;
        let (name, classes) = (&dataset.name, dataset.classes as u64);
        if chosen > classes {
            let problem = format!("is {chosen}, but must be in 1..={classes}, the classes of {name}");
            return Err(ConfigError::new("per_device", problem));
        }
        let by_class = by_class(dataset);
        let (rarest, fewest) =
            by_class.iter().map(Vec::len).enumerate().min_by_key(|&(_, count)| count).unwrap_or_default();
        let max = chosen * fewest as u64;
        if !(chosen..=max).contains(&per_device) {
            let problem = if max == 0 {
                format!(
                    "cannot be met: {name} has no training samples of class {rarest}; choose another \
                     data.partition, which needs no samples of every class"
                )
            } else {
                format!(
                    "is {per_device}, but must be in {chosen}..={max}: at least one sample of each of \
                     {chosen} classes, and no more than the {fewest} that {name} has of class {rarest}"
                )
            };
            return Err(ConfigError::new("data.samples_per_device", problem));
        }
        let (per_device, classes_per_device) = (per_device as usize, chosen as usize);
        Ok(Self { seed: scope.seed, per_device, classes_per_device, by_class })
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
