//! The grants of scheduled devices.

use super::access::{Band, Grant, Uplink};
use super::rate::PerSymbol;
use super::{Known, Radio, RadioParts};
use crate::base::units::{Airtime, Bits, DeviceId, Symbols};

impl Radio {
    /// The links of some devices by the server's knowledge, passed to `call`.
    fn with_uplinks<R>(&self, devices: &[DeviceId], known: &Known, call: impl FnOnce(&[Uplink]) -> R) -> R {
        // Where only capacities are known, they replace the rate.
        let measured: Vec<PerSymbol> = devices.iter().map(|&m| PerSymbol(known.capacity(m))).collect();
        let links: Vec<Uplink> = devices
            .iter()
            .zip(&measured)
            .map(|(&device, measured)| match known.snr(device) {
                Some(snr) => self.uplink(snr, known.power(device), &*self.parts.rate, known.blocks(device)),
                None => Uplink { energy_kept: false, ..self.uplink(1.0, known.power(device), measured, &[]) },
            })
            .collect();
        call(&links)
    }

    /// The resources of the round that each of the scheduled `devices` may use, by the weights of their bits.
    pub fn grant(&self, devices: &[DeviceId], weights: &[f64], known: &Known) -> Vec<Grant> {
        self.grant_of(&self.band(), devices, weights, known)
    }

    /// The same where only the symbols of `band` are left.
    pub fn grant_of(&self, band: &Band, devices: &[DeviceId], weights: &[f64], known: &Known) -> Vec<Grant> {
        let RadioParts { access, payload, .. } = &self.parts;
        if band.symbols == 0 {
            return devices.iter().map(|&device| Grant::nothing(known.power(device))).collect();
        }
        self.with_uplinks(devices, known, |links| match payload {
            None => access.grant(weights, links, band),
            Some(bits) => {
                let (bits, ready) = (vec![bits.0; devices.len()], vec![0.0; devices.len()]);
                access.payload(&bits, links, &ready, &self.band())
            }
        })
    }

    /// The resources that each of the scheduled `devices` may use if each has ⌊n/K⌋ symbols, however many
    /// devices there are; the time of a payload of fixed size follows from its bits.
    pub fn grant_slots(&self, devices: &[DeviceId], known: &Known) -> Vec<Grant> {
        if self.parts.payload.is_some() {
            return self.grant(devices, &vec![1.0; devices.len()], known);
        }
        let slot = libm::floor(self.parts.budget.symbols as f64 / self.parts.k as f64);
        let grant = Grant { symbols: Symbols(slot), airtime: Airtime(slot), ..Grant::default() };
        devices.iter().map(|&device| self.transfer(&grant, device, known)).collect()
    }

    /// The resources that `device` may use if it replaces the device that `grant` was for.
    pub fn transfer(&self, grant: &Grant, device: DeviceId, known: &Known) -> Grant {
        self.transfer_of(&self.band(), grant, device, known)
    }

    /// The same where only the symbols of `band` were left.
    pub fn transfer_of(&self, band: &Band, grant: &Grant, device: DeviceId, known: &Known) -> Grant {
        if band.symbols == 0 {
            return Grant::nothing(known.power(device));
        }
        self.with_uplinks(&[device], known, |links| self.parts.access.transfer(grant, &links[0], band))
    }

    /// The time that a device needs for a payload of fixed size; where devices send at the same time, among K
    /// like it.
    pub fn payload_airtime(&self, device: DeviceId, known: &Known) -> Airtime {
        let copies = if self.sends_together() { self.parts.k } else { 1 };
        let grants = self.grant(&vec![device; copies], &vec![1.0; copies], known);
        grants.first().map_or(Airtime(0.0), |grant| grant.airtime)
    }

    /// The bits that a device could send if it had the whole band.
    pub fn alone(&self, device: DeviceId, known: &Known) -> Bits {
        match self.parts.payload {
            Some(bits) => bits,
            None => Bits(self.parts.budget.symbols as f64 * known.capacity(device)),
        }
    }
}
