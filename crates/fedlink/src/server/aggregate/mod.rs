//! Aggregation rules, one file each: from the updates of a round to one step.

mod entrywise;

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
pub use fednova::FedNova;
pub(crate) use fednova::normalize_steps;
pub use mean::Mean;
pub use median::Median;
pub use shrunk::Shrunk;
pub use trimmed_mean::TrimmedMean;

use crate::compress::{Encoded, SparseUpdate, add_all};
use crate::registry::{Entry, Kind};
use crate::state::Persist;
use crate::units::DeviceId;

/// An update as the server counts it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Contribution<'a> {
    /// Δ̂.
    pub update: &'a Encoded,
    /// What it counts in a weighted sum.
    pub share: f32,
    /// What it is multiplied by to clip it: at most 1, and 1 if it is not clipped.
    pub factor: f32,
}

impl<'a> Contribution<'a> {
    /// An update that is not clipped.
    pub fn new(update: &'a Encoded, share: f32) -> Self {
        Self { update, share, factor: 1.0 }
    }
}

/// The step that a round's updates come to, Δ̄.
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
    /// What each of `devices` devices counts, device i having `samples(i)` training samples: shares ≥ 0 that
    /// add up to 1. It weighs the devices' training losses too.
    fn shares(&self, devices: usize, samples: &dyn Fn(usize) -> usize) -> Vec<f32>;

    /// What the updates of these devices count in this round; by default as [`Self::shares`] has it. Shares ≥
    /// 0, which need not add up to 1 where a rule corrects how often devices take part.
    fn shares_of(&self, devices: &[DeviceId], samples: &dyn Fn(usize) -> usize) -> Vec<f32> {
        self.shares(devices.len(), samples)
    }

    /// Called after every round with the devices whose updates arrived and were used.
    fn observe(&mut self, _arrived: &[DeviceId]) {}

    /// The step that the `contributions` of `k` devices come to; devices that are not among
    /// them count as zero.
    fn aggregate<'a>(&mut self, contributions: &[Contribution<'a>], k: usize) -> Delta<'a>;

    /// Whether devices count by their number of samples.
    fn by_size(&self) -> bool {
        false
    }

    /// Whether updates count by local step, so that the server multiplies the share of a device by the mean
    /// number of steps and divides it by its own.
    fn by_steps(&self) -> bool {
        false
    }
}

impl Kind for dyn Aggregator {
    type Material = ();
    const PLURAL: &'static str = "aggregation rules";
    const KEY: &'static str = "learn.aggregate";
    const TABLE: &'static str = "learn";

    fn entries() -> &'static [Entry<Self>] {
        AGGREGATORS
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

/// Σ share·factor·Δ̂.
fn weighted_sum<'a>(contributions: &[Contribution<'a>]) -> Delta<'a> {
    Delta::Sum(contributions.iter().map(|one| (one.update, one.share * one.factor)).collect())
}

#[cfg(test)]
mod tests;
