//! The median of a cost over the seeds of a curve, of which some may not have reached the goal.

use super::metrics::Reading;
use serde::Serialize;

/// The level of intervals.
const LEVEL: f64 = 0.95;
/// With fewer seeds there is no interval.
const FEWEST: usize = 5;

/// The median of a cost over seeds, with its interval. Runs that did not reach the goal count as larger than
/// their cost at the end.
///
/// The interval is that of the sign test, without any assumption about the distribution: the d-th smallest
/// and the d-th largest cost cover the median with the probability γ_d = 1 − 2·P(B ≤ d − 1), B being the
/// number of heads of n fair coins. Between the last d with γ_d ≥ 95 % and the next one it is interpolated
/// (T. P. Hettmansperger and S. J. Sheather, Statistics & Probability Letters 4, 1986), so that it covers the
/// median with about 95 % at every n. Five seeds allow 93.75 % (the smallest and the largest cost), fewer no
/// interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Median {
    /// The median; none if too many runs did not reach the goal.
    pub value: Option<f64>,
    /// The lower bound of the median where it has no value.
    pub beyond: Option<f64>,
    /// The lower end of its interval; none with fewer than five seeds.
    pub low: Option<f64>,
    /// The upper end; none with fewer than five seeds, or if it is open because runs did not reach the goal.
    pub high: Option<f64>,
    /// The probability with which the interval covers the median; none with fewer than five seeds.
    pub level: Option<f64>,
    /// Runs that reached the goal.
    pub reached: usize,
    /// All runs.
    pub of: usize,
}

impl Median {
    /// The median of readings; none if there is none, or if one is missing.
    ///
    /// ```
    /// use fedlink_study::goals::{Median, Reading};
    /// let median = Median::of(&[Reading::Known(30.0), Reading::Beyond(60.0),
    /// Reading::Known(20.0)]).unwrap(); assert_eq!((median.value, median.reached, median.of), (Some(30.0), 2,
    /// 3));
    /// ```
    pub fn of(readings: &[Reading]) -> Option<Self> {
        let bounds = |open: fn(f64) -> f64| -> Option<Vec<f64>> {
            let value = |reading: &Reading| match reading {
                Reading::Known(cost) => Some(*cost),
                Reading::Beyond(cost) => Some(open(*cost)),
                Reading::Missing(_) => None,
            };
            let mut values = readings.iter().map(value).collect::<Option<Vec<f64>>>()?;
            values.sort_by(f64::total_cmp);
            Some(values)
        };
        // The costs if every run reached the goal just after its end, and if none did.
        let (soonest, latest) = (bounds(|cost| cost)?, bounds(|_| f64::INFINITY)?);
        if readings.is_empty() {
            return None;
        }
        let of = readings.len();
        let reached = readings.iter().filter(|reading| matches!(reading, Reading::Known(_))).count();
        let (least, most) = (crate::statistics::median(&soonest), crate::statistics::median(&latest));
        // Equal bits: no value was rounded between the two.
        let value = (least.to_bits() == most.to_bits()).then_some(least);
        let place = Place::of(of);
        Some(Self {
            value,
            beyond: value.is_none().then_some(least),
            low: place.map(|place| place.low(&soonest)),
            high: place.map(|place| place.high(&latest)).filter(|high| high.is_finite()),
            level: place.map(|place| place.level),
            reached,
            of,
        })
    }

    /// The median as a table shows it: `36.8` if all runs reached the goal, otherwise with their number,
    /// `36.8 (7/10)`, or with the bound that it exceeds, `> 60 (3/10)`.
    pub fn text(&self, number: impl Fn(f64) -> String) -> String {
        let Self { value, beyond, reached, of, .. } = self;
        match (value, beyond) {
            (Some(value), _) if reached == of => number(*value),
            (Some(value), _) => format!("{} ({reached}/{of})", number(*value)),
            (None, beyond) => format!("> {} ({reached}/{of})", number(beyond.unwrap_or(0.0))),
        }
    }

    /// The interval, `[29, 45]` or `[29, open]`; empty without one.
    pub fn interval(&self, number: impl Fn(f64) -> String) -> String {
        let Some(low) = self.low else { return String::new() };
        format!("[{}, {}]", number(low), self.high.map_or_else(|| "open".to_owned(), number))
    }
}

/// The ends of the interval among n sorted values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    /// The lower end lies between the value at this index and the next one.
    index: usize,
    /// The position between these two values, from 0 to 1.
    between: f64,
    level: f64,
}

impl Place {
    fn of(n: usize) -> Option<Self> {
        if n < FEWEST {
            return None;
        }
        // γ_d for d = 1, 2, …
        let coverage = |d: usize| 1.0 - 2.0 * at_most(n, d - 1);
        if coverage(1) < LEVEL {
            return Some(Self { index: 0, between: 0.0, level: coverage(1) });
        }
        let mut d = 1;
        while coverage(d + 1) >= LEVEL {
            d += 1;
        }
        let (wide, narrow) = (coverage(d), coverage(d + 1));
        let share = (wide - LEVEL) / (wide - narrow);
        let between = (n - d) as f64 * share / (d as f64 + (n as f64 - 2.0 * d as f64) * share);
        Some(Self { index: d - 1, between, level: LEVEL })
    }

    fn low(self, sorted: &[f64]) -> f64 {
        mix(sorted[self.index], sorted[(self.index + 1).min(sorted.len() - 1)], self.between)
    }

    fn high(self, sorted: &[f64]) -> f64 {
        let last = sorted.len() - 1 - self.index;
        mix(sorted[last], sorted[last.saturating_sub(1)], self.between)
    }
}

/// (1 − share)·a + share·b, and a if the share of b is 0.
fn mix(a: f64, b: f64, share: f64) -> f64 {
    if share == 0.0 || a == b { a } else { (1.0 - share) * a + share * b }
}

/// P(B ≤ `max`) for the number B of heads of `n` fair coins. By logarithms, so that a thousand coins do not
/// underflow.
fn at_most(n: usize, max: usize) -> f64 {
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut sum = 0.0;
    for heads in 0..=max {
        sum += libm::exp(log_term);
        log_term += libm::log((n - heads) as f64 / (heads + 1) as f64);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reading::{Beyond, Known};

    fn known(values: &[f64]) -> Vec<Reading> {
        values.iter().map(|&value| Known(value)).collect()
    }

    #[test]
    fn runs_that_did_not_reach_the_goal_count_as_later() {
        let median = |readings: &[Reading]| Median::of(readings).unwrap();
        let three = median(&[Known(20.0), Beyond(60.0), Known(30.0)]);
        assert_eq!((three.value, three.reached, three.of), (Some(30.0), 2, 3));
        assert_eq!(three.text(|value| value.to_string()), "30 (2/3)");
        // One of three: the median lies beyond 60.
        let one = median(&[Beyond(60.0), Known(20.0), Beyond(60.0)]);
        assert_eq!((one.value, one.beyond), (None, Some(60.0)));
        assert_eq!(one.text(|value| value.to_string()), "> 60 (1/3)");
        // Two of four: the mean of 30 and more than 60 is more than 45.
        let half = median(&[Known(20.0), Known(30.0), Beyond(60.0), Beyond(60.0)]);
        assert_eq!(half.text(|value| value.to_string()), "> 45 (2/4)");
        // A run that ended at 20 may have been second or last: the median is 25 or later.
        let early = median(&[Beyond(20.0), Known(25.0), Known(30.0)]);
        assert_eq!((early.value, early.beyond), (None, Some(25.0)));
        assert_eq!(median(&known(&[4.0, 2.0])).text(|value| value.to_string()), "3");
        assert_eq!(Median::of(&[]), None);
        assert_eq!(Median::of(&[Known(1.0), Reading::Missing("x".into())]), None);
    }

    #[test]
    fn the_interval_is_that_of_the_published_formula() {
        // n = 10: γ₂ = 1 − 22/1024 = 0.97852, γ₃ = 1 − 112/1024 = 0.89063, so the share is 0.32444 and
        // λ = 8·0.32444/(2 + 6·0.32444) = 0.65766. The values are their own ranks.
        let ten = Median::of(&known(&[7.0, 3.0, 1.0, 10.0, 2.0, 9.0, 4.0, 8.0, 5.0, 6.0])).unwrap();
        assert_eq!(ten.value, Some(5.5));
        assert!((ten.low.unwrap() - 2.657_66).abs() < 1e-5, "{ten:?}");
        assert!((ten.high.unwrap() - 8.342_34).abs() < 1e-5, "{ten:?}");
        // n = 6: γ₁ = 0.96875, γ₂ = 0.78125, share 0.1, λ = 0.5/1.4.
        let six = Median::of(&known(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).unwrap();
        assert!((six.low.unwrap() - (1.0 + 0.5 / 1.4)).abs() < 1e-12);
        let five = Median::of(&known(&[1.0, 2.0, 3.0, 4.0, 9.0])).unwrap();
        assert_eq!((five.low, five.high, five.level), (Some(1.0), Some(9.0), Some(0.9375)));
        let four = Median::of(&known(&[1.0, 2.0, 3.0, 4.0])).unwrap();
        assert_eq!(
            (four.low, four.level, four.interval(|value| value.to_string()).as_str()),
            (None, None, "")
        );
    }

    #[test]
    fn an_end_among_runs_that_did_not_reach_the_goal_is_open() {
        let mut ten = known(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        ten.extend([Beyond(8.0), Beyond(8.0), Beyond(8.0)]);
        let median = Median::of(&ten).unwrap();
        assert_eq!((median.value, median.high), (Some(5.5), None));
        assert_eq!(median.interval(|value| format!("{value:.1}")), "[2.7, open]");
        // One of ten did not: the 9th value is known, the interpolation reaches no further.
        let mut one = known(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        one.push(Beyond(9.5));
        assert!((Median::of(&one).unwrap().high.unwrap() - 8.342_34).abs() < 1e-5);
    }

    #[test]
    fn the_probability_of_heads_matches_exact_integers() {
        for n in 1..=60usize {
            let mut row = vec![1u128];
            for _ in 0..n {
                let inner: Vec<u128> = row.windows(2).map(|pair| pair[0] + pair[1]).collect();
                row = [vec![1], inner, vec![1]].concat();
            }
            for max in 0..n {
                let exact = row[..=max].iter().sum::<u128>() as f64 / (1u128 << n) as f64;
                assert!((at_most(n, max) - exact).abs() <= 1e-12, "{n}, {max}");
            }
        }
        // By symmetry, for binomials whose single terms underflow.
        assert!((at_most(2001, 1000) - 0.5).abs() < 1e-9);
    }
}
