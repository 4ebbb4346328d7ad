//! The cost of a report, and the rounding of a number that is sent with few bits.

use super::Reports;
use crate::base::units::DeviceId;
use crate::radio::Known;

/// log2 of the smallest norm or loss that a report of 8 bits distinguishes from 0.
const LOG2_REFERENCE: f32 = -16.0;
/// Steps of a report of 8 bits within a factor of two: 2^(1/8) is 9 %.
const STEPS: f32 = 8.0;
/// The largest finite number of IEEE 754 binary16.
const MAX_F16: f32 = 65504.0;

/// The code of reported numbers, and the part of the round that they take (`schedule.report_bits`,
/// `radio.report_floor`).
///
/// Every candidate sends each requested number with b bits over its own link, so that a round has n′ = max(0,
/// n − ⌈Σ_m Σ_asks b/C_m⌉) symbols left for the updates. Since 1/C has no finite mean over Rayleigh fading, a
/// device whose C is below the floor does not report and cannot be scheduled in the round.
///
/// | b | code |
/// |---|---|
/// | 0 | the number itself, at no cost, as in the paper |
/// | 8 | c = round(8·log2(x/2⁻¹⁶)), clamped to 0..=255; read as 2⁻¹⁶·2^(c/8), steps of 9 % |
/// | 16 | IEEE 754 binary16, to nearest even; beyond ±65504 the largest finite number |
/// | 32 | IEEE 754 binary32, the number itself |
///
/// Where reports have bits, equal ones go to the device with the larger gain: many are equal then, and the
/// lower device would be scheduled all the time.
///
/// ```
/// use fedlink::schedule::ReportCode;
/// let code = ReportCode { bits: 8, floor: 0.1 };
/// assert_eq!(code.read(4.0), 4.0);
/// assert!((code.read(5.0) / 5.0 - 1.0).abs() < 0.045);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReportCode {
    /// b: 0, 8, 16 or 32.
    pub bits: u32,
    /// The capacity below which a device does not report, bits per symbol.
    pub floor: f64,
}

impl ReportCode {
    /// The number that the server reads if a device reports `x`; it is finite if `x` is.
    pub fn read(self, x: f32) -> f32 {
        match self.bits {
            8 => {
                let code = libm::roundf(STEPS * (libm::log2f(x.max(0.0)) - LOG2_REFERENCE));
                libm::exp2f(code.clamp(0.0, 255.0) / STEPS + LOG2_REFERENCE)
            }
            16 => half(x),
            _ => x,
        }
    }

    /// Whether a device of capacity `capacity` can report at all.
    pub(crate) fn carries(self, capacity: f64) -> bool {
        self.bits == 0 || capacity >= self.floor
    }

    /// asks·b/C_m, the symbols that each candidate's report takes; empty if it is free.
    pub(crate) fn symbols(self, candidates: &[DeviceId], asks: usize, known: &Known) -> Vec<f64> {
        if self.bits == 0 || asks == 0 {
            return Vec::new();
        }
        let bits = f64::from(self.bits) * asks as f64;
        candidates.iter().map(|device| bits / known.capacity(*device).max(self.floor)).collect()
    }

    /// Whole symbols that reports of these numbers of symbols take together, at most `symbols`.
    pub(crate) fn total(each: &[f64], symbols: u64) -> u64 {
        let total = libm::ceil(each.iter().sum::<f64>());
        if total < symbols as f64 { total as u64 } else { symbols }
    }

    /// The reports as the server reads them.
    pub(crate) fn received(self, reports: Reports, known: &Known) -> Reports {
        if self.bits == 0 {
            return reports;
        }
        reports.map(|x| self.read(x)).with_gains(known)
    }
}

/// The binary16 number next to `x`, ties to even; the largest finite one beyond ±65504.
fn half(x: f32) -> f32 {
    let size = x.abs();
    if size >= MAX_F16 {
        return MAX_F16.copysign(x);
    }
    // 2⁻²⁴ is the smallest subnormal number; below 2⁻¹⁴ all steps are of that size.
    let exponent = libm::ilogbf(size).max(-14);
    let step = libm::ldexpf(1.0, exponent - 10);
    (libm::rintf(size / step) * step).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::Power;
    use proptest::prelude::*;

    const EIGHT: ReportCode = ReportCode { bits: 8, floor: 0.1 };
    const SIXTEEN: ReportCode = ReportCode { bits: 16, floor: 0.1 };

    #[test]
    fn eight_bits_have_256_values_a_step_of_nine_percent_apart() {
        let values: Vec<f32> = (0..256).map(|c| (2f64.powf(f64::from(c) / 8.0 - 16.0)) as f32).collect();
        for (c, value) in values.iter().enumerate() {
            assert!((EIGHT.read(*value) / value - 1.0).abs() < 1e-5, "code {c}");
        }
        for pair in values.windows(2) {
            assert!((f64::from(pair[1] / pair[0]) - 1.090_507_7).abs() < 1e-5);
        }
        // A number outside of the range is rounded to the end of it.
        for (x, end) in [(0.0, 0), (-3.0, 0), (1e-20, 0), (f32::MAX, 255)] {
            assert!((EIGHT.read(x) / values[end] - 1.0).abs() < 1e-5, "{x}");
        }
    }

    #[test]
    fn sixteen_bits_are_those_of_the_standard() {
        // From the standard's table of examples: smallest subnormal, largest subnormal, smallest normal, 1/3,
        // largest.
        for (bits, value) in [
            (0x0001u16, 5.960_464_5e-8f32),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
        ] {
            assert_eq!(decoded(bits), value);
            assert_eq!(SIXTEEN.read(value), value);
        }
        assert_eq!((SIXTEEN.read(1.0 / 3.0), SIXTEEN.read(1e9)), (decoded(0x3555), 65504.0));
        assert_eq!((SIXTEEN.read(0.0), SIXTEEN.read(-1e-9), SIXTEEN.read(-2.5)), (0.0, 0.0, -2.5));
        // Halfway between two neighbors: to the even one.
        assert_eq!((SIXTEEN.read(2049.0), SIXTEEN.read(2051.0)), (2048.0, 2052.0));
    }

    /// The value of a binary16 number ≥ 0, by the definition.
    fn decoded(bits: u16) -> f32 {
        let (exponent, fraction) = (i32::from(bits >> 10), f32::from(bits & 0x3ff));
        if exponent == 0 {
            fraction * 2f32.powi(-24)
        } else {
            (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15)
        }
    }

    proptest! {
        #[test]
        fn sixteen_bits_read_the_nearest_number(x in 0.0..70000.0f32) {
            let nearest = (0..0x7c00u16).map(decoded).min_by(|a, b| (a - x).abs().total_cmp(&(b - x).abs()));
            prop_assert!((SIXTEEN.read(x) - x).abs() <= (nearest.unwrap() - x).abs());
        }

        #[test]
        fn a_code_keeps_the_order_of_the_numbers(a in 1e-8..1e5f32, b in 1e-8..1e5f32) {
            for bits in [0, 8, 16, 32] {
                let code = ReportCode { bits, floor: 0.1 };
                prop_assert!(a.total_cmp(&b).is_eq() || (a < b) == (code.read(a) <= code.read(b))
                    || code.read(a) == code.read(b));
                // A number that was read reads as itself.
                prop_assert_eq!(code.read(code.read(a)), code.read(a));
            }
        }
    }

    #[test]
    fn the_cost_is_the_sum_over_candidates_and_asks_within_the_round() {
        let known = Known::new(vec![1.0; 3], vec![0.5, 2.0, 8.0], Power(1.0));
        let devices = [0, 1, 2].map(DeviceId);
        assert_eq!(EIGHT.symbols(&devices, 1, &known), [16.0, 4.0, 1.0]);
        let total = |code: ReportCode, devices: &[DeviceId], asks: usize, n: u64| {
            ReportCode::total(&code.symbols(devices, asks, &known), n)
        };
        // 8·(1/0.5 + 1/2 + 1/8) = 21.
        assert_eq!(total(EIGHT, &devices, 1, 1000), 21);
        assert_eq!(total(EIGHT, &devices, 2, 1000), 42);
        assert_eq!(total(EIGHT, &devices[1..], 1, 1000), 5);
        assert_eq!(total(EIGHT, &devices, 2, 40), 40, "no more than there are");
        assert_eq!(total(EIGHT, &devices, 0, 1000), 0);
        assert_eq!(total(ReportCode::default(), &devices, 2, 1000), 0);
        let third = Known::new(vec![1.0], vec![3.0], Power(1.0));
        assert_eq!(ReportCode::total(&EIGHT.symbols(&devices[..1], 1, &third), 1000), 3, "whole symbols");
        assert!(EIGHT.carries(0.1) && !EIGHT.carries(0.0999) && ReportCode::default().carries(0.0));
    }
}
