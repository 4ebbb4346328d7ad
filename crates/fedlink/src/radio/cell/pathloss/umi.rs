//! Urban micro cell (street canyon).

use super::{Heights, Path, PathLoss, PathLossFacts, Site, Urban, street_line_of_sight};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use std::ops::RangeInclusive;

/// The entry of this law.
pub const ENTRY: Entry<dyn PathLoss> = Entry::of::<UmiConfig>();

/// `[cell.umi]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct UmiConfig {}

impl PartConfig for UmiConfig {
    type Part = dyn PathLoss;
    const NAME: &'static str = "umi";
    const MEANING: &'static str =
        "urban micro cell (street canyon) of 3GPP TR 38.901, with or without line of sight";

    fn facts(&self) -> PathLossFacts {
        PathLossFacts {
            line_of_sight: true,
            has_domain: true,
            height_bs_m: Some(Umi::HEIGHTS.bs_m),
            min_m: 10.0,
            ..PathLossFacts::default()
        }
    }

    fn build(self, _: &Scope, site: &Site) -> Result<Box<dyn PathLoss>, ConfigError> {
        let carrier_hz = site.carrier(0.5e9..=100e9)?;
        // The break point needs antennas above the environment's height of 1 m.
        let heights = site.heights(Umi::HEIGHTS, 1.5..=150.0, Umi::OF_DEVICES)?;
        Ok(Box::new(Umi { carrier_hz, heights }))
    }
}

/// With d the distance in space in meters, f the carrier in GHz and d'_BP = 4·(h_BS − 1)·(h_UT − 1)·f_c/c:
///
/// - line of sight, up to d'_BP over ground: 32.4 + 21.0·log10 d + 20·log10 f;
/// - beyond: 32.4 + 40·log10 d + 20·log10 f − 9.5·log10(d'_BP² + (h_BS − h_UT)²);
/// - without line of sight: 22.4 + 35.3·log10 d + 21.3·log10 f − 0.3·(h_UT − 1.5), or the former if larger.
///
/// Line of sight with probability 1 up to 18 m, then 18/d + e^(−d/36.0)·(1 − 18/d) over ground. Shadowing of
/// 4 dB with and 7.82 dB without line of sight goes with it.
///
/// Source: 3GPP TR 38.901, as Sionna's `umi_scenario.py` has it; from 10 m to 5 km, after 3GPP, as we read
/// it.
#[derive(Clone, Copy, Debug)]
pub struct Umi {
    /// f_c.
    pub carrier_hz: f64,
    /// Of both ends, above 1 m.
    pub heights: Heights,
}

impl Umi {
    /// The heights of devices that it holds for.
    const OF_DEVICES: RangeInclusive<f64> = 1.5..=22.5;
    /// The heights unless others are given.
    pub const HEIGHTS: Heights = Heights { bs_m: 10.0, ut_m: 1.5 };
}

impl PathLoss for Umi {
    fn loss_db(&self, path: &Path) -> f64 {
        let law = Urban { at_1m: 32.4, slope: 21.0, corner: 9.5, blocked: [22.4, 35.3, 21.3, 0.3] };
        law.loss_db(path, self.carrier_hz)
    }

    fn domain_m(&self) -> RangeInclusive<f64> {
        10.0..=5000.0
    }

    fn min_distance_m(&self) -> f64 {
        10.0
    }

    fn heights(&self) -> Heights {
        self.heights
    }

    fn heights_of_devices(&self) -> RangeInclusive<f64> {
        Self::OF_DEVICES
    }

    fn line_of_sight_probability(&self, distance_2d_m: f64) -> Option<f64> {
        Some(street_line_of_sight(distance_2d_m, 36.0))
    }

    fn shadowing_db(&self, line_of_sight: bool) -> f64 {
        if line_of_sight { 4.0 } else { 7.82 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::break_point_m;
    use super::*;

    const LAW: Umi = Umi { carrier_hz: 3.5e9, heights: Umi::HEIGHTS };

    #[test]
    fn the_losses_at_3_5_gigahertz_are_those_of_the_formulas() {
        // The formulas in double precision by another program.
        for (distance, clear, blocked) in [
            (100.0, 85.314_189_102_501_33, 104.643_832_011_660_98),
            (500.0, 107.108_049_315_829_09, 129.264_505_448_685_36),
        ] {
            for (line_of_sight, loss) in [(true, clear), (false, blocked)] {
                let got = LAW.loss_db(&Path::new(distance, LAW.heights, line_of_sight));
                assert!((got - loss).abs() < 1e-10, "{distance} m: {got}, not {loss}");
            }
        }
        assert!((break_point_m(LAW.heights, LAW.carrier_hz) - 210.1).abs() < 0.06);
    }

    #[test]
    fn the_probability_of_a_line_of_sight_falls_with_distance() {
        for (distance, probability) in [(10.0, 1.0), (18.0, 1.0), (50.0, 0.5196), (100.0, 0.2310)] {
            let got = LAW.line_of_sight_probability(distance).unwrap();
            assert!((got - probability).abs() < 5e-5, "{distance} m: {got}");
        }
    }

    #[test]
    fn the_two_parts_of_the_line_of_sight_meet_at_the_break_point() {
        let at = break_point_m(LAW.heights, LAW.carrier_hz);
        let [before, after] =
            [at * (1.0 - 1e-9), at * (1.0 + 1e-9)].map(|d| LAW.loss_db(&Path::new(d, LAW.heights, true)));
        assert!((before - after).abs() < 1e-6, "{before} and {after}");
    }
}
