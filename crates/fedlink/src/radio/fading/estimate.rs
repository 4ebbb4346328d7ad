//! The gain estimate of a server with imperfect channel state information.

use crate::base::rng::Stream;

/// ĝ = ‖ĥ‖² of the MMSE estimate ĥ of h ~ CN(0, I) over `antennas` antennas, of which g = ‖h‖² is known.
///
/// With h = ĥ + e, ĥ ~ CN(0, 1−ε) and e ~ CN(0, ε) independent, ĥ given h is CN((1−ε)·h, ε(1−ε)). Its norm
/// does not change if h is rotated to (√g, 0, …, 0), so with s² = ε(1−ε) and w ~ CN(0, I)
///
/// ĝ = |(1−ε)·√g + s·w₁|² + s²·Σ_{i≥2} |w_i|²,
///
/// where the sum follows Gamma(N−1, 1). Source: the MMSE convention of the literature on imperfect CSI; the
/// conditional law is that of jointly Gaussian vectors. Invariants: finite and ≥ 0; E\[ĝ\] = (1−ε)·N if
/// E\[g\] = N; ε = 0 gives g and draws nothing.
///
/// ```
/// use fedlink::radio::fading::estimate::gaussian;
/// use fedlink::base::rng::{Purpose, stream};
/// let mut rng = stream(0, Purpose::CsiError, 0, 0);
/// assert_eq!(gaussian(0.7, 1, 0.0, &mut rng), 0.7);
/// assert!(gaussian(0.7, 4, 0.1, &mut rng) > 0.0);
/// ```
pub fn gaussian(gain: f64, antennas: usize, error: f64, rng: &mut Stream) -> f64 {
    if error == 0.0 {
        return gain;
    }
    let spread = error * (1.0 - error);
    let [w, v] = complex_normal(rng);
    let in_phase = (1.0 - error) * libm::sqrt(gain) + libm::sqrt(spread) * w;
    let others = if antennas > 1 { libm::exp(rng.ln_gamma((antennas - 1) as f64)) } else { 0.0 };
    in_phase * in_phase + spread * (v * v + others)
}

/// A draw of CN(0, 1): real and imaginary part, each of variance 1/2.
pub fn complex_normal(rng: &mut Stream) -> [f64; 2] {
    let (re, im) = (rng.normal(), rng.normal());
    [re * std::f64::consts::FRAC_1_SQRT_2, im * std::f64::consts::FRAC_1_SQRT_2]
}

#[cfg(test)]
mod tests {
    use super::super::tests::near_mean;
    use super::*;
    use crate::base::rng::{Purpose, stream};

    const TRIALS: usize = 200_000;

    /// Pairs (g, ĝ) of Rayleigh fading over `antennas` antennas.
    fn pairs(antennas: usize, error: f64) -> Vec<(f64, f64)> {
        let mut rng = stream(5, Purpose::Test, antennas as u64, 0);
        let draw = |_| {
            let gain = (0..antennas).map(|_| rng.exponential()).sum();
            (gain, gaussian(gain, antennas, error, &mut rng))
        };
        (0..TRIALS).map(draw).collect()
    }

    #[test]
    fn the_rate_of_outage_is_the_closed_form() {
        // P(g < b·ĝ) = ½(1 − tr/√(tr² + 4b(1−ε)ε)), tr = 1 − b(1−ε), by scipy.
        let frozen = [
            (0.1, 1.0, 0.417_800_506_347_321_35),
            (0.1, 0.5, 0.104_101_337_088_218),
            (0.01, 1.0, 0.474_905_719_338_575_17),
            (0.01, 0.8, 0.120_103_839_078_577_75),
        ];
        for (error, back_off, outage) in frozen {
            let lost = pairs(1, error).iter().filter(|(g, seen)| *g < back_off * seen).count();
            let rate = lost as f64 / TRIALS as f64;
            let slack = 4.0 * (outage * (1.0 - outage) / TRIALS as f64).sqrt();
            assert!((rate - outage).abs() < slack, "ε = {error}, b = {back_off}: {rate}, not {outage}");
        }
    }

    #[test]
    fn estimates_have_the_moments_of_a_weaker_channel_and_of_its_correlation_with_the_truth() {
        for antennas in [1, 2, 8] {
            let (n, error) = (antennas as f64, 0.2);
            let pairs = pairs(antennas, error);
            // ĝ/(1−ε) ~ Gamma(N, 1), and Cov(g, ĝ) = N·(1−ε)².
            near_mean(pairs.iter().map(|(_, seen)| *seen), n * 0.8, "mean");
            near_mean(pairs.iter().map(|(_, seen)| (seen - n * 0.8).powi(2)), n * 0.64, "variance");
            near_mean(pairs.iter().map(|(g, seen)| (g - n) * (seen - n * 0.8)), n * 0.64, "covariance");
        }
    }

    #[test]
    fn without_an_error_the_estimate_is_the_truth() {
        assert!(pairs(3, 0.0).iter().all(|(g, seen)| g.to_bits() == seen.to_bits()));
    }
}
