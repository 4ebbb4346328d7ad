//! The uplink: fading, what the server knows of it, and what each scheduled device is granted.

pub mod access;
pub mod fading;
pub mod link;
pub mod mean_gains;

use crate::units::{Bits, DeviceId, Power};
use access::{Access, Band, Grant};
use fading::Fading;
use link::{capacity, transmit_power};

/// The uplink of a run.
pub struct Radio {
    devices: usize,
    k: usize,
    average_power: Power,
    noise: f64,
    band: Band,
    fading: Box<dyn Fading>,
    /// Mean gain of each device; none: 1 for all.
    mean_gains: Option<Vec<f64>>,
    access: Box<dyn Access>,
}

/// What a [`Radio`] is made of.
pub struct RadioParts {
    /// M.
    pub devices: usize,
    /// K.
    pub k: usize,
    /// P̄, in the unit of the noise variance.
    pub average_power: Power,
    /// σ².
    pub noise: f64,
    /// What the scheduled devices share.
    pub band: Band,
    /// The law of the gains.
    pub fading: Box<dyn Fading>,
    /// Mean gain of each device, M finite numbers ≥ 0; none: 1 for all.
    pub mean_gains: Option<Vec<f64>>,
    /// How the band is shared.
    pub access: Box<dyn Access>,
}

/// The uplink in one round: the channel as it is, and as the server knows it.
#[derive(Clone, Debug)]
pub struct Links {
    /// g_m(t) as it is.
    pub gains: Vec<f64>,
    /// The channel as the server knows it.
    pub known: Known,
}

/// What the server knows of the uplink in one round, by device. A device that may not send
/// has a zero-gain link.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Known {
    /// g_m = |h_m|², the power gain.
    pub gains: Vec<f64>,
    /// C_m, bits a symbol at the device's transmit power.
    pub capacities: Vec<f64>,
    /// P, the transmit power of a scheduled device, in the unit of the noise variance.
    pub power: Power,
}

impl Known {
    /// Links with these gains and capacities, one of each per device.
    pub fn new(gains: Vec<f64>, capacities: Vec<f64>, power: Power) -> Self {
        assert_eq!(gains.len(), capacities.len(), "one gain and one capacity for each device");
        Self { gains, capacities, power }
    }

    /// M, the number of devices.
    pub fn devices(&self) -> usize {
        self.gains.len()
    }

    /// g_m of one device.
    pub fn gain(&self, device: DeviceId) -> f64 {
        self.gains[device.index()]
    }

    /// C_m of one device.
    pub fn capacity(&self, device: DeviceId) -> f64 {
        self.capacities[device.index()]
    }

    /// The first device whose gain or capacity is not a finite number ≥ 0, and what it is.
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
    }
}

impl Radio {
    /// The uplink made of `parts`.
    pub fn new(parts: RadioParts) -> Self {
        let RadioParts { devices, k, average_power, noise, band, fading, mean_gains, access } = parts;
        if let Some(means) = &mean_gains {
            assert_eq!(means.len(), devices, "one mean gain for each device");
        }
        Self { devices, k, average_power, noise, band, fading, mean_gains, access }
    }

    /// M.
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// K.
    pub fn k(&self) -> usize {
        self.k
    }

    /// What the scheduled devices share.
    pub fn band(&self) -> &Band {
        &self.band
    }

    /// P̄.
    pub fn average_power(&self) -> Power {
        self.average_power
    }

    /// σ².
    pub fn noise(&self) -> f64 {
        self.noise
    }

    /// P = M·P̄/K, what a scheduled device sends with: the one place where it is computed.
    pub fn power(&self) -> Power {
        transmit_power(self.devices, self.k, self.average_power)
    }

    /// g_m(t): the mean gain of the device times its fading. Depends on nothing but (seed, t, m).
    pub fn gain(&self, t: u64, device: DeviceId) -> f64 {
        let fading = self.fading.gain(t, device);
        self.mean_gains.as_ref().map_or(fading, |means| means[device.index()] * fading)
    }

    /// Why the fading law failed, if it has.
    pub(crate) fn failure(&self) -> Option<String> {
        self.fading.failure()
    }

    /// The uplink in round `t`.
    pub fn links(&self, t: u64) -> Links {
        let gains: Vec<f64> = DeviceId::all(self.devices).map(|device| self.gain(t, device)).collect();
        let power = self.power();
        let capacities = gains.iter().map(|&gain| capacity(gain, power, self.noise)).collect();
        Links { gains: gains.clone(), known: Known { gains, capacities, power } }
    }

    /// What each of the scheduled `devices` may use of the round, by the weights of their shares of bits.
    pub fn grant(&self, devices: &[DeviceId], weights: &[f64], known: &Known) -> Vec<Grant> {
        self.access.grant(devices, weights, known, &self.band)
    }

    /// What `device` may use if it sends in the place of the one that `grant` was for.
    pub fn transfer(&self, grant: &Grant, device: DeviceId, known: &Known) -> Grant {
        self.access.transfer(grant, device, known)
    }

    /// The bits that a device could send if the whole band were its own.
    pub fn alone(&self, device: DeviceId, known: &Known) -> Bits {
        Bits(self.band.symbols as f64 * known.capacity(device))
    }
}
