//! How many of the q entries there are.
//!
//! An update may have fewer entries than the budget holds. A question comes first: is any missing? If so, m ≥ 1 of
//! them are, and m − 1 follows as binary digits, the lowest first. For the probability w^(m−1)·(1 − w) the digits
//! are independent, and digit j is 1 with probability u/(1 + u), u = w^(2^j), rounded up to whole slots.
//!
//! With one value for all entries, w is θ = q/(d−q+1) = C(d,q−1)/C(d,q), and that of the question θ or ½ if that
//! is less. The places of q − m entries cost at least m·log2(1/θ) bits less than those of q, which pays for saying so:
//! an update with entries missing is no longer than one with all q of them, and one with all pays log2(1/(1−θ)), at
//! most one bit. Near q = d/2, where θ reaches 1, w stays below 1 − 1/√d and a missing entry costs log2 √d bits.
//! Where each entry has a value of 32 bits, that pays for anything: w and the question's probability are 1/256.

use super::Layout;
use super::rans::{Reader, SLOTS, Slots, Writer};

/// Slots of "yes" to a question of probability 1/256.
const SELDOM: u64 = SLOTS >> 8;

/// The law of the number of missing entries.
pub(super) struct CountLaw {
    q: u32,
    /// Slots of "some are missing".
    some: u32,
    /// w, in units of 2⁻³².
    ratio: u64,
}

impl CountLaw {
    /// For at most `q` entries among `dim`, 1 ≤ `q` ≤ `dim`.
    pub(super) fn new(layout: Layout, dim: u32, q: u32) -> Self {
        let (some, ratio) = match layout {
            Layout::Each => (SELDOM, SELDOM),
            Layout::Shared => {
                let theta = (u64::from(q) << 32) / u64::from(dim - q + 1);
                let most = SLOTS - SLOTS / (u64::from(dim.isqrt()) + 1);
                (theta.min(SLOTS / 2), theta.min(most))
            }
        };
        Self { q, some: some as u32, ratio }
    }

    /// Slots of "one" for each digit of m − 1, the lowest first.
    fn digits(&self) -> impl Iterator<Item = u32> {
        let count = u32::BITS - (self.q - 1).leading_zeros();
        let powers = std::iter::successors(Some(self.ratio), |power| Some((power * power) >> 32));
        powers.take(count as usize).map(|power| ((power << 32) / (SLOTS + power)) as u32 + 1)
    }

    /// Puts on a message that `missing` ≤ q entries are missing.
    pub(super) fn write<'a>(&self, missing: u32, mut writer: Writer<'a>) -> Writer<'a> {
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

    /// Takes off a message how many are missing. A message can say that more are than there can be.
    pub(super) fn read<'a>(&self, mut reader: Reader<'a>) -> (u64, Reader<'a>) {
        if !reader.take_answer(self.some) {
            return (0, reader);
        }
        let digits = self.digits().enumerate();
        let missing = digits.fold(1, |sum, (place, one)| sum + (u64::from(reader.take_answer(one)) << place));
        (missing, reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::bits::log2_choose;
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
        // q = 9 among 100: θ = 9/92. The digits can also say that more than 9 are missing, up to 16.
        let law = CountLaw::new(Layout::Shared, 100, 9);
        let theta = 9.0 / 92.0f64;
        let chance = |missing| (-cost(&law, missing)).exp2();
        for missing in 0..=8 {
            let truth = (1.0 - theta) * theta.powi(missing as i32);
            // θ⁴ is 393 000 slots: rounding them to a whole number changes less than 1 in 10⁵.
            assert!((chance(missing) / truth - 1.0).abs() < 1e-5, "{missing}: {}", chance(missing));
        }
        assert!(((0..=16).map(chance).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn saying_that_entries_are_missing_is_paid_for_by_their_absence() {
        for (dim, q) in
            [(10, 2), (100, 1), (1000, 333), (203_530, 100), (203_530, 3000), (10_000_000, 50_000)]
        {
            let law = CountLaw::new(Layout::Shared, dim, q);
            let all = log2_choose(u64::from(dim), u64::from(q));
            assert!(cost(&law, 0) < 1.0 + 1e-9, "d {dim}, q {q}: {}", cost(&law, 0));
            for missing in 0..=q {
                let places = log2_choose(u64::from(dim), u64::from(q - missing));
                let excess = cost(&law, missing) + places - all - cost(&law, 0);
                assert!(excess < 1e-6, "d {dim}, q {q}, {missing} missing: {excess} bits too many");
            }
        }
    }

    #[test]
    fn up_to_half_of_all_entries_missing_ones_cost_little_more_than_a_root() {
        for dim in [10u32, 101, 10_000, 1_000_000] {
            for q in [dim / 3 + 1, dim * 2 / 5, dim / 2] {
                let law = CountLaw::new(Layout::Shared, dim, q);
                let all = log2_choose(u64::from(dim), u64::from(q));
                assert!(cost(&law, 0) < 1.0 + 1e-9);
                for missing in (1..=q).step_by(1 + q as usize / 1000) {
                    let places = log2_choose(u64::from(dim), u64::from(q - missing));
                    let excess = cost(&law, missing) + places - all;
                    assert!(
                        excess < 2.0 + 0.5 * f64::from(dim).log2(),
                        "d {dim}, q {q}, {missing}: {excess}"
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_count_comes_off_as_it_was_put(
            dim in 1..u32::MAX, share in 0.0..=1.0f64, part in 0.0..=1.0f64, each in any::<bool>(),
        ) {
            let q = ((share * f64::from(dim)) as u32).max(1);
            let missing = (part * f64::from(q)) as u32;
            let (mut memory, mut message) = (Vec::new(), Vec::new());
            let law = CountLaw::new(if each { Layout::Each } else { Layout::Shared }, dim, q);
            law.write(missing, Writer::new(77, &mut memory)).finish(&mut message);
            let (read, reader) = law.read(Reader::new(&message).unwrap());
            prop_assert_eq!(read, u64::from(missing));
            prop_assert_eq!(reader.rest(), (77, 0));
        }
    }
}
