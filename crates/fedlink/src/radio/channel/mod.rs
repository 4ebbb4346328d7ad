//! How the channel gains come about, one file for each model.

mod rayleigh;

pub use rayleigh::Rayleigh;

use serde::{Deserialize, Serialize};

/// The name of a channel model in a configuration (`radio.channel`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelKind {
    /// Rayleigh block fading.
    #[default]
    Rayleigh,
}

/// A channel model: the power gains of all devices in a round.
pub trait Channel: Send + Sync {
    /// g_m for m in 0..`devices` in round `round`. Depends on nothing but the seed, the round and the device.
    fn gains(&self, round: u64, devices: usize) -> Vec<f64>;
}

/// The channel model called `kind`, with its random numbers from `seed`.
pub fn channel(kind: ChannelKind, seed: u64) -> Box<dyn Channel> {
    match kind {
        ChannelKind::Rayleigh => Box::new(Rayleigh { seed }),
    }
}
