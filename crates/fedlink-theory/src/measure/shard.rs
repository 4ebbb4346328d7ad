//! One device's samples and the softmax loss on them, in double precision.

use super::eigenvalue::Symmetric;
use super::solve::dot;

/// The most rows of a matrix that is factored: 134 MB, and some seconds.
const MAX_FACTORED: usize = 4096;

/// Samples as their non-zero inputs; the last input of every sample is the constant 1 of the bias.
#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    /// The start of sample i in `indices` and `values`, and the end of the last.
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
    labels: Vec<u8>,
}

/// The results of a pass over samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    /// The mean of f_i(θ).
    pub loss: f64,
    /// The mean of ‖∇f_i(θ)‖².
    pub mean_square: f64,
}

impl Shard {
    /// Adds a sample.
    pub fn push(&mut self, inputs: &[f64], label: u8) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        for (index, &value) in inputs.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            self.indices.push(index as u32);
            self.values.push(value);
        }
        self.indices.push(inputs.len() as u32);
        self.values.push(1.0);
        self.labels.push(label);
        self.starts.push(self.indices.len());
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// The regularized loss f_i(θ) = −ln p(label | x_i) + (λ/2)‖θ‖² over `rows`, its mean and, in `gradient`,
    /// the mean of its gradients. θ has `classes` weights for each input, one input after the other.
    ///
    /// With e = p − onehot and z the logits, ‖∇f_i‖² = ‖e‖²‖x‖² + 2λ·e·z + λ²‖θ‖², so the norms need no
    /// further pass.
    pub fn pass(
        &self,
        rows: impl ExactSizeIterator<Item = usize>,
        theta: &[f64],
        (classes, lambda): (usize, f64),
        gradient: &mut [f64],
    ) -> Pass {
        let count = rows.len() as f64;
        let size = dot(theta, theta);
        let mut sum = Pass { loss: 0.0, mean_square: 0.0 };
        gradient.iter_mut().for_each(|g| *g = 0.0);
        let mut logits = vec![0.0; classes];
        let mut error = vec![0.0; classes];
        for i in rows {
            let (indices, values) = self.row(i);
            logits.fill(0.0);
            for (&index, &x) in indices.iter().zip(values) {
                let weights = &theta[index as usize * classes..][..classes];
                logits.iter_mut().zip(weights).for_each(|(z, w)| *z += x * w);
            }
            let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            error.iter_mut().zip(&logits).for_each(|(e, z)| *e = libm::exp(z - largest));
            let total: f64 = error.iter().sum();
            let label = usize::from(self.labels[i]);
            sum.loss += libm::log(total) - (logits[label] - largest);
            error.iter_mut().for_each(|e| *e /= total);
            error[label] -= 1.0;
            for (&index, &x) in indices.iter().zip(values) {
                let slopes = &mut gradient[index as usize * classes..][..classes];
                slopes.iter_mut().zip(&error).for_each(|(g, e)| *g += x * e);
            }
            sum.mean_square += dot(&error, &error) * dot(values, values)
                + 2.0 * lambda * dot(&error, &logits)
                + lambda * lambda * size;
        }
        gradient.iter_mut().zip(theta).for_each(|(g, w)| *g = *g / count + lambda * w);
        Pass { loss: sum.loss / count + 0.5 * lambda * size, mean_square: sum.mean_square / count }
    }

    /// An upper bound on λ_max of the mean of x·xᵀ (see [`eigenvalue`](super::eigenvalue)).
    ///
    /// X·Xᵀ/B has the same largest eigenvalue as XᵀX/B; the smaller of the two is formed. Every entry is
    /// a sum of at most `max(B, inputs)` products, so the error of the whole matrix is at most that many
    /// roundings of its trace.
    pub fn largest_eigenvalue(&self, inputs: usize) -> f64 {
        let (size, terms) = (inputs.min(self.len()), inputs.max(self.len()));
        if size > MAX_FACTORED {
            return self.largest_ratio(inputs);
        }
        let samples = self.len() as f64;
        let mut entries = vec![0.0; size * size];
        if inputs <= self.len() {
            for i in 0..self.len() {
                let (indices, values) = self.row(i);
                for (&p, x) in indices.iter().zip(values) {
                    let row = &mut entries[p as usize * size..][..size];
                    indices.iter().zip(values).for_each(|(&q, y)| row[q as usize] += x * y / samples);
                }
            }
        } else {
            let mut dense = vec![0.0; inputs];
            for i in 0..size {
                let (indices, values) = self.row(i);
                indices.iter().zip(values).for_each(|(&p, x)| dense[p as usize] = *x);
                for j in 0..=i {
                    let (others, weights) = self.row(j);
                    let along: f64 = others.iter().zip(weights).map(|(&p, y)| dense[p as usize] * y).sum();
                    entries[i * size + j] = along / samples;
                    entries[j * size + i] = along / samples;
                }
                indices.iter().for_each(|&p| dense[p as usize] = 0.0);
            }
        }
        let trace: f64 = (0..size).map(|i| entries[i * size + i]).sum();
        let error = 2.0 * (terms + 3) as f64 * f64::EPSILON * trace;
        Symmetric { size, entries, error }.largest_eigenvalue()
    }

    /// An upper bound on λ_max, for matrices too large to be factored: with |X| for X, whose λ_max is no
    /// smaller, max_i (|X|ᵀ|X|v)_i/(B·v_i) for a positive vector v (Collatz and Wielandt). It is tight if
    /// no input is negative, as in images.
    fn largest_ratio(&self, inputs: usize) -> f64 {
        let mut vector = vec![1.0f64; inputs];
        let mut least = f64::INFINITY;
        for _ in 0..100 {
            let mut image = vec![0.0f64; inputs];
            for i in 0..self.len() {
                let (indices, values) = self.row(i);
                let along: f64 = indices.iter().zip(values).map(|(&p, x)| x.abs() * vector[p as usize]).sum();
                indices.iter().zip(values).for_each(|(&p, x)| image[p as usize] += along * x.abs());
            }
            image.iter_mut().for_each(|v| *v /= self.len() as f64);
            let ratios = image.iter().zip(&vector).map(|(image, v)| image / v);
            least = least.min(ratios.fold(0.0, f64::max));
            let largest = image.iter().copied().fold(0.0, f64::max);
            // Any positive vector is valid, so no entry may vanish.
            vector = image.iter().map(|v| (v / largest).max(1e-100)).collect();
        }
        // Nested sums of that many terms, and a quotient.
        least * (1.0 + 2.0 * (inputs + self.len() + 4) as f64 * f64::EPSILON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink::base::rng::{Purpose, stream};

    fn shard() -> Shard {
        let mut stream = stream(1, Purpose::Test, 0, 0);
        let mut shard = Shard::default();
        for i in 0..9 {
            let inputs: Vec<f64> =
                (0..4).map(|j| if (i + j) % 3 == 0 { 0.0 } else { stream.normal() }).collect();
            shard.push(&inputs, (i % 3) as u8);
        }
        shard
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_loss_and_the_norms_are_those_of_single_samples() {
        let (shard, dim, kind) = (shard(), 15, (3, 0.3));
        let theta: Vec<f64> = (0..dim).map(|i| 0.2 * f64::from(i % 5) - 0.3).collect();
        let mut gradient = vec![0.0; dim as usize];
        let pass = shard.pass(0..9, &theta, kind, &mut gradient);
        let mut other = gradient.clone();
        for i in 0..dim as usize {
            let mut loss_at = |shift: f64| {
                let mut moved = theta.clone();
                moved[i] += shift;
                shard.pass(0..9, &moved, kind, &mut other).loss
            };
            let slope = (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5;
            assert!((slope - gradient[i]).abs() < 1e-8, "{i}: {slope} {}", gradient[i]);
        }
        let mut squares = 0.0;
        for i in 0..9 {
            shard.pass([i].into_iter(), &theta, kind, &mut other);
            squares += dot(&other, &other) / 9.0;
        }
        assert!((squares / pass.mean_square - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_eigenvalue_is_the_largest_rayleigh_quotient() {
        // mean of x·xᵀ for x = (1, 0, 1), (0, 2, 1): by hand [[½, 0, ½], [0, 2, 1], [½, 1, 1]].
        let mut shard = Shard::default();
        shard.push(&[1.0, 0.0], 0);
        shard.push(&[0.0, 2.0], 1);
        let largest = shard.largest_eigenvalue(3);
        // Its characteristic polynomial x³ − 3.5x² + 2.25x vanishes at 0 and (3.5 ± √3.25)/2.
        let exact = f64::midpoint(3.5, 3.25f64.sqrt());
        assert!(largest >= exact && largest < exact + 1e-8, "{largest}");
        // With more samples than inputs the other product is formed; repeated samples have the same mean.
        for _ in 0..3 {
            shard.push(&[1.0, 0.0], 0);
            shard.push(&[0.0, 2.0], 1);
        }
        let largest = shard.largest_eigenvalue(3);
        assert!(largest >= exact && largest < exact + 1e-8, "{largest}");
    }

    #[test]
    fn the_bound_by_ratios_is_valid_and_tight_without_negative_inputs() {
        let mut shard = Shard::default();
        shard.push(&[1.0, 0.0, 0.0], 0);
        shard.push(&[0.0, 2.0, 0.0], 1);
        let exact = f64::midpoint(3.5, 3.25f64.sqrt());
        let bound = shard.largest_ratio(4);
        assert!(bound >= exact && bound < exact * (1.0 + 1e-9), "{bound}");
        let signed = self::shard();
        assert!(signed.largest_ratio(5) >= signed.largest_eigenvalue(5) * (1.0 - 1e-9));
    }

    #[test]
    fn both_products_bound_every_rayleigh_quotient() {
        let few = shard();
        let mut random = stream(2, Purpose::Test, 0, 0);
        let bound = few.largest_eigenvalue(5);
        for _ in 0..2000 {
            let v: Vec<f64> = (0..5).map(|_| random.normal()).collect();
            let along = |i: usize| {
                let (indices, values) = few.row(i);
                indices.iter().zip(values).map(|(&p, x)| x * v[p as usize]).sum::<f64>()
            };
            let quotient = (0..9).map(|i| along(i) * along(i)).sum::<f64>() / 9.0 / dot(&v, &v);
            assert!(quotient <= bound, "{quotient} {bound}");
        }
    }
}
