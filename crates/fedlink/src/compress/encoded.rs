//! Δ̂: what is left of an update after compression.

use super::bits::log2_choose;
use crate::kernels::norm;
use crate::parallel::prelude::*;
use crate::schedule::Entries;
use crate::units::Bits;

/// Δ̂ in the form that suits the scheme.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Encoded {
    /// Nothing: the budget held nothing. It counts as zero.
    #[default]
    Silent,
    /// Few entries that are not zero.
    Sparse(SparseUpdate),
    /// All d entries.
    Dense(Vec<f32>),
    /// All d entries, and the few symbols that they follow from.
    Coded(Coded),
}

/// Δ̂ whose d entries follow from a few symbols, by what both ends know.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Coded {
    /// What is sent as floating-point numbers. Δ̂ is linear in them.
    pub scales: Vec<f32>,
    /// What is sent besides, as small whole numbers in the order of the scheme.
    pub symbols: Vec<u8>,
    /// Entries that are sent by themselves, which are added to what the symbols come to.
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
    /// The sparse update in it, whose memory is reused if it was one already.
    pub fn make_sparse(&mut self) -> &mut SparseUpdate {
        if !matches!(self, Self::Sparse(_)) {
            *self = Self::Sparse(SparseUpdate::default());
        }
        match self {
            Self::Sparse(update) => update,
            _ => unreachable!("it was made sparse above"),
        }
    }

    /// All its entries, empty at first, whose memory is reused if it had all before.
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

    /// The symbols and entries in it, empty at first, whose memory is reused if it had them before.
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

    /// Entries that are sent.
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

    /// Every value becomes `change` of it; of values on a grid, their unit does.
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

    /// What is wrong with it as an update of `dim` entries, if anything: entries out of order, twice or out
    /// of range, values that do not match them or are not finite.
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

/// Δ̂: an update of which few entries are not zero.
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

/// Values that are whole multiples of a unit.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Grid {
    /// The unit, as a value.
    pub unit: f32,
    /// s: no multiple is larger.
    pub steps: u32,
    /// The multiple for each entry, in the order of the indices.
    pub levels: Vec<i32>,
}

impl Grid {
    /// The values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f32> {
        let (unit, max) = (f64::from(self.unit), f64::from(f32::MAX));
        // A product beyond the largest number there is becomes that one.
        self.levels.iter().map(move |&level| (unit * f64::from(level)).clamp(-max, max) as f32)
    }
}

impl Values {
    /// How many there are; none if one stands for all.
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

    /// The information in it, as one of `dim` entries: `log2 C(d,q) + q·H`, H being the entropy of its values
    /// in bits a value. A code without shared randomness takes fewer bits only if values or indices can be
    /// predicted.
    ///
    /// Invariant: no more than what any scheme of this library counts for the same update.
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

    /// Takes the memory of its values out, empty.
    pub(crate) fn take_values(&mut self) -> Vec<f32> {
        match std::mem::take(&mut self.values) {
            Values::Each(mut values) => {
                values.clear();
                values
            }
            Values::Shared(_) | Values::Grid(_) => Vec::new(),
        }
    }

    /// Makes the indices those of all `dim` entries.
    pub(crate) fn fill_indices(&mut self, dim: usize) {
        // Where they are already, as from an update before, they are not written again.
        if !(self.indices.len() == dim && self.has_all_indices()) {
            self.indices.clear();
            self.indices.extend(0..dim as u32);
        }
    }

    /// Whether the indices are 0, 1, 2 …: as they ascend strictly, the last of them tells.
    fn has_all_indices(&self) -> bool {
        self.indices.last().is_none_or(|&last| last as usize + 1 == self.indices.len())
    }

    /// Makes it Δ̂ = Δ: exchanges its values, of which there are as many from then on, for `update`.
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
    fn add_part(&self, target: &mut [f32], start: usize, scale: f32) {
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
            // Ascending indices, as many as there are entries: every one once, and no need to look them up.
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

/// Entries of θ that a thread sums up at a time.
const BLOCK: usize = 1 << 14;

/// `target += Σ share·Δ̂`. Every entry is summed in the order of the updates, whatever the number of threads.
pub fn add_all(target: &mut [f32], updates: &[(&Encoded, f32)]) {
    target.par_chunks_mut(BLOCK).enumerate().for_each(|(block, part)| {
        updates.iter().for_each(|(update, share)| update.add_part(part, block * BLOCK, *share));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn update(dim: usize) -> impl Strategy<Value = Encoded> {
        let indices = prop::collection::btree_set(0..dim as u32, 0..200);
        (indices, any::<bool>(), -2.0..2.0f32).prop_map(|(indices, shared, value)| {
            let indices: Vec<u32> = indices.into_iter().collect();
            let each = || indices.iter().map(|&i| value * (i as f32).sin()).collect();
            let values = if shared { Values::Shared(value) } else { Values::Each(each()) };
            Encoded::Sparse(SparseUpdate { indices, values })
        })
    }

    #[test]
    fn what_a_custom_scheme_returns_is_checked() {
        let sparse = |indices: &[u32], values: &[f32]| {
            let values = Values::Each(values.to_vec());
            Encoded::Sparse(SparseUpdate { indices: indices.to_vec(), values }).check(10)
        };
        assert_eq!(sparse(&[0, 4, 9], &[1.0, 2.0, 3.0]), Ok(()));
        assert_eq!(Encoded::Silent.check(10), Ok(()));
        assert_eq!(Encoded::Dense(vec![0.0; 10]).check(10), Ok(()));
        let cases = [
            (sparse(&[4, 0], &[1.0, 2.0]), "index 0 is out of order (after 4)"),
            (sparse(&[4, 4], &[1.0, 2.0]), "index 4 appears twice"),
            (sparse(&[4, 10], &[1.0, 2.0]), "index 10 is out of range: the model has 10 parameters"),
            (sparse(&[4], &[1.0, 2.0]), "it has 2 values for 1 indices"),
            (sparse(&[4], &[f32::NAN]), "a value is not finite"),
            (Encoded::Dense(vec![0.0; 9]).check(10), "it has 9 entries, but the model has 10 parameters"),
            (Encoded::Dense(vec![f32::INFINITY; 10]).check(10), "a value is not finite"),
        ];
        for (result, problem) in cases {
            assert!(result.as_ref().unwrap_err().starts_with(problem), "{result:?} is not {problem}");
        }
    }

    #[test]
    fn the_information_of_an_update_is_that_of_its_indices_and_values() {
        let of = |values| SparseUpdate { indices: vec![0, 3, 4, 9], values }.information(10).0;
        let indices = 210f64.log2(); // C(10, 4)
        assert!((of(Values::Shared(7.0)) - indices).abs() < 1e-12);
        assert!((of(Values::Each(vec![1.0; 4])) - indices).abs() < 1e-12);
        // Four values, all different: two bits each. Two and two: one bit each.
        assert!((of(Values::Each(vec![1.0, 2.0, 3.0, 4.0])) - indices - 8.0).abs() < 1e-12);
        assert!((of(Values::Each(vec![1.0, -1.0, -1.0, 1.0])) - indices - 4.0).abs() < 1e-12);
        // Three and one: 3·log2(4/3) + log2 4.
        let uneven = 3.0 * (4.0f64 / 3.0).log2() + 2.0;
        assert!((of(Values::Each(vec![1.0, -1.0, 1.0, 1.0])) - indices - uneven).abs() < 1e-12);
        assert_eq!(SparseUpdate::default().information(10).0, 0.0);
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
                update.for_each(|i, value| one_by_one[i as usize] += share * value);
            }
            let mut together = start;
            let updates: Vec<(&Encoded, f32)> =
                updates.iter().map(|(update, share)| (update, *share)).collect();
            add_all(&mut together, &updates);
            prop_assert!(together.iter().zip(&one_by_one).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
    }
}
