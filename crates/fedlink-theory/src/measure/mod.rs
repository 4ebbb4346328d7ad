//! μ, L, Γ and G of a real data set and its split, for ℓ2-regularized softmax regression.
//!
//! This is the model for which the theorem's assumptions hold: F_m is the mean cross-entropy of device m's
//! samples plus (λ/2)‖θ‖².

mod eigenvalue;
mod shard;
mod solve;

use super::check::{Inspection, Problem};
use super::{TheoryError, real, whole};
use fedlink::base::rng::Stream;
use fedlink::base::units::DeviceId;
use fedlink::data::{Dataset, Scaler};
use fedlink::spec::{BatchSize, ConfigError, Spec};
use rayon::prelude::*;
use serde::Serialize;
use shard::Shard;
use solve::{Minimum, dot, minimize};

/// The most samples on all devices together; they are kept in memory.
const MAX_SAMPLES: u64 = 5_000_000;
/// The precision of minima, as a share of the loss at θ = 0.
const PRECISION: f64 = 1e-9;

/// The options that are not in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeasureOptions {
    /// λ, the weight of the regularizer (λ/2)‖θ‖².
    pub lambda: f64,
    /// Images are averaged over squares of this side; 1 leaves them unchanged.
    pub pool: usize,
    /// Rounds of the path on which G is measured.
    pub path_rounds: usize,
}

impl Default for MeasureOptions {
    fn default() -> Self {
        Self { lambda: 0.1, pool: 1, path_rounds: 20 }
    }
}

/// The measured constants of the theorem.
///
/// - μ = λ. (The cross-entropy itself is convex, but not strongly.)
/// - L = λ + ½·λ_max, where λ_max is the largest over the devices of the largest eigenvalue of the mean
///   of x·xᵀ (with the bias' constant 1 in x), bounded from above by a Cholesky factorization. The
///   Hessian of softmax regression is at most half of that matrix, for every class.
/// - Γ = F* − mean F_m*, each minimum found by L-BFGS to the certified `gap` at most.
/// - G² is the largest value of E‖∇F_m(θ, ξ)‖² over all devices m and over the points θ of one path: from
///   θ(0) = 0, in each of `path_rounds` rounds every device takes τ steps along its full gradient at the rate
///   min{1/L, 1, 1/(μτ)}, and the server adds the mean of the updates. The expectation over mini-batches of b
///   out of B samples is exact: ‖∇F_m‖² + (B−b)/(b(B−1))·(mean‖∇f_i‖² − ‖∇F_m‖²). No finite G bounds the
///   gradients of a strongly convex loss on all of space; this one holds on that path.
/// - distance0 = ‖θ*‖², the start being θ(0) = 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Measured {
    /// M.
    pub devices: u64,
    /// d.
    pub dim: u64,
    /// μ.
    pub mu: f64,
    /// L.
    pub l: f64,
    /// Γ.
    pub gamma: f64,
    /// G.
    pub g: f64,
    /// ‖θ(0) − θ*‖².
    pub distance0: f64,
    /// F*.
    pub optimum: f64,
    /// The mean of F_m*.
    pub mean_device_optimum: f64,
    /// The upper bound on the distance of every minimum to its value.
    pub gap: f64,
}

/// ℓ2-regularized softmax regression on the devices of a configuration.
pub struct SoftmaxProblem {
    shards: Vec<Shard>,
    /// Inputs with the bias.
    inputs: usize,
    classes: usize,
    lambda: f64,
    batch: BatchSize,
    start: Vec<f64>,
    optimum: Vec<f64>,
    measured: Measured,
}

impl SoftmaxProblem {
    /// Gives every device its samples and measures all constants. `spec` gives the data, their split, the
    /// size of a mini-batch, τ and the seed; its model and optimizer are ignored.
    pub fn new(spec: &Spec, dataset: &Dataset, options: MeasureOptions) -> Result<Self, TheoryError> {
        let MeasureOptions { lambda, pool, path_rounds } = options;
        real("lambda", lambda, |x| (1e-9..=1e9).contains(&x), "above 0 (in 1e-9..=1e9)")?;
        whole("path_rounds", path_rounds as u64, 1..=10_000, "")?;
        let samples = spec.data.devices.saturating_mul(spec.data.samples_per_device);
        if samples > MAX_SAMPLES {
            let problem =
                format!("makes {samples} samples on all devices; at most {MAX_SAMPLES} can be measured");
            return Err(ConfigError::new("data.devices", problem).into());
        }
        let (shards, inputs) = shards(spec, dataset, pool)?;
        let dim = inputs * dataset.classes;
        let mut problem = Self {
            shards,
            inputs,
            classes: dataset.classes,
            lambda,
            batch: spec.learn.batch,
            start: vec![0.0; dim],
            optimum: Vec::new(),
            measured: Measured {
                devices: spec.data.devices,
                dim: dim as u64,
                mu: lambda,
                l: 0.0,
                gamma: 0.0,
                g: 0.0,
                distance0: 0.0,
                optimum: 0.0,
                mean_device_optimum: 0.0,
                gap: 0.0,
            },
        };
        problem.measure(spec.learn.local_steps, path_rounds)?;
        Ok(problem)
    }

    /// The measured constants.
    pub fn measured(&self) -> &Measured {
        &self.measured
    }

    fn measure(&mut self, tau: u64, path_rounds: usize) -> Result<(), TheoryError> {
        let eigenvalues: Vec<f64> =
            self.shards.par_iter().map(|shard| shard.largest_eigenvalue(self.inputs)).collect();
        let l = self.lambda + 0.5 * eigenvalues.into_iter().fold(0.0, f64::max);
        let tolerance = PRECISION * libm::log(self.classes as f64);
        let found = |what: String, minimum: Minimum| {
            let (gap, allowed) = (minimum.gap, tolerance);
            // A NaN has not converged either.
            if gap <= allowed { Ok(minimum) } else { Err(TheoryError::NotConverged { what, gap, allowed }) }
        };
        let own = |m: usize| {
            let loss = |theta: &[f64], gradient: &mut [f64]| self.full(m, theta, gradient).loss;
            found(format!("device {m}"), minimize(&self.start, self.lambda, tolerance, loss))
        };
        let minima: Vec<Minimum> =
            (0..self.shards.len()).into_par_iter().map(own).collect::<Result<_, _>>()?;
        let common =
            minimize(&self.start, self.lambda, tolerance, |theta, gradient| self.mean(theta, gradient));
        let common = found("all devices together".into(), common)?;
        let count = minima.len() as f64;
        let mean_device_optimum = minima.iter().map(|minimum| minimum.value).sum::<f64>() / count;
        let gap = minima.iter().map(|minimum| minimum.gap).fold(common.gap, f64::max);
        let g = self.largest_gradient(tau, path_rounds, l);
        self.measured = Measured {
            l,
            // A difference of zero may be computed as negative, within the gap.
            gamma: (common.value - mean_device_optimum).max(0.0),
            g,
            distance0: dot(&common.point, &common.point),
            optimum: common.value,
            mean_device_optimum,
            gap,
            ..self.measured.clone()
        };
        self.optimum = common.point;
        Ok(())
    }

    fn full(&self, device: usize, theta: &[f64], gradient: &mut [f64]) -> shard::Pass {
        let shard = &self.shards[device];
        shard.pass(0..shard.len(), theta, (self.classes, self.lambda), gradient)
    }

    /// F and ∇F: the means over the devices, summed in their order.
    fn mean(&self, theta: &[f64], gradient: &mut [f64]) -> f64 {
        let own = |m: usize| {
            let mut gradient = vec![0.0; theta.len()];
            (self.full(m, theta, &mut gradient).loss, gradient)
        };
        let parts: Vec<(f64, Vec<f64>)> = (0..self.shards.len()).into_par_iter().map(own).collect();
        gradient.fill(0.0);
        for (_, part) in &parts {
            gradient.iter_mut().zip(part).for_each(|(sum, g)| *sum += g / parts.len() as f64);
        }
        parts.iter().map(|(loss, _)| loss).sum::<f64>() / parts.len() as f64
    }

    /// G on the path that [`Measured`] describes.
    fn largest_gradient(&self, tau: u64, rounds: usize, l: f64) -> f64 {
        let rate = f64::min(1.0 / l, super::bound::largest_rate(self.lambda, tau));
        let mut theta = self.start.clone();
        let mut largest = 0.0f64;
        for _ in 0..rounds {
            let train = |m: usize| {
                let (mut local, mut gradient) = (theta.clone(), vec![0.0; theta.len()]);
                let mut largest = 0.0f64;
                for _ in 0..tau {
                    let pass = self.full(m, &local, &mut gradient);
                    largest = largest.max(self.mean_square(m, &pass, &gradient));
                    local.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= rate * g);
                }
                (largest, local)
            };
            let trained: Vec<(f64, Vec<f64>)> = (0..self.shards.len()).into_par_iter().map(train).collect();
            theta.fill(0.0);
            for (square, local) in &trained {
                largest = largest.max(*square);
                theta.iter_mut().zip(local).for_each(|(w, own)| *w += own / trained.len() as f64);
            }
        }
        largest.sqrt()
    }

    /// E‖∇F_m(θ, ξ)‖² over mini-batches drawn without replacement.
    fn mean_square(&self, device: usize, pass: &shard::Pass, gradient: &[f64]) -> f64 {
        let (all, rows) = (self.shards[device].len() as f64, self.rows(device) as f64);
        let square = dot(gradient, gradient);
        if rows >= all {
            return square;
        }
        square + (all - rows) / (rows * (all - 1.0)) * (pass.mean_square - square).max(0.0)
    }

    /// Samples in a mini-batch of the device.
    fn rows(&self, device: usize) -> usize {
        let all = self.shards[device].len();
        match self.batch {
            BatchSize::Full => all,
            BatchSize::Count(count) => all.min(count as usize),
        }
    }
}

impl Problem for SoftmaxProblem {
    fn devices(&self) -> usize {
        self.shards.len()
    }

    fn mu(&self) -> f64 {
        self.measured.mu
    }

    fn l(&self) -> f64 {
        self.measured.l
    }

    fn gamma(&self) -> f64 {
        self.measured.gamma
    }

    fn start(&self) -> &[f64] {
        &self.start
    }

    fn optimum(&self) -> &[f64] {
        &self.optimum
    }

    fn inspect(&self, device: usize, theta: &[f64], scratch: &mut [f64]) -> Inspection {
        let pass = self.full(device, theta, scratch);
        Inspection { loss: pass.loss, mean_square: self.mean_square(device, &pass, scratch) }
    }

    fn gradient(&self, device: usize, theta: &[f64], rng: &mut Stream, out: &mut [f64]) {
        let shard = &self.shards[device];
        let mut rows: Vec<usize> = (0..shard.len()).collect();
        let count = self.rows(device);
        rng.shuffle_prefix(&mut rows, count);
        shard.pass(rows[..count].iter().copied(), theta, (self.classes, self.lambda), out);
    }
}

/// Every device's samples, and the number of inputs with the bias.
fn shards(spec: &Spec, dataset: &Dataset, pool: usize) -> Result<(Vec<Shard>, usize), TheoryError> {
    let [height, width, channels] = dataset.shape;
    if pool == 0 || height % pool != 0 || width % pool != 0 {
        let allowed = format!("at least 1 and divide the images' {height} × {width}");
        return Err(TheoryError::Parameter { name: "pool", value: pool.to_string(), allowed });
    }
    let scaler = Scaler::new(dataset, spec.data.scaling);
    let split = spec.partition(dataset)?;
    let pooled = (height / pool) * (width / pool) * channels;
    let shard = |m: usize| {
        let (mut samples, mut row) = (Vec::new(), vec![0.0f32; dataset.features]);
        split.samples_of(DeviceId(m as u32), &mut samples);
        let mut shard = Shard::default();
        let mut inputs = vec![0.0; pooled];
        for sample in samples {
            scaler.write(&dataset.train, sample as usize, &mut row);
            inputs.fill(0.0);
            for (i, &value) in row.iter().enumerate() {
                let (pixel, channel) = (i / channels, i % channels);
                let (y, x) = (pixel / width / pool, pixel % width / pool);
                inputs[(y * (width / pool) + x) * channels + channel] +=
                    f64::from(value) / (pool * pool) as f64;
            }
            shard.push(&inputs, dataset.train.labels[sample as usize]);
        }
        shard
    };
    Ok(((0..spec.data.devices as usize).into_par_iter().map(shard).collect(), pooled + 1))
}

#[cfg(test)]
mod tests;
