//! Logarithms of binomial coefficients.

/// log2 C(n, q), the bits that identify one of all sets of q indices among n.
///
/// With the entropy written out, `ln C = q·ln(n/q) − (n−q)·ln(1−q/n) + ½·ln(n / (2π·q·(n−q))) + δ(n) −
/// δ(q) − δ(n−q)`, where δ is the error of Stirling's formula. No large terms cancel, so the relative
/// error stays near the rounding unit for every n; a difference of three log-gammas would lose nine
/// digits at n = 10⁹.
///
/// ```
/// use fedlink_wire::log2_choose;
/// assert!((log2_choose(10, 3) - 120f64.log2()).abs() < 1e-14);
/// ```
pub fn log2_choose(n: u64, q: u64) -> f64 {
    if q == 0 || q >= n {
        return 0.0;
    }
    // C(n, q) = C(n, n−q), and 1 − q/n keeps its digits only if q/n is not near 1.
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
        for line in include_str!("choose_reference.csv").lines().skip(1) {
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
    }
}
