//! Where the entries are, gap by gap.
//!
//! The exact conditional probabilities, entries left over places left, give every support the same log2 C(d,q)
//! bits. They change with every place, and to follow them through all d takes too long. The plain law is one table
//! for a whole message and gives every support the same bits too, `−log2((q/d)^q·(1 − q/d)^(d−q))`. That is
//! ½·log2(2π·q·(1 − q/d)) more, because it does not know that there are q entries in the end. Nearly all of that
//! knowledge is worth its bits near the end, so the exact law governs the last T = d/64 places, and the plain
//! law those before. With k of the entries among the last T, a support costs
//!
//! > log2 C(d,q) + log2( Bin(T, q/d)(k) / Bin(d, q/d)(q) )
//!
//! bits, where Bin(n, p)(k) is the probability of k out of n. That fraction is largest if the last places have
//! their fair share of the entries, and then it is about √(d/T): no support costs more than log2 C(d,q) + 3
//! bits. Rounding adds thousandths.

use super::gaps::{ExactLaw, Inverses, PlainLaw};
use super::rans::{Reader, Writer};

/// The exact law governs one in so many places.
const EXACT_SHARE: u32 = 64;

/// And no fewer than so many.
const EXACT_AT_LEAST: u32 = 1024;

/// The least and the most that a symbol's reach can be.
const STRIDES: [u64; 2] = [8, 1024];

/// T, the number of places that the exact law governs.
pub(super) fn exact_places(dim: u32) -> u32 {
    dim.div_ceil(EXACT_SHARE).max(EXACT_AT_LEAST).min(dim)
}

/// Memory that is used from one message to the next.
#[derive(Debug, Default)]
pub(super) struct Tables {
    plain: PlainLaw,
    inverses: Inverses,
    /// Symbols that pass over places, on their way into the reverse order.
    passed: Vec<(u32, u32)>,
}

/// What both ends derive from the numbers of entries and places.
#[derive(Clone, Copy, Debug)]
struct Plan {
    dim: u32,
    /// From this place on the exact law governs.
    exact_from: u32,
    /// The most that a symbol's reach can be.
    stride: u32,
}

impl Plan {
    /// The plan for `count` entries among `dim` places, 1 ≤ `count` ≤ `dim`, and the tables for it.
    fn new(dim: u32, count: u32, tables: &mut Tables) -> Self {
        // Four mean gaps: hardly one entry in fifty takes a second symbol.
        let stride = (4 * u64::from(dim / count)).next_power_of_two();
        let stride = stride.clamp(STRIDES[0], STRIDES[1]) as u32;
        tables.plain.set(dim, count, stride);
        tables.inverses.extend_to(exact_places(dim));
        Self { dim, exact_from: dim - exact_places(dim), stride }
    }

    /// How many places a symbol at `place` can pass over with `left` entries to come: neither across the border
    /// of the laws nor more than are empty. At least one, unless every place to come holds an entry.
    #[inline]
    fn reach(&self, place: u32, left: u32) -> u32 {
        let empty = self.dim - place - left;
        let part = if place < self.exact_from { self.exact_from - place } else { empty };
        self.stride.min(part).min(empty)
    }
}

/// Puts the ascending `places` below `dim` on a message, the last one first.
pub(super) fn write<'a>(dim: u32, places: &[u32], tables: &mut Tables, mut writer: Writer<'a>) -> Writer<'a> {
    if places.is_empty() {
        return writer;
    }
    let plan = Plan::new(dim, places.len() as u32, tables);
    let Tables { plain, inverses, passed } = tables;
    for (i, &entry) in places.iter().enumerate().rev() {
        let left = (places.len() - i) as u32;
        let slots = |place: u32, gap: u32, reach: u32| {
            if place < plan.exact_from {
                plain.slots(gap, reach)
            } else {
                ExactLaw::new(inverses, dim - place, left, reach).slots(gap)
            }
        };
        let mut place = if i == 0 { 0 } else { places[i - 1] + 1 };
        // Where every place to come holds an entry nothing need be said.
        while left < dim - place {
            let reach = plan.reach(place, left);
            if entry - place < reach {
                writer.put(slots(place, entry - place, reach));
                break;
            }
            passed.push((place, reach));
            place += reach;
        }
        while let Some((place, reach)) = passed.pop() {
            writer.put(slots(place, reach, reach));
        }
    }
    writer
}

/// Takes `count` places below `dim` off a message. They are ascending, whatever the message.
pub(super) fn read<'a>(
    dim: u32,
    count: u32,
    tables: &mut Tables,
    mut reader: Reader<'a>,
    places: &mut Vec<u32>,
) -> Reader<'a> {
    places.clear();
    if count == 0 {
        return reader;
    }
    let plan = Plan::new(dim, count, tables);
    tables.plain.set_index();
    let Tables { plain, inverses, .. } = tables;
    places.reserve(count as usize);
    let (mut place, mut left) = (0, count);
    while left > 0 {
        if left == dim - place {
            places.extend(place..dim);
            break;
        }
        let reach = plan.reach(place, left);
        let (gap, slots) = if place < plan.exact_from {
            plain.owner(reader.slot(), reach)
        } else {
            ExactLaw::new(inverses, dim - place, left, reach).owner(reader.slot())
        };
        reader.take(slots);
        place += gap;
        if gap < reach {
            places.push(place);
            place += 1;
            left -= 1;
        }
    }
    reader
}
