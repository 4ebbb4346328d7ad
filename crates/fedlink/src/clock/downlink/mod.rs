//! The broadcast of θ(t) to the devices, one file for each model of it.

crate::register! {
    /// All models of the downlink.
    DOWNLINKS: dyn Downlink;
    ideal,
    broadcast,
}

use crate::base::units::DeviceId;
use crate::parts::{Entry, Kind};
use crate::radio::Radio;
use crate::radio::fading::Fading;
use std::sync::Arc;

/// A model of the downlink.
///
/// Invariants: pure in (seed, round); seconds are ≥ 0, rise with the listeners and fall with the bandwidth.
pub trait Downlink: Send + Sync {
    /// Seconds to bring θ(t), of `dim` weights, to all of the `listeners`.
    fn seconds(&self, t: u64, dim: f64, listeners: &[DeviceId], radio: &Radio) -> f64;

    /// Whether θ(t) reaches each of the M devices; none: it reaches all.
    fn reached(&self, _t: u64, _radio: &Radio) -> Option<Vec<bool>> {
        None
    }
}

/// The material of a model of the downlink, besides its own table.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct DownlinkMaterial {
    /// The fading of the downlink where it is not that of the uplink.
    pub fading: Option<Arc<dyn Fading>>,
    /// N₀ in watts a hertz.
    pub noise_w_hz: f64,
}

/// Facts of a downlink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DownlinkFacts {
    /// Whether the model takes time to reach the devices.
    pub takes_time: bool,
    /// Whether its time is that of the worst channel.
    pub by_worst_channel: bool,
}

impl Default for DownlinkFacts {
    fn default() -> Self {
        Self { takes_time: true, by_worst_channel: false }
    }
}

impl Kind for dyn Downlink {
    type Material = DownlinkMaterial;
    type Facts = DownlinkFacts;
    const PLURAL: &'static str = "downlinks";
    const KEY: &'static str = "clock.downlink";
    const TABLE: &'static str = "clock";

    fn entries() -> &'static [Entry<Self>] {
        DOWNLINKS
    }
}
