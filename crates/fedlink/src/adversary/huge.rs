//! Huge values.

use super::{Attack, times};
use crate::compress::Encoded;
use crate::registry::{ConfigError, Entry, Key, PartConfig, Scope, key};
use crate::state::Persist;
use serde::{Deserialize, Serialize};

/// The entry of this attack.
pub const ENTRY: Entry<dyn Attack> = Entry::of::<Huge>();

/// Sends every value times `amount`; what overflows becomes the largest finite number.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Huge {
    /// The factor.
    pub amount: f32,
}

impl Default for Huge {
    fn default() -> Self {
        Self { amount: 1000.0 }
    }
}

impl PartConfig for Huge {
    type Part = dyn Attack;
    const NAME: &'static str = "huge";
    const MEANING: &'static str = "sends its values times adversary.huge.amount";
    const KEYS: &'static [Key] = &[key("amount", "factor of every value", "> 0, at most 3.4e38")];

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        super::inflated_norm::check_amount(self.amount)
    }

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Attack>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Persist for Huge {}

impl Attack for Huge {
    fn tamper(&self, update: &mut Encoded) {
        update.change_values(|value| times(value, self.amount));
    }
}
