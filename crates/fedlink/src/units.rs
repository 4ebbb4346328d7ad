//! Small types for numbers that must not be swapped.

use serde::{Deserialize, Serialize};

/// Which device: an index in 0..M.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceId(pub u32);

impl DeviceId {
    /// The device's place in a table over all devices.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The device at place `index`.
    pub fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("configurations allow at most u32::MAX devices"))
    }
}

impl std::fmt::Display for DeviceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// An amount of information in bits; a real number, because the paper's counts are logarithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bits(pub f64);

/// A number of channel uses (symbols, time slots). Real or whole, as `radio.slots` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Symbols(pub f64);

/// A transmit power, in the unit of the noise variance.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Power(pub f64);
