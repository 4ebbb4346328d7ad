//! Huge values.

use super::{Attack, times};
use crate::base::state::Persist;
use crate::compress::Encoded;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this attack.
pub const ENTRY: Entry<dyn Attack> = Entry::of::<Huge>();

/// Sends every value times `amount`; an overflow becomes the largest finite number.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Huge {
    /// factor of every value
    #[key(default = 1000.0, range = "> 0")]
    pub amount: f32,
}

impl PartConfig for Huge {
    type Part = dyn Attack;
    const NAME: &'static str = "huge";
    const MEANING: &'static str = "sends its values times adversary.huge.amount";

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
