//! Shards: each device has a few pieces of the training set, sorted by class.

use super::{Draw, Partition, by_class, stream};
use crate::base::units::DeviceId;
use crate::data::Dataset;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this partition.
pub const ENTRY: Entry<dyn Partition> = Entry::of::<ShardsConfig>();

/// `[data.shards]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct ShardsConfig {
    /// shards of the sorted training set on a device (data.samples_per_device is not used)
    #[key(default = 2, range = "≥ 1 (M times it ≤ training set)", max = u32::MAX)]
    pub per_device: u64,
}

impl PartConfig for ShardsConfig {
    type Part = dyn Partition;
    const NAME: &'static str = "shards";
    const MEANING: &'static str =
        "data.shards.per_device pieces of the training set sorted by class on each device";

    fn build(self, scope: &Scope, dataset: &Dataset) -> Result<Box<dyn Partition>, ConfigError> {
        Ok(Box::new(Shards::new(self.per_device, scope, dataset)?))
    }
}

/// The training set, sorted by class, is cut into S = M·s shards, and each device has s distinct ones at
/// random (McMahan et al., "Communication-efficient learning of deep networks from decentralized data",
/// 2017, with s = 2; here s is `per_device`).
///
/// Of N training samples, shard j is the entries ⌊jN/S⌋..⌊(j+1)N/S⌋ of the sorted set, so shards differ
/// in size by at most one and together are the whole training set. Each sample is on exactly one device,
/// each device has N/M ± s samples, and `samples_per_device` is not used. A shard that is no larger than
/// the smallest class holds at most two classes; a device then has at most 2s.
pub struct Shards {
    per_device: usize,
    /// The training samples, sorted by class.
    sorted: Vec<u32>,
    /// Device m has the shards at indices m·s..(m+1)·s of this order.
    order: Vec<u32>,
}

impl Shards {
    /// The split of `dataset` in a run of `scope`.
    pub fn new(per_device: u64, scope: &Scope, dataset: &Dataset) -> Result<Self, ConfigError> {
        let devices = scope.devices;
        let (name, train) = (&dataset.name, dataset.train.len() as u64);
        if devices > train {
            let problem = format!(
                "is {devices}, but must be in 1..={train}: with partition = \"shards\" no two devices share \
                 a training sample of {name}"
            );
            return Err(ConfigError::new("data.devices", problem));
        }
        let shards = devices.saturating_mul(per_device);
        if shards > train {
            let problem = format!(
                "is {per_device}, but must be in 1..={}: {devices} devices cut the {train} training samples \
                 of {name}, and a shard has at least one",
                train / devices
            );
            return Err(ConfigError::new("per_device", problem));
        }
        let mut order: Vec<u32> = (0..shards as u32).collect();
        stream(scope.seed, Draw::Shards, DeviceId(0)).shuffle(&mut order);
        Ok(Self { per_device: per_device as usize, sorted: by_class(dataset).concat(), order })
    }

    /// The shards of a device, as pieces of the sorted training set.
    fn shards_of(&self, device: DeviceId) -> impl Iterator<Item = &[u32]> {
        let cut = |shard: u32| {
            let index = u64::from(shard) * self.sorted.len() as u64 / self.order.len() as u64;
            index as usize
        };
        let start = device.index() * self.per_device;
        self.order[start..start + self.per_device].iter().map(move |&j| &self.sorted[cut(j)..cut(j + 1)])
    }
}

impl Partition for Shards {
    fn samples_of(&self, device: DeviceId, samples: &mut Vec<u32>) {
        samples.clear();
        self.shards_of(device).for_each(|shard| samples.extend_from_slice(shard));
    }

    fn size_of(&self, device: DeviceId) -> usize {
        self.shards_of(device).map(<[u32]>::len).sum()
    }
}
