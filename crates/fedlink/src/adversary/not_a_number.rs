//! Values that are no numbers.

use super::{Attack, change_values};
use crate::compress::SparseUpdate;

/// Sends NaN as every positive value and −∞ as every other.
///
/// One of them in θ would spread to every later update. The wire format has room for them, so a sender that does not
/// check can write them; the server refuses such a payload on arrival as it refuses one that it cannot decode.
#[derive(Clone, Copy, Debug)]
pub struct NotANumber;

impl Attack for NotANumber {
    fn tamper(&self, update: &mut SparseUpdate) {
        change_values(update, |value| if value > 0.0 { f32::NAN } else { f32::NEG_INFINITY });
    }
}
