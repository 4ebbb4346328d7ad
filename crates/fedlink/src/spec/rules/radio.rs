//! Rules of the radio, the cell and the clock: two statements of one thing, and settings that need others.

use super::Draft;
use crate::parts::ConfigError;
use crate::radio::fading::Profile;
use crate::radio::{PayloadMode, Snrs};
use crate::spec::Config;
use crate::spec::sections::RadioConfig;

impl Draft<'_> {
    /// Checks the combinations of `[radio]`, `[cell]`, `[clock]` and `[energy]`.
    pub(super) fn check_radio(&self) -> Result<(), ConfigError> {
        Profile::check_name(&self.config.radio.profile)?;
        self.check_modes()?;
        self.check_snrs()?;
        self.check_group_sizes()?;
        self.config.check_groups()?;
        self.check_effects()?;
        self.check_units()
    }

    /// Two keys that set the same quantity are refused together.
    fn check_modes(&self) -> Result<(), ConfigError> {
        let radio = &self.config.radio;
        let default = RadioConfig::default();
        let by_hand = [
            ("radio.symbols", radio.symbols != default.symbols, "radio.uplink_s"),
            ("radio.power", radio.power != default.power, "radio.power_dbm"),
            ("radio.noise", radio.noise != default.noise, "radio.noise_dbm_hz"),
            ("radio.power_max", radio.power_max.is_some(), "radio.power_max_dbm"),
        ];
        if radio.bandwidth_hz.is_some()
            && let Some((key, _, instead)) = by_hand.iter().find(|(_, set, _)| *set)
        {
            let problem = format!(
                "belongs to the radio without units, but radio.bandwidth_hz makes it physical; write \
                 {instead}, or leave radio.bandwidth_hz out"
            );
            return Err(ConfigError::new(*key, problem));
        }
        if self.config.schedule.report_bits > 0 && self.config.clock.report_bits > 0.0 {
            let problem = "and schedule.report_bits both charge the reports; leave out this one, which takes \
                           seconds on a channel of their own, or the other one, which takes symbols of the \
                           round";
            return Err(ConfigError::new("clock.report_bits", problem));
        }
        if radio.correlation != 0.0 && radio.speed_kmh > 0.0 {
            let problem =
                "and radio.speed_kmh both set how fading goes on from round to round; leave one of them out";
            return Err(ConfigError::new("radio.correlation", problem));
        }
        if radio.csi_error > 0.0 && radio.csi_delay_s > 0.0 {
            let problem = "and radio.csi_delay_s both set how wrong estimates are; leave one of them out";
            return Err(ConfigError::new("radio.csi_error", problem));
        }
        if self.facts.fading.own_links {
            let own = [
                ("radio.correlation", radio.correlation != 0.0),
                ("radio.speed_kmh", radio.speed_kmh > 0.0 && !self.config.cell.drift),
                ("radio.antennas", radio.antennas != 1),
                ("radio.profile", radio.profile != RadioConfig::default().profile),
            ];
            if let Some((key, _)) = own.iter().find(|(_, set)| *set) {
                let problem = format!(
                    "has no effect on radio.fading = \"{}\", whose gains come with their antennas and their \
                     correlation; leave it out, or choose another radio.fading",
                    self.parts.fading.name()
                );
                return Err(ConfigError::new(*key, problem));
            }
        }
        self.check_max_power()
    }

    /// P̄ above the largest power, one of which may be a default.
    fn check_max_power(&self) -> Result<(), ConfigError> {
        let radio = &self.config.radio;
        let (power, max) = (radio.power_dbm(), radio.power_max_dbm());
        if radio.bandwidth_hz.is_some() && power > max {
            if radio.power_dbm.is_none() {
                let problem = format!("is {max}, below radio.power_dbm, which is {power} if it is left out");
                return Err(ConfigError::new("radio.power_max_dbm", problem));
            }
            let note = if radio.power_max_dbm.is_some() { "" } else { " if it is left out" };
            let problem = format!("is {power}, above radio.power_max_dbm, which is {max}{note}");
            return Err(ConfigError::new("radio.power_dbm", problem));
        }
        match radio.power_max {
            Some(max) if radio.power > max => {
                let problem = format!("is {max}, below radio.power, which is {}", radio.power);
                Err(ConfigError::new("radio.power_max", problem))
            }
            _ => Ok(()),
        }
    }

    /// `radio.snr_db` and the settings that it excludes.
    fn check_snrs(&self) -> Result<(), ConfigError> {
        let (radio, devices) = (&self.config.radio, self.config.data.devices);
        let Some(snrs) = &radio.snr_db else { return Ok(()) };
        let default = RadioConfig::default();
        let others = [
            ("radio.power", radio.power != default.power),
            ("radio.power_max", radio.power_max.is_some()),
            ("radio.noise", radio.noise != default.noise),
            ("radio.mean_gains", !radio.mean_gains.is_empty()),
            ("radio.power_policy", radio.power_policy != default.power_policy),
            ("radio.noise_dbm_hz", radio.noise_dbm_hz.is_some()),
            ("radio.noise_figure_db", radio.noise_figure_db.is_some()),
            ("radio.interference_w", radio.interference_w.is_some()),
            ("radio.gain_tx_dbi", radio.gain_tx_dbi.is_some()),
            ("radio.gain_rx_dbi", radio.gain_rx_dbi.is_some()),
            ("cell.pathloss", self.facts.pathloss.has_loss),
        ];
        if let Some((key, _)) = others.iter().find(|(_, set)| *set) {
            let problem = "and radio.snr_db both set the SNR; leave one of them out";
            return Err(ConfigError::new(*key, problem));
        }
        let levels = snrs.levels();
        if levels.is_empty() || levels.iter().any(|db| !(db.is_finite() && db.abs() <= 300.0)) {
            let problem =
                format!("is {levels:?}, but must be a number of decibels in -300..=300, or a list of such");
            return Err(ConfigError::new("radio.snr_db", problem));
        }
        match &radio.group_sizes {
            Some(sizes) if matches!(snrs, Snrs::Groups(_)) && sizes.len() != levels.len() => {
                let problem = format!("has {} groups, but radio.snr_db {}", sizes.len(), levels.len());
                Err(ConfigError::new("radio.group_sizes", problem))
            }
            None if levels.len() as u64 > devices => {
                let problem = format!("has {} groups for {devices} devices", levels.len());
                Err(ConfigError::new("radio.snr_db", problem))
            }
            _ => Ok(()),
        }
    }

    /// The sizes of groups add up to the devices.
    fn check_group_sizes(&self) -> Result<(), ConfigError> {
        let devices = self.config.data.devices;
        match &self.config.radio.group_sizes {
            Some(sizes) if sizes.iter().try_fold(0u64, |a, b| a.checked_add(*b)) != Some(devices) => {
                let problem = format!("is {sizes:?}, but must add up to data.devices, which is {devices}");
                Err(ConfigError::new("radio.group_sizes", problem))
            }
            _ => Ok(()),
        }
    }

    /// The other settings that a physical radio needs.
    fn check_units(&self) -> Result<(), ConfigError> {
        let Config { radio, cell, clock, .. } = self.config;
        let facts = self.facts;
        if radio.speed_kmh > 0.0 && radio.period_s.is_none() {
            let problem =
                format!("is {}, which needs radio.period_s, the seconds between rounds", radio.speed_kmh);
            return Err(ConfigError::new("radio.speed_kmh", problem));
        }
        if radio.speed_kmh > 0.0 && radio.carrier_hz.is_none() {
            let problem = format!("is {}, which needs radio.carrier_hz", radio.speed_kmh);
            return Err(ConfigError::new("radio.speed_kmh", problem));
        }
        Profile::named(&radio.profile, radio.delay_spread_s)?;
        if facts.pathloss.has_loss && !facts.layout.places {
            let problem = format!("is \"{}\", which needs distances: set cell.layout", cell.pathloss);
            return Err(ConfigError::new("cell.pathloss", problem));
        }
        if let Some(radius) = cell.radius_m
            && let Some(min) = cell.min_m.filter(|min| *min >= radius)
        {
            let problem = format!("is {min}, but must be below cell.radius_m, which is {radius}");
            return Err(ConfigError::new("cell.min_m", problem));
        }
        if radio.mode == PayloadMode::Payload {
            if radio.bandwidth_hz.is_none() {
                let problem = "is \"payload\", whose result is a time; set radio.bandwidth_hz";
                return Err(ConfigError::new("radio.mode", problem));
            }
            if facts.power.fixed_airtime {
                let problem = format!(
                    "is \"{}\", which shares the energy of a fixed airtime; radio.mode = \"payload\" fixes \
                     the bits instead: choose another radio.power_policy",
                    radio.power_policy
                );
                return Err(ConfigError::new("radio.power_policy", problem));
            }
        }
        if facts.access.blocks.is_some() && radio.bandwidth_hz.is_none() {
            let problem = format!(
                "is \"{}\", whose resource blocks have a width; set radio.bandwidth_hz",
                radio.access
            );
            return Err(ConfigError::new("radio.access", problem));
        }
        if clock.pipeline && !facts.access.one_by_one {
            let problem = format!(
                "needs devices that send one after another, but radio.access is \"{}\"",
                radio.access
            );
            return Err(ConfigError::new("clock.pipeline", problem));
        }
        if let Some(bandwidth) = radio.bandwidth_hz
            && radio.mode == PayloadMode::Airtime
        {
            let n = bandwidth * radio.uplink_s() * (1.0 - radio.overhead());
            if !(1.0..=9_007_199_254_740_992.0).contains(&n) {
                let problem = format!(
                    "gives n = bandwidth_hz·uplink_s·(1 − overhead) = {n} symbols, but must give 1 ..= 2^53"
                );
                return Err(ConfigError::new("radio.uplink_s", problem));
            }
            let up = radio.uplink_s();
            if let Some(deadline) = clock.deadline_s.filter(|deadline| *deadline <= up) {
                let problem = format!("is {deadline}, but the uplink alone takes {up} s");
                return Err(ConfigError::new("clock.deadline_s", problem));
            }
        }
        Ok(())
    }
}
