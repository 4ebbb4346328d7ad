//! Updates as bits: what a device sends and the parameter server receives.
//!
//! Both ends know the [`Format`]: how values are sent, d, and q, which follow from the round's budget. A
//! payload is then one whole number, written big-endian, and costs as many bits as that number has. For q
//! entries with one value that is log2 C(d,q) + 33 and a few, **whatever the support**. Byte for byte the
//! format is described in `docs/wire-format.md`, with the reasons and with test vectors.
//!
//! From the top of the number down: the version (1/177 of a bit), how many of the q entries are missing
//! (next to nothing if none), the indices, the values but the first (or their signs alone), and at the bottom
//! a one and the 32 bits of the first.
//!
//! Decoding trusts nothing but the format. Any bytes give an update that follows it or an error, in time of
//! the order of q + d/64 and in memory of the order of that; and no two payloads give the same update. Bytes
//! that are too few are refused as soon as they are used up.
//!
//! ```
//! use fedlink::compress::wire::{Coder, Format, Layout};
//! use fedlink::compress::{SparseUpdate, Values};
//! # fn main() -> Result<(), fedlink::compress::wire::WireError> {
//! let sent = SparseUpdate { indices: vec![3, 500, 501], values: Values::Shared(-0.25) };
//! let format = Format::new(Layout::Shared, 7850, 3)?;
//! let (mut coder, mut payload, mut received) = (Coder::default(), Vec::new(), SparseUpdate::default());
//! let bits = coder.encode(&format, &sent, &mut payload)?;
//! coder.decode(&format, &payload, &mut received)?;
//! assert_eq!(received, sent);
//! // log2 C(7850, 3) = 36.2 for the indices, 33 for the value, at most five more.
//! assert!(bits <= 37 + 33 + 5);
//! # Ok(())
//! # }
//! ```

mod count;
mod error;
pub(crate) mod fields;
mod gaps;
mod indices;
pub(crate) mod levels;
pub(crate) mod packed;
mod rans;
mod signs;

pub use error::WireError;

use super::eden::Rotation;
use super::{Grid, SparseUpdate, Values, bits, stc};
use count::CountLaw;
use indices::Tables;
use rans::{Reader, SLOTS, Slots, Writer};

/// The version of the format. A payload begins with it.
pub const VERSION: u8 = 1;

/// Slots of this version; those above are for versions to come.
const THIS_VERSION: u32 = u32::MAX - (1 << 24) + 1;

/// Under the first value of a message stands a one, so that its leading zeros are not lost.
const BOTTOM: u64 = SLOTS;

/// How the values of an update are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One for all entries, of which there are at most d/2.
    Shared,
    /// One for each.
    Each,
    /// One magnitude above zero for all entries, of which there are at most ⌈2d/3⌉, and a sign for each.
    Signs,
}

impl Layout {
    /// The largest q that a format of dimension `dim` can have.
    pub fn max_entries(self, dim: usize) -> usize {
        match self {
            Self::Shared => dim / 2,
            Self::Each => dim,
            Self::Signs => stc::max_q(dim),
        }
    }
}

/// What both ends know of an update before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    layout: Layout,
    dim: u32,
    q: u32,
}

impl Format {
    /// At most `q` entries of an update of dimension `dim`.
    pub fn new(layout: Layout, dim: usize, q: usize) -> Result<Self, WireError> {
        let max = layout.max_entries(dim);
        match (u32::try_from(dim), u32::try_from(q)) {
            (Ok(dim), Ok(q)) if q as usize <= max => Ok(Self { layout, dim, q }),
            _ => Err(WireError::Format { layout, dim, q }),
        }
    }

    /// A number of bits that no payload exceeds, whatever the update. It rises with q.
    ///
    /// It is the sum of what each part can cost at most: the version, how many entries are missing, the
    /// indices and the values but the first, and 33.6 bits for that one and the rounding.
    pub fn longest(&self) -> u64 {
        let Self { layout, dim, q } = *self;
        if q == 0 {
            return 0;
        }
        // With less than 24 bits to an index, a missing entry saves more by its value than others can cost by
        // lying in more ways. Indices and signs together cost the most for q entries, up to the largest q.
        // Otherwise the number of entries counts that can lie in the most ways.
        let is_paid = match layout {
            Layout::Shared => false,
            Layout::Each => dim <= 1 << 24,
            Layout::Signs => true,
        };
        let count = if is_paid { q } else { q.min(dim / 2) };
        let support = bits::log2_choose(u64::from(dim), u64::from(count)) + indices::surplus(dim, q);
        let each = match layout {
            Layout::Shared => 0.0,
            Layout::Each => 32.0,
            Layout::Signs => 1.0,
        };
        let values = each * f64::from(q - 1);
        let missing = CountLaw::new(layout, dim, q).surplus(layout, dim);
        let version = 32.0 - libm::log2(f64::from(THIS_VERSION));
        rans::longest(version + missing + support + values)
    }
}

/// Writes updates to the wire and reads them off it, with memory that it keeps.
#[derive(Debug, Default)]
pub struct Coder {
    tables: Tables,
    memory: Vec<u8>,
    pub(super) rotation: Rotation,
}

impl Coder {
    /// Writes `update` to `payload` and returns its length in bits. The payload is padded with leading zero
    /// bits to whole bytes, which do not count. If q = 0 there is nothing to send and the payload is empty.
    pub fn encode(
        &mut self,
        format: &Format,
        update: &SparseUpdate,
        payload: &mut Vec<u8>,
    ) -> Result<u64, WireError> {
        check(format, update)?;
        payload.clear();
        if format.q > 0 {
            self.write(format, update, payload);
        }
        Ok(bit_length(payload))
    }

    fn write(&mut self, format: &Format, update: &SparseUpdate, payload: &mut Vec<u8>) {
        let (first, others) = match &update.values {
            Values::Shared(value) => (value.to_bits(), &[][..]),
            Values::Each(values) => values.split_first().map_or((0, &[][..]), |(a, b)| (a.to_bits(), b)),
            // `check` has refused it.
            Values::Grid(_) => (0, &[][..]),
        };
        let mut writer = Writer::new(BOTTOM | u64::from(first), &mut self.memory);
        if format.layout == Layout::Signs {
            writer = signs::write(others, writer);
        } else {
            for value in others.iter().rev() {
                writer.put(Slots { start: value.to_bits(), width: 1 });
            }
        }
        let writer = indices::write(format.dim, &update.indices, &mut self.tables, writer);
        let law = CountLaw::new(format.layout, format.dim, format.q);
        let mut writer = law.write(format.q - update.indices.len() as u32, writer);
        writer.put(Slots::answer(THIS_VERSION, true));
        writer.finish(payload);
    }

    /// Reads `payload` into `update`. On an error the update is empty.
    pub fn decode(
        &mut self,
        format: &Format,
        payload: &[u8],
        update: &mut SparseUpdate,
    ) -> Result<(), WireError> {
        let result = self.read(format, payload, update);
        if result.is_err() {
            *update = SparseUpdate::default();
        }
        result
    }

    fn read(&mut self, format: &Format, payload: &[u8], update: &mut SparseUpdate) -> Result<(), WireError> {
        let Format { layout, dim, q } = *format;
        let (bits, longest) = (bit_length(payload), format.longest());
        if bits > longest {
            return Err(WireError::TooLong { bits, longest });
        }
        if payload.first() == Some(&0) {
            return Err(WireError::Padded);
        }
        let mut values = update.take_values();
        if q == 0 {
            update.indices.clear();
            update.values = if layout == Layout::Shared { Values::default() } else { Values::Each(values) };
            return Ok(());
        }
        let mut reader = Reader::new(payload).ok_or(WireError::Length { short: true })?;
        if !reader.take_answer(THIS_VERSION) {
            return Err(WireError::Version);
        }
        let (missing, reader) = CountLaw::new(layout, dim, q).read(reader);
        let count = u64::from(q).checked_sub(missing).ok_or(WireError::Missing { missing, q })? as u32;
        let mut reader = indices::read(dim, count, &mut self.tables, reader, &mut update.indices)?;
        if layout != Layout::Shared {
            values.resize(count as usize, 0.0);
        }
        match (layout, values.split_first_mut()) {
            (Layout::Shared, _) | (_, None) => {}
            (Layout::Each, Some((_, others))) => {
                for value in others {
                    let start = reader.slot();
                    reader.take(Slots { start, width: 1 });
                    *value = f32::from_bits(start);
                }
            }
            (Layout::Signs, Some((_, others))) => reader = signs::read(reader, others),
        }
        let (first, below) = reader.rest();
        if below > 0 || first >= 2 * BOTTOM {
            return Err(WireError::Length { short: false });
        }
        if first < BOTTOM {
            return Err(WireError::Length { short: true });
        }
        let first = f32::from_bits(first as u32);
        update.values = match layout {
            Layout::Shared => Values::Shared(first),
            Layout::Each | Layout::Signs => {
                match values.split_first_mut() {
                    Some((value, others)) => {
                        *value = first;
                        if layout == Layout::Signs {
                            others.iter_mut().for_each(|sign| *sign = first.copysign(*sign));
                        }
                    }
                    None if first.to_bits() != 0 => return Err(WireError::Length { short: false }),
                    None => {}
                }
                Values::Each(values)
            }
        };
        check_values(layout, &update.values)
    }
}

/// The length of a payload in bits.
pub fn bit_length(payload: &[u8]) -> u64 {
    payload.first().map_or(0, |byte| 8 * payload.len() as u64 - u64::from(byte.leading_zeros()))
}

/// Whether `update` follows `format`.
fn check(format: &Format, update: &SparseUpdate) -> Result<(), WireError> {
    let entries = update.indices.len();
    let refuse = |problem: String| Err(WireError::Update { problem });
    match &update.values {
        Values::Each(values) if values.len() != entries => {
            return refuse(format!("it has {} values for {entries} entries", values.len()));
        }
        Values::Each(_) if format.layout != Layout::Shared => {}
        Values::Shared(_) if format.layout == Layout::Shared => {}
        _ => return refuse(format!("the format is {:?}, its values are not", format.layout)),
    }
    if entries > format.q as usize {
        return refuse(format!("it has {entries} entries, the format holds {}", format.q));
    }
    // To read all of them without a branch takes less time than to stop early.
    let wrong = update.indices.array_windows().fold(0u32, |wrong, [a, b]| wrong | u32::from(a >= b));
    if wrong > 0
        && let Some([a, b]) = update.indices.array_windows().find(|[a, b]| a >= b)
    {
        return refuse(format!("entry {b} follows entry {a}; sort them"));
    }
    if let Some(last) = update.indices.last().filter(|&&last| last >= format.dim) {
        return refuse(format!("it has an entry {last} of {}", format.dim));
    }
    check_values(format.layout, &update.values)
}

/// Whether all values are finite.
pub(crate) fn check_finite(values: &[f32]) -> Result<(), WireError> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(entry) => Err(WireError::NotFinite { entry, value: values[entry] }),
        None => Ok(()),
    }
}

/// Whether the server reads such values: finite ones, and with signs of one magnitude above zero.
pub(crate) fn check_values(layout: Layout, values: &Values) -> Result<(), WireError> {
    let values = match values {
        Values::Shared(value) => std::slice::from_ref(value),
        Values::Each(values) => values,
        Values::Grid(_) => {
            return Err(WireError::Update {
                problem: format!("the format is {layout:?}, its values are not"),
            });
        }
    };
    check_finite(values)?;
    if layout != Layout::Signs {
        return Ok(());
    }
    let Some(first) = values.first() else { return Ok(()) };
    if *first == 0.0 {
        return Err(WireError::ZeroMagnitude { entries: values.len() });
    }
    match values.iter().position(|value| value.abs() != first.abs()) {
        Some(entry) => Err(WireError::Update {
            problem: format!("entry {entry} is {}, entry 0 is {first}; send one magnitude", values[entry]),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_not_finite_are_refused_on_arrival_too() {
        // A sender that does not check.
        let (mut coder, mut payload) = (Coder::default(), Vec::new());
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let each = Values::Each(vec![1.0, 2.0, bad]);
            let first = Values::Each(vec![bad, 2.0, 1.0]);
            for (layout, values, at) in
                [(Layout::Shared, Values::Shared(bad), 0), (Layout::Each, each, 2), (Layout::Each, first, 0)]
            {
                let format = Format::new(layout, 2000, 4).unwrap();
                let mut update = SparseUpdate { indices: vec![5, 900, 1999], values };
                coder.write(&format, &update, &mut payload);
                match coder.decode(&format, &payload, &mut update) {
                    Err(WireError::NotFinite { entry, value }) => {
                        assert_eq!((entry, value.to_bits()), (at, bad.to_bits()));
                    }
                    other => panic!("{layout:?}: {other:?}"),
                }
                assert_eq!(update, SparseUpdate::default());
            }
        }
    }

    #[test]
    fn a_value_without_an_entry_is_refused_where_each_entry_has_its_own() {
        let format = Format::new(Layout::Each, 50, 4).unwrap();
        let (mut coder, mut payload, mut update) = (Coder::default(), Vec::new(), SparseUpdate::default());
        for (value, result) in [(0.0, Ok(())), (1.0, Err(WireError::Length { short: false }))] {
            let sent = SparseUpdate { indices: vec![], values: Values::Shared(value) };
            coder.write(&format, &sent, &mut payload);
            assert_eq!(coder.decode(&format, &payload, &mut update), result);
        }
    }

    #[test]
    fn a_count_that_cannot_be_is_refused() {
        // q = 5 takes three digits, which can encode that up to 8 are missing.
        let format = Format::new(Layout::Shared, 20, 5).unwrap();
        let law = CountLaw::new(format.layout, format.dim, format.q);
        let (mut memory, mut payload) = (Vec::new(), Vec::new());
        let mut writer = law.write(7, Writer::new(BOTTOM, &mut memory));
        writer.put(Slots::answer(THIS_VERSION, true));
        writer.finish(&mut payload);
        let result = Coder::default().decode(&format, &payload, &mut SparseUpdate::default());
        assert_eq!(result, Err(WireError::Missing { missing: 7, q: 5 }));
    }
}
