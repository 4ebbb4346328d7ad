//! The indices of the entries, gap by gap.
//!
//! The exact conditional probabilities, remaining entries over remaining indices, give every support the
//! same log2 C(d,q) bits. They change with every index, and following them through all d takes too long.
//! The plain law is one table for a whole message and gives every support the same bits too,
//! `−log2((q/d)^q·(1 − q/d)^(d−q))`. That is ½·log2(2π·q·(1 − q/d)) more, because it does not use that
//! there are q entries in total. Nearly all of that knowledge saves its bits near the end, so the exact
//! law governs the last T = d/64 indices, and the plain law those before. With k of the entries among the
//! last T, a support costs
//!
//! > log2 C(d,q) + log2( Bin(T, q/d)(k) / Bin(d, q/d)(q) )
//!
//! bits, where Bin(n, p)(k) is the probability of k out of n. That fraction is largest if the last
//! indices have their average share of the entries, and then it is about √(d/T): no support costs more
//! than [`surplus`], which is at most 3.23 bits, beyond log2 C(d,q).

use crate::WireError;
use crate::gaps::{ExactLaw, Inverses, PlainLaw, lookup};
use crate::rans::{Reader, Writer};

/// The exact law governs one in this many indices.
const EXACT_SHARE: u32 = 64;

/// But at least this many indices.
const EXACT_AT_LEAST: u32 = 1024;

/// Entries that are decoded between two checks for the end of the message.
const CHUNK: usize = 1024;

/// The smallest and the largest stride.
const STRIDES: [u64; 2] = [8, 1024];

/// T, the number of indices that the exact law governs.
pub(crate) fn exact_indices(dim: u32) -> u32 {
    dim.div_ceil(EXACT_SHARE).max(EXACT_AT_LEAST).min(dim)
}

/// The most bits beyond log2 C(d,k) that the indices of k ≤ `count` entries cost, for any support.
///
/// The largest Bin(T, k/d)(j) / Bin(d, k/d)(k) is √(d/T) for large k and somewhat more for small ones.
/// The excess is greatest, 0.2213 bits, for k = 1 and T = d/2, where the ratio approaches e^(1 − T/d): a
/// test checks k and d. The rounding of slots adds at most 4·10⁻⁷ bits per symbol.
pub(crate) fn surplus(dim: u32, count: u32) -> f64 {
    let exact = exact_indices(dim);
    let uneven = if exact == dim { 0.0 } else { 0.5 * libm::log2(f64::from(dim) / f64::from(exact)) + 0.23 };
    let symbols = 1.5 * f64::from(count) + f64::from(dim) / 1024.0 + 3.0;
    uneven + 4e-7 * symbols
}

/// Memory that is reused from message to message.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    plain: PlainLaw,
    inverses: Inverses,
    /// Symbols that skip indices, to be written in reverse order.
    passed: Vec<(u32, u32)>,
}

/// The largest reach of a symbol: four to eight mean gaps, so that about one entry in fifty takes a
/// second symbol.
fn stride(dim: u32, count: u32) -> u32 {
    (4 * u64::from(dim / count)).next_power_of_two().clamp(STRIDES[0], STRIDES[1]) as u32
}

/// The parameters that both ends derive from the numbers of entries and indices.
#[derive(Clone, Copy, Debug)]
struct Plan {
    dim: u32,
    /// The first index of the exact law.
    exact_from: u32,
    /// From this index on a symbol could reach across that border.
    open_until: u32,
    /// The largest reach of a symbol.
    stride: u32,
}

impl Plan {
    /// The plan for `count` entries among `dim` indices, 1 ≤ `count` ≤ `dim`, and the tables for it.
    fn new(dim: u32, count: u32, tables: &mut Tables) -> Self {
        let stride = stride(dim, count);
        tables.plain.set(dim, count, stride);
        tables.inverses.extend_to(exact_indices(dim));
        let exact_from = dim - exact_indices(dim);
        Self { dim, exact_from, open_until: (exact_from + 1).saturating_sub(stride), stride }
    }

    /// Whether a symbol at `index` with `left` remaining entries can have the whole stride.
    #[inline]
    fn is_open(&self, index: u32, left: u32) -> bool {
        index < self.open_until && self.dim - index - left >= self.stride
    }

    /// The number of indices that a symbol at `index` can skip with `left` remaining entries: neither
    /// across the border of the laws nor more than are empty. At least one, unless every remaining index
    /// holds an entry.
    #[inline]
    fn reach(&self, index: u32, left: u32) -> u32 {
        let empty = self.dim - index - left;
        let part = if index < self.exact_from { self.exact_from - index } else { empty };
        self.stride.min(part).min(empty)
    }
}

/// Encodes the ascending `indices` below `dim`, the last one first.
pub(crate) fn write<'a>(
    dim: u32,
    indices: &[u32],
    tables: &mut Tables,
    mut writer: Writer<'a>,
) -> Writer<'a> {
    if indices.is_empty() {
        return writer;
    }
    let plan = Plan::new(dim, indices.len() as u32, tables);
    tables.plain.prepare(indices.len());
    let Tables { plain, inverses, passed } = tables;
    for (i, &entry) in indices.iter().enumerate().rev() {
        let left = (indices.len() - i) as u32;
        let slots = |index: u32, gap: u32, reach: u32| {
            if index < plan.exact_from {
                plain.slots(gap, reach)
            } else {
                ExactLaw::new(inverses, dim - index, left, reach, plan.stride).slots(gap)
            }
        };
        let mut index = if i == 0 { 0 } else { indices[i - 1] + 1 };
        if plan.is_open(index, left)
            && let Some(symbol) = plain.prepared(entry - index)
        {
            writer.put_prepared(symbol);
            continue;
        }
        // If every remaining index holds an entry, nothing is encoded.
        while left < dim - index {
            let reach = plan.reach(index, left);
            if entry - index < reach {
                writer.put(slots(index, entry - index, reach));
                break;
            }
            passed.push((index, reach));
            index += reach;
        }
        while let Some((index, reach)) = passed.pop() {
            writer.put(slots(index, reach, reach));
        }
    }
    writer
}

/// Decodes `count` indices below `dim`. They ascend for any message; a message that is too short is an
/// error, found in time proportional to its length.
pub(crate) fn read<'a>(
    dim: u32,
    count: u32,
    tables: &mut Tables,
    mut reader: Reader<'a>,
    indices: &mut Vec<u32>,
) -> Result<Reader<'a>, WireError> {
    indices.clear();
    if count == 0 {
        return Ok(reader);
    }
    let plan = Plan::new(dim, count, tables);
    tables.plain.set_index();
    let Tables { plain, inverses, .. } = tables;
    indices.resize(count as usize, 0);
    let (mut index, mut entries) = (0, &mut indices[..]);
    loop {
        if reader.is_used_up() {
            return Err(WireError::Length { short: true });
        }
        let read;
        (reader, index, read) = read_open(&plan, plain, reader, index, entries);
        entries = &mut entries[read..];
        let left = entries.len() as u32;
        if left == 0 {
            return Ok(reader);
        }
        // If every remaining index holds an entry, nothing is encoded.
        if left == dim - index {
            entries.iter_mut().zip(index..dim).for_each(|(entry, index)| *entry = index);
            return Ok(reader);
        }
        let reach = plan.reach(index, left);
        let (gap, slots) = if index < plan.exact_from {
            plain.owner(reader.slot(), reach)
        } else {
            ExactLaw::new(inverses, dim - index, left, reach, plan.stride).owner(reader.slot())
        };
        reader.take(slots);
        index += gap;
        if gap < reach {
            entries[0] = index;
            entries = &mut entries[1..];
            index += 1;
        }
    }
}

/// Decodes entries, [`CHUNK`] at most, as long as symbols can have the whole stride, which nearly all
/// have. The first is at `index` or later. Returns the index after them and their number.
///
/// It is a function of its own because inside the other one its variables would not stay in registers.
#[inline(never)]
fn read_open<'a>(
    plan: &Plan,
    plain: &PlainLaw,
    mut reader: Reader<'a>,
    mut index: u32,
    entries: &mut [u32],
) -> (Reader<'a>, u32, usize) {
    let (parts, mut read) = (plain.index(), 0);
    let most = entries.len().min(CHUNK);
    while read < most && plan.is_open(index, (entries.len() - read) as u32) {
        let slot = reader.slot();
        if let Some((gap, either, is_second)) = lookup(parts, slot) {
            reader.take_either(either, is_second);
            index += gap + u32::from(is_second);
        } else {
            let (gap, slots) = plain.owner(slot, plan.stride);
            reader.take(slots);
            index += gap;
            if gap == plan.stride {
                continue;
            }
        }
        entries[read] = index;
        index += 1;
        read += 1;
    }
    (reader, index, read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log2_choose;

    /// log2 of Bin(n, p)(k).
    fn log2_binomial(n: u32, p: f64, k: u32) -> f64 {
        let empty = if k == n { 0.0 } else { f64::from(n - k) * (-p).ln_1p() };
        let full = if k == 0 { 0.0 } else { f64::from(k) * p.ln() };
        log2_choose(u64::from(n), u64::from(k)) + (empty + full) * std::f64::consts::LOG2_E
    }

    /// The most bits beyond log2 C(d,q), over all numbers of entries among the last indices.
    fn worst(dim: u32, q: u32) -> f64 {
        let (exact, p) = (exact_indices(dim), f64::from(q) / f64::from(dim));
        // The most likely number among the last indices, and its neighbors because of rounding.
        let mode = (p * (f64::from(exact) + 1.0)) as u32;
        let near = mode.saturating_sub(1)..=(mode + 1).min(exact).min(q);
        near.map(|k| log2_binomial(exact, p, k)).fold(f64::NEG_INFINITY, f64::max) - log2_binomial(dim, p, q)
    }

    #[test]
    fn no_support_costs_more_than_the_surplus() {
        assert!([10, 1024].iter().all(|&dim| surplus(dim, 1) < 1e-5));
        let mut largest = f64::NEG_INFINITY;
        for dim in [1025, 1100, 1500, 2000, 2048, 2100, 3000, 5000, 7850, 20_000, 65_536, 65_537, 203_530] {
            for q in 1..=dim {
                let excess = worst(dim, q) - surplus(dim, 0);
                assert!(excess < 0.0, "d {dim}, q {q}: {excess} bits too many");
                largest = largest.max(excess);
            }
        }
        for dim in [1_000_003, 10_000_000, 1_000_000_007, u32::MAX] {
            let mut q = 1;
            while q < dim {
                let excess = worst(dim, q) - surplus(dim, 0);
                assert!(excess < 0.0, "d {dim}, q {q}: {excess} bits too many");
                q = q.saturating_add(1 + q / 500);
            }
        }
        // The bound is tight to 0.02 bits.
        assert!(largest > -0.02, "{largest}");
    }

    #[test]
    fn a_message_has_few_symbols_for_all_numbers_of_entries_and_indices() {
        for dim in [1u32, 7, 1024, 1025, 7850, 203_530, 10_000_000, u32::MAX] {
            let mut count = 1u32;
            while count < dim {
                let stride = stride(dim, count);
                // Symbols that skip indices without an entry: half the entries, or one in 1024 indices.
                let passing = u64::from(dim) / u64::from(stride);
                assert!(
                    passing <= u64::from(count / 2).max(u64::from(dim) / 1024),
                    "d {dim}, q {count}: {stride}"
                );
                count = count.saturating_add(1 + count / 50);
            }
        }
    }
}
