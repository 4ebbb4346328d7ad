//! Squeezing an update into the bits that a device's link carries.

pub mod bits;
mod sparse_binary;

pub use sparse_binary::SparseBinary;

use crate::units::Bits;
use serde::{Deserialize, Serialize};

/// The name of a compression scheme in a configuration (`compress.scheme`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchemeKind {
    /// Sparse binary compression with the paper's bit count.
    #[default]
    DSgd,
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
    /// The places of the entries, ascending.
    pub indices: Vec<u32>,
    /// The value that every entry has.
    pub value: f32,
}

impl SparseUpdate {
    /// ‖Δ̂‖₂ = |value|·√(number of entries).
    pub fn norm(&self) -> f32 {
        (f64::from(self.value.abs()) * (self.indices.len() as f64).sqrt()) as f32
    }

    /// `target += scale·Δ̂`.
    pub fn add_to(&self, target: &mut [f32], scale: f32) {
        let step = scale * self.value;
        for &i in &self.indices {
            target[i as usize] += step;
        }
    }
}

/// A compression scheme.
pub trait Compressor: Send + Sync {
    /// r(q): the bits that an update of dimension `dim` costs at parameter `q`.
    fn bits(&self, dim: usize, q: usize) -> Bits;

    /// The largest q whose cost is within `budget`; 0 means that nothing can be sent.
    fn largest_q(&self, dim: usize, budget: Bits) -> usize;

    /// Writes Δ̂(q) of `update` to `out`, reusing its memory and that of `scratch`.
    fn compress(&self, update: &[f32], q: usize, scratch: &mut Scratch, out: &mut SparseUpdate);
}

/// Memory that compression reuses from one update to the next.
#[derive(Debug, Default)]
pub struct Scratch {
    keys: Vec<u32>,
}

/// The compression scheme called `kind`.
pub fn compressor(kind: SchemeKind) -> Box<dyn Compressor> {
    match kind {
        SchemeKind::DSgd => Box::new(SparseBinary),
    }
}
