//! Aggregation rules, one file each: from the updates of a round to one step.

pub mod clip;
mod entrywise;
pub mod optimizer;

crate::register! {
    /// All aggregation rules.
    AGGREGATORS: dyn Aggregator;
    mean,
    by_size,
    median,
    trimmed_mean,
    shrunk,
    fednova,
    by_interval,
}

pub use by_size::BySize;
pub use clip::{Clip, WINDOW};
pub use fednova::FedNova;
pub(crate) use fednova::normalize_steps;
pub use mean::Mean;
pub use median::Median;
pub use shrunk::Shrunk;
pub use trimmed_mean::TrimmedMean;

use crate::base::state::Persist;
use crate::base::units::DeviceId;
use crate::compress::{Encoded, SparseUpdate, add_all};
use crate::parts::{Entry, Kind};

/// An update with its weight.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Contribution<'a> {
    /// Δ̂.
    pub update: &'a Encoded,
    /// Its weight in a weighted sum.
    pub weight: f32,
    /// The factor that clips it: at most 1, and 1 if it is not clipped.
    pub factor: f32,
}

impl<'a> Contribution<'a> {
    /// An update that is not clipped.
    pub fn new(update: &'a Encoded, weight: f32) -> Self {
        Self { update, weight, factor: 1.0 }
    }
}

/// The step that results from the updates of a round, Δ̄.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Delta<'a> {
    /// Σ weight·Δ̂, not yet summed: it is added to θ term by term, in this order.
    Sum(Vec<(&'a Encoded, f32)>),
    /// The step itself.
    Step(SparseUpdate),
}

impl Delta<'_> {
    /// `target += rate·Δ̄`.
    pub fn add_to(&self, target: &mut [f32], rate: f32) {
        match self {
            Self::Sum(terms) => {
                let scaled: Vec<(&Encoded, f32)> =
                    terms.iter().map(|&(update, weight)| (update, weight * rate)).collect();
                add_all(target, &scaled);
            }
            Self::Step(step) => step.add_to(target, rate),
        }
    }
}

/// An aggregation rule (`learn.aggregate`).
pub trait Aggregator: Persist + Send {
    /// The weight of each of `devices` devices, where device i has `samples(i)` training samples: weights ≥ 0
    /// that add up to 1. They also weight the training losses of the devices.
    fn weights(&self, devices: usize, samples: &dyn Fn(usize) -> usize) -> Vec<f32>;

    /// The weights of the updates of these devices in this round; by default those of [`Self::weights`]. They
    /// are ≥ 0, and need not add up to 1 where a rule corrects for the participation of devices.
    fn weights_of(&self, devices: &[DeviceId], samples: &dyn Fn(usize) -> usize) -> Vec<f32> {
        self.weights(devices.len(), samples)
    }

    /// Called after every round with the devices whose updates arrived and were used.
    fn observe(&mut self, _arrived: &[DeviceId]) {}

    /// The step that results from the `contributions` of `k` devices; devices that are not among
    /// them have updates of zero.
    fn aggregate<'a>(&mut self, contributions: &[Contribution<'a>], k: usize) -> Delta<'a>;

    /// Whether it is a sum in which all devices have the same weight.
    fn is_equal_mean(&self) -> bool {
        false
    }

    /// Whether devices are weighted by their number of samples.
    fn by_size(&self) -> bool {
        false
    }

    /// Whether updates are weighted per local step, so that the server multiplies the weight of a device by
    /// the mean number of steps and divides it by its own.
    fn by_steps(&self) -> bool {
        false
    }
}

/// Facts of an aggregation rule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AggregatorFacts {
    /// Whether devices are weighted by their number of samples.
    pub by_size: bool,
    /// Whether updates are weighted per local step.
    pub by_steps: bool,
    /// Whether it is a sum in which all devices have the same weight.
    pub is_equal_mean: bool,
}

impl Kind for dyn Aggregator {
    type Material = ();
    type Facts = AggregatorFacts;
    const PROBE: Option<&'static ()> = Some(&());
    const PLURAL: &'static str = "aggregation rules";
    const KEY: &'static str = "learn.aggregate";
    const TABLE: &'static str = "learn";

    fn entries() -> &'static [Entry<Self>] {
        AGGREGATORS
    }

    fn facts_of(part: &Self) -> AggregatorFacts {
        AggregatorFacts {
            by_size: part.by_size(),
            by_steps: part.by_steps(),
            is_equal_mean: part.is_equal_mean(),
        }
    }
}

/// 1/K each.
fn equal_shares(devices: usize) -> Vec<f32> {
    vec![1.0 / devices as f32; devices]
}

/// n_m/Σ n each.
fn size_shares(devices: usize, samples: &dyn Fn(usize) -> usize) -> Vec<f32> {
    let sizes: Vec<usize> = (0..devices).map(samples).collect();
    let total: usize = sizes.iter().sum();
    sizes.iter().map(|&size| (size as f64 / total as f64) as f32).collect()
}

/// Σ weight·factor·Δ̂.
fn weighted_sum<'a>(contributions: &[Contribution<'a>]) -> Delta<'a> {
    Delta::Sum(contributions.iter().map(|one| (one.update, one.weight * one.factor)).collect())
}

#[cfg(test)]
mod tests;
