//! Probabilities of sampling that weigh variance against a price.

/// The p that minimize Σ u²/p + Σ c·p subject to Σ p = `total`, 0 < p ≤ 1: p_m = min(1, u_m/√(c_m + λ)), λ by
/// Newton's method with bisection.
///
/// `u` ≥ 0 and `prices` ≥ 0 are finite, of one length; `total` is a whole number of at least 1. Where there
/// are no more than `total` devices all are 1; devices of u = 0 share the remainder equally. It takes a few
/// passes over the devices, and no sorting.
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
    let lambda = multiplier(&u, &prices, total as f64);
    let mut found: Vec<f64> =
        u.iter().zip(&prices).map(|(&u, &price)| probability(u, price + lambda)).collect();
    make_sum_exact(&mut found, &u, total as f64);
    found
}

/// min(1, u/√`under`), 1 where there is no positive root, 0 for u = 0.
fn probability(u: f64, under: f64) -> f64 {
    // The root of a negative number is none, and the minimum then the other one.
    if u > 0.0 { (u / under.sqrt()).min(1.0) } else { 0.0 }
}

/// Chains of sums that do not wait for each other; a fixed number, so that their order is one on every
/// machine.
const LANES: usize = 8;

/// Σ p at λ, and its slope.
fn sum_and_slope(u: &[f64], prices: &[f64], lambda: f64) -> (f64, f64) {
    let (mut sums, mut slopes) = ([0.0; LANES], [0.0; LANES]);
    let mut add = |lane: usize, u: f64, price: f64| {
        let under = price + lambda;
        let p = probability(u, under);
        sums[lane] += p;
        slopes[lane] -= if p < 1.0 && p > 0.0 { 0.5 * p / under } else { 0.0 };
    };
    let (u_parts, price_parts) = (u.chunks_exact(LANES), prices.chunks_exact(LANES));
    let (u_rest, price_rest) = (u_parts.remainder(), price_parts.remainder());
    for (u, prices) in u_parts.zip(price_parts) {
        (0..LANES).for_each(|lane| add(lane, u[lane], prices[lane]));
    }
    u_rest.iter().zip(price_rest).enumerate().for_each(|(lane, (&u, &price))| add(lane, u, price));
    (sums.iter().sum(), slopes.iter().sum())
}

/// A sum of `count` terms that add up to `total` is no more exact than this.
fn tolerance(count: usize, total: f64) -> f64 {
    total * (1e-15 + f64::EPSILON * libm::sqrt(count as f64))
}

/// λ for which Σ p = `total`, up to the rounding of the sum; u ≤ 1, and more than `total` of them are
/// positive.
///
/// Newton's method for (Σ p)⁻² = K⁻², which is linear in λ where no device has a price and no p is 1, and
/// concave where prices differ; bisection where a step would leave the interval or the interval shrinks too
/// slowly.
fn multiplier(u: &[f64], prices: &[f64], total: f64) -> f64 {
    // The sum falls from more than `total` to no more than that between these two: without prices and limits
    // it is `total` at the second.
    let mut low = u.iter().zip(prices).map(|(u, price)| u * u - price).fold(f64::INFINITY, f64::min);
    let mut high = (u.iter().sum::<f64>() / total).powi(2);
    let tolerance = tolerance(u.len(), total);
    let mut at = high;
    for step in 0..1100 {
        let (sum, slope) = sum_and_slope(u, prices, at);
        if (sum - total).abs() <= tolerance {
            return at;
        }
        if sum > total {
            low = at;
        } else {
            high = at;
        }
        let ratio = sum / total;
        let newton = at + 0.5 * sum * (ratio * ratio - 1.0) / -slope;
        let inside = newton > low && newton < high && step % 8 != 7;
        let next = if inside { newton } else { 0.5 * (low + high) };
        if next <= low || next >= high {
            break;
        }
        at = next;
    }
    high
}

/// Makes the sum of `p` equal to `total`: the difference goes to the devices with p < 1 and u > 0, in
/// proportion to p, or in equal parts where these are all zero.
fn make_sum_exact(p: &mut [f64], u: &[f64], total: f64) {
    let tolerance = tolerance(p.len(), total);
    // Once, but where some reach 1 on the way, which then is shared by the others.
    for _ in 0..64 {
        let missing = total - p.iter().sum::<f64>();
        let is_open = |(p, u): (&f64, &f64)| *u > 0.0 && *p < 1.0;
        let (mut count, mut sum) = (0, 0.0);
        for (p, _) in p.iter().zip(u).filter(|&pair| is_open(pair)) {
            (count, sum) = (count + 1, sum + p);
        }
        if missing.abs() <= tolerance || count == 0 {
            break;
        }
        for (p, _) in p.iter_mut().zip(u).filter(|(p, u)| is_open((&**p, *u))) {
            let part = if sum > 0.0 { *p / sum } else { 1.0 / f64::from(count) };
            *p = (*p + missing * part).min(1.0);
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

    #[test]
    fn the_probabilities_are_those_of_a_search_in_fifty_digits() {
        // By bisection on λ in decimal arithmetic of fifty digits, elsewhere.
        let p = probabilities(&[0.7, 0.2, 1.3, 0.05, 0.9], &[0.4, 0.0, 2.5, 0.1, 0.9], 2);
        let truth = [
            0.527_349_514_121_466_7,
            0.171_374_389_595_652_4,
            0.661_513_630_386_58,
            0.041_352_378_158_346_3,
            0.598_410_087_737_954_3,
        ];
        assert!(p.iter().zip(truth).all(|(got, wanted)| (got - wanted).abs() < 1e-14), "{p:?}");
        let u = [3.0, 0.25, 1.5, 6.0, 0.75, 2.0, 0.125];
        let p = probabilities(&u, &[1.0, 7.0, 0.0, 40.0, 0.5, 3.0, 0.25], 3);
        let truth = [
            0.862_176_222_995_388,
            0.058_750_574_306_682,
            0.450_075_431_351_858_9,
            0.839_284_904_050_720_9,
            0.220_137_500_151_804_2,
            0.532_484_174_335_332_9,
            0.037_091_192_808_212_7,
        ];
        assert!(p.iter().zip(truth).all(|(got, wanted)| (got - wanted).abs() < 1e-14), "{p:?}");
    }

    #[test]
    fn a_hundred_thousand_devices_meet_the_conditions_too() {
        let mut rng = crate::base::rng::stream(5, crate::base::rng::Purpose::Test, 0, 0);
        let u: Vec<f64> = (0..100_000).map(|_| rng.exponential().powi(3)).collect();
        let c: Vec<f64> = (0..100_000).map(|_| rng.exponential()).collect();
        for total in [1, 100, 30_000] {
            let p = probabilities(&u, &c, total);
            let sum: f64 = p.iter().sum();
            assert!((sum / total as f64 - 1.0).abs() < 1e-12, "{sum}");
            let level = |i: usize| (u[i] / p[i]).powi(2) - c[i];
            let free: Vec<usize> = (0..u.len()).filter(|&i| p[i] < 1.0 && u[i] > 1e-6).collect();
            let lambda = level(free[0]);
            let slack = |i: usize| 1e-9 * (1.0 + lambda.abs() + c[i]);
            assert!(free.iter().all(|&i| (level(i) - lambda).abs() < slack(i)), "{total}");
            assert!((0..u.len()).filter(|&i| p[i] >= 1.0).all(|i| level(i) >= lambda - slack(i)), "{total}");
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
                let rounding = 1e-6 * (1.0 + level(i).abs() + c[i]);
                prop_assert!((level(i) - level(free[0])).abs() < rounding, "{u:?} {c:?} {p:?}");
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
