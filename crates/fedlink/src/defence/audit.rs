//! Audit: does what a device sent contradict what it reported?
//!
//! The server knows d, the scheme, the q that the budget holds, and q*, what the device could have sent alone on all
//! n symbols. From the Δ̂ that arrived it derives the range in which the report of an honest device must lie. A report
//! outside is a lie (of the report or of the upload); one inside proves nothing.
//!
//! # D-SGD
//! Let Δ̂ have c entries of value ±v. Take v > 0; the other sign is the mirror image. For q ≥ 1 write a(q) for the mean
//! of the up to q largest positive entries of Δ, b(q) for that of the magnitudes of the up to q smallest negative
//! ones: v = a(q) ≥ b(q). A device may also have sent a smaller q than the budget's (`compress.budget = "wire"`).
//!
//! **‖Δ‖ reported (BN2, BC-BN2).** By Cauchy–Schwarz c·v² ≤ Σ x² over the kept entries, so **v·√c ≤ ‖Δ‖**.
//! There is a bound from above too. The kept positives add up to c·v. If m is the least of them, no positive entry that
//! was left out exceeds m; the squares of both are then largest if one kept entry takes what the others leave above m:
//! (cv − (c−1)m)² + (c−1)m² + u·m², u being left out. That is convex in m, so it is largest at m = 0, where it is c²v²,
//! or at m = v, where it is (c + u)v². On the negative side the same holds with e ≤ q kept entries that add up to at
//! most e·v. As c + u + e + w ≤ d and u > 0 only if c is all that q allows,
//!
//! > ‖Δ‖² ≤ v²·max(c² + E², c² + d − c, d − E + E²),  E = min(q, d − c),
//!
//! and there are updates that attain it. It is about √(2q) times ‖Δ̂‖: one huge entry among zeros is averaged away by
//! D-SGD, and the server cannot exclude that this was so. **An inflation that stays below that factor cannot be
//! proved**, by this or by any other look at v, c and q.
//!
//! **‖Δ̂(q*)‖ reported (BN2-C).** If q = q* (K = 1, the paper's count of bits) the device sends what it reported
//! on: **equality**. Otherwise q ≤ q*. Means over more of the largest entries fall, so v(q*) ≤ v(q), with at most q*
//! entries: ‖Δ̂(q*)‖ ≤ v·√q*. And a(q*) ≥ c·v/q*, so that ‖Δ̂(q*)‖ ≥ c·v/q*. Above the truth there is room for a
//! factor of √(q*/q) at most, about √K.
//!
//! # Top-k
//! What is left out is not larger than the least kept magnitude m: ‖Δ̂‖² ≤ ‖Δ‖² ≤ ‖Δ̂‖² + (d − c)·m², and the same with q*
//! for d if ‖Δ̂(q*)‖ is reported. Zeros are never sent, so fewer entries than q are all there are.
//!
//! # Random sparsification
//! A random part bounds the whole from below only: ‖Δ̂‖ ≤ ‖Δ‖. A device draws the same places for its report and for the
//! air, those of q being among those of q*, so ‖Δ̂(q)‖ ≤ ‖Δ̂(q*)‖ as well. Nothing bounds an inflated report.
//!
//! # Sparse ternary compression
//! With c entries of magnitude μ: μ·√c ≤ ‖Δ‖ ≤ μ·√max(c², d), and ‖Δ̂(q*)‖ lies between c·μ/√q* and μ·√q*.
//! The derivation is in the module of [`Stc`].

use crate::compress::{SchemeKind, SparseUpdate, Stc, Values};
use crate::schedule::ReportKind;
use std::ops::RangeInclusive;

/// What the server has to judge a device by.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// How updates are compressed.
    pub scheme: SchemeKind,
    /// What is reported.
    pub kind: ReportKind,
    /// d.
    pub dim: usize,
    /// The largest q that the budget holds.
    pub q: usize,
    /// Whether an honest device sends exactly that q, or may have to send less (`compress.budget = "wire"`).
    pub exact: bool,
    /// q*, the largest q that all n symbols would hold.
    pub alone: usize,
    /// What arrived, made with q ≥ 1.
    pub received: &'a SparseUpdate,
}

/// Reports and values are `f32`, sums over up to 2³¹ entries `f64`: together less than this, relatively.
pub(crate) const ROUNDING: f64 = 1e-6;

/// And this for numbers too small to be rounded relatively.
pub(crate) const TINY: f64 = f32::from_bits(1) as f64;

impl Evidence<'_> {
    /// Whether an honest device can have reported `report`.
    pub fn allows(&self, report: f32) -> bool {
        let report = f64::from(report);
        let range = self.reports();
        report * (1.0 + ROUNDING) + TINY >= *range.start() && report * (1.0 - ROUNDING) - TINY <= *range.end()
    }

    /// The reports that an honest device can have made, up to the rounding of the report itself.
    pub fn reports(&self) -> RangeInclusive<f64> {
        let all = 0.0..=f64::INFINITY;
        match (self.kind, self.scheme) {
            (_, SchemeKind::Stc) => Stc::honest_reports(self),
            (ReportKind::Nothing, SchemeKind::DSgd | SchemeKind::RandomSparse | SchemeKind::TopK) => all,
            (ReportKind::QuantisedNorm, SchemeKind::DSgd | SchemeKind::RandomSparse | SchemeKind::TopK)
                if self.exact && self.q == self.alone =>
            {
                let norm = f64::from(self.received.norm());
                norm..=norm
            }
            (ReportKind::Norm, SchemeKind::DSgd) => self.norm_of_binary(),
            (ReportKind::QuantisedNorm, SchemeKind::DSgd) => self.quantised_norm_of_binary(),
            (ReportKind::Norm, SchemeKind::RandomSparse | SchemeKind::TopK) => self.norm_of_nested(self.dim),
            (ReportKind::QuantisedNorm, SchemeKind::RandomSparse | SchemeKind::TopK) => {
                self.norm_of_nested(self.alone)
            }
        }
    }

    /// ‖Δ‖ under D-SGD.
    fn norm_of_binary(&self) -> RangeInclusive<f64> {
        let [low, high] = self.shared_value();
        let (dim, count) = (self.dim as f64, self.received.indices.len() as f64);
        if count == 0.0 {
            // Neither side has an entry.
            return 0.0..=0.0;
        }
        let others = (self.q as f64).min(dim - count);
        let both = (count * count + others * others).max(count * count + dim - count);
        let least_is_all = if self.exact && self.received.indices.len() < self.q {
            // Every positive entry was kept.
            0.0
        } else {
            dim - others + others * others
        };
        low * count.sqrt()..=high * both.max(least_is_all).sqrt()
    }

    /// ‖Δ̂(q*)‖ under D-SGD.
    fn quantised_norm_of_binary(&self) -> RangeInclusive<f64> {
        let [low, high] = self.shared_value();
        let (count, q, alone) = (self.received.indices.len() as f64, self.q as f64, self.alone as f64);
        if count == 0.0 || alone == 0.0 {
            return 0.0..=0.0;
        }
        if self.q <= self.alone {
            low * count / alone..=high * alone.sqrt()
        } else {
            // Rounding of the shares of symbols has made the part larger than the whole. Means over fewer of the
            // largest entries rise, to at most q/q* of what they were. With "wire" the sent q may be on either side.
            let least = if self.exact { low } else { low * count / q };
            least..=high * q / alone.sqrt()
        }
    }

    /// The norm of the best, or of the first random, `most` entries, of which those received are a part.
    fn norm_of_nested(&self, most: usize) -> RangeInclusive<f64> {
        let Values::Each(values) = &self.received.values else { return 0.0..=f64::INFINITY };
        let (norm, count) = (crate::learn::kernels::norm(values), values.len());
        let (low, high) = (norm * (1.0 - ROUNDING), norm * (1.0 + ROUNDING));
        if most < self.q {
            // As above: the part larger than the whole, or all of a short update.
            return if self.exact { 0.0..=high } else { 0.0..=f64::INFINITY };
        }
        let missing = most.saturating_sub(count) as f64;
        match self.scheme {
            SchemeKind::TopK if self.exact && count < self.q => low..=high,
            SchemeKind::TopK => {
                let least = values.iter().map(|value| f64::from(value.abs())).fold(f64::INFINITY, f64::min);
                let left_out = if count == 0 { 0.0 } else { missing * least * least };
                low..=(high * high + left_out).sqrt() * (1.0 + ROUNDING)
            }
            _ if missing == 0.0 => low..=high,
            _ => low..=f64::INFINITY,
        }
    }

    /// |v| as it can have been before it was rounded.
    fn shared_value(&self) -> [f64; 2] {
        let Values::Shared(value) = self.received.values else { return [0.0, f64::INFINITY] };
        let value = f64::from(value.abs());
        [(value * (1.0 - ROUNDING) - TINY).max(0.0), value * (1.0 + ROUNDING) + TINY]
    }
}

#[cfg(test)]
mod tests;
