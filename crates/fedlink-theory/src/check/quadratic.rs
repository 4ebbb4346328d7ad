//! Quadratic losses, with all constants in closed form.

use super::{Inspection, Problem};
use crate::{TheoryError, real, whole};
use fedlink::base::rng::{Purpose, Stream, stream};
use serde::Serialize;

/// The parameters of a [`Quadratic`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QuadraticParameters {
    /// M.
    pub devices: u64,
    /// d.
    pub dim: u64,
    /// μ, the least curvature.
    pub mu: f64,
    /// L, the greatest curvature.
    pub l: f64,
    /// Standard deviation of each entry of a device's own optimum c_m.
    pub spread: f64,
    /// E‖ξ‖² of the gradient's noise.
    pub noise: f64,
    /// ‖θ(0) − θ*‖².
    pub distance0: f64,
    /// The seed of the curvatures and the optima.
    pub seed: u64,
}

/// F_m(θ) = ½·(θ − c_m)ᵀ·diag(s_m)·(θ − c_m), with gradients diag(s_m)(θ − c_m) + ξ.
///
/// The curvatures s_m are evenly spaced in logarithm between μ and L, in an order of its own on each
/// device, so that each F_m has both as extreme curvatures; c_m is normal. Every entry of ξ is +1 or −1
/// with equal probability times √(noise/d), so E‖∇F_m(θ, ξ)‖² = ‖s_m∘(θ − c_m)‖² + noise. Then θ* = Σ
/// s_m∘c_m / Σ s_m, entry by entry, F_m* = 0, and Γ = F(θ*). The start is θ* plus a vector of equal
/// entries with the given length.
pub struct Quadratic {
    parameters: QuadraticParameters,
    /// s_m and c_m of each device.
    devices: Vec<(Vec<f64>, Vec<f64>)>,
    start: Vec<f64>,
    optimum: Vec<f64>,
    gamma: f64,
}

impl Quadratic {
    /// Checks the parameters and draws the devices.
    pub fn new(parameters: QuadraticParameters) -> Result<Self, TheoryError> {
        let QuadraticParameters { devices, dim, mu, l, spread, noise, distance0, seed } = parameters;
        whole("devices", devices, 1..=10_000, "")?;
        let max = (10_000_000 / devices).min(10_000);
        whole("dim", dim, 2..=max, &format!(" for {devices} devices"))?;
        real("mu", mu, |x| (1e-9..=1e9).contains(&x), "above 0 (in 1e-9..=1e9)")?;
        real("l", l, |x| (mu..=1e9).contains(&x), &format!("at least mu = {mu} (and at most 1e9)"))?;
        for (name, value) in [("spread", spread), ("noise", noise), ("distance0", distance0)] {
            real(name, value, |x| (0.0..=1e9).contains(&x), "at least 0 (and at most 1e9)")?;
        }
        let size = dim as usize;
        let spectrum = |i: usize| mu * libm::pow(l / mu, i as f64 / (size - 1) as f64);
        let device = |m: u64| {
            let mut rng = stream(seed, Purpose::Init, 0, m);
            let mut curvatures: Vec<f64> = (0..size).map(spectrum).collect();
            rng.shuffle(&mut curvatures);
            (curvatures, (0..size).map(|_| spread * rng.normal()).collect())
        };
        let devices: Vec<(Vec<f64>, Vec<f64>)> = (0..devices).map(device).collect();
        let entry = |i: usize| {
            let weighted: f64 = devices.iter().map(|(s, c)| s[i] * c[i]).sum();
            weighted / devices.iter().map(|(s, _)| s[i]).sum::<f64>()
        };
        let optimum: Vec<f64> = (0..size).map(entry).collect();
        let start = optimum.iter().map(|x| x + (distance0 / dim as f64).sqrt()).collect();
        let count = devices.len() as f64;
        let mut quadratic = Self { parameters, devices, start, optimum, gamma: 0.0 };
        let losses = 0..quadratic.devices.len();
        quadratic.gamma = losses.map(|m| quadratic.loss(m, &quadratic.optimum)).sum::<f64>() / count;
        Ok(quadratic)
    }

    fn loss(&self, device: usize, theta: &[f64]) -> f64 {
        let (s, c) = &self.devices[device];
        0.5 * theta.iter().zip(s).zip(c).map(|((x, s), c)| s * (x - c) * (x - c)).sum::<f64>()
    }
}

impl Problem for Quadratic {
    fn devices(&self) -> usize {
        self.devices.len()
    }

    fn mu(&self) -> f64 {
        self.parameters.mu
    }

    fn l(&self) -> f64 {
        self.parameters.l
    }

    fn gamma(&self) -> f64 {
        self.gamma
    }

    fn start(&self) -> &[f64] {
        &self.start
    }

    fn optimum(&self) -> &[f64] {
        &self.optimum
    }

    fn inspect(&self, device: usize, theta: &[f64], _: &mut [f64]) -> Inspection {
        let (s, c) = &self.devices[device];
        let slopes = theta.iter().zip(s).zip(c).map(|((x, s), c)| s * (x - c));
        let mean_square = slopes.map(|g| g * g).sum::<f64>() + self.parameters.noise;
        Inspection { loss: self.loss(device, theta), mean_square }
    }

    fn gradient(&self, device: usize, theta: &[f64], rng: &mut Stream, out: &mut [f64]) {
        let (s, c) = &self.devices[device];
        let size = (self.parameters.noise / theta.len() as f64).sqrt();
        let mut signs = 0;
        for (i, out) in out.iter_mut().enumerate() {
            if i % 64 == 0 {
                signs = rng.bits();
            }
            let noise = if signs >> (i % 64) & 1 == 0 { size } else { -size };
            *out = s[i] * (theta[i] - c[i]) + noise;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quadratic() -> Quadratic {
        let parameters = QuadraticParameters {
            devices: 6,
            dim: 9,
            mu: 0.5,
            l: 4.0,
            spread: 1.5,
            noise: 2.0,
            distance0: 20.0,
            seed: 3,
        };
        Quadratic::new(parameters).unwrap()
    }

    #[test]
    fn the_mean_gradient_vanishes_at_the_optimum_and_gamma_is_the_loss_there() {
        let quadratic = quadratic();
        let mean = |theta: &[f64]| (0..6).map(|m| quadratic.loss(m, theta)).sum::<f64>() / 6.0;
        let lowest = mean(&quadratic.optimum);
        for i in 0..9 {
            for shift in [1e-3, -1e-3] {
                let mut moved = quadratic.optimum.clone();
                moved[i] += shift;
                assert!(mean(&moved) > lowest);
            }
        }
        assert!((quadratic.gamma() - lowest).abs() < 1e-15 && lowest > 0.0);
        let apart: f64 = quadratic.start.iter().zip(&quadratic.optimum).map(|(a, b)| (a - b).powi(2)).sum();
        assert!((apart - 20.0).abs() < 1e-12);
    }

    #[test]
    fn gradients_are_unbiased_and_as_long_as_documented() {
        let quadratic = quadratic();
        let mut rng = stream(0, Purpose::Test, 0, 0);
        let (mut mean, mut squares, mut out) = (vec![0.0; 9], 0.0, vec![0.0; 9]);
        let draws = 20_000;
        for _ in 0..draws {
            quadratic.gradient(2, &quadratic.start, &mut rng, &mut out);
            mean.iter_mut().zip(&out).for_each(|(sum, g)| *sum += g / f64::from(draws));
            squares += out.iter().map(|g| g * g).sum::<f64>() / f64::from(draws);
        }
        let (s, c) = &quadratic.devices[2];
        // Each entry is its mean ± √(2/9): five standard errors.
        let slack = 5.0 * (2.0f64 / 9.0 / f64::from(draws)).sqrt();
        for i in 0..9 {
            assert!((mean[i] - s[i] * (quadratic.start[i] - c[i])).abs() < slack);
        }
        let exact = quadratic.inspect(2, &quadratic.start, &mut out).mean_square;
        assert!((squares / exact - 1.0).abs() < 0.01, "{squares} {exact}");
        let extremes = s.iter().fold((f64::MAX, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)));
        assert!((extremes.0 - 0.5).abs() < 1e-12 && (extremes.1 - 4.0).abs() < 1e-12);
    }
}
