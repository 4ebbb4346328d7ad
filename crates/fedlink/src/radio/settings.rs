//! Values of keys in `[radio]`.

use serde::{Deserialize, Serialize};

/// The property of an upload that is fixed (`radio.mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PayloadMode {
    /// The symbols of a round; bits vary with the channel.
    #[default]
    Airtime,
    /// The bits of an upload; time varies with the channel.
    Payload,
}

/// Mean SNRs in decibels (`radio.snr_db`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be a number of decibels, or a list of such: [20, 0]")]
#[non_exhaustive]
pub enum Snrs {
    /// The same for all devices.
    All(f64),
    /// One for each group of devices.
    Groups(Vec<f64>),
}

impl Snrs {
    /// The level of each group.
    pub fn levels(&self) -> &[f64] {
        match self {
            Self::All(level) => std::slice::from_ref(level),
            Self::Groups(levels) => levels,
        }
    }
}
