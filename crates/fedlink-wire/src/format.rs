//! The format of an update with one kind of values, and an upper bound on the length of its payloads.

use crate::count::CountLaw;
use crate::message::THIS_VERSION;
use crate::{Layout, WireError, indices, log2_choose, rans};

/// The format of an update. Both ends have it before the update is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    pub(crate) layout: Layout,
    pub(crate) dim: u32,
    pub(crate) q: u32,
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

    /// The kind of values.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// An upper bound on the bits of every payload of this format. It rises with q.
    ///
    /// It is the sum of the largest costs of all parts: the version, the number of missing entries, the
    /// indices, all values except the first, and 33.6 bits for the first value and for rounding.
    pub fn longest(&self) -> u64 {
        let Self { layout, dim, q } = *self;
        if q == 0 {
            return 0;
        }
        // If an index costs less than 24 bits, the value of a missing entry saves more than the indices of
        // the others can gain. Indices and signs together cost the most for q entries, up to the largest q.
        // Otherwise the costliest number of entries is the one with the most supports.
        let is_paid = match layout {
            Layout::Shared => false,
            Layout::Each => dim <= 1 << 24,
            Layout::Signs => true,
        };
        let count = if is_paid { q } else { q.min(dim / 2) };
        let support = log2_choose(u64::from(dim), u64::from(count)) + indices::surplus(dim, q);
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
