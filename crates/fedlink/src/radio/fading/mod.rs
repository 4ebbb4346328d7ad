//! Fading laws, one file each.

crate::register! {
    /// All fading laws.
    FADINGS: dyn Fading;
    rayleigh,
    rician,
    constant,
}

pub use constant::Constant;
pub use rayleigh::Rayleigh;
pub use rician::Rician;

use crate::registry::{Entry, Kind};
use crate::units::DeviceId;

/// Small-scale fading: g = |h|², of mean 1 (mean gains by device are the radio's business).
///
/// Invariants: pure in (seed, t, device), so that any gain can be had alone and in any order; finite and ≥ 0.
pub trait Fading: Send + Sync {
    /// g of a device in round `t`.
    fn gain(&self, t: u64, device: DeviceId) -> f64;

    /// Why a call failed, for parts written in another language, which may; the round then ends with this as
    /// its error.
    fn failure(&self) -> Option<String> {
        None
    }
}

impl Kind for dyn Fading {
    type Material = ();
    const PLURAL: &'static str = "fading laws";
    const KEY: &'static str = "radio.fading";
    const TABLE: &'static str = "radio";

    fn entries() -> &'static [Entry<Self>] {
        FADINGS
    }
}

#[cfg(test)]
mod tests;
