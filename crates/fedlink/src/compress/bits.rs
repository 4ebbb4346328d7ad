//! The cost of a sparse update in bits, and the number of entries that a budget holds.

use crate::base::units::Bits;

pub use fedlink_wire::log2_choose;

/// The largest q in 0..=`max` with `bits(q)` ≤ `budget`, for `bits` rising on that range; 0 if not even one
/// entry fits.
///
/// Invariant: `bits(q)` ≤ budget < `bits(q+1)` wherever q lies strictly inside the range.
pub fn largest_q(max: u64, budget: Bits, bits: impl Fn(u64) -> Bits) -> u64 {
    largest_q_between(0, max, budget, bits)
}

/// As [`largest_q`], for a `min` that is known to fit or is 0.
pub fn largest_q_between(min: u64, max: u64, budget: Bits, bits: impl Fn(u64) -> Bits) -> u64 {
    let (mut fits, mut too_many) = (min, max + 1);
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        if bits(middle) <= budget {
            fits = middle;
        } else {
            too_many = middle;
        }
    }
    fits
}

/// Bits for each value (32) and its sign (1), if every entry has one.
const VALUE_BITS: f64 = 33.0;

/// r(q) = log2 C(d,q) + 33·q, the bits of q indices and a value for each.
///
/// It rises on 0..=d for d < 2³³, since `r(q+1) − r(q) = 33 + log2((d−q)/(q+1)) ≥ 33 − log2 d`.
pub(super) fn with_values(dim: usize, q: usize) -> Bits {
    Bits(log2_choose(dim as u64, q as u64) + VALUE_BITS * q as f64)
}

/// The largest q in 0..=d whose [`with_values`] is within `budget`.
pub(super) fn largest_q_with_values(dim: usize, budget: Bits) -> usize {
    // 1 ≤ C(d,q) ≤ d^q bounds r(q) on both sides, with a margin of one for rounding. The conversion turns
    // a negative or undefined budget into 0, an infinite one into the largest integer.
    let max_q = ((budget.0 / VALUE_BITS) as u64).saturating_add(1).min(dim as u64);
    let costliest = VALUE_BITS + libm::log2(dim.max(1) as f64);
    let min_q = ((budget.0 / costliest) as u64).saturating_sub(1).min(max_q);
    largest_q_between(min_q, max_q, budget, |q| with_values(dim, q as usize)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_largest_q_is_the_one_a_linear_scan_finds(
            steps in prop::collection::vec(0.0..5.0f64, 0..60),
            budget in 0.0..150.0f64,
        ) {
            let cost = |q: u64| Bits(steps[..q as usize].iter().sum());
            let max_q = steps.len() as u64;
            let scan = (1..=max_q).filter(|&q| cost(q).0 <= budget).max().unwrap_or(0);
            prop_assert_eq!(largest_q(max_q, Bits(budget), cost), scan);
        }
    }
}
