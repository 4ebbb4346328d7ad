//! The frame of every message: the version at its top, 32 bits at its bottom, and checks of its content.

use crate::rans::{Reader, SLOTS, Slots, Writer};
use crate::{WireError, bit_length};

/// Slots of this version; those above are for later versions.
pub(crate) const THIS_VERSION: u32 = u32::MAX - (1 << 24) + 1;

/// A one above the 32 bits at the bottom of a message, so that their leading zeros are not lost.
const BOTTOM: u64 = SLOTS;

/// A message with the 32 bits `first` at its bottom.
pub(crate) fn start(first: u32, memory: &mut Vec<u8>) -> Writer<'_> {
    Writer::new(BOTTOM | u64::from(first), memory)
}

/// Encodes the version and writes the message to `payload`. Returns its length in bits.
pub(crate) fn finish(mut writer: Writer, payload: &mut Vec<u8>) -> u64 {
    writer.put(Slots::answer(THIS_VERSION, true));
    writer.finish(payload);
    bit_length(payload)
}

/// Rejects payloads of more than `longest` bits and payloads that begin with a zero byte.
pub(crate) fn check_length(payload: &[u8], longest: u64) -> Result<(), WireError> {
    let bits = bit_length(payload);
    if bits > longest {
        return Err(WireError::TooLong { bits, longest });
    }
    if payload.first() == Some(&0) { Err(WireError::Padded) } else { Ok(()) }
}

/// The message in `payload`, after its version.
pub(crate) fn begin(payload: &[u8]) -> Result<Reader<'_>, WireError> {
    let mut reader = Reader::new(payload).ok_or(match payload {
        [] => WireError::Length { short: true },
        _ => WireError::Padded,
    })?;
    if reader.take_answer(THIS_VERSION) { Ok(reader) } else { Err(WireError::Version) }
}

/// The 32 bits at the bottom of a message whose symbols have all been decoded.
pub(crate) fn bottom(reader: &Reader) -> Result<u32, WireError> {
    let (first, below) = reader.rest();
    if below > 0 || first >= 2 * BOTTOM {
        return Err(WireError::Length { short: false });
    }
    if first < BOTTOM {
        return Err(WireError::Length { short: true });
    }
    Ok(first as u32)
}

/// Checks that `indices` ascend strictly and are below `dim`.
pub(crate) fn check_indices(indices: &[u32], dim: u32) -> Result<(), WireError> {
    let refuse = |problem: String| Err(WireError::Update { problem });
    // Reading all of them without a branch is faster than stopping early.
    let wrong = indices.array_windows().fold(0u32, |wrong, [a, b]| wrong | u32::from(a >= b));
    if wrong > 0
        && let Some([a, b]) = indices.array_windows().find(|[a, b]| a >= b)
    {
        return refuse(format!("entry {b} follows entry {a}; sort them"));
    }
    match indices.last() {
        Some(last) if *last >= dim => refuse(format!("it has an entry {last} of {dim}")),
        _ => Ok(()),
    }
}

/// Checks that all values are finite.
pub fn check_finite(values: &[f32]) -> Result<(), WireError> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(entry) => Err(WireError::NotFinite { entry, value: values[entry] }),
        None => Ok(()),
    }
}
