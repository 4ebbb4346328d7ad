//! A mini-batch in which most numbers are zero.

/// The non-zeros of a mini-batch, by row and by column.
///
/// The forward pass reads sample after sample, the weights' gradient input after input. Both orders are
/// stored, so that each pass writes each result once.
///
/// ```
/// use fedlink::base::kernels::SparseBatch;
/// let mut batch = SparseBatch::new(3);
/// batch.push([(0, 0.5), (2, 1.0)]);
/// batch.push([(2, 0.25)]);
/// batch.finish();
/// assert_eq!((batch.rows(), batch.columns()), (2, 3));
/// assert!(batch.is_column_empty(1) && !batch.is_column_empty(2));
/// ```
#[derive(Clone, Debug, Default)]
pub struct SparseBatch {
    columns: usize,
    /// Row r has the entries `row_ends[r-1]..row_ends[r]` (from 0 for the first).
    row_ends: Vec<u32>,
    by_row: Vec<Entry>,
    /// Column c has the entries `column_starts[c]..column_starts[c+1]`.
    column_starts: Vec<u32>,
    by_column: Vec<Entry>,
    has_columns: bool,
}

/// A non-zero and its other coordinate: its column in a list by row, its row in a list by column.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Entry {
    pub at: u32,
    pub value: f32,
}

impl SparseBatch {
    /// An empty batch over `columns` inputs.
    pub fn new(columns: usize) -> Self {
        Self { columns, ..Self::default() }
    }

    /// The rows of a dense matrix.
    pub fn of_dense(matrix: &[f32], columns: usize) -> Self {
        let mut batch = Self::new(columns);
        for row in matrix.chunks_exact(columns) {
            batch.push((0..).zip(row).filter(|(_, value)| **value != 0.0).map(|(at, &value)| (at, value)));
        }
        batch.finish();
        batch
    }

    /// The batch as a dense matrix.
    pub fn to_dense(&self) -> Vec<f32> {
        let mut matrix = vec![0.0; self.rows() * self.columns];
        for row in 0..self.rows() {
            for entry in self.row(row) {
                matrix[row * self.columns + entry.at as usize] = entry.value;
            }
        }
        matrix
    }

    /// Removes all rows and keeps the memory; the next rows have `columns` inputs.
    pub fn restart(&mut self, columns: usize) {
        self.columns = columns;
        self.row_ends.clear();
        self.by_row.clear();
    }

    /// Adds a row given by its non-zeros, columns ascending and below [`SparseBatch::columns`].
    pub fn push(&mut self, row: impl IntoIterator<Item = (u32, f32)>) {
        self.by_row.extend(row.into_iter().map(|(at, value)| Entry { at, value }));
        self.row_ends.push(self.by_row.len() as u32);
    }

    /// Adds a row in which only the chosen numbers are kept; the others are zero.
    pub(super) fn push_some(&mut self, row: impl ExactSizeIterator<Item = (f32, bool)>) {
        // The choice is hard to predict for a branch: every number is written, and the index advances
        // after a chosen one.
        let mut len = self.by_row.len();
        self.by_row.resize(len + row.len(), Entry::default());
        for ((value, chosen), at) in row.zip(0..) {
            self.by_row[len] = Entry { at, value };
            len += usize::from(chosen);
        }
        self.by_row.truncate(len);
        self.row_ends.push(len as u32);
    }

    /// Completes the batch with its entries by column, which [`sparse_gradient`](super::sparse_gradient)
    /// needs. Within a column rows ascend.
    pub fn finish(&mut self) {
        self.has_columns = true;
        // Counting sort: `column_starts[c + 1]` first counts column c, then is its end.
        let starts = &mut self.column_starts;
        starts.clear();
        starts.resize(self.columns + 1, 0);
        self.by_row.iter().for_each(|entry| starts[entry.at as usize + 1] += 1);
        for column in 1..starts.len() {
            starts[column] += starts[column - 1];
        }
        self.by_column.resize(self.by_row.len(), Entry::default());
        let mut first = 0;
        for (row, &end) in (0..).zip(&self.row_ends) {
            for entry in &self.by_row[first..end as usize] {
                let index = &mut starts[entry.at as usize];
                self.by_column[*index as usize] = Entry { at: row, value: entry.value };
                *index += 1;
            }
            first = end as usize;
        }
        // Every column now starts at its end, which is the start of the next.
        starts.rotate_right(1);
        starts[0] = 0;
    }

    /// Completes the batch for reading by row only.
    pub fn finish_rows(&mut self) {
        self.has_columns = false;
    }

    /// Whether the entries are stored by column too.
    pub fn has_columns(&self) -> bool {
        self.has_columns
    }

    /// The number of samples.
    pub fn rows(&self) -> usize {
        self.row_ends.len()
    }

    /// The number of inputs of a sample.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Whether an input is known to be zero in all samples; false for every input of a batch without
    /// entries by column.
    pub fn is_column_empty(&self, column: usize) -> bool {
        self.has_columns && self.column_starts[column] == self.column_starts[column + 1]
    }

    /// The non-zeros of a sample, columns ascending.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &[Entry] {
        let start = if row == 0 { 0 } else { self.row_ends[row - 1] as usize };
        &self.by_row[start..self.row_ends[row] as usize]
    }

    /// The non-zeros of an input, rows ascending.
    #[inline(always)]
    pub(super) fn column(&self, column: usize) -> &[Entry] {
        assert!(self.has_columns, "a batch that was finished for rows only has no columns");
        &self.by_column[self.column_starts[column] as usize..self.column_starts[column + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_orders_hold_the_matrix(
            dense in prop::collection::vec(prop_oneof![2 => Just(0.0), 1 => -2.0..2.0f32], 7 * 9),
        ) {
            // The batch was used before for another matrix; its old entries must go.
            let mut batch = SparseBatch::of_dense(&[1.0; 88], 8);
            batch.restart(7);
            for row in dense.chunks_exact(7) {
                batch.push((0..).zip(row).filter(|(_, x)| **x != 0.0).map(|(at, &x)| (at, x)));
            }
            batch.finish();
            let mut by_column = vec![0.0; 63];
            for r in 0..batch.rows() {
                prop_assert!(batch.row(r).is_sorted_by_key(|entry| entry.at));
            }
            for c in 0..7 {
                prop_assert!(batch.column(c).is_sorted_by_key(|entry| entry.at));
                batch.column(c).iter().for_each(|entry| by_column[entry.at as usize * 7 + c] = entry.value);
            }
            prop_assert_eq!(&batch.to_dense(), &dense);
            prop_assert_eq!(&SparseBatch::of_dense(&dense, 7).to_dense(), &dense);
            prop_assert_eq!(&by_column, &dense);
        }
    }
}
