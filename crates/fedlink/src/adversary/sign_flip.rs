//! Sign flip: the negated update.

use super::Attack;
use crate::base::state::Persist;
use crate::compress::Encoded;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this attack.
pub const ENTRY: Entry<dyn Attack> = Entry::of::<SignFlip>();

/// Sends −Δ̂, the step that undoes an honest one. Its norm is honest, so norms alone cannot reveal it.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct SignFlip {}

impl PartConfig for SignFlip {
    type Part = dyn Attack;
    const NAME: &'static str = "sign-flip";
    const MEANING: &'static str = "sends its update with the sign turned";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Attack>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for SignFlip {}

impl Attack for SignFlip {
    fn tamper(&self, update: &mut Encoded) {
        update.change_values(|value| -value);
    }
}
