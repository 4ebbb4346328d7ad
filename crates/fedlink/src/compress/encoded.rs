//! Δ̂: an update after compression.

use super::sparse_update::{SparseUpdate, Values};
use crate::base::kernels::norm;
use crate::base::parallel::prelude::*;
use crate::schedule::Entries;

/// Δ̂ in the form that suits the scheme.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Encoded {
    /// No entries: the budget was too small. It counts as zero.
    #[default]
    Silent,
    /// Few entries that are not zero.
    Sparse(SparseUpdate),
    /// All d entries.
    Dense(Vec<f32>),
    /// All d entries, with the few symbols that determine them.
    Coded(Coded),
}

/// Δ̂ whose d entries are a function of a few symbols and the common knowledge of both ends.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Coded {
    /// The floating-point numbers that are sent. Δ̂ is linear in them.
    pub scales: Vec<f32>,
    /// The small whole numbers that are sent, in the order of the scheme.
    pub symbols: Vec<u8>,
    /// Entries that are sent by themselves and added to the values of the symbols.
    pub rest: SparseUpdate,
    /// All d entries.
    pub values: Vec<f32>,
}

impl Entries for Encoded {
    fn visit(&self, visit: &mut dyn FnMut(u32, f32)) {
        self.for_each(visit);
    }
}

impl Encoded {
    /// Makes it sparse, and returns the sparse update; its memory is reused if it was sparse.
    pub fn make_sparse(&mut self) -> &mut SparseUpdate {
        if !matches!(self, Self::Sparse(_)) {
            *self = Self::Sparse(SparseUpdate::default());
        }
        match self {
            Self::Sparse(update) => update,
            _ => unreachable!("it was made sparse above"),
        }
    }

    /// Makes it dense and empty, and returns the entries; their memory is reused if it was dense.
    pub fn make_dense(&mut self) -> &mut Vec<f32> {
        match self {
            Self::Dense(values) => values.clear(),
            _ => *self = Self::Dense(Vec::new()),
        }
        match self {
            Self::Dense(values) => values,
            _ => unreachable!("it was made dense above"),
        }
    }

    /// Makes it coded and empty, and returns its content; the memory is reused if it was coded.
    pub fn make_coded(&mut self) -> &mut Coded {
        match self {
            Self::Coded(Coded { scales, symbols, rest, values }) => {
                scales.clear();
                symbols.clear();
                rest.indices.clear();
                rest.values = Values::default();
                values.clear();
            }
            _ => *self = Self::Coded(Coded::default()),
        }
        match self {
            Self::Coded(coded) => coded,
            _ => unreachable!("it was made so above"),
        }
    }

    /// ⟨Δ̂, v⟩.
    pub fn dot(&self, other: &[f32]) -> f64 {
        let mut sum = 0.0;
        self.for_each(|i, value| sum += f64::from(value) * f64::from(other[i as usize]));
        sum
    }

    /// ‖Δ̂‖₂.
    pub fn norm(&self) -> f32 {
        match self {
            Self::Silent => 0.0,
            Self::Sparse(update) => update.norm(),
            Self::Dense(values) | Self::Coded(Coded { values, .. }) => norm(values) as f32,
        }
    }

    /// The number of entries that are sent.
    pub fn entries(&self) -> usize {
        match self {
            Self::Silent => 0,
            Self::Sparse(update) => update.indices.len(),
            Self::Dense(values) | Self::Coded(Coded { values, .. }) => values.len(),
        }
    }

    /// Whether all values are finite.
    pub fn is_finite(&self) -> bool {
        match self {
            Self::Silent => true,
            Self::Sparse(SparseUpdate { values: Values::Shared(value), .. }) => value.is_finite(),
            Self::Sparse(SparseUpdate { values: Values::Grid(grid), .. }) => grid.unit.is_finite(),
            Self::Sparse(SparseUpdate { values: Values::Each(values), .. }) | Self::Dense(values) => {
                values.iter().all(|value| value.is_finite())
            }
            Self::Coded(Coded { scales, values, .. }) => {
                scales.iter().chain(values).all(|value| value.is_finite())
            }
        }
    }

    /// Replaces every value by `change` of it; for values on a grid, it replaces the unit.
    pub fn change_values(&mut self, change: impl Fn(f32) -> f32) {
        match self {
            Self::Silent => {}
            Self::Sparse(SparseUpdate { values: Values::Shared(value), .. }) => *value = change(*value),
            Self::Sparse(SparseUpdate { values: Values::Grid(grid), .. }) => grid.unit = change(grid.unit),
            Self::Sparse(SparseUpdate { values: Values::Each(values), .. }) | Self::Dense(values) => {
                values.iter_mut().for_each(|value| *value = change(*value));
            }
            Self::Coded(Coded { scales, rest, values, .. }) => {
                let alone: &mut [f32] = match &mut rest.values {
                    Values::Shared(value) => std::slice::from_mut(value),
                    Values::Each(values) => values,
                    Values::Grid(grid) => std::slice::from_mut(&mut grid.unit),
                };
                scales.iter_mut().chain(alone).chain(values).for_each(|value| *value = change(*value));
            }
        }
    }

    /// Calls `visit` with the index and the value of every entry that is sent, in ascending order.
    pub fn for_each(&self, mut visit: impl FnMut(u32, f32)) {
        match self {
            Self::Silent => {}
            Self::Sparse(SparseUpdate { indices, values: Values::Shared(value) }) => {
                indices.iter().for_each(|&i| visit(i, *value));
            }
            Self::Sparse(SparseUpdate { indices, values: Values::Each(values) }) => {
                indices.iter().zip(values).for_each(|(&i, &value)| visit(i, value));
            }
            Self::Sparse(SparseUpdate { indices, values: Values::Grid(grid) }) => {
                indices.iter().zip(grid.values()).for_each(|(&i, value)| visit(i, value));
            }
            Self::Dense(values) | Self::Coded(Coded { values, .. }) => {
                (0..).zip(values).for_each(|(i, &value)| visit(i, value));
            }
        }
    }

    /// `target += scale·Δ̂`.
    pub fn add_to(&self, target: &mut [f32], scale: f32) {
        self.add_part(target, 0, scale);
    }

    /// The same for the part of a longer target that begins at entry `start`.
    fn add_part(&self, target: &mut [f32], start: usize, scale: f32) {
        match self {
            Self::Silent => {}
            Self::Sparse(update) => update.add_part(target, start, scale),
            Self::Dense(values) | Self::Coded(Coded { values, .. }) => {
                let values = &values[start..start + target.len()];
                target.iter_mut().zip(values).for_each(|(entry, value)| *entry += scale * value);
            }
        }
    }

    /// Checks it as an update of `dim` entries. The error names entries out of order, twice or out of
    /// range, and values that do not match them or are not finite.
    pub fn check(&self, dim: usize) -> Result<(), String> {
        match self {
            Self::Dense(values) | Self::Coded(Coded { values, .. }) if values.len() != dim => {
                return Err(format!("it has {} entries, but the model has {dim} parameters", values.len()));
            }
            Self::Silent | Self::Dense(_) | Self::Coded(_) => {}
            Self::Sparse(SparseUpdate { indices, values }) => {
                let count = values.count().unwrap_or(indices.len());
                if count != indices.len() {
                    return Err(format!("it has {count} values for {} indices", indices.len()));
                }
                if let Some(pair) = indices.windows(2).find(|pair| pair[0] >= pair[1]) {
                    let [a, b] = [pair[0], pair[1]];
                    let problem = if a == b { "appears twice" } else { "is out of order" };
                    return Err(format!("index {b} {problem} (after {a}); indices must ascend"));
                }
                if let Some(last) = indices.last().filter(|&&last| last as usize >= dim) {
                    return Err(format!("index {last} is out of range: the model has {dim} parameters"));
                }
            }
        }
        if self.is_finite() { Ok(()) } else { Err("a value is not finite".into()) }
    }
}

/// Entries of θ that a thread sums at a time.
const BLOCK: usize = 1 << 14;

/// `target += Σ weight·Δ̂`. Every entry is summed in the order of the updates, for any number of threads.
pub fn add_all(target: &mut [f32], updates: &[(&Encoded, f32)]) {
    target.par_chunks_mut(BLOCK).enumerate().for_each(|(block, part)| {
        updates.iter().for_each(|(update, weight)| update.add_part(part, block * BLOCK, *weight));
    });
}

#[cfg(test)]
mod tests;
