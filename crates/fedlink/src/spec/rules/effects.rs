//! Keys that have an effect only together with others, as one table of rules.

use super::Draft;
use crate::clock::compute::Compute;
use crate::parts::{ConfigError, parts_with};
use crate::radio::access::Access;
use crate::radio::cell::layout::Layout;
use crate::radio::cell::pathloss::PathLoss;
use crate::radio::fading::Profile;
use crate::radio::power::PowerPolicy;
use crate::radio::rate::Rate;
use crate::radio::{Combining, PayloadMode, Snrs};
use crate::spec::Config;
use crate::spec::sections::{CellConfig, ClockConfig, EnergyConfig, RadioConfig};

/// A key that is set but has an effect only together with others.
struct Rule {
    key: &'static str,
    is_set: bool,
    has_effect: bool,
    needs: Needs,
}

/// The end of the sentence "it …": the needs of a key, and the remedy. It is worded only for an error.
type Needs = fn() -> String;

fn rule(key: &'static str, is_set: bool, has_effect: bool, needs: Needs) -> Rule {
    Rule { key, is_set, has_effect, needs }
}

const NEEDS_UNITS: Needs = || "is in physical units; set radio.bandwidth_hz, or leave it out".into();
const NEEDS_AVERAGE: Needs = || {
    let by_channel = parts_with::<dyn PowerPolicy>(|facts| !facts.average);
    format!("is P̄, and {by_channel} sets powers by the channel; leave it out")
};
const NEEDS_PATHLOSS: Needs = || {
    let laws = parts_with::<dyn PathLoss>(|facts| facts.has_loss);
    format!("needs path loss; set {laws}, or leave it out")
};
const NEEDS_HEIGHTS: Needs =
    || format!("is for laws by distance in space: {}", parts_with::<dyn PathLoss>(|facts| facts.heights));
const NEEDS_AREA: Needs = || {
    let layouts = parts_with::<dyn Layout>(|facts| facts.has_area);
    format!("needs a layout with an area; set {layouts}, or leave it out")
};
const NEEDS_COMPUTE: Needs = || {
    let models = parts_with::<dyn Compute>(|facts| facts.takes_time);
    format!("needs training that takes time; set {models}, or leave it out")
};

impl Draft<'_> {
    /// Refuses the first key that is set without an effect.
    pub(super) fn check_effects(&self) -> Result<(), ConfigError> {
        let rules = self.budget_rules().into_iter().chain(self.radio_rules()).chain(self.cell_rules());
        let rules = rules.chain(self.group_rules());
        let mut rules = rules.chain(self.clock_rules()).chain(self.schedule_rules());
        match rules.find(|rule| rule.is_set && !rule.has_effect) {
            Some(Rule { key, needs, .. }) => {
                Err(ConfigError::new(key, format!("has no effect here: it {}", needs())))
            }
            None => self.check_units_of_policy(),
        }
    }

    /// Refuses an own key of the policy that needs a radio in units.
    fn check_units_of_policy(&self) -> Result<(), ConfigError> {
        match self.facts.policy.needs_units {
            Some(key) if self.config.radio.bandwidth_hz.is_none() => {
                let key = format!("{}.{key}", self.parts.policy.path());
                Err(ConfigError::new(key, format!("has no effect here: it {}", NEEDS_UNITS())))
            }
            _ => Ok(()),
        }
    }

    fn schedule_rules(&self) -> Vec<Rule> {
        let schedule = &self.config.schedule;
        vec![
            rule("schedule.decay", schedule.decay > 0.0, schedule.k > schedule.k_min, || {
                "lowers schedule.k, which is schedule.k_min already; raise schedule.k, or leave it out".into()
            }),
            rule("schedule.k_min", schedule.k_min > 1, schedule.decay > 0.0, || {
                "is how far schedule.decay lowers K; set schedule.decay, or leave it out".into()
            }),
        ]
    }

    /// Power, noise and seconds.
    fn budget_rules(&self) -> Vec<Rule> {
        let radio = &self.config.radio;
        let physical = radio.bandwidth_hz.is_some();
        let airtime = radio.mode == PayloadMode::Airtime;
        let pathloss = self.facts.pathloss.has_loss;
        let average = self.facts.power.average || self.facts.policy.selection.by_average_power;
        vec![
            rule("radio.power", radio.power != RadioConfig::default().power, average, NEEDS_AVERAGE),
            rule("radio.power_dbm", radio.power_dbm.is_some(), average, NEEDS_AVERAGE),
            rule("radio.uplink_s", radio.uplink_s.is_some(), physical, NEEDS_UNITS),
            rule("radio.uplink_s", radio.uplink_s.is_some(), airtime, || {
                "is the time of radio.mode = \"airtime\"; with payloads of fixed size it follows; leave it \
                 out"
                .into()
            }),
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
        let Config { radio, schedule, .. } = self.config;
        let facts = self.facts;
        let airtime = radio.mode == PayloadMode::Airtime;
        let (pathloss, moves) = (facts.pathloss.has_loss, radio.speed_kmh > 0.0);
        let has_blocks = facts.access.blocks.is_some();
        let estimated = radio.csi_error > 0.0 || radio.csi_delay_s > 0.0;
        let combines = radio.combining != Combining::None;
        let lossy = facts.rate.loses;
        vec![
            rule("radio.csi_error", radio.csi_error > 0.0, facts.fading.fades, || {
                "is for a channel that fades, and this radio.fading does not, so that it is known exactly; \
                 leave it out"
                    .into()
            }),
            rule("radio.carrier_hz", radio.carrier_hz.is_some(), moves || pathloss, || {
                "is for radio.speed_kmh and cell.pathloss; set one of them, or leave it out".into()
            }),
            rule(
                "radio.period_s",
                radio.period_s.is_some(),
                moves || facts.fading.by_period || facts.layout.moves,
                || "is for radio.speed_kmh, traces and tracks; set radio.speed_kmh, or leave it out".into(),
            ),
            rule("radio.csi_delay_s", radio.csi_delay_s > 0.0, moves || facts.fading.own_times, || {
                "needs a channel that changes with time; set radio.speed_kmh".into()
            }),
            rule("radio.backoff_db", radio.backoff_db > 0.0, estimated, || {
                "is for estimates with an error; set radio.csi_error or radio.csi_delay_s, or leave it out"
                    .into()
            }),
            rule("radio.payload_bits", radio.payload_bits.is_some(), !airtime, || {
                "is the size of an upload where radio.mode = \"payload\"".into()
            }),
            rule(
                "radio.attempts",
                radio.attempts > 1,
                lossy || radio.loss_threshold_db.is_some() || (combines && estimated),
                || {
                    let models = parts_with::<dyn Rate>(|facts| facts.loses);
                    format!(
                        "repeats lost uploads; set {models}, a loss of the rate model, \
                         radio.loss_threshold_db, or radio.combining beside an error of estimates"
                    )
                },
            ),
            rule(
                "radio.combining",
                combines,
                radio.attempts > 1 && (estimated || facts.rate.is_soft),
                || {
                    let models = parts_with::<dyn Rate>(|facts| facts.is_soft);
                    format!(
                        "combines the transmissions of radio.attempts above 1 over a channel that carries \
                         too little; set them, and radio.csi_error, radio.csi_delay_s or {models}"
                    )
                },
            ),
            rule("radio.report_floor", radio.report_floor.is_some(), schedule.report_bits > 0, || {
                "is for reports that take symbols; set schedule.report_bits, or leave it out".into()
            }),
            rule("schedule.report_bits", schedule.report_bits > 0, airtime, || {
                "takes symbols of a round's n, which radio.mode = \"payload\" has not; write \
                 clock.report_bits"
                    .into()
            }),
            rule("radio.profile", radio.profile != RadioConfig::default().profile, has_blocks, || {
                format!("is for {}", parts_with::<dyn Access>(|facts| facts.blocks.is_some()))
            }),
            rule(
                "radio.delay_spread_s",
                radio.delay_spread_s.is_some(),
                Profile::has_free_spread(&radio.profile),
                || "is for a radio.profile without delays of its own; leave it out".into(),
            ),
            rule(
                "radio.slots",
                radio.slots != RadioConfig::default().slots,
                facts.access.one_by_one && airtime,
                || {
                    let schemes = parts_with::<dyn Access>(|facts| facts.one_by_one);
                    format!("is for {schemes} and radio.mode = \"airtime\"")
                },
            ),
        ]
    }

    fn cell_rules(&self) -> Vec<Rule> {
        let Config { radio, cell, .. } = self.config;
        let facts = self.facts;
        let physical = radio.bandwidth_hz.is_some();
        let (pathloss, moves) = (facts.pathloss.has_loss, radio.speed_kmh > 0.0);
        let default = CellConfig::default();
        vec![
            rule("cell.pathloss", pathloss, physical, NEEDS_UNITS),
            rule("cell.layout", cell.layout != default.layout, pathloss, NEEDS_PATHLOSS),
            rule("cell.radius_m", cell.radius_m.is_some(), facts.layout.has_area, NEEDS_AREA),
            rule("cell.min_m", cell.min_m.is_some(), facts.layout.has_nearest, || {
                format!("is for {}", parts_with::<dyn Layout>(|facts| facts.has_nearest))
            }),
            rule("cell.height_bs_m", cell.height_bs_m.is_some(), facts.pathloss.heights, NEEDS_HEIGHTS),
            rule("cell.height_ut_m", cell.height_ut_m.is_some(), facts.pathloss.heights, NEEDS_HEIGHTS),
            rule("cell.los", cell.los.is_some(), facts.pathloss.line_of_sight, || {
                let laws = parts_with::<dyn PathLoss>(|facts| facts.line_of_sight);
                format!("is for {laws}, which distinguish line of sight from its absence")
            }),
            rule("cell.extrapolate", cell.extrapolate, facts.pathloss.has_domain, || {
                let laws = parts_with::<dyn PathLoss>(|facts| facts.has_domain);
                format!("is for path loss laws with a domain: {laws}")
            }),
            rule("cell.shadowing_db", cell.shadowing_db > 0.0, pathloss, NEEDS_PATHLOSS),
            rule("cell.correlation_m", cell.correlation_m > 0.0, cell.shadowing_db > 0.0, || {
                "is for shadowing; set cell.shadowing_db".into()
            }),
            rule("cell.drift", cell.drift, moves && pathloss && !facts.layout.moves, || {
                "moves devices with radio.speed_kmh through a cell with path loss, whose cell.layout does \
                 not move them itself; set both"
                    .into()
            }),
        ]
    }

    /// Rules of groups of devices and of the SNRs that they have.
    fn group_rules(&self) -> Vec<Rule> {
        let Config { radio, clock, energy, data, .. } = self.config;
        let grouped = matches!(radio.snr_db, Some(Snrs::Groups(_)))
            || clock.group_speeds.is_some()
            || energy.group_battery_j.is_some()
            || data.group_classes.is_some()
            || data.group_names.is_some();
        let anchored = radio.snr_db.is_some() && radio.bandwidth_hz.is_some();
        vec![
            rule("radio.snr_bandwidth_hz", radio.snr_bandwidth_hz.is_some(), anchored, || {
                "is the bandwidth at which radio.snr_db holds; it needs radio.snr_db and radio.bandwidth_hz"
                    .into()
            }),
            rule("radio.snr_power_dbm", radio.snr_power_dbm.is_some(), anchored, || {
                "is the power at which radio.snr_db holds; it needs radio.snr_db and radio.bandwidth_hz"
                    .into()
            }),
            rule("radio.group_sizes", radio.group_sizes.is_some(), grouped, || {
                "needs a list with one value for each group: radio.snr_db, clock.group_speeds, \
                 energy.group_battery_j, data.group_classes or data.group_names"
                    .into()
            }),
        ]
    }

    fn clock_rules(&self) -> Vec<Rule> {
        let Config { radio, clock, energy, .. } = self.config;
        let facts = self.facts;
        let physical = radio.bandwidth_hz.is_some();
        let computes = facts.compute.takes_time;
        let (default_clock, default_energy) = (ClockConfig::default(), EnergyConfig::default());
        vec![
            rule("clock.compute", computes, physical, NEEDS_UNITS),
            rule("clock.spread", clock.spread != default_clock.spread, computes, NEEDS_COMPUTE),
            rule("clock.group_speeds", clock.group_speeds.is_some(), computes, NEEDS_COMPUTE),
            rule("clock.jitter", clock.jitter != default_clock.jitter, computes, NEEDS_COMPUTE),
            rule("clock.downlink", clock.downlink != default_clock.downlink, physical, NEEDS_UNITS),
            rule("clock.report_bits", clock.report_bits > 0.0, physical, NEEDS_UNITS),
            rule(
                "clock.report_efficiency",
                clock.report_efficiency.is_some(),
                clock.report_bits > 0.0,
                || "is for reports that cost; set clock.report_bits".into(),
            ),
            rule("clock.deadline_s", clock.deadline_s.is_some(), physical, NEEDS_UNITS),
            rule("clock.pipeline", clock.pipeline, physical && computes, NEEDS_COMPUTE),
            rule(
                "energy.compute_w",
                energy.compute_w.is_some(),
                computes && !facts.compute.own_joules,
                || {
                    let models = parts_with::<dyn Compute>(|facts| facts.takes_time && !facts.own_joules);
                    format!("is for {models}; a model with joules of its own has energy.kappa")
                },
            ),
            rule("energy.kappa", energy.kappa.is_some(), facts.compute.own_joules, || {
                format!("is for {}", parts_with::<dyn Compute>(|facts| facts.own_joules))
            }),
            rule("energy.circuit_w", energy.circuit_w > 0.0, physical, NEEDS_UNITS),
            rule(
                "energy.pa_efficiency",
                energy.pa_efficiency < default_energy.pa_efficiency,
                physical,
                NEEDS_UNITS,
            ),
            // A property of the device: the downlink may be changed beside it, and a caution says so.
            rule("energy.receive_w", energy.receive_w > 0.0, physical, NEEDS_UNITS),
            rule("energy.idle_w", energy.idle_w > 0.0, physical, NEEDS_UNITS),
            rule("energy.battery_j", energy.battery_j > 0.0, physical, NEEDS_UNITS),
            rule("energy.group_battery_j", energy.group_battery_j.is_some(), physical, NEEDS_UNITS),
        ]
    }
}
