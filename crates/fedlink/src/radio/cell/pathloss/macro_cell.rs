//! 3GPP macro cell.

use super::{Path, PathLoss, PathLossFacts, Site};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn PathLoss> = Entry::of::<MacroCellConfig>();

/// `[cell.3gpp-macro]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct MacroCellConfig {}

impl PartConfig for MacroCellConfig {
    type Part = dyn PathLoss;
    const NAME: &'static str = "3gpp-macro";
    const MEANING: &'static str = "3GPP macro cell: 128.1 + 37.6·log10(d in km) dB, at 2 GHz";

    fn facts(&self) -> PathLossFacts {
        PathLossFacts { heights: false, carrier_hz: Some(2e9), min_m: 35.0, ..PathLossFacts::default() }
    }

    fn build(self, _: &Scope, _: &Site) -> Result<Box<dyn PathLoss>, ConfigError> {
        Ok(Box::new(MacroCell))
    }
}

/// PL = 128.1 + 37.6·log10(d/km) with d the distance over ground.
///
/// Source: 3GPP TR 36.814 and 36.942, as pyphysim (`PathLoss3GPP1`) and many papers on wireless federated
/// learning have it. Shadowing of 8 dB goes with it. The smallest distance is 35 m, after 3GPP, as we read
/// it.
///
/// ```
/// use fedlink::radio::cell::pathloss::{Heights, MacroCell, Path, PathLoss};
/// assert!((MacroCell.loss_db(&Path::new(100.0, Heights::NONE, false)) - 90.5).abs() < 1e-9);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MacroCell;

impl PathLoss for MacroCell {
    fn loss_db(&self, path: &Path) -> f64 {
        128.1 + 37.6 * libm::log10(path.distance_2d_m / 1000.0)
    }

    fn min_distance_m(&self) -> f64 {
        35.0
    }

    fn shadowing_db(&self, _: bool) -> f64 {
        8.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Heights, free_space_db};
    use super::*;

    #[test]
    fn the_loss_is_the_tabulated_one_and_crosses_free_space_at_twenty_meters() {
        let loss = |distance| MacroCell.loss_db(&Path::new(distance, Heights::NONE, false));
        for (distance, expected) in [(10.0, 52.9), (100.0, 90.5), (500.0, 116.781_272_163_034_3)] {
            assert!((loss(distance) - expected).abs() < 1e-10);
        }
        assert!(loss(20.6) < free_space_db(20.6, 2e9) && loss(20.8) > free_space_db(20.8, 2e9));
    }
}
