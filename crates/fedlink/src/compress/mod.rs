//! Squeezing an update into the bits that a device's link carries.

pub mod bits;
mod extremes;
mod random_sparse;
mod sparse_binary;
mod stc;
mod top_k;
pub mod wire;

pub use random_sparse::RandomSparse;
pub use sparse_binary::SparseBinary;
pub use stc::Stc;
pub use top_k::TopK;

use crate::rng::Stream;
use crate::units::Bits;
use rayon::prelude::*;
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
    /// The q largest entries as they are.
    TopK,
    /// Sparse ternary compression: the signs of the q largest entries and their mean magnitude.
    Stc,
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

/// What must fit into a device's budget (`compress.budget`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Budget {
    /// r(q), the scheme's count of bits, as in the paper.
    #[default]
    Formula,
    /// The payload. The device sends the largest q, not above the formula's, whose payload in the format of the
    /// formula's q is no longer than the budget; it finds it by encoding, going down one by one.
    Wire,
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

    /// Takes the memory of its values out, empty.
    fn take_values(&mut self) -> Vec<f32> {
        match std::mem::take(&mut self.values) {
            Values::Each(mut values) => {
                values.clear();
                values
            }
            Values::Shared(_) => Vec::new(),
        }
    }

    /// `target += scale·Δ̂`.
    pub fn add_to(&self, target: &mut [f32], scale: f32) {
        self.add_part(target, 0, scale);
    }

    /// The same for the part of a longer target that begins at entry `start`.
    fn add_part(&self, target: &mut [f32], start: usize, scale: f32) {
        let before = |end: usize| self.indices.partition_point(|&i| (i as usize) < end);
        let part = before(start)..before(start + target.len());
        let places = self.indices[part.clone()].iter().map(|&i| i as usize - start);
        match &self.values {
            Values::Shared(value) => {
                let step = scale * value;
                places.for_each(|i| target[i] += step);
            }
            // Ascending places, as many as there are: every place once, and no need to look them up.
            Values::Each(values) if part.len() == target.len() => {
                target.iter_mut().zip(&values[part]).for_each(|(entry, value)| *entry += scale * value);
            }
            Values::Each(values) => {
                places.zip(&values[part]).for_each(|(i, value)| target[i] += scale * value);
            }
        }
    }
}

/// Entries of θ that a thread sums up at a time.
const BLOCK: usize = 1 << 14;

/// `target += Σ share·Δ̂`. Every entry is summed in the order of the updates, whatever the number of threads.
pub fn add_all(target: &mut [f32], updates: &[(&SparseUpdate, f32)]) {
    target.par_chunks_mut(BLOCK).enumerate().for_each(|(block, part)| {
        updates.iter().for_each(|(update, share)| update.add_part(part, block * BLOCK, *share));
    });
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
        SchemeKind::TopK => Box::new(TopK),
        SchemeKind::Stc => Box::new(Stc),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn update(dim: usize) -> impl Strategy<Value = SparseUpdate> {
        let indices = prop::collection::btree_set(0..dim as u32, 0..200);
        (indices, any::<bool>(), -2.0..2.0f32).prop_map(|(indices, shared, value)| {
            let indices: Vec<u32> = indices.into_iter().collect();
            let each = || indices.iter().map(|&i| value * (i as f32).sin()).collect();
            let values = if shared { Values::Shared(value) } else { Values::Each(each()) };
            SparseUpdate { indices, values }
        })
    }

    proptest! {
        #[test]
        fn all_together_are_one_after_the_other_to_the_bit(
            updates in prop::collection::vec((update(3 * BLOCK + 5), -1.0..1.0f32), 0..6),
        ) {
            let start: Vec<f32> = (0..3 * BLOCK + 5).map(|i| (i as f32).cos()).collect();
            let mut one_by_one = start.clone();
            for (update, share) in &updates {
                // Word for word: θ_i += share·Δ̂_i.
                for (place, &i) in update.indices.iter().enumerate() {
                    let value = match &update.values {
                        Values::Shared(value) => *value,
                        Values::Each(values) => values[place],
                    };
                    one_by_one[i as usize] += share * value;
                }
            }
            let mut together = start;
            let updates: Vec<(&SparseUpdate, f32)> = updates.iter().map(|(update, share)| (update, *share)).collect();
            add_all(&mut together, &updates);
            prop_assert!(together.iter().zip(&one_by_one).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
    }
}
