//! Updates with few non-zero entries.

use super::bits::log2_choose;
use crate::base::kernels::norm;
use crate::base::units::Bits;
use fedlink_wire::Grid;

/// Δ̂: an update with few non-zero entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseUpdate {
    /// The indices of the entries, strictly ascending.
    pub indices: Vec<u32>,
    /// Their values.
    pub values: Values,
}

/// The entries of a [`SparseUpdate`].
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// One value for all of them.
    Shared(f32),
    /// One value for each, in the order of the indices.
    Each(Vec<f32>),
    /// One multiple of a unit for each.
    Grid(Grid),
}

impl Values {
    /// The number of values; none if all entries share one.
    pub fn count(&self) -> Option<usize> {
        match self {
            Self::Shared(_) => None,
            Self::Each(values) => Some(values.len()),
            Self::Grid(grid) => Some(grid.levels.len()),
        }
    }
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
            Values::Each(values) => norm(values) as f32,
            Values::Grid(grid) => {
                let square: f64 = grid.values().map(|value| f64::from(value).powi(2)).sum();
                square.sqrt() as f32
            }
        }
    }

    /// Its information as one of `dim` entries: `log2 C(d,q) + q·H`, where H is the entropy of its values
    /// in bits per value. A code without shared randomness takes fewer bits only if values or indices can
    /// be predicted.
    ///
    /// Invariant: at most the count of any scheme of this library for the same update.
    pub fn information(&self, dim: usize) -> Bits {
        let q = self.indices.len();
        let value_bits = match &self.values {
            Values::Shared(_) => 0.0,
            Values::Each(_) | Values::Grid(_) => {
                let mut patterns: Vec<u32> = match &self.values {
                    Values::Each(values) => values.iter().map(|value| value.to_bits()).collect(),
                    Values::Grid(grid) => grid.levels.iter().map(|&level| level as u32).collect(),
                    Values::Shared(_) => Vec::new(),
                };
                patterns.sort_unstable();
                let equal = patterns.chunk_by(|a, b| a == b).map(|run| run.len() as f64);
                equal.map(|run| run * libm::log2(q as f64 / run)).sum()
            }
        };
        Bits(log2_choose(dim as u64, q as u64) + value_bits)
    }

    /// Removes and returns the memory of its values, emptied.
    pub(crate) fn take_values(&mut self) -> Vec<f32> {
        match std::mem::take(&mut self.values) {
            Values::Each(mut values) => {
                values.clear();
                values
            }
            Values::Shared(_) | Values::Grid(_) => Vec::new(),
        }
    }

    /// Sets the indices to those of all `dim` entries.
    pub(crate) fn fill_indices(&mut self, dim: usize) {
        // Indices that an earlier update has left are not written again.
        if !(self.indices.len() == dim && self.has_all_indices()) {
            self.indices.clear();
            self.indices.extend(0..dim as u32);
        }
    }

    /// Whether the indices are 0, 1, 2 …: as they ascend strictly, the last one decides.
    fn has_all_indices(&self) -> bool {
        self.indices.last().is_none_or(|&last| last as usize + 1 == self.indices.len())
    }

    /// Makes it Δ̂ = Δ: exchanges its values for `update`, of the same length.
    pub(crate) fn swap_all(&mut self, update: &mut Vec<f32>) {
        self.fill_indices(update.len());
        let mut spare = match std::mem::take(&mut self.values) {
            Values::Each(values) => values,
            Values::Shared(_) | Values::Grid(_) => Vec::new(),
        };
        spare.resize(update.len(), 0.0);
        self.values = Values::Each(std::mem::replace(update, spare));
    }

    /// `target += scale·Δ̂`.
    pub fn add_to(&self, target: &mut [f32], scale: f32) {
        self.add_part(target, 0, scale);
    }

    /// The same for the part of a longer target that begins at entry `start`.
    pub(super) fn add_part(&self, target: &mut [f32], start: usize, scale: f32) {
        let all = self.has_all_indices();
        let before = |end: usize| {
            if all {
                end.min(self.indices.len())
            } else {
                self.indices.partition_point(|&i| (i as usize) < end)
            }
        };
        let part = before(start)..before(start + target.len());
        let indices = self.indices[part.clone()].iter().map(|&i| i as usize - start);
        match &self.values {
            Values::Shared(value) => {
                let step = scale * value;
                indices.for_each(|i| target[i] += step);
            }
            // Ascending indices, as many as there are entries, are all indices: no look-up is needed.
            Values::Each(values) if part.len() == target.len() => {
                target.iter_mut().zip(&values[part]).for_each(|(entry, value)| *entry += scale * value);
            }
            Values::Each(values) => {
                indices.zip(&values[part]).for_each(|(i, value)| target[i] += scale * value);
            }
            Values::Grid(grid) => {
                let values = grid.values().skip(part.start);
                indices.zip(values).for_each(|(i, value)| target[i] += scale * value);
            }
        }
    }
}
