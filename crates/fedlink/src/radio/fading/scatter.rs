//! Complex amplitudes CN(0, 1) of scattered paths, in any round alone.

use super::Memory;
use super::estimate::complex_normal;
use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;
use std::f64::consts::{PI, TAU};
use std::sync::OnceLock;

/// Sinusoids that make up one path of a moving device.
pub const WAVES: usize = 32;
/// Bytes that angles and phases of sinusoids may take; those of further devices are drawn at each use.
const CACHE_BYTES: usize = 64 << 20;

/// The amplitudes of the paths of all devices: for each device the same number of paths, independent of each
/// other and of those of all other devices, each CN(0, 1) and over the rounds as [`Memory`] has it.
///
/// - Independent: two normals for each path from the one stream (Channel, t, device).
/// - Gauss–Markov: the [bridge] over innovations, two normals from (Innovation, round, device) of path 0;
///   path p > 0 takes the stream of the "device" `device + p·2³²`. At ρ = 0 rounds are independent, though
///   not with the draws of independent rounds.
/// - Doppler: h(τ) = N^(−1/2) Σ_{n=1..N} exp{j(2πf_D·τ·cos(2πn/N + θ_n) + φ_n)} at any time τ, with N = 32,
///   θ_n ~ U(−π/N, π/N) and φ_n ~ U(−π, π) from (FadingPhases, path, device). Of the amplitudes the
///   correlation J₀(2πf_D·Δ) is exact for every N; the marginal law is nearly that of CN(0, 1): E|h|⁴ = 2 −
///   1/N, |h|² ≤ N, and the mean of the largest of 40 gains is 2 % low. So is the covariance of gains: J₀² −
///   N⁻²·Σ_n |E_n|² with E_n = E e^(j·2πf_D·Δ·cos(2πn/N + θ_n)), up to 1/N = 0.031 below the J₀² of Rayleigh
///   fading (0.031 where J₀ is first 0, 0.003 at 2πf_D·Δ = 100). Source: Xiao, Zheng and Beaulieu, "Novel
///   sum-of-sinusoids simulation models for Rayleigh and Rician fading channels" (2006), in the form that
///   Sionna's `tdl.py` cites.
pub struct Scatter {
    seed: u64,
    paths: usize,
    process: Process,
}

enum Process {
    Independent,
    GaussMarkov(Correlation),
    Doppler(Sinusoids),
}

impl Scatter {
    /// The source of `paths` paths for each of `devices` devices; the numbers of `memory` must have passed
    /// [`Propagation::check`](super::Propagation::check).
    pub fn new(seed: u64, memory: Memory, paths: usize, devices: usize) -> Self {
        let process = match memory {
            Memory::Independent => Process::Independent,
            Memory::GaussMarkov { correlation } => Process::GaussMarkov(Correlation::new(correlation)),
            Memory::Doppler { hertz, period_s } => {
                let cached = CACHE_BYTES / (paths.max(1) * WAVES * size_of::<Wave>());
                let waves = (0..devices.min(cached)).map(|_| OnceLock::new()).collect();
                Process::Doppler(Sinusoids { pulsation: TAU * hertz, period_s, waves })
            }
        };
        Self { seed, paths, process }
    }

    /// Gives index and amplitude (real, imaginary) of every path of `device` in round `t`, in order, to
    /// `each`; `delay_s` seconds earlier if time is continuous, which it is under Doppler alone.
    pub fn for_each(&self, t: u64, delay_s: f64, device: DeviceId, mut each: impl FnMut(usize, [f64; 2])) {
        let m = u64::from(device.0);
        match &self.process {
            Process::Independent => {
                let mut rng = stream(self.seed, Purpose::Channel, t, m);
                (0..self.paths).for_each(|path| each(path, complex_normal(&mut rng)));
            }
            Process::GaussMarkov(correlation) => {
                for path in 0..self.paths {
                    let key = m | (path as u64) << 32;
                    let innovation =
                        |round| complex_normal(&mut stream(self.seed, Purpose::Innovation, round, key));
                    each(path, bridge(t, correlation, innovation));
                }
            }
            Process::Doppler(sinusoids) => {
                let angle = sinusoids.angle(t, delay_s);
                match sinusoids.waves.get(device.index()) {
                    Some(cache) => {
                        let draw =
                            || (0..self.paths).flat_map(|path| waves(self.seed, path as u64, m)).collect();
                        let waves = cache.get_or_init(draw).chunks_exact(WAVES);
                        waves.enumerate().for_each(|(path, waves)| each(path, sum(waves, angle)));
                    }
                    None => (0..self.paths)
                        .for_each(|path| each(path, sum(&waves(self.seed, path as u64, m), angle))),
                }
            }
        }
    }

    /// The unit phasor of the line of sight of `device`: 1 where time is not continuous; under Doppler that
    /// of one wave from a direction of its own, exp{j(2πf_D·τ·cos θ₀ + φ₀)}, θ₀ and φ₀ ~ U(−π, π).
    pub fn line_of_sight(&self, t: u64, delay_s: f64, device: DeviceId) -> [f64; 2] {
        let Process::Doppler(sinusoids) = &self.process else { return [1.0, 0.0] };
        let mut rng = stream(self.seed, Purpose::FadingPhases, u64::MAX, u64::from(device.0));
        let speed = libm::cos(rng.between(-PI, PI));
        let (im, re) = libm::sincos(sinusoids.angle(t, delay_s) * speed + rng.between(-PI, PI));
        [re, im]
    }

    /// Whether time is continuous.
    pub fn is_continuous(&self) -> bool {
        matches!(self.process, Process::Doppler(_))
    }
}

/// ρ of a Gauss–Markov process, |ρ| < 1.
#[derive(Clone, Copy, Debug)]
pub struct Correlation {
    /// ln|ρ|, −∞ for 0.
    ln: f64,
    is_negative: bool,
}

impl Correlation {
    /// ρ = `rho`.
    pub fn new(rho: f64) -> Self {
        Self { ln: libm::log(rho.abs()), is_negative: rho < 0.0 }
    }

    /// |ρ|^k.
    fn power(&self, k: u64) -> f64 {
        libm::exp(k as f64 * self.ln)
    }

    /// 1 − ρ^(2k), without the cancellation that a ρ near 1 would bring.
    fn rest(&self, k: u64) -> f64 {
        -libm::expm1(2.0 * k as f64 * self.ln)
    }
}

/// h(t) of the stationary process h(t) = ρ·h(t−1) + √(1−ρ²)·w(t), by the dyadic bridge: from at most
/// 2·⌊log2 t⌋ + 3 innovations instead of t + 1.
///
/// ```text
/// h(0)  = w(0),  h(1) = ρ·h(0) + √(1−ρ²)·w(1)
/// h(2k) = ρ^k·h(k) + √(1−ρ^(2k))·w(2k)                  for k = 1, 2, 4, …
/// h(c)  = A·h(a) + B·h(b) + √V·w(c),  c = (a+b)/2       from (a, b) = (2^j, 2^(j+1)) on, halved until c = t
/// A = ρ^(c−a)·(1−ρ^(2(b−c)))/D,   B = ρ^(b−c)·(1−ρ^(2(c−a)))/D
/// V = (1−ρ^(2(c−a)))·(1−ρ^(2(b−c)))/D,   D = 1−ρ^(2(b−a))
/// ```
///
/// The process is a Gaussian Markov chain, so that given both ends of an interval its middle depends on
/// nothing outside; a ρ < 0 is |ρ| with every second sign turned. `innovation` gives w(i), N numbers that
/// each go through the same recursion, of variance 1. Rounds from 2⁶² on are treated as 2⁶².
pub fn bridge<const N: usize>(
    t: u64,
    correlation: &Correlation,
    mut innovation: impl FnMut(u64) -> [f64; N],
) -> [f64; N] {
    let t = t.min(1 << 62);
    let sign = if correlation.is_negative && t % 2 == 1 { -1.0 } else { 1.0 };
    if t == 0 || correlation.ln == f64::NEG_INFINITY {
        return innovation(t);
    }
    // h(i + k) from h(i), the value `from`.
    let step = |from: [f64; N], k: u64, w: [f64; N]| {
        let (factor, deviation) = (correlation.power(k), libm::sqrt(correlation.rest(k)));
        std::array::from_fn(|i| factor * from[i] + deviation * w[i])
    };
    let mut left = innovation(0);
    left = step(left, 1, innovation(1));
    let mut a = 1;
    while 2 * a <= t {
        left = step(left, a, innovation(2 * a));
        a *= 2;
    }
    if a == t {
        return left.map(|x| sign * x);
    }
    let mut b = 2 * a;
    let mut right = step(left, a, innovation(b));
    loop {
        let half = (b - a) / 2;
        let (c, w) = (a + half, innovation(a + half));
        // Both halves are equally long, so A = B = ρ^h·(1−ρ^(2h))/D = ρ^h/(1+ρ^(2h)), with D the product of
        // 1−ρ^(2h) and 1+ρ^(2h); V likewise.
        let power = correlation.power(half);
        let weight = power / (1.0 + power * power);
        let deviation = libm::sqrt(correlation.rest(half) / (1.0 + power * power));
        let middle = std::array::from_fn(|i| weight * (left[i] + right[i]) + deviation * w[i]);
        if c == t {
            return middle.map(|x| sign * x);
        }
        if c < t {
            (a, left) = (c, middle);
        } else {
            (b, right) = (c, middle);
        }
    }
}

/// The common constants of all paths of a sum of sinusoids.
struct Sinusoids {
    /// 2π·f_D.
    pulsation: f64,
    period_s: f64,
    /// The waves of all paths of a device, drawn when they are first needed.
    waves: Box<[OnceLock<Box<[Wave]>>]>,
}

impl Sinusoids {
    /// 2π·f_D·τ at `delay_s` before round `t`.
    fn angle(&self, t: u64, delay_s: f64) -> f64 {
        self.pulsation * (t as f64 * self.period_s - delay_s)
    }
}

/// One sinusoid.
#[derive(Clone, Copy)]
struct Wave {
    /// The cosine of its angle of arrival: its Doppler shift over the greatest.
    speed: f64,
    phase: f64,
}

/// The waves of one path.
fn waves(seed: u64, path: u64, device: u64) -> [Wave; WAVES] {
    let mut rng = stream(seed, Purpose::FadingPhases, path, device);
    let width = PI / WAVES as f64;
    std::array::from_fn(|i| {
        let speed = speed(i, rng.between(-width, width));
        Wave { speed, phase: rng.between(-PI, PI) }
    })
}

/// The cosine of the angle of arrival of wave `i` (from 0), `offset` from the middle of its arc.
fn speed(i: usize, offset: f64) -> f64 {
    libm::cos(TAU * (i + 1) as f64 / WAVES as f64 + offset)
}

/// Their sum where 2π·f_D·τ is `angle`, of mean power 1.
fn sum(waves: &[Wave], angle: f64) -> [f64; 2] {
    let [mut re, mut im] = [0.0; 2];
    for wave in waves {
        let (sin, cos) = libm::sincos(angle * wave.speed + wave.phase);
        (re, im) = (re + cos, im + sin);
    }
    let scale = 1.0 / libm::sqrt(WAVES as f64);
    [re * scale, im * scale]
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kolmogorov, near_mean};
    use super::*;

    const RHOS: [f64; 6] = [0.3, 0.9, 0.999, -0.12, -0.9, 0.0];

    /// The amplitudes of one device in round `t`.
    fn paths(scatter: &Scatter, t: u64, delay_s: f64, device: u32) -> Vec<[f64; 2]> {
        let mut all = Vec::new();
        scatter.for_each(t, delay_s, DeviceId(device), |path, h| {
            assert_eq!(path, all.len());
            all.push(h);
        });
        all
    }

    fn one(scatter: &Scatter, t: u64, device: u32) -> [f64; 2] {
        paths(scatter, t, 0.0, device)[0]
    }

    fn power([re, im]: [f64; 2]) -> f64 {
        re * re + im * im
    }

    #[test]
    fn the_bridge_has_the_covariance_of_the_recursion_exactly() {
        // Fed with unit innovations, the bridge is the matrix from w to h; the covariance is its Gram matrix.
        for rho in RHOS {
            let correlation = Correlation::new(rho);
            let unit = |i: u64| -> [f64; 65] { std::array::from_fn(|j| f64::from(u8::from(i == j as u64))) };
            let rows: Vec<[f64; 65]> = (0..64).map(|t| bridge(t, &correlation, unit)).collect();
            for (i, left) in rows.iter().enumerate() {
                for (j, right) in rows.iter().enumerate() {
                    let covariance: f64 = left.iter().zip(right).map(|(x, y)| x * y).sum();
                    let truth = rho.powi(i.abs_diff(j) as i32);
                    assert!((covariance - truth).abs() < 1e-12, "ρ = {rho}, {i}, {j}: {covariance}, {truth}");
                }
            }
        }
    }

    #[test]
    fn the_bridge_needs_few_innovations_and_also_reaches_far_rounds() {
        for t in [0, 1, 2, 3, 63, 64, 65, 1000, (1 << 40) + 12_345, u64::MAX] {
            let mut draws = 0;
            let count = |_| {
                draws += 1;
                [1.0]
            };
            let [h] = bridge(t, &Correlation::new(0.95), count);
            let bound = 2 * t.clamp(1, 1 << 62).ilog2() + 3;
            assert!(h.is_finite() && draws <= bound, "t = {t}: {draws} draws");
        }
    }

    #[test]
    fn correlated_gains_have_the_law_of_independent_ones_in_every_round() {
        for rho in [0.0, 0.9, -0.5] {
            let scatter = Scatter::new(3, Memory::GaussMarkov { correlation: rho }, 1, 0);
            for t in [0, 1, 13, 100] {
                let gains = (0..20_000).map(|m| power(one(&scatter, t, m))).collect();
                let distance = kolmogorov(gains, |g| 1.0 - f64::exp(-g));
                assert!(distance < 2.23, "ρ = {rho}, t = {t}: √N·D = {distance}");
            }
        }
    }

    #[test]
    fn gains_of_rounds_k_apart_have_the_squared_correlation() {
        for (rho, lag) in [(0.9, 1), (0.9, 7), (-0.5, 1), (0.99, 30)] {
            let scatter = Scatter::new(8, Memory::GaussMarkov { correlation: rho }, 1, 0);
            let product = |m| (power(one(&scatter, 50, m)) - 1.0) * (power(one(&scatter, 50 + lag, m)) - 1.0);
            near_mean((0..40_000).map(product), rho.powi(2 * lag as i32), &format!("ρ = {rho}, lag {lag}"));
        }
    }

    #[test]
    fn paths_are_independent_and_a_path_alone_is_the_same_as_after_all_others() {
        let memories = [
            Memory::Independent,
            Memory::GaussMarkov { correlation: 0.95 },
            Memory::Doppler { hertz: 10.0, period_s: 0.01 },
        ];
        for memory in memories {
            let scatter = Scatter::new(5, memory, 3, 10);
            for t in 0..50 {
                (0..10).for_each(|m| assert_eq!(paths(&scatter, t, 0.0, m).len(), 3));
            }
            // A source that has computed nothing before, and one without room for any device.
            for devices in [10, 0] {
                let fresh = Scatter::new(5, memory, 3, devices);
                assert_eq!(paths(&fresh, 37, 0.0, 4), paths(&scatter, 37, 0.0, 4), "{memory:?}");
            }
            let product = |m: u32| {
                let all = paths(&scatter, 20, 0.0, m);
                [(0, 1), (0, 2), (1, 2)].map(|(i, j)| (power(all[i]) - 1.0) * (power(all[j]) - 1.0))
            };
            near_mean((0..8000).flat_map(product), 0.0, &format!("{memory:?}"));
        }
    }

    #[test]
    fn sinusoids_have_the_bessel_function_as_their_correlation_and_nearly_gaussian_moments() {
        let (hertz, period_s, devices) = (5.56, 0.01, 20_000);
        let scatter = Scatter::new(6, Memory::Doppler { hertz, period_s }, 1, devices as usize);
        for lag in [0, 1, 3, 6, 10, 100] {
            let truth = libm::j0(TAU * hertz * period_s * lag as f64);
            let product = |m| {
                let ([a, b], [c, d]) = (one(&scatter, 7, m), one(&scatter, 7 + lag, m));
                [a * c + b * d, b * c - a * d]
            };
            near_mean((0..devices).map(|m| product(m)[0]), truth, &format!("lag {lag}, real"));
            if lag > 0 {
                near_mean((0..devices).map(|m| product(m)[1]), 0.0, &format!("lag {lag}, imaginary"));
            }
        }
        near_mean((0..devices).map(|m| power(one(&scatter, 1, m))), 1.0, "E g");
        near_mean((0..devices).map(|m| power(one(&scatter, 1, m)).powi(2)), 2.0 - 1.0 / 32.0, "E g²");
        // By ∫J₁(rt)·J₀(t)^N dt: the largest of 40 gains has mean 4.187 with 32 sinusoids.
        let best = |group: u32| (0..40).map(|m| power(one(&scatter, 1, 40 * group + m))).fold(0.0, f64::max);
        near_mean((0..devices / 40).map(best), 4.187, "E max");
    }

    /// E_n = E e^(j·z·cos α_n) over the arc of each wave, by the midpoint rule.
    fn arcs(z: f64) -> [[f64; 2]; WAVES] {
        let (steps, width) = (400, PI / WAVES as f64);
        std::array::from_fn(|i| {
            let mut mean = [0.0; 2];
            for step in 0..steps {
                let offset = width * (2.0 * (f64::from(step) + 0.5) / f64::from(steps) - 1.0);
                let (sin, cos) = libm::sincos(z * speed(i, offset));
                mean = [mean[0] + cos / f64::from(steps), mean[1] + sin / f64::from(steps)];
            }
            mean
        })
    }

    /// The covariance of two gains of one path over a lag at which 2π·f_D·Δ is `z`.
    fn gain_covariance(z: f64) -> f64 {
        let lost: f64 = arcs(z).iter().map(|&mean| power(mean)).sum();
        libm::j0(z).powi(2) - lost / (WAVES * WAVES) as f64
    }

    #[test]
    fn the_arcs_of_the_sinusoids_give_the_bessel_function_exactly() {
        // The arcs are a partition of the circle, on which the rule converges faster than any power.
        for z in [0.0, 0.3, 1.0, 2.404_825_557_695_773, 10.0, 100.0, 1000.0] {
            let sum = arcs(z).iter().fold([0.0; 2], |sum, mean| [sum[0] + mean[0], sum[1] + mean[1]]);
            let [re, im] = sum.map(|part| part / WAVES as f64);
            assert!((re - libm::j0(z)).abs() < 1e-12 && im.abs() < 1e-12, "z = {z}: {re} {im}");
        }
        // Computed apart, in double precision by NumPy.
        for (z, truth) in [(2.404_826, -0.030_961_669), (10.0, 0.033_792_283), (100.0, -0.002_754_420)] {
            assert!((gain_covariance(z) - truth).abs() < 1e-9, "z = {z}: {}", gain_covariance(z));
        }
    }

    #[test]
    fn gains_of_sinusoids_have_their_own_covariance_a_little_below_that_of_rayleigh_fading() {
        // At the first two zeros of J₀ it is −0.031 and −0.030, eight standard errors from 0.
        let period_s = 0.01;
        for z in [0.5, 2.404_826, 5.520_078, 10.0] {
            let memory = Memory::Doppler { hertz: z / (TAU * period_s), period_s };
            let scatter = Scatter::new(11, memory, 1, 0);
            let product = |m| (power(one(&scatter, 3, m)) - 1.0) * (power(one(&scatter, 4, m)) - 1.0);
            near_mean((0..100_000).map(product), gain_covariance(z), &format!("2πf_DΔ = {z}"));
        }
    }

    #[test]
    fn a_delay_is_a_shift_in_time() {
        let scatter = Scatter::new(6, Memory::Doppler { hertz: 3.0, period_s: 0.25 }, 2, 4);
        assert_eq!(paths(&scatter, 9, 0.5, 3), paths(&scatter, 7, 0.0, 3));
        assert_eq!(scatter.line_of_sight(9, 0.5, DeviceId(3)), scatter.line_of_sight(7, 0.0, DeviceId(3)));
        assert!((power(scatter.line_of_sight(9, 0.1, DeviceId(3))) - 1.0).abs() < 1e-14);
    }
}
