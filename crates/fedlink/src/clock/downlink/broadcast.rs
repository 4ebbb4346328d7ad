//! The server broadcasts at the rate of the worst listener.

use super::{Downlink, DownlinkFacts, DownlinkMaterial};
use crate::base::units::{DeviceId, Power, dbm_to_watt, from_db};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};
use crate::radio::Radio;
use crate::radio::fading::Fading;
use crate::radio::link::capacity;
use std::sync::Arc;

/// The entry of this model.
pub const ENTRY: Entry<dyn Downlink> = Entry::of::<BroadcastConfig>();

/// `[clock.broadcast]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct BroadcastConfig {
    /// bandwidth of the downlink, Hz
    #[key(default = 20e6, range = "> 0")]
    pub bandwidth_hz: f64,
    /// transmit power of the server, dBm
    #[key(default = 46.0, range = "-200 ..= 200")]
    pub server_dbm: f64,
    /// noise figure of a device's receiver, dB
    #[key(default = 9.0, range = "0 ..= 100")]
    pub noise_figure_db: f64,
    /// bits of a weight of the model
    #[key(default = 32.0, range = "> 0")]
    pub bits_per_weight: f64,
    /// share of the devices that the rate is made for, the best ones; the others miss the round
    #[key(default = 1.0, range = "> 0 and ≤ 1")]
    pub quantile: f64,
    /// whether the downlink fades as the uplink does in that round
    #[key(default = false)]
    pub reciprocal: bool,
    /// a fixed rate in bit/s, whatever the channel
    #[key(default = 0.0, range = "≥ 0 (0: by the channel)")]
    pub bps: f64,
}

impl PartConfig for BroadcastConfig {
    type Part = dyn Downlink;
    const NAME: &'static str = "broadcast";
    const MEANING: &'static str = "the server sends the model to all at the rate of the worst listener";

    fn facts(&self) -> DownlinkFacts {
        DownlinkFacts { takes_time: true, by_worst_channel: self.quantile >= 1.0 && self.bps == 0.0 }
    }

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        let default = Self::default();
        let by_channel = [
            ("bandwidth_hz", self.bandwidth_hz != default.bandwidth_hz),
            ("server_dbm", self.server_dbm != default.server_dbm),
            ("noise_figure_db", self.noise_figure_db != default.noise_figure_db),
            ("quantile", self.quantile != default.quantile),
            ("reciprocal", self.reciprocal),
        ];
        match by_channel.iter().find(|(_, set)| self.bps > 0.0 && *set) {
            None => Ok(()),
            Some((key, _)) => {
                let problem = "has no effect here: clock.broadcast.bps sets the rate; leave one of them out";
                Err(ConfigError::new(*key, problem))
            }
        }
    }

    fn build(self, _: &Scope, material: &DownlinkMaterial) -> Result<Box<dyn Downlink>, ConfigError> {
        let noise = material.noise_w_hz * from_db(self.noise_figure_db) * self.bandwidth_hz;
        let fading = if self.reciprocal { None } else { material.fading.clone() };
        Ok(Box::new(Broadcast { config: self, power: Power(dbm_to_watt(self.server_dbm)), noise, fading }))
    }
}

/// T = L/(W_d·min_m log2(1 + β_m·g_m·P_s/σ_d²)) over the listeners, L = bits_per_weight·d, σ_d² the noise of
/// a device in W_d; β as in the uplink, fading of its own unless it is reciprocal.
///
/// With Rayleigh fading 1/rate has no mean for a single device, so that a `quantile` below 1 (or a fixed
/// rate) is part of the model for large M: the rate then serves the best ⌈q·M⌉ devices, and the others miss
/// the round.
pub struct Broadcast {
    config: BroadcastConfig,
    power: Power,
    noise: f64,
    fading: Option<Arc<dyn Fading>>,
}

impl Broadcast {
    /// Bits per second and hertz at which a device can be served.
    fn efficiency(&self, t: u64, device: DeviceId, radio: &Radio) -> f64 {
        let gain = match &self.fading {
            Some(fading) => radio.mean_gain(t, device) * fading.gain(t, device),
            None => radio.gain(t, device),
        };
        capacity(gain, self.power, self.noise)
    }

    /// The rate at which each of the M devices can be served, and the rate that serves ⌈q·M⌉ of them.
    fn served(&self, t: u64, radio: &Radio) -> (Vec<f64>, f64) {
        let all: Vec<f64> =
            DeviceId::all(radio.devices()).map(|device| self.efficiency(t, device, radio)).collect();
        let mut sorted = all.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let count = libm::ceil(self.config.quantile * sorted.len() as f64) as usize;
        let rate = sorted[count.clamp(1, sorted.len()) - 1];
        (all, rate)
    }
}

impl Downlink for Broadcast {
    fn seconds(&self, t: u64, dim: f64, listeners: &[DeviceId], radio: &Radio) -> f64 {
        if listeners.is_empty() {
            return 0.0;
        }
        let bits = self.config.bits_per_weight * dim;
        if self.config.bps > 0.0 {
            return bits / self.config.bps;
        }
        let worst = if self.config.quantile < 1.0 {
            self.served(t, radio).1
        } else {
            listeners.iter().map(|device| self.efficiency(t, *device, radio)).fold(f64::INFINITY, f64::min)
        };
        // A device that no broadcast reaches would take infinitely long; time stays finite so that sums do.
        (bits / (self.config.bandwidth_hz * worst)).min(1e12)
    }

    fn reached(&self, t: u64, radio: &Radio) -> Option<Vec<bool>> {
        if self.config.quantile >= 1.0 || self.config.bps > 0.0 {
            return None;
        }
        let (all, rate) = self.served(t, radio);
        Some(all.into_iter().map(|own| own >= rate).collect())
    }
}
