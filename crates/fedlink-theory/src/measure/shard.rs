//! One device's samples and the softmax loss on them, in double precision.

use super::solve::dot;

/// Samples as their non-zero inputs; the last input of every sample is the constant 1 of the bias.
#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    /// Where sample i starts in `indices` and `values`; one more than there are samples.
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

    /// How many samples there are.
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
    /// With e = p − onehot and z the logits, ‖∇f_i‖² = ‖e‖²‖x‖² + 2λ·e·z + λ²‖θ‖², so the
    /// norms cost nothing more.
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

    /// λ_max of the mean of x·xᵀ by power iteration, to about nine digits (from below).
    pub fn largest_eigenvalue(&self, inputs: usize) -> f64 {
        // Not quite constant, so that no symmetry of the data is orthogonal to it.
        let mut vector: Vec<f64> = (0..inputs).map(|i| 1.0 + 1e-3 * (i % 17) as f64).collect();
        let mut eigenvalue = 0.0;
        for _ in 0..2000 {
            let length = dot(&vector, &vector).sqrt();
            vector.iter_mut().for_each(|v| *v /= length);
            let mut image = vec![0.0; inputs];
            for i in 0..self.len() {
                let (indices, values) = self.row(i);
                let along: f64 = indices.iter().zip(values).map(|(&p, x)| x * vector[p as usize]).sum();
                indices.iter().zip(values).for_each(|(&p, x)| image[p as usize] += along * x);
            }
            image.iter_mut().for_each(|v| *v /= self.len() as f64);
            let estimate = dot(&vector, &image);
            vector = image;
            if (estimate - eigenvalue).abs() <= 1e-10 * estimate {
                return estimate;
            }
            eigenvalue = estimate;
        }
        eigenvalue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink::rng::{Purpose, stream};

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
        assert!((largest - f64::midpoint(3.5, 3.25f64.sqrt())).abs() < 1e-8, "{largest}");
    }
}
