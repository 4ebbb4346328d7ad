//! IID: every device draws uniformly from the training set.

use super::{
    Draw, Partition, Sharing, check_disjoint, check_one_device, draw_distinct, random_order, stream,
};
use crate::base::units::DeviceId;
use crate::data::Dataset;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this partition.
pub const ENTRY: Entry<dyn Partition> = Entry::of::<IidConfig>();

/// `[data.iid]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct IidConfig {
    /// whether two devices may hold the same sample
    #[key(allowed = "\"disjoint\" (M·B ≤ training set) | \"overlapping\"")]
    pub sharing: Sharing,
}

impl PartConfig for IidConfig {
    type Part = dyn Partition;
    const NAME: &'static str = "iid";
    const MEANING: &'static str = "samples drawn uniformly from the training set";

    fn build(self, scope: &Scope, dataset: &Dataset) -> Result<Box<dyn Partition>, ConfigError> {
        Ok(Box::new(Iid::new(self.sharing, scope, dataset)?))
    }
}

/// B samples for each device, drawn uniformly without replacement: from the samples that no other device
/// has (`sharing = "disjoint"`: device m has the entries m·B..(m+1)·B of one random order of the training
/// set), or from the whole training set (`"overlapping"`).
pub struct Iid {
    seed: u64,
    per_device: usize,
    train: usize,
    /// One random order of the training set, for disjoint devices.
    order: Option<Vec<u32>>,
}

impl Iid {
    /// The split of `dataset` in a run of `scope`.
    pub fn new(sharing: Sharing, scope: &Scope, dataset: &Dataset) -> Result<Self, ConfigError> {
        let (seed, train) = (scope.seed, dataset.train.len());
        let order = match sharing {
            Sharing::Overlapping => {
                check_one_device(scope, dataset)?;
                None
            }
            Sharing::Disjoint => {
                check_disjoint(scope, dataset, "data.iid")?;
                Some(random_order(seed, train))
            }
        };
        Ok(Self { seed, per_device: scope.samples_per_device as usize, train, order })
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
