//! Values that are not numbers.

use super::Attack;
use crate::base::state::Persist;
use crate::compress::Encoded;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this attack.
pub const ENTRY: Entry<dyn Attack> = Entry::of::<NotANumber>();

/// Sends NaN as every positive value and −∞ as every other.
///
/// One of them in θ would spread to every later update. The wire format can carry them, so a sender that
/// does not check can write them. The server rejects such a payload on arrival, like one that it cannot
/// decode.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct NotANumber {}

impl PartConfig for NotANumber {
    type Part = dyn Attack;
    const NAME: &'static str = "not-a-number";
    const MEANING: &'static str = "sends NaN and ∞ as values";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Attack>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for NotANumber {}

impl Attack for NotANumber {
    fn tamper(&self, update: &mut Encoded) {
        update.change_values(|value| if value > 0.0 { f32::NAN } else { f32::NEG_INFINITY });
    }
}
