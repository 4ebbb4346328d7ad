//! Free space.

use super::{Heights, Path, PathLoss, Site, free_space_db};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn PathLoss> = Entry::of::<FreeSpaceConfig>();

/// `[cell.free-space]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct FreeSpaceConfig {}

impl PartConfig for FreeSpaceConfig {
    type Part = dyn PathLoss;
    const NAME: &'static str = "free-space";
    const MEANING: &'static str = "free space: 20·log10(4π·d·f/c) dB";

    fn build(self, _: &Scope, site: &Site) -> Result<Box<dyn PathLoss>, ConfigError> {
        let carrier_hz = site.carrier(f64::MIN_POSITIVE..=f64::MAX)?;
        let heights = site.heights(Heights::NONE, 0.0..=f64::MAX, 0.0..=f64::MAX)?;
        Ok(Box::new(FreeSpace { carrier_hz, heights }))
    }
}

/// PL = 20·log10(4π·d·f_c/c) with d the distance in space.
///
/// Source: Friis (1946). 20 dB for each factor 10 in distance or frequency.
///
/// ```
/// use fedlink::radio::cell::pathloss::{FreeSpace, Heights, Path, PathLoss};
/// let law = FreeSpace { carrier_hz: 2e9, heights: Heights::NONE };
/// assert!((law.loss_db(&Path::new(100.0, Heights::NONE, true)) - 78.47).abs() < 0.005);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FreeSpace {
    /// f_c.
    pub carrier_hz: f64,
    /// Of both ends.
    pub heights: Heights,
}

impl PathLoss for FreeSpace {
    fn loss_db(&self, path: &Path) -> f64 {
        free_space_db(path.distance_3d_m, self.carrier_hz)
    }

    fn heights(&self) -> Heights {
        self.heights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_at_two_gigahertz_is_the_textbook_value() {
        let law = FreeSpace { carrier_hz: 2e9, heights: Heights::NONE };
        for (distance, loss) in [(10.0, 58.468_383_135_163), (100.0, 78.468_383_135_163)] {
            assert!((law.loss_db(&Path::new(distance, Heights::NONE, true)) - loss).abs() < 1e-10);
        }
    }
}
