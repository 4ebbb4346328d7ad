//! The transmit power of a device, one file for each rule.

crate::register! {
    /// All power policies.
    POWER_POLICIES: dyn PowerPolicy;
    fair_share,
    equal_energy,
    fixed,
    inversion,
    waterfilling,
    open_loop,
    queue,
}

use crate::base::state::Persist;
use crate::base::units::{DeviceId, Power};
use crate::parts::{Entry, Kind};
use crate::radio::link::transmit_power;

/// The link of a device by the server's knowledge when it sets the power.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkGain {
    /// β·ĝ, the power gain as estimated.
    pub gain: f64,
    /// β, its mean.
    pub mean_gain: f64,
}

impl LinkGain {
    /// β·ĝ and β.
    pub fn new(gain: f64, mean_gain: f64) -> Self {
        Self { gain, mean_gain }
    }
}

/// A power policy: the transmit power of a device, were it scheduled.
///
/// Invariants: finite and ≥ 0, at most the maximum where there is one; a function of the link and of the
/// policy's state from earlier rounds.
pub trait PowerPolicy: Persist + Send + Sync {
    /// The transmit power of a device over this link. 0: it stays silent.
    fn power(&self, device: DeviceId, link: LinkGain) -> Power;

    /// Its transmit power in a run of K = `k`, to the last bit; the same unless power depends on K.
    fn power_at(&self, _k: usize, device: DeviceId, link: LinkGain) -> Power {
        self.power(device, link)
    }

    /// Whether the energy of a round is kept, so that a device with a part of the symbols sends with more
    /// power (up to the maximum).
    fn keeps_energy(&self) -> bool {
        false
    }

    /// Called once per round with the energy that each scheduled device radiated: power × symbols × the
    /// seconds per symbol (1 where there is no bandwidth).
    fn settle(&mut self, _radiated: &[(DeviceId, f64)]) {}
}

/// The quantities that a power policy is built from besides its own table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PowerMaterial {
    /// M.
    pub devices: usize,
    /// K.
    pub k: usize,
    /// P̄.
    pub average: f64,
    /// The largest power of a device; none: no limit.
    pub max: Option<f64>,
    /// σ² with interference, in the unit of the power.
    pub noise: f64,
    /// n.
    pub symbols: f64,
    /// Seconds of a symbol; none without a bandwidth.
    pub symbol_s: Option<f64>,
    /// W in hertz.
    pub bandwidth_hz: Option<f64>,
    /// Whether gains are those of Rayleigh fading with one antenna, known without error.
    pub rayleigh: bool,
}

impl PowerMaterial {
    /// M·P̄/k.
    fn fair_share_at(&self, k: usize) -> f64 {
        transmit_power(self.devices, k, Power(self.average)).0
    }

    /// `power`, at most the maximum.
    fn capped(&self, power: f64) -> Power {
        Power(self.max.map_or(power, |max| power.min(max)))
    }
}

/// Facts of a power policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PowerFacts {
    /// Whether it uses P̄.
    pub average: bool,
    /// Whether scheduled devices share the power of all, M·P̄/K each.
    pub shares_power: bool,
    /// Whether it shares the energy of a fixed airtime, which payloads of fixed size do not have.
    pub fixed_airtime: bool,
}

impl Default for PowerFacts {
    fn default() -> Self {
        Self { average: true, shares_power: false, fixed_airtime: false }
    }
}

impl Kind for dyn PowerPolicy {
    type Material = PowerMaterial;
    type Facts = PowerFacts;
    const PLURAL: &'static str = "power policies";
    const KEY: &'static str = "radio.power_policy";
    const TABLE: &'static str = "radio";

    fn entries() -> &'static [Entry<Self>] {
        POWER_POLICIES
    }
}
