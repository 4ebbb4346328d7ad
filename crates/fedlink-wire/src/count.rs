//! The number of missing entries, up to q.
//!
//! An update may have fewer entries than the budget holds. The first symbol states whether any entry is
//! missing. If so, m ≥ 1 of them are, and m − 1 follows as binary digits, the lowest first. For the
//! probability w^(m−1)·(1 − w) the digits are independent, and digit j is 1 with probability u/(1 + u), u =
//! w^(2^j). θ, u and these are rounded up, at the expense of "none is missing", which has slots to spare.
//!
//! With one value for all entries, w is θ = q/(d−q+1) = C(d,q−1)/C(d,q), and the first symbol has the
//! probability θ or ½, whichever is less. The indices of q − m entries cost at least m·log2(1/θ) bits
//! less than those of q, which pays for encoding m: up to q = d/3 an update with entries missing is no
//! longer than one with all q of them, and one with all pays log2(1/(1−θ)), at most one bit. Near q =
//! d/2, where θ reaches 1, w stays below 1 − 1/√d and a missing entry costs log2 √d bits. This is
//! necessary: there are about √d times as many updates with up to d/2 entries as with d/2. If each entry
//! has a value of 32 bits, that pays for any count: w and the first symbol's probability are 1/256.
//!
//! If each entry has a sign, a missing entry saves that bit too, and θ = q/(2·(d−q+1)) is half of the
//! above. It is ½ near q = d/2 and reaches 1 at the largest q, ⌈2d/3⌉; between the two the same holds as
//! between d/3 and d/2 above.

use crate::rans::{Reader, SLOTS, Slots, Writer};
use crate::{Layout, WireError};

/// Slots of "yes" for a question of probability 1/256.
const SELDOM: u64 = SLOTS >> 8;

/// The law of the number of missing entries.
pub(crate) struct CountLaw {
    q: u32,
    /// Slots of "some are missing".
    some: u32,
    /// w, in units of 2⁻³².
    ratio: u64,
}

impl CountLaw {
    /// For at most `q` entries among `dim`, 1 ≤ `q` ≤ `dim`.
    pub(crate) fn new(layout: Layout, dim: u32, q: u32) -> Self {
        let (some, ratio) = match layout {
            Layout::Each => (SELDOM, SELDOM),
            Layout::Shared | Layout::Signs => {
                // A missing entry saves its sign.
                let sign_bits = u32::from(layout == Layout::Signs);
                let theta = (u64::from(q) << 32) / (u64::from(dim - q + 1) << sign_bits) + 1;
                let max = SLOTS - SLOTS / (u64::from(dim.isqrt()) + 1);
                (theta.min(SLOTS / 2), theta.min(max))
            }
        };
        Self { q, some: some as u32, ratio }
    }

    /// For at most `q` entries that have `bits` ≤ 31 bits each beside their index, 1 ≤ `q` ≤ `dim`: θ is
    /// q/(2^bits·(d−q+1)).
    pub(crate) fn with_bits(bits: u32, dim: u32, q: u32) -> Self {
        let theta = ((u128::from(q) << 32) / (u128::from(dim - q + 1) << bits)) as u64 + 1;
        let max = SLOTS - SLOTS / (u64::from(dim.isqrt()) + 1);
        Self { q, some: theta.min(SLOTS / 2) as u32, ratio: theta.min(max) }
    }

    /// As [`CountLaw::surplus`], for [`CountLaw::with_bits`] and entries whose bits are all saved if they are
    /// missing.
    pub(crate) fn surplus_with_bits(&self, dim: u32) -> f64 {
        let none = 32.0 - libm::log2((SLOTS - u64::from(self.some)) as f64);
        // From θ = ½ on the law is capped.
        let bent = u64::from(self.some) == SLOTS / 2;
        if bent { 2.0 + 0.5 * libm::log2(f64::from(dim)) } else { none }
    }

    /// The most bits that encoding the count can cost beyond the savings of missing entries in indices
    /// and values. With q ≤ d/3, with signs and 2 ≤ q ≤ d/2, or with a value each, it is the cost of
    /// encoding that none is missing, as long as a missing value's 32 bits pay for 8 of the law and for
    /// log2 d of indices.
    pub(crate) fn surplus(&self, layout: Layout, dim: u32) -> f64 {
        let none = 32.0 - libm::log2((SLOTS - u64::from(self.some)) as f64);
        let near_the_largest = 2.0 + 0.5 * libm::log2(f64::from(dim));
        match layout {
            // The first value's bits are sent even without its entry: if that is the only one,
            // its index must pay.
            Layout::Each if self.q == 1 => none.max(8.0 - libm::log2(f64::from(dim))),
            Layout::Shared if 3 * u64::from(self.q) > u64::from(dim) => near_the_largest,
            Layout::Signs if 2 * u64::from(self.q) > u64::from(dim) => near_the_largest,
            // The first sign is sent even without its entry: if that is the only one, the index must pay.
            Layout::Signs if self.q == 1 => none.max(1.0),
            Layout::Shared | Layout::Each | Layout::Signs => none,
        }
    }

    /// Slots of "one" for each digit of m − 1, the lowest first.
    fn digits(&self) -> impl Iterator<Item = u32> {
        let count = u32::BITS - (self.q - 1).leading_zeros();
        let powers = std::iter::successors(Some(self.ratio), |power| Some(((power * power) >> 32) + 1));
        powers.take(count as usize).map(|power| ((power << 32) / (SLOTS + power)) as u32 + 1)
    }

    /// Encodes that `missing` ≤ q entries are missing.
    pub(crate) fn write<'a>(&self, missing: u32, mut writer: Writer<'a>) -> Writer<'a> {
        if missing > 0 {
            let mut digits = [Slots::answer(1, true); u32::BITS as usize];
            let mut count = 0;
            for one in self.digits() {
                digits[count] = Slots::answer(one, (missing - 1) >> count & 1 == 1);
                count += 1;
            }
            digits[..count].iter().rev().for_each(|&digit| writer.put(digit));
        }
        writer.put(Slots::answer(self.some, missing > 0));
        writer
    }

    /// Decodes the number of missing entries and returns the number of entries. A message that declares
    /// more missing entries than possible is an error.
    pub(crate) fn read<'a>(&self, mut reader: Reader<'a>) -> Result<(u32, Reader<'a>), WireError> {
        if !reader.take_answer(self.some) {
            return Ok((self.q, reader));
        }
        let digits = self.digits().enumerate();
        let missing = digits.fold(1, |sum, (index, one)| sum + (u64::from(reader.take_answer(one)) << index));
        match u64::from(self.q).checked_sub(missing) {
            Some(count) => Ok((count as u32, reader)),
            None => Err(WireError::Missing { missing, q: self.q }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log2_choose;
    use proptest::prelude::*;

    /// −log2 of the probability that `missing` are missing.
    fn cost(law: &CountLaw, missing: u32) -> f64 {
        let bits = |slots: Slots| 32.0 - f64::from(slots.width).log2();
        let digits = law.digits().enumerate();
        let digits = digits.map(|(j, one)| bits(Slots::answer(one, missing.wrapping_sub(1) >> j & 1 == 1)));
        bits(Slots::answer(law.some, missing > 0)) + if missing > 0 { digits.sum() } else { 0.0 }
    }

    #[test]
    fn the_probabilities_of_all_counts_are_geometric_and_sum_to_one() {
        // q = 9 among 100: θ = 9/92. The digits can encode up to 16 missing entries, also more than 9.
        let law = CountLaw::new(Layout::Shared, 100, 9);
        let theta = 9.0 / 92.0f64;
        let rng = |missing| (-cost(&law, missing)).exp2();
        for missing in 0..=8 {
            let truth = (1.0 - theta) * theta.powi(missing as i32);
            // θ⁴ is 393 000 slots: rounding them to a whole number changes less than 1 in 10⁵.
            assert!((rng(missing) / truth - 1.0).abs() < 1e-5, "{missing}: {}", rng(missing));
        }
        assert!(((0..=16).map(rng).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    /// The most that a count costs beyond the surplus, with the bits that missing entries save in indices
    /// and values.
    fn excess(layout: Layout, dim: u32, q: u32, counts: impl Iterator<Item = u32>) -> f64 {
        let law = CountLaw::new(layout, dim, q);
        let values = match layout {
            Layout::Shared => 0.0,
            Layout::Each => 32.0,
            Layout::Signs => 1.0,
        };
        let rest = |missing: u32| {
            let saved = values * f64::from(missing.min(q - 1));
            log2_choose(u64::from(dim), u64::from(q - missing)) - saved + cost(&law, missing)
        };
        let limit = log2_choose(u64::from(dim), u64::from(q)) + law.surplus(layout, dim);
        counts.map(|missing| rest(missing) - limit).fold(f64::NEG_INFINITY, f64::max)
    }

    #[test]
    fn missing_entries_save_the_cost_of_their_number() {
        for dim in 1..=120u32 {
            for q in 1..=dim {
                let layouts = [Layout::Shared, Layout::Each, Layout::Signs];
                for layout in
                    layouts.into_iter().filter(|layout| q <= layout.max_entries(dim as usize) as u32)
                {
                    let excess = excess(layout, dim, q, 0..=q);
                    assert!(excess < 1e-6, "{layout:?}, d {dim}, q {q}: {excess} bits too many");
                }
            }
        }
        for dim in [1001u32, 10_000, 203_530, 1_000_000, 1 << 24] {
            for q in [1, 2, 3, 100, 3000, dim / 100, dim / 3 - 1, dim / 3, dim / 3 + 1, dim * 2 / 5, dim / 2]
            {
                let q = q.min(dim / 2);
                // All of the first few, where the law is capped, and some of the others.
                let counts = || (0..=q.min(500)).chain((0..=q).step_by(1 + q as usize / 500)).chain([q]);
                for layout in [Layout::Shared, Layout::Each, Layout::Signs] {
                    let excess = excess(layout, dim, q, counts());
                    assert!(excess < 1e-6, "{layout:?}, d {dim}, q {q}: {excess} bits too many");
                }
                for layout in [Layout::Each, Layout::Signs] {
                    let large = (dim - q).min(layout.max_entries(dim as usize) as u32);
                    let excess = excess(
                        layout,
                        dim,
                        large,
                        counts().filter(|&missing| missing <= large).chain([large]),
                    );
                    assert!(excess < 1e-6, "{layout:?}, d {dim}, q {large}: {excess} bits too many");
                }
            }
        }
    }

    #[test]
    fn a_full_update_pays_at_most_one_bit_for_its_count() {
        for dim in [2u32, 3, 10, 1001, 203_530, u32::MAX] {
            for q in [1, 2, 10, 3000, dim / 3, dim / 2] {
                let q = q.clamp(1, dim / 2);
                let theta = f64::from(q) / f64::from(dim - q + 1);
                let truth = -(1.0 - theta.min(0.5)).log2();
                let ours = cost(&CountLaw::new(Layout::Shared, dim, q), 0);
                assert!((ours - truth).abs() < 1e-8, "d {dim}, q {q}: {ours}, {truth}");
                assert!(cost(&CountLaw::new(Layout::Each, dim, q), 0) < 0.006);
                let truth = -(1.0 - (theta / 2.0).min(0.5)).log2();
                let ours = cost(&CountLaw::new(Layout::Signs, dim, q), 0);
                assert!((ours - truth).abs() < 1e-8, "signs, d {dim}, q {q}: {ours}, {truth}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_decoded_count_is_the_encoded_count(
            dim in 1..u32::MAX, share in 0.0..=1.0f64, part in 0.0..=1.0f64,
            layout in prop::sample::select(vec![Layout::Shared, Layout::Each, Layout::Signs]),
        ) {
            let q = ((share * f64::from(dim)) as u32).max(1);
            let missing = (part * f64::from(q)) as u32;
            let (mut memory, mut message) = (Vec::new(), Vec::new());
            let law = CountLaw::new(layout, dim, q);
            law.write(missing, Writer::new(77, &mut memory)).finish(&mut message);
            let (count, reader) = law.read(Reader::new(&message).unwrap()).unwrap();
            prop_assert_eq!(count, q - missing);
            prop_assert_eq!(reader.rest(), (77, 0));
        }
    }
}
