//! Figures of runs in physical units: phases of a round, energy, the cell and its SNRs.

use crate::figure::{CellMap, LineChart, StackedBars, cdf, cell_map};
use fedlink_study::costs::{KINDS, PHASES};
use fedlink_study::link::cell_positions;
use fedlink_study::results::{CurveResult, RunResult};

/// Named series of SNRs in decibels.
pub type Snrs = Vec<(String, Vec<f64>)>;

/// Series of SNRs that one chart shows at most.
const MAX_SERIES: usize = 16;

/// The seconds of a round of each curve, phase upon phase.
pub fn phases_chart(title: &str, curves: impl IntoIterator<Item = (String, [f64; 4])>) -> StackedBars {
    StackedBars {
        title: title.to_owned(),
        x_label: String::new(),
        y_label: "mean duration of a round (s)".into(),
        parts: PHASES.map(str::to_owned).into(),
        bars: curves.into_iter().map(|(label, phases)| (label, phases.into())).collect(),
    }
}

/// The joules of a round of each curve, kind upon kind.
pub fn energy_chart(title: &str, curves: impl IntoIterator<Item = (String, [f64; 5])>) -> StackedBars {
    StackedBars {
        title: title.to_owned(),
        x_label: String::new(),
        y_label: "mean energy of all devices in a round (J)".into(),
        parts: KINDS.map(str::to_owned).into(),
        bars: curves.into_iter().map(|(label, energy)| (label, energy.into())).collect(),
    }
}

/// The joules of each device of a curve in all rounds; of several seeds, of each rank.
pub fn device_energy_chart(title: &str, seeds: usize, devices: &[[f64; 5]]) -> StackedBars {
    let (first, x_label) = match seeds {
        0 | 1 => (0, "device".to_owned()),
        seeds => (1, format!("rank of a device in its seed, mean over {seeds} seeds")),
    };
    let bar = |(i, energy): (usize, &[f64; 5])| ((first + i).to_string(), energy.to_vec());
    StackedBars {
        title: title.to_owned(),
        x_label,
        y_label: "energy of a device in all rounds (J)".into(),
        parts: KINDS.map(str::to_owned).into(),
        bars: devices.iter().enumerate().map(bar).collect(),
    }
}

/// The cell of a curve at its first seed, with how often each device was scheduled there; none if its devices
/// are in no cell.
pub fn curve_cell(curve: &CurveResult) -> Option<CellMap> {
    let radio = curve.radio()?;
    let cell = radio.cell()?;
    let (positions, gains) = cell_positions(cell);
    let run = curve.runs.iter().find(|run| run.seed == curve.config.run.seed);
    let scheduled = run.map(RunResult::scheduled_shares);
    let mut map = cell_map(&format!("Cell: {}", curve.label), &positions, &gains, scheduled.as_deref());
    map.subtitle = match (curve.runs.len() > 1, cell.moves()) {
        (false, false) => String::new(),
        (true, false) => format!("seed {}", curve.config.run.seed),
        (false, true) => "where the devices are in the first round".into(),
        (true, true) => format!("seed {}, where the devices are in the first round", curve.config.run.seed),
    };
    Some(map)
}

/// The SNRs of every curve: those that are the same are there once. A single radio has its groups of devices
/// as series, several have a series each, named by the first curve that has it.
pub fn snr_series(curves: &[CurveResult]) -> Snrs {
    let mut radios: Vec<(String, Snrs)> = Vec::new();
    for curve in curves {
        let snrs = curve.snrs();
        if snrs.is_empty() || radios.iter().any(|(_, known)| *known == snrs) {
            continue;
        }
        radios.push((curve.label.clone(), snrs));
        if radios.len() == MAX_SERIES {
            break;
        }
    }
    match radios.len() {
        1 => radios.remove(0).1,
        _ => radios
            .into_iter()
            .map(|(label, groups)| (label, groups.into_iter().flat_map(|(_, snrs)| snrs).collect()))
            .collect(),
    }
}

/// The distribution of the SNRs of devices and rounds.
pub fn snr_chart(title: &str, series: &[(String, Vec<f64>)]) -> LineChart {
    cdf(title, "SNR of a device in a round, were it scheduled (dB)", series)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink_study::example::{curve_of, with_units};

    #[test]
    fn a_bar_of_a_device_is_its_energy_by_kind() {
        let chart = device_energy_chart("x", 1, &[[1.0, 2.0, 3.0, 4.0, 5.0]]);
        assert_eq!(chart.bars, [("0".to_owned(), vec![1.0, 2.0, 3.0, 4.0, 5.0])]);
        assert_eq!(device_energy_chart("x", 3, &[[0.0; 5]]).bars[0].0, "1");
        assert_eq!(phases_chart("x", [("bc".to_owned(), [1.0; 4])]).parts.len(), 4);
    }

    #[test]
    fn curves_of_one_radio_share_their_snrs_and_a_curve_without_a_cell_has_no_map() {
        let mut curve = with_units(curve_of("bc", &[&[0.5]]));
        curve.config.run.rounds = 5;
        let mut other = curve.clone();
        other.label = "bn2".into();
        let series = snr_series(&[curve.clone(), other.clone()]);
        assert_eq!(series.len(), 1);
        assert_eq!((series[0].0.as_str(), series[0].1.len()), ("all devices", 5 * 40));
        other.config.radio.power_dbm = Some(10.0);
        let names: Vec<String> =
            snr_series(&[curve.clone(), other]).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["bc", "bn2"]);
        assert_eq!(curve_cell(&curve), None);
        curve.config.cell.layout = "disc".into();
        curve.config.cell.pathloss = "3gpp-macro".into();
        let map = curve_cell(&curve).unwrap();
        assert_eq!((map.positions_m.len(), map.shades.len()), (40, 40));
        assert_eq!(map.scheduled, Some(vec![0.1; 40]));
        // No device is farther from the server than 500 m, nor nearer than 35 m.
        let far = map.positions_m.iter().map(|(x, y)| x.hypot(*y));
        assert!(far.clone().all(|d| (34.9..500.1).contains(&d)), "{:?}", far.collect::<Vec<_>>());
        assert!(snr_series(&[curve_of("bc", &[&[0.5]])]).is_empty());
    }
}
