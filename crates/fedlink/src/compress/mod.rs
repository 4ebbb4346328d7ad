//! Squeezing an update into the bits that a device's link carries.

pub mod bits;
mod extremes;
mod random_sparse;
mod sparse_binary;

pub use random_sparse::RandomSparse;
pub use sparse_binary::SparseBinary;

use crate::rng::Stream;
use crate::units::Bits;
use serde::{Deserialize, Serialize};

/// The name of a compression scheme in a configuration (`compress.scheme`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchemeKind {
    /// Sparse binary compression with the paper's bit count.
    #[default]
    DSgd,
    /// Random sparsification, the scheme of the convergence analysis.
    RandomSparse,
}

/// What a device does with the part of its update that was not sent (`compress.feedback`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feedback {
    /// Forgets it, as in the paper.
    #[default]
    Off,
    /// A scheduled device keeps what compression dropped and adds it to its next update.
    Scheduled,
    /// As `scheduled`, and a device that was not scheduled keeps its whole update.
    Always,
}

/// Δ̂: an update of which few entries are not zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseUpdate {
    /// The places of the entries, strictly ascending.
    pub indices: Vec<u32>,
    /// What stands in those places.
    pub values: Values,
}

/// The entries of a [`SparseUpdate`].
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// One value for all of them.
    Shared(f32),
    /// One value for each, in the order of the places.
    Each(Vec<f32>),
}

impl Default for Values {
    fn default() -> Self {
        Self::Shared(0.0)
    }
}

impl SparseUpdate {
    /// ‖Δ̂‖₂, without writing the dense vector out.
    pub fn norm(&self) -> f32 {
        match &self.values {
            Values::Shared(value) => (f64::from(value.abs()) * (self.indices.len() as f64).sqrt()) as f32,
            Values::Each(values) => crate::learn::kernels::norm(values) as f32,
        }
    }

    /// `target += scale·Δ̂`.
    pub fn add_to(&self, target: &mut [f32], scale: f32) {
        match &self.values {
            Values::Shared(value) => {
                let step = scale * value;
                self.indices.iter().for_each(|&i| target[i as usize] += step);
            }
            // Ascending places, as many as there are: every place once, and no need to look them up.
            Values::Each(values) if self.indices.len() == target.len() => {
                target.iter_mut().zip(values).for_each(|(entry, value)| *entry += scale * value);
            }
            Values::Each(values) => {
                self.indices.iter().zip(values).for_each(|(&i, value)| target[i as usize] += scale * value);
            }
        }
    }
}

/// A compression scheme.
pub trait Compressor: Send + Sync {
    /// r(q): the bits that an update of dimension `dim` costs at parameter `q`.
    fn bits(&self, dim: usize, q: usize) -> Bits;

    /// The largest q whose cost is within `budget`; 0 means that nothing can be sent.
    fn largest_q(&self, dim: usize, budget: Bits) -> usize;

    /// Writes Δ̂(q) of `update` to `out`, reusing its memory and that of `scratch`. Whatever the scheme leaves to
    /// chance comes from `chance`, the device's stream of this round.
    fn compress(
        &self,
        update: &[f32],
        q: usize,
        chance: &mut Stream,
        scratch: &mut Scratch,
        out: &mut SparseUpdate,
    );
}

/// Memory that compression reuses from one update to the next.
#[derive(Debug, Default)]
pub struct Scratch {
    keys: Vec<u32>,
    extremes: extremes::Extremes,
}

/// The compression scheme called `kind`.
pub fn compressor(kind: SchemeKind) -> Box<dyn Compressor> {
    match kind {
        SchemeKind::DSgd => Box::new(SparseBinary),
        SchemeKind::RandomSparse => Box::new(RandomSparse),
    }
}
