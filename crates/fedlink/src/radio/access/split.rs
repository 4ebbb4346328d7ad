//! Sharing n symbols so that bits are proportional to weights, for any links.

use super::slots::{SlotKind, largest_remainder, split_slots};
use crate::radio::rate::{Energy, Rate};
use crate::units::Symbols;

/// 2⁵³: beyond it a float no longer counts symbols, and no upload ends.
const MAX_SYMBOLS: f64 = 9_007_199_254_740_992.0;

/// b of one link: an increasing function from symbols to bits.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Curve<'a> {
    /// At one SNR, however many symbols.
    Fixed {
        /// How many bits symbols carry.
        rate: &'a dyn Rate,
        /// γ.
        snr: f64,
    },
    /// With one energy, spread over the symbols.
    Spread {
        /// How many bits symbols carry.
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

    /// Bits a symbol, if bits are in proportion to symbols.
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

    /// The symbols that carry `bits`, however many; none if no number up to 2⁵³ does. `start` is a guess.
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
    // Below this ratio the share is smaller than any that matters, and the guess would overflow.
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
        // Flat stretches at the target are left at their beginning: only what is below it counts as close.
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
    // Divided first: what is used may be tiny where weights are far apart.
    split.iter_mut().for_each(|share| *share = *share / used * n);
    split
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::rate::{FiniteBlocklength, Gap, Mcs, Shannon, TruncatedShannon, mcs::Table};
    use proptest::prelude::*;

    const SHANNON: Shannon = Shannon {};

    fn spread(rate: &dyn Rate, snr: f64, over: f64) -> Curve<'_> {
        Curve::Spread { rate, energy: Energy { snr, over, max_snr: f64::MAX } }
    }

    #[test]
    fn shares_of_a_band_are_those_of_the_lambert_function() {
        // −γ/(1 + W₋₁(−c·e^(−c))/c) with c = r·ln 2/γ, by scipy.special.lambertw; mpmath agrees.
        for (snr, bits, share) in [
            (4.0, 1.0, 0.242_049_404_979_690_4),
            (10.0, 0.2, 0.022_774_824_722_508_87),
            (1.0, 1.2, 2.325_152_911_152_714),
            (0.1, 0.05, 0.018_797_973_523_984_87),
        ] {
            let x = spread_share(snr, bits);
            assert!((x / share - 1.0).abs() < 1e-13, "({snr}, {bits}): {x}");
        }
        assert_eq!(spread_share(1.0, std::f64::consts::LOG2_E), f64::INFINITY);
        assert_eq!(spread_share(0.0, 1.0), f64::INFINITY);
        assert_eq!(spread_share(1.0, 0.0), 0.0);
    }

    proptest! {
        #[test]
        fn a_share_carries_the_bits_that_it_was_asked_for(snr_db in -40.0..80.0f64, part in 1e-9..0.999f64) {
            let snr = f64::powf(10.0, snr_db / 10.0);
            let bits = part * snr * std::f64::consts::LOG2_E;
            let x = spread_share(snr, bits);
            prop_assert!((x * (snr / x).ln_1p() * std::f64::consts::LOG2_E / bits - 1.0).abs() < 1e-11);
        }

        #[test]
        fn a_root_of_any_rising_function_is_found(at in 1e-6..1.0f64, power in 0.05..20.0f64) {
            let x = root(0.0, 1.0, at.powf(power), |x| x.powf(power));
            prop_assert!((x.powf(power) / at.powf(power) - 1.0).abs() < 1e-12, "{} for {}", x, at);
        }
    }

    #[test]
    fn a_root_in_a_jump_is_the_last_float_before_it_and_a_flat_stretch_ends_at_its_beginning() {
        let x = root(0.0, 10.0, 0.5, |x| if x < 3.0 { 0.0 } else { 1.0 });
        assert!(x < 3.0 && 3.0 - x < 1e-14, "{x}");
        let x = root(0.0, 10.0, 4.0, |x| x.min(4.0));
        assert!((x - 4.0).abs() < 1e-14, "{x}");
    }

    #[test]
    fn a_split_solves_the_convex_program() {
        // max t with x·log2(1 + γ_m/x_m)·n ≥ t·w_m, Σ x = 1: scipy.optimize, SLSQP and then brentq on the
        // dual.
        for (snrs, weights, expected) in REFERENCE {
            let curves: Vec<Curve> = snrs.iter().map(|&snr| spread(&SHANNON, snr, 5000.0)).collect();
            let shares = split(&weights, &curves, 5000, SlotKind::Real);
            for (share, expected) in shares.iter().zip(expected) {
                assert!((share.0 / 5000.0 - expected).abs() < 1e-10, "{shares:?}");
            }
        }
    }

    const REFERENCE: [([f64; 3], [f64; 3], [f64; 3]); 3] = [
        (
            [0.2, 3.0, 50.0],
            [1.0, 2.0, 0.5],
            [0.882_300_289_364_923_2, 0.107_037_321_486_732_8, 0.010_662_389_148_344_65],
        ),
        (
            [4.0, 4.0, 0.1],
            [1.0, 1.0, 1.0],
            [0.017_503_856_026_909_95, 0.017_503_856_026_909_95, 0.964_992_287_946_178_6],
        ),
        (
            [160.0, 11.0, 0.7],
            [3.0, 1.0, 0.2],
            [0.586_722_282_325_247_6, 0.303_372_259_121_988_56, 0.109_905_458_552_764_04],
        ),
    ];

    /// Independent: bisection on λ with every inverse a bisection too, on a grid of all rates.
    fn by_bisection(weights: &[f64], curves: &[Curve], n: f64) -> Vec<f64> {
        let inverse = |curve: &Curve, bits: f64| {
            let (mut low, mut high) = (0.0, n);
            for _ in 0..100 {
                let middle = 0.5 * (low + high);
                if curve.bits(middle) < bits { low = middle } else { high = middle }
            }
            high
        };
        let (mut low, mut high) = (0.0, 1e9);
        for _ in 0..120 {
            let middle = 0.5 * (low + high);
            let used: f64 = weights.iter().zip(curves).map(|(w, c)| inverse(c, middle * w)).sum();
            if used < n { low = middle } else { high = middle }
        }
        weights.iter().zip(curves).map(|(w, c)| inverse(c, low * w)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn splits_of_concave_links_add_up_and_make_bits_proportional_to_weights(
            links in prop::collection::vec((-15.0..40.0f64, 0.05..20.0f64, 0usize..4), 2..12),
        ) {
            let rates: [&dyn Rate; 3] = [&SHANNON, &Gap { ratio: 2.0 }, &FiniteBlocklength::new(1e-3)];
            let n = 5000.0 * links.len() as f64;
            let curves: Vec<Curve> = links
                .iter()
                .map(|&(db, _, kind)| {
                    let snr = f64::powf(10.0, db / 10.0);
                    match kind {
                        3 => Curve::Fixed { rate: rates[2], snr },
                        _ => spread(rates[kind], snr, n),
                    }
                })
                .collect();
            let weights: Vec<f64> = links.iter().map(|link| link.1).collect();
            let shares = split(&weights, &curves, n as u64, SlotKind::Real);
            let total: f64 = shares.iter().map(|share| share.0).sum();
            prop_assert!((total / n - 1.0).abs() < 1e-12);
            let ratio = |m: usize| curves[m].bits(shares[m].0) / weights[m];
            for m in 1..curves.len() {
                prop_assert!((ratio(m) / ratio(0) - 1.0).abs() < 1e-9, "{} against {}", ratio(m), ratio(0));
            }
            for (share, expected) in shares.iter().zip(by_bisection(&weights, &curves, n)) {
                prop_assert!((share.0 - expected).abs() < 1e-9 * n, "{:?} against {}", shares, expected);
            }
            let whole = split(&weights, &curves, n as u64, SlotKind::Whole);
            prop_assert_eq!(whole.iter().map(|share| share.0).sum::<f64>(), n);
            for (whole, real) in whole.iter().zip(&shares) {
                prop_assert!(whole.0.fract() == 0.0 && (whole.0 - real.0).abs() <= 1.0);
            }
        }

        #[test]
        fn a_better_link_does_not_lower_what_all_get(
            links in prop::collection::vec((-10.0..30.0f64, 0.1..10.0f64), 2..8),
            better in 0.0..10.0f64,
        ) {
            let weights: Vec<f64> = links.iter().map(|link| link.1).collect();
            let level = |first: f64| {
                let curve = |(m, link): (usize, &(f64, f64))| {
                    let db = link.0 + if m == 0 { first } else { 0.0 };
                    spread(&SHANNON, f64::powf(10.0, db / 10.0), 5000.0)
                };
                let curves: Vec<Curve> = links.iter().enumerate().map(curve).collect();
                let shares = split(&weights, &curves, 5000, SlotKind::Real);
                curves[0].bits(shares[0].0) / weights[0]
            };
            prop_assert!(level(better) >= level(0.0) * (1.0 - 1e-10));
        }

        #[test]
        fn any_finite_input_gives_finite_shares_that_add_up(
            bits in prop::collection::vec((any::<u64>(), any::<u64>(), 0usize..8), 1..8),
            n in 1..=1u64 << 53,
        ) {
            let finite = |x: u64| Some(f64::from_bits(x).abs()).filter(|x| x.is_finite()).unwrap_or(0.0);
            let table = Mcs::of(Table::Nr256Qam);
            let truncated = TruncatedShannon { attenuation: 0.6, max_bits: 4.4, min_snr: 0.1 };
            let rates: [&dyn Rate; 4] = [&SHANNON, &table, &truncated, &FiniteBlocklength::new(1e-5)];
            let weights: Vec<f64> = bits.iter().map(|link| finite(link.0)).collect();
            let curves: Vec<Curve> = bits
                .iter()
                .map(|link| match (rates[link.2 % 4], finite(link.1)) {
                    (rate, snr) if link.2 < 4 => Curve::Fixed { rate, snr },
                    (rate, snr) => spread(rate, snr, n as f64),
                })
                .collect();
            for kind in [SlotKind::Real, SlotKind::Whole] {
                let shares = split(&weights, &curves, n, kind);
                let total: f64 = shares.iter().map(|share| share.0).sum();
                let proper = |share: &Symbols| share.0.is_finite() && share.0 >= 0.0;
                prop_assert!(shares.iter().all(proper), "{:?}", shares);
                prop_assert!((total / n as f64 - 1.0).abs() < 1e-9, "{:?} of {}", shares, n);
                for (curve, share) in curves.iter().zip(&shares) {
                    prop_assert!(curve.bits(share.0).is_finite() && curve.bits(share.0) >= 0.0);
                }
            }
        }
    }

    #[test]
    fn dead_links_zero_weights_and_single_links_are_treated_as_with_linear_links() {
        let curves = |snrs: &[f64]| -> Vec<Curve<'static>> {
            snrs.iter().map(|&snr| spread(&SHANNON, snr, 10.0)).collect()
        };
        let shares = |w: &[f64], snrs: &[f64]| {
            split(w, &curves(snrs), 10, SlotKind::Real).iter().map(|share| share.0).collect::<Vec<f64>>()
        };
        assert_eq!(shares(&[1.0, 1.0], &[0.0, 2.0]), [0.0, 10.0]);
        assert_eq!(shares(&[1.0, 1.0], &[0.0, 0.0]), [5.0, 5.0]);
        assert_eq!(shares(&[0.0, 1.0], &[3.0, 2.0]), [0.0, 10.0]);
        assert_eq!(shares(&[0.0, 0.0], &[3.0, 3.0]), [5.0, 5.0]);
        assert_eq!(
            shares(&[1.0, 0.0], &[0.0, 3.0]),
            [5.0, 5.0],
            "as with linear links: nobody with a weight lives"
        );
        assert_eq!(shares(&[1.0], &[3.0]), [10.0]);
        assert_eq!(shares(&[1e-310, 1e300], &[3.0, 0.0]), [10.0, 0.0]);
    }

    #[test]
    fn a_link_that_is_full_gets_the_symbols_left_over_and_ratios_stay() {
        // The energy of the first link lasts for few symbols at the lowest step of the table.
        let table = Mcs::of(Table::Lte64Qam);
        let curves = [spread(&table, 0.01, 1000.0), spread(&table, 100.0, 1000.0)];
        let shares = split(&[1.0, 2.0], &curves, 1000, SlotKind::Real);
        assert!((shares[0].0 + shares[1].0 - 1000.0).abs() < 1e-9);
        let bits = [curves[0].bits(shares[0].0), curves[1].bits(shares[1].0)];
        assert!((bits[1] / bits[0] - 2.0).abs() < 1e-9, "{bits:?}");
        assert!((bits[0] / curves[0].bits(1000.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn codes_too_short_for_the_round_share_it_equally() {
        let finite = FiniteBlocklength::new(1e-5);
        let curves = [Curve::Fixed { rate: &finite, snr: 0.05 }; 8];
        assert!(curves[0].bits(1000.0) > 0.0 && curves[0].bits(125.0) == 0.0);
        let shares = split(&[1.0; 8], &curves, 1000, SlotKind::Real);
        assert_eq!(shares, [Symbols(125.0); 8]);
    }
}
