//! Small types for numbers that must not be swapped.

use serde::{Deserialize, Serialize};

/// Which device: an index in 0..M.
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
    /// A transmit power, in the unit of the noise variance.
    Power;
    /// A duration. Without a bandwidth the unit is the duration of one symbol.
    Airtime;
}
