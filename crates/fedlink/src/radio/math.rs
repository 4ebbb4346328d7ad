//! Small functions of the radio's formulas, on `libm` so that results do not depend on the platform.

/// Q(x) = P(N(0,1) > x) = ½·erfc(x/√2), the tail of the normal law.
///
/// Invariants: in [0, 1], falling in x, Q(−x) = 1 − Q(x).
///
/// ```
/// use fedlink::radio::math::q_function;
/// assert_eq!(q_function(0.0), 0.5);
/// ```
pub fn q_function(x: f64) -> f64 {
    0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2)
}

/// Q⁻¹(p): the x with Q(x) = p, for p in (0, 1).
///
/// Bisection down to neighboring floats, since a run needs it once. Accurate to a few units in the last digit
/// of x (as far as `erfc` is), for p down to the smallest float.
///
/// ```
/// use fedlink::radio::math::{inverse_q, q_function};
/// assert!((q_function(inverse_q(1e-3)) / 1e-3 - 1.0).abs() < 1e-13);
/// ```
pub fn inverse_q(p: f64) -> f64 {
    assert!(p > 0.0 && p < 1.0, "the normal law has tails of probability in (0, 1)");
    if p > 0.5 {
        return -inverse_q(1.0 - p);
    }
    if p == 0.5 {
        return 0.0;
    }
    // Q(39) is below the smallest float.
    let (mut low, mut high) = (0.0, 39.0);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if q_function(middle) > p { low = middle } else { high = middle }
    }
}

/// E₁(x) = ∫_x^∞ e^(−u)/u du, the exponential integral, for x > 0.
///
/// By its series −γ − ln x − Σ (−x)^k/(k·k!) up to x = 1, and by its continued fraction (Lentz) beyond;
/// relative error below 1e-14. +∞ at 0.
///
/// ```
/// use fedlink::radio::math::exponential_integral;
/// assert!((exponential_integral(0.1) - 1.8229239584193906).abs() < 1e-14);
/// ```
pub fn exponential_integral(x: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    if x <= 0.0 {
        return f64::INFINITY;
    }
    if x <= 1.0 {
        let (mut term, mut sum) = (1.0, 0.0);
        for k in 1..40 {
            term *= -x / f64::from(k);
            sum += term / f64::from(k);
        }
        return -EULER - libm::log(x) - sum;
    }
    // E₁(x) = e^(−x)/(x + 1 − 1/(x + 3 − 4/(x + 5 − …))).
    let mut b = x + 1.0;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut fraction = d;
    for i in 1..200 {
        let a = -f64::from(i) * f64::from(i);
        b += 2.0;
        d = 1.0 / (a * d + b);
        c = b + a / c;
        fraction *= c * d;
    }
    fraction * libm::exp(-x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (p, Q⁻¹(p)) of mpmath at 40 digits.
    const REFERENCE: [(f64, f64); 7] = [
        (0.25, 0.674_489_750_196_081_7),
        (0.1, 1.281_551_565_544_600_4),
        (1e-3, 3.090_232_306_167_813_5),
        (1e-5, 4.264_890_793_922_825),
        (1e-9, 5.997_807_015_007_687),
        (1e-100, 21.273_453_560_965_324),
        (1e-300, 37.047_096_299_361_2),
    ];

    #[test]
    fn the_tail_of_the_normal_law_and_its_inverse_match_tables() {
        for (p, x) in REFERENCE {
            assert!((inverse_q(p) - x).abs() <= 4e-15 * x.abs(), "p = {p}: {} is not {x}", inverse_q(p));
            assert!((q_function(x) / p - 1.0).abs() < 2e-13, "x = {x}: {}", q_function(x));
        }
        assert_eq!(inverse_q(0.5), 0.0);
        assert_eq!(inverse_q(0.75), -inverse_q(0.25));
        assert!(inverse_q(f64::from_bits(1)).is_finite());
    }

    #[test]
    fn the_exponential_integral_is_that_of_the_tables() {
        // scipy.special.exp1.
        let known = [
            (0.01, 4.037_929_576_538_113),
            (0.1, 1.822_923_958_419_390_6),
            (0.2, 1.222_650_544_183_892_9),
            (0.5, 0.559_773_594_776_160_8),
            (1.0, 0.219_383_934_395_520_27),
            (2.0, 0.048_900_510_708_061_12),
            (10.0, 4.156_968_929_685_324e-6),
        ];
        for (x, truth) in known {
            let value = exponential_integral(x);
            assert!((value / truth - 1.0).abs() < 1e-14, "{x}: {value}");
        }
        assert_eq!(exponential_integral(0.0), f64::INFINITY);
        // Both branches meet at 1.
        let (below, above) = (exponential_integral(1.0), exponential_integral(1.0 + 1e-12));
        assert!((below - above).abs() < 1e-12);
    }
}
