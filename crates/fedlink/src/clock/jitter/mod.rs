//! The variation of training times over rounds, one file for each law.

crate::register! {
    /// All laws of training times over rounds.
    JITTERS: dyn Jitter;
    steady,
    shifted_exponential,
}

use crate::base::units::DeviceId;
use crate::parts::{Entry, Kind};

/// The factor of a device's training time in a round.
///
/// Invariants: pure in (seed, round, device); finite and above 0.
pub trait Jitter: Send + Sync {
    /// The factor of a device in round `t`.
    fn factor(&self, t: u64, device: DeviceId) -> f64;
}

impl Kind for dyn Jitter {
    type Material = ();
    type Facts = ();
    const PLURAL: &'static str = "jitters of training times";
    const KEY: &'static str = "clock.jitter";
    const TABLE: &'static str = "clock";

    fn entries() -> &'static [Entry<Self>] {
        JITTERS
    }
}
