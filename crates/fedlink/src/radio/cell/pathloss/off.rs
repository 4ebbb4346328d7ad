//! No path loss.

use super::{Path, PathLoss, PathLossFacts, Site};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this law.
pub const ENTRY: Entry<dyn PathLoss> = Entry::of::<OffConfig>();

/// `[cell.off]` has no keys.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct OffConfig {}

impl PartConfig for OffConfig {
    type Part = dyn PathLoss;
    const NAME: &'static str = "none";
    const MEANING: &'static str = "no path loss: mean gains do not depend on where devices are";

    fn facts(&self) -> PathLossFacts {
        PathLossFacts { has_loss: false, heights: false, ..PathLossFacts::default() }
    }

    fn build(self, _: &Scope, _: &Site) -> Result<Box<dyn PathLoss>, ConfigError> {
        Ok(Box::new(Off))
    }
}

/// PL = 0 dB at every distance, for the paper's units: neither is it bounded by free space.
#[derive(Clone, Copy, Debug)]
pub struct Off;

impl PathLoss for Off {
    fn loss_db(&self, _: &Path) -> f64 {
        0.0
    }

    fn min_distance_m(&self) -> f64 {
        0.0
    }

    fn bounded_by_free_space(&self) -> bool {
        false
    }
}
