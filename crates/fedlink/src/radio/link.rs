//! Power and capacity of a device's link.

use crate::base::units::Power;

/// P = M·P̄/K: the transmit power of a scheduled device.
///
/// A device that is scheduled K/M of the time then spends P̄ on average, the limit of the average-power
/// constraint. Policies that depend on the update do not schedule all devices equally often; the record of a
/// run therefore reports the power that each device spent.
pub fn transmit_power(devices: usize, k: usize, average: Power) -> Power {
    Power(devices as f64 * average.0 / k as f64)
}

/// C = log2(1 + g·P/σ²), bits per symbol.
///
/// Source: Shannon capacity of the complex Gaussian channel. Invariants: C ≥ 0, rising in g and P, falling
/// in σ², and never infinite where g·P/σ² is finite.
///
/// ```
/// use fedlink::{base::units::Power, radio::link::capacity};
/// assert_eq!(capacity(3.0, Power(5.0), 1.0), 4.0);
/// ```
pub fn capacity(gain: f64, power: Power, noise: f64) -> f64 {
    libm::log1p(gain * power.0 / noise) * std::f64::consts::LOG2_E
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::units::DeviceId;
    use crate::radio::fading::{Fading, Rayleigh};

    /// E₁(x) by its series −γ − ln x − Σ (−x)^k/(k·k!), good to double precision for small x.
    fn exponential_integral(x: f64) -> f64 {
        let mut term = 1.0;
        let mut sum = 0.0;
        for k in 1..60 {
            term *= -x / f64::from(k);
            sum += term / f64::from(k);
        }
        -0.577_215_664_901_532_9 - x.ln() - sum
    }

    #[test]
    fn the_exponential_integral_of_the_test_matches_the_tables() {
        // Abramowitz & Stegun, table 5.1: E₁(1) and E₁(0.5).
        assert!((exponential_integral(1.0) - 0.219_383_934_4).abs() < 1e-10);
        assert!((exponential_integral(0.5) - 0.559_773_594_8).abs() < 1e-10);
    }

    #[test]
    fn mean_capacity_over_rayleigh_fading_is_the_closed_form() {
        // E[log2(1+gP)] = e^{1/P}·E₁(1/P)/ln 2.
        for power in [1.0, 4.0, 40.0] {
            let samples: Vec<f64> = (0..5000)
                .flat_map(|t| DeviceId::all(40).map(move |device| Rayleigh { seed: 1 }.gain(t, device)))
                .map(|g| capacity(g, Power(power), 1.0))
                .collect();
            let count = samples.len() as f64;
            let mean = samples.iter().sum::<f64>() / count;
            let variance = samples.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / count;
            let truth = (1.0 / power).exp() * exponential_integral(1.0 / power) / std::f64::consts::LN_2;
            let slack = 4.0 * (variance / count).sqrt();
            assert!((mean - truth).abs() < slack, "P = {power}: {mean} is not within {slack} of {truth}");
        }
    }

    #[test]
    fn capacity_is_exact_at_powers_of_two_and_for_tiny_gains() {
        for bits in 0..60 {
            let gain = f64::exp2(f64::from(bits)) - 1.0;
            assert!(
                (capacity(gain, Power(1.0), 1.0) - f64::from(bits)).abs() < 1e-13 * f64::from(bits.max(1))
            );
        }
        // ln(1+x) ≈ x: a plain logarithm would lose every digit here.
        assert!((capacity(1e-20, Power(1.0), 1.0) / (1e-20 / std::f64::consts::LN_2) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn power_spent_at_the_fair_share_is_the_average_power() {
        let power = transmit_power(40, 5, Power(1.5));
        assert!((power.0 * 5.0 / 40.0 - 1.5).abs() < 1e-15);
    }
}
