//! Sharing the n symbols of a round among the scheduled devices.

use crate::base::units::Symbols;
use serde::{Deserialize, Serialize};

/// Whether a device's share of symbols is a real number or a whole one (`radio.slots`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SlotKind {
    /// Real shares, as in the paper.
    #[default]
    Real,
    /// Whole symbols by the largest remainder, adding up to n.
    Whole,
}

/// `n_m = n · (w_m/C_m) / Σ_j (w_j/C_j)`: the split that makes the bits `n_m·C_m` proportional to `w_m`.
///
/// Source: the proportionality conditions of the paper's section IV (its printed solutions repeat an index;
/// see the corrections in the docs). Invariants: every share ≥ 0 and `Σ n_m = n`; with real slots
/// `n_m·C_m / w_m` is the same for all devices; with whole slots no share is a full symbol away from the real
/// one. A link without capacity gets nothing as long as another one has some, since no number of symbols
/// could make it carry its part. Weights that are all zero mean equal weights.
///
/// `weights` must be finite and not negative, `capacities` not negative, both of one length. The shares are
/// finite and correct for all such numbers, at any size and ratio.
///
/// ```
/// use fedlink::{radio::access::slots::{split_slots, SlotKind}, base::units::Symbols};
/// // Equal bits over links of 1 and 3 bit/symbol: the slow link gets three times the symbols.
/// let slots = split_slots(&[1.0, 1.0], &[1.0, 3.0], 100, SlotKind::Real);
/// assert_eq!(slots, [Symbols(75.0), Symbols(25.0)]);
/// ```
pub fn split_slots(weights: &[f64], capacities: &[f64], symbols: u64, kind: SlotKind) -> Vec<Symbols> {
    assert_eq!(weights.len(), capacities.len(), "one weight and one capacity for each scheduled device");
    let shares = demands(weights, capacities);
    let total: f64 = shares.iter().sum();
    let real = shares.iter().map(|share| share / total * symbols as f64);
    match kind {
        SlotKind::Real => real.map(Symbols).collect(),
        SlotKind::Whole => largest_remainder(&real.collect::<Vec<_>>(), symbols),
    }
}

/// `w_m/C_m`, scaled so that the largest is 1 (neither tiny nor huge weights overflow the sum).
fn demands(weights: &[f64], capacities: &[f64]) -> Vec<f64> {
    // Below the smallest normal number w/C would overflow; such a link counts as one of zero gain.
    let usable = |c: f64| c >= f64::MIN_POSITIVE;
    let heaviest = weights.iter().copied().fold(0.0, f64::max);
    let some_link = capacities.iter().zip(weights).any(|(&c, &w)| usable(c) && (w > 0.0 || heaviest == 0.0));
    let demand = |(&w, &c): (&f64, &f64)| {
        let weight = if heaviest > 0.0 { w / heaviest } else { 1.0 };
        match (some_link, usable(c)) {
            (true, true) => weight / c,
            (true, false) => 0.0,
            (false, _) => 1.0,
        }
    };
    let demands: Vec<f64> = weights.iter().zip(capacities).map(demand).collect();
    // A positive weight beside a far larger one can fall below the normal numbers, and its digits are lost.
    let lost = |((&w, &c), demand): ((&f64, &f64), &f64)| {
        some_link && w > 0.0 && usable(c) && (w / heaviest).min(*demand) < f64::MIN_POSITIVE
    };
    if weights.iter().zip(capacities).zip(&demands).any(lost) {
        return wide_demands(weights, capacities, usable);
    }
    let largest = demands.iter().copied().fold(0.0, f64::max);
    demands.into_iter().map(|share| share / largest).collect()
}

/// The same for numbers further apart than a float can represent: fractions and powers of two are kept apart
/// until the largest is known. Some usable link has a weight.
fn wide_demands(weights: &[f64], capacities: &[f64], usable: impl Fn(f64) -> bool) -> Vec<f64> {
    let demand = |(&w, &c): (&f64, &f64)| {
        if w == 0.0 || !usable(c) {
            return (0.0, 0);
        }
        // A capacity without bound is replaced by the largest float.
        let ((w, w_power), (c, c_power)) = (libm::frexp(w), libm::frexp(c.min(f64::MAX)));
        let (ratio, power) = libm::frexp(w / c);
        (ratio, w_power - c_power + power)
    };
    let demands: Vec<(f64, i32)> = weights.iter().zip(capacities).map(demand).collect();
    let by_size = |a: &(f64, i32), b: &(f64, i32)| a.1.cmp(&b.1).then(a.0.total_cmp(&b.0));
    let (largest, power) =
        demands.iter().copied().filter(|(ratio, _)| *ratio > 0.0).max_by(by_size).unwrap_or((1.0, 0));
    demands.iter().map(|&(ratio, own)| libm::ldexp(ratio / largest, own - power)).collect()
}

/// Whole numbers next to `real` that add up to `total`: the floors, then one more for the largest remainders
/// (ties to the earlier device).
pub(super) fn largest_remainder(real: &[f64], total: u64) -> Vec<Symbols> {
    let mut whole: Vec<f64> = real.iter().map(|share| share.floor()).collect();
    let mut order: Vec<usize> = (0..real.len()).collect();
    order.sort_by(|&a, &b| (real[b] - whole[b]).total_cmp(&(real[a] - whole[a])).then(a.cmp(&b)));
    let missing = total as f64 - whole.iter().sum::<f64>();
    // Rounding of the real shares can leave the floors one above the total when a share is a whole number.
    if missing >= 0.0 {
        order.iter().cycle().take(missing as usize).for_each(|&m| whole[m] += 1.0);
    } else {
        // A device without symbols cannot return any.
        order.retain(|&m| whole[m] >= 1.0);
        order.iter().rev().take(-missing as usize).for_each(|&m| whole[m] -= 1.0);
    }
    whole.into_iter().map(Symbols).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scheduled() -> impl Strategy<Value = (Vec<f64>, Vec<f64>, u64)> {
        (1usize..20).prop_flat_map(|k| {
            (
                prop::collection::vec(1e-6..1e6f64, k),
                prop::collection::vec(1e-3..20.0f64, k),
                1..10_000_000u64,
            )
        })
    }

    proptest! {
        #[test]
        fn real_shares_add_up_and_make_bits_proportional_to_weights((w, c, n) in scheduled()) {
            let slots = split_slots(&w, &c, n, SlotKind::Real);
            let total: f64 = slots.iter().map(|s| s.0).sum();
            prop_assert!((total / n as f64 - 1.0).abs() < 1e-9);
            let bits_per_weight: Vec<f64> = (0..w.len()).map(|m| slots[m].0 * c[m] / w[m]).collect();
            for ratio in &bits_per_weight {
                prop_assert!((ratio / bits_per_weight[0] - 1.0).abs() < 1e-9);
            }
        }

        #[test]
        fn real_shares_solve_the_linear_system_of_the_conditions((w, c, n) in scheduled()) {
            // Independent: bits = λ·w with λ from Σ λ·w/C = n, by bisection on λ.
            let (mut low, mut high) = (0.0, n as f64 * 20.0 / 1e-6);
            for _ in 0..200 {
                let mid = 0.5 * (low + high);
                let used: f64 = w.iter().zip(&c).map(|(w, c)| mid * w / c).sum();
                if used < n as f64 { low = mid } else { high = mid }
            }
            let slots = split_slots(&w, &c, n, SlotKind::Real);
            for m in 0..w.len() {
                let expected = low * w[m] / c[m];
                prop_assert!((slots[m].0 - expected).abs() <= 1e-9 * n as f64);
            }
        }

        #[test]
        fn whole_shares_are_whole_add_up_exactly_and_stay_within_one_symbol((w, c, n) in scheduled()) {
            let real = split_slots(&w, &c, n, SlotKind::Real);
            let whole = split_slots(&w, &c, n, SlotKind::Whole);
            prop_assert_eq!(whole.iter().map(|s| s.0).sum::<f64>(), n as f64);
            for (r, i) in real.iter().zip(&whole) {
                prop_assert!(i.0 >= 0.0 && i.0.fract() == 0.0 && (r.0 - i.0).abs() <= 1.0);
            }
        }
    }

    #[test]
    fn all_zero_weights_mean_equal_weights() {
        let capacities = [1.0, 2.0, 4.0];
        assert_eq!(
            split_slots(&[0.0; 3], &capacities, 700, SlotKind::Real),
            split_slots(&[1.0; 3], &capacities, 700, SlotKind::Real)
        );
    }

    #[test]
    fn a_dead_link_gets_nothing_unless_all_are_dead() {
        let shares = |c: &[f64]| split_slots(&[1.0, 1.0], c, 10, SlotKind::Real);
        assert_eq!(shares(&[0.0, 2.0]), [Symbols(0.0), Symbols(10.0)]);
        assert_eq!(shares(&[0.0, 0.0]), [Symbols(5.0), Symbols(5.0)]);
        assert_eq!(shares(&[f64::from_bits(1), 2.0]), [Symbols(0.0), Symbols(10.0)]);
    }

    #[test]
    fn extreme_weights_neither_overflow_nor_vanish() {
        for weight in [f64::MIN_POSITIVE, f64::MAX] {
            let slots = split_slots(&[weight, weight], &[1e-300, 1e-300], 10, SlotKind::Real);
            assert_eq!(slots, [Symbols(5.0), Symbols(5.0)]);
        }
    }

    #[test]
    fn a_weight_that_vanishes_beside_that_of_a_dead_link_still_gets_the_symbols() {
        for (tiny, capacity) in [(1e-310, 1.0), (f64::from_bits(1), 1e300), (f64::from_bits(1), f64::MAX)] {
            let slots = split_slots(&[tiny, 1e20], &[capacity, 0.0], 10, SlotKind::Real);
            assert_eq!(slots, [Symbols(10.0), Symbols(0.0)]);
        }
        // 1e-310/1e-300 against 1e20/1e300: all to the first, though its weight vanishes beside the other.
        let slots = split_slots(&[1e-310, 1e20], &[1e-300, 1e300], 10, SlotKind::Real);
        assert_eq!(slots[0], Symbols(10.0));
        let endless = split_slots(&[1.0, 1.0], &[f64::INFINITY; 2], 10, SlotKind::Real);
        assert_eq!(endless, [Symbols(5.0), Symbols(5.0)]);
    }

    /// a·2^power, exact down to the smallest subnormal number.
    fn scaled(a: u32, power: i32) -> f64 {
        libm::ldexp(f64::from(a), power)
    }

    /// Whole numbers times powers of two over all of a float's range, zeros among them.
    fn extreme() -> impl Strategy<Value = Vec<[(u32, i32); 2]>> {
        let number = || (prop_oneof![1 => Just(0u32), 6 => 1..1u32 << 20], -1074..=1000i32);
        prop::collection::vec((number(), number()).prop_map(|(w, c)| [w, c]), 1..8)
    }

    proptest! {
        #[test]
        fn any_finite_input_gives_finite_shares_that_add_up(
            bits in prop::collection::vec((any::<u64>(), any::<u64>()), 1..12),
            n in 1..=1u64 << 53,
        ) {
            let absolute = |bits| f64::from_bits(bits).abs();
            let finite = |bits| Some(absolute(bits)).filter(|x| x.is_finite()).unwrap_or(0.0);
            let (w, c): (Vec<f64>, Vec<f64>) = bits.iter().map(|&(w, c)| (finite(w), finite(c))).unzip();
            for kind in [SlotKind::Real, SlotKind::Whole] {
                let slots = split_slots(&w, &c, n, kind);
                let total: f64 = slots.iter().map(|s| s.0).sum();
                let sound = slots.iter().all(|s| s.0.is_finite() && s.0 >= 0.0);
                prop_assert!(sound, "{:?} {:?} {:?}", w, c, slots);
                let allowed = if kind == SlotKind::Whole { 0.0 } else { 1e-12 };
                prop_assert!((total / n as f64 - 1.0).abs() <= allowed, "{:?} {:?}: {}", w, c, total);
            }
        }

        /// Independent: the shares by logarithms of the whole numbers and powers that the inputs are made of.
        #[test]
        fn shares_are_right_over_all_of_a_float_s_range(numbers in extreme()) {
            let value = |[w, c]: &[(u32, i32); 2]| (scaled(w.0, w.1), scaled(c.0, c.1));
            let (w, c): (Vec<f64>, Vec<f64>) = numbers.iter().map(value).unzip();
            let slots = split_slots(&w, &c, 1000, SlotKind::Real);
            let usable = |m: usize| c[m] >= f64::MIN_POSITIVE;
            let logarithm =
                |(a, power): (u32, i32)| f64::from(a).ln() + f64::from(power) * std::f64::consts::LN_2;
            let all_zero = w.iter().all(|&w| w == 0.0);
            let counts = |m: usize| usable(m) && (w[m] > 0.0 || all_zero);
            let some = (0..w.len()).any(counts);
            let demand = |m: usize| match (some, counts(m)) {
                (false, _) => Some(0.0),
                (true, false) => None,
                (true, true) if all_zero => Some(-logarithm(numbers[m][1])),
                (true, true) => Some(logarithm(numbers[m][0]) - logarithm(numbers[m][1])),
            };
            let largest = (0..w.len()).filter_map(demand).fold(f64::NEG_INFINITY, f64::max);
            let parts: Vec<f64> =
                (0..w.len()).map(|m| demand(m).map_or(0.0, |d| (d - largest).exp())).collect();
            let total: f64 = parts.iter().sum();
            for m in 0..w.len() {
                let expected = 1000.0 * parts[m] / total;
                prop_assert!((slots[m].0 - expected).abs() <= 1e-9 * expected + 1e-300,
                    "{:?} {:?}: {:?} against {}", w, c, slots, expected);
            }
        }
    }

    #[test]
    fn remainders_tie_to_the_earlier_device() {
        let slots = split_slots(&[1.0; 3], &[1.0; 3], 10, SlotKind::Whole);
        assert_eq!(slots, [Symbols(4.0), Symbols(3.0), Symbols(3.0)]);
    }
}
