//! COST 231 Hata.

use super::{Heights, Path, PathLoss, PathLossFacts, Site};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use std::ops::RangeInclusive;

/// The entry of this law.
pub const ENTRY: Entry<dyn PathLoss> = Entry::of::<Cost231HataConfig>();

/// `[cell.cost231-hata]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct Cost231HataConfig {
    /// whether the city is large: 3 dB more
    pub metropolitan: bool,
}

impl PartConfig for Cost231HataConfig {
    type Part = dyn PathLoss;
    const NAME: &'static str = "cost231-hata";
    const MEANING: &'static str = "COST 231 Hata: cities from 1 to 20 km, at 1.5 to 2 GHz";

    fn facts(&self) -> PathLossFacts {
        PathLossFacts { has_domain: true, ..PathLossFacts::default() }
    }

    fn build(self, _: &Scope, site: &Site) -> Result<Box<dyn PathLoss>, ConfigError> {
        let carrier_hz = site.carrier(1.5e9..=2e9)?;
        let heights = site.heights(Cost231Hata::HEIGHTS, 30.0..=200.0, Cost231Hata::OF_DEVICES)?;
        Ok(Box::new(Cost231Hata { carrier_hz, heights, metropolitan: self.metropolitan }))
    }
}

/// PL = 46.3 + 33.9·log10 f − 13.82·log10 h_b − a(h_m) + (44.9 − 6.55·log10 h_b)·log10 d + C, with f in MHz,
/// d the distance over ground in km, a(h_m) = (1.1·log10 f − 0.7)·h_m − (1.56·log10 f − 0.8), and C = 3 dB in
/// large cities, else 0.
///
/// Source: COST 231 (1999), as the ns-3 documentation has it. It holds for 1.5 to 2 GHz, h_b from 30 to 200
/// m, h_m from 1 to 10 m and 1 to 20 km (the ranges of h_b and d as we read it); public codes use it at 10 m.
#[derive(Clone, Copy, Debug)]
pub struct Cost231Hata {
    /// f_c.
    pub carrier_hz: f64,
    /// h_b and h_m.
    pub heights: Heights,
    /// Whether the city is a large one.
    pub metropolitan: bool,
}

impl Cost231Hata {
    /// The heights of devices that it holds for.
    const OF_DEVICES: RangeInclusive<f64> = 1.0..=10.0;
    /// The heights unless others are given.
    pub const HEIGHTS: Heights = Heights { bs_m: 30.0, ut_m: 1.5 };
}

impl PathLoss for Cost231Hata {
    fn loss_db(&self, path: &Path) -> f64 {
        let frequency = libm::log10(self.carrier_hz / 1e6);
        let height = libm::log10(path.heights.bs_m);
        let correction = (1.1 * frequency - 0.7) * path.heights.ut_m - (1.56 * frequency - 0.8);
        let city = if self.metropolitan { 3.0 } else { 0.0 };
        let slope = 44.9 - 6.55 * height;
        let distance = libm::log10(path.distance_2d_m / 1000.0);
        46.3 + 33.9 * frequency - 13.82 * height - correction + slope * distance + city
    }

    fn domain_m(&self) -> RangeInclusive<f64> {
        1000.0..=20_000.0
    }

    fn min_distance_m(&self) -> f64 {
        1000.0
    }

    fn heights(&self) -> Heights {
        self.heights
    }

    fn heights_of_devices(&self) -> RangeInclusive<f64> {
        Self::OF_DEVICES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_at_one_kilometer_is_the_tabulated_one() {
        let mut law = Cost231Hata { carrier_hz: 2e9, heights: Cost231Hata::HEIGHTS, metropolitan: false };
        let loss = |law: &Cost231Hata| law.loss_db(&Path::new(1000.0, law.heights, false));
        assert!((loss(&law) - 137.744).abs() < 5e-4, "{}", loss(&law));
        let plain = loss(&law);
        law.metropolitan = true;
        assert!((loss(&law) - plain - 3.0).abs() < 1e-12);
    }
}
