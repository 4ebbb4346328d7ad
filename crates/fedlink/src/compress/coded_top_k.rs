//! Top-k with values of few bits: half precision, magnitude levels or exponents.
//!
//! # How many entries fit
//! r(q) = log2 C(d,q) + b·q + c, with b bits an entry and c beside. As r(q+1) − r(q) = b + log2((d−q)/(q+1))
//! ≥ 0 if and only if q·(2^b + 1) ≤ 2^b·d − 1, it rises up to Q = d − ⌊d/(2^b + 1)⌋, and 0 ≤ q ≤ Q is used.
//!
//! # Audit
//! Let c entries arrive, and let m be the smallest magnitude among them before it was coded. What is left out
//! is not larger than m, and there is nothing if fewer than q arrive. So with the norm N of the kept entries
//! before they were coded, N ≤ ‖v‖ ≤ √(N² + (d − c)·m²). What arrived bounds N and m:
//!
//! - *half*: each kept |v_i| is within 2⁻¹¹ of |v̂_i|, relatively, or within 2⁻³⁹ of the largest;
//! - *exponent*: each lies between |v̂_i|/2 and 2·|v̂_i|;
//! - *levels*: the n entries of a level c_j add up to n·c_j, so their squares to between n·c_j² and (n·c_j)²;
//!   m is at most the smallest level.
//!
//! The norm of v̂(q\*), reported on, follows from the norm N\* of the q\* largest entries, which is bounded
//! in the same way with q\* for d (and by N if q\* < q): it is within the same factors of N\*, and for levels
//! between N\*/√q\* and N\*, as Σ n·c_j² is between (Σ n·c_j)²/q\* and Σ v_i².

use super::audit::{Evidence, ROUNDING};
use super::top_k::keep_largest;
use super::wire::fields::{Fields, Form};
use super::wire::{Coder, WireError};
use super::{Codec, Compressor, Context, Encoded, Properties, Scratch, SparseUpdate, Spent, Values, bits};
use crate::rng::Stream;
use crate::schedule::Ask;
use crate::units::Bits;
use std::ops::RangeInclusive;

/// How a kept entry's value is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// IEEE half precision, with a power of two common to all that lifts the largest to 2¹⁴ or above.
    Half,
    /// A sign and one of so many magnitudes, 2 or 4.
    Levels(usize),
    /// A sign and an 8-bit exponent, rounded at random.
    Exponent,
}

/// Keeps the q entries of largest magnitude and sends a value of few bits for each; see
/// [`TopKConfig`](super::top_k::TopKConfig).
#[derive(Clone, Copy, Debug)]
pub(super) struct CodedTopK {
    pub code: Code,
}

impl CodedTopK {
    /// b: bits that an entry is counted for beside its index, and c: those that all share.
    fn counted(self) -> (u32, f64) {
        match self.code {
            // The sign is counted apart, as with 32 bits.
            Code::Half => (17, 0.0),
            Code::Exponent => (9, 0.0),
            Code::Levels(levels) => (1 + levels.ilog2(), 32.0 * levels as f64),
        }
    }

    /// Q, up to which r(q) rises.
    fn max_q(self, dim: usize) -> usize {
        dim - dim / ((1usize << self.counted().0) + 1)
    }

    fn bits(self, dim: usize, q: usize) -> Bits {
        let (each, fixed) = self.counted();
        Bits(bits::log2_choose(dim as u64, q as u64) + f64::from(each) * q as f64 + fixed)
    }

    fn largest_q(self, dim: usize, budget: Bits) -> usize {
        let max = self.max_q(dim);
        // Where r(Q) = r(Q−1), rounding may make the second the larger, and a search by halves miss Q.
        if self.bits(dim, max) <= budget {
            return max;
        }
        bits::largest_q(max as u64, budget, |q| self.bits(dim, q as usize)) as usize
    }

    /// What both ends know of a message.
    fn form(self, context: &Context) -> Form {
        let (code, fixed) = match self.code {
            Code::Half => (16, SCALE_BITS),
            Code::Exponent => (9, 0),
            Code::Levels(levels) => (1 + levels.ilog2(), 32 * levels as u32),
        };
        let q = self.largest_q(context.dim, context.budget) as u32;
        Form { dim: context.dim as u32, q, code, fixed }
    }
}

/// Bits of the power of two of half precision.
const SCALE_BITS: u32 = 9;

/// What is added to the power of two to make it positive.
const SCALE_OFFSET: i32 = 200;

/// e such that `max`·2^(−e) is in [2¹⁴, 2¹⁵).
fn scale_of(max: f32) -> i32 {
    libm::ilogbf(max) - 14
}

/// |x|·2^(−e) below 2¹⁵ as the 15 low bits of a half-precision number, rounded to nearest, ties to even.
fn half_bits(x: f32, e: i32) -> u32 {
    let y = libm::scalbn(f64::from(x.abs()), -e);
    // Below 2⁻¹⁴ the steps are 2⁻²⁴, above 2⁻¹⁰ of the power of two. A carry moves to the exponent.
    let exponent = if y < libm::scalbn(1.0, -14) { -14 } else { libm::ilogb(y) };
    let steps = libm::scalbn(y, 10 - exponent).round_ties_even() as u32;
    (((exponent + 14) as u32) << 10) + steps
}

/// The number whose 15 low bits are `bits`, times 2^e.
fn half_value(bits: u32, e: i32) -> f32 {
    let (exponent, fraction) = (bits >> 10, bits & 1023);
    let steps = if exponent == 0 { fraction } else { fraction | 1024 };
    libm::scalbn(f64::from(steps), exponent.max(1) as i32 - 25 + e) as f32
}

/// Replaces values by those of half precision.
fn to_half(values: &mut [f32]) {
    let max = values.iter().fold(0.0f32, |max, x| max.max(x.abs()));
    if max == 0.0 {
        return;
    }
    let mut e = scale_of(max);
    if half_bits(max, e) >= 30 << 10 {
        // Rounded up to the next power of two.
        e += 1;
    }
    values.iter_mut().for_each(|x| *x = half_value(half_bits(*x, e), e).copysign(*x));
}

/// Replaces values by powers of two, at random with the right mean: 2^k with probability 2 − |x|/2^k, or
/// 2^(k+1).
fn to_exponents(values: &mut [f32], rng: &mut Stream) {
    for value in values {
        let bits = value.abs().to_bits();
        let low = bits & 0x7F80_0000;
        // Between 0 and the smallest normal number, and above the largest power of two, which stays.
        let fraction = f64::from(bits & 0x007F_FFFF) / f64::from(1u32 << 23);
        let up = rng.uniform() < fraction && low < 254 << 23;
        *value = f32::from_bits(low + (u32::from(up) << 23)).copysign(*value);
    }
}

/// The magnitudes of `levels` cells by Lloyd's iteration from equal counts, ascending, and how many of the
/// sorted magnitudes each holds: each level is the mean of its cell, and a magnitude is in the cell whose
/// level is nearest.
fn lloyd(sorted: &[f32], levels: usize) -> Vec<(f64, usize)> {
    if sorted.is_empty() {
        return Vec::new();
    }
    let mut sums = Vec::with_capacity(sorted.len() + 1);
    sums.push(0.0);
    for &x in sorted {
        sums.push(sums[sums.len() - 1] + f64::from(x));
    }
    let mut ends: Vec<usize> = (1..=levels).map(|j| j * sorted.len() / levels).collect();
    // Every step lowers the error or leaves all as it is; a limit guards against rounding.
    for _ in 0..1000 {
        let means = cells(&sums, &ends);
        let mut next = ends.clone();
        for (j, pair) in means.windows(2).enumerate() {
            let middle = 0.5 * (pair[0].0 + pair[1].0);
            next[j] = sorted.partition_point(|&x| f64::from(x) <= middle);
        }
        next.truncate(means.len());
        next[means.len() - 1] = sorted.len();
        if next == ends {
            break;
        }
        ends = next;
    }
    cells(&sums, &ends)
}

/// The mean and the count of each cell that is not empty.
fn cells(sums: &[f64], ends: &[usize]) -> Vec<(f64, usize)> {
    let mut start = 0;
    let mut cells = Vec::with_capacity(ends.len());
    for &end in ends {
        if end > start {
            cells.push(((sums[end] - sums[start]) / (end - start) as f64, end - start));
            start = end;
        }
    }
    cells
}

/// Replaces values by the level of their cell.
fn to_levels(values: &mut [f32], levels: usize) {
    let mut sorted: Vec<f32> = values.iter().map(|x| x.abs()).collect();
    sorted.sort_unstable_by(f32::total_cmp);
    let cells = lloyd(&sorted, levels);
    // The largest magnitude of each cell and its level.
    let mut end = 0;
    let tops: Vec<(f32, f32)> = cells
        .iter()
        .map(|&(mean, count)| {
            end += count;
            (sorted[end - 1], mean as f32)
        })
        .collect();
    for value in values {
        let cell = tops.partition_point(|&(top, _)| top < value.abs()).min(tops.len().saturating_sub(1));
        *value = tops[cell].1.copysign(*value);
    }
}

/// The distinct magnitudes of `values`, ascending.
fn distinct(values: &[f32]) -> Vec<f32> {
    let mut magnitudes: Vec<f32> = values.iter().map(|x| x.abs()).collect();
    magnitudes.sort_unstable_by(f32::total_cmp);
    magnitudes.dedup();
    magnitudes
}

impl Code {
    /// Replaces values by those that can be sent.
    fn round(self, values: &mut [f32], rng: &mut Stream) {
        match self {
            Self::Half => to_half(values),
            Self::Exponent => to_exponents(values, rng),
            Self::Levels(levels) => to_levels(values, levels),
        }
    }

    /// The fields of values; none if they cannot be sent.
    fn fields(self, values: &[f32]) -> Option<Fields> {
        let mut fields = Fields::default();
        let sign = |x: f32| u32::from(x.is_sign_negative());
        match self {
            Self::Half => {
                let max = values.iter().fold(0.0f32, |max, x| max.max(x.abs()));
                let e = if max > 0.0 { scale_of(max) } else { -SCALE_OFFSET };
                fields.put((e + SCALE_OFFSET) as u32, SCALE_BITS);
                for &x in values {
                    let bits = if max > 0.0 { half_bits(x, e) } else { 0 };
                    if half_value(bits, e) != x.abs() {
                        return None;
                    }
                    fields.put(sign(x) << 15 | bits, 16);
                }
            }
            Self::Exponent => {
                for &x in values {
                    if !x.is_finite() || x.to_bits() & 0x007F_FFFF != 0 {
                        return None;
                    }
                    fields.put(x.to_bits() >> 23, 9);
                }
            }
            Self::Levels(levels) => {
                let all = distinct(values);
                if all.len() > levels || all.first().is_some_and(|first| *first == 0.0) {
                    return None;
                }
                // Levels that are not needed are the largest again.
                for j in 0..levels {
                    let level = all.get(j).or(all.last()).copied().unwrap_or(0.0);
                    fields.put(level.to_bits(), 32);
                }
                for &x in values {
                    let cell = all.partition_point(|&level| level < x.abs());
                    fields.put(sign(x) << levels.ilog2() | cell as u32, 1 + levels.ilog2());
                }
            }
        }
        values.iter().all(|x| x.is_finite()).then_some(fields)
    }

    /// The values of `count` entries' fields.
    fn values(self, fields: &Fields, count: usize, values: &mut Vec<f32>) {
        let signed = |negative: u32, magnitude: f32| if negative == 1 { -magnitude } else { magnitude };
        match self {
            Self::Half => {
                let e = fields.get(0, SCALE_BITS) as i32 - SCALE_OFFSET;
                for i in 0..count as u64 {
                    let bits = fields.get(u64::from(SCALE_BITS) + 16 * i, 16);
                    values.push(signed(bits >> 15, half_value(bits & 0x7FFF, e)));
                }
            }
            Self::Exponent => {
                values.extend((0..count as u64).map(|i| f32::from_bits(fields.get(9 * i, 9) << 23)));
            }
            Self::Levels(levels) => {
                let width = 1 + levels.ilog2();
                for i in 0..count as u64 {
                    let code = fields.get(32 * levels as u64 + u64::from(width) * i, width);
                    let cell = u64::from(code) & (levels as u64 - 1);
                    let level = f32::from_bits(fields.get(32 * cell, 32));
                    values.push(signed(code >> levels.ilog2(), level));
                }
            }
        }
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
            // No less than with one level: see sparse ternary compression.
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
                // It sends what it reported on.
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

/// What half precision can change, relatively, of a norm: 2⁻¹¹ of each entry, and 2⁻³⁹ of the largest of
/// each.
const HALF: f64 = 6e-4;

/// What is lost of numbers near the smallest there are.
const ABSOLUTE: f64 = f32::MIN_POSITIVE as f64;

/// What kept entries can have been before they were coded.
struct Before {
    /// Their norm: from, to.
    norm: [f64; 2],
    /// The most that the smallest of them can have been.
    min: f64,
}

impl CodedTopK {
    fn before(self, values: &[f32]) -> Before {
        let norm = crate::kernels::norm(values);
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
        let form = self.form(context);
        if indices.len() > form.q as usize {
            return Err(refuse("it has more entries than the format holds"));
        }
        let fields = self.code.fields(values).ok_or_else(|| refuse("its values have more bits"))?;
        payload.clear();
        Ok(if form.q == 0 { 0 } else { coder.encode_fields(form, indices, &fields, payload) })
    }

    fn read(
        &self,
        coder: &mut Coder,
        context: &Context,
        payload: &[u8],
        update: &mut Encoded,
    ) -> Result<(), WireError> {
        let (form, update) = (self.form(context), update.make_sparse());
        let mut values = update.take_values();
        update.indices.clear();
        if form.q == 0 {
            update.values = Values::Each(values);
            return match payload.first() {
                None => Ok(()),
                Some(0) => Err(WireError::Padded),
                Some(_) => Err(WireError::TooLong { bits: super::wire::bit_length(payload), longest: 0 }),
            };
        }
        let mut decode = || {
            let fields = coder.decode_fields(form, payload, &mut update.indices)?;
            self.code.values(&fields, update.indices.len(), &mut values);
            if let Some(entry) = values.iter().position(|x| !x.is_finite()) {
                return Err(WireError::NotFinite { entry, value: values[entry] });
            }
            // One payload for one update.
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
        self.form(context).longest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{SparseScheme, Stc};
    use crate::kernels::norm;
    use crate::rng::{Purpose, stream};
    use proptest::prelude::*;

    const CODES: [Code; 4] = [Code::Half, Code::Exponent, Code::Levels(2), Code::Levels(4)];

    #[test]
    fn as_many_entries_fit_as_the_counts_of_bits_give() {
        // At d = 203 530: 17, 9 and 2 bits an entry, and two levels of 32 bits.
        let fit = |code, bits: f64| CodedTopK { code }.largest_q(203_530, Bits(bits));
        let budgets = [1500.0, 3000.0, 36_833.0];
        assert_eq!(budgets.map(|bits| fit(Code::Half, bits)), [49, 102, 1440]);
        assert_eq!(budgets.map(|bits| fit(Code::Exponent, bits)), [68, 143, 2168]);
        assert_eq!(budgets.map(|bits| fit(Code::Levels(2), bits)), [99, 221, 4050]);
        for code in CODES {
            let scheme = CodedTopK { code };
            for dim in 1..200 {
                let max = scheme.max_q(dim);
                assert!((0..max).all(|q| scheme.bits(dim, q).0 <= scheme.bits(dim, q + 1).0 + 1e-9));
                assert!(max == dim || scheme.bits(dim, max + 1).0 < scheme.bits(dim, max).0 + 1e-9);
            }
        }
    }

    proptest! {
        #[test]
        fn levels_are_means_of_their_cells_and_cells_are_nearest_and_hold_no_less_than_one_level(
            update in prop::collection::vec(prop_oneof![-9.0..9.0f32, (-3i8..=3).prop_map(f32::from)], 1..60),
            four in any::<bool>(), q in 1usize..60,
        ) {
            let levels = if four { 4 } else { 2 };
            let mut out = SparseUpdate::default();
            keep_largest(&update, q, &mut Scratch::default(), &mut out);
            let Values::Each(kept) = out.values else { panic!("a value for each") };
            let mut sent = kept.clone();
            if kept.is_empty() {
                return Ok(());
            }
            to_levels(&mut sent, levels);
            let all = distinct(&sent);
            prop_assert!(all.len() <= levels);
            for level in &all {
                let cell = || kept.iter().zip(&sent).filter(|(_, to)| to.abs() == *level);
                let sum: f64 = cell().map(|(from, _)| f64::from(from.abs())).sum();
                let mean = sum / cell().count() as f64;
                prop_assert!((mean - f64::from(*level)).abs() <= 1e-6 * mean);
                for (from, _) in cell() {
                    let distance = |to: f32| (f64::from(from.abs()) - f64::from(to)).abs();
                    let nearest = all.iter().map(|&to| distance(to)).fold(f64::INFINITY, f64::min);
                    prop_assert!(distance(*level) <= nearest + 1e-6 * mean);
                }
            }
            let (mut one, mut unused) = (SparseUpdate::default(), stream(0, Purpose::Test, 0, 0));
            Stc {}.compress(&update, q, &mut unused, &mut Scratch::default(), &mut one);
            prop_assert!(norm(&sent) >= f64::from(one.norm()) * (1.0 - 1e-6));
        }

        #[test]
        fn half_precision_is_within_a_part_in_2048_and_is_sent_as_it_is(
            values in prop::collection::vec(
                prop_oneof![-1e3..1e3f32, -1e-38..1e-38f32, Just(3e38f32)],
                1..40,
            ),
        ) {
            let mut sent = values.clone();
            to_half(&mut sent);
            let max = f64::from(values.iter().fold(0.0f32, |max, x| max.max(x.abs())));
            for (a, b) in values.iter().zip(&sent) {
                let (a, b) = (f64::from(*a), f64::from(*b));
                prop_assert!((a - b).abs() <= a.abs() / 2048.0 + max * 2f64.powi(-39), "{a} {b}");
                prop_assert!(a == 0.0 || a.is_sign_negative() == b.is_sign_negative());
            }
            let mut again = Vec::new();
            let fields = Code::Half.fields(&sent).expect("half precision");
            Code::Half.values(&fields, sent.len(), &mut again);
            prop_assert_eq!(again, sent);
        }

        #[test]
        fn every_code_passes_what_holds_of_schemes(
            update in prop::collection::vec(prop_oneof![-1e3..1e3f32, Just(0.0f32), Just(2.0f32)], 1..90),
            budget in (0.0..12.0f64).prop_map(f64::exp2), alone in (0.0..12.0f64).prop_map(f64::exp2),
        ) {
            for code in CODES {
                let scheme = CodedTopK { code };
                let encode = |budget: f64| {
                    let (mut rng, mut out) = (stream(1, Purpose::Test, 0, 0), Encoded::default());
                    let context = Context::new(update.len(), Bits(budget));
                    (scheme.encode(&update, &context, &mut rng, &mut Scratch::default(), &mut out), out)
                };
                let (spent, received) = encode(budget);
                prop_assert!(spent.bits.0 <= budget);
                if spent.level == 0 {
                    continue;
                }
                prop_assert_eq!(encode(spent.bits.0), (spent, received.clone()));
                prop_assert!(encode(spent.bits.0.next_down()).0.level < spent.level);
                let context = Context::new(update.len(), Bits(budget));
                let (mut payload, mut read) = (Vec::new(), Encoded::default());
                let bits = scheme.write(&mut Coder::default(), &context, &received, &mut payload).unwrap();
                prop_assert!(bits <= scheme.longest(&context), "{code:?}: {bits}");
                // All entries there: five bits more than counted, and what the first 32 are not used for.
                if received.entries() == spent.level {
                    let slack = 5.0 + 33.0;
                    prop_assert!(bits as f64 <= spent.bits.0 + slack, "{code:?}: {bits} of {spent:?}");
                }
                scheme.read(&mut Coder::default(), &context, &payload, &mut read).unwrap();
                prop_assert_eq!(&read, &received);
                for ask in [Ask::Norm, Ask::CompressedNorm] {
                    let report = match ask {
                        Ask::Norm => norm(&update) as f32,
                        _ => encode(alone).1.norm(),
                    };
                    let alone = Bits(alone);
                    let evidence = Evidence { ask, context, alone, exact: true, received: &received };
                    prop_assert!(evidence.allows(&scheme, report), "{code:?} {ask:?} {report}");
                }
            }
        }
    }

    #[test]
    fn exponents_have_the_right_mean_and_a_variance_of_an_eighth_at_most() {
        for x in [1.5f32, -1.5, 1.0, 1.25, 3.9, 6.0 * 2f32.powi(-30)] {
            let (draws, mut sum, mut squares) = (20_000, 0.0, 0.0);
            for draw in 0..draws {
                let mut value = [x];
                to_exponents(&mut value, &mut stream(9, Purpose::Test, draw, 0));
                let error = f64::from(value[0]) / f64::from(x) - 1.0;
                sum += error;
                squares += error * error;
            }
            let n = draws as f64;
            // |x| = 2^k(1 + f): 2^k or twice that, with variance f(1 − f)/(1 + f)², ⅛ at f = ½… 1/9 there.
            let f = f64::from(x.abs()) / libm::scalbn(1.0, libm::ilogbf(x)) - 1.0;
            let exact = f * (1.0 - f) / (1.0 + f).powi(2);
            assert!(exact <= 0.125 + 1e-12);
            assert!((sum / n).abs() <= 4.0 * (exact / n).sqrt(), "{x}: {}", sum / n);
            assert!((squares / n - exact).abs() <= 0.01, "{x}: {} {exact}", squares / n);
        }
        // The most there is: f(1 − f)/(1 + f)² at f = 1/3 is 1/8.
        assert!((1.0 / 3.0 * (2.0 / 3.0) / (4.0f64 / 3.0).powi(2) - 0.125).abs() < 1e-15);
    }
}
