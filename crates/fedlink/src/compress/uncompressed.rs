//! No compression at all, whatever the link carries: for references only.

use super::{Codec, Compressor, Context, Encoded, Evidence, Properties, Scratch, Spent};
use crate::rng::Stream;
use crate::units::Bits;
use std::ops::RangeInclusive;

/// Δ̂ = Δ with 32 bits for each entry, whatever the budget.
///
/// It breaks the rule that a scheme meets its budget, so it is in no list of schemes: the policy `ideal`
/// brings it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncompressed {}

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
