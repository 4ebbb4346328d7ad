//! Every random number of a run, from streams keyed by (seed, purpose, round, device).
//!
//! A stream is `ChaCha8` under the 256-bit key `seed ‖ device ‖ round ‖ purpose`. Any stream can be
//! opened at any time, in any order, on any thread, and always yields the same numbers. No result depends
//! on the order of draws. Two policies run with one seed have the same channels, batches and initial
//! model (common random numbers).
//!
//! The samplers below are our own, on `libm`: an update of a dependency or of the platform's maths
//! library cannot change a result.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The purpose of a stream of random numbers. The number is part of the key: never reuse or renumber one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
#[non_exhaustive]
pub enum Purpose {
    /// The initial model θ(0).
    Init = 1,
    /// The samples of each device.
    Partition = 2,
    /// The mini-batches of a device in a round.
    Batch = 3,
    /// The channel gain of a device in a round.
    Channel = 4,
    /// The entries that random sparsification keeps.
    Sparsify = 5,
    /// The images of the embedded data set (round = split, device = image).
    Digits = 6,
    /// The devices that a uniformly random schedule picks (one stream per round).
    Uniform = 7,
    /// The adversarial devices (device = 2⁶⁴ − 1), and the random choices of one in a round.
    Adversary = 8,
    /// The position of a device.
    Placement = 9,
    /// The line of sight between a device and the server.
    LineOfSight = 10,
    /// Shadowing: one number per device, or the waves of a field over the cell (device = wave).
    Shadowing = 11,
    /// Angles and phases of the sinusoids that make up the fading of a device (round = antenna and tap).
    FadingPhases = 12,
    /// The innovation of a device's Gauss–Markov fading in a round.
    Innovation = 13,
    /// The error of a channel estimate.
    CsiError = 14,
    /// The computing speed of a device (round = 2⁶⁴ − 1: in all rounds).
    Compute = 15,
    /// The loss of an upload.
    Packet = 16,
    /// The downlink's fading.
    Downlink = 19,
    /// The movement of a device.
    Mobility = 20,
    /// Random choices of a policy in a round, or in all rounds (round = 2⁶⁴ − 1; device
    /// = the policy's label).
    Schedule = 21,
    /// The shared random numbers of both ends of a link in a round, which are not sent.
    Shared = 40,
    /// The number of local steps of a device (round = 2⁶⁴ − 1).
    LocalSteps = 41,
    /// The signs of a randomization test with many pairs.
    Signs = 42,
    /// Noise for privacy (device = index of the block of 4096 entries).
    Privacy = 33,
    /// Tests and examples.
    Test = 99,
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

/// Opens the stream for (`seed`, `purpose`, `round`, `device`).
///
/// ```
/// use fedlink::base::rng::{stream, Purpose};
/// let a = stream(7, Purpose::Channel, 3, 12).uniform();
/// let b = stream(7, Purpose::Channel, 3, 12).uniform();
/// assert_eq!(a, b);
/// ```
pub fn stream(seed: u64, purpose: Purpose, round: u64, device: u64) -> Stream {
    let mut key = [0; 32];
    for (bytes, word) in key.chunks_exact_mut(8).zip([seed, device, round, purpose as u64]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    Stream(ChaCha8Rng::from_seed(key))
}

impl Stream {
    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in [0, 1), a multiple of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A uniform number in [`low`, `high`).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// A uniform integer in 0..`bound`, exactly (Lemire's multiplication with rejection).
    ///
    /// `bound` must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no integer to draw");
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            let low = product as u64;
            // Rejected numbers lie below 2⁶⁴ mod `bound`, which is below `bound`: the division is rarely
            // needed.
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// An exponential number with mean 1, by inversion: −ln(1 − U). Never infinite, since U < 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log1p(-self.uniform())
    }

    /// A standard normal number (Box–Muller, cosine branch: two uniforms for each).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(core::f64::consts::TAU * self.uniform())
    }

    /// ln G, where G is a gamma number of the given shape (finite, above 0) and scale 1.
    ///
    /// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000): with d = shape − 1/3
    /// and c = 1/√(9d), G = d·v for a normal X that passes ln U < X²/2 + d·(1 − v + ln v), where
    /// v = (1 + cX)³. A shape below 1 takes a draw G′ of shape + 1 and G = G′·U^(1/shape). The logarithm is
    /// returned because U^(1/shape) is below the smallest float for most U if the shape is below 0.001.
    pub fn ln_gamma(&mut self, shape: f64) -> f64 {
        assert!(shape > 0.0 && shape.is_finite(), "a gamma number needs a finite shape above 0");
        if shape < 1.0 {
            return self.ln_gamma(shape + 1.0) - self.exponential() / shape;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let t = c * x;
            // 1 − v + ln v, in a form in which a large d does not magnify the rounding error.
            let far = 3.0 * (libm::log1p(t) - t) - 3.0 * t * t - t * t * t;
            let ln_u = -self.exponential();
            if t > -1.0 && ln_u < 0.5 * x * x + d * far {
                return libm::log(d) + 3.0 * libm::log1p(t);
            }
        }
    }

    /// Puts `items` in uniformly random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.shuffle_prefix(items, items.len());
    }

    /// Makes `items[..count]` a uniformly random ordered choice out of all `items`, without replacement.
    pub fn shuffle_prefix<T>(&mut self, items: &mut [T], count: usize) {
        shuffle_prefix_by(items, count, |bound| self.below(bound));
    }
}

/// Fisher–Yates on the integers that `below` gives: step i swaps item i with item i + `below(len − i)`.
pub(crate) fn shuffle_prefix_by<T>(items: &mut [T], count: usize, mut below: impl FnMut(u64) -> u64) {
    for i in 0..count.min(items.len()) {
        let j = i + below((items.len() - i) as u64) as usize;
        items.swap(i, j);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn test_stream(round: u64) -> Stream {
        stream(11, Purpose::Test, round, 0)
    }

    /// Mean of `DRAWS` draws and a bound on its distance from the truth at five standard errors.
    fn mean(variance: f64, mut draw: impl FnMut() -> f64) -> (f64, f64) {
        let total: f64 = (0..DRAWS).map(|_| draw()).sum();
        (total / DRAWS as f64, 5.0 * (variance / DRAWS as f64).sqrt())
    }

    #[test]
    fn the_zero_key_yields_the_published_chacha8_key_stream() {
        // Key 0, nonce 0, block 0 of ChaCha8, as published with the eSTREAM and IETF test vectors.
        let mut zero = Stream(ChaCha8Rng::from_seed([0; 32]));
        assert_eq!(zero.bits().to_le_bytes(), [0x3e, 0x00, 0xef, 0x2f, 0x89, 0x5f, 0x40, 0xd6]);
    }

    #[test]
    fn streams_differ_in_every_part_of_the_key() {
        let first = |seed, purpose, round, device| stream(seed, purpose, round, device).bits();
        let base = first(1, Purpose::Channel, 2, 3);
        assert_ne!(base, first(2, Purpose::Channel, 2, 3));
        assert_ne!(base, first(1, Purpose::Batch, 2, 3));
        assert_ne!(base, first(1, Purpose::Channel, 3, 3));
        assert_ne!(base, first(1, Purpose::Channel, 2, 4));
        assert_ne!(base, first(1, Purpose::Channel, 3, 2), "round and device must not be swappable");
    }

    #[test]
    fn samplers_have_the_moments_of_their_distributions() {
        let mut s = test_stream(0);
        let near = |(mean, slack): (f64, f64), truth: f64| {
            assert!((mean - truth).abs() < slack, "{mean} is not within {slack} of {truth}");
        };
        near(mean(1.0 / 12.0, || s.uniform()), 0.5);
        near(mean(1.0, || s.exponential()), 1.0);
        near(mean(20.0, || s.exponential().powi(2)), 2.0);
        near(mean(1.0, || s.normal()), 0.0);
        near(mean(2.0, || s.normal().powi(2)), 1.0);
        near(mean(96.0, || s.normal().powi(4)), 3.0);
    }

    #[test]
    fn gamma_numbers_have_the_moments_of_every_shape() {
        let mut s = test_stream(3);
        for a in [0.05, 0.5, 1.0, 1.5, 3.7, 100.0, 1e9] {
            let (got, slack) = mean(a, || s.ln_gamma(a).exp());
            assert!((got - a).abs() < slack, "shape {a}: mean {got} is not within {slack}");
            // E[Gⁿ] = a(a+1)…(a+n−1), and (G − a)² has variance 2a² + 6a.
            let (got, slack) = mean(2.0 * a * a + 6.0 * a, || (s.ln_gamma(a).exp() - a).powi(2));
            assert!((got - a).abs() < slack, "shape {a}: variance {got} is not within {slack}");
        }
    }

    #[test]
    fn logarithms_of_gamma_numbers_have_their_moments_even_if_the_numbers_underflow() {
        const EULER: f64 = 0.577_215_664_901_532_9;
        let pi2 = core::f64::consts::PI.powi(2);
        let mut s = test_stream(4);
        // E[ln G] = ψ(a), Var[ln G] = ψ′(a); for a → 0 they are −1/a − γ and 1/a² + π²/6 up to terms in a.
        let small = |a: f64| (a, -1.0 / a - EULER, 1.0 / (a * a) + pi2 / 6.0);
        let cases = [
            (1.0, -EULER, pi2 / 6.0),
            (0.5, -EULER - 2.0 * core::f64::consts::LN_2, pi2 / 2.0),
            (2.0, 1.0 - EULER, pi2 / 6.0 - 1.0),
            small(1e-4),
            small(1e-9),
            small(1e-150),
        ];
        for (a, psi, variance) in cases {
            let scale = psi.abs();
            let (got, slack) = mean(variance / scale / scale, || s.ln_gamma(a) / scale);
            assert!((got - psi / scale).abs() < slack, "shape {a}: {got} is not within {slack}");
        }
    }

    #[test]
    fn gamma_numbers_of_shape_one_are_exponential_and_of_one_half_half_squared_normal() {
        // Kolmogorov–Smirnov: the largest distance of two distribution functions, times √n, exceeds 2.23
        // with probability 1/10 000.
        let mut s = test_stream(5);
        let mut check = |a: f64, cdf: fn(f64) -> f64| {
            let mut draws: Vec<f64> = (0..DRAWS).map(|_| cdf(s.ln_gamma(a).exp())).collect();
            draws.sort_by(f64::total_cmp);
            let n = DRAWS as f64;
            let far = draws.iter().enumerate().map(|(i, f)| (f - i as f64 / n).abs()).fold(0.0, f64::max);
            assert!(far * n.sqrt() < 2.23, "shape {a}: {}", far * n.sqrt());
        };
        check(1.0, |g| 1.0 - libm::exp(-g));
        check(0.5, |g| libm::erf(libm::sqrt(g)));
    }

    #[test]
    fn integers_below_a_bound_are_uniform() {
        let mut s = test_stream(1);
        let mut counts = [0u32; 7];
        (0..DRAWS).for_each(|_| counts[s.below(7) as usize] += 1);
        let expected = DRAWS as f64 / 7.0;
        let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
        assert!(chi2 < 27.9, "χ² = {chi2} on 6 degrees of freedom (p < 1e-4)");
    }

    #[test]
    fn a_shuffle_draws_all_permutations_equally_often() {
        let mut s = test_stream(2);
        let mut counts = std::collections::HashMap::new();
        for _ in 0..24_000 {
            let mut items = [0, 1, 2, 3];
            s.shuffle(&mut items);
            *counts.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let chi2: f64 = counts.values().map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi2 < 58.6, "χ² = {chi2} on 23 degrees of freedom (p < 1e-4)");
    }
}
