//! Probabilities of sampling that weigh variance against a price.

/// The p that minimize Σ u²/p + Σ c·p subject to Σ p = `total`, 0 < p ≤ 1: p_m = min(1, u_m/√(c_m + λ)), λ by
/// Newton's method with bisection.
///
/// `u` ≥ 0 and `prices` ≥ 0 are finite, of one length; `total` is a whole number of at least 1. Where there are no more than
/// `total` devices all are 1; devices of u = 0 have what is left over, in equal parts.
///
/// ```
/// use fedlink::schedule::priced::probabilities;
/// // Without prices p is in proportion to u.
/// let p = probabilities(&[0.1, 0.2, 0.3, 0.4], &[0.0; 4], 1);
/// assert!((p[3] - 0.4).abs() < 1e-12);
/// ```
pub fn probabilities(u: &[f64], prices: &[f64], total: usize) -> Vec<f64> {
    let m = u.len();
    if total >= m {
        return vec![1.0; m];
    }
    let largest = u.iter().copied().fold(0.0, f64::max);
    let positive = u.iter().filter(|u| **u > 0.0).count();
    if largest <= 0.0 {
        return vec![total as f64 / m as f64; m];
    }
    if positive <= total {
        let rest = (total - positive) as f64 / (m - positive).max(1) as f64;
        return u.iter().map(|&u| if u > 0.0 { 1.0 } else { rest }).collect();
    }
    // u² and c share a unit; both are scaled so that u ≤ 1.
    let scale = largest * largest;
    let prices: Vec<f64> = prices.iter().map(|price| (price / scale).min(1e200)).collect();
    let u: Vec<f64> = u.iter().map(|u| u / largest).collect();
    let p = |i: usize, lambda: f64| match prices[i] + lambda {
        _ if u[i] <= 0.0 => 0.0,
        under if under <= 0.0 => 1.0,
        under => (u[i] / libm::sqrt(under)).min(1.0),
    };
    // Σ p − K at λ, and its slope.
    let excess = |lambda: f64| {
        let (mut sum, mut slope) = (0.0, 0.0);
        for (i, price) in prices.iter().enumerate() {
            let part = p(i, lambda);
            sum += part;
            if part < 1.0 && part > 0.0 {
                slope -= 0.5 * part / (price + lambda);
            }
        }
        (sum - total as f64, slope)
    };
    // The sum falls from `positive` to below `total` between these two. Newton's method, and bisection where
    // a step would leave the interval or the interval shrinks too slowly, down to neighboring floats.
    let mut low = (0..m).map(|i| u[i] * u[i] - prices[i]).fold(f64::INFINITY, f64::min);
    let mut high = (m as f64 / total as f64) * (m as f64 / total as f64);
    let mut at = high;
    // A sum of m terms is no more exact than this.
    let tolerance = 1e-15 + f64::EPSILON * libm::sqrt(m as f64);
    for step in 0..1100 {
        let (above, slope) = excess(at);
        if above > 0.0 {
            low = at;
        } else {
            high = at;
        }
        if (-4.0 * tolerance * total as f64..=0.0).contains(&above) {
            break;
        }
        // A hair further where it comes from the left, so that the last step ends on the right, where the sum
        // is not above K.
        let newton = at - above / slope;
        let newton = if above > 0.0 { newton + 2.0 * tolerance * newton.abs() } else { newton };
        let inside = newton > low && newton < high && step % 8 != 7;
        let next = if inside { newton } else { 0.5 * (low + high) };
        if next <= low || next >= high {
            break;
        }
        at = next;
    }
    let mut found: Vec<f64> = (0..m).map(|i| p(i, high)).collect();
    make_sum_exact(&mut found, &u, total as f64);
    found
}

/// Gives what is missing to `total` to those below 1 of u > 0, in proportion to what they have, or in equal parts where
/// that is nothing.
fn make_sum_exact(p: &mut [f64], u: &[f64], total: f64) {
    for _ in 0..p.len() {
        let missing = total - p.iter().sum::<f64>();
        if missing <= 0.0 {
            break;
        }
        let open: Vec<usize> = (0..p.len()).filter(|&i| u[i] > 0.0 && p[i] < 1.0).collect();
        let sum: f64 = open.iter().map(|&i| p[i]).sum();
        for &i in &open {
            let part = if sum > 0.0 { p[i] / sum } else { 1.0 / open.len() as f64 };
            p[i] = (p[i] + missing * part).min(1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_probabilities_are_those_of_the_worked_example() {
        // u = (.1, .2, .3, .4), T = (1, 2, 3, 4), ρ = ½: u² and T both times ½.
        let half = 0.5f64.sqrt();
        let p = probabilities(&[0.1, 0.2, 0.3, 0.4].map(|u| u * half), &[0.5, 1.0, 1.5, 2.0], 1);
        for (got, wanted) in p.iter().zip([0.370_362, 0.193_086, 0.208_368, 0.228_184]) {
            assert!((got - wanted).abs() < 1e-6, "{p:?}");
        }
    }

    proptest! {
        /// Stationarity: u²/p² − c is the same λ for all p < 1, and at least that for p = 1.
        #[test]
        fn the_probabilities_meet_the_conditions_of_the_minimum(
            pairs in prop::collection::vec((0.01..10.0f64, 0.0..10.0f64), 2..10),
            total in 1usize..9,
        ) {
            let (u, c): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let total = total.min(u.len() - 1);
            let p = probabilities(&u, &c, total);
            prop_assert!((p.iter().sum::<f64>() - total as f64).abs() < 1e-9);
            prop_assert!(p.iter().all(|p| *p > 0.0 && *p <= 1.0));
            let level = |i: usize| (u[i] / p[i]).powi(2) - c[i];
            let free: Vec<usize> = (0..u.len()).filter(|&i| p[i] < 1.0 - 1e-9).collect();
            for &i in &free {
                prop_assert!((level(i) - level(free[0])).abs() < 1e-6 * (1.0 + level(i).abs() + c[i]), "{u:?} {c:?} {p:?}");
            }
            if let Some(&first) = free.first() {
                for i in (0..u.len()).filter(|&i| p[i] >= 1.0 - 1e-9) {
                    prop_assert!(level(i) >= level(first) - 1e-6 * (1.0 + level(first).abs() + c[i]));
                }
            }
        }

        #[test]
        fn any_input_gives_probabilities(
            pairs in prop::collection::vec((prop_oneof![Just(0.0), 1e-300..1e300f64], 0.0..1e300f64), 1..9),
            total in 1usize..10,
        ) {
            let (u, c): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let p = probabilities(&u, &c, total);
            prop_assert!(p.iter().all(|p| p.is_finite() && *p >= 0.0 && *p <= 1.0), "{u:?} {c:?} {p:?}");
            let wanted = total.min(u.len()) as f64;
            prop_assert!((p.iter().sum::<f64>() - wanted).abs() < 1e-6 * wanted, "{u:?} {c:?} {p:?}");
        }
    }
}
