//! The leading singular vectors of a matrix.

use crate::base::kernels::norm;
use crate::base::units::Shape;

/// `u ← W·v`.
fn product(w: &[f32], shape: Shape, v: &[f32], u: &mut Vec<f32>) {
    u.clear();
    u.extend(w.chunks_exact(shape.cols).map(|row| {
        let mut lanes = [0.0f32; 16];
        let ((a, a_rest), (b, b_rest)) = (row.as_chunks::<16>(), v.as_chunks::<16>());
        for (a, b) in a.iter().zip(b) {
            lanes.iter_mut().zip(a).zip(b).for_each(|((lane, a), b)| *lane += a * b);
        }
        let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
        lanes.iter().sum::<f32>() + rest
    }));
}

/// `v ← Wᵀ·u`.
pub(super) fn transposed_product(w: &[f32], shape: Shape, u: &[f32], v: &mut Vec<f32>) {
    v.clear();
    v.resize(shape.cols, 0.0);
    for (row, u) in w.chunks_exact(shape.cols).zip(u) {
        v.iter_mut().zip(row).for_each(|(v, w)| *v += u * w);
    }
}

/// The leading left and right singular vectors of W by power iterations from its heaviest row; u has norm 1
/// (or is zero), v norm σ.
pub(super) fn leading(w: &[f32], shape: Shape, iterations: usize, u: &mut Vec<f32>, v: &mut Vec<f32>) {
    let mut heaviest = (0.0, 0);
    for (i, row) in w.chunks_exact(shape.cols).enumerate() {
        let length = norm(row);
        if length > heaviest.0 {
            heaviest = (length, i);
        }
    }
    v.clear();
    v.extend_from_slice(&w[heaviest.1 * shape.cols..][..shape.cols]);
    for _ in 0..iterations {
        to_one(v);
        product(w, shape, v, u);
        to_one(u);
        transposed_product(w, shape, u, v);
    }
}

/// Divides by the norm; a zero vector stays zero.
fn to_one(x: &mut [f32]) {
    let length = norm(x);
    if length > 0.0 {
        let factor = (1.0 / length) as f32;
        x.iter_mut().for_each(|x| *x *= factor);
    }
}
