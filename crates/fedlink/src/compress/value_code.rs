//! Codes of few bits for values: half precision, magnitude levels and exponents.

use crate::base::rng::Stream;
use fedlink_wire::Fields;

/// The code of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// IEEE half precision, times a common power of two that lifts the largest value to 2¹⁴ or above.
    Half,
    /// A sign and one of 2 or 4 magnitudes.
    Levels(usize),
    /// A sign and an 8-bit exponent, rounded at random.
    Exponent,
}

/// Bits of the power of two of half precision.
pub(super) const SCALE_BITS: u32 = 9;

/// The offset that makes the power of two positive.
const SCALE_OFFSET: i32 = 200;

/// The exponent e with `max`·2^(−e) in [2¹⁴, 2¹⁵).
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

/// Rounds values to half precision.
pub(super) fn to_half(values: &mut [f32]) {
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
pub(super) fn to_exponents(values: &mut [f32], rng: &mut Stream) {
    for value in values {
        let bits = value.abs().to_bits();
        let low = bits & 0x7F80_0000;
        // Below the smallest normal number, or above the largest power of two, which is kept.
        let fraction = f64::from(bits & 0x007F_FFFF) / f64::from(1u32 << 23);
        let up = rng.uniform() < fraction && low < 254 << 23;
        *value = f32::from_bits(low + (u32::from(up) << 23)).copysign(*value);
    }
}

/// The magnitudes of `levels` cells by Lloyd's iteration from equal counts, ascending, with the number of
/// sorted magnitudes in each. Each level is the mean of its cell, and a magnitude is in the cell with the
/// nearest level.
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
    // Every step lowers the error or changes nothing; the limit guards against rounding.
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
pub(super) fn to_levels(values: &mut [f32], levels: usize) {
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
pub(super) fn distinct(values: &[f32]) -> Vec<f32> {
    let mut magnitudes: Vec<f32> = values.iter().map(|x| x.abs()).collect();
    magnitudes.sort_unstable_by(f32::total_cmp);
    magnitudes.dedup();
    magnitudes
}

impl Code {
    /// Replaces values by values that can be sent.
    pub(super) fn round(self, values: &mut [f32], rng: &mut Stream) {
        match self {
            Self::Half => to_half(values),
            Self::Exponent => to_exponents(values, rng),
            Self::Levels(levels) => to_levels(values, levels),
        }
    }

    /// The fields of values; none if they cannot be sent.
    pub(super) fn fields(self, values: &[f32]) -> Option<Fields> {
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
                // Unused levels repeat the largest.
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
    pub(super) fn values(self, fields: &Fields, count: usize, values: &mut Vec<f32>) {
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
