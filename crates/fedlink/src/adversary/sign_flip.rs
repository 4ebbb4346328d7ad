//! Sign-flip: the update backwards.

use super::{Attack, change_values};
use crate::compress::SparseUpdate;

/// Sends −Δ̂: the step that undoes an honest one. Its norm is honest, so that no look at norms can tell.
#[derive(Clone, Copy, Debug)]
pub struct SignFlip;

impl Attack for SignFlip {
    fn tamper(&self, update: &mut SparseUpdate) {
        change_values(update, |value| -value);
    }
}
