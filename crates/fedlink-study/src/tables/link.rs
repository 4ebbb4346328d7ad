//! The radio of a curve: its units, its symbols and the positions of its devices.

use crate::statistics::estimate;
use crate::tables::groups::group_label;
use crate::tables::results::CurveResult;
use fedlink::base::units::{DeviceId, to_db};
use fedlink::radio::budget::{LinkBudget, group_of};
use fedlink::radio::cell::Cell;
use fedlink::radio::{Radio, Snrs};
use fedlink::record::Row;
use fedlink::spec::Spec;
use fedlink::system::build::{link_budget, radio};

/// Rounds over which the SNR of a device is sampled.
const SAMPLED_ROUNDS: u64 = 200;
/// Samples of the SNR of all devices together, at most.
const MAX_SAMPLES: u64 = 40_000;

/// Channel symbols that a run used until each evaluated round: n per round. If the bits of an upload are
/// fixed, a round uses the symbols of its uplink's duration.
pub(crate) fn symbols_until(rows: &[Row], spec: &Spec) -> Vec<f64> {
    let budget = link_budget(spec);
    let fixed_bits = budget.bandwidth_hz.is_some() && budget.uplink_s.is_none();
    // With fixed bits the symbols of the budget are those of a second.
    let per_round =
        |row: &Row| budget.symbols as f64 * if fixed_bits { row.up_s.unwrap_or(f64::NAN) } else { 1.0 };
    let (mut used, mut before) = (0.0, 0);
    let until = |row: &Row| {
        used += per_round(row) * row.round.saturating_sub(before) as f64;
        before = row.round;
        used
    };
    rows.iter().map(until).collect()
}

/// Channel symbols that a run used until a round; none if rounds may differ, as with fixed bits.
pub(crate) fn symbols_at(round: u64, spec: &Spec) -> Option<f64> {
    let budget = link_budget(spec);
    let fixed_bits = budget.bandwidth_hz.is_some() && budget.uplink_s.is_none();
    (!fixed_bits).then_some(budget.symbols as f64 * round as f64)
}

impl CurveResult {
    /// Power, noise and symbols of its configuration; watts where it has a bandwidth.
    pub fn link_budget(&self) -> LinkBudget {
        link_budget(&self.spec)
    }

    /// Whether its runs have seconds and joules.
    pub fn has_costs(&self) -> bool {
        self.runs
            .iter()
            .any(|run| run.outcome.phases.is_some() || run.rows.iter().any(|r| r.total_seconds.is_some()))
    }

    /// Whether its powers are watts.
    pub fn has_units(&self) -> bool {
        self.spec.radio.bandwidth_hz.is_some()
    }

    /// P̄, the allowed average power of a device: watts if the radio has units, otherwise `radio.power`.
    pub fn allowed_power(&self) -> f64 {
        self.link_budget().average
    }

    /// A power as text: in dBm if the radio has units.
    pub fn power_text(&self, power: f64) -> String {
        if self.has_units() { format!("{:.2} dBm", to_dbm(power)) } else { format!("{power:.2}") }
    }

    /// Channel symbols used until each evaluated round that all seeds have reached: n per round. If the bits
    /// of an upload are fixed, a round uses the symbols of its uplink's duration, mean over the seeds.
    pub fn symbols_by_row(&self) -> Vec<f64> {
        let runs: Vec<Vec<f64>> = self.runs.iter().map(|run| symbols_until(&run.rows, &self.spec)).collect();
        let reached = runs.iter().map(Vec::len).min().unwrap_or(0);
        (0..reached).map(|i| estimate(runs.iter().map(|run| run[i])).mean).collect()
    }

    /// The SNR in decibels of the scheduled devices, sampled over rounds at the first seed, for each group of
    /// `radio.snr_db` or for all devices. Empty if the radio has no units, no mean SNRs and no cell, or
    /// cannot be built.
    pub fn snrs(&self) -> Vec<(String, Vec<f64>)> {
        let config = &self.spec.radio;
        let Some(radio) = self
            .radio()
            .filter(|radio| self.has_units() || config.snr_db.is_some() || radio.cell().is_some())
        else {
            return Vec::new();
        };
        let levels = config.snr_db.as_ref().map_or(&[][..], Snrs::levels);
        let devices = radio.devices();
        let group = |device| match levels.len() {
            0 | 1 => 0,
            groups => group_of(device, groups, config.group_sizes.as_deref(), devices),
        };
        let groups: Vec<usize> = DeviceId::all(devices).map(group).collect();
        let name = |group: usize| match levels.len() {
            0 | 1 => "all devices".to_owned(),
            _ => group_label(&self.spec, group),
        };
        let snrs = sampled_snrs(&radio, self.spec.run.rounds, &groups).into_iter().enumerate();
        snrs.filter(|(_, snrs)| !snrs.is_empty()).map(|(group, snrs)| (name(group), snrs)).collect()
    }

    /// The radio of the runs at the first seed; none if it has a custom part or its file is missing.
    pub fn radio(&self) -> Option<Radio> {
        // The number of weights matters for the default payload only.
        radio(&self.spec, 1).ok()
    }
}

/// A power in dBm: 10·log10(P / 1 mW).
pub fn to_dbm(watt: f64) -> f64 {
    to_db(watt) + 30.0
}

/// The positions of the devices of a cell in the first round, in meters east and north of the server, and
/// their mean gains in decibels.
pub fn cell_positions(cell: &Cell) -> (Vec<(f64, f64)>, Vec<f64>) {
    let devices = DeviceId::all(cell.devices());
    let position = |device| {
        let at = cell.position(0, device);
        (at.x_m, at.y_m)
    };
    (devices.clone().map(position).collect(), devices.map(|device| cell.gain_db(0, device)).collect())
}

/// The SNR in decibels of the devices of each group if they are scheduled, by the server's knowledge, sampled
/// over the first rounds; `groups` has the group of each device. Rounds in which a device cannot transmit are
/// left out.
fn sampled_snrs(radio: &Radio, rounds: u64, groups: &[usize]) -> Vec<Vec<f64>> {
    let count = groups.iter().max().map_or(0, |last| last + 1);
    let mut snrs = vec![Vec::new(); count];
    let rounds = rounds.clamp(1, SAMPLED_ROUNDS).min((MAX_SAMPLES / groups.len().max(1) as u64).max(1));
    for t in 0..rounds {
        let links = radio.links(t);
        for (device, &group) in DeviceId::all(radio.devices()).zip(groups) {
            if let Some(snr) = links.known.snr(device).filter(|snr| *snr > 0.0) {
                snrs[group].push(to_db(snr));
            }
        }
    }
    snrs
}

#[cfg(test)]
mod tests {
    use crate::example::curve_of;

    #[test]
    fn a_curve_without_units_keeps_its_own_power_and_symbols() {
        let mut curve = curve_of("bc", &[&[0.5, 0.6]]);
        crate::example::change(&mut curve, |config| {
            config.radio.power = 2.0;
            config.radio.symbols = 700;
        });
        assert!(!curve.has_units() && !curve.has_costs());
        assert_eq!((curve.allowed_power(), curve.power_text(1.066)), (2.0, "1.07".to_owned()));
        assert_eq!(curve.symbols_by_row(), [7000.0, 14_000.0]);
    }

    #[test]
    fn with_units_powers_are_watts_and_symbols_follow_from_band_and_time() {
        let mut curve = curve_of("bc", &[&[0.5, 0.6]]);
        crate::example::change(&mut curve, |config| {
            config.radio.bandwidth_hz = Some(2e5);
            config.radio.uplink_s = Some(0.01);
            config.radio.power_dbm = Some(20.0);
        });
        assert!((curve.allowed_power() - 0.1).abs() < 1e-12);
        assert_eq!(curve.power_text(0.1), "20.00 dBm");
        // 2000 symbols in a round, 10 rounds between evaluations.
        assert_eq!(curve.symbols_by_row(), [20_000.0, 40_000.0]);
    }

    #[test]
    fn fixed_bits_use_the_symbols_of_their_duration() {
        let mut curve = curve_of("bc", &[&[0.5, 0.6]]);
        crate::example::change(&mut curve, |config| {
            config.radio.bandwidth_hz = Some(1000.0);
            config.radio.mode = fedlink::radio::PayloadMode::Payload;
        });
        for (row, up_s) in curve.runs[0].rows.iter_mut().zip([0.5, 0.25]) {
            row.up_s = Some(up_s);
        }
        // Ten rounds of half a second, then ten of a quarter, at 1000 symbols per second.
        assert_eq!(curve.symbols_by_row(), [5000.0, 7500.0]);
    }

    #[test]
    fn the_sampled_snrs_are_those_of_the_groups() {
        let mut curve = curve_of("bc", &[&[0.5]]);
        crate::example::change(&mut curve, |config| {
            config.data.devices = 4;
            config.schedule.k = 2;
            config.radio.snr_db = Some(fedlink::radio::Snrs::Groups(vec![20.0, 0.0]));
            config.radio.fading = "static".into();
            config.run.rounds = 3;
        });
        let snrs = curve.snrs();
        let names: Vec<(&str, usize)> = snrs.iter().map(|(name, of)| (name.as_str(), of.len())).collect();
        assert_eq!(names, [("group of 20 dB", 6), ("group of 0 dB", 6)]);
        // The SNR of a group is that while its devices send, at any K.
        for ((_, snrs), level) in snrs.iter().zip([20.0, 0.0]) {
            assert!(snrs.iter().all(|snr| (snr - level).abs() < 1e-9), "{snrs:?}");
        }
        crate::example::change(&mut curve, |config| config.radio.snr_db = None);
        assert!(curve.snrs().is_empty());
    }
}
