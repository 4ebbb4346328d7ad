//! A power of distance.

use super::{Heights, Path, PathLoss, Site};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn PathLoss> = Entry::of::<LogDistanceConfig>();

/// `[cell.log-distance]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct LogDistanceConfig {
    /// path loss exponent: 2 in free space, 3 to 4 in cities
    #[key(default = 3.76, range = "> 0 and ≤ 10")]
    pub exponent: f64,
    /// loss in dB at the reference distance
    #[key(default = 33.5, range = "0 ..= 300")]
    pub loss_db: f64,
    /// reference distance in meters
    #[key(default = 1.0, range = "> 0")]
    pub reference_m: f64,
}

impl PartConfig for LogDistanceConfig {
    type Part = dyn PathLoss;
    const NAME: &'static str = "log-distance";
    const MEANING: &'static str = "a power of distance: cell.log-distance.loss_db at reference_m, \
                                   10·exponent dB more for each factor 10";

    fn build(self, _: &Scope, site: &Site) -> Result<Box<dyn PathLoss>, ConfigError> {
        let heights = site.heights(Heights::NONE, 0.0..=f64::MAX, 0.0..=f64::MAX)?;
        let Self { exponent, loss_db, reference_m } = self;
        Ok(Box::new(LogDistance { exponent, loss_db, reference_m, heights }))
    }
}

/// PL = PL₀ + 10·α·log10(d/d₀) with d the distance in space.
///
/// Values in public codes of wireless federated learning: (α, PL₀) = (3.76, 33.5 dB) at 1 m (of Xing and
/// Simeone; the default), (4, 40 dB) at 1 m (of FEDL).
///
/// ```
/// use fedlink::radio::cell::pathloss::{Heights, LogDistance, Path, PathLoss};
/// let law = LogDistance { exponent: 4.0, loss_db: 40.0, reference_m: 1.0, heights: Heights::NONE };
/// assert_eq!(law.loss_db(&Path::new(100.0, Heights::NONE, true)), 120.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LogDistance {
    /// α.
    pub exponent: f64,
    /// PL₀.
    pub loss_db: f64,
    /// d₀.
    pub reference_m: f64,
    /// Of both ends.
    pub heights: Heights,
}

impl PathLoss for LogDistance {
    fn loss_db(&self, path: &Path) -> f64 {
        self.loss_db + 10.0 * self.exponent * libm::log10(path.distance_3d_m / self.reference_m)
    }

    fn heights(&self) -> Heights {
        self.heights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_is_the_given_one_at_the_reference_and_rises_with_the_exponent() {
        let law = LogDistance { exponent: 3.76, loss_db: 33.5, reference_m: 10.0, heights: Heights::NONE };
        let loss = |distance| law.loss_db(&Path::new(distance, Heights::NONE, false));
        assert_eq!(loss(10.0), 33.5);
        assert!((loss(100.0) - 71.1).abs() < 1e-12);
    }
}
