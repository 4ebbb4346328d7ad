//! How the scheduled devices share the band.

pub mod slots;
mod tdma;

pub use tdma::Tdma;

use super::Known;
use crate::units::{Airtime, Bits, DeviceId, Power, Symbols};
use serde::{Deserialize, Serialize};

/// What a round has for all scheduled devices together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// n, channel symbols in a round.
    pub symbols: u64,
}

/// What one scheduled device may use of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// n_m, its share of the symbols.
    pub symbols: Symbols,
    /// P, its transmit power while it sends.
    pub power: Power,
    /// How long it sends.
    pub airtime: Airtime,
    /// R = n_m·C_m, the bits it may send.
    pub budget: Bits,
}

/// An access scheme: turns bit weights into symbols, power, airtime and bits.
///
/// Invariants: one grant for each device, in their order; every number finite and ≥ 0; symbols add up to at
/// most n.
pub trait Access: Send + Sync {
    /// The grants of the scheduled `devices`, by what the server knows of their links. Bits are shared in
    /// proportion to `weights`, one for each device, finite and ≥ 0.
    fn grant(&self, devices: &[DeviceId], weights: &[f64], known: &Known, band: &Band) -> Vec<Grant>;

    /// The grant of `device` if it sends in the place of the one that `grant` was for: the same symbols and
    /// power over its own link.
    fn transfer(&self, grant: &Grant, device: DeviceId, known: &Known) -> Grant {
        Grant { budget: Bits(grant.symbols.0 * known.capacity(device)), ..*grant }
    }
}
