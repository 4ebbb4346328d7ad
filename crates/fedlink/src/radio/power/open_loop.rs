//! Open-loop power control of 3GPP.

use super::{LinkGain, PowerFacts, PowerMaterial, PowerPolicy};
use crate::base::state::Persist;
use crate::base::units::{DeviceId, Power, dbm_to_watt, to_db};
use crate::parts::{ConfigError, Entry, PartConfig, Scope, keys};

/// The entry of this policy.
pub const ENTRY: Entry<dyn PowerPolicy> = Entry::of::<OpenLoopConfig>();

/// A resource block of LTE and NR at 15 kHz, Hz.
const BLOCK_HZ: f64 = 180e3;

/// `[radio.open-loop]`.
#[keys]
#[derive(Clone, Copy, Debug)]
pub struct OpenLoopConfig {
    /// P₀, received power that is aimed at in each resource block of 180 kHz, dBm
    #[key(default = -90.0, range = "-300 ..= 300")]
    pub p0_dbm: f64,
    /// α, the share of the path loss that is made up for
    #[key(default = 1.0, range = "0 ..= 1")]
    pub alpha: f64,
}

impl PartConfig for OpenLoopConfig {
    type Part = dyn PowerPolicy;
    const NAME: &'static str = "open-loop";
    const MEANING: &'static str =
        "P₀ + α·path loss + 10·log10(blocks) dBm, at most the maximum, as 3GPP does";

    fn facts(&self) -> PowerFacts {
        PowerFacts { average: false, ..PowerFacts::default() }
    }

    fn build(self, _: &Scope, material: &PowerMaterial) -> Result<Box<dyn PowerPolicy>, ConfigError> {
        let Some(bandwidth_hz) = material.bandwidth_hz else {
            let problem = "is \"open-loop\", which counts in dBm; set radio.bandwidth_hz";
            return Err(ConfigError::new("radio.power_policy", problem));
        };
        let blocks_db = to_db(bandwidth_hz / BLOCK_HZ);
        Ok(Box::new(OpenLoop { p0_dbm: self.p0_dbm, alpha: self.alpha, blocks_db, material: *material }))
    }
}

/// P = min(P_max, P₀ + α·PL + 10·log10(#blocks)) dBm, with PL = −10·log10 β.
///
/// Source: TS 36.213 and 38.213, as we read them. Invariant: with α = 1 the server receives P₀ in each block.
#[derive(Clone, Copy, Debug)]
pub struct OpenLoop {
    p0_dbm: f64,
    alpha: f64,
    blocks_db: f64,
    material: PowerMaterial,
}

impl Persist for OpenLoop {}

impl PowerPolicy for OpenLoop {
    fn power(&self, _: DeviceId, link: LinkGain) -> Power {
        if link.mean_gain <= 0.0 {
            return Power(0.0);
        }
        let loss_db = -to_db(link.mean_gain);
        self.material.capped(dbm_to_watt(self.p0_dbm + self.alpha * loss_db + self.blocks_db))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_full_compensation_the_server_receives_p0_in_each_block() {
        let material =
            PowerMaterial { bandwidth_hz: Some(1.8e6), max: Some(0.2), ..PowerMaterial::default() };
        let config = OpenLoopConfig { p0_dbm: -90.0, alpha: 1.0 };
        let policy = config.build(&Scope::default(), &material).unwrap();
        for loss_db in [60.0, 80.0, 95.0] {
            let mean_gain = 10f64.powf(-loss_db / 10.0);
            let power = policy.power(DeviceId(0), LinkGain { gain: 0.3 * mean_gain, mean_gain }).0;
            // −90 dBm in each of ten blocks are −80 dBm.
            assert!((power * mean_gain / 1e-11 - 1.0).abs() < 1e-12, "{power}");
        }
        // 130 dB would need 50 dBm.
        assert_eq!(policy.power(DeviceId(0), LinkGain { gain: 1e-13, mean_gain: 1e-13 }), Power(0.2));
    }
}
