//! Codes of finite length: the normal approximation.

use super::{Energy, Rate, spectral_efficiency};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::radio::math::{inverse_q, q_function};
use std::f64::consts::{LOG2_E, SQRT_2};

/// The entry of this rate model.
pub const ENTRY: Entry<dyn Rate> = Entry::of::<FiniteBlocklengthConfig>();

/// `[radio.finite-blocklength]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct FiniteBlocklengthConfig {
    /// probability that an upload of all bits granted is lost
    #[key(default = 1e-3, range = "> 0 and ≤ 0.5")]
    pub error: f64,
}

impl PartConfig for FiniteBlocklengthConfig {
    type Part = dyn Rate;
    const NAME: &'static str = "finite-blocklength";
    // The loss was that of all bits granted, even if fewer were sent.
    const REVISION: u32 = 2;
    const MEANING: &'static str = "one code over the symbols of an upload, which is lost with probability \
                                   radio.finite-blocklength.error (normal approximation)";

    fn build(self, _: &Scope, (): &()) -> Result<Box<dyn Rate>, ConfigError> {
        Ok(Box::new(FiniteBlocklength::new(self.error)))
    }
}

/// b(γ, n) = n·C − √(n·V)·Q⁻¹(ε) + ½·log2(2n), C = log2(1+γ), V = (1 − (1+γ)⁻²)·log2²e: the bits of one code
/// of n complex symbols that fails with probability ε.
///
/// Source: the normal approximation of Polyanskiy, Poor and Verdú (2010) for the real Gaussian channel, as
/// the SPECTRE toolbox has it (`normapx_awgn.m`: + ½·log2 n); n complex symbols are 2n real ones, hence
/// ½·log2(2n), which many papers leave out. Meant for n of about 100 or more.
///
/// The approximation is neither rising nor below capacity where the code is shorter than its own penalty.
/// With s = n·C − √(n·V)·Q⁻¹(ε), the result here is 0 where s ≤ 0, and the logarithm counts for at most s and
/// never lifts b above n·C. That makes b continuous and non-decreasing in γ and n, and changes it only below
/// about log2(2n) bits. (s rises in both where s > 0, since V/C² falls in γ.)
///
/// - Not in proportion to n: no slope.
/// - Loss: an upload of k bits is lost with probability Q((n·C − k + ½·log2(2n))/√(n·V)), ε at k = b.
///
/// ```
/// use fedlink::radio::rate::{FiniteBlocklength, Rate};
/// let rate = FiniteBlocklength::new(1e-3);
/// // 500 symbols at 6 dB: 8 % below capacity.
/// assert!((rate.bits(4.0, 500.0) / 500.0 - 2.1365).abs() < 5e-5);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FiniteBlocklength {
    /// Q⁻¹(ε) ≥ 0.
    quantile: f64,
}

/// The argument at which [`growth`] is largest.
const PEAK: f64 = 11.494_942_371_252_008;

impl FiniteBlocklength {
    /// Codes that fail with probability `error`, above 0 and at most ½.
    pub fn new(error: f64) -> Self {
        assert!(error > 0.0 && error <= 0.5, "a code must lose at most half of its uploads");
        Self { quantile: inverse_q(error) }
    }

    /// s = n·C − √(n·V)·Q⁻¹(ε).
    fn leading(self, snr: f64, symbols: f64) -> f64 {
        symbols * spectral_efficiency(snr) - libm::sqrt(symbols) * root_dispersion(snr) * self.quantile
    }

    /// The bits of these leading terms: the logarithm counts for at most as much, and capacity bounds both.
    fn with_logarithm(leading: f64, snr: f64, symbols: f64) -> f64 {
        if leading.is_nan() || leading <= 0.0 {
            return 0.0;
        }
        let logarithm = (0.5 * libm::log2(2.0 * symbols)).min(leading);
        (leading + logarithm).clamp(0.0, symbols * spectral_efficiency(snr))
    }

    /// The largest number of symbols over which spreading the energy E carries more the more there are.
    ///
    /// With s = E/x, x·C − √(x·V)·q rises in x where [`growth`]`(s)` ≥ q/√E. That holds down to s = 0 unless
    /// E < 4.5·q² (some 40 bits at most), and nowhere if q/√E is above the largest growth; then nothing can
    /// be sent.
    fn widest(self, energy: f64) -> f64 {
        let needed = self.quantile / libm::sqrt(energy);
        if needed <= SQRT_2 / 3.0 {
            return f64::INFINITY;
        }
        if needed >= growth(PEAK) {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, PEAK);
        loop {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                return energy / high;
            }
            if growth(middle) < needed { low = middle } else { high = middle }
        }
    }
}

/// 2·√(2+s)·(1+s)²/(3+s)·(ln(1+s) − s/(1+s))/s²: √2/3 at 0, then rising up to [`PEAK`].
fn growth(s: f64) -> f64 {
    let slope = if s < 1e-3 {
        // A series avoids the cancellation: s²/2 − 2s³/3 + 3s⁴/4 − …
        0.5 - s * (2.0 / 3.0 - s * (0.75 - s * (0.8 - s * 5.0 / 6.0)))
    } else {
        (libm::log1p(s) - s / (1.0 + s)) / (s * s)
    };
    2.0 * libm::sqrt(2.0 + s) * (1.0 + s) * (1.0 + s) / (3.0 + s) * slope
}

/// √V = √(1 − (1+γ)⁻²)·log2 e, written so that nothing cancels at low SNR.
fn root_dispersion(snr: f64) -> f64 {
    libm::sqrt(-libm::expm1(-2.0 * libm::log1p(snr))) * LOG2_E
}

impl Rate for FiniteBlocklength {
    fn loses(&self) -> bool {
        true
    }

    fn is_soft(&self) -> bool {
        true
    }

    fn bits(&self, snr: f64, symbols: f64) -> f64 {
        Self::with_logarithm(self.leading(snr, symbols), snr, symbols)
    }

    fn slope(&self, _: f64) -> Option<f64> {
        None
    }

    /// The first two terms at their largest; the logarithm and the bound are those of all symbols, which is
    /// at most the logarithm of the unused ones too many, and keeps the result rising.
    fn spread(&self, energy: &Energy, symbols: f64) -> f64 {
        if symbols <= 0.0 || energy.snr <= 0.0 {
            return 0.0;
        }
        // At the largest power more symbols always carry more.
        let used = symbols.min(self.widest(energy.total()).max(energy.symbols_at(energy.max_snr)));
        let leading = if used > 0.0 { self.leading(energy.snr_in(used), used) } else { 0.0 };
        Self::with_logarithm(leading, energy.snr_in(symbols), symbols)
    }

    fn loss(&self, snr: f64, symbols: f64, bits: f64) -> f64 {
        if bits <= 0.0 {
            return 0.0;
        }
        let deviation = libm::sqrt(symbols) * root_dispersion(snr);
        if deviation <= 0.0 {
            return 1.0;
        }
        let margin = symbols * spectral_efficiency(snr) - bits + 0.5 * libm::log2(2.0 * symbols);
        q_function(margin / deviation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::rate::Shannon;

    #[test]
    fn bits_a_symbol_are_those_of_the_normal_approximation() {
        // The formula by mpmath at 40 digits.
        for (n, snr, error, expected) in [
            (5000.0, 160.0, 1e-3, 7.269_197_508_053_9),
            (500.0, 4.0, 1e-3, 2.136_542_589_923_2),
            (500.0, 16.0, 1e-3, 3.898_394_297_121_5),
            (100.0, 4.0, 1e-3, 1.923_328_613_583_7),
            (50.0, 1.0, 1e-5, 0.312_860_783_123_18),
        ] {
            let bits = FiniteBlocklength::new(error).bits(snr, n) / n;
            assert!((bits - expected).abs() < 1e-12, "n = {n}, γ = {snr}: {bits}");
        }
        let share =
            |n: f64, snr: f64, error| FiniteBlocklength::new(error).bits(snr, n) / Shannon {}.bits(snr, n);
        assert!((share(5000.0, 160.0, 1e-3) - 0.992).abs() < 5e-4);
        assert!((share(500.0, 4.0, 1e-3) - 0.920).abs() < 5e-4);
        assert!((share(50.0, 1.0, 1e-5) - 0.313).abs() < 5e-4);
    }

    #[test]
    fn long_codes_reach_capacity_and_codes_of_half_loss_do_at_any_length() {
        let rate = FiniteBlocklength::new(1e-3);
        assert!((rate.bits(4.0, 1e14) / Shannon {}.bits(4.0, 1e14) - 1.0).abs() < 1e-6);
        assert_eq!(FiniteBlocklength::new(0.5).bits(4.0, 500.0), Shannon {}.bits(4.0, 500.0));
    }

    #[test]
    fn the_granted_bits_are_lost_with_the_target_probability_and_fewer_less_often() {
        for error in [0.3, 1e-3, 1e-6] {
            let rate = FiniteBlocklength::new(error);
            let bits = rate.bits(4.0, 500.0);
            assert!((rate.loss(4.0, 500.0, bits) / error - 1.0).abs() < 1e-9);
            assert!(rate.loss(4.0, 500.0, 0.9 * bits) < error);
            assert!(rate.loss(4.0, 500.0, 1.1 * bits) > error);
            assert_eq!(rate.loss(4.0, 500.0, 0.0), 0.0);
            assert_eq!(rate.loss(0.0, 500.0, 1.0), 1.0);
        }
    }

    #[test]
    fn the_growth_of_the_spread_is_continuous_where_the_series_ends_and_largest_at_its_peak() {
        assert!((growth(1e-3 * (1.0 - 1e-9)) / growth(1e-3) - 1.0).abs() < 1e-9);
        assert!((growth(0.0) - SQRT_2 / 3.0).abs() < 1e-16);
        assert!(growth(PEAK) > growth(PEAK * 0.99) && growth(PEAK) > growth(PEAK * 1.01));
    }

    #[test]
    fn spread_energy_carries_the_most_that_any_number_of_symbols_up_to_the_limit_carries() {
        for (error, energy, max_snr) in [
            (1e-3, 20.0, f64::MAX),
            (1e-3, 30.0, 3.0),
            (1e-5, 60.0, f64::MAX),
            (1e-3, 500.0, 50.0),
            (0.1, 3.0, 9.0),
        ] {
            let rate = FiniteBlocklength::new(error);
            let mut best = 0.0f64;
            for i in 1..=4000 {
                let symbols = 0.5 * f64::from(i);
                best = best.max(rate.bits((energy / symbols).min(max_snr), symbols));
                let spread = rate.spread(&Energy { snr: energy, over: 1.0, max_snr }, symbols);
                assert!(spread >= best - 1e-9, "{energy}: {spread}, not {best}");
                // The logarithm goes on rising where the rest has its maximum.
                assert!(spread <= best + 3.0, "{energy}: {spread}, not {best}");
            }
        }
    }
}
