//! Shadowing: the gain or loss in dB that the surroundings of a device add to its mean gain.

use super::layout::Position;
use crate::base::rng::{Purpose, stream};
use crate::base::units::DeviceId;

/// Waves that make up a field.
const WAVES: u64 = 256;

/// X ~ N(0, σ²) in dB for each device, constant in time where it does not move.
///
/// Zero mean in dB is not mean 1 as a ratio: E 10^(X/10) = exp((σ·ln 10/10)²/2), 5.45 or +7.4 dB at σ = 8 dB.
///
/// - Independent: one normal number of each device, wherever it is.
/// - A field over space with correlation e^(−Δ/d_corr) at distance Δ (Gudmundson 1991; Sionna's `lsp.py`), so
///   that neighbors and a device on its way have similar numbers:
///   X(x) = σ·√(2/N)·Σ_n cos(k_n·x + φ_n), N = 256, |k_n| = √(1/(1−U)² − 1)/d_corr, and angles of k_n and
///   phases φ_n uniform. Its radial spectrum 1 − (1 + k²·d²)^(−1/2) is that of the exponential correlation in
///   the plane: over seeds E X(x)·X(x+Δ) = σ²·E J₀(|k|·Δ) = σ²·e^(−Δ/d_corr), exactly and for every N. The
///   map of one seed, averaged over space, has σ²·N⁻¹·Σ_n cos(k_n·Δ) instead, which is σ² at Δ = 0 and
///   differs by 0.04·σ² or so elsewhere. Random access in space: nothing is stored but the waves. Nearly
///   normal.
///
/// Pure in (seed, device, position).
#[derive(Clone, Debug)]
pub struct Shadowing {
    deviation_db: f64,
    seed: u64,
    /// Wave vectors and phases of the field; empty: independent.
    waves: Vec<Wave>,
}

/// One wave of the field: cos(x·k_x + y·k_y + φ).
#[derive(Clone, Copy, Debug)]
struct Wave {
    x: f64,
    y: f64,
    phase: f64,
}

impl Shadowing {
    /// Shadowing of standard deviation σ = `deviation_db`, with correlation distance `correlation_m` (0:
    /// independent devices). Both finite and ≥ 0.
    pub fn new(deviation_db: f64, correlation_m: f64, seed: u64) -> Self {
        let wave = |index| {
            let mut stream = stream(seed, Purpose::Shadowing, 0, index);
            let number = wave_number(stream.uniform()) / correlation_m;
            let angle = std::f64::consts::TAU * stream.uniform();
            let phase = std::f64::consts::TAU * stream.uniform();
            Wave { x: number * libm::cos(angle), y: number * libm::sin(angle), phase }
        };
        let field = deviation_db > 0.0 && correlation_m > 0.0;
        Self { deviation_db, seed, waves: if field { (0..WAVES).map(wave).collect() } else { Vec::new() } }
    }

    /// X in dB of a device at `position`.
    pub fn db(&self, device: DeviceId, position: &Position) -> f64 {
        if self.deviation_db == 0.0 {
            return 0.0;
        }
        if self.waves.is_empty() {
            return self.deviation_db
                * stream(self.seed, Purpose::Shadowing, 0, u64::from(device.0)).normal();
        }
        let term = |wave: &Wave| libm::cos(wave.x * position.x_m + wave.y * position.y_m + wave.phase);
        let sum: f64 = self.waves.iter().map(term).sum();
        self.deviation_db * libm::sqrt(2.0 / WAVES as f64) * sum
    }
}

/// |k|·d_corr of a wave by its uniform number in [0, 1): the inverse of the radial spectrum.
fn wave_number(uniform: f64) -> f64 {
    let inverse = 1.0 / (1.0 - uniform);
    libm::sqrt(inverse * inverse - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x_m: f64, y_m: f64) -> Position {
        Position { x_m, y_m, z_m: None }
    }

    #[test]
    fn independent_shadowing_has_the_moments_of_its_law() {
        let shadowing = Shadowing::new(8.0, 0.0, 4);
        let all: Vec<f64> = DeviceId::all(40_000).map(|device| shadowing.db(device, &at(1.0, 2.0))).collect();
        let count = all.len() as f64;
        let mean = all.iter().sum::<f64>() / count;
        let variance = all.iter().map(|x| x * x).sum::<f64>() / count;
        assert!(mean.abs() < 5.0 * 8.0 / count.sqrt(), "{mean}");
        assert!((variance / 64.0 - 1.0).abs() < 5.0 * (2.0 / count).sqrt(), "{variance}");
        // Zero mean in dB is not mean 1 as a ratio: at 2 dB the mean is exp((0.2·ln 10)²/2).
        let ratio = all.iter().map(|x| 10f64.powf(0.25 * x / 10.0)).sum::<f64>() / count;
        let truth = ((0.2 * std::f64::consts::LN_10).powi(2) / 2.0).exp();
        assert!((ratio / truth - 1.0).abs() < 0.02, "{ratio}, not {truth}");
        assert_eq!(shadowing.db(DeviceId(3), &at(9.0, 9.0)), all[3], "wherever it is");
    }

    #[test]
    fn the_spectrum_is_that_of_the_exponential_correlation() {
        // E J₀(|k|·Δ) over the uniform number, by the midpoint rule; below s = 1 − u of about 0.003 its waves
        // are not resolved, and J₀ is below 0.05 there.
        let steps = 200_000;
        for delta in [0.1, 0.5, 1.0, 2.0, 3.7] {
            let term = |i: i32| libm::j0(delta * wave_number((f64::from(i) + 0.5) / f64::from(steps)));
            let mean = (0..steps).map(term).sum::<f64>() / f64::from(steps);
            assert!((mean - f64::exp(-delta)).abs() < 5e-5, "Δ = {delta}·d: {mean}");
        }
    }

    #[test]
    fn the_field_has_the_exponential_correlation_in_every_direction() {
        // Over phases the covariance of one seed is N⁻¹·Σ cos(k_n·Δ), and over seeds that of the law: a mean
        // of independent numbers of deviation 0.04, which would show a bias of 0.004.
        let seeds = 2000;
        for (x, y) in [(0.0, 0.0), (50.0, 0.0), (30.0, -40.0), (0.0, 100.0), (-7.0, 3.0), (160.0, 90.0)] {
            let covariance = |seed| {
                let field = Shadowing::new(1.0, 50.0, seed);
                let cosines = field.waves.iter().map(|wave| libm::cos(wave.x * x + wave.y * y));
                cosines.sum::<f64>() / WAVES as f64
            };
            let all: Vec<f64> = (0..seeds).map(covariance).collect();
            let mean = all.iter().sum::<f64>() / seeds as f64;
            let variance = all.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / seeds as f64;
            let (slack, truth) = (4.0 * (variance / seeds as f64).sqrt() + 1e-12, (-x.hypot(y) / 50.0).exp());
            assert!(
                slack < 0.0041 && (mean - truth).abs() < slack,
                "({x}, {y}): {mean} ± {slack}, not {truth}"
            );
        }
    }

    #[test]
    fn pairs_of_devices_have_the_covariance_of_the_waves() {
        // Over seeds, phases and all; products of normal numbers of unit variance have a standard deviation
        // of at most √2.
        let seeds = 4000;
        let far = [(0.0, 0.0), (50.0, 0.0), (30.0, 40.0), (0.0, -100.0)];
        let mut products = [0.0; 4];
        for seed in 0..seeds {
            let field = Shadowing::new(1.0, 50.0, seed);
            let here = field.db(DeviceId(0), &at(120.0, -70.0));
            for (product, (x, y)) in products.iter_mut().zip(far) {
                *product += here * field.db(DeviceId(1), &at(120.0 + x, -70.0 + y)) / seeds as f64;
            }
        }
        let slack = 4.0 * (2.0 / seeds as f64).sqrt();
        for (product, truth) in products.iter().zip([1.0, (-1f64).exp(), (-1f64).exp(), (-2f64).exp()]) {
            assert!((product - truth).abs() < slack, "{products:?}: {product}, not {truth} ± {slack}");
        }
    }

    #[test]
    fn the_field_depends_on_the_position_and_not_on_the_device() {
        let field = Shadowing::new(8.0, 50.0, 1);
        assert_eq!(field.db(DeviceId(0), &at(3.0, 4.0)), field.db(DeviceId(9), &at(3.0, 4.0)));
    }

    #[test]
    fn a_step_of_a_tenth_of_a_meter_changes_the_field_by_half_a_decibel() {
        // E (ΔX)² = 2σ²·(1 − e^(−0.1/50)) = 0.256 dB² over seeds.
        let (seeds, truth) = (4000, 128.0 * (1.0 - f64::exp(-0.1 / 50.0)));
        let mean_square = |seed| {
            let field = Shadowing::new(8.0, 50.0, seed);
            let db = |x: f64| field.db(DeviceId(0), &at(x, 0.0));
            [0.0, 300.0, 600.0, 900.0].map(|x| (db(x + 0.1) - db(x)).powi(2)).iter().sum::<f64>() / 4.0
        };
        let all: Vec<f64> = (0..seeds).map(mean_square).collect();
        let mean = all.iter().sum::<f64>() / seeds as f64;
        let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / seeds as f64;
        let slack = 4.0 * (variance / seeds as f64).sqrt();
        assert!(slack < 0.06 && (mean - truth).abs() < slack, "{mean} ± {slack}, not {truth}");
    }

    #[test]
    fn no_deviation_is_no_shadowing() {
        for correlation in [0.0, 50.0] {
            assert_eq!(Shadowing::new(0.0, correlation, 1).db(DeviceId(0), &at(1.0, 1.0)), 0.0);
        }
    }
}
