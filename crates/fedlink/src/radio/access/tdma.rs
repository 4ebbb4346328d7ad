//! TDMA: one device at a time.

use super::slots::{SlotKind, split_slots};
use super::{Access, Band, Grant};
use crate::radio::Known;
use crate::units::{Airtime, Bits, DeviceId, Symbols};

/// The n symbols of a round are shared so that bits are proportional to the weights of the picks:
/// n_m = n·(w_m/C_m)/Σ_j(w_j/C_j), R_m = n_m·C_m.
///
/// Source: section IV of the paper, with the corrections that [`split_slots`] names. A device sends alone in
/// its symbols, so its airtime is their duration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tdma {
    /// Whether shares are real or whole numbers of symbols.
    pub slots: SlotKind,
}

impl Access for Tdma {
    fn grant(&self, devices: &[DeviceId], weights: &[f64], known: &Known, band: &Band) -> Vec<Grant> {
        let capacities: Vec<f64> = devices.iter().map(|&device| known.capacity(device)).collect();
        let slots = split_slots(weights, &capacities, band.symbols, self.slots);
        let grant = |(symbols, capacity): (Symbols, &f64)| Grant {
            symbols,
            power: known.power,
            airtime: Airtime(symbols.0),
            budget: Bits(symbols.0 * capacity),
        };
        slots.into_iter().zip(&capacities).map(grant).collect()
    }
}
