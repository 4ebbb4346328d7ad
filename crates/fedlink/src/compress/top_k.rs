//! Top-k sparsification: the largest entries as they are.

use super::{Compressor, Scratch, SparseUpdate, Values, bits};
use crate::rng::Stream;
use crate::units::Bits;

/// Keeps the q entries of largest magnitude and sends the value of each.
///
/// - Bits: `r(q) = log2 C(d,q) + 33·q`, the count of [`RandomSparse`](super::RandomSparse): the places, and 32 bits
///   and a sign for each value. An `f32` has its sign among its 32 bits; the count is kept so that schemes compare.
/// - Value: a kept entry arrives as it is. Ties on the boundary go to the lower index. Zeros are never sent: an
///   update with fewer than q other entries sends fewer.
///
/// Source: Aji and Heafield, *Sparse Communication for Distributed Gradient Descent* (2017), with the threshold
/// that keeps exactly q. Invariants: at most q entries, each unchanged and none smaller than one left out;
/// ‖Δ − Δ̂‖ is the least that q entries allow; r(q) ≤ R < r(q+1) for the q chosen at budget R.
///
/// ```
/// use fedlink::compress::{Compressor, Scratch, SparseUpdate, TopK, Values};
/// use fedlink::rng::{Purpose, stream};
/// let mut sent = SparseUpdate::default();
/// let mut unused = stream(0, Purpose::Sparsify, 0, 0); // nothing is left to chance
/// TopK.compress(&[0.5, -4.0, 1.5, 0.0, -2.0], 2, &mut unused, &mut Scratch::default(), &mut sent);
/// assert_eq!(sent, SparseUpdate { indices: vec![1, 4], values: Values::Each(vec![-4.0, -2.0]) });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TopK;

impl Compressor for TopK {
    fn bits(&self, dim: usize, q: usize) -> Bits {
        bits::with_values(dim, q)
    }

    fn largest_q(&self, dim: usize, budget: Bits) -> usize {
        bits::largest_q_with_values(dim, budget)
    }

    fn compress(
        &self,
        update: &[f32],
        q: usize,
        _: &mut Stream,
        scratch: &mut Scratch,
        out: &mut SparseUpdate,
    ) {
        let mut values = out.take_values();
        out.indices.clear();
        // Bit patterns of positive floats are ordered like the floats.
        let keys = &mut scratch.keys;
        keys.clear();
        keys.extend(update.iter().map(|x| x.abs().to_bits()).filter(|&key| key > 0));
        let kept = q.min(keys.len());
        if kept > 0 {
            let (above, &mut boundary, _) = keys.select_nth_unstable_by(kept - 1, |a, b| b.cmp(a));
            let mut ties = kept - above.iter().filter(|&&key| key > boundary).count();
            for (i, &x) in (0u32..).zip(update) {
                let key = x.abs().to_bits();
                if key > boundary || (key == boundary && ties > 0) {
                    ties -= usize::from(key == boundary);
                    out.indices.push(i);
                    values.push(x);
                }
            }
        }
        out.values = Values::Each(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};
    use proptest::prelude::*;

    fn compress(update: &[f32], q: usize) -> SparseUpdate {
        // Memory left from an earlier update must change nothing.
        let (mut scratch, mut out) = (Scratch::default(), SparseUpdate::default());
        for update in [&[9.0; 60], update] {
            TopK.compress(update, q, &mut stream(0, Purpose::Test, 0, 0), &mut scratch, &mut out);
        }
        out
    }

    /// Few distinct values, so that ties, zeros and signs meet.
    fn updates() -> impl Strategy<Value = Vec<f32>> {
        prop_oneof![
            prop::collection::vec(-1e3..1e3f32, 0..200),
            prop::collection::vec((-3i8..=3).prop_map(f32::from), 0..200),
            prop::collection::vec((-2i8..=2).prop_map(|x| f32::from(x) * 1e-40), 0..50),
            prop::collection::vec(Just(-0.0f32), 0..10),
        ]
    }

    proptest! {
        #[test]
        fn the_result_is_what_sorting_gives(update in updates(), q in 0usize..250) {
            let mut order: Vec<usize> = (0..update.len()).filter(|&i| update[i] != 0.0).collect();
            order.sort_by(|&i, &j| update[j].abs().total_cmp(&update[i].abs()).then(i.cmp(&j)));
            order.truncate(q);
            order.sort_unstable();
            let values = order.iter().map(|&i| update[i]).collect();
            let indices = order.iter().map(|&i| i as u32).collect();
            prop_assert_eq!(compress(&update, q), SparseUpdate { indices, values: Values::Each(values) });
        }

        #[test]
        fn no_other_choice_of_q_entries_leaves_less_behind(update in prop::collection::vec(-9.0..9.0f32, 1..9)) {
            let square = |x: &f32| f64::from(*x).powi(2);
            let all: f64 = update.iter().map(square).sum();
            for q in 0..=update.len() {
                let Values::Each(kept) = compress(&update, q).values else { panic!("one value each") };
                let ours = all - kept.iter().map(square).sum::<f64>();
                for choice in 0u32..1 << update.len() {
                    if choice.count_ones() as usize == q {
                        let chosen = update.iter().enumerate().filter(|(i, _)| choice >> i & 1 == 1);
                        let theirs = all - chosen.map(|(_, x)| square(x)).sum::<f64>();
                        prop_assert!(ours <= theirs + 1e-9 * all);
                    }
                }
            }
        }
    }
}
