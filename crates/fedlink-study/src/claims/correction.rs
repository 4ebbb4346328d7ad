//! The correction for claims with many comparisons.

use super::verdict::{Answer, Pair};
use serde::Serialize;

/// The level of a decision.
pub(super) const LEVEL: f64 = 0.05;

/// The correction for the number of comparisons of all claims of a file.
///
/// Without a correction each comparison is decided at 5 % on its own: the probability of at least one wrong
/// decision among m comparisons of equal curves grows towards 1 − 0.95^m. Holm's correction keeps it at 5 %
/// for all comparisons of all claims together, for any dependence between them: with the two-sided p-values
/// in ascending order, the adjusted ones are p̃₍ᵢ₎ = min(1, max over j ≤ i of (m − j + 1)·p₍ⱼ₎), and a
/// comparison is decided if p̃ ≤ 5 % (S. Holm, Scand. J. Statist. 6, 1979). Comparisons without a p-value (a
/// number is missing, fewer than two seeds, one draw of the bound, a refusal) are left out and do not change.
///
/// Every interval of the family is given once more at the level 1 − 0.05/m (Bonferroni): all m of them cover
/// their quantities together with at least 95 %. Holm's decisions are slightly sharper than these intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Correction {
    /// No correction.
    #[default]
    None,
    /// Holm's.
    Holm,
}

impl Correction {
    /// Adjusts the comparisons of one family.
    pub(super) fn apply(self, pairs: &mut [&mut Pair]) {
        let known: Vec<(usize, f64)> =
            pairs.iter().enumerate().filter_map(|(i, pair)| Some((i, pair.p?))).collect();
        if self == Self::None || known.len() < 2 {
            return;
        }
        let p: Vec<f64> = known.iter().map(|(_, p)| *p).collect();
        for ((i, _), adjusted) in known.iter().zip(holm(&p)) {
            let pair = &mut *pairs[*i];
            pair.adjusted_p = Some(adjusted);
            pair.corrected = pair.interval_at(1.0 - LEVEL / p.len() as f64);
            if adjusted > LEVEL && pair.verdict != Answer::Undecided {
                let why = format!(
                    "{} by itself, but its p-value adjusted for {} comparisons is {adjusted:.3}",
                    pair.verdict,
                    p.len()
                );
                pair.note = Some(pair.note.take().map_or(why.clone(), |note| format!("{note}; {why}")));
                pair.verdict = Answer::Undecided;
            }
        }
    }

    /// The comparisons that are corrected together, of this number in a file.
    pub(super) fn family(self, comparisons: usize) -> usize {
        match self {
            Self::None => 1,
            Self::Holm => comparisons.max(1),
        }
    }
}

/// Holm's adjusted p-values, in the order of `p`.
fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![0.0; p.len()];
    let mut largest = 0.0f64;
    for (rank, &i) in order.iter().enumerate() {
        largest = largest.max((p.len() - rank) as f64 * p[i]).min(1.0);
        adjusted[i] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_adjusted_values_are_those_of_the_published_formula() {
        // As statsmodels.stats.multitest.multipletests(p, method="holm") and R's p.adjust give them; by hand:
        // sorted .005, .01, .03, .04 times 4, 3, 2, 1 = .02, .03, .06, .04, made monotone .02, .03, .06, .06.
        let ours = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (ours, expected) in ours.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((ours - expected).abs() < 1e-15, "{ours} {expected}");
        }
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert_eq!(holm(&[]), Vec::<f64>::new());
    }

    proptest! {
        /// Independent: step down from the smallest, stop at the first that is not small enough (Holm's own
        /// wording).
        #[test]
        fn the_same_are_rejected_as_by_stepping_down(p in prop::collection::vec(0.0..0.2f64, 1..20)) {
            let mut order: Vec<usize> = (0..p.len()).collect();
            order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
            let mut rejected = vec![false; p.len()];
            for (k, &i) in order.iter().enumerate() {
                if (p.len() - k) as f64 * p[i] > LEVEL {
                    break;
                }
                rejected[i] = true;
            }
            let adjusted = holm(&p);
            for i in 0..p.len() {
                prop_assert!(adjusted[i] >= p[i] && adjusted[i] <= 1.0);
                prop_assert_eq!(adjusted[i] <= LEVEL, rejected[i]);
            }
        }
    }
}
