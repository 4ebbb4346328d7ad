//! 3GPP small cell.

use super::{Path, PathLoss, PathLossFacts, Site};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn PathLoss> = Entry::of::<PicoCellConfig>();

/// `[cell.3gpp-pico]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct PicoCellConfig {}

impl PartConfig for PicoCellConfig {
    type Part = dyn PathLoss;
    const NAME: &'static str = "3gpp-pico";
    const MEANING: &'static str = "3GPP small cell: 140.7 + 36.7·log10(d in km) dB, at 2 GHz";

    fn facts(&self) -> PathLossFacts {
        PathLossFacts { heights: false, carrier_hz: Some(2e9), min_m: 10.0, ..PathLossFacts::default() }
    }

    fn build(self, _: &Scope, _: &Site) -> Result<Box<dyn PathLoss>, ConfigError> {
        Ok(Box::new(PicoCell))
    }
}

/// PL = 140.7 + 36.7·log10(d/km) with d the distance over ground.
///
/// Source: 3GPP TR 36.814, as papers on small cells have it. Shadowing of 10 dB goes with it. The smallest
/// distance is 10 m, after 3GPP, as we read it.
///
/// ```
/// use fedlink::radio::cell::pathloss::{Heights, PicoCell, Path, PathLoss};
/// assert!((PicoCell.loss_db(&Path::new(100.0, Heights::NONE, false)) - 104.0).abs() < 1e-9);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PicoCell;

impl PathLoss for PicoCell {
    fn loss_db(&self, path: &Path) -> f64 {
        140.7 + 36.7 * libm::log10(path.distance_2d_m / 1000.0)
    }

    fn min_distance_m(&self) -> f64 {
        10.0
    }

    fn shadowing_db(&self, _: bool) -> f64 {
        10.0
    }
}
