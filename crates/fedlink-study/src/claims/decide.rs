//! Deciding a claim by the seeds, or the draws of the channel, that both sides share.

use super::reading::Reading;
use super::verdict::{Answer, Pairing};
use crate::statistics::{Estimate, estimate, p_of_mean};

/// The probability of each tail of a two-sided test at 5 %.
const TAIL: f64 = 0.025;

/// Which of two numbers is claimed to be larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// `>`
    Above,
    /// `<`
    Below,
}

/// The answer, the difference and the note of a [`Pair`](super::Pair).
pub(super) type Decision = (Answer, Option<Estimate>, Option<String>);

/// Decides "left is above (below) right" by the seeds that both have, each with its two readings.
pub(super) fn decide(order: Order, pairing: Pairing, shared: &[(u64, Reading, Reading)]) -> Decision {
    let missing = shared.iter().find_map(|(seed, left, right)| match (left, right) {
        (Reading::Missing(reason), _) => Some(format!("left side, seed {seed}: {reason}")),
        (_, Reading::Missing(reason)) => Some(format!("right side, seed {seed}: {reason}")),
        _ => None,
    });
    if missing.is_some() {
        return (Answer::Undecided, None, missing);
    }
    let known: Option<Vec<f64>> = shared.iter().map(|(_, left, right)| difference(left, right)).collect();
    let difference = known.filter(|known| !known.is_empty()).map(estimate);
    if let (Pairing::Draw, [_], Some(difference)) = (pairing, shared, difference) {
        let answer = by_interval(order, Estimate { half_width: 0.0, ..difference });
        return (answer, Some(difference), Some("a single curve on each side: judged by the sign".into()));
    }
    if shared.len() < 2 {
        let how_many = if shared.is_empty() { "no seed is" } else { "only one seed is" };
        let note = format!(
            "{how_many} shared; a difference cannot be separated from random variation with fewer than two"
        );
        return (Answer::Undecided, difference, Some(note));
    }
    match difference {
        Some(difference) => (by_interval(order, difference), Some(difference), None),
        None => by_signs(order, shared),
    }
}

/// The two-sided p-value that belongs to [`decide`]; none where it decides without a test.
pub(super) fn p_value(pairing: Pairing, shared: &[(u64, Reading, Reading)]) -> Option<f64> {
    let missing = |reading: &Reading| matches!(reading, Reading::Missing(_));
    if shared.len() < 2 || shared.iter().any(|(_, left, right)| missing(left) || missing(right)) {
        return None;
    }
    let known: Option<Vec<f64>> = shared.iter().map(|(_, left, right)| difference(left, right)).collect();
    match (known, pairing) {
        (Some(differences), _) => p_of_mean(differences),
        (None, Pairing::Seed) => {
            let (above, below) = signs(shared);
            Some((2.0 * tail(shared.len(), above.max(below))).min(1.0))
        }
        (None, Pairing::Draw) => None,
    }
}

/// In how many seeds left is surely higher, and surely lower.
fn signs(shared: &[(u64, Reading, Reading)]) -> (usize, usize) {
    let count = |wanted: fn(&Reading, &Reading) -> bool| {
        shared.iter().filter(|(_, left, right)| wanted(left, right)).count()
    };
    (count(surely_above), count(|left, right| surely_above(right, left)))
}

fn difference(left: &Reading, right: &Reading) -> Option<f64> {
    match (left, right) {
        (Reading::Known(left), Reading::Known(right)) => Some(left - right),
        _ => None,
    }
}

fn by_interval(order: Order, Estimate { mean, half_width }: Estimate) -> Answer {
    let (above, below) = (mean - half_width > 0.0, mean + half_width < 0.0);
    match order {
        Order::Above if above => Answer::Holds,
        Order::Below if below => Answer::Holds,
        _ if above || below => Answer::DoesNotHold,
        _ => Answer::Undecided,
    }
}

/// The sign test on seeds some of which have only a lower bound: see the module's page.
fn by_signs(order: Order, shared: &[(u64, Reading, Reading)]) -> Decision {
    let (above, below) = signs(shared);
    let (with, against) = if order == Order::Above { (above, below) } else { (below, above) };
    // A seed that cannot be ordered is counted for the other side, whichever side that is.
    let answer = if tail(shared.len(), with) <= TAIL {
        Answer::Holds
    } else if tail(shared.len(), against) <= TAIL {
        Answer::DoesNotHold
    } else {
        Answer::Undecided
    };
    let open = shared.len() - above - below;
    let note = format!(
        "a target was not reached, so seeds are counted: left is higher in {above}, lower in {below}, \
         cannot be ordered in {open}; two-sided sign test at 5 %"
    );
    (answer, None, Some(note))
}

fn surely_above(left: &Reading, right: &Reading) -> bool {
    match (left, right) {
        (Reading::Known(left) | Reading::AtLeast(left), Reading::Known(right)) => left > right,
        _ => false,
    }
}

/// P(X ≥ `min`) for X the number of heads of `tosses` fair coins. By logarithms, so that a thousand tosses
/// do not underflow.
fn tail(tosses: usize, min: usize) -> f64 {
    let mut log_term = -(tosses as f64) * std::f64::consts::LN_2;
    let mut sum = 0.0;
    for heads in (min..=tosses).rev() {
        sum += libm::exp(log_term);
        log_term += libm::log(heads as f64 / (tosses - heads + 1) as f64);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reading::{AtLeast, Known, Missing};
    use proptest::prelude::*;

    fn seeds(readings: Vec<(Reading, Reading)>) -> Vec<(u64, Reading, Reading)> {
        readings.into_iter().enumerate().map(|(seed, (left, right))| (seed as u64, left, right)).collect()
    }

    fn answer(order: Order, readings: &[(Reading, Reading)]) -> Answer {
        decide(order, Pairing::Seed, &seeds(readings.to_vec())).0
    }

    /// Left less right, right being 1.
    fn known(differences: &[f64]) -> Vec<(Reading, Reading)> {
        differences.iter().map(|d| (Known(1.0 + d), Known(1.0))).collect()
    }

    #[test]
    fn the_paired_interval_decides() {
        // Mean 2, sample variance 1, so 2 ± 4.3027/√3 = 2 ± 2.4841: undecided.
        let (verdict, difference, note) =
            decide(Order::Above, Pairing::Seed, &seeds(known(&[1.0, 2.0, 3.0])));
        assert_eq!((verdict, note), (Answer::Undecided, None));
        let difference = difference.unwrap();
        assert!((difference.mean - 2.0).abs() < 1e-12 && (difference.half_width - 2.484_137_7).abs() < 1e-6);
        // Mean 3, the same variance: the interval begins at 0.516.
        let three = known(&[2.0, 3.0, 4.0]);
        assert_eq!(answer(Order::Above, &three), Answer::Holds);
        assert_eq!(answer(Order::Below, &three), Answer::DoesNotHold);
    }

    #[test]
    fn an_interval_that_touches_zero_decides_nothing() {
        for order in [Order::Above, Order::Below] {
            assert_eq!(answer(order, &known(&[0.0, 0.0, 0.0])), Answer::Undecided);
        }
        assert_eq!(answer(Order::Above, &known(&[0.5, 0.5])), Answer::Holds);
    }

    #[test]
    fn fewer_than_two_shared_seeds_decide_nothing_and_a_note_explains_it() {
        let (verdict, difference, note) = decide(Order::Above, Pairing::Seed, &seeds(known(&[0.25])));
        assert_eq!((verdict, difference.unwrap().mean), (Answer::Undecided, 0.25));
        assert!(note.unwrap().contains("only one seed"));
        let (verdict, difference, note) = decide(Order::Above, Pairing::Seed, &[]);
        assert_eq!((verdict, difference), (Answer::Undecided, None));
        assert!(note.unwrap().contains("no seed"));
    }

    #[test]
    fn one_draw_of_the_bound_is_judged_by_its_sign_and_more_by_their_interval() {
        let of = |order, differences: &[f64]| decide(order, Pairing::Draw, &seeds(known(differences)));
        let (verdict, difference, note) = of(Order::Below, &[-0.25]);
        assert_eq!((verdict, difference.unwrap().mean), (Answer::Holds, -0.25));
        assert!(difference.unwrap().half_width.is_infinite() && note.unwrap().contains("by the sign"));
        assert_eq!(of(Order::Above, &[-0.25]).0, Answer::DoesNotHold);
        assert_eq!(of(Order::Above, &[0.0]).0, Answer::Undecided);
        assert_eq!(of(Order::Above, &[1.0, 2.0, 3.0]).0, Answer::Undecided);
        assert_eq!(
            of(Order::Above, &[2.0, 3.0, 4.0]),
            (Answer::Holds, of(Order::Below, &[2.0, 3.0, 4.0]).1, None)
        );
        let missing = [(0, Missing("it is not finite".into()), Known(1.0))];
        assert_eq!(decide(Order::Above, Pairing::Draw, &missing).0, Answer::Undecided);
    }

    #[test]
    fn a_missing_number_leaves_the_claim_open_and_is_named() {
        let mut readings = known(&[1.0, 1.0, 1.0]);
        readings[1].1 = Missing("it diverged".into());
        let (verdict, difference, note) = decide(Order::Above, Pairing::Seed, &seeds(readings));
        assert_eq!((verdict, difference), (Answer::Undecided, None));
        assert_eq!(note.unwrap(), "right side, seed 1: it diverged");
    }

    #[test]
    fn seeds_that_never_reach_the_target_are_decided_by_counting() {
        let never_left = (AtLeast(501.0), Known(300.0));
        // Six of six: 1/64 ≤ 0.025. Five of five: 1/32 is more.
        assert_eq!(answer(Order::Above, &vec![never_left.clone(); 6]), Answer::Holds);
        assert_eq!(answer(Order::Below, &vec![never_left.clone(); 6]), Answer::DoesNotHold);
        assert_eq!(answer(Order::Above, &vec![never_left.clone(); 5]), Answer::Undecided);
        // Nine of ten: 11/1024; eight of ten: 56/1024.
        let neither = (AtLeast(501.0), AtLeast(501.0));
        let mut ten = vec![never_left.clone(); 9];
        ten.push(neither.clone());
        assert_eq!(answer(Order::Above, &ten), Answer::Holds);
        ten[0] = (Known(200.0), Known(300.0));
        let (verdict, _, note) = decide(Order::Above, Pairing::Seed, &seeds(ten));
        assert_eq!(verdict, Answer::Undecided);
        assert!(note.unwrap().contains("higher in 8, lower in 1, cannot be ordered in 1"));
        assert_eq!(answer(Order::Above, &vec![neither; 30]), Answer::Undecided);
    }

    #[test]
    fn a_bound_below_the_other_number_decides_nothing() {
        // A short run that ended at round 100, against one that got there at round 300.
        assert_eq!(answer(Order::Above, &vec![(AtLeast(101.0), Known(300.0)); 30]), Answer::Undecided);
        assert_eq!(answer(Order::Below, &vec![(AtLeast(101.0), Known(300.0)); 30]), Answer::Undecided);
    }

    #[test]
    fn the_tail_matches_exact_integers() {
        for tosses in 0..=60usize {
            let mut row = vec![1u128];
            for _ in 0..tosses {
                let inner: Vec<u128> = row.windows(2).map(|pair| pair[0] + pair[1]).collect();
                row = [vec![1], inner, vec![1]].concat();
            }
            for min in 0..=tosses + 1 {
                let exact = row.iter().skip(min).sum::<u128>() as f64 / (1u128 << tosses) as f64;
                let ours = tail(tosses, min);
                assert!((ours - exact).abs() <= 1e-12 * exact, "{tosses}, {min}: {ours} against {exact}");
            }
        }
        // By symmetry P(X ≥ 1001) = 1/2 for 2001 tosses, whose single terms underflow.
        assert!((tail(2001, 1001) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn one_contradiction_outweighs_all_and_one_doubt_all_support() {
        use Answer::{DoesNotHold, Holds, Undecided};
        assert_eq!(Answer::all([Holds, Holds]), Holds);
        assert_eq!(Answer::all([Holds, Undecided, Holds]), Undecided);
        assert_eq!(Answer::all([Undecided, DoesNotHold, Holds]), DoesNotHold);
        assert_eq!(Answer::all([DoesNotHold, Undecided]), DoesNotHold);
    }

    fn reading() -> impl Strategy<Value = Reading> {
        let known = || (0u32..40).prop_map(|n| Known(f64::from(n) / 7.0));
        prop_oneof![4 => known(), 1 => known().prop_map(|r| if let Known(n) = r { AtLeast(n) } else { r }),
            1 => Just(Missing("it diverged".into()))]
    }

    proptest! {
        #[test]
        fn swapping_the_sides_and_the_sign_changes_nothing(
            readings in proptest::collection::vec((reading(), reading()), 0..14),
        ) {
            let swapped = readings.iter().cloned().map(|(left, right)| (right, left)).collect();
            let (verdict, difference, _) = decide(Order::Above, Pairing::Seed, &seeds(readings));
            let (other, negated, _) = decide(Order::Below, Pairing::Seed, &seeds(swapped));
            prop_assert_eq!(verdict, other);
            let ends = |sign: f64| move |d: Estimate| (sign * d.mean, d.half_width);
            prop_assert_eq!(difference.map(ends(-1.0)), negated.map(ends(1.0)));
        }

        #[test]
        fn a_p_value_of_at_most_five_percent_goes_with_a_decision(
            readings in proptest::collection::vec((reading(), reading()), 0..14),
        ) {
            let shared = seeds(readings);
            let decided = decide(Order::Above, Pairing::Seed, &shared).0 != Answer::Undecided;
            let p = p_value(Pairing::Seed, &shared);
            prop_assert!(p.is_none_or(|p| (0.0..=1.0).contains(&p)));
            // At the boundary itself rounding may tell the two apart.
            prop_assume!(p.is_none_or(|p| (p - 0.05).abs() > 1e-9));
            prop_assert_eq!(decided, p.is_some_and(|p| p < 0.05));
        }

        #[test]
        fn a_claim_and_its_opposite_never_both_hold(
            readings in proptest::collection::vec((reading(), reading()), 0..14),
        ) {
            let (above, below) = (answer(Order::Above, &readings), answer(Order::Below, &readings));
            let opposite = match above {
                Answer::Holds => Answer::DoesNotHold,
                Answer::DoesNotHold => Answer::Holds,
                Answer::Undecided => Answer::Undecided,
            };
            prop_assert_eq!(below, opposite);
        }
    }
}
