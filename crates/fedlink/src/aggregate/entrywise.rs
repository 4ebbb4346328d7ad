//! Rules that treat every entry for itself.

use super::{Contribution, Delta};
use crate::compress::{SparseUpdate, Values};

/// The step whose entries are `middle` of the `k` values of each entry in ascending order, for entries that
/// at least one device sent.
pub(super) fn entry_by_entry<'a>(
    contributions: &[Contribution<'a>],
    k: usize,
    middle: impl Fn(&[f32]) -> f32,
) -> Delta<'a> {
    let mut entries: Vec<(u32, f32)> = Vec::new();
    for Contribution { update, factor, .. } in contributions {
        update.for_each(|i, value| entries.push((i, value * factor)));
    }
    entries.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let (mut indices, mut steps, mut sorted) = (Vec::new(), Vec::new(), Vec::with_capacity(k));
    for group in entries.chunk_by(|a, b| a.0 == b.0) {
        let values = || group.iter().map(|entry| entry.1);
        sorted.clear();
        sorted.extend(values().filter(|&value| value < 0.0));
        sorted.resize(sorted.len() + k - group.len(), 0.0);
        sorted.extend(values().filter(|&value| value >= 0.0));
        indices.push(group[0].0);
        steps.push(middle(&sorted));
    }
    Delta::Step(SparseUpdate { indices, values: Values::Each(steps) })
}

#[cfg(test)]
mod tests {
    use super::super::{Aggregator, Median, TrimmedMean};
    use super::*;
    use crate::compress::Encoded;
    use proptest::prelude::*;

    const DIM: usize = 12;

    fn updates() -> impl Strategy<Value = Vec<Encoded>> {
        let update = (prop::collection::btree_map(0..DIM as u32, -3i8..=3, 0..DIM), any::<bool>()).prop_map(
            |(entries, shared)| {
                let indices: Vec<u32> = entries.keys().copied().collect();
                let values: Vec<f32> = entries.values().map(|&x| f32::from(x)).collect();
                let one = values.first().copied().unwrap_or(0.0);
                let values = if shared { Values::Shared(one) } else { Values::Each(values) };
                Encoded::Sparse(SparseUpdate { indices, values })
            },
        );
        prop::collection::vec(update, 1..8)
    }

    /// Adds the result of `rule` for the updates of `k` devices to `theta`.
    fn apply(mut rule: impl Aggregator, theta: &mut [f32], updates: &[Encoded], k: usize) {
        let contributions: Vec<Contribution> =
            updates.iter().map(|update| Contribution { update, weight: 0.0, factor: 1.0 }).collect();
        rule.aggregate(&contributions, k).add_to(theta, 1.0);
    }

    proptest! {
        #[test]
        fn entries_equal_those_of_sorted_dense_vectors(
            updates in updates(),
            absent in 0usize..3,
            trim in 0.0..0.5f64,
        ) {
            let k = updates.len() + absent;
            let dense: Vec<Vec<f32>> = updates.iter().map(|update| {
                let mut dense = vec![0.0; DIM];
                update.add_to(&mut dense, 1.0);
                dense
            }).chain(std::iter::repeat_n(vec![0.0; DIM], absent)).collect();
            let (mut median, mut trimmed) = (vec![1.0f32; DIM], vec![1.0f32; DIM]);
            apply(Median {}, &mut median, &updates, k);
            apply(TrimmedMean { trim }, &mut trimmed, &updates, k);
            let cut = (trim * k as f64).floor() as usize;
            for i in 0..DIM {
                let mut column: Vec<f64> = dense.iter().map(|update| f64::from(update[i])).collect();
                column.sort_by(f64::total_cmp);
                let middle = f64::midpoint(column[(k - 1) / 2], column[k / 2]);
                prop_assert_eq!(f64::from(median[i]), 1.0 + middle);
                let rest = &column[cut..k - cut];
                let mean = rest.iter().sum::<f64>() / rest.len() as f64;
                prop_assert!((f64::from(trimmed[i]) - 1.0 - mean).abs() < 1e-6);
            }
        }

        #[test]
        fn fewer_than_half_cannot_move_a_median_out_of_the_range_of_the_others(
            honest in prop::collection::vec(-1.0..1.0f32, 3..9),
            mut adversarial in prop::collection::vec(
                any::<f32>().prop_filter("finite", |x| x.is_finite()),
                0..9,
            ),
        ) {
            adversarial.truncate(honest.len() - 1);
            let whole = |&value: &f32| {
                Encoded::Sparse(SparseUpdate { indices: vec![0], values: Values::Shared(value) })
            };
            let updates: Vec<Encoded> = honest.iter().chain(&adversarial).map(whole).collect();
            let mut theta = [0.0];
            apply(Median {}, &mut theta, &updates, updates.len());
            let (low, high) = honest.iter().fold((1.0f32, -1.0f32), |(a, b), &x| (a.min(x), b.max(x)));
            prop_assert!((low..=high).contains(&theta[0]), "{} not in {low}..={high}", theta[0]);
        }
    }

    #[test]
    fn disjoint_supports_have_a_median_of_zero() {
        let one = |i| SparseUpdate { indices: vec![2 * i], values: Values::Shared(7.0) };
        let updates: Vec<Encoded> = (0..5u32).map(|i| Encoded::Sparse(one(i))).collect();
        let mut theta = [0.5; DIM];
        apply(Median {}, &mut theta, &updates, 5);
        assert_eq!(theta, [0.5; DIM]);
    }
}
