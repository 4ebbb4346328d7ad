//! Errors of formats, updates and payloads.

use crate::Layout;

/// The reason why an update cannot be encoded or a payload cannot be decoded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// No update can have this format.
    #[error(
        "no wire format has up to {q} entries among {dim} ({layout:?}): write q ≤ d/2 for one shared value, \
         q ≤ d for one value each, q ≤ 2d/3 rounded up for signs, d < 2^32"
    )]
    Format {
        /// The kind of values.
        layout: Layout,
        /// d.
        dim: usize,
        /// q.
        q: usize,
    },
    /// The update to be sent does not follow the format.
    #[error("the update cannot be sent: {problem}")]
    Update {
        /// The rule that the update breaks.
        problem: String,
    },
    /// A value that is infinite or not a number, in an update or a payload.
    #[error("the value of entry {entry} is {value}; send finite values")]
    NotFinite {
        /// The number of the entry, from 0; 0 for a shared value.
        entry: usize,
        /// NaN or an infinity.
        value: f32,
    },
    /// The magnitude that all entries share is zero, in an update or a payload.
    #[error("the magnitude of its {entries} entries is 0; leave entries out that are zero")]
    ZeroMagnitude {
        /// The number of entries.
        entries: usize,
    },
    /// The payload is longer than that of any update.
    #[error("the payload has {bits} bits; the longest update of this format has at most {longest}")]
    TooLong {
        /// Its length in bits.
        bits: u64,
        /// The upper bound of the format.
        longest: u64,
    },
    /// The payload begins with a zero byte.
    #[error("the payload begins with a zero byte; strip padding before decoding")]
    Padded,
    /// The payload is of another version of the format.
    #[error("the payload is not of version {}; both ends must use the same", crate::VERSION)]
    Version,
    /// The payload declares that more entries are missing than the format has.
    #[error(
        "the payload declares that {missing} of {q} entries are missing; it is damaged or of another format"
    )]
    Missing {
        /// The declared number, more than q.
        missing: u64,
        /// The largest number of entries.
        q: u32,
    },
    /// The payload ends before its update does, or the update before the payload.
    #[error(
        "the payload is too {}; it is damaged or of another format",
        if *.short { "short" } else { "long" }
    )]
    Length {
        /// Whether the payload ends first.
        short: bool,
    },
}
