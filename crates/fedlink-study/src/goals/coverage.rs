//! Intervals and tests on thousands of simulated studies whose truth is known, runs that do not reach the
//! goal included.

use super::{Goal, Median, Metrics, Reading, paired};
use crate::statistics::{estimate, estimate_at};
use fedlink::base::rng::{Purpose, Stream, stream};
use fedlink::record::Row;

const STUDIES: u64 = 4000;
/// The range of coverages that is accepted for intervals of 95 %; the simulation itself is uncertain by 0.7.
const ACCEPTED: std::ops::RangeInclusive<f64> = 0.93..=0.97;

/// Two curves: the logarithm of the seconds to the goal is normal, with a part that both share at a seed.
#[derive(Clone, Copy)]
struct Truth {
    /// The mean logarithm of each side.
    means: [f64; 2],
    /// The standard deviation of each side alone, and of the shared part.
    own: f64,
    shared: f64,
    /// The seconds at which every run ends.
    end: f64,
}

impl Truth {
    /// E[ln min(X, end)] of a side: with z = (ln end − μ)/σ it is μ·Φ(z) − σ·φ(z) + ln end·(1 − Φ(z)).
    fn restricted(&self, side: usize) -> f64 {
        let (mean, deviation) = (self.means[side], self.own.hypot(self.shared));
        let z = (self.end.ln() - mean) / deviation;
        let below = 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
        let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        mean * below - deviation * density + self.end.ln() * (1.0 - below)
    }

    /// The readings of this number of seeds, each from a run with its evaluations.
    fn study(&self, seeds: u64, random: &mut Stream) -> Vec<(Reading, Reading)> {
        let goal: Goal = "seconds until accuracy >= 0.8".parse().unwrap();
        let read = |seconds: f64| {
            let row = |seconds: f64, accuracy: f64| {
                let mut row = Row::default();
                (row.round, row.test_accuracy, row.total_seconds) = (10, accuracy, Some(seconds));
                row
            };
            let rows = if seconds <= self.end {
                vec![row(0.5 * seconds, 0.6), row(seconds, 0.8), row(self.end, 0.9)]
            } else {
                vec![row(0.5 * self.end, 0.6), row(self.end, 0.7)]
            };
            Metrics::new(&rows, 0.8).read(&goal)
        };
        let seed = |random: &mut Stream| {
            let shared = self.shared * random.normal();
            let [left, right] = self.means.map(|mean| (mean + shared + self.own * random.normal()).exp());
            (read(left), read(right))
        };
        (0..seeds).map(|_| seed(random)).collect()
    }
}

fn truths() -> [Truth; 4] {
    let truth = |difference: f64, end: f64| Truth {
        means: [4.0 + difference, 4.0],
        own: 0.5,
        shared: 0.3,
        end: end.exp(),
    };
    // All reach the goal; 25 % of both sides do not; 50 and 20 % do not; 20 and 4 %.
    [truth(0.4, 50.0), truth(0.0, 4.4), truth(0.5, 4.5), truth(0.5, 5.0)]
}

/// The share of simulated studies in which something holds.
fn share(of: u64, mut holds: impl FnMut(&mut Stream) -> bool) -> f64 {
    let count = (0..STUDIES).filter(|study| holds(&mut stream(1, Purpose::Test, *study, of))).count();
    count as f64 / STUDIES as f64
}

#[test]
fn ratios_are_covered_by_their_intervals() {
    for (index, truth) in truths().into_iter().enumerate() {
        let ratio = (truth.restricted(0) - truth.restricted(1)).exp();
        for seeds in [5, 10, 20] {
            let covered = share(seeds, |random| {
                let found = paired(&truth.study(seeds, random)).unwrap().ratio.unwrap();
                // Without a run that was censored the horizon is not known, and matters as little.
                found.low.unwrap() <= ratio && ratio <= found.high.unwrap()
            });
            assert!(ACCEPTED.contains(&covered), "truth {index}, {seeds} seeds: {covered}");
        }
    }
}

#[test]
fn medians_are_covered_by_their_intervals() {
    for (index, truth) in truths().into_iter().enumerate() {
        let median = truth.means[0].exp();
        for seeds in [5, 6, 8, 10, 20] {
            let covered = share(seeds, |random| {
                let left: Vec<Reading> =
                    truth.study(seeds, random).into_iter().map(|(left, _)| left).collect();
                let found = Median::of(&left).unwrap();
                found.low.unwrap() <= median && found.high.is_none_or(|high| median <= high)
            });
            // Where the median lies beyond the end of the runs, only the lower end can fail.
            if median < 0.99 * truth.end {
                assert!(ACCEPTED.contains(&covered), "truth {index}, {seeds} seeds: {covered}");
            } else {
                assert!(covered >= 0.93, "truth {index}, {seeds} seeds: {covered}");
            }
        }
    }
}

#[test]
fn equal_curves_are_found_different_in_at_most_five_of_a_hundred_studies() {
    let [_, equal, ..] = truths();
    for (seeds, least) in [(5, 0.0), (6, 0.01), (10, 0.035), (20, 0.04)] {
        let decided =
            share(100 + seeds, |random| paired(&equal.study(seeds, random)).unwrap().p.unwrap() <= 0.05);
        // The test is exact: it errs at no more than 5 %, and not at much less where many p-values are
        // possible.
        assert!((least..=0.058).contains(&decided), "{seeds} seeds: {decided}");
    }
}

#[test]
fn differences_are_covered_and_corrected_ones_are_covered_together() {
    let normal = |random: &mut Stream, seeds: u64| -> Vec<f64> {
        (0..seeds).map(|_| 0.02 + 0.01 * random.normal()).collect()
    };
    for seeds in [3, 5, 10] {
        let one = share(200 + seeds, |random| estimate(normal(random, seeds)).covers(0.02));
        assert!(ACCEPTED.contains(&one), "{seeds} seeds: {one}");
        // Eight comparisons, each at 1 − 0.05/8.
        let all = share(300 + seeds, |random| {
            (0..8).all(|_| estimate_at(1.0 - 0.05 / 8.0, normal(random, seeds)).covers(0.02))
        });
        assert!(ACCEPTED.contains(&all), "{seeds} seeds, together: {all}");
    }
}
