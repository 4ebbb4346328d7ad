//! Updates as bits: the codec of the crate [`fedlink_wire`] for [`SparseUpdate`].
//!
//! Both ends know the [`Format`]: the kind of values, d, and q, which the round's budget determines. A
//! payload is then one whole number, written big-endian, and costs as many bits as that number has. For q
//! entries with one value that is log2 C(d,q) + 33 and a few, **for any support**. `docs/wire-format.md`
//! specifies the format byte for byte, with the reasons and with test vectors.
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
//! // log2 C(7850, 3) = 36.2 bits for the indices, 33 for the value, and at most five more.
//! assert!(bits <= 37 + 33 + 5);
//! # Ok(())
//! # }
//! ```

pub use fedlink_wire::{Format, Layout, VERSION, WireError, bit_length};

use super::eden::Rotation;
use super::{SparseUpdate, Values};

/// Encodes and decodes updates. It keeps its memory from one update to the next.
#[derive(Debug, Default)]
pub struct Coder {
    pub(super) bits: fedlink_wire::Coder,
    shared: Vec<f32>,
    pub(super) rotation: Rotation,
}

impl Coder {
    /// Encodes `update` as `payload` and returns its length in bits. The payload is padded with leading zero
    /// bits to whole bytes; the length does not include them. If q = 0 there is nothing to send and the
    /// payload is empty.
    pub fn encode(
        &mut self,
        format: &Format,
        update: &SparseUpdate,
        payload: &mut Vec<u8>,
    ) -> Result<u64, WireError> {
        let values = values_of(format.layout(), &update.values)?;
        self.bits.encode(format, &update.indices, values, payload)
    }

    /// Decodes `payload` into `update`. On an error the update is empty.
    pub fn decode(
        &mut self,
        format: &Format,
        payload: &[u8],
        update: &mut SparseUpdate,
    ) -> Result<(), WireError> {
        let mut each = update.take_values();
        let is_shared = format.layout() == Layout::Shared;
        let values = if is_shared { &mut self.shared } else { &mut each };
        let result = self.bits.decode(format, payload, &mut update.indices, values);
        match result {
            Ok(()) if is_shared => update.values = Values::Shared(values[0]),
            Ok(()) => update.values = Values::Each(each),
            Err(_) => *update = SparseUpdate::default(),
        }
        result
    }
}

/// The values in the form of the codec.
fn values_of(layout: Layout, values: &Values) -> Result<&[f32], WireError> {
    match values {
        Values::Shared(value) if layout == Layout::Shared => Ok(std::slice::from_ref(value)),
        Values::Each(values) if layout != Layout::Shared => Ok(values),
        _ => {
            let sent = match values {
                Values::Shared(_) => "one value for all entries",
                Values::Each(_) => "one value for each entry",
                Values::Grid(_) => "multiples of a unit",
            };
            Err(WireError::Update { problem: format!("its values are {sent}, the format is {layout:?}") })
        }
    }
}

/// Checks that [`Coder::decode`] can return `values`: they are finite, and with [`Layout::Signs`] they
/// have one magnitude above zero.
pub(super) fn check_values(layout: Layout, values: &Values) -> Result<(), WireError> {
    fedlink_wire::check_values(layout, values_of(layout, values)?)
}
