//! Compression of an update to the bits of a device's link.

pub mod audit;
pub mod bits;
mod coded_top_k;
mod context;
pub mod contract;
mod encoded;
mod extremes;
pub mod feedback;
pub mod plain;
mod properties;
mod singular_vectors;
mod sparse;
mod sparse_update;
pub mod uncompressed;
mod value_code;
pub mod wire;

crate::register! {
    /// All compression schemes.
    SCHEMES: dyn Compressor;
    sparse_binary,
    random_sparse,
    top_k,
    stc,
    rand_k,
    ternary,
    sign,
    qsgd,
    eden,
    low_rank,
}

pub use audit::Evidence;
pub use context::Context;
pub use eden::Eden;
pub use encoded::{Coded, Encoded, add_all};
pub use fedlink_wire::Grid;
pub use feedback::ErrorFeedback;
pub use low_rank::LowRank;
pub use properties::Properties;
pub use qsgd::Qsgd;
pub use rand_k::RandK;
pub use random_sparse::RandomSparse;
pub use sign::Sign;
pub use sparse::SparseScheme;
pub use sparse_binary::SparseBinary;
pub use sparse_update::{SparseUpdate, Values};
pub use stc::Stc;
pub use ternary::Ternary;
pub use top_k::{TopK, TopKConfig, ValueBits};

use crate::base::rng::Stream;
use crate::base::units::Bits;
use crate::parts::{Entry, Kind, Scope};
use serde::{Deserialize, Serialize};
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use wire::{Coder, WireError};

/// The quantity that must fit into a device's budget (`compress.budget`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BudgetRule {
    /// r(q), the scheme's count of bits, as in the paper.
    #[default]
    Formula,
    /// The payload. The device sends the highest level, at most the formula's, whose payload in the
    /// format of the formula's level is no longer than the budget. It finds the level by encoding, from
    /// the top down.
    Wire,
}

/// The choice among the levels that fit a device (`compress.level`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LevelRule {
    /// The largest, as in the paper.
    #[default]
    Largest,
    /// The one with the most energy ⟨Δ, Δ̂⟩²/‖Δ̂‖², the lowest of equal ones. If all kept entries have
    /// one value, a further entry below about half of their mean lowers it.
    Best,
}

/// The part of a budget that a device used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Spent {
    /// The bits by the scheme's count; 0 if silent.
    pub bits: Bits,
    /// The scheme's parameter (q: entries, levels, rank …); 0 means that the budget was too small.
    pub level: usize,
}

impl Spent {
    /// These bits at this level.
    pub fn new(bits: Bits, level: usize) -> Self {
        Self { bits, level }
    }
}

/// A compression scheme: it meets a bit budget, and owns its codec and the audit of its reports.
///
/// Invariants: `spent.bits` ≤ `context.budget`; [`Encoded::Silent`] with level 0 and 0 bits if nothing
/// fits; a budget just below `spent.bits` gives a lower level; the result depends on the arguments alone.
pub trait Compressor: Send + Sync {
    /// Writes Δ̂ of `update` to `out`, within `context.budget`, reusing the memory of `out` and
    /// `scratch`. All randomness comes from `rng`, the device's stream for this round, and from
    /// [`Context::shared`], which the server can draw as well.
    fn encode(
        &self,
        update: &[f32],
        context: &Context,
        rng: &mut Stream,
        scratch: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent;

    /// As [`Compressor::encode`] if Δ̂ is Δ itself, without a copy: `update` becomes the values of `out`,
    /// and gets the memory that `out` had for them, with arbitrary content. None, without a change, if Δ̂
    /// differs from Δ or has another form.
    fn encode_whole(&self, _update: &mut Vec<f32>, _context: &Context, _out: &mut Encoded) -> Option<Spent> {
        None
    }

    /// The codec of Δ̂; none: there are no bytes (`radio.wire` and `compress.budget = "wire"` are
    /// refused).
    fn codec(&self) -> Option<&dyn Codec>;

    /// Whether [`honest_reports`](Self::honest_reports) holds, with a proof, so that reports can be audited.
    fn has_audit(&self) -> bool {
        false
    }

    /// The possible reports of an honest device, given the evidence, up to the rounding of the report
    /// itself.
    fn honest_reports(&self, _evidence: &Evidence) -> RangeInclusive<f64> {
        0.0..=f64::INFINITY
    }

    /// The guarantees on Δ̂ at a level, for every update of `dim` numbers.
    fn properties(&self, dim: usize, level: usize) -> Properties;

    /// The lowest level within `context.budget` at which Δ̂ has the most energy ⟨Δ, Δ̂⟩²/‖Δ̂‖². None if that
    /// is always the highest one, so that `compress.level = "best"` has no effect; a scheme that returns a
    /// level follows [`Context::highest`].
    fn best_level(&self, _update: &[f32], _context: &Context, _scratch: &mut Scratch) -> Option<usize> {
        None
    }

    /// The largest level of an update of `dim` numbers whose bits by the formula are within `budget`, 0 if
    /// there is none; None if that depends on the update.
    fn largest_level(&self, _dim: usize, _budget: Bits) -> Option<usize> {
        None
    }

    /// The highest level of an update of `dim` numbers with an unlimited budget; none if the scheme does
    /// not state it. A transmission at it could not have used a larger budget.
    fn highest_level(&self, dim: usize) -> Option<usize> {
        self.largest_level(dim, Bits(f64::INFINITY)).filter(|&level| level > 0)
    }

    /// The error of a call that failed, for parts in another language, which may fail; the round then
    /// ends with this error.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// The codec of a scheme. Both ends know the [`Context`], with the granted budget, and derive the format
/// from it.
pub trait Codec: Send + Sync {
    /// Writes `update` to `payload` and returns its length in bits, without the leading zero bits that
    /// pad it to whole bytes.
    fn write(
        &self,
        coder: &mut Coder,
        context: &Context,
        update: &Encoded,
        payload: &mut Vec<u8>,
    ) -> Result<u64, WireError>;

    /// Reads `payload` into `update`. Any bytes give an update that follows the format, or an error.
    fn read(
        &self,
        coder: &mut Coder,
        context: &Context,
        payload: &[u8],
        update: &mut Encoded,
    ) -> Result<(), WireError>;

    /// Whether a server accepts such values. A rejected update is dropped, with bytes or without.
    fn accepts(&self, update: &Encoded) -> bool;

    /// An upper bound on the bits of a payload.
    fn longest(&self, context: &Context) -> u64;
}

/// d and the level at which lists state ω and δ.
const EXAMPLE: (usize, usize) = (1000, 10);

/// Memory that compression reuses from update to update.
#[derive(Debug, Default)]
pub struct Scratch {
    keys: Vec<u32>,
    priorities: Vec<(f64, u32)>,
    uniforms: Vec<f64>,
    extremes: extremes::Extremes,
    rotation: eden::Rotation,
    search: low_rank::Search,
    own: BTreeMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl Scratch {
    /// The scratch memory of a custom scheme, with the content of the last call on this thread; `T` is a
    /// type of the scheme.
    ///
    /// ```
    /// use fedlink::compress::Scratch;
    /// #[derive(Default)]
    /// struct Sorted(Vec<f32>);
    /// let mut scratch = Scratch::default();
    /// scratch.own::<Sorted>().0.push(1.5);
    /// assert_eq!(scratch.own::<Sorted>().0, [1.5]);
    /// ```
    pub fn own<T: Any + Default + Send + Sync>(&mut self) -> &mut T {
        let memory = self.own.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
        memory.downcast_mut().expect("the key is the type")
    }
}

/// Facts of a compressor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact")]
#[non_exhaustive]
pub struct CompressorFacts {
    /// Whether E[Δ̂] = Δ.
    pub unbiased: bool,
    /// Whether updates can be sent as bytes.
    pub has_codec: bool,
    /// Whether it may lengthen an update: it declares an error ω and no contraction δ.
    pub may_expand: bool,
    /// Whether a lower level may have more energy.
    pub has_best_level: bool,
    /// Whether it states the possible reports of an honest device, so that reports can be audited.
    pub has_audit: bool,
}

/// Whether a scheme may choose a lower level than the highest that fits.
fn has_best_level(compressor: &dyn Compressor) -> bool {
    let probe = Context::new(1, Bits(f64::INFINITY));
    compressor.best_level(&[1.0], &probe, &mut Scratch::default()).is_some()
}

impl Kind for dyn Compressor {
    type Material = ();
    type Facts = CompressorFacts;
    const PROBE: Option<&'static ()> = Some(&());
    const PLURAL: &'static str = "compressors";
    const KEY: &'static str = "compress.scheme";
    const TABLE: &'static str = "compress";

    fn entries() -> &'static [Entry<Self>] {
        SCHEMES
    }

    fn facts_of(part: &Self) -> CompressorFacts {
        CompressorFacts {
            unbiased: part.properties(2, 1).unbiased,
            may_expand: {
                let Properties { omega, delta, .. } = part.properties(EXAMPLE.0, EXAMPLE.1);
                omega.is_some() && delta.is_none()
            },
            has_codec: part.codec().is_some(),
            has_best_level: has_best_level(part),
            has_audit: part.has_audit(),
        }
    }

    fn declared(entry: &Entry<Self>) -> String {
        let built = entry.build(&toml::Table::new(), &Scope::default(), &());
        built.map_or_else(|_| String::new(), |scheme| scheme.properties(EXAMPLE.0, EXAMPLE.1).in_words())
    }
}

#[cfg(test)]
mod tests;
