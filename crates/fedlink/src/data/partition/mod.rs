//! Who has which samples, one file for each way to split.
//!
//! A device's samples are a function of (seed, device): nothing of size M×B is ever built, so a million devices
//! cost no more memory than one.

mod classes;
mod iid;

pub use classes::Classes;
pub use iid::Iid;

use super::Dataset;
use crate::config::{Config, ConfigError};
use crate::rng::Stream;
use crate::units::DeviceId;
use serde::{Deserialize, Serialize};

/// The name of a partition in a configuration (`data.partition`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionKind {
    /// Samples drawn uniformly from the training set.
    #[default]
    Iid,
    /// A few distinct classes on each device, equally many samples of each.
    Classes,
}

/// Whether devices may hold the same samples (`data.sharing`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// No two devices hold the same sample.
    #[default]
    Disjoint,
    /// Every device draws on its own from the whole training set.
    Overlapping,
}

/// A split of the training set.
pub trait Partition: Send + Sync {
    /// Replaces `samples` by the indices of the device's training samples.
    fn samples_of(&self, device: DeviceId, samples: &mut Vec<u32>);
}

/// The split that the configuration asks for.
pub fn partition(config: &Config, dataset: &Dataset) -> Result<Box<dyn Partition>, ConfigError> {
    Ok(match config.data.partition {
        PartitionKind::Iid => Box::new(Iid::new(config, dataset)?),
        PartitionKind::Classes => Box::new(Classes::new(config, dataset)?),
    })
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
    let mut taken = std::collections::HashSet::with_capacity(count);
    for last in bound - count..bound {
        let drawn = stream.below(last as u64 + 1) as usize;
        let kept = if taken.insert(drawn) { drawn } else { last };
        taken.insert(kept);
        out.push(map(kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};
    use std::collections::HashMap;

    #[test]
    fn distinct_draws_are_distinct_and_every_choice_is_equally_likely() {
        let mut counts: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut s = stream(0, Purpose::Test, 0, 0);
        for _ in 0..20_000 {
            let mut drawn = Vec::new();
            draw_distinct(&mut s, 6, 3, &mut drawn, |i| i as u32);
            drawn.sort_unstable();
            assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]) && drawn[2] < 6);
            *counts.entry(drawn).or_default() += 1;
        }
        assert_eq!(counts.len(), 20);
        let chi2: f64 = counts.values().map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi2 < 52.0, "χ² = {chi2} on 19 degrees of freedom (p < 1e-4)");
    }
}
