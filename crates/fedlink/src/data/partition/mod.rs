//! Partitions: the training samples of each device, one file for each way to split.
//!
//! A device's samples are a function of (seed, device): nothing of size M×B is ever built. Tables are at
//! most of the size of the training set, so a million devices need no more memory than one.

mod grouped;
mod indices;
mod report;
#[cfg(test)]
mod tests;

crate::register! {
    /// All partitions.
    PARTITIONS: dyn Partition;
    iid,
    classes,
    dirichlet,
    shards,
    quantity,
}

pub use classes::Classes;
pub use dirichlet::{Dirichlet, Sizes};
pub use grouped::Grouped;
pub use iid::Iid;
pub use indices::Indices;
pub use quantity::Quantity;
pub use report::{SplitReport, describe};
pub use shards::Shards;

use super::Dataset;
use crate::base::rng::Stream;
use crate::base::units::DeviceId;
use crate::parts::{ConfigError, Entry, Kind, Scope};
use serde::{Deserialize, Serialize};

/// Whether devices may hold the same samples (`data.iid.sharing`, `data.quantity.sharing`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Sharing {
    /// No two devices hold the same sample.
    #[default]
    Disjoint,
    /// Every device draws independently from the whole training set.
    Overlapping,
}

/// A split of the training set among the M devices of a configuration.
///
/// Each device has at least one sample, and no sample twice.
pub trait Partition: Send + Sync {
    /// Replaces `samples` by the indices of the device's training samples.
    fn samples_of(&self, device: DeviceId, samples: &mut Vec<u32>);

    /// The number of samples of the device, without drawing them.
    fn size_of(&self, device: DeviceId) -> usize;
}

impl Kind for dyn Partition {
    type Material = Dataset;
    type Facts = ();
    const PLURAL: &'static str = "partitions";
    const KEY: &'static str = "data.partition";
    const TABLE: &'static str = "data";

    fn entries() -> &'static [Entry<Self>] {
        PARTITIONS
    }
}

/// The purpose of a stream of `Purpose::Partition`: the number in place of the round. It is part of the
/// key: never renumber it.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Draw {
    /// The order of the whole training set (device 0).
    Order = 0,
    /// The samples of a device.
    Samples = 1,
    /// The number of samples of a device.
    Size = 2,
    /// The mix of classes of a device, and its samples.
    Mix = 3,
    /// The order of the shards (device 0).
    Shards = 4,
}

fn stream(seed: u64, draw: Draw, device: DeviceId) -> Stream {
    crate::base::rng::stream(seed, crate::base::rng::Purpose::Partition, draw as u64, u64::from(device.0))
}

/// One random order of the training set, for devices that take consecutive samples from it.
fn random_order(seed: u64, train: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..train as u32).collect();
    stream(seed, Draw::Order, DeviceId(0)).shuffle(&mut order);
    order
}

/// The training samples of each class, in the order of the training set.
fn by_class(dataset: &Dataset) -> Vec<Vec<u32>> {
    let mut by_class = vec![Vec::new(); dataset.classes];
    for (sample, &label) in (0u32..).zip(&dataset.train.labels) {
        by_class[usize::from(label)].push(sample);
    }
    by_class
}

/// Checks that the training set has B samples for one device.
fn check_one_device(scope: &Scope, dataset: &Dataset) -> Result<(), ConfigError> {
    let (per_device, train) = (scope.samples_per_device, dataset.train.len());
    if per_device <= train as u64 {
        return Ok(());
    }
    let name = &dataset.name;
    let problem = format!("is {per_device}, but must be in 1..={train}, the training samples of {name}");
    Err(ConfigError::new("data.samples_per_device", problem))
}

/// Checks that the training set has B samples for each of M devices.
fn check_disjoint(scope: &Scope, dataset: &Dataset, table: &str) -> Result<(), ConfigError> {
    check_one_device(scope, dataset)?;
    let (devices, per_device) = (scope.devices, scope.samples_per_device);
    let (name, train) = (&dataset.name, dataset.train.len() as u64);
    if devices.saturating_mul(per_device) <= train {
        return Ok(());
    }
    let problem = format!(
        "is {devices}, but must be in 1..={}: {name} has {train} training samples for devices that share \
         none and have {per_device} each; or write {table}.sharing = \"overlapping\"",
        train / per_device
    );
    Err(ConfigError::new("data.devices", problem))
}

/// Adds `count` distinct numbers of 0..`bound` to `out` as `map` of them, uniformly among all such choices
/// (Floyd's algorithm: time and memory of `count`, not of `bound`).
fn draw_distinct(
    stream: &mut Stream,
    bound: usize,
    count: usize,
    out: &mut Vec<u32>,
    map: impl Fn(usize) -> u32,
) {
    let mut taken = Taken::new(bound, count);
    for last in bound - count..bound {
        let drawn = stream.below(last as u64 + 1) as usize;
        let kept = if taken.insert(drawn as u32) { drawn } else { last };
        // `last` was outside every earlier range, so it is new.
        if kept != drawn {
            taken.insert(kept as u32);
        }
        out.push(map(kept));
    }
}

/// A set of numbers below 2³² − 1.
enum Taken {
    /// One bit for each number that there is.
    Bits(Vec<u64>),
    /// At most half full: a number is in the first free slot from its own slot on.
    Slots {
        slots: Vec<u32>,
        /// Bits of a slot's index.
        bits: u32,
    },
}

/// The mark of a free slot; every index of a training sample is below it.
const FREE: u32 = u32::MAX;

impl Taken {
    /// An empty set of numbers below `bound` with room for `count`, in the form that takes less memory.
    fn new(bound: usize, count: usize) -> Self {
        let slots = (2 * count).next_power_of_two().max(2);
        if bound <= slots * 32 {
            return Self::Bits(vec![0; bound.div_ceil(64)]);
        }
        Self::Slots { slots: vec![FREE; slots], bits: slots.trailing_zeros() }
    }

    /// Inserts a number; returns whether it is new.
    #[inline]
    fn insert(&mut self, number: u32) -> bool {
        match self {
            Self::Bits(words) => {
                let (word, bit) = (&mut words[number as usize / 64], 1 << (number % 64));
                let is_new = *word & bit == 0;
                *word |= bit;
                is_new
            }
            Self::Slots { slots, bits } => {
                // Fibonacci hashing: the upper bits of a product with 2⁶⁴/φ.
                let hash = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mut slot = (hash >> (u64::BITS - *bits)) as usize;
                loop {
                    match slots[slot] {
                        FREE => {
                            slots[slot] = number;
                            return true;
                        }
                        there if there == number => return false,
                        _ => slot = (slot + 1) & (slots.len() - 1),
                    }
                }
            }
        }
    }
}
