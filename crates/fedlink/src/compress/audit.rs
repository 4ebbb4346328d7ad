//! Audit: whether the update of a device contradicts its report.
//!
//! The server knows d, the scheme, the budget, and the bits that all n symbols would hold for the device.
//! From the received Δ̂ it derives the range in which the report of an honest device must lie. A report
//! outside is false (or the upload is); one inside proves nothing. The file of each scheme has the bounds
//! with their proofs ([`Compressor::honest_reports`]).

use super::{Compressor, Context, Encoded, SparseUpdate};
use crate::base::units::Bits;
use crate::schedule::Ask;
use std::ops::RangeInclusive;

/// The reports of an honest device that sent an impossible update: none.
pub(super) const IMPOSSIBLE: RangeInclusive<f64> = f64::INFINITY..=0.0;

/// The evidence on which the server judges a device.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Evidence<'a> {
    /// The kind of report.
    pub ask: Ask,
    /// The common knowledge of both ends, with the granted bits.
    pub context: Context<'a>,
    /// The bits that all n symbols would have held for it.
    pub alone: Bits,
    /// Whether an honest device sends the level of its budget, or may have to send less (`compress.budget
    /// = "wire"`).
    pub exact: bool,
    /// The received update, not silent.
    pub received: &'a Encoded,
}

/// The evidence for a scheme of q entries.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sent<'a> {
    /// d.
    pub dim: usize,
    /// The largest q that the budget holds, at least 1.
    pub q: usize,
    /// q*, the largest q that all n symbols would hold.
    pub alone: usize,
    /// Whether an honest device sends exactly q entries, or may have to send less.
    pub exact: bool,
    /// The received update.
    pub update: &'a SparseUpdate,
}

/// An upper bound on the relative rounding error of `f32` reports and values and `f64` sums of up to 2³¹
/// entries.
pub const ROUNDING: f64 = 1e-6;

/// The absolute rounding error of numbers too small for a relative one.
pub const TINY: f64 = f32::from_bits(1) as f64;

impl<'a> Evidence<'a> {
    /// The report of a device, its granted bits, and its received update.
    pub fn new(ask: Ask, context: Context<'a>, alone: Bits, exact: bool, received: &'a Encoded) -> Self {
        Self { ask, context, alone, exact, received }
    }

    /// Whether an honest device can have sent `report`.
    pub fn allows(&self, scheme: &dyn Compressor, report: f32) -> bool {
        contains(&scheme.honest_reports(self), report)
    }
}

/// Whether `report` lies in `range`, up to its own rounding.
pub fn contains(range: &RangeInclusive<f64>, report: f32) -> bool {
    let report = f64::from(report);
    report * (1.0 + ROUNDING) + TINY >= *range.start() && report * (1.0 - ROUNDING) - TINY <= *range.end()
}

/// The range of a magnitude before it was rounded to an `f32`.
pub fn unrounded(value: f32) -> [f64; 2] {
    let value = f64::from(value.abs());
    [(value * (1.0 - ROUNDING) - TINY).max(0.0), value * (1.0 + ROUNDING) + TINY]
}

#[cfg(test)]
mod tests;
