//! Audit: does what a device sent contradict what it reported?
//!
//! The server knows d, the scheme, the budget, and what the device could have sent alone on all n symbols.
//! From the Δ̂ that arrived it derives the range in which the report of an honest device must lie. A report
//! outside is a lie (of the report or of the upload); one inside proves nothing. The bounds of each scheme,
//! with their proofs, stand in the scheme's file ([`Compressor::honest_reports`]).

use super::{Compressor, Context, Encoded, SparseUpdate};
use crate::base::units::Bits;
use crate::schedule::Ask;
use std::ops::RangeInclusive;

/// The reports of a device that sent what no honest one does: none.
pub(super) const IMPOSSIBLE: RangeInclusive<f64> = f64::INFINITY..=0.0;

/// What the server has to judge a device by.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Evidence<'a> {
    /// What was reported.
    pub ask: Ask,
    /// What both ends know, with the bits that the device was granted.
    pub context: Context<'a>,
    /// The bits that all n symbols would have held for it.
    pub alone: Bits,
    /// Whether an honest device sends the level of its budget, or may have to send less
    /// (`compress.budget = "wire"`).
    pub exact: bool,
    /// What arrived, not silent.
    pub received: &'a Encoded,
}

/// The same for a scheme of q entries.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sent<'a> {
    /// d.
    pub dim: usize,
    /// The largest q that the budget holds, at least 1.
    pub q: usize,
    /// q*, the largest q that all n symbols would hold.
    pub alone: usize,
    /// Whether an honest device sends exactly q entries' worth, or may have to send less.
    pub exact: bool,
    /// What arrived.
    pub update: &'a SparseUpdate,
}

/// Reports and values are `f32`, sums over up to 2³¹ entries `f64`: together less than this, relatively.
pub const ROUNDING: f64 = 1e-6;

/// And this for numbers too small to be rounded relatively.
pub const TINY: f64 = f32::from_bits(1) as f64;

impl<'a> Evidence<'a> {
    /// What a device reported, what it was granted, and what arrived.
    pub fn new(ask: Ask, context: Context<'a>, alone: Bits, exact: bool, received: &'a Encoded) -> Self {
        Self { ask, context, alone, exact, received }
    }

    /// Whether an honest device can have reported `report`.
    pub fn allows(&self, scheme: &dyn Compressor, report: f32) -> bool {
        contains(&scheme.honest_reports(self), report)
    }
}

/// Whether `report` lies in `range`, up to its own rounding.
pub fn contains(range: &RangeInclusive<f64>, report: f32) -> bool {
    let report = f64::from(report);
    report * (1.0 + ROUNDING) + TINY >= *range.start() && report * (1.0 - ROUNDING) - TINY <= *range.end()
}

/// A magnitude as it can have been before it was rounded to an `f32`.
pub fn unrounded(value: f32) -> [f64; 2] {
    let value = f64::from(value.abs());
    [(value * (1.0 - ROUNDING) - TINY).max(0.0), value * (1.0 + ROUNDING) + TINY]
}

#[cfg(test)]
mod tests;
