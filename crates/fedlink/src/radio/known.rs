//! The uplink in one round: the true channel, and the server's knowledge of it.

use crate::base::units::{DeviceId, Power};

/// The uplink in one round: the true channel, and the server's knowledge of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Links {
    /// The true gains β_m·g_m(t).
    pub gains: Vec<f64>,
    /// The server's knowledge of the channel.
    pub known: Known,
}

/// The server's knowledge of the uplink in one round, by device. A device that may not send has a zero-gain
/// link.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Known {
    /// The power gain β·ĝ, as estimated.
    pub gains: Vec<f64>,
    /// C_m, bits per symbol at the device's transmit power if it has the whole band.
    pub capacities: Vec<f64>,
    /// P_m, the power of each device if it is scheduled.
    pub powers: Vec<f64>,
    /// The SNR that rates are chosen for, at that power over the whole band; empty if only capacities are
    /// known.
    pub(super) snrs: Vec<f64>,
    /// The gain of each resource block over the device's gain, device after device; empty: flat.
    pub(super) blocks: Vec<f64>,
}

impl Known {
    /// Links with these gains and capacities, one of each per device, that all send with `power`: the
    /// server's knowledge where capacities are measured.
    pub fn new(gains: Vec<f64>, capacities: Vec<f64>, power: Power) -> Self {
        assert_eq!(gains.len(), capacities.len(), "one gain and one capacity for each device");
        let powers = vec![power.0; gains.len()];
        Self { gains, capacities, powers, snrs: Vec::new(), blocks: Vec::new() }
    }

    /// M, the number of devices.
    pub fn devices(&self) -> usize {
        self.gains.len()
    }

    /// β·ĝ of one device.
    pub fn gain(&self, device: DeviceId) -> f64 {
        self.gains[device.index()]
    }

    /// C_m of one device.
    pub fn capacity(&self, device: DeviceId) -> f64 {
        self.capacities[device.index()]
    }

    /// P_m of one device.
    pub fn power(&self, device: DeviceId) -> Power {
        Power(self.powers[device.index()])
    }

    /// The SNR that a rate is chosen for; none where only capacities are known.
    pub fn snr(&self, device: DeviceId) -> Option<f64> {
        self.snrs.get(device.index()).copied()
    }

    /// The gain of each resource block of a device over its gain; empty: flat.
    pub fn blocks(&self, device: DeviceId) -> &[f64] {
        let each = self.blocks.len() / self.gains.len().max(1);
        &self.blocks[device.index() * each..(device.index() + 1) * each]
    }

    /// The first device whose gain or capacity is not a finite number ≥ 0, and a description of that value.
    pub(crate) fn check(&self) -> Result<(), (DeviceId, String)> {
        for (what, values) in [("gain", &self.gains), ("capacity", &self.capacities)] {
            if let Some(m) = values.iter().position(|value| !(value.is_finite() && *value >= 0.0)) {
                return Err((DeviceId::new(m), format!("its {what} is {}", values[m])));
            }
        }
        Ok(())
    }

    /// Makes a device's link one of zero gain.
    pub(crate) fn silence(&mut self, device: usize) {
        (self.gains[device], self.capacities[device]) = (0.0, 0.0);
        if let Some(snr) = self.snrs.get_mut(device) {
            *snr = 0.0;
        }
    }
}

/// The capacities of a round's links if another number of devices were scheduled.
pub trait CapacityAt: Send + Sync {
    /// C_m of a device in round `t` if `k` devices were scheduled, each with the power that this leaves it:
    /// that of a run with K = `k`, to the last bit. `k` is at least 1. Measured capacities and SNRs do not
    /// change.
    fn capacity_at(&self, t: u64, known: &Known, device: DeviceId, k: usize) -> f64;
}

impl Links {
    pub(super) fn push(&mut self, truth: f64, known: f64, capacity: f64, power: Power) {
        self.gains.push(truth);
        self.known.gains.push(known);
        self.known.capacities.push(capacity);
        self.known.powers.push(power.0);
    }
}
