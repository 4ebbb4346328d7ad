//! Sharing n symbols so that bits are proportional to weights, for any links.

use super::slots::{SlotKind, largest_remainder, split_slots};
use crate::base::units::Symbols;
use crate::radio::rate::{Energy, Rate};

/// 2⁵³: beyond it a float no longer counts symbols, and no upload ends.
const MAX_SYMBOLS: f64 = 9_007_199_254_740_992.0;

/// b of one link: an increasing function from symbols to bits.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Curve<'a> {
    /// At one SNR, for any number of symbols.
    Fixed {
        /// The bits that symbols carry.
        rate: &'a dyn Rate,
        /// γ.
        snr: f64,
    },
    /// With one energy, spread over the symbols.
    Spread {
        /// The bits that symbols carry.
        rate: &'a dyn Rate,
        /// The energy.
        energy: Energy,
    },
}

impl Curve<'_> {
    /// b(x).
    pub fn bits(&self, symbols: f64) -> f64 {
        match self {
            Self::Fixed { rate, snr } => rate.bits(*snr, symbols),
            Self::Spread { rate, energy } => rate.spread(energy, symbols),
        }
    }

    /// Bits per symbol, if bits are proportional to symbols.
    pub fn slope(&self) -> Option<f64> {
        match self {
            Self::Fixed { rate, snr } => rate.slope(*snr),
            Self::Spread { .. } => None,
        }
    }

    /// b⁻¹: the symbols in [0, `max`] that carry `bits`, of which b(`max`) has at least as many. To a few
    /// units in the last digit of the bits; the fewest such symbols where b is flat.
    pub fn inverse(&self, bits: f64, max: f64) -> f64 {
        if bits <= 0.0 {
            return 0.0;
        }
        self.closed_inverse(bits)
            .unwrap_or_else(|| {
                // Above zero where the symbols are too few, so that a flat stretch ends at its beginning.
                root(0.0, max, bits, |x| self.bits(x))
            })
            .min(max)
    }

    /// The number of symbols that carry `bits`; none if no number up to 2⁵³ does. `start` is where the search
    /// begins.
    pub fn reach(&self, bits: f64, start: f64) -> Option<f64> {
        if bits <= 0.0 {
            return Some(0.0);
        }
        if let Some(symbols) = self.closed_inverse(bits) {
            return Some(symbols).filter(|symbols| *symbols <= MAX_SYMBOLS);
        }
        let mut max = start.max(1.0);
        while max <= MAX_SYMBOLS {
            if self.bits(max) >= bits {
                return Some(self.inverse(bits, max));
            }
            max *= 2.0;
        }
        None
    }

    /// b⁻¹ where there is a closed form: infinite if no number of symbols carries the bits.
    fn closed_inverse(&self, bits: f64) -> Option<f64> {
        if let Some(slope) = self.slope() {
            return Some(if slope > 0.0 { bits / slope } else { f64::INFINITY });
        }
        let Self::Spread { rate, energy } = self else { return None };
        let gap = rate.gap()?;
        // At the largest SNR bits are in proportion to symbols until the energy is used up.
        let steepest = rate.bits(energy.max_snr, 1.0);
        if steepest <= 0.0 {
            return Some(f64::INFINITY);
        }
        let linear = bits / steepest;
        let at_max = energy.max_snr < f64::MAX && linear <= energy.symbols_at(energy.max_snr);
        Some(if at_max { linear } else { energy.over * spread_share(energy.snr / gap, bits / energy.over) })
    }
}

/// The x with x·log2(1 + γ/x) = r: the share of a band in which an SNR of γ over all of it carries r bits for
/// each symbol of all of it. Infinite if r ≥ γ·log2 e, which no share reaches.
///
/// With u = γ/x and c = r·ln 2/γ it is the root of ln(1+u) = c·u above 0, found by Newton's method from
/// (2/c)·ln(1/c), which is above it: the steps then fall towards it.
///
/// ```
/// use fedlink::radio::access::split::spread_share;
/// assert!((spread_share(4.0, 1.0) - 0.242_049_404_979_69).abs() < 1e-13);
/// ```
pub fn spread_share(snr: f64, bits: f64) -> f64 {
    if bits <= 0.0 {
        return 0.0;
    }
    let c = bits * std::f64::consts::LN_2 / snr;
    if c.is_nan() || c >= 1.0 {
        return f64::INFINITY;
    }
    // Below this ratio the share is too small to matter, and the first estimate would overflow.
    let c = c.max(1e-300);
    let mut u = -2.0 * libm::log(c) / c;
    for _ in 0..100 {
        let next = u - (libm::log1p(u) - c * u) / (1.0 / (1.0 + u) - c);
        // The steps fall until rounding turns them; a NaN ends them too.
        if !(next < u && next > 0.0) {
            break;
        }
        u = next;
    }
    snr / u
}

/// The x in [`low`, `high`] with f(x) = `target`, for a non-decreasing f with f(low) ≤ target ≤ f(high):
/// where there are several, about the lowest; where f jumps over the target, the last float before the jump.
///
/// False position with the Illinois rule, and a bisection wherever three steps have not halved the bracket,
/// so that it always ends.
pub fn root(mut low: f64, mut high: f64, target: f64, mut f: impl FnMut(f64) -> f64) -> f64 {
    let mut below = f(low) - target;
    let mut above = f(high) - target;
    if above < 0.0 {
        return high;
    }
    let close = 2.0 * f64::EPSILON * target.abs();
    let mut last_was_low = None;
    let mut widths = [f64::INFINITY; 3];
    for _ in 0..300 {
        let width = high - low;
        if width <= f64::EPSILON * high {
            break;
        }
        let secant = low + width * (below / (below - above));
        let slow = width > 0.5 * widths[0];
        widths = [widths[1], widths[2], width];
        let x = if slow || !(secant > low && secant < high) { low + 0.5 * width } else { secant };
        if x <= low || x >= high {
            break;
        }
        let distance = f(x) - target;
        // A flat stretch at the target is left at its beginning: only a point below it counts as close.
        if distance < 0.0 {
            if -distance <= close {
                return x;
            }
            (low, below) = (x, distance);
            if last_was_low == Some(true) {
                above *= 0.5;
            }
            last_was_low = Some(true);
        } else {
            (high, above) = (x, distance);
            if last_was_low == Some(false) {
                below *= 0.5;
            }
            last_was_low = Some(false);
        }
    }
    low
}

/// n_m ≥ 0 with Σ n_m = n and b_m(n_m) = λ·w_m for one λ.
///
/// Source: the proportionality conditions of the paper's section IV, for any increasing b_m. Where every b_m
/// is linear this is [`split_slots`], to the last bit. Else the outer root is that of Σ b_m⁻¹(λ·w_m) = n in
/// λ. Invariants: shares are finite, ≥ 0 and add up to n; bits are in the ratios of the weights to 1e-9; a
/// larger b_m does not lower λ. A link with b_m(n) = 0 gets nothing as long as another one carries something
/// (if none does, all get the same). Weights that are all zero mean equal weights. Where a link is full
/// before the symbols are used up (its b_m no longer rises), it gets those left over. Where codes have a
/// shortest length and the round is too short for all of them at once, no ratio can be kept: all get the
/// same.
///
/// `weights` must be finite and not negative. With [`SlotKind::Whole`], shares are rounded to whole symbols
/// by the largest remainder.
pub fn split(weights: &[f64], curves: &[Curve], symbols: u64, kind: SlotKind) -> Vec<Symbols> {
    assert_eq!(weights.len(), curves.len(), "one weight and one link for each scheduled device");
    let slopes: Option<Vec<f64>> = curves.iter().map(Curve::slope).collect();
    if let Some(slopes) = slopes {
        return split_slots(weights, &slopes, symbols, kind);
    }
    let real = split_real(weights, curves, symbols as f64);
    match kind {
        SlotKind::Real => real.into_iter().map(Symbols).collect(),
        SlotKind::Whole => largest_remainder(&real, symbols),
    }
}

fn split_real(weights: &[f64], curves: &[Curve], n: f64) -> Vec<f64> {
    let whole: Vec<f64> = curves.iter().map(|curve| curve.bits(n)).collect();
    let alive = |m: usize| whole[m] >= f64::MIN_POSITIVE;
    let heaviest = |counts: &dyn Fn(usize) -> bool| {
        (0..weights.len()).filter(|&m| counts(m)).map(|m| weights[m]).fold(0.0, f64::max)
    };
    let (top, any_weight) = (heaviest(&alive), heaviest(&|_| true) > 0.0);
    // Scaled to a largest of 1, so that neither tiny nor huge weights overflow.
    let scaled: Vec<f64> = (0..weights.len())
        .map(|m| match (alive(m), any_weight) {
            (true, true) if top > 0.0 => weights[m] / top,
            (true, false) => 1.0,
            _ => 0.0,
        })
        .collect();
    let counts: Vec<usize> = (0..weights.len()).filter(|&m| scaled[m] > 0.0).collect();
    let equal = |among: &[usize]| {
        let mut shares = vec![0.0; weights.len()];
        among.iter().for_each(|&m| shares[m] = n / among.len() as f64);
        shares
    };
    if counts.len() < 2 {
        let all: Vec<usize> = (0..weights.len()).collect();
        return equal(if counts.is_empty() { &all } else { &counts });
    }
    // At the largest λ one link alone would need all symbols.
    let limit = |m: &usize| whole[*m] / scaled[*m];
    let full = counts.iter().copied().min_by(|a, b| limit(a).total_cmp(&limit(b))).unwrap_or(counts[0]);
    let shares = |lambda: f64| -> Vec<f64> {
        (0..weights.len()).map(|m| curves[m].inverse(lambda * scaled[m], n)).collect()
    };
    let needed = |lambda: f64| counts.iter().map(|&m| curves[m].inverse(lambda * scaled[m], n)).sum::<f64>();
    let mut split = shares(root(0.0, limit(&full), n, needed));
    let used: f64 = split.iter().sum();
    if used <= 0.0 {
        return equal(&counts);
    }
    if used < n * (1.0 - 1e-9)
        && split[full] > 0.0
        && curves[full].bits(split[full]) >= whole[full] * (1.0 - 1e-9)
    {
        split[full] += n - used;
        return split;
    }
    // Divided first: the used symbols may be tiny where weights are far apart.
    split.iter_mut().for_each(|share| *share = *share / used * n);
    split
}

#[cfg(test)]
mod tests;
