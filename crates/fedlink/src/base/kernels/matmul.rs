//! Dense matrix product: by the `gemm` crate, or by own code for the portable set.

use super::instructions::InstructionSet;

/// A view of a dense matrix: `rows × cols` entries at `data[r·row_stride + c·col_stride]`.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A row-major matrix over all of `data`.
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        assert_eq!(data.len(), rows * cols, "a {rows}×{cols} matrix");
        Self { data, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// The transposed view, without a copy.
    #[must_use]
    pub fn t(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }
}

/// `out = a·b` (or `out += a·b` if `accumulate`), `out` row-major, on the calling thread.
///
/// It runs on one thread, because devices train in parallel, one per worker, and a product split over
/// threads would wait for its slowest part. So the result does not depend on the number of threads.
///
/// `gemm` chooses its instructions by the features of the machine, and has no option to choose others: it
/// uses fused multiply-add on every machine that has it. So the portable set has a product of its own.
pub fn matmul(a: Matrix, b: Matrix, out: &mut [f32], accumulate: bool) {
    matmul_on(InstructionSet::current(), a, b, out, accumulate);
}

pub(super) fn matmul_on(set: InstructionSet, a: Matrix, b: Matrix, out: &mut [f32], accumulate: bool) {
    assert_eq!(a.cols, b.rows, "inner dimensions of a matrix product");
    assert_eq!(out.len(), a.rows * b.cols, "size of a matrix product");
    if set == InstructionSet::PORTABLE {
        return portable(a, b, out, accumulate);
    }
    // SAFETY: `Matrix` is built only by `new` and `t`, which keep every (row, column) of the view inside
    // `data`; `out` holds a.rows·b.cols entries, row-major, by the assertion above, and as an exclusive
    // borrow it overlaps neither operand.
    unsafe {
        gemm::gemm(
            a.rows,
            b.cols,
            a.cols,
            out.as_mut_ptr(),
            1,
            b.cols as isize,
            accumulate,
            a.data.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// Inner terms that are packed at a time, columns of `b` that are packed with them, and the tile of the
/// product that is kept in registers.
const DEPTH: usize = 128;
const STRIP: usize = 32;
const TILE: [usize; 2] = [4, 8];

/// The product in plain arithmetic. Each output starts at zero (or at its old value) and adds its terms
/// in their order, each with two roundings. So its bits are the same on every machine.
fn portable(a: Matrix, b: Matrix, out: &mut [f32], accumulate: bool) {
    let [rows, columns] = TILE;
    let (mut a_packed, mut b_packed) = ([[0.0; TILE[0]]; DEPTH], [[[0.0; TILE[1]]; DEPTH]; STRIP / TILE[1]]);
    if !accumulate {
        out.fill(0.0);
    }
    for first in (0..a.cols).step_by(DEPTH) {
        let depth = DEPTH.min(a.cols - first);
        for left in (0..b.cols).step_by(STRIP) {
            let width = STRIP.min(b.cols - left);
            for (block, packed) in b_packed[..width.div_ceil(columns)].iter_mut().enumerate() {
                pack(b, [first, left + block * columns], &mut packed[..depth]);
            }
            for top in (0..a.rows).step_by(rows) {
                pack(a.t(), [first, top], &mut a_packed[..depth]);
                let height = rows.min(a.rows - top);
                for (block, packed) in b_packed[..width.div_ceil(columns)].iter().enumerate() {
                    let left = left + block * columns;
                    let width = columns.min(b.cols - left);
                    let line = |row: usize| (top + row) * b.cols + left..(top + row) * b.cols + left + width;
                    let mut sums = [[0.0; TILE[1]]; TILE[0]];
                    for (row, sums) in sums[..height].iter_mut().enumerate() {
                        sums[..width].copy_from_slice(&out[line(row)]);
                    }
                    add_products(&a_packed[..depth], &packed[..depth], &mut sums);
                    for (row, sums) in sums[..height].iter().enumerate() {
                        out[line(row)].copy_from_slice(&sums[..width]);
                    }
                }
            }
        }
    }
}

/// Copies `packed.len()` rows of N columns from [row, column] on; columns beyond the matrix are zero.
fn pack<const N: usize>(matrix: Matrix, [row, column]: [usize; 2], packed: &mut [[f32; N]]) {
    let count = N.min(matrix.cols - column);
    for (i, line) in packed.iter_mut().enumerate() {
        *line = [0.0; N];
        let start = (row + i) * matrix.row_stride + column * matrix.col_stride;
        for (j, entry) in line[..count].iter_mut().enumerate() {
            *entry = matrix.data[start + j * matrix.col_stride];
        }
    }
}

/// `sums[r][c] += Σ a[i][r]·b[i][c]`, in the order of i.
fn add_products(a: &[[f32; TILE[0]]], b: &[[f32; TILE[1]]], sums: &mut [[f32; TILE[1]]; TILE[0]]) {
    let mut total = *sums;
    for (a, b) in a.iter().zip(b) {
        for (sums, &x) in total.iter_mut().zip(a) {
            for (sum, &y) in sums.iter_mut().zip(b) {
                *sum += x * y;
            }
        }
    }
    *sums = total;
}

#[cfg(test)]
mod tests {
    use super::super::tests::any_floats;
    use super::*;
    use proptest::prelude::*;

    /// The reference: the definition in double precision.
    fn plain(a: Matrix, b: Matrix, out: &[f32], accumulate: bool) -> Vec<f64> {
        let at = |x: &Matrix, r: usize, c: usize| f64::from(x.data[r * x.row_stride + c * x.col_stride]);
        let mut product = Vec::new();
        for r in 0..a.rows {
            for c in 0..b.cols {
                let start = if accumulate { f64::from(out[r * b.cols + c]) } else { 0.0 };
                product.push(start + (0..a.cols).map(|i| at(&a, r, i) * at(&b, i, c)).sum::<f64>());
            }
        }
        product
    }

    proptest! {
        #[test]
        fn products_match_the_definition_for_every_layout(
            (m, k, n) in (1usize..20, 1usize..40, 1usize..20),
            values in prop::collection::vec(-1.0..1.0f32, 2000),
            transpose_a: bool, transpose_b: bool, accumulate: bool,
        ) {
            let view = |data, rows, cols, transposed| {
                if transposed { Matrix::new(data, cols, rows).t() } else { Matrix::new(data, rows, cols) }
            };
            let a = view(&values[..m * k], m, k, transpose_a);
            let b = view(&values[1000..1000 + k * n], k, n, transpose_b);
            for set in InstructionSet::available() {
                let mut out = vec![0.5; m * n];
                let expected = plain(a, b, &out, accumulate);
                matmul_on(set, a, b, &mut out, accumulate);
                for (ours, truth) in out.iter().zip(&expected) {
                    prop_assert!((f64::from(*ours) - truth).abs() < 1e-5);
                }
            }
        }

        #[test]
        fn a_portable_product_takes_its_terms_in_their_order_with_two_roundings_each(
            (m, k, n) in (1usize..11, 1usize..300, prop_oneof![1usize..20, 60usize..140]),
            drawn in any_floats(1009),
            transpose_a: bool, transpose_b: bool, accumulate: bool,
        ) {
            // Drawing every entry would take most of the time of all tests of this crate.
            let index = |i: u64| (i.wrapping_mul(2_654_435_761) >> 9) as usize % drawn.len();
            let values: Vec<f32> = (0..10 * 300 + 300 * 140).map(|i| drawn[index(i)]).collect();
            let view = |data, rows, cols, transposed| {
                if transposed { Matrix::new(data, cols, rows).t() } else { Matrix::new(data, rows, cols) }
            };
            let a = view(&values[..m * k], m, k, transpose_a);
            let b = view(&values[3000..3000 + k * n], k, n, transpose_b);
            let at = |x: &Matrix, r: usize, c: usize| x.data[r * x.row_stride + c * x.col_stride];
            let before: Vec<f32> = (0..m * n).map(|i| (i as f32).sin()).collect();
            let mut out = before.clone();
            matmul_on(InstructionSet::PORTABLE, a, b, &mut out, accumulate);
            for (i, ours) in out.iter().enumerate() {
                let mut sum = if accumulate { before[i] } else { 0.0 };
                for j in 0..k {
                    let product = at(&a, i / n, j) * at(&b, j, i % n);
                    sum += product;
                }
                prop_assert!(ours.to_bits() == sum.to_bits() || ours.is_nan() && sum.is_nan());
            }
        }
    }

    #[test]
    fn a_product_ignores_the_old_output_even_if_it_is_nan() {
        let (a, b) = ([1.0, 2.0], [3.0, 4.0]);
        for set in InstructionSet::available() {
            let mut out = [f32::NAN];
            matmul_on(set, Matrix::new(&a, 1, 2), Matrix::new(&b, 2, 1), &mut out, false);
            assert_eq!(out, [11.0]);
        }
    }
}
