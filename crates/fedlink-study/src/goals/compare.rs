//! Two curves compared by a cost, seed by seed.

use super::metrics::Reading;
use crate::statistics::{Estimate, estimate, estimate_at};
use fedlink::base::rng::{Purpose, stream};
use serde::Serialize;
use std::cmp::Ordering;

/// Up to this number of pairs every assignment of signs is enumerated; beyond, they are sampled.
const ENUMERATED: usize = 20;
/// Assignments of signs that are sampled.
const SAMPLED: u32 = 100_000;
/// The logarithm of a ratio of two costs that are ordered, but by an unknown amount.
const ORDERED: f64 = 1e-9;

/// Two sides compared by a cost, seed by seed.
///
/// At one seed the side that reached the goal at the lower cost is *sooner*. A side that reached it beats one
/// that did not, if that one was observed for at least the same cost; if it ended before, the two cannot be
/// ordered. If neither reached it they are tied.
///
/// **Test.** If the sides are exchangeable, the sign of the logarithm of their ratio is a fair coin at every
/// seed. p is the share of all assignments of signs whose sum is at least as far from zero as the measured
/// one (Fisher's randomization test, exact, two-sided). Costs beyond the horizon count as the horizon, which
/// is the lowest cost at which a run ended without the goal. Among n pairs the smallest p is 2^(1−n)
/// ([`smallest_p`]): five seeds decide nothing at 5 %, six may. With more than 20 pairs that differ, 100 000
/// assignments are sampled, always the same ones.
///
/// **Ratio.** The geometric mean of left over right, up to the horizon, with Student's interval of the mean
/// logarithm. In simulations of 5 to 20 seeds it covers the true ratio with 93 to 97 % where a quarter of the
/// runs of both sides or half of one side is censored, and with 90 to 93 % where most runs of one side are
/// and there are fewer than 10 seeds. The percentile bootstrap covers it with 80 to 93 % in the same
/// simulations, and is therefore not used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Paired {
    /// Seeds at which left reached the goal sooner.
    pub sooner: usize,
    /// Seeds at which right did.
    pub later: usize,
    /// Seeds at which neither reached it, or both at the same cost.
    pub tied: usize,
    /// Seeds at which one side ended before the other reached it.
    pub open: usize,
    /// The two-sided p-value of "the sides are exchangeable"; none without a seed.
    pub p: Option<f64>,
    /// Left over right; none if it has no logarithm.
    pub ratio: Option<Ratio>,
    /// The logarithm of left over right at each seed, up to the horizon.
    #[serde(skip)]
    pub(crate) logs: Vec<f64>,
}

/// A ratio of costs with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Ratio {
    /// The geometric mean.
    pub mean: f64,
    /// The lower end of the interval; none for one seed.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The cost up to which it is known; none if both sides reached the goal at every seed.
    pub horizon: Option<f64>,
}

/// The smallest p-value of the exact test with this number of seeds.
pub fn smallest_p(seeds: usize) -> f64 {
    let exact = (1..seeds).fold(1.0, |p, _| 0.5 * p);
    if seeds > ENUMERATED { f64::max(exact, 1.0 / f64::from(SAMPLED + 1)) } else { exact }
}

/// Compares two sides; each pair has the costs of both at one seed. The error is the reason why a cost is
/// missing.
pub fn paired(pairs: &[(Reading, Reading)]) -> Result<Paired, String> {
    for (left, right) in pairs {
        if let Reading::Missing(reason) = left {
            return Err(format!("left side: {reason}"));
        }
        if let Reading::Missing(reason) = right {
            return Err(format!("right side: {reason}"));
        }
    }
    let ends = pairs.iter().flat_map(|(left, right)| [left, right]).filter_map(|reading| match reading {
        Reading::Beyond(end) => Some(*end),
        _ => None,
    });
    let horizon = ends.reduce(f64::min);
    let mut all = Paired::default();
    let mut has_ratio = !pairs.is_empty();
    for (left, right) in pairs {
        let order = order(left, right);
        match order {
            Some(Ordering::Less) => all.sooner += 1,
            Some(Ordering::Greater) => all.later += 1,
            Some(Ordering::Equal) => all.tied += 1,
            None => all.open += 1,
        }
        let [left, right] = [left, right].map(|reading| restricted(reading, horizon));
        // Costs may be zero if nothing was sent.
        let ratio = Some(libm::log(left) - libm::log(right)).filter(|_| left > 0.0 && right > 0.0);
        has_ratio &= ratio.is_some();
        let known = ratio.filter(|log| *log != 0.0);
        all.logs.push(known.unwrap_or(match order {
            Some(Ordering::Less) => -ORDERED,
            Some(Ordering::Greater) => ORDERED,
            _ => 0.0,
        }));
    }
    all.p = (!pairs.is_empty()).then(|| sign_flip_p(&all.logs));
    all.ratio = has_ratio.then(|| {
        let log = estimate(all.logs.iter().copied());
        let end = |log: f64| Some(libm::exp(log)).filter(|end| end.is_finite());
        let known = log.half_width.is_finite();
        Ratio {
            mean: libm::exp(log.mean),
            low: end(log.mean - log.half_width).filter(|_| known),
            high: end(log.mean + log.half_width).filter(|_| known),
            horizon,
        }
    });
    Ok(all)
}

impl Paired {
    /// Whether left is sooner over all seeds; equal if no pair is ordered.
    pub fn order(&self) -> Ordering {
        self.logs.iter().sum::<f64>().total_cmp(&0.0)
    }

    /// The interval of the ratio at another level, such as 0.99; none without an interval.
    pub(crate) fn ratio_at(&self, level: f64) -> Option<[f64; 2]> {
        self.ratio.filter(|ratio| ratio.low.is_some())?;
        let Estimate { mean, half_width } = estimate_at(level, self.logs.iter().copied());
        Some([mean - half_width, mean + half_width].map(libm::exp))
    }
}

/// The side that was sooner at one seed; none if they cannot be ordered.
fn order(left: &Reading, right: &Reading) -> Option<Ordering> {
    use Reading::{Beyond, Known, Missing};
    match (left, right) {
        (Known(left), Known(right)) => Some(left.total_cmp(right)),
        (Known(left), Beyond(right)) => (left <= right).then_some(Ordering::Less),
        (Beyond(left), Known(right)) => (right <= left).then_some(Ordering::Greater),
        (Beyond(_), Beyond(_)) => Some(Ordering::Equal),
        (Missing(_), _) | (_, Missing(_)) => None,
    }
}

/// The cost, or the horizon if it is lower.
fn restricted(reading: &Reading, horizon: Option<f64>) -> f64 {
    let (Reading::Known(cost) | Reading::Beyond(cost)) = reading else { return f64::NAN };
    horizon.map_or(*cost, |horizon| cost.min(horizon))
}

/// The two-sided p-value of the sum of `values` if each has either sign with equal probability.
fn sign_flip_p(values: &[f64]) -> f64 {
    let sizes: Vec<f64> = values.iter().map(|value| value.abs()).filter(|size| *size > 0.0).collect();
    let total: f64 = sizes.iter().sum();
    // Sums of the same numbers in another order differ in their last bits.
    let far = values.iter().sum::<f64>().abs() - 1e-12 * total;
    let Some((first, rest)) = sizes.split_first() else { return 1.0 };
    if sizes.len() > ENUMERATED {
        let mut random = stream(0, Purpose::Signs, 0, 0);
        let flip = |random: &mut fedlink::base::rng::Stream| -> f64 {
            sizes.iter().map(|size| if random.bits() & 1 == 0 { *size } else { -size }).sum()
        };
        let as_far = (0..SAMPLED).filter(|_| flip(&mut random).abs() >= far).count();
        return (as_far + 1) as f64 / f64::from(SAMPLED + 1);
    }
    // By symmetry the first keeps its sign.
    as_far(rest, *first, far) as f64 / (1u64 << rest.len()) as f64
}

/// Assignments of signs to `sizes` with which `sum` ends at least as far from zero as `far`.
fn as_far(sizes: &[f64], sum: f64, far: f64) -> u64 {
    match sizes {
        [] => u64::from(sum.abs() >= far),
        [first, rest @ ..] => as_far(rest, sum + first, far) + as_far(rest, sum - first, far),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reading::{Beyond, Known, Missing};
    use proptest::prelude::*;

    #[test]
    fn a_run_that_reached_the_goal_beats_one_that_did_not() {
        let pairs = [
            (Known(20.0), Known(40.0)),
            (Known(30.0), Beyond(50.0)),
            (Beyond(50.0), Known(45.0)),
            (Beyond(50.0), Beyond(50.0)),
            // At the very end, and after the other had ended.
            (Known(50.0), Beyond(50.0)),
            (Known(60.0), Beyond(50.0)),
        ];
        let all = paired(&pairs).unwrap();
        assert_eq!((all.sooner, all.later, all.tied, all.open), (3, 1, 1, 1));
        // Up to 50: ln 1/2, ln 3/5, ln 10/9, 0, and 0 twice, of which the first is ordered.
        let logs = [0.5f64.ln(), 0.6f64.ln(), (10.0f64 / 9.0).ln(), 0.0, -1e-9, 0.0];
        for (ours, log) in all.logs.iter().zip(logs) {
            assert!((ours - log).abs() < 1e-12, "{ours} against {log}");
        }
        let ratio = all.ratio.unwrap();
        assert!((ratio.mean - (0.5f64 * 0.6 / 0.9).powf(1.0 / 6.0)).abs() < 1e-9);
        assert_eq!((ratio.horizon, all.order()), (Some(50.0), Ordering::Less));
        // Four differ: |−0.693 − 0.511 + 0.105 − 0| is exceeded only where the two large ones have one sign
        // and the small one does not oppose them, or it opposes them and the tiny one helps.
        assert_eq!(all.p, Some(6.0 / 16.0));
    }

    #[test]
    fn a_missing_cost_is_an_error_with_its_reason() {
        let missing = || Missing("no units".to_owned());
        assert_eq!(paired(&[(missing(), Known(1.0))]), Err("left side: no units".into()));
        assert_eq!(paired(&[(Known(1.0), missing())]), Err("right side: no units".into()));
        let none = paired(&[]).unwrap();
        assert_eq!((none.p, none.ratio), (None, None));
        // A cost of zero has an order and no ratio.
        let zero = paired(&[(Known(0.0), Known(2.0)), (Known(1.0), Known(2.0))]).unwrap();
        assert_eq!((zero.sooner, zero.p, zero.ratio), (2, Some(0.5), None));
    }

    #[test]
    fn fishers_test_of_darwins_maize_is_reproduced() {
        // R. A. Fisher, The Design of Experiments (1935), section 21: of the 32 768 assignments 863 have a
        // sum of at least 314, so that p = 1726/32768.
        let darwin = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48].map(f64::from);
        assert_eq!(sign_flip_p(&darwin), 1726.0 / 32_768.0);
        // scipy.stats.permutation_test((x,), mean, permutation_type="samples") gives the same.
        assert_eq!(sign_flip_p(&[1.0, 2.0, 3.0]), 0.25);
        assert_eq!(sign_flip_p(&[1.0, 2.0, -3.0]), 1.0);
        assert_eq!(sign_flip_p(&[0.0, 0.0]), 1.0);
    }

    #[test]
    fn the_smallest_p_is_attained_if_one_side_is_always_sooner() {
        for seeds in [1, 2, 5, 6, 10, 20] {
            let p = paired(&vec![(Known(1.0), Beyond(9.0)); seeds]).unwrap().p;
            assert_eq!(p, Some(smallest_p(seeds)));
        }
        assert_eq!((smallest_p(5), smallest_p(6)), (1.0 / 16.0, 1.0 / 32.0));
        assert!(smallest_p(40) > 9e-6);
    }

    #[test]
    fn sampled_signs_agree_with_the_exact_distribution_of_their_sum() {
        // The distribution of ±1 ± 2 … ± 24, by adding one number after the other.
        let values: Vec<f64> = (1..=24).map(|i| if i % 3 == 0 { -1.0 } else { 1.0 } * f64::from(i)).collect();
        let mut sums = std::collections::BTreeMap::from([(0i32, 1.0f64)]);
        for size in 1..=24 {
            let mut next = std::collections::BTreeMap::new();
            for (sum, share) in sums {
                *next.entry(sum + size).or_default() += 0.5 * share;
                *next.entry(sum - size).or_default() += 0.5 * share;
            }
            sums = next;
        }
        let observed = values.iter().sum::<f64>();
        let exact: f64 =
            sums.iter().filter(|(sum, _)| f64::from(**sum).abs() >= observed).map(|(_, p)| p).sum();
        let ours = sign_flip_p(&values);
        // The standard error of 100 000 samples is 0.0014.
        assert!((ours - exact).abs() < 0.005, "{ours} against {exact}");
        assert_eq!(ours, sign_flip_p(&values));
    }

    fn reading() -> impl Strategy<Value = Reading> {
        prop_oneof![
            3 => (1u32..40).prop_map(|n| Known(f64::from(n) / 7.0)),
            1 => (1u32..40).prop_map(|n| Beyond(f64::from(n) / 7.0)),
        ]
    }

    proptest! {
        /// Independent: every mask of signs, one after the other.
        #[test]
        fn the_p_value_is_that_of_an_enumeration(values in prop::collection::vec(-3i32..4, 1..11)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let observed = values.iter().sum::<f64>().abs();
            let sum = |mask: u32| -> f64 {
                let sign = |i: usize| if mask >> i & 1 == 0 { 1.0 } else { -1.0 };
                values.iter().enumerate().map(|(i, value)| sign(i) * value.abs()).sum()
            };
            let masks = 1u32 << values.len();
            let count = (0..masks).filter(|&mask| sum(mask).abs() >= observed).count();
            prop_assert!((sign_flip_p(&values) - count as f64 / f64::from(masks)).abs() < 1e-15);
        }

        #[test]
        fn swapping_the_sides_swaps_the_counts_and_inverts_the_ratio(
            pairs in prop::collection::vec((reading(), reading()), 1..14),
        ) {
            let swapped: Vec<_> = pairs.iter().cloned().map(|(left, right)| (right, left)).collect();
            let (one, other) = (paired(&pairs).unwrap(), paired(&swapped).unwrap());
            prop_assert_eq!((one.sooner, one.later, one.tied, one.open),
                            (other.later, other.sooner, other.tied, other.open));
            prop_assert_eq!(one.p, other.p);
            prop_assert!((one.ratio.unwrap().mean * other.ratio.unwrap().mean - 1.0).abs() < 1e-9);
        }
    }
}
