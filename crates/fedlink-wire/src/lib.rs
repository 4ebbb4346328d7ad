#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod choose;
mod coder;
mod count;
mod error;
mod fields;
mod format;
mod gaps;
mod indices;
mod layout;
mod levels;
mod message;
mod packed;
mod rans;
mod signs;

pub use choose::log2_choose;
pub use coder::{Coder, check_values};
pub use error::WireError;
pub use fields::{FieldFormat, Fields};
pub use format::Format;
pub use layout::Layout;
pub use levels::{Grid, MAX_STEPS, steps};
pub use message::check_finite;
pub use packed::{Packer, Unpacker};

/// The version of the format. It is encoded first in every payload with indices.
pub const VERSION: u8 = 1;

/// The length of a payload in bits, without the zero bits that pad its first byte.
#[inline]
pub fn bit_length(payload: &[u8]) -> u64 {
    payload.first().map_or(0, |byte| 8 * payload.len() as u64 - u64::from(byte.leading_zeros()))
}
