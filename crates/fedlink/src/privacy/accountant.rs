//! The privacy loss of a run: the Rényi accountant of Gaussian noise, with and without sampling.

/// The orders α that are tried.
fn orders() -> impl Iterator<Item = u32> {
    (2..=256).chain([512, 1024])
}

/// An ε with the order α that gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Epsilon {
    /// ε.
    pub value: f64,
    /// α.
    pub order: u32,
}

/// ρ(α): the Rényi divergence of order α ≥ 2 of one round in which every device is sampled independently
/// with probability `rate`, with noise of `noise` times the largest norm.
///
/// ρ = (α−1)⁻¹·ln Σ_k C(α,k)·(1−q)^(α−k)·q^k·exp(k(k−1)/2z²), summed by its logarithms; α/2z² where q = 1.
/// Mironov, Talwar, Zhang, *Rényi Differential Privacy of the Sampled Gaussian Mechanism* (2019), for
/// integer α.
///
/// ```
/// use fedlink::privacy::accountant::divergence;
/// assert_eq!(divergence(8, 1.0, 2.0), 1.0);
/// assert_eq!(divergence(8, 0.0, 2.0), 0.0);
/// ```
pub fn divergence(order: u32, rate: f64, noise: f64) -> f64 {
    let alpha = f64::from(order);
    if rate <= 0.0 {
        return 0.0;
    }
    if rate >= 1.0 {
        return alpha / (2.0 * noise * noise);
    }
    let (taken, left) = (libm::log(rate), libm::log1p(-rate));
    // Without the exponential the sum is 1. The excess has no cancellation: C(α,k)·(1−q)^(α−k)·q^k·(e^x −
    // 1).
    let term = |k: u32| {
        let k = f64::from(k);
        let x = k * (k - 1.0) / (2.0 * noise * noise);
        let choose = libm::lgamma(alpha + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(alpha - k + 1.0);
        choose + (alpha - k) * left + k * taken + x + libm::log(-libm::expm1(-x))
    };
    let largest = (2..=order).map(term).fold(f64::NEG_INFINITY, f64::max);
    let above = largest + libm::log((2..=order).map(|k| libm::exp(term(k) - largest)).sum());
    let sum =
        if above > 0.0 { above + libm::log1p(libm::exp(-above)) } else { libm::log1p(libm::exp(above)) };
    sum / (alpha - 1.0)
}

/// ε of `rounds` rounds at δ: min over α of rounds·ρ(α) + ln(1/δ)/(α−1).
///
/// Mironov, *Rényi Differential Privacy* (2017), proposition 3.
pub fn epsilon(rounds: u64, rate: f64, noise: f64, delta: f64) -> Epsilon {
    smallest(rounds, rate, noise, |order| -libm::log(delta) / (f64::from(order) - 1.0))
}

/// The same by a tighter conversion: rounds·ρ(α) + ln((α−1)/α) − ln(δ·α)/(α−1), at least 0.
///
/// Canonne, Kamath, Steinke, *The Discrete Gaussian for Differential Privacy* (2020), proposition 12.
pub fn tight_epsilon(rounds: u64, rate: f64, noise: f64, delta: f64) -> Epsilon {
    smallest(rounds, rate, noise, |order| {
        let alpha = f64::from(order);
        libm::log1p(-1.0 / alpha) - libm::log(delta * alpha) / (alpha - 1.0)
    })
}

fn smallest(rounds: u64, rate: f64, noise: f64, conversion: impl Fn(u32) -> f64) -> Epsilon {
    let of = |order: u32| {
        let value = rounds as f64 * divergence(order, rate, noise) + conversion(order);
        Epsilon { value: value.max(0.0), order }
    };
    if rounds == 0 || rate <= 0.0 {
        return Epsilon { value: 0.0, order: 2 };
    }
    orders()
        .map(of)
        .reduce(|a, b| if b.value < a.value { b } else { a })
        .unwrap_or(Epsilon { value: f64::INFINITY, order: 2 })
}

/// The probability that a round samples more than `limit` of `devices` devices, each independently with
/// probability `rate`: the deviation of a limited number of devices from exact Poisson sampling.
pub fn overflow(devices: u64, rate: f64, limit: u64) -> f64 {
    if limit >= devices || rate <= 0.0 {
        return 0.0;
    }
    if rate >= 1.0 {
        return 1.0;
    }
    let (n, taken, left) = (devices as f64, libm::log(rate), libm::log1p(-rate));
    let term = |k: u64| {
        let k = k as f64;
        let choose = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
        libm::exp(choose + k * taken + (n - k) * left)
    };
    // Beyond the mode terms fall; negligible ones are left out.
    let mut sum = 0.0;
    for k in limit + 1..=devices {
        let one = term(k);
        sum += one;
        if one < sum * 1e-17 && k as f64 > n * rate {
            break;
        }
    }
    f64::min(sum, 1.0)
}

/// ε at δ of `rounds` rounds of Poisson sampling with at most `limit` devices per round; exact sampling
/// has `exact(δ′)` at δ′. None if no δ′ fits.
///
/// A round with the limit differs from one without only if more devices are sampled, with probability τ.
/// So the releases of all rounds are within a total variation of rounds·τ of those without the limit,
/// with and without the device, and (ε, δ′) without the limit is (ε, δ′ + (1 + e^ε)·rounds·τ) with it.
pub fn limited(rounds: u64, overflow: f64, delta: f64, exact: impl Fn(f64) -> Epsilon) -> Option<Epsilon> {
    let variation = rounds as f64 * overflow;
    let mut left = delta;
    // δ′ falls and ε grows until both fit, or δ is used up.
    for _ in 0..100 {
        let epsilon = exact(left);
        let needed = (1.0 + libm::exp(epsilon.value)) * variation;
        if needed + left <= delta * (1.0 + 1e-12) {
            return Some(epsilon);
        }
        left = delta - needed;
        if left <= 0.0 {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_sampling_a_round_is_the_gaussian_mechanism() {
        for order in [2, 3, 17, 256, 1024] {
            for noise in [0.3, 1.0, 7.5] {
                let gaussian = f64::from(order) / (2.0 * noise * noise);
                assert_eq!(divergence(order, 1.0, noise), gaussian);
                // The sum converges to it.
                let almost = divergence(order, 1.0 - 1e-15, noise);
                assert!((almost / gaussian - 1.0).abs() < 1e-9, "{order} {noise}: {almost}");
            }
        }
    }

    #[test]
    fn epsilon_agrees_with_the_published_table() {
        // Half a unit of the last digit.
        for (rate, noise, value, order) in
            [(0.25, 10.0, 2.871, 9), (1.0, 10.0, 13.256, 3), (0.025, 1.0, 4.588, 5)]
        {
            let ours = epsilon(500, rate, noise, 1e-5);
            assert!((ours.value - value).abs() < 5e-4, "{ours:?}");
            assert_eq!(ours.order, order);
        }
    }

    #[test]
    fn the_order_two_is_a_closed_form() {
        // Σ_k of α = 2: (1−q)² + 2q(1−q) + q²·e^(1/z²) = 1 + q²(e^(1/z²) − 1).
        for (rate, noise) in [(0.1f64, 1.0f64), (0.5, 0.7), (0.9, 3.0), (1e-3, 1.0)] {
            let closed = (rate * rate * (1.0 / (noise * noise)).exp_m1()).ln_1p();
            let ours = divergence(2, rate, noise);
            assert!((ours - closed).abs() < 1e-13 * closed, "{ours} against {closed}");
        }
    }

    #[test]
    fn vectors_of_another_accountant_agree() {
        let mut seen = 0;
        for line in include_str!("reference.csv").lines().skip(2) {
            let fields: Vec<&str> = line.split(',').collect();
            let number = |i: usize| fields[i].parse::<f64>().unwrap();
            let (rounds, rate, noise, value) = (number(1) as u64, number(2), number(3), number(6));
            let order = number(5) as u32;
            let ours = if fields[0] == "rho" {
                divergence(order, rate, noise)
            } else {
                let tight = tight_epsilon(rounds, rate, noise, number(4));
                assert_eq!(tight.order, order, "{line}");
                tight.value
            };
            // The other accountant loses digits if the sum is almost 1.
            assert!((ours - value).abs() < 1e-13 + 1e-9 * value, "{line}: {ours}");
            seen += 1;
        }
        assert_eq!(seen, 128);
    }

    #[test]
    fn the_overflow_is_the_tail_of_the_binomial_law() {
        // By Pascal's triangle: the distribution of n draws, one after the other.
        for (devices, rate) in [(1usize, 0.3f64), (7, 0.5), (40, 0.125), (300, 0.02)] {
            let mut law = vec![0.0; devices + 1];
            law[0] = 1.0;
            for _ in 0..devices {
                for k in (0..=devices).rev() {
                    law[k] = (1.0 - rate) * law[k] + if k > 0 { rate * law[k - 1] } else { 0.0 };
                }
            }
            for limit in 0..=devices {
                let tail: f64 = law[limit + 1..].iter().rev().sum();
                let ours = overflow(devices as u64, rate, limit as u64);
                assert!(
                    (ours - tail).abs() < 1e-11 * tail + 1e-300,
                    "{devices} {rate} {limit}: {ours} {tail}"
                );
            }
        }
        assert_eq!((overflow(9, 0.0, 3), overflow(9, 1.0, 3), overflow(9, 0.4, 9)), (0.0, 1.0, 0.0));
    }

    #[test]
    fn a_limit_on_devices_costs_a_part_of_delta_or_all_of_it() {
        let exact = |delta: f64| epsilon(500, 0.05, 2.0, delta);
        assert_eq!(limited(500, 0.0, 1e-5, exact), Some(exact(1e-5)));
        let with = limited(500, 1e-12, 1e-5, exact).unwrap();
        assert!(with.value > exact(1e-5).value && with.value < exact(0.9e-5).value);
        // The rest of δ and the part for the limit add up to δ.
        let needed = (1.0 + with.value.exp()) * 500.0 * 1e-12;
        assert!((exact(1e-5 - needed).value - with.value).abs() < 1e-9);
        assert_eq!(limited(500, 1e-6, 1e-5, exact), None);
    }

    proptest! {
        #[test]
        fn more_rounds_more_sampling_and_less_noise_release_more(
            rounds in 1u64..1000,
            rate in 1e-4..0.9f64,
            noise in 0.3..20.0f64,
        ) {
            let base = epsilon(rounds, rate, noise, 1e-5).value;
            let slack = 1e-9 * base;
            prop_assert!(epsilon(rounds + 1, rate, noise, 1e-5).value >= base - slack);
            prop_assert!(epsilon(rounds, rate * 1.1, noise, 1e-5).value >= base - slack);
            prop_assert!(epsilon(rounds, rate, noise * 1.1, 1e-5).value <= base + slack);
            prop_assert!(epsilon(rounds, 1.0, noise, 1e-5).value >= base - slack);
            prop_assert!(tight_epsilon(rounds, rate, noise, 1e-5).value <= base + slack);
        }
    }
}
