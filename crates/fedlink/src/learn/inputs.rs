//! The inputs of a model: scaled samples, stored by their non-zeros if most numbers are zero.

use super::model::{Batch, Rows};
use crate::base::kernels::{SparseBatch, prefetch};
use crate::data::{Dataset, Features, Samples, Scaler, Scaling};
use std::sync::{Arc, OnceLock};

/// Up to this share of non-zeros a product over non-zeros is faster (see `docs/performance.md`).
const SPARSE_UP_TO: f64 = 0.4;

/// Samples inspected to find the share of non-zeros.
const PROBE: usize = 500;

/// A part of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// The samples for training.
    Train,
    /// The samples for measuring accuracy.
    Test,
}

/// A data set, ready to be taken in mini-batches.
///
/// A sample of training rows decides whether rows are stored by their non-zeros, so the decision depends
/// on the data and their scaling alone. With standard scaling, which moves the zeros, it never pays.
pub struct Inputs {
    dataset: Arc<Dataset>,
    scaler: Scaler,
    sparse: bool,
    /// Filled at the first use of a split, so that building a run costs nothing.
    train: OnceLock<NonZeros>,
    test: OnceLock<NonZeros>,
}

/// The non-zeros of every sample, one sample after the other.
struct NonZeros {
    /// Sample i has the entries `ends[i-1]..ends[i]` (from 0 for the first).
    ends: Vec<usize>,
    columns: Vec<u16>,
    values: Values,
}

/// The type of the non-zeros.
enum Values {
    Floats(Vec<f32>),
    /// Bytes as stored, and the table of their values: half of the memory, which limits the speed of
    /// random access to samples.
    Bytes(Vec<u8>, Box<[f32; 256]>),
}

/// Memory that mini-batches reuse.
#[derive(Clone, Debug, Default)]
pub struct BatchBuffer {
    labels: Vec<u8>,
    dense: Vec<f32>,
    sparse: SparseBatch,
}

impl Inputs {
    /// The samples of `dataset`, scaled, stored by their non-zeros if that pays.
    pub fn new(dataset: Arc<Dataset>, scaling: Scaling) -> Self {
        let dense = Self::dense(dataset, scaling);
        let numbered = dense.dataset.features <= usize::from(u16::MAX) + 1;
        let sparse = numbered && share_of_non_zeros(&dense.dataset, &dense.scaler) <= SPARSE_UP_TO;
        Self { sparse, ..dense }
    }

    /// The samples of `dataset`, scaled, stored densely: for a model that does not [take
    /// non-zeros](super::model::Model::takes_non_zeros).
    pub fn dense(dataset: Arc<Dataset>, scaling: Scaling) -> Self {
        let scaler = Scaler::new(&dataset, scaling);
        Self { dataset, scaler, sparse: false, train: OnceLock::new(), test: OnceLock::new() }
    }

    /// Whether batches are stored by their non-zeros.
    pub fn is_sparse(&self) -> bool {
        self.sparse
    }

    fn samples(&self, split: Split) -> &Samples {
        match split {
            Split::Train => &self.dataset.train,
            Split::Test => &self.dataset.test,
        }
    }

    fn non_zeros(&self, split: Split) -> &NonZeros {
        let non_zeros = match split {
            Split::Train => &self.train,
            Split::Test => &self.test,
        };
        non_zeros.get_or_init(|| NonZeros::of(self.samples(split), self.dataset.features, &self.scaler))
    }

    /// Prefetches the samples with the given numbers before they are gathered: they are scattered over a
    /// data set that is larger than any cache.
    ///
    /// # Panics
    /// If there is no such sample.
    pub fn announce(&self, split: Split, samples: impl Iterator<Item = usize>) {
        if self.sparse {
            let non_zeros = self.non_zeros(split);
            samples.for_each(|sample| non_zeros.prefetch(sample));
        }
    }

    /// The samples with the given numbers as a batch.
    ///
    /// # Panics
    /// If there is no such sample.
    pub fn gather<'a>(
        &self,
        split: Split,
        samples: impl Iterator<Item = usize> + Clone,
        buffer: &'a mut BatchBuffer,
    ) -> Batch<'a> {
        self.gather_for(true, split, samples, buffer)
    }

    /// As [`Inputs::gather`]; also by column only on request (see
    /// [`Model::takes_columns`](super::model::Model::takes_columns)).
    pub fn gather_for<'a>(
        &self,
        columns: bool,
        split: Split,
        samples: impl Iterator<Item = usize> + Clone,
        buffer: &'a mut BatchBuffer,
    ) -> Batch<'a> {
        self.announce(split, samples.clone());
        let data = self.samples(split);
        let BatchBuffer { labels, dense, sparse } = buffer;
        labels.clear();
        if self.sparse {
            let non_zeros = self.non_zeros(split);
            sparse.restart(self.dataset.features);
            for sample in samples {
                labels.push(data.labels[sample]);
                non_zeros.push_row(sample, sparse);
            }
            if columns {
                sparse.finish();
            } else {
                sparse.finish_rows();
            }
            return Batch { inputs: Rows::Sparse(sparse), labels };
        }
        let features = self.dataset.features;
        for (i, sample) in samples.enumerate() {
            labels.push(data.labels[sample]);
            if dense.len() < (i + 1) * features {
                dense.resize((i + 1) * features, 0.0);
            }
            self.scaler.write(data, sample, &mut dense[i * features..(i + 1) * features]);
        }
        Batch { inputs: Rows::Dense(&dense[..labels.len() * features]), labels }
    }
}

impl NonZeros {
    fn of(samples: &Samples, features: usize, scaler: &Scaler) -> Self {
        let (mut ends, mut columns) = (Vec::with_capacity(samples.len()), Vec::new());
        let values = if let (Features::Bytes(bytes), Some(table)) = (&samples.features, scaler.byte_table()) {
            let (mut kept, mut len) = (Vec::new(), 0);
            for row in bytes.chunks_exact(features) {
                if columns.len() < len + features {
                    columns.resize(2 * len + features, 0);
                    kept.resize(2 * len + features, 0);
                }
                // Zeros are hard to predict for a branch: every number is written, and the index advances
                // after a non-zero.
                for (column, &byte) in (0..).zip(row) {
                    (columns[len], kept[len]) = (column, byte);
                    len += usize::from(table[usize::from(byte)] != 0.0);
                }
                ends.push(len);
            }
            columns.truncate(len);
            kept.truncate(len);
            kept.shrink_to_fit();
            Values::Bytes(kept, Box::new(*table))
        } else {
            let (mut row, mut kept) = (vec![0.0; features], Vec::new());
            for i in 0..samples.len() {
                scaler.write(samples, i, &mut row);
                for (column, &value) in (0..).zip(&row).filter(|(_, value)| **value != 0.0) {
                    columns.push(column);
                    kept.push(value);
                }
                ends.push(columns.len());
            }
            kept.shrink_to_fit();
            Values::Floats(kept)
        };
        columns.shrink_to_fit();
        Self { ends, columns, values }
    }

    /// The range of the entries of sample i.
    fn range(&self, i: usize) -> std::ops::Range<usize> {
        if i == 0 { 0..self.ends[0] } else { self.ends[i - 1]..self.ends[i] }
    }

    fn prefetch(&self, i: usize) {
        let range = self.range(i);
        prefetch(&self.columns[range.clone()]);
        match &self.values {
            Values::Floats(values) => prefetch(&values[range]),
            Values::Bytes(bytes, _) => prefetch(&bytes[range]),
        }
    }

    /// Adds sample i to a batch.
    fn push_row(&self, i: usize, batch: &mut SparseBatch) {
        let range = self.range(i);
        let columns = self.columns[range.clone()].iter().map(|&column| u32::from(column));
        match &self.values {
            Values::Floats(values) => batch.push(columns.zip(values[range].iter().copied())),
            Values::Bytes(bytes, table) => {
                batch.push(columns.zip(bytes[range].iter().map(|&byte| table[usize::from(byte)])));
            }
        }
    }
}

/// The share of non-zeros after scaling, over evenly spaced training samples.
fn share_of_non_zeros(dataset: &Dataset, scaler: &Scaler) -> f64 {
    let count = dataset.train.len();
    let mut row = vec![0.0; dataset.features];
    let (mut seen, mut non_zero) = (0, 0);
    for i in (0..count).step_by(count.div_ceil(PROBE).max(1)) {
        scaler.write(&dataset.train, i, &mut row);
        seen += row.len();
        non_zero += row.iter().filter(|&&value| value != 0.0).count();
    }
    non_zero as f64 / seen.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset(features: Features) -> Arc<Dataset> {
        let samples = |features| Samples { features, labels: vec![2, 0, 1] };
        let (train, test) = (samples(features.clone()), samples(features));
        let (name, shape) = ("tiny".into(), [1, 4, 1]);
        Arc::new(Dataset { name, features: 4, shape, classes: 3, train, test })
    }

    /// The rows of a batch as a dense matrix.
    fn dense(batch: Batch) -> Vec<f32> {
        match batch.inputs {
            Rows::Dense(rows) => rows.to_vec(),
            Rows::Sparse(rows) => rows.to_dense(),
        }
    }

    #[test]
    fn sparse_and_dense_batches_hold_the_scaled_samples() {
        let sparse = Features::Bytes(vec![0, 255, 0, 0, 51, 0, 0, 0, 0, 0, 0, 0]);
        let floats = Features::Floats(vec![0.0, -3.0, 0.0, 0.0, 1e-40, 0.0, -0.0, 0.0, 0.0, 2.0, 0.0, 0.0]);
        let full = Features::Bytes((1..=12).collect());
        let new: fn(Arc<Dataset>, Scaling) -> Inputs = Inputs::new;
        for (make, features, scaling, is_sparse) in [
            (new, sparse.clone(), Scaling::Unit, true),
            (Inputs::dense, sparse.clone(), Scaling::Unit, false),
            (new, sparse.clone(), Scaling::None, true),
            (new, sparse, Scaling::Standard, false),
            (new, floats, Scaling::None, true),
            (new, full, Scaling::Unit, false),
        ] {
            let dataset = dataset(features);
            let inputs = make(dataset.clone(), scaling);
            assert_eq!(inputs.is_sparse(), is_sparse);
            let mut buffer = BatchBuffer::default();
            for split in [Split::Train, Split::Test] {
                for samples in [vec![0, 1, 2], vec![2], vec![1, 1]] {
                    let mut expected = vec![0.0; 4 * samples.len()];
                    for (&i, row) in samples.iter().zip(expected.chunks_exact_mut(4)) {
                        Scaler::new(&dataset, scaling).write(&dataset.train, i, row);
                    }
                    let batch = inputs.gather(split, samples.iter().copied(), &mut buffer);
                    let labels: Vec<u8> = samples.iter().map(|&i| [2, 0, 1][i]).collect();
                    assert_eq!(batch.labels, labels);
                    assert_eq!(dense(batch), expected);
                }
            }
        }
    }
}
