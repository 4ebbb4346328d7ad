//! Huge values.

use super::{Attack, change_values, times};
use crate::compress::SparseUpdate;

/// Sends every value times `adversary.amount`; what overflows becomes the largest finite number.
#[derive(Clone, Copy, Debug)]
pub struct Huge {
    /// The factor.
    pub amount: f32,
}

impl Attack for Huge {
    fn tamper(&self, update: &mut SparseUpdate) {
        change_values(update, |value| times(value, self.amount));
    }
}
