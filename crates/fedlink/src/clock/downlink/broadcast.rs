//! The server broadcasts at the rate of the worst listener.

use super::{Downlink, DownlinkMaterial};
use crate::radio::Radio;
use crate::radio::fading::Fading;
use crate::radio::link::capacity;
use crate::registry::{ConfigError, Entry, Key, PartConfig, Scope, key, number};
use crate::units::{DeviceId, Power, dbm_to_watt, from_db};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The entry of this model.
pub const ENTRY: Entry<dyn Downlink> = Entry::of::<BroadcastConfig>();

/// `[clock.broadcast]`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BroadcastConfig {
    /// W_d.
    pub bandwidth_hz: f64,
    /// The server's power.
    pub server_dbm: f64,
    /// Noise figure of a device.
    pub noise_figure_db: f64,
    /// Bits of a weight.
    pub bits_per_weight: f64,
    /// Share of the devices that are served.
    pub quantile: f64,
    /// Whether both directions fade alike.
    pub reciprocal: bool,
    /// A fixed rate in place of all that; 0: none.
    pub bps: f64,
}

impl Default for BroadcastConfig {
    fn default() -> Self {
        Self {
            bandwidth_hz: 20e6,
            server_dbm: 46.0,
            noise_figure_db: 9.0,
            bits_per_weight: 32.0,
            quantile: 1.0,
            reciprocal: false,
            bps: 0.0,
        }
    }
}

impl PartConfig for BroadcastConfig {
    type Part = dyn Downlink;
    const NAME: &'static str = "broadcast";
    const MEANING: &'static str = "the server sends the model to all at the rate of the worst listener";
    const KEYS: &'static [Key] = &[
        key("bandwidth_hz", "bandwidth of the downlink, Hz", "> 0"),
        key("server_dbm", "transmit power of the server, dBm", "a number"),
        key("noise_figure_db", "noise figure of a device's receiver, dB", "≥ 0"),
        key("bits_per_weight", "bits of a weight of the model", "> 0"),
        key(
            "quantile",
            "share of the devices that the rate is made for, the best ones; the others miss the round",
            "> 0 and ≤ 1",
        ),
        key("reciprocal", "whether the downlink fades as the uplink does in that round", "false | true"),
        key("bps", "a fixed rate in bit/s, whatever the channel", "≥ 0 (0: by the channel)"),
    ];

    fn resolve(&mut self, _: &Scope) -> Result<(), ConfigError> {
        let positive = |x: f64| x > 0.0;
        number("bandwidth_hz", self.bandwidth_hz, positive, "a finite number above 0")?;
        number("server_dbm", self.server_dbm, |x| x.abs() <= 200.0, "a number in -200..=200")?;
        number(
            "noise_figure_db",
            self.noise_figure_db,
            |x| (0.0..=100.0).contains(&x),
            "a number in 0..=100",
        )?;
        number("bits_per_weight", self.bits_per_weight, positive, "a finite number above 0")?;
        number("quantile", self.quantile, |x| x > 0.0 && x <= 1.0, "a number above 0, at most 1")?;
        number("bps", self.bps, |x| x >= 0.0, "a finite number of at least 0")?;
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
    /// Bits a second and hertz at which a device can be served.
    fn efficiency(&self, t: u64, device: DeviceId, radio: &Radio) -> f64 {
        let gain = match &self.fading {
            Some(fading) => radio.mean_gain(t, device) * fading.gain(t, device),
            None => radio.gain(t, device),
        };
        capacity(gain, self.power, self.noise)
    }

    /// What each of the M devices can be served with, and the rate that serves ⌈q·M⌉ of them.
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
        // A device that nothing reaches would take for ever; time stays finite so that sums do.
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
