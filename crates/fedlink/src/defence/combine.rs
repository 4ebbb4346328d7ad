//! Making one update of those that K devices sent.

use crate::compress::{SparseUpdate, Values, add_all};
use serde::{Deserialize, Serialize};

/// How the server makes one of K updates (`defence.aggregate`).
///
/// Median and trimmed mean are taken entry by entry over all K devices, and a device that did not send an entry counts
/// as zero there. So does one that was silent or was dropped. They shrug off fewer than half (or fewer than the share
/// that is trimmed) of the values in an entry, whatever these are. But sparse updates meet in few entries: **where fewer
/// than half of the devices send an entry, its median is zero**, and with the supports of D-SGD at q/d of a few percent
/// that is almost everywhere. These rules are for updates that are sent nearly whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// The mean, weighted as `learn.aggregate` says.
    #[default]
    Mean,
    /// The middle value, or the mean of the two.
    Median,
    /// The mean of what is left without the largest and the smallest ⌊`defence.trim`·K⌋.
    TrimmedMean,
}

/// An update as the server counts it: its share of the mean, and what it is multiplied by to clip it.
pub struct Part<'a> {
    /// Δ̂.
    pub update: &'a SparseUpdate,
    /// What it counts in a mean.
    pub share: f32,
    /// At most 1; 1 if it is not clipped.
    pub factor: f32,
}

impl Combine {
    /// Adds to `theta` what `parts` of `k` devices come to; those that are not among `parts` count as zero.
    pub fn apply(self, theta: &mut [f32], parts: &[Part], k: usize, trim: f64) {
        match self {
            Self::Mean => {
                let shares: Vec<(&SparseUpdate, f32)> =
                    parts.iter().map(|part| (part.update, part.share * part.factor)).collect();
                add_all(theta, &shares);
            }
            Self::Median => entry_by_entry(theta, parts, k, |sorted| {
                let (lower, upper) = (sorted[(k - 1) / 2], sorted[k / 2]);
                f64::midpoint(f64::from(lower), f64::from(upper)) as f32
            }),
            Self::TrimmedMean => {
                let cut = ((trim * k as f64) as usize).min((k.max(1) - 1) / 2);
                entry_by_entry(theta, parts, k, |sorted| {
                    let rest = &sorted[cut..k - cut];
                    (rest.iter().map(|&x| f64::from(x)).sum::<f64>() / rest.len() as f64) as f32
                });
            }
        }
    }
}

/// Adds to every entry that somebody sent what `middle` makes of its `k` values in ascending order.
fn entry_by_entry(theta: &mut [f32], parts: &[Part], k: usize, middle: impl Fn(&[f32]) -> f32) {
    let mut entries: Vec<(u32, f32)> = Vec::new();
    for Part { update, factor, .. } in parts {
        match &update.values {
            Values::Shared(value) => entries.extend(update.indices.iter().map(|&i| (i, value * factor))),
            Values::Each(values) => {
                entries.extend(update.indices.iter().zip(values).map(|(&i, value)| (i, value * factor)));
            }
        }
    }
    entries.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut sorted = Vec::with_capacity(k);
    for group in entries.chunk_by(|a, b| a.0 == b.0) {
        let values = || group.iter().map(|entry| entry.1);
        sorted.clear();
        sorted.extend(values().filter(|&value| value < 0.0));
        sorted.resize(sorted.len() + k - group.len(), 0.0);
        sorted.extend(values().filter(|&value| value >= 0.0));
        theta[group[0].0 as usize] += middle(&sorted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIM: usize = 12;

    fn updates() -> impl Strategy<Value = Vec<SparseUpdate>> {
        let update = (prop::collection::btree_map(0..DIM as u32, -3i8..=3, 0..DIM), any::<bool>()).prop_map(
            |(entries, shared)| {
                let indices: Vec<u32> = entries.keys().copied().collect();
                let values: Vec<f32> = entries.values().map(|&x| f32::from(x)).collect();
                let one = values.first().copied().unwrap_or(0.0);
                SparseUpdate {
                    indices,
                    values: if shared { Values::Shared(one) } else { Values::Each(values) },
                }
            },
        );
        prop::collection::vec(update, 1..8)
    }

    fn parts(updates: &[SparseUpdate]) -> Vec<Part<'_>> {
        updates.iter().map(|update| Part { update, share: 0.0, factor: 1.0 }).collect()
    }

    proptest! {
        #[test]
        fn entries_are_what_sorting_the_dense_vectors_gives(updates in updates(), absent in 0usize..3, trim in 0.0..0.5f64) {
            let k = updates.len() + absent;
            let dense: Vec<Vec<f32>> = updates.iter().map(|update| {
                let mut dense = vec![0.0; DIM];
                update.add_to(&mut dense, 1.0);
                dense
            }).chain(std::iter::repeat_n(vec![0.0; DIM], absent)).collect();
            let (mut median, mut trimmed) = (vec![1.0f32; DIM], vec![1.0f32; DIM]);
            Combine::Median.apply(&mut median, &parts(&updates), k, trim);
            Combine::TrimmedMean.apply(&mut trimmed, &parts(&updates), k, trim);
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
            mut hostile in prop::collection::vec(any::<f32>().prop_filter("finite", |x| x.is_finite()), 0..9),
        ) {
            hostile.truncate(honest.len() - 1);
            let whole = |&value: &f32| SparseUpdate { indices: vec![0], values: Values::Shared(value) };
            let updates: Vec<SparseUpdate> = honest.iter().chain(&hostile).map(whole).collect();
            let mut theta = [0.0];
            Combine::Median.apply(&mut theta, &parts(&updates), updates.len(), 0.0);
            let (low, high) = honest.iter().fold((1.0f32, -1.0f32), |(a, b), &x| (a.min(x), b.max(x)));
            prop_assert!((low..=high).contains(&theta[0]), "{} not in {low}..={high}", theta[0]);
        }
    }

    #[test]
    fn disjoint_supports_have_a_median_of_zero() {
        let updates: Vec<SparseUpdate> =
            (0..5u32).map(|i| SparseUpdate { indices: vec![2 * i], values: Values::Shared(7.0) }).collect();
        let mut theta = [0.5; DIM];
        Combine::Median.apply(&mut theta, &parts(&updates), 5, 0.0);
        assert_eq!(theta, [0.5; DIM]);
    }
}
