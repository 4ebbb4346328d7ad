//! What can be wrong with a format, an update or a payload.

use super::Layout;

/// Why something cannot be written to the wire or read off it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The two ends agreed on something that no update can be.
    #[error(
        "no wire format has up to {q} entries among {dim} ({layout:?}): write q ≤ d/2 for one shared value, \
         q ≤ d for one value each, q ≤ 2d/3 rounded up for signs, d < 2^32"
    )]
    Format {
        /// How values are sent.
        layout: Layout,
        /// d.
        dim: usize,
        /// q.
        q: usize,
    },
    /// The update to be sent does not follow the format.
    #[error("the update cannot be sent: {problem}")]
    Update {
        /// What is wrong with it.
        problem: String,
    },
    /// An infinite value or one that is not a number, to be sent or received.
    #[error("the value of entry {entry} is {value}; send finite values")]
    NotFinite {
        /// Which of the entries, counted from 0; 0 for a shared value.
        entry: usize,
        /// NaN or an infinity.
        value: f32,
    },
    /// Entries of magnitude zero where all entries have one, to be sent or received.
    #[error("the magnitude of its {entries} entries is 0; leave entries out that are zero")]
    ZeroMagnitude {
        /// How many there are.
        entries: usize,
    },
    /// A payload that is longer than any update's.
    #[error("the payload has {bits} bits; the longest update of this format has at most {longest}")]
    TooLong {
        /// Its length.
        bits: u64,
        /// The most there can be.
        longest: u64,
    },
    /// A payload that begins with a zero byte.
    #[error("the payload begins with a zero byte; strip padding before decoding")]
    Padded,
    /// A payload of another version of the format.
    #[error("the payload is not of version {}; both ends must use the same", super::VERSION)]
    Version,
    /// A payload by which more entries are missing than there can be.
    #[error(
        "the payload declares that {missing} of {q} entries are missing; it is damaged or of another format"
    )]
    Missing {
        /// How many it declares, more than q.
        missing: u64,
        /// How many there can be.
        q: u32,
    },
    /// A payload that ends before its update does, or the other way round.
    #[error(
        "the payload is too {}; it is damaged or of another format",
        if *.short { "short" } else { "long" }
    )]
    Length {
        /// Whether it is the payload that ends first.
        short: bool,
    },
}
