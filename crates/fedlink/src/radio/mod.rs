//! The uplink: fading channel, capacity, and how a round's symbols are shared out.

pub mod channel;
pub mod link;
pub mod slots;

use crate::units::DeviceId;

/// What the parameter server knows of the uplink in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Channels {
    /// g_m = |h_m|², the power gain of every device.
    pub gains: Vec<f64>,
    /// `C_m`, bits a symbol that every device's link carries at its transmit power.
    pub capacities: Vec<f64>,
}

impl Channels {
    /// M, the number of devices.
    pub fn devices(&self) -> usize {
        self.gains.len()
    }

    /// g_m of one device.
    pub fn gain(&self, device: DeviceId) -> f64 {
        self.gains[device.index()]
    }

    /// `C_m` of one device.
    pub fn capacity(&self, device: DeviceId) -> f64 {
        self.capacities[device.index()]
    }
}
