//! Dense matrix product on the `gemm` crate.

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

    /// The transposed view; nothing is moved.
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
/// One thread on purpose: devices train side by side, one to a worker, and a product split over threads would
/// wait for its slowest part. For the same reason the result does not depend on the number of threads.
pub fn matmul(a: Matrix, b: Matrix, out: &mut [f32], accumulate: bool) {
    assert_eq!(a.cols, b.rows, "inner dimensions of a matrix product");
    assert_eq!(out.len(), a.rows * b.cols, "size of a matrix product");
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The safe twin: the definition in double precision.
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
            let mut out = vec![0.5; m * n];
            let expected = plain(a, b, &out, accumulate);
            matmul(a, b, &mut out, accumulate);
            for (ours, truth) in out.iter().zip(&expected) {
                prop_assert!((f64::from(*ours) - truth).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn what_was_in_the_output_before_does_not_leak_in_even_if_it_was_nan() {
        let (a, b) = ([1.0, 2.0], [3.0, 4.0]);
        let mut out = [f32::NAN];
        matmul(Matrix::new(&a, 1, 2), Matrix::new(&b, 2, 1), &mut out, false);
        assert_eq!(out, [11.0]);
    }
}
