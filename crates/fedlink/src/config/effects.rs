//! Which keys of the radio, the cell, the clock and the energy meter go together.
//!
//! A key that would have no effect in the chosen combination is refused, so that nobody believes in a setting
//! that was never used.

use super::{CellConfig, ClockConfig, Config, ConfigError, EnergyConfig, RadioConfig};
use crate::compress::Compressor;
use crate::radio::access::Access;
use crate::radio::budget::PhysicalBudget;
use crate::radio::fading::{Blocks, Profile};
use crate::radio::{Combining, PayloadMode, Snrs};
use crate::registry::{Entry, Kind, Scope, number, within};
use crate::schedule::{Bias, Policy, Selection};

/// A key that is set but has an effect only together with others.
#[derive(Clone)]
struct Rule {
    key: &'static str,
    is_set: bool,
    has_effect: bool,
    /// What it needs, and what to do.
    needs: &'static str,
}

fn rule(key: &'static str, is_set: bool, has_effect: bool, needs: &'static str) -> Rule {
    Rule { key, is_set, has_effect, needs }
}

const NEEDS_UNITS: &str = "counts in physical units; set radio.bandwidth_hz, or leave it out";
const NEEDS_AVERAGE: &str = "is P̄, and radio.power_policy = \"inversion\" or \"open-loop\" sets powers by \
                             the channel; leave it out";
const NEEDS_PATHLOSS: &str = "needs a cell.pathloss other than \"none\"; set one, or leave it out";
const NEEDS_HEIGHTS: &str = "is for path loss laws by distance in space: \"free-space\", \"log-distance\", \
                             \"umi\", \"uma\" and \"cost231-hata\"";
const NEEDS_LAYOUT: &str = "needs a cell.layout with an area; set \"disc\", \"ring\" …, or leave it out";
const NEEDS_COMPUTE: &str =
    "needs a clock.compute other than \"none\"; set \"flops\", \"cycles\" …, or leave it out";

impl Config {
    /// Checks ranges and combinations of `[radio]`, `[cell]`, `[clock]` and `[energy]`.
    pub(super) fn validate_radio(&self) -> Result<(), ConfigError> {
        self.check_radio_ranges()?;
        self.check_cell_ranges()?;
        self.check_clock_ranges()?;
        self.check_modes()?;
        self.check_snrs()?;
        for rule in self.effect_rules() {
            if rule.is_set && !rule.has_effect {
                return Err(ConfigError::new(rule.key, format!("has no effect here: it {}", rule.needs)));
            }
        }
        self.check_units()
    }

    fn check_radio_ranges(&self) -> Result<(), ConfigError> {
        let radio = &self.radio;
        within("radio.antennas", radio.antennas, 1..=1024, "")?;
        number("radio.correlation", radio.correlation, |x| x.abs() < 1.0, "a number above -1 and below 1")?;
        number("radio.csi_error", radio.csi_error, |x| (0.0..1.0).contains(&x), "at least 0 and below 1")?;
        within("radio.attempts", radio.attempts, 1..=100, "")?;
        let profiles = ["flat", "tdl-a30", "tdl-b100", "tdl-c300", "exponential"];
        if !profiles.contains(&radio.profile.as_str()) {
            let names = profiles.map(|name| format!("\"{name}\"")).join(", ");
            let problem = format!("is \"{}\", but must be one of {names}", radio.profile);
            return Err(ConfigError::new("radio.profile", problem));
        }
        let at_least_0 = [
            ("radio.speed_kmh", Some(radio.speed_kmh)),
            ("radio.csi_delay_s", Some(radio.csi_delay_s)),
            ("radio.backoff_db", Some(radio.backoff_db)),
            ("radio.noise_figure_db", radio.noise_figure_db),
            ("radio.interference_w", radio.interference_w),
        ];
        let above_0 = [
            ("radio.period_s", radio.period_s),
            ("radio.delay_spread_s", radio.delay_spread_s),
            ("radio.payload_bits", radio.payload_bits),
            ("radio.power_max", radio.power_max),
            ("radio.bandwidth_hz", radio.bandwidth_hz),
            ("radio.uplink_s", radio.uplink_s),
            ("radio.carrier_hz", radio.carrier_hz),
            ("radio.report_floor", radio.report_floor),
        ];
        let decibels = [
            ("radio.power_dbm", radio.power_dbm),
            ("radio.power_max_dbm", radio.power_max_dbm),
            ("radio.noise_dbm_hz", radio.noise_dbm_hz),
            ("radio.gain_tx_dbi", radio.gain_tx_dbi),
            ("radio.gain_rx_dbi", radio.gain_rx_dbi),
            ("radio.loss_threshold_db", radio.loss_threshold_db),
        ];
        check_all(&at_least_0, |x| x >= 0.0, "a finite number of at least 0")?;
        check_all(&above_0, |x| x > 0.0, "a finite number above 0")?;
        check_all(&decibels, |x| x.abs() <= 400.0, "a number in -400..=400")?;
        check_all(
            &[("radio.overhead", radio.overhead)],
            |x| (0.0..1.0).contains(&x),
            "at least 0 and below 1",
        )
    }

    fn check_cell_ranges(&self) -> Result<(), ConfigError> {
        let cell = &self.cell;
        let at_least_0 = [
            ("cell.min_m", cell.min_m),
            ("cell.shadowing_db", Some(cell.shadowing_db)),
            ("cell.correlation_m", Some(cell.correlation_m)),
        ];
        let above_0 = [
            ("cell.radius_m", cell.radius_m),
            ("cell.height_bs_m", cell.height_bs_m),
            ("cell.height_ut_m", cell.height_ut_m),
        ];
        check_all(&at_least_0, |x| x >= 0.0, "a finite number of at least 0")?;
        check_all(&above_0, |x| x > 0.0, "a finite number above 0")
    }

    fn check_clock_ranges(&self) -> Result<(), ConfigError> {
        let (clock, energy) = (&self.clock, &self.energy);
        let at_least_0 = [
            ("clock.report_bits", Some(clock.report_bits)),
            ("energy.compute_w", energy.compute_w),
            ("energy.kappa", energy.kappa),
            ("energy.circuit_w", Some(energy.circuit_w)),
            ("energy.receive_w", Some(energy.receive_w)),
            ("energy.idle_w", Some(energy.idle_w)),
            ("energy.battery_j", Some(energy.battery_j)),
        ];
        let above_0 =
            [("clock.report_efficiency", clock.report_efficiency), ("clock.deadline_s", clock.deadline_s)];
        check_all(&at_least_0, |x| x >= 0.0, "a finite number of at least 0")?;
        check_all(&above_0, |x| x > 0.0, "a finite number above 0")?;
        let share = |x: f64| x > 0.0 && x <= 1.0;
        number("energy.pa_efficiency", energy.pa_efficiency, share, "a number above 0, at most 1")
    }

    /// Two ways to say one thing are refused.
    fn check_modes(&self) -> Result<(), ConfigError> {
        let radio = &self.radio;
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
        if self.schedule.report_bits > 0 && self.clock.report_bits > 0.0 {
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
        if radio.fading == "trace" {
            let own_law = [
                ("radio.correlation", radio.correlation != 0.0),
                ("radio.speed_kmh", radio.speed_kmh > 0.0 && !self.cell.drift),
                ("radio.antennas", radio.antennas != 1),
            ];
            if let Some((key, _)) = own_law.iter().find(|(_, set)| *set) {
                let problem = "has no effect on gains that are read from a trace; leave it out, or choose \
                               another radio.fading";
                return Err(ConfigError::new(*key, problem));
            }
        }
        self.check_max_power()
    }

    /// P̄ above the largest power, one of which may be a default.
    fn check_max_power(&self) -> Result<(), ConfigError> {
        let radio = &self.radio;
        let default = PhysicalBudget::default();
        let power = radio.power_dbm.unwrap_or(default.power_dbm);
        let max = radio.power_max_dbm.unwrap_or(default.power_max_dbm);
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

    /// `radio.snr_db` and what it excludes.
    fn check_snrs(&self) -> Result<(), ConfigError> {
        let (radio, devices) = (&self.radio, self.data.devices);
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
            ("cell.pathloss", self.cell.pathloss != "none"),
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
            Some(sizes) if matches!(snrs, Snrs::All(_)) || sizes.len() != levels.len() => {
                let problem = format!("has {} groups, but radio.snr_db {}", sizes.len(), levels.len());
                Err(ConfigError::new("radio.group_sizes", problem))
            }
            Some(sizes) if sizes.iter().try_fold(0u64, |a, b| a.checked_add(*b)) != Some(devices) => {
                let problem = format!("is {sizes:?}, but must add up to data.devices, which is {devices}");
                Err(ConfigError::new("radio.group_sizes", problem))
            }
            None if levels.len() as u64 > devices => {
                let problem = format!("has {} groups for {devices} devices", levels.len());
                Err(ConfigError::new("radio.snr_db", problem))
            }
            _ => Ok(()),
        }
    }

    /// Keys that need others.
    fn effect_rules(&self) -> Vec<Rule> {
        let rules = [
            self.budget_rules(),
            self.radio_rules(),
            self.cell_rules(),
            self.clock_rules(),
            self.schedule_rules(),
        ];
        rules.concat()
    }

    fn schedule_rules(&self) -> Vec<Rule> {
        let schedule = &self.schedule;
        let own = self.own_table("schedule", "deadline").get("seconds");
        let seconds = own.and_then(|value| value.as_float().or(value.as_integer().map(|x| x as f64)));
        vec![
            rule(
                "schedule.deadline.seconds",
                schedule.policy == "deadline" && seconds.is_some_and(|seconds| seconds > 0.0),
                self.radio.bandwidth_hz.is_some(),
                NEEDS_UNITS,
            ),
            rule(
                "schedule.decay",
                schedule.decay > 0.0,
                schedule.k > schedule.k_min,
                "lowers schedule.k, which is schedule.k_min already; raise schedule.k, or leave it out",
            ),
            rule(
                "schedule.k_min",
                schedule.k_min > 1,
                schedule.decay > 0.0,
                "is how far schedule.decay lowers K; set schedule.decay, or leave it out",
            ),
        ]
    }

    /// Power, noise and seconds.
    fn budget_rules(&self) -> Vec<Rule> {
        let Self { radio, cell, schedule, .. } = self;
        let physical = radio.bandwidth_hz.is_some();
        let airtime = radio.mode == PayloadMode::Airtime;
        let pathloss = cell.pathloss != "none";
        // Policies may look at P̄ too.
        let average = !["inversion", "open-loop"].contains(&radio.power_policy.as_str())
            || ["lyapunov", "ocean"].contains(&schedule.policy.as_str())
            || self.custom.contains_key(&schedule.policy);
        vec![
            rule("radio.power", radio.power != RadioConfig::default().power, average, NEEDS_AVERAGE),
            rule("radio.power_dbm", radio.power_dbm.is_some(), average, NEEDS_AVERAGE),
            rule("radio.uplink_s", radio.uplink_s.is_some(), physical, NEEDS_UNITS),
            rule(
                "radio.uplink_s",
                radio.uplink_s.is_some(),
                airtime,
                "is the time of radio.mode = \"airtime\"; with payloads of fixed size it follows; leave it \
                 out",
            ),
            rule("radio.power_dbm", radio.power_dbm.is_some(), physical, NEEDS_UNITS),
            rule("radio.power_max_dbm", radio.power_max_dbm.is_some(), physical, NEEDS_UNITS),
            rule("radio.noise_dbm_hz", radio.noise_dbm_hz.is_some(), physical, NEEDS_UNITS),
            rule("radio.noise_figure_db", radio.noise_figure_db.is_some(), physical, NEEDS_UNITS),
            rule("radio.interference_w", radio.interference_w.is_some(), physical, NEEDS_UNITS),
            rule("radio.overhead", radio.overhead.is_some(), physical, NEEDS_UNITS),
            rule("radio.gain_tx_dbi", radio.gain_tx_dbi.is_some(), physical && pathloss, NEEDS_PATHLOSS),
            rule("radio.gain_rx_dbi", radio.gain_rx_dbi.is_some(), physical && pathloss, NEEDS_PATHLOSS),
        ]
    }

    fn radio_rules(&self) -> Vec<Rule> {
        let Self { radio, cell, schedule, .. } = self;
        let airtime = radio.mode == PayloadMode::Airtime;
        let (pathloss, moves) = (cell.pathloss != "none", radio.speed_kmh > 0.0);
        let ofdma = radio.access == "ofdma";
        let estimated = radio.csi_error > 0.0 || radio.csi_delay_s > 0.0;
        let combines = radio.combining != Combining::None;
        let lossy = radio.rate == "finite-blocklength" || (radio.rate == "mcs" && self.mcs_loss() > 0.0);
        vec![
            rule(
                "radio.csi_error",
                radio.csi_error > 0.0,
                radio.fading != "static",
                "is for a channel that fades, and radio.fading is \"static\", which is known exactly; leave \
                 it out",
            ),
            rule(
                "radio.carrier_hz",
                radio.carrier_hz.is_some(),
                moves || pathloss,
                "is for radio.speed_kmh and cell.pathloss; set one of them, or leave it out",
            ),
            rule(
                "radio.period_s",
                radio.period_s.is_some(),
                moves || radio.fading == "trace" || cell.layout == "track",
                "is for radio.speed_kmh, traces and tracks; set radio.speed_kmh, or leave it out",
            ),
            rule(
                "radio.group_sizes",
                radio.group_sizes.is_some(),
                radio.snr_db.is_some(),
                "needs radio.snr_db with one value for each group",
            ),
            rule(
                "radio.csi_delay_s",
                radio.csi_delay_s > 0.0,
                moves || radio.fading == "trace" || self.custom.contains_key(&radio.fading),
                "needs a channel that changes with time; set radio.speed_kmh",
            ),
            rule(
                "radio.backoff_db",
                radio.backoff_db > 0.0,
                estimated,
                "is for estimates with an error; set radio.csi_error or radio.csi_delay_s, or leave it out",
            ),
            rule(
                "radio.payload_bits",
                radio.payload_bits.is_some(),
                !airtime,
                "is the size of an upload where radio.mode = \"payload\"",
            ),
            rule(
                "radio.attempts",
                radio.attempts > 1,
                lossy || radio.loss_threshold_db.is_some() || (combines && estimated),
                "repeats what was lost; set radio.rate = \"finite-blocklength\", radio.mcs.loss, \
                 radio.loss_threshold_db, or radio.combining beside an error of estimates",
            ),
            rule(
                "radio.combining",
                combines,
                radio.attempts > 1 && (estimated || radio.rate == "finite-blocklength"),
                "adds up what radio.attempts above 1 send over a channel that carries too little; set them, \
                 and radio.csi_error, radio.csi_delay_s or radio.rate = \"finite-blocklength\"",
            ),
            rule(
                "radio.report_floor",
                radio.report_floor.is_some(),
                schedule.report_bits > 0,
                "is for reports that take symbols; set schedule.report_bits, or leave it out",
            ),
            rule(
                "schedule.report_bits",
                schedule.report_bits > 0,
                airtime,
                "takes symbols of a round's n, which radio.mode = \"payload\" has not; write \
                 clock.report_bits",
            ),
            rule("radio.profile", radio.profile != "flat", ofdma, "is for radio.access = \"ofdma\""),
            rule(
                "radio.delay_spread_s",
                radio.delay_spread_s.is_some(),
                radio.profile == "exponential",
                "is for radio.profile = \"exponential\"; the others have their delays",
            ),
            rule(
                "radio.slots",
                radio.slots != RadioConfig::default().slots,
                radio.access == "tdma" && airtime,
                "is for radio.access = \"tdma\" and radio.mode = \"airtime\"",
            ),
        ]
    }

    fn cell_rules(&self) -> Vec<Rule> {
        let Self { radio, cell, .. } = self;
        let physical = radio.bandwidth_hz.is_some();
        let (pathloss, moves) = (cell.pathloss != "none", radio.speed_kmh > 0.0);
        let has_heights = !["none", "3gpp-macro", "3gpp-pico"].contains(&cell.pathloss.as_str());
        let placed = !["none", "file", "track"].contains(&cell.layout.as_str());
        let default = CellConfig::default();
        vec![
            rule("cell.pathloss", pathloss, physical, NEEDS_UNITS),
            rule("cell.layout", cell.layout != default.layout, pathloss, NEEDS_PATHLOSS),
            rule("cell.radius_m", cell.radius_m.is_some(), placed, NEEDS_LAYOUT),
            rule(
                "cell.min_m",
                cell.min_m.is_some(),
                ["disc", "radius", "square", "clusters"].contains(&cell.layout.as_str()),
                "is for cell.layout = \"disc\", \"radius\", \"square\" or \"clusters\"",
            ),
            rule("cell.height_bs_m", cell.height_bs_m.is_some(), has_heights, NEEDS_HEIGHTS),
            rule("cell.height_ut_m", cell.height_ut_m.is_some(), has_heights, NEEDS_HEIGHTS),
            rule(
                "cell.los",
                cell.los.is_some(),
                ["umi", "uma"].contains(&cell.pathloss.as_str()),
                "is for cell.pathloss = \"umi\" or \"uma\", which tell line of sight from its absence",
            ),
            rule(
                "cell.extrapolate",
                cell.extrapolate,
                ["umi", "uma", "cost231-hata"].contains(&cell.pathloss.as_str()),
                "is for path loss laws with a domain: \"umi\", \"uma\" and \"cost231-hata\"",
            ),
            rule("cell.shadowing_db", cell.shadowing_db > 0.0, pathloss, NEEDS_PATHLOSS),
            rule(
                "cell.correlation_m",
                cell.correlation_m > 0.0,
                cell.shadowing_db > 0.0,
                "is for shadowing; set cell.shadowing_db",
            ),
            rule(
                "cell.drift",
                cell.drift,
                moves && pathloss && cell.layout != "track",
                "moves devices with radio.speed_kmh through a cell with path loss, other than cell.layout = \
                 \"track\"; set both",
            ),
        ]
    }

    fn clock_rules(&self) -> Vec<Rule> {
        let Self { radio, clock, energy, .. } = self;
        let physical = radio.bandwidth_hz.is_some();
        let computes = clock.compute != "none";
        let (default_clock, default_energy) = (ClockConfig::default(), EnergyConfig::default());
        vec![
            rule("clock.compute", computes, physical, NEEDS_UNITS),
            rule("clock.spread", clock.spread != default_clock.spread, computes, NEEDS_COMPUTE),
            rule("clock.jitter", clock.jitter != default_clock.jitter, computes, NEEDS_COMPUTE),
            rule("clock.downlink", clock.downlink != default_clock.downlink, physical, NEEDS_UNITS),
            rule("clock.report_bits", clock.report_bits > 0.0, physical, NEEDS_UNITS),
            rule(
                "clock.report_efficiency",
                clock.report_efficiency.is_some(),
                clock.report_bits > 0.0,
                "is for reports that cost; set clock.report_bits",
            ),
            rule("clock.deadline_s", clock.deadline_s.is_some(), physical, NEEDS_UNITS),
            rule("clock.pipeline", clock.pipeline, physical && computes, NEEDS_COMPUTE),
            rule(
                "energy.compute_w",
                energy.compute_w.is_some(),
                computes && clock.compute != "cycles",
                "is for clock.compute = \"flops\", \"rate\" or \"file\"; \"cycles\" has energy.kappa",
            ),
            rule(
                "energy.kappa",
                energy.kappa.is_some(),
                clock.compute == "cycles",
                "is for clock.compute = \"cycles\"",
            ),
            rule("energy.circuit_w", energy.circuit_w > 0.0, physical, NEEDS_UNITS),
            rule(
                "energy.pa_efficiency",
                energy.pa_efficiency < default_energy.pa_efficiency,
                physical,
                NEEDS_UNITS,
            ),
            rule(
                "energy.receive_w",
                energy.receive_w > 0.0,
                clock.downlink != "ideal",
                "needs a downlink that takes time; set clock.downlink = \"broadcast\"",
            ),
            rule("energy.idle_w", energy.idle_w > 0.0, physical, NEEDS_UNITS),
            rule("energy.battery_j", energy.battery_j > 0.0, physical, NEEDS_UNITS),
        ]
    }

    /// What a physical radio needs besides.
    fn check_units(&self) -> Result<(), ConfigError> {
        let Self { radio, cell, clock, .. } = self;
        if radio.speed_kmh > 0.0 && radio.period_s.is_none() {
            let problem =
                format!("is {}, which needs radio.period_s, the seconds between rounds", radio.speed_kmh);
            return Err(ConfigError::new("radio.speed_kmh", problem));
        }
        if radio.speed_kmh > 0.0 && radio.carrier_hz.is_none() {
            let problem = format!("is {}, which needs radio.carrier_hz", radio.speed_kmh);
            return Err(ConfigError::new("radio.speed_kmh", problem));
        }
        if radio.profile == "exponential" && radio.delay_spread_s.is_none() {
            return Err(ConfigError::new(
                "radio.profile",
                "is \"exponential\", which needs radio.delay_spread_s",
            ));
        }
        if cell.pathloss != "none" && cell.layout == "none" {
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
            if radio.power_policy == "equal-energy" {
                let problem = "is \"equal-energy\", which shares the energy of a fixed airtime; with \
                               radio.mode = \"payload\" take \"fixed\" or \"fair-share\"";
                return Err(ConfigError::new("radio.power_policy", problem));
            }
        }
        if radio.access == "ofdma" && radio.bandwidth_hz.is_none() {
            let problem = "is \"ofdma\", whose resource blocks have a width; set radio.bandwidth_hz";
            return Err(ConfigError::new("radio.access", problem));
        }
        if clock.pipeline && radio.access != "tdma" {
            let problem = format!(
                "needs devices that send one after another, but radio.access is \"{}\"",
                radio.access
            );
            return Err(ConfigError::new("clock.pipeline", problem));
        }
        if let Some(bandwidth) = radio.bandwidth_hz
            && radio.mode == PayloadMode::Airtime
        {
            let n = bandwidth * radio.uplink_s.unwrap_or(0.005) * (1.0 - radio.overhead.unwrap_or(0.0));
            if !(1.0..=9_007_199_254_740_992.0).contains(&n) {
                let problem = format!(
                    "gives n = bandwidth_hz·uplink_s·(1 − overhead) = {n} symbols, but must give 1 ..= 2^53"
                );
                return Err(ConfigError::new("radio.uplink_s", problem));
            }
            let up = radio.uplink_s.unwrap_or(0.005);
            if let Some(deadline) = clock.deadline_s.filter(|deadline| *deadline <= up) {
                let problem = format!("is {deadline}, but the uplink alone takes {up} s");
                return Err(ConfigError::new("clock.deadline_s", problem));
            }
        }
        Ok(())
    }

    /// `radio.mcs.loss`.
    fn mcs_loss(&self) -> f64 {
        let value = self.own_table("radio", "mcs").get("loss");
        value.and_then(|loss| loss.as_float().or(loss.as_integer().map(|x| x as f64))).unwrap_or(0.0)
    }

    /// Whether the downlink waits for links whose density at zero gain is above zero.
    fn has_endless_downlink(&self) -> bool {
        let own = self.own_table("clock", "broadcast");
        let number = |key: &str, default: f64| {
            let value = own.get(key);
            value.and_then(|x| x.as_float().or(x.as_integer().map(|x| x as f64))).unwrap_or(default)
        };
        self.clock.downlink == "broadcast"
            && number("quantile", 1.0) >= 1.0
            && number("bps", 0.0) == 0.0
            && self.radio.antennas == 1
            && ["rayleigh", "rician"].contains(&self.radio.fading.as_str())
    }

    /// Delay spread and width of resource blocks over which the channel is not flat.
    fn wide_blocks(&self) -> Option<(f64, f64)> {
        let profile = Profile::named(&self.radio.profile, self.radio.delay_spread_s).ok()??;
        let blocks = self.build::<dyn Access>("ofdma", &self.radio.slots).ok()?.resource_blocks();
        let spacing_hz = self.radio.bandwidth_hz? / blocks as f64;
        profile.not_flat_within(&Blocks { count: blocks, spacing_hz })?;
        Some((profile.rms_delay_s(), spacing_hz))
    }

    /// Whether the policy sets shares so that the mean of the updates is unbiased, over a link.
    fn weighs_without_bias(&self) -> bool {
        self.build::<dyn Policy>(&self.schedule.policy, &()).is_ok_and(|policy| {
            let Selection { bias, own_shares, .. } = policy.selection();
            bias == Bias::Unbiased && own_shares && policy.is_a_link()
        })
    }

    /// What a person should know before a run: settings that are allowed and seldom meant.
    pub fn cautions(&self) -> Vec<String> {
        let Self { radio, clock, data, schedule, learn, .. } = self;
        let mut cautions = Vec::new();
        if ["adagrad", "adam", "yogi"].contains(&learn.server_optimizer.as_str()) && learn.server_rate >= 1.0
        {
            cautions.push(format!(
                "learn.server_rate is {} and learn.server_optimizer \"{}\", which divides the step by its \
                 own size: a weight moves by about that rate in a round; 0.01 is a start",
                learn.server_rate, learn.server_optimizer
            ));
        }
        if radio.csi_delay_s > 0.0 && radio.backoff_db == 0.0 {
            cautions.push(
                "radio.csi_delay_s is above 0 and radio.backoff_db 0: about half of the uploads will be \
                 lost, since every second estimate is too good; a back-off helps"
                    .into(),
            );
        }
        if let Some((spread_s, width_hz)) = self.wide_blocks() {
            cautions.push(format!(
                "resource blocks of {:.0} kHz are not flat over a delay spread of {:.0} ns; more blocks in \
                 radio.ofdma.resource_blocks are narrower",
                width_hz / 1e3,
                spread_s * 1e9
            ));
        }
        if radio.csi_error > 0.0 && radio.backoff_db == 0.0 {
            let lost = 0.5 * (1.0 - libm::sqrt(radio.csi_error / (4.0 - 3.0 * radio.csi_error)));
            cautions.push(format!(
                "radio.csi_error is {} and radio.backoff_db 0: about {:.0} % of the uploads will be lost, \
                 since every second estimate is too good; a back-off helps",
                radio.csi_error,
                100.0 * lost
            ));
        }
        let blind = !["bc", "bc-bn2"].contains(&schedule.policy.as_str());
        if radio.mode == PayloadMode::Payload
            && clock.deadline_s.is_none()
            && blind
            && radio.fading != "static"
        {
            cautions.push(
                "radio.mode is \"payload\" without clock.deadline_s, and the policy does not pick by the \
                 channel: the time of an upload has no finite mean over Rayleigh fading, so that means of \
                 seconds do not settle"
                    .into(),
            );
        }
        if self.has_endless_downlink() {
            cautions.push(
                "clock.downlink is \"broadcast\" at the rate of the worst listener: over fading with one \
                 antenna that time has no finite mean, so that means of down_s do not settle; compare \
                 medians, or set clock.broadcast.quantile below 1"
                    .into(),
            );
        }
        if let (Some(_), "fair-share") = (radio.bandwidth_hz, radio.power_policy.as_str())
            && radio.snr_db.is_none()
        {
            let sent =
                radio.power_dbm.unwrap_or(7.8) + crate::units::to_db(data.devices as f64 / schedule.k as f64);
            let max = radio.power_max_dbm.unwrap_or(23.0);
            if sent > max {
                cautions.push(format!(
                    "a scheduled device would send with M·P̄/K = {sent:.1} dBm, but radio.power_max_dbm is \
                     {max}: it sends with that"
                ));
            }
        }
        if self.weighs_without_bias()
            && let Ok(scheme) = self.build::<dyn Compressor>(&self.compress.scheme, &())
            && !scheme.properties(2, 1).unbiased
        {
            cautions.push(format!(
                "schedule.policy = \"{}\" weighs updates so that their mean is unbiased, but compress.scheme \
                 = \"{}\" is not: the sum is biased all the same; unbiased schemes are {}",
                schedule.policy,
                self.compress.scheme,
                unbiased_schemes().join(", ")
            ));
        }
        cautions
    }
}

/// The compression schemes that are unbiased by default.
fn unbiased_schemes() -> Vec<&'static str> {
    let is_unbiased = |entry: &&Entry<dyn Compressor>| {
        let built = entry.build(&toml::Table::new(), &Scope::default(), &());
        built.is_ok_and(|scheme| scheme.properties(2, 1).unbiased)
    };
    <dyn Compressor>::entries().iter().filter(is_unbiased).map(|entry| entry.name).collect()
}

fn check_all(
    keys: &[(&str, Option<f64>)],
    ok: impl Fn(f64) -> bool,
    allowed: &str,
) -> Result<(), ConfigError> {
    keys.iter().try_for_each(|(key, value)| value.map_or(Ok(()), |value| number(key, value, &ok, allowed)))
}
