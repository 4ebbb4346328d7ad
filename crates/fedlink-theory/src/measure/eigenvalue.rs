//! An upper bound on the largest eigenvalue of a symmetric matrix A ⪰ 0: the value of L must not be too
//! small.
//!
//! Power iteration finds ρ from below without a bound on the distance: with a small gap to the next
//! eigenvalue it almost stops changing long before it converges, and the residual ‖Ax − ρx‖ only shows
//! that *some* eigenvalue is near ρ. The certificate is another one: λ_max ≤ c if c·I − A is positive
//! definite, which holds if its Cholesky factorization succeeds. In floating point a successful
//! factorization proves it for a matrix that differs from c·I − A by at most γ·tr(c·I − A) in norm, γ =
//! (n + 1)u/(1 − (n + 1)u) with u = 2⁻⁵³ (Demmel; Rump, BIT 46, 2006, lemma 2.1); twice this amount is
//! added to c.

use super::solve::dot;

/// The unit roundoff of double precision.
const UNIT: f64 = f64::EPSILON / 2.0;

/// The most steps of power iteration; the certificate does not depend on their convergence.
const MAX_STEPS: usize = 300;

/// The largest relative distance between the bound and λ_max.
const WIDTH: f64 = 1e-3;

/// A symmetric matrix, all n² numbers, row by row.
pub(super) struct Symmetric {
    pub size: usize,
    pub entries: Vec<f64>,
    /// The largest difference in norm between the entries and those of the exact matrix.
    pub error: f64,
}

impl Symmetric {
    /// An upper bound c ≥ λ_max. It is at most λ_max·(1 + [`WIDTH`]) up to rounding, and mostly within
    /// 1e-9·λ_max. The matrix must be positive semidefinite; the bound is 0 if the matrix is empty.
    pub fn largest_eigenvalue(&self) -> f64 {
        let trace = self.trace();
        if !(trace > 0.0 && trace.is_finite()) {
            return if trace == 0.0 { 0.0 } else { f64::NAN };
        }
        let start = self.largest_quotient();
        // `refused` is at most λ_max. No eigenvalue exceeds the trace, which needs no factorization.
        let mut refused = start;
        let mut bound = trace * (1.0 + 2.0 * self.size as f64 * UNIT);
        let mut gap = 1e-10;
        while start * (1.0 + gap) < trace {
            let above = start * (1.0 + gap);
            if let Some(slack) = self.certify(above) {
                bound = above + slack;
                break;
            }
            refused = above;
            gap *= 8.0;
        }
        // Power iteration may have stopped far below λ_max, so that the last gap is wide.
        while bound - refused > WIDTH * refused {
            let middle = refused + 0.5 * (bound - refused);
            match self.certify(middle) {
                Some(slack) => bound = middle + slack,
                None => refused = middle,
            }
        }
        bound + self.error
    }

    fn trace(&self) -> f64 {
        (0..self.size).map(|i| self.entries[i * self.size + i]).sum()
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.entries[i * self.size..][..self.size]
    }

    /// The Rayleigh quotient after some steps of power iteration: at most λ_max, up to rounding.
    fn largest_quotient(&self) -> f64 {
        // Slightly varying, so that no symmetry of the matrix is orthogonal to it.
        let mut vector: Vec<f64> = (0..self.size).map(|i| 1.0 + 1e-3 * (i % 17) as f64).collect();
        let mut quotient = 0.0f64;
        for _ in 0..MAX_STEPS {
            let length = dot(&vector, &vector).sqrt();
            if length == 0.0 {
                break;
            }
            vector.iter_mut().for_each(|v| *v /= length);
            let image: Vec<f64> = (0..self.size).map(|i| dot(self.row(i), &vector)).collect();
            let next = dot(&vector, &image);
            let settled = (next - quotient).abs() <= 1e-12 * next;
            (quotient, vector) = (quotient.max(next), image);
            if settled {
                break;
            }
        }
        // A start that the matrix maps to zero gives no quotient; the largest diagonal entry is a
        // quotient too.
        (0..self.size).map(|i| self.entries[i * self.size + i]).fold(quotient, f64::max)
    }

    /// If c·I − A is positive definite: the amount by which rounding may make c too small. None if it is
    /// not.
    fn certify(&self, c: f64) -> Option<f64> {
        let n = self.size;
        let mut factor: Vec<f64> = Vec::with_capacity(n * n);
        let mut trace = 0.0;
        for i in 0..n {
            // Row i of the factor; entries right of the diagonal are not read.
            let start = factor.len();
            factor.extend(self.row(i).iter().map(|a| -a));
            factor[start + i] += c;
            trace += factor[start + i];
            for j in 0..=i {
                let (before, own) = factor.split_at(start);
                let pivot_row = if j < i { &before[j * n..][..=j] } else { &own[..=j] };
                let rest = own[j] - dot(&pivot_row[..j], &own[..j]);
                let value = if j < i { rest / pivot_row[j] } else { rest };
                if j < i {
                    factor[start + j] = value;
                } else if value > 0.0 {
                    factor[start + i] = value.sqrt();
                } else {
                    return None;
                }
            }
        }
        let steps = (n + 1) as f64 * UNIT;
        Some(2.0 * (steps / (1.0 - steps) * trace + UNIT * c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink::base::rng::{Purpose, stream};
    use proptest::prelude::*;

    /// Q·diag(eigenvalues)·Qᵀ with known eigenvalues, where Q is a product of reflections.
    fn matrix(eigenvalues: &[f64], seed: u64) -> Symmetric {
        let n = eigenvalues.len();
        let mut entries = vec![0.0; n * n];
        (0..n).for_each(|i| entries[i * n + i] = eigenvalues[i]);
        let mut random = stream(seed, Purpose::Test, 0, 0);
        for _ in 0..3 {
            let v: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            let square = dot(&v, &v);
            // A ← H·A·H with H = I − 2vvᵀ/‖v‖².
            let av: Vec<f64> = (0..n).map(|i| dot(&entries[i * n..][..n], &v)).collect();
            let vav = dot(&v, &av);
            for i in 0..n {
                for j in 0..n {
                    entries[i * n + j] += -2.0 / square * (v[i] * av[j] + av[i] * v[j])
                        + 4.0 * vav / (square * square) * v[i] * v[j];
                }
            }
        }
        Symmetric { size: n, entries, error: 0.0 }
    }

    #[test]
    fn a_tiny_gap_does_not_make_the_bound_too_small() {
        // A hundred eigenvalues within 1e-5 of the largest: power iteration stops changing by 1e-10 per
        // step when it is still 1e-6 below. The old rule shows that this is such a case:
        let eigenvalues: Vec<f64> = (0..100).map(|i| 1.0 - 1e-7 * f64::from(i)).collect();
        let matrix = matrix(&eigenvalues, 1);
        let (mut vector, mut before) = (vec![1.0; 100], 0.0);
        let stopped = loop {
            let length = dot(&vector, &vector).sqrt();
            vector.iter_mut().for_each(|v| *v /= length);
            let image: Vec<f64> = (0..100).map(|i| dot(matrix.row(i), &vector)).collect();
            let estimate = dot(&vector, &image);
            vector = image;
            if (estimate - before).abs() <= 1e-10 * estimate {
                break estimate;
            }
            before = estimate;
        };
        assert!(stopped < 1.0 - 1e-6, "{stopped}");
        let ours = matrix.largest_eigenvalue();
        assert!((1.0..1.0 + 1e-4).contains(&ours), "{ours}");
    }

    #[test]
    fn known_matrices_have_their_eigenvalues() {
        let exact = |entries: &[f64], size, expected: f64| {
            let ours = Symmetric { size, entries: entries.to_vec(), error: 0.0 }.largest_eigenvalue();
            assert!(ours >= expected && ours <= expected * (1.0 + 1e-9), "{ours} {expected}");
        };
        exact(&[2.0], 1, 2.0);
        exact(&[2.0, 1.0, 1.0, 2.0], 2, 3.0);
        // The start is orthogonal to (1, −1) and nearly an eigenvector of 1, the smaller one.
        exact(&[2.0, -1.0, -1.0, 2.0], 2, 3.0);
        exact(&[1.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 5.0], 3, 5.0);
        exact(&[0.0; 4], 2, 0.0);
        assert_eq!(Symmetric { size: 0, entries: Vec::new(), error: 0.0 }.largest_eigenvalue(), 0.0);
        assert!(Symmetric { size: 1, entries: vec![f64::NAN], error: 0.0 }.largest_eigenvalue().is_nan());
    }

    proptest! {
        #[test]
        fn the_bound_is_at_least_the_eigenvalue_and_close_to_it(
            mut eigenvalues in prop::collection::vec(0.0..10.0f64, 1..30),
            gap in prop_oneof![Just(0.0), Just(1e-12), Just(1e-9), Just(1e-6), Just(0.1)],
            seed: u64,
        ) {
            let largest = eigenvalues.iter().copied().fold(1e-3, f64::max);
            eigenvalues.push(largest * (1.0 - gap));
            eigenvalues.push(largest);
            let ours = matrix(&eigenvalues, seed).largest_eigenvalue();
            // The matrix itself is exact up to rounding only.
            prop_assert!(ours >= largest * (1.0 - 1e-13), "{} {}", ours, largest);
            prop_assert!(ours <= largest * (1.0 + 1.001 * WIDTH), "{} {}", ours, largest);
        }
    }
}
