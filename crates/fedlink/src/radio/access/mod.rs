//! The division of the band among the scheduled devices, one file for each access scheme.

crate::register! {
    /// All access schemes.
    ACCESSES: dyn Access;
    tdma,
    fdma,
    ofdma,
}
mod assignment;
pub mod slots;
pub mod split;

pub use fdma::Fdma;
pub use ofdma::Ofdma;
pub use tdma::Tdma;

use super::rate::Rate;
use crate::base::units::{Airtime, Bits, Power, Symbols};
use crate::parts::{Entry, Kind};
use serde::{Deserialize, Serialize};
use slots::SlotKind;

/// The resources of a round, for all scheduled devices together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// n, channel symbols in a round.
    pub symbols: u64,
}

/// The resources of a round that one scheduled device may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Grant {
    /// n_m, its share of the symbols.
    pub symbols: Symbols,
    /// P, its transmit power while it sends.
    pub power: Power,
    /// The time for which it sends.
    pub airtime: Airtime,
    /// R = b_m(n_m), the bits it may send.
    pub budget: Bits,
    /// γ of its code over resource blocks, which its bits were chosen for; 0 where symbols and airtime
    /// determine it.
    #[serde(default)]
    pub block_snr: f64,
}

impl Grant {
    /// No resources, for a device of this power.
    pub fn nothing(power: Power) -> Self {
        Self { power, ..Self::default() }
    }
}

/// The uplink of one scheduled device as the server knows it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Uplink<'a> {
    /// γ, the SNR at [`Self::power`] over the whole band; finite, ≥ 0.
    pub snr: f64,
    /// P, the device's transmit power.
    pub power: Power,
    /// The power that it cannot exceed, at least P; none: unbounded.
    pub max_power: Option<Power>,
    /// Whether the energy of n symbols at P is kept if the device sends in fewer, n_m: with P·n/n_m while it
    /// sends, at most [`Self::max_power`].
    pub energy_kept: bool,
    /// The bits that symbols carry.
    pub rate: &'a dyn Rate,
    /// Gain of each resource block relative to the mean gain that [`Self::snr`] has; empty: 1 for all.
    pub blocks: &'a [f64],
}

impl<'a> Uplink<'a> {
    /// A link whose blocks are alike, of a device whose power has no limit and does not depend on the
    /// symbols.
    pub fn new(snr: f64, power: Power, rate: &'a dyn Rate) -> Self {
        Self { snr, power, max_power: None, energy_kept: false, rate, blocks: &[] }
    }

    /// With these gains of the resource blocks, relative to the mean.
    #[must_use]
    pub fn over(self, blocks: &'a [f64]) -> Self {
        Self { blocks, ..self }
    }
}

/// An access scheme: turns bit weights into symbols, power, airtime and bits.
///
/// Airtimes, and the times of [`Self::payload`], are in durations of a symbol that has the whole band.
///
/// Invariants: one grant for each device, in their order; every number finite and ≥ 0; symbols add up to at
/// most n, except where the payload is fixed and time is not.
pub trait Access: Send + Sync {
    /// b_m: the bits of a link that has `symbols` of the round's n. Non-decreasing, 0 at 0.
    fn bits(&self, link: &Uplink, symbols: f64, band: &Band) -> f64;

    /// The grants of the scheduled devices, from the server's knowledge of their links. Bits are shared in
    /// proportion to `weights`, one for each device, finite and ≥ 0, as far as the scheme can; a link that
    /// carries nothing gets nothing as long as another one carries something, and weights that are all zero
    /// mean equal weights.
    fn grant(&self, weights: &[f64], links: &[Uplink], band: &Band) -> Vec<Grant>;

    /// The grant of the device at `link` if it replaces the device that `grant` was for: the same symbols
    /// over its own link.
    fn transfer(&self, grant: &Grant, link: &Uplink, band: &Band) -> Grant;

    /// The bits that the symbols of a `grant`, sent `copies` times, carry over `link`: with its power, in its
    /// part of the band. `ratio` is the SNR of the link relative to the link that the grant was made for.
    fn carried(&self, grant: &Grant, link: &Uplink, ratio: f64, copies: f64, band: &Band) -> f64;

    /// The bits that a device could send if it had the whole band.
    fn alone(&self, link: &Uplink, band: &Band) -> Bits {
        Bits(self.bits(link, band.symbols as f64, band))
    }

    /// Whether the scheduled devices send at the same time, each in its part of the band.
    fn together(&self) -> bool {
        false
    }

    /// Resource blocks of the band; 0: the scheme has none.
    fn resource_blocks(&self) -> usize {
        0
    }

    /// The grants of devices that must send `bits` each, in any time. `ready` are the times at which they may
    /// begin; a device that cannot carry its bits in any time has a grant without a budget.
    fn payload(&self, bits: &[f64], links: &[Uplink], ready: &[f64], band: &Band) -> Vec<Grant>;
}

/// Facts of an access scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AccessFacts {
    /// Whether devices send one after another, so that symbols can be slots and pipelined.
    pub one_by_one: bool,
    /// The resource blocks of the band, for a scheme that has some.
    pub blocks: Option<u64>,
    /// The own key that has an effect only where resource blocks fade apart.
    pub needs_blocks_apart: Option<&'static str>,
    /// The own key that is set for rates by a table.
    pub needs_steps: Option<&'static str>,
}

impl Kind for dyn Access {
    type Material = SlotKind;
    type Facts = AccessFacts;
    const PLURAL: &'static str = "access schemes";
    const KEY: &'static str = "radio.access";
    const TABLE: &'static str = "radio";

    fn entries() -> &'static [Entry<Self>] {
        ACCESSES
    }
}

#[cfg(test)]
mod tests;
