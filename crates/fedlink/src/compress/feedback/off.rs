//! No error feedback.

use super::ErrorFeedback;
use crate::compress::Encoded;
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this part.
pub const ENTRY: Entry<dyn ErrorFeedback> = Entry::of::<Off>();

/// v = Δ: devices keep nothing.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Off {}

impl PartConfig for Off {
    type Part = dyn ErrorFeedback;
    const NAME: &'static str = "off";
    const MEANING: &'static str = "what was not sent is discarded, as in the paper";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn ErrorFeedback>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl ErrorFeedback for Off {
    fn vectors(&self) -> usize {
        0
    }

    fn prepare(&self, _: &mut Vec<f32>, _: &mut [f32], _: u64) {}

    fn settle(&self, _: &mut Vec<f32>, _: &[f32], _: &Encoded, _: u64) {}
}
