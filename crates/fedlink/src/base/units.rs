//! Newtypes for numbers that must not be swapped.

use serde::{Deserialize, Serialize};

/// A device: an index in 0..M.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceId(pub u32);

impl DeviceId {
    /// The device's index in a table over all devices.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The device at `index`, which is below 2³² because a configuration allows no more devices.
    pub(crate) fn new(index: usize) -> Self {
        debug_assert!(u32::try_from(index).is_ok(), "at most u32::MAX devices");
        Self(index as u32)
    }

    /// All M devices.
    pub fn all(devices: usize) -> impl ExactSizeIterator<Item = Self> + Clone {
        (0..devices).map(Self::new)
    }
}

impl std::fmt::Display for DeviceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A layer as a matrix: `rows` × `cols` consecutive numbers of θ, row after row. A vector of n numbers, such
/// as biases, is n × 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The number of rows.
    pub rows: usize,
    /// Numbers in each.
    pub cols: usize,
}

impl Shape {
    /// The number of entries.
    pub fn len(self) -> usize {
        self.rows.saturating_mul(self.cols)
    }

    /// Whether it has no entries.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

macro_rules! amounts {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub f64);
    )*};
}

amounts! {
    /// An amount of information in bits; a real number, because the paper's counts are logarithms.
    Bits;
    /// A number of channel uses (symbols, time slots). Real or whole, as `radio.slots` specifies.
    Symbols;
    /// A transmit power: in watts where the radio has a bandwidth in hertz, else in the unit of the noise
    /// variance.
    Power;
    /// A duration in symbols; a symbol lasts 1/W seconds where the radio has a bandwidth W.
    Airtime;
    /// A duration in seconds.
    Seconds;
    /// An energy in joules.
    Joules;
}

/// 10^(db/10): a ratio given in decibels.
///
/// ```
/// assert_eq!(fedlink::base::units::from_db(20.0), 100.0);
/// ```
pub fn from_db(db: f64) -> f64 {
    libm::exp10(db / 10.0)
}

/// 10·log10(ratio), the ratio in decibels; −∞ for 0.
pub fn to_db(ratio: f64) -> f64 {
    10.0 * libm::log10(ratio)
}

/// Watts of a power in dBm.
///
/// ```
/// assert!((fedlink::base::units::dbm_to_watt(23.0) - 0.1995).abs() < 1e-4);
/// ```
pub fn dbm_to_watt(dbm: f64) -> f64 {
    from_db(dbm - 30.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decibels_and_ratios_are_inverse_to_each_other() {
        for db in [-174.0, -3.0, 0.0, 7.8, 23.0, 160.0] {
            assert!((to_db(from_db(db)) - db).abs() < 1e-12);
        }
    }
}
