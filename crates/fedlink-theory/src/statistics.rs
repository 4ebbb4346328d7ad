//! Means of independent draws with their 95 % intervals.

use serde::Serialize;

/// The mean of independent draws with Student's 95 % interval mean ± half_width.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The arithmetic mean of the draws.
    pub mean: f64,
    /// Half the width of the interval; infinite for a single draw, which has no spread.
    pub half_width: f64,
}

impl Estimate {
    /// Whether `value` lies in the interval.
    pub fn covers(&self, value: f64) -> bool {
        (value - self.mean).abs() <= self.half_width
    }

    /// The ends of the interval, limited to the range `min` to `max` of the quantity.
    pub fn ends_within(&self, min: f64, max: f64) -> (f64, f64) {
        ((self.mean - self.half_width).max(min), (self.mean + self.half_width).min(max))
    }
}

/// Mean and spread of a sequence of numbers (Welford's recurrence).
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Adds a number.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// Mean and interval of the numbers so far.
    pub fn estimate(&self) -> Estimate {
        self.with_point(student_975)
    }

    /// Mean and interval, `point` being the point of Student's t for these degrees of freedom.
    fn with_point(&self, point: impl Fn(u64) -> f64) -> Estimate {
        let freedom = self.count.saturating_sub(1);
        if freedom == 0 {
            return Estimate { mean: self.mean, half_width: f64::INFINITY };
        }
        let error = (self.squares / freedom as f64 / self.count as f64).sqrt();
        Estimate { mean: self.mean, half_width: point(freedom) * error }
    }
}

/// Mean and interval of `values`.
///
/// ```
/// let estimate = fedlink_theory::statistics::estimate([2.0, 4.0, 4.0, 10.0]);
/// assert_eq!(estimate.mean, 5.0);
/// ```
pub fn estimate(values: impl IntoIterator<Item = f64>) -> Estimate {
    let mut moments = Moments::default();
    values.into_iter().for_each(|value| moments.add(value));
    moments.estimate()
}

/// Mean and interval of `values`, which covers the mean with the probability `level`, such as 0.99.
///
/// ```
/// let wide = fedlink_theory::statistics::estimate_at(0.99, [1.0, 2.0, 3.0]);
/// assert!((wide.half_width - 9.924_843_200_9 / 3f64.sqrt()).abs() < 1e-8); // scipy.stats.t.ppf(0.995, 2)
/// ```
pub fn estimate_at(level: f64, values: impl IntoIterator<Item = f64>) -> Estimate {
    let mut moments = Moments::default();
    values.into_iter().for_each(|value| moments.add(value));
    moments.with_point(|freedom| student_point(level, freedom))
}

/// The number t with P(|T| ≤ t) = `level`, by bisection.
fn student_point(level: f64, freedom: u64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while central_probability(high, freedom) < level && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..70 {
        let middle = 0.5 * (low + high);
        if central_probability(middle, freedom) < level { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The two-sided p-value of Student's test of "the mean is zero": P(|T| ≥ |mean|/(s/√n)) with n − 1 degrees
/// of freedom. None for fewer than two values.
///
/// ```
/// let p = fedlink_theory::statistics::p_of_mean([1.0, 2.0, 3.0]).unwrap();
/// assert!((p - 0.074_179_900_227_44).abs() < 1e-12); // scipy.stats.ttest_1samp
/// ```
pub fn p_of_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut moments = Moments::default();
    values.into_iter().for_each(|value| moments.add(value));
    let freedom = moments.count.saturating_sub(1);
    if freedom == 0 {
        return None;
    }
    let error = (moments.squares / freedom as f64 / moments.count as f64).sqrt();
    match moments.mean.abs() {
        0.0 => Some(1.0),
        _ if error == 0.0 => Some(0.0),
        mean => Some((1.0 - central_probability(mean / error, freedom)).clamp(0.0, 1.0)),
    }
}

/// The 97.5 % point of Student's t with `freedom` ≥ 1 degrees of freedom.
///
/// Up to 60 degrees by bisection on the finite series of the distribution (Abramowitz & Stegun 26.7.3–4),
/// above by the expansion around the normal point (26.7.5), whose first term left out is below 1e-8 there.
fn student_975(freedom: u64) -> f64 {
    if freedom > 60 {
        let (z, n) = (1.959_963_984_540_054_f64, freedom as f64);
        let powers = |exponents: &[(i32, f64)]| exponents.iter().map(|&(e, c)| c * z.powi(e)).sum::<f64>();
        return z
            + powers(&[(3, 1.0), (1, 1.0)]) / (4.0 * n)
            + powers(&[(5, 5.0), (3, 16.0), (1, 3.0)]) / (96.0 * n.powi(2))
            + powers(&[(7, 3.0), (5, 19.0), (3, 17.0), (1, -15.0)]) / (384.0 * n.powi(3))
            + powers(&[(9, 79.0), (7, 776.0), (5, 1482.0), (3, -1920.0), (1, -945.0)])
                / (92_160.0 * n.powi(4));
    }
    let (mut low, mut high) = (1.0, 13.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if central_probability(middle, freedom) < 0.95 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// P(|T| ≤ t).
fn central_probability(t: f64, freedom: u64) -> f64 {
    let n = freedom as f64;
    let angle = libm::atan(t / n.sqrt());
    let (sin, cos) = (t / (n + t * t).sqrt(), (n / (n + t * t)).sqrt());
    let odd = freedom % 2 == 1;
    let mut term = if odd { cos } else { 1.0 };
    let mut sum = 0.0;
    // Odd: cos + (2/3)cos³ + …; even: 1 + (1/2)cos² + (1·3/2·4)cos⁴ + …; both up to the power ν − 2.
    let mut power = u64::from(odd);
    while power + 2 <= freedom {
        sum += term;
        term *= cos * cos * (power + 1) as f64 / (power + 2) as f64;
        power += 2;
    }
    if odd { std::f64::consts::FRAC_2_PI * (angle + sin * sum) } else { sin * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_points_match_an_independent_computation() {
        // scipy.stats.t.ppf(0.975, ν).
        let table = [
            (1, 12.706_204_736_174_69),
            (2, 4.302_652_729_749_46),
            (3, 3.182_446_305_283_71),
            (10, 2.228_138_851_986_27),
            (29, 2.045_229_642_132_70),
            (30, 2.042_272_456_301_24),
            (60, 2.000_297_822_014_26),
            (61, 1.999_623_584_994_94),
            (120, 1.979_930_405_082_44),
            (1000, 1.962_339_080_826_41),
        ];
        for (freedom, point) in table {
            let ours = student_975(freedom);
            assert!((ours - point).abs() < 2e-8, "{freedom} degrees: {ours} against {point}");
        }
    }

    #[test]
    fn points_of_other_levels_match_an_independent_computation() {
        // scipy.stats.t.ppf((1 + level)/2, ν).
        let table = [
            (0.99, 1, 63.656_741_162_871_5),
            (0.99, 9, 3.249_835_541_592_13),
            (0.995, 4, 5.597_568_367_104_26),
            (0.999, 99, 3.391_528_789_139_17),
        ];
        for (level, freedom, point) in table {
            let ours = student_point(level, freedom);
            assert!((ours - point).abs() < 1e-6 * point, "{level}, {freedom}: {ours} against {point}");
        }
    }

    #[test]
    fn the_recurrence_gives_the_textbook_mean_and_interval() {
        let mut moments = Moments::default();
        [2.0, 4.0, 4.0, 10.0].into_iter().for_each(|x| moments.add(x));
        let estimate = moments.estimate();
        // Mean 5, sample variance 36/3 = 12, standard error √3, 3 degrees of freedom.
        assert!((estimate.mean - 5.0).abs() < 1e-15);
        assert!((estimate.half_width - 3.182_446_305_283_71 * 3f64.sqrt()).abs() < 1e-8);
        assert!(estimate.covers(10.4) && !estimate.covers(10.6));
        assert_eq!(estimate.ends_within(0.0, 10.0), (0.0, 10.0));
        let (low, high) = estimate.ends_within(-9.0, 99.0);
        assert!((low + 0.512).abs() < 1e-3 && (high - 10.512).abs() < 1e-3);
    }

    #[test]
    fn one_draw_has_no_interval() {
        let mut moments = Moments::default();
        moments.add(3.0);
        assert_eq!(moments.estimate(), Estimate { mean: 3.0, half_width: f64::INFINITY });
    }
}
