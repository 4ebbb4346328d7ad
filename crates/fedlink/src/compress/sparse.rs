//! Schemes that send q entries: their common part as compressors.

use super::audit::{Evidence, Sent};
use super::wire::{Coder, Format, Layout, WireError, check_values};
use super::{Codec, Compressor, Context, Encoded, Properties, Scratch, SparseUpdate, Spent};
use crate::base::rng::Stream;
use crate::base::units::Bits;
use crate::schedule::Ask;
use std::ops::RangeInclusive;

/// A scheme whose level is q, a number of entries, and whose cost r(q) both ends know without the data.
pub trait SparseScheme: Send + Sync {
    /// The layout of the values.
    const LAYOUT: Layout;

    /// Whether Δ̂(d) is Δ itself, entry by entry.
    const WHOLE: bool = false;

    /// r(q): the bits that an update of dimension `dim` costs at level `q`.
    fn bits(&self, dim: usize, q: usize) -> Bits;

    /// The largest q whose cost is within `budget`; 0 means that nothing can be sent.
    fn largest_q(&self, dim: usize, budget: Bits) -> usize;

    /// Writes Δ̂(q) of `update` to `out`, reusing its memory and that of `scratch`; q ≥ 1.
    fn compress(
        &self,
        update: &[f32],
        q: usize,
        rng: &mut Stream,
        scratch: &mut Scratch,
        out: &mut SparseUpdate,
    );

    /// The lowest q in 1..=`max` at which Δ̂(q) of `update` has the most energy; none if more entries never
    /// have less.
    fn best_q(&self, _update: &[f32], _max: usize, _scratch: &mut Scratch) -> Option<usize> {
        None
    }

    /// The guarantees on Δ̂(q), 1 ≤ q ≤ `dim`.
    fn properties(&self, dim: usize, q: usize) -> Properties;

    /// ‖Δ‖ of an honest device that sent this.
    fn honest_norm(&self, sent: &Sent) -> RangeInclusive<f64>;

    /// ‖Δ̂(q*)‖ of an honest device that sent this, if it may have sent another level than q*.
    fn honest_compressed_norm(&self, sent: &Sent) -> RangeInclusive<f64>;
}

impl<S: SparseScheme> Compressor for S {
    fn encode(
        &self,
        update: &[f32],
        context: &Context,
        rng: &mut Stream,
        scratch: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent {
        let q = context.level_within(self.largest_q(update.len(), context.budget));
        if q == 0 {
            *out = Encoded::Silent;
            return Spent::default();
        }
        self.compress(update, q, rng, scratch, out.make_sparse());
        Spent { bits: self.bits(update.len(), q), level: q }
    }

    fn encode_whole(&self, update: &mut Vec<f32>, context: &Context, out: &mut Encoded) -> Option<Spent> {
        let dim = update.len();
        if !S::WHOLE || self.largest_q(dim, context.budget) < dim || dim == 0 {
            return None;
        }
        out.make_sparse().swap_all(update);
        Some(Spent { bits: self.bits(dim, dim), level: dim })
    }

    fn codec(&self) -> Option<&dyn Codec> {
        Some(self)
    }

    fn properties(&self, dim: usize, level: usize) -> Properties {
        SparseScheme::properties(self, dim, level)
    }

    fn best_level(&self, update: &[f32], context: &Context, scratch: &mut Scratch) -> Option<usize> {
        let max = self.largest_q(update.len(), context.budget);
        self.best_q(update, max.max(1), scratch)
    }

    fn largest_level(&self, dim: usize, budget: Bits) -> Option<usize> {
        Some(self.largest_q(dim, budget))
    }

    fn has_audit(&self) -> bool {
        true
    }

    fn honest_reports(&self, evidence: &Evidence) -> RangeInclusive<f64> {
        let Evidence { ask, context: Context { dim, budget, .. }, alone, exact, received } = *evidence;
        let Encoded::Sparse(update) = received else { return 0.0..=f64::INFINITY };
        let (q, alone) = (self.largest_q(dim, budget), self.largest_q(dim, alone));
        let sent = Sent { dim, q, alone, exact, update };
        match ask {
            Ask::Norm => self.honest_norm(&sent),
            Ask::CompressedNorm if exact && q == alone => {
                // The device sends the update of its report.
                let norm = f64::from(update.norm());
                norm..=norm
            }
            Ask::CompressedNorm => self.honest_compressed_norm(&sent),
            // An update is no evidence about the loss.
            Ask::Loss | Ask::RmsLoss => 0.0..=f64::INFINITY,
        }
    }
}

impl<S: SparseScheme> Codec for S {
    fn write(
        &self,
        coder: &mut Coder,
        context: &Context,
        update: &Encoded,
        payload: &mut Vec<u8>,
    ) -> Result<u64, WireError> {
        let format = format(self, context)?;
        match update {
            Encoded::Sparse(update) => coder.encode(&format, update, payload),
            _ => Err(WireError::Update { problem: "only a sparse update has this format".into() }),
        }
    }

    fn read(
        &self,
        coder: &mut Coder,
        context: &Context,
        payload: &[u8],
        update: &mut Encoded,
    ) -> Result<(), WireError> {
        let format = format(self, context)?;
        coder.decode(&format, payload, update.make_sparse())
    }

    fn accepts(&self, update: &Encoded) -> bool {
        match update {
            Encoded::Sparse(update) => check_values(S::LAYOUT, &update.values).is_ok(),
            _ => false,
        }
    }

    fn longest(&self, context: &Context) -> u64 {
        format(self, context).map_or(0, |format| format.longest())
    }
}

/// The format that both ends use.
fn format<S: SparseScheme>(scheme: &S, context: &Context) -> Result<Format, WireError> {
    Format::new(S::LAYOUT, context.dim, scheme.largest_q(context.dim, context.budget))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};

    /// Checks that among all levels up to a limit the best has the most energy, and that a larger limit
    /// never has less.
    pub fn best_level_by_brute_force(scheme: &impl SparseScheme, dim: usize) {
        let mut rng = stream(8, Purpose::Test, 0, 0);
        for case in 0..60 {
            let update: Vec<f32> =
                (0..dim).map(|_| (rng.normal() * (1.5 * rng.normal()).exp()) as f32).collect();
            let energy = |q: usize| {
                let (mut sent, mut unused) = (SparseUpdate::default(), stream(8, Purpose::Test, 1, 0));
                scheme.compress(&update, q, &mut unused, &mut Scratch::default(), &mut sent);
                f64::from(sent.norm()).powi(2)
            };
            let mut before = 0.0;
            for max in 1..=20 {
                let best = scheme.best_q(&update, max, &mut Scratch::default()).unwrap();
                let most = (1..=max).map(energy).fold(0.0, f64::max);
                assert!(best <= max && energy(best) >= most * (1.0 - 1e-6), "case {case}, {max}: {best}");
                assert!(energy(best) >= before * (1.0 - 1e-6));
                before = energy(best);
            }
        }
    }
}
