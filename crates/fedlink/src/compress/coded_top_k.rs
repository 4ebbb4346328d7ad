//! Top-k with values of few bits: half precision, magnitude levels or exponents.
//!
//! # Number of entries within a budget
//! r(q) = log2 C(d,q) + b·q + c, with b bits per entry and c for the update. As r(q+1) − r(q) = b +
//! log2((d−q)/(q+1)) ≥ 0 if and only if q·(2^b + 1) ≤ 2^b·d − 1, it rises up to Q = d − ⌊d/(2^b + 1)⌋,
//! and 0 ≤ q ≤ Q is used.
//!
//! # Audit
//! Let c entries arrive, and let m be the smallest magnitude among them before coding. The omitted
//! entries are not larger than m, and there are none if fewer than q arrive. So with the norm N of the
//! kept entries before coding, N ≤ ‖v‖ ≤ √(N² + (d − c)·m²). The received values bound N and m:
//!
//! - *half*: each kept |v_i| is within 2⁻¹¹ of |v̂_i|, relatively, or within 2⁻³⁹ of the largest;
//! - *exponent*: each lies between |v̂_i|/2 and 2·|v̂_i|;
//! - *levels*: the n entries of a level c_j add up to n·c_j, so their squares to between n·c_j² and (n·c_j)²;
//!   m is at most the smallest level.
//!
//! If the report is the norm of v̂(q\*), it follows from the norm N\* of the q\* largest entries, which
//! has the same bounds with q\* for d (and at most N if q\* < q): it is within the same factors of N\*,
//! and for levels between N\*/√q\* and N\*, as Σ n·c_j² is between (Σ n·c_j)²/q\* and Σ v_i².

use super::audit::{Evidence, ROUNDING};
use super::top_k::keep_largest;
use super::value_code::{Code, SCALE_BITS, distinct};
use super::wire::{Coder, WireError};
use super::{Codec, Compressor, Context, Encoded, Properties, Scratch, SparseUpdate, Spent, Values, bits};
use crate::base::rng::Stream;
use crate::base::units::Bits;
use crate::schedule::Ask;
use fedlink_wire::FieldFormat;
use std::ops::RangeInclusive;

/// Keeps the q entries of largest magnitude and sends a value of few bits for each; see
/// [`TopKConfig`](super::top_k::TopKConfig).
#[derive(Clone, Copy, Debug)]
pub(super) struct CodedTopK {
    pub code: Code,
}

impl CodedTopK {
    /// b: bits per entry beside its index, and c: bits per update.
    fn counted(self) -> (u32, f64) {
        match self.code {
            // The sign is a bit of its own, as with 32 bits.
            Code::Half => (17, 0.0),
            Code::Exponent => (9, 0.0),
            Code::Levels(levels) => (1 + levels.ilog2(), 32.0 * levels as f64),
        }
    }

    /// Q, the largest q up to which r(q) rises.
    fn max_q(self, dim: usize) -> usize {
        dim - dim / ((1usize << self.counted().0) + 1)
    }

    fn bits(self, dim: usize, q: usize) -> Bits {
        let (each, fixed) = self.counted();
        Bits(bits::log2_choose(dim as u64, q as u64) + f64::from(each) * q as f64 + fixed)
    }

    fn largest_q(self, dim: usize, budget: Bits) -> usize {
        let max = self.max_q(dim);
        // If r(Q) = r(Q−1), rounding may make the second the larger, and bisection would miss Q.
        if self.bits(dim, max) <= budget {
            return max;
        }
        bits::largest_q(max as u64, budget, |q| self.bits(dim, q as usize)) as usize
    }

    /// The format that both ends know.
    fn format(self, context: &Context) -> FieldFormat {
        let (code, fixed) = match self.code {
            Code::Half => (16, SCALE_BITS),
            Code::Exponent => (9, 0),
            Code::Levels(levels) => (1 + levels.ilog2(), 32 * levels as u32),
        };
        let q = self.largest_q(context.dim, context.budget) as u32;
        FieldFormat::new(context.dim as u32, q, code, fixed)
    }
}

impl Compressor for CodedTopK {
    fn encode(
        &self,
        update: &[f32],
        context: &Context,
        rng: &mut Stream,
        scratch: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent {
        let q = self.largest_q(update.len(), context.budget);
        if q == 0 {
            *out = Encoded::Silent;
            return Spent::default();
        }
        let out = out.make_sparse();
        keep_largest(update, q, scratch, out);
        if let Values::Each(values) = &mut out.values {
            self.code.round(values, rng);
        }
        Spent { bits: self.bits(update.len(), q), level: q }
    }

    fn codec(&self) -> Option<&dyn Codec> {
        Some(self)
    }

    fn properties(&self, dim: usize, level: usize) -> Properties {
        let kept = level.min(dim) as f64 / dim as f64;
        let delta = match self.code {
            // Each error is below 2⁻¹¹ of its entry, or below 2⁻³⁹ of the largest.
            Code::Half => kept * (1.0 - libm::scalbn(1.0, -20)),
            // E(v̂_i − v_i)² ≤ v_i²/8.
            Code::Exponent => 0.875 * kept,
            // At least as much as with one level: see sparse ternary compression.
            Code::Levels(_) => (1.0 / level as f64).min(kept),
        };
        let projection = matches!(self.code, Code::Levels(_));
        Properties {
            unbiased: false,
            omega: Some(1.0 - delta),
            delta: Some(delta),
            projection,
            homogeneous: true,
        }
    }

    fn highest_level(&self, dim: usize) -> Option<usize> {
        Some(self.max_q(dim)).filter(|&level| level > 0)
    }

    fn has_audit(&self) -> bool {
        true
    }

    fn honest_reports(&self, evidence: &Evidence) -> RangeInclusive<f64> {
        let Evidence { ask, context, alone, exact, received } = *evidence;
        let Encoded::Sparse(SparseUpdate { indices, values: Values::Each(values) }) = received else {
            return 0.0..=f64::INFINITY;
        };
        let (dim, count) = (context.dim, indices.len());
        let (q, alone) = (self.largest_q(dim, context.budget), self.largest_q(dim, alone));
        let kept = self.before(values);
        // The norm of the `max` largest entries, `max` ≥ q.
        let largest = |max: usize| {
            let left_out = if exact && count < q || count == 0 {
                0.0
            } else {
                max.saturating_sub(count) as f64 * kept.min * kept.min
            };
            [kept.norm[0], (kept.norm[1].powi(2) + left_out).sqrt() * (1.0 + ROUNDING)]
        };
        match ask {
            Ask::Norm if count > q => f64::INFINITY..=0.0,
            Ask::Norm => {
                let [low, high] = largest(dim);
                low..=high
            }
            Ask::CompressedNorm if exact && q == alone => {
                // The device sends the update of its report.
                let norm = f64::from(received.norm());
                norm..=norm
            }
            Ask::CompressedNorm => {
                let [low, high] = if alone >= q {
                    largest(alone)
                } else {
                    [0.0, if exact { kept.norm[1] } else { f64::INFINITY }]
                };
                let [down, up] = match self.code {
                    Code::Half => [1.0 - HALF, 1.0 + HALF],
                    Code::Exponent => [0.5, 2.0],
                    Code::Levels(_) => [1.0 / (alone.max(1) as f64).sqrt(), 1.0],
                };
                let tiny = ABSOLUTE * (alone as f64).sqrt();
                (low * down * (1.0 - ROUNDING) - tiny).max(0.0)..=high * up * (1.0 + ROUNDING) + tiny
            }
            // An update is no evidence about the loss.
            Ask::Loss | Ask::RmsLoss => 0.0..=f64::INFINITY,
        }
    }
}

/// The largest relative change of a norm by half precision: 2⁻¹¹ of each entry, and 2⁻³⁹ of the largest
/// for each.
const HALF: f64 = 6e-4;

/// The absolute error of numbers near the smallest float.
const ABSOLUTE: f64 = f32::MIN_POSITIVE as f64;

/// Bounds on kept entries before they were coded.
struct Before {
    /// Their norm: from, to.
    norm: [f64; 2],
    /// An upper bound on the smallest of them.
    min: f64,
}

impl CodedTopK {
    fn before(self, values: &[f32]) -> Before {
        let norm = crate::base::kernels::norm(values);
        let extreme = |pick: fn(f64, f64) -> f64, start: f64| {
            values.iter().map(|x| f64::from(x.abs())).fold(start, pick)
        };
        let (min, max) = (extreme(f64::min, f64::INFINITY), extreme(f64::max, 0.0));
        let tiny = ABSOLUTE * (values.len() as f64).sqrt();
        let around = |down: f64, up: f64| [(norm * down - tiny).max(0.0), norm * up + tiny];
        match self.code {
            Code::Half => {
                // An entry of zero was below 2⁻³⁹ of the largest.
                let far = max * libm::scalbn(1.0, -38) * (values.len() as f64).sqrt();
                let [low, high] = around(1.0 - HALF, 1.0 + HALF);
                Before {
                    norm: [(low - far).max(0.0), high + far],
                    min: min * (1.0 + HALF) + max * libm::scalbn(1.0, -38) + ABSOLUTE,
                }
            }
            Code::Exponent => Before { norm: around(0.5, 2.0), min: 2.0 * min + ABSOLUTE },
            Code::Levels(_) => {
                let all = distinct(values);
                let square = |level: &f32| {
                    let count = values.iter().filter(|x| x.abs() == *level).count() as f64;
                    (count * f64::from(*level)).powi(2)
                };
                let most = all.iter().map(square).sum::<f64>().sqrt();
                let [low, _] = around(1.0 - ROUNDING, 1.0);
                Before {
                    norm: [low, most * (1.0 + ROUNDING) + tiny * (values.len() as f64).sqrt()],
                    min: min * (1.0 + ROUNDING) + ABSOLUTE,
                }
            }
        }
    }
}

impl Codec for CodedTopK {
    fn write(
        &self,
        coder: &mut Coder,
        context: &Context,
        update: &Encoded,
        payload: &mut Vec<u8>,
    ) -> Result<u64, WireError> {
        let refuse = |problem: &str| WireError::Update { problem: problem.into() };
        update.check(context.dim).map_err(|problem| WireError::Update { problem })?;
        let Encoded::Sparse(SparseUpdate { indices, values: Values::Each(values) }) = update else {
            return Err(refuse("only a value for each entry has this format"));
        };
        let fields = self.code.fields(values).ok_or_else(|| refuse("its values have more bits"))?;
        coder.bits.encode_fields(self.format(context), indices, &fields, payload)
    }

    fn read(
        &self,
        coder: &mut Coder,
        context: &Context,
        payload: &[u8],
        update: &mut Encoded,
    ) -> Result<(), WireError> {
        let (format, update) = (self.format(context), update.make_sparse());
        let mut values = update.take_values();
        let mut decode = || {
            let fields = coder.bits.decode_fields(format, payload, &mut update.indices)?;
            if format.max_entries() == 0 {
                return Ok(());
            }
            self.code.values(&fields, update.indices.len(), &mut values);
            if let Some(entry) = values.iter().position(|x| !x.is_finite()) {
                return Err(WireError::NotFinite { entry, value: values[entry] });
            }
            // There is one payload per update.
            if self.code.fields(&values).is_none_or(|own| own != fields) {
                return Err(WireError::Update { problem: "its values are sent in another way".into() });
            }
            Ok(())
        };
        let result = decode();
        if result.is_err() {
            update.indices.clear();
            values.clear();
        }
        update.values = Values::Each(values);
        result
    }

    fn accepts(&self, update: &Encoded) -> bool {
        match update {
            Encoded::Sparse(SparseUpdate { values: Values::Each(values), .. }) => {
                values.iter().all(|x| x.is_finite()) && self.code.fields(values).is_some()
            }
            _ => false,
        }
    }

    fn longest(&self, context: &Context) -> u64 {
        self.format(context).longest()
    }
}

#[cfg(test)]
mod tests;
