//! No compression, for any budget: for references only.

use super::{Codec, Compressor, Context, Encoded, Evidence, Properties, Scratch, Spent};
use crate::base::rng::Stream;
use crate::base::units::Bits;
use crate::parts::{ConfigError, PartConfig, Scope, keys};
use std::ops::RangeInclusive;

/// Δ̂ = Δ with 32 bits for each entry, for any budget.
///
/// It breaks the rule that a scheme meets its budget, so no list of schemes has it; only the policy
/// `ideal` uses it.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Uncompressed {}

impl PartConfig for Uncompressed {
    type Part = dyn Compressor;
    const NAME: &'static str = "uncompressed";
    const MEANING: &'static str = "updates as they are, whatever the link carries";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Compressor>, ConfigError> {
        Ok(Box::new(self))
    }
}

impl Compressor for Uncompressed {
    fn encode(
        &self,
        update: &[f32],
        _: &Context,
        _: &mut Stream,
        _: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent {
        match out {
            Encoded::Dense(values) => {
                values.clear();
                values.extend_from_slice(update);
            }
            _ => *out = Encoded::Dense(update.to_vec()),
        }
        Spent { bits: Bits(32.0 * update.len() as f64), level: update.len() }
    }

    fn codec(&self) -> Option<&dyn Codec> {
        None
    }

    fn has_audit(&self) -> bool {
        true
    }

    fn honest_reports(&self, _: &Evidence) -> RangeInclusive<f64> {
        0.0..=f64::INFINITY
    }

    fn properties(&self, _: usize, _: usize) -> Properties {
        Properties { unbiased: true, ..Properties::projection(1.0) }
    }

    fn highest_level(&self, dim: usize) -> Option<usize> {
        Some(dim)
    }
}
