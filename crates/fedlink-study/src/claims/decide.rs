//! Deciding a claim about a plain metric by the seeds, or the draws of the channel, that both sides share.

use super::verdict::{Answer, Pairing};
use crate::goals::Reading;
use crate::statistics::{Estimate, estimate, p_of_mean};

/// The one of two numbers that is claimed to be larger.
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
    let reason = |side: &str, seed: &u64, reading: &Reading| {
        reading.clone().number().err().map(|reason| format!("{side} side, seed {seed}: {reason}"))
    };
    let missing = shared
        .iter()
        .find_map(|(seed, left, right)| reason("left", seed, left).or_else(|| reason("right", seed, right)));
    if missing.is_some() {
        return (Answer::Undecided, None, missing);
    }
    let difference = differences(shared).filter(|known| !known.is_empty()).map(estimate);
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
        None => (Answer::Undecided, None, None),
    }
}

/// Left less right at each seed; none if a number is missing.
pub(super) fn differences(shared: &[(u64, Reading, Reading)]) -> Option<Vec<f64>> {
    shared.iter().map(|(_, left, right)| difference(left, right)).collect()
}

/// The two-sided p-value that belongs to [`decide`]; none where it decides without a test.
pub(super) fn p_value(shared: &[(u64, Reading, Reading)]) -> Option<f64> {
    differences(shared).filter(|differences| differences.len() > 1).and_then(p_of_mean)
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

#[cfg(test)]
mod tests {
    use super::*;
    use Reading::{Beyond, Known, Missing};
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
    fn one_contradiction_outweighs_all_and_one_doubt_all_support() {
        use Answer::{DoesNotHold, Holds, Refused, Undecided};
        assert_eq!(Answer::all([Holds, Refused, Undecided]), Refused);
        assert_eq!(Answer::all([Refused, DoesNotHold]), DoesNotHold);
        assert_eq!(Answer::all([Holds, Holds]), Holds);
        assert_eq!(Answer::all([Holds, Undecided, Holds]), Undecided);
        assert_eq!(Answer::all([Undecided, DoesNotHold, Holds]), DoesNotHold);
        assert_eq!(Answer::all([DoesNotHold, Undecided]), DoesNotHold);
    }

    fn reading() -> impl Strategy<Value = Reading> {
        let known = || (0u32..40).prop_map(|n| Known(f64::from(n) / 7.0));
        prop_oneof![4 => known(), 1 => known().prop_map(|r| if let Known(n) = r { Beyond(n) } else { r }),
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
            let p = p_value(&shared);
            prop_assert!(p.is_none_or(|p| (0.0..=1.0).contains(&p)));
            // At the boundary itself rounding may separate the two.
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
                other => other,
            };
            prop_assert_eq!(below, opposite);
        }
    }
}
