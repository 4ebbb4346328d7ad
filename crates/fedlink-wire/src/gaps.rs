//! The probabilities of gaps: a law stored in a table, and a law that follows the remaining entries.
//!
//! A gap is the number of empty indices before the next entry. A law of reach h gives slots to the gaps 0 to
//! h − 1 and to h, which means that the next h indices are empty. With F(g) the probability that the next g
//! indices are empty, gap g owns the slots from `S(g) = g + ⌊(2³² − w − 1)·(1 − F(g))⌋` up to S(g + 1), and h
//! owns all from S(h) on. The summand g gives each gap at least one slot, and w ≥ h leaves at
//! least one for h.
//!
//! Every symbol owns at least its share: S(g+1) − S(g) ≥ 1 + (2³² − w − 1)·(F(g) − F(g+1)) − 1, since one
//! rounding removes at most the one extra slot, and 2³² − S(h) ≥ (2³² − w − 1)·F(h). So a symbol costs at
//! most log2(2³²/(2³² − w − 1)) ≤ 4·10⁻⁷ bits more than −log2 of its probability, however small that is.
//! For this F has 63 bits: 32 bits would round away the share of a rare gap.
//!
//! All numbers are whole and rounded down, so the two ends of a link cannot differ.

use crate::rans::{Prepared, SLOTS, Slots};

/// Probability one.
const ONE: u64 = 1 << 63;

/// ⌊`a`·`b`/2⁶³⌋ for `b` < 2⁶³. Doubling `b` first (off the critical path of the last product) makes the
/// result the upper half of the product.
#[inline]
fn scaled(a: u64, b: u64) -> u64 {
    debug_assert!(b < ONE);
    ((u128::from(a) * u128::from(2 * b)) >> 64) as u64
}

/// S(`gap`) for F(`gap`) = `empty` in a law with w = `width`.
#[inline]
fn start(gap: u32, empty: u64, width: u32) -> u64 {
    u64::from(gap) + scaled(ONE - empty, SLOTS - u64::from(width) - 1)
}

/// Every index holds an entry with the same probability q/d: F(g) = (1 − q/d)^g.
///
/// Any q entries cost the same under it: (q/d)^q·(1 − q/d)^(d−q) is the probability of each support.
#[derive(Debug, Default)]
pub(crate) struct PlainLaw {
    /// S(0) up to S(w).
    starts: Vec<u32>,
    /// The gaps below w for the encoder; empty if there are too few entries for it to pay.
    prepared: Vec<Prepared>,
    /// Equal parts of the slots for the decoder, [`PARTS`] of them.
    index: Vec<Part>,
}

/// The gap that owns the first slot of a part, its slots, and the width of the next gap. No gap owns
/// slots from S(w) on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    gap: u32,
    first: Slots,
    second_width: u32,
}

pub(crate) const PARTS: usize = 1 << 10;

const PART_BITS: u32 = 32 - PARTS.ilog2();

impl PlainLaw {
    /// Becomes the law of `count` entries among `dim` indices with w = `width`.
    pub(crate) fn set(&mut self, dim: u32, count: u32, width: u32) {
        let empty = (u128::from(dim - count) * u128::from(ONE) / u128::from(dim)) as u64;
        let mut power = ONE;
        self.starts.clear();
        self.starts.extend((0..=width).map(|gap| {
            let start = start(gap, power, width) as u32;
            power = scaled(power, empty);
            start
        }));
    }

    /// Prepares the symbols of `count` entries.
    pub(crate) fn prepare(&mut self, count: usize) {
        self.prepared.clear();
        if count >= 4 * self.starts.len() {
            let slots = self.starts.array_windows().map(|&[start, end]| Slots { start, width: end - start });
            self.prepared.extend(slots.map(Prepared::new));
        }
    }

    /// The symbol of `gap` in a law of reach w, if it is prepared.
    #[inline]
    pub(crate) fn prepared(&self, gap: u32) -> Option<&Prepared> {
        self.prepared.get(gap as usize)
    }

    /// Prepares for [`PlainLaw::owner`].
    pub(crate) fn set_index(&mut self) {
        let [.., before, last] = self.starts[..] else { unreachable!("w is at least 1") };
        let gaps = self.starts.len() as u32 - 1;
        let part = |gap: u32, start: u32, second: u32, third: u32| Part {
            gap,
            first: Slots { start, width: second - start },
            second_width: third - second,
        };
        self.index.clear();
        self.index.resize(PARTS, part(gaps, last, last, last));
        let threes = self.starts.array_windows().map(|&[start, second, third]| (start, second, third));
        let mut from = 0;
        for (gap, (start, second, third)) in (0..).zip(threes.chain([(before, last, last)])) {
            // The parts whose first slot is this gap's, which lies before the next gap's.
            let until = second.div_ceil(1 << PART_BITS) as usize;
            self.index[from..until].fill(part(gap, start, second, third));
            from = until;
        }
    }

    /// The parts that [`PlainLaw::set_index`] made.
    pub(crate) fn index(&self) -> &[Part; PARTS] {
        self.index.first_chunk().expect("set_index has been called")
    }

    /// The slots of `gap` in a law of reach `reach`.
    #[inline]
    pub(crate) fn slots(&self, gap: u32, reach: u32) -> Slots {
        let start = |gap: u32| u64::from(self.starts[gap as usize]);
        Slots::between(start(gap), if gap == reach { SLOTS } else { start(gap + 1) })
    }

    /// The owner of `slot` in a law of reach `reach`.
    pub(crate) fn owner(&self, slot: u32, reach: u32) -> (u32, Slots) {
        let first = self.index()[(slot >> PART_BITS) as usize].gap;
        let later = self.starts.iter().skip(first as usize + 1).take_while(|&&start| start <= slot).count();
        let gap = reach.min(first + later as u32);
        (gap, self.slots(gap, reach))
    }
}

/// A gap such that it or the next one owns the slot in a law of reach w, the slots of both, and whether
/// the next one owns it. None for the few slots of other symbols.
#[inline]
pub(crate) fn lookup(index: &[Part; PARTS], slot: u32) -> Option<(u32, [Slots; 2], bool)> {
    let Part { gap, first, second_width } = index[(slot >> PART_BITS) as usize];
    let second = Slots { start: first.start + first.width, width: second_width };
    (slot - first.start < first.width + second.width).then_some((gap, [first, second], slot >= second.start))
}

/// ⌊2⁶³/i⌋ for i = 1, 2, …: divisions done once for all messages.
#[derive(Debug, Default)]
pub(crate) struct Inverses(Vec<u64>);

impl Inverses {
    /// Extends the table up to `max`.
    pub(crate) fn extend_to(&mut self, max: u32) {
        let held = self.0.len() as u64;
        self.0.extend((held + 1..=u64::from(max)).map(|i| ONE / i));
    }
}

/// All arrangements of the remaining entries are equally likely: with r of them among the next n indices,
/// F(g) = C(n−g, r) / C(n, r), the product of 1 − r/(n−i) over i < g.
///
/// r/n is computed as r·⌊2⁶³/n⌋ units of 2⁻⁶³, and each product is rounded down to such units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExactLaw<'a> {
    /// Of n − h + 1 up to n.
    inverses: &'a [u64],
    left: u64,
    reach: u32,
    width: u32,
}

impl<'a> ExactLaw<'a> {
    /// The law of reach `reach` and w = `width` for `left` entries among `indices`,
    /// 1 ≤ `left` ≤ `indices` − `reach`.
    #[inline]
    pub(crate) fn new(inverses: &'a Inverses, indices: u32, left: u32, reach: u32, width: u32) -> Self {
        let inverses = &inverses.0[(indices - reach) as usize..indices as usize];
        Self { inverses, left: u64::from(left), reach, width }
    }

    /// F one index later; `inverse` is that of the remaining indices.
    #[inline]
    fn next(&self, empty: u64, inverse: u64) -> u64 {
        scaled(empty, ONE - self.left * inverse)
    }

    /// The slots of `gap`.
    pub(crate) fn slots(&self, gap: u32) -> Slots {
        let mut inverses = self.inverses.iter().rev();
        let empty = inverses.by_ref().take(gap as usize).fold(ONE, |empty, &i| self.next(empty, i));
        let end = match inverses.next() {
            None => SLOTS,
            Some(&inverse) => start(gap + 1, self.next(empty, inverse), self.width),
        };
        Slots::between(start(gap, empty, self.width), end)
    }

    /// The owner of `slot`.
    pub(crate) fn owner(&self, slot: u32) -> (u32, Slots) {
        // As long as F is at least this, (2³² − w − 1)·(1 − F) ≤ slot − w, so S(g) ≤ slot for any gap g:
        // only F need be computed.
        let unit = ONE / (SLOTS - u64::from(self.width) - 1);
        let surely_later = ONE - u64::from(slot.saturating_sub(self.width)) * unit;
        let mut empty = ONE;
        for (gap, &inverse) in (0..).zip(self.inverses.iter().rev()) {
            let next = self.next(empty, inverse);
            if next < surely_later {
                let end = start(gap + 1, next, self.width);
                if u64::from(slot) < end {
                    return (gap, Slots::between(start(gap, empty, self.width), end));
                }
            }
            empty = next;
        }
        (self.reach, Slots::between(start(self.reach, empty, self.width), SLOTS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;
    use proptest::prelude::*;

    /// Checks that every slot has one owner, the one given by [`PlainLaw::slots`].
    fn tiles(reach: u32, slots: impl Fn(u32) -> Slots, owner: impl Fn(u32) -> (u32, Slots)) {
        let mut next = 0u64;
        for gap in 0..=reach {
            let Slots { start, width } = slots(gap);
            assert_eq!(u64::from(start), next, "gap {gap} of {reach}");
            next += u64::from(width);
            for slot in [u64::from(start), u64::from(start) + u64::from(width / 2), next - 1] {
                assert_eq!(owner(slot as u32), (gap, slots(gap)), "slot {slot}");
            }
        }
        assert_eq!(next, SLOTS);
    }

    /// C(n, k), exactly.
    fn choose(n: u32, k: u32) -> BigUint {
        (0..k).fold(BigUint::from(1u32), |product, i| product * (n - i) / (i + 1))
    }

    /// Checks that `width` slots are at least the part `share`/`whole` of all but w + 1 = `given` of them,
    /// and few more, in exact integers. `error` is that of F in units of 2⁻⁶³.
    fn is_its_share(width: u32, given: u32, share: &BigUint, whole: &BigUint, error: u64) {
        let slots = whole * width;
        let spared = share * (SLOTS - u64::from(given));
        let rounding = ((whole * error) >> 31u32) + 1u32;
        assert!(&slots + &rounding >= spared, "{width} slots for {share}/{whole}");
        // One extra slot, one by rounding, and h has the remaining slots.
        assert!(slots <= share * SLOTS + whole * (given + 1) + rounding, "{width} slots for {share}/{whole}");
    }

    #[test]
    fn the_exact_law_counts_the_arrangements_of_the_remaining_entries() {
        let mut inverses = Inverses::default();
        inverses.extend_to(1024);
        for (indices, max) in (2..=60).map(|indices| (indices, 20)).chain([(200, 64), (1024, 256)]) {
            let some = |left: &u32| indices <= 60 || [1, 2, 7, indices / 3, indices - 2].contains(left);
            for left in (1..indices).filter(some) {
                let reach = (indices - left).min(max);
                let law = ExactLaw::new(&inverses, indices, left, reach, max);
                let whole = choose(indices, left);
                for gap in 0..=reach {
                    // The next entry is at this gap and the others after it, or all are after it.
                    let share = if gap < reach {
                        choose(indices - gap - 1, left - 1)
                    } else {
                        choose(indices - gap, left)
                    };
                    // A product and the quotient in it are rounded once for every index passed.
                    let error = u64::from((gap + 1) * (left + 1));
                    is_its_share(law.slots(gap).width, max + 1, &share, &whole, error);
                }
            }
        }
    }

    #[test]
    fn the_plain_law_is_geometric() {
        for (dim, count, width) in
            [(100u32, 1u32, 8u32), (203_530, 2_035, 512), (1000, 500, 8), (9, 9, 8), (4_000_000_000, 3, 64)]
        {
            let mut law = PlainLaw::default();
            law.set(dim, count, width);
            for gap in 0..=width {
                let empty = BigUint::from(dim - count).pow(gap);
                let (share, whole) = if gap < width {
                    (empty * count, BigUint::from(dim).pow(gap + 1))
                } else {
                    (empty, BigUint::from(dim).pow(gap))
                };
                is_its_share(law.slots(gap, width).width, width + 1, &share, &whole, 2 * u64::from(gap + 1));
            }
        }
    }

    proptest! {
        #[test]
        fn every_slot_has_an_owner_in_the_plain_law(
            dim in 1..u32::MAX,
            share in 0.0..=1.0f64,
            sparse in any::<bool>(),
            log in 3..=10u32,
            cut in 0.0..1.0f64,
        ) {
            let share = if sparse { share.powi(20) } else { share };
            let (width, count) = (1 << log, ((share * f64::from(dim)) as u32).max(1));
            let mut law = PlainLaw::default();
            // The law was set before to something else; the old state must go.
            law.set(10, 3, 16);
            law.set_index();
            law.set(dim, count, width);
            law.set_index();
            let reach = 1 + (cut * f64::from(width)) as u32;
            tiles(reach, |gap| law.slots(gap, reach), |slot| law.owner(slot, reach));
            tiles(width, |gap| law.slots(gap, width), |slot| match lookup(law.index(), slot) {
                Some((gap, either, is_second)) => {
                    (gap + u32::from(is_second), either[usize::from(is_second)])
                }
                None => law.owner(slot, width),
            });
        }

        #[test]
        fn every_slot_has_an_owner_in_the_exact_law(
            indices in 2..5000u32, share in 0.0..1.0f64, max in 1..=1024u32, sparse in any::<bool>(),
        ) {
            let share = if sparse { share.powi(8) } else { share };
            let left = (1 + (share * f64::from(indices)) as u32).min(indices - 1);
            let reach = max.min(indices - left);
            let mut inverses = Inverses::default();
            inverses.extend_to(indices / 2);
            inverses.extend_to(indices);
            let law = ExactLaw::new(&inverses, indices, left, reach, max);
            tiles(reach, |gap| law.slots(gap), |slot| law.owner(slot));
        }
    }
}
