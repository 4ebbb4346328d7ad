//! How many bits a sparse update costs, and how many entries a budget holds.

use crate::units::Bits;

/// log2 C(n, q), the bits that name one out of all ways to choose q indices among n.
///
/// With the entropy written out, `ln C = q·ln(n/q) − (n−q)·ln(1−q/n) + ½·ln(n / (2π·q·(n−q))) + δ(n) − δ(q) −
/// δ(n−q)`, δ being the error of Stirling's formula. Nothing large cancels, so the relative error stays near
/// the rounding unit for every n; a difference of three log-gammas would lose nine digits at n = 10⁹.
///
/// ```
/// use fedlink::compress::bits::log2_choose;
/// assert!((log2_choose(10, 3) - 120f64.log2()).abs() < 1e-14);
/// ```
pub fn log2_choose(n: u64, q: u64) -> f64 {
    if q == 0 || q >= n {
        return 0.0;
    }
    // C(n, q) = C(n, n−q), and 1 − q/n keeps its digits only where q/n is not near 1.
    let q = q.min(n - q);
    let (n, q, rest) = (n as f64, q as f64, (n - q) as f64);
    let entropy = q * libm::log(n / q) - rest * libm::log1p(-q / n);
    let width = 0.5 * libm::log(n / (std::f64::consts::TAU * q * rest));
    (entropy + width + stirling_error(n) - stirling_error(q) - stirling_error(rest))
        * std::f64::consts::LOG2_E
}

/// δ(n) = ln n! − ((n + ½)·ln n − n + ½·ln 2π) for n ≥ 1.
fn stirling_error(n: f64) -> f64 {
    if n < 16.0 {
        let stirling = (n + 0.5) * libm::log(n) - n + 0.5 * libm::log(std::f64::consts::TAU);
        return libm::lgamma(n + 1.0) - stirling;
    }
    let square = n * n;
    (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / square) / square) / square) / square)
        / n
}

/// The largest q in 0..=`max` with `bits(q)` ≤ `budget`, for `bits` rising on that range; 0 if not even one
/// entry fits.
///
/// Invariant: `bits(q)` ≤ budget < `bits(q+1)` wherever q lies strictly inside the range.
pub fn largest_q(max: u64, budget: Bits, bits: impl Fn(u64) -> Bits) -> u64 {
    largest_q_between(0, max, budget, bits)
}

/// As [`largest_q`], for a `min` that is known to fit or is 0.
pub fn largest_q_between(min: u64, max: u64, budget: Bits, bits: impl Fn(u64) -> Bits) -> u64 {
    let (mut fits, mut too_many) = (min, max + 1);
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        if bits(middle) <= budget {
            fits = middle;
        } else {
            too_many = middle;
        }
    }
    fits
}

/// Bits for each value (32) and its sign (1), where every entry has one.
const VALUE_BITS: f64 = 33.0;

/// r(q) = log2 C(d,q) + 33·q, the bits of q indices and a value for each.
///
/// It rises on 0..=d for d < 2³³, since `r(q+1) − r(q) = 33 + log2((d−q)/(q+1)) ≥ 33 − log2 d`.
pub(super) fn with_values(dim: usize, q: usize) -> Bits {
    Bits(log2_choose(dim as u64, q as u64) + VALUE_BITS * q as f64)
}

/// The largest q in 0..=d whose [`with_values`] is within `budget`.
pub(super) fn largest_q_with_values(dim: usize, budget: Bits) -> usize {
    // 1 ≤ C(d,q) ≤ d^q bounds r(q) on both sides; one more or less covers rounding. A negative or undefined
    // budget becomes 0 in the conversion, an infinite one the largest integer.
    let max_q = ((budget.0 / VALUE_BITS) as u64).saturating_add(1).min(dim as u64);
    let costliest = VALUE_BITS + libm::log2(dim.max(1) as f64);
    let min_q = ((budget.0 / costliest) as u64).saturating_sub(1).min(max_q);
    largest_q_between(min_q, max_q, budget, |q| with_values(dim, q as usize)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// C(n, q) in exact integers, while it fits 128 bits.
    fn choose_exactly(n: u128, q: u128) -> u128 {
        (0..q).fold(1, |product, i| product * (n - i) / (i + 1))
    }

    #[test]
    fn logarithms_match_exact_integers_for_all_small_sizes() {
        for n in 1..=120u64 {
            for q in 0..=n.min(20) {
                let exact = (choose_exactly(u128::from(n), u128::from(q)) as f64).log2();
                let ours = log2_choose(n, q);
                assert!((ours - exact).abs() <= 4e-14 * exact.max(1.0), "C({n},{q}): {ours} against {exact}");
                assert!(
                    (log2_choose(n, n - q) - ours).abs() <= 4e-14 * exact.max(1.0),
                    "symmetry at ({n},{q})"
                );
            }
        }
    }

    #[test]
    fn logarithms_match_arbitrary_precision_up_to_a_billion() {
        // Made with mpmath at 60 digits: (loggamma(n+1) − loggamma(q+1) − loggamma(n−q+1)) / log(2).
        for line in include_str!("bits_reference.csv").lines().skip(1) {
            let [n, q, exact] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let (n, q, exact): (u64, u64, f64) =
                (n.parse().unwrap(), q.parse().unwrap(), exact.parse().unwrap());
            for q in [q, n - q] {
                let ours = log2_choose(n, q);
                assert!((ours / exact - 1.0).abs() < 1e-13, "C({n},{q}): {ours} against {exact}");
            }
        }
    }

    proptest! {
        #[test]
        fn pascals_rule_holds((n, q) in (2..2000u64).prop_flat_map(|n| (Just(n), 1..n))) {
            let sum = f64::exp2(log2_choose(n - 1, q - 1) - log2_choose(n, q))
                + f64::exp2(log2_choose(n - 1, q) - log2_choose(n, q));
            prop_assert!((sum - 1.0).abs() < 1e-10);
        }

        #[test]
        fn the_largest_q_is_the_one_a_linear_scan_finds(
            steps in prop::collection::vec(0.0..5.0f64, 0..60),
            budget in 0.0..150.0f64,
        ) {
            let cost = |q: u64| Bits(steps[..q as usize].iter().sum());
            let max_q = steps.len() as u64;
            let scan = (1..=max_q).filter(|&q| cost(q).0 <= budget).max().unwrap_or(0);
            prop_assert_eq!(largest_q(max_q, Bits(budget), cost), scan);
        }
    }
}
