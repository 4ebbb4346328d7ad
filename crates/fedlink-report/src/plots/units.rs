//! Charts of runs in physical units: phases of a round, energy, the cell and its SNRs.

use crate::chart::{Bars, CellMap, Lines, Look, cdf};
use crate::looks::legend;
use fedlink_study::costs::{KINDS, PHASES};
use fedlink_study::link::cell_positions;
use fedlink_study::results::{CurveResult, RunResult};

/// The most series of SNRs in one chart.
const MAX_SERIES: usize = 16;

/// The seconds per round of each curve, in phases; none without curves.
pub fn phases_chart(title: &str, curves: impl Iterator<Item = (String, [f64; 4])>) -> Option<Bars> {
    stacked(title, "mean duration of a round (s)", &PHASES, curves)
}

/// The joules per round of each curve, by kind; none without curves.
pub fn energy_chart(title: &str, curves: impl Iterator<Item = (String, [f64; 5])>) -> Option<Bars> {
    stacked(title, "mean energy of all devices in a round (J)", &KINDS, curves)
}

fn stacked<const N: usize>(
    title: &str,
    y_label: &str,
    parts: &[&str; N],
    curves: impl Iterator<Item = (String, [f64; N])>,
) -> Option<Bars> {
    let bars: Vec<(String, Vec<f64>)> = curves.map(|(label, values)| (label, values.to_vec())).collect();
    (!bars.is_empty()).then(|| Bars::stacked(title, "", y_label, parts, &bars))
}

/// The cell of a curve at its first seed, with the share of rounds of each device; none if its devices
/// are in no cell.
pub fn cell_chart(curve: &CurveResult) -> Option<CellMap> {
    let radio = curve.radio()?;
    let cell = radio.cell()?;
    let (positions, gains) = cell_positions(cell);
    let run = curve.runs.iter().find(|run| run.seed == curve.spec.run.seed);
    let scheduled = run.map(RunResult::scheduled_shares);
    let mut map = CellMap::new(&format!("Cell: {}", curve.label), &positions, &gains, scheduled.as_deref());
    map.subtitle = match (curve.runs.len() > 1, cell.moves()) {
        (false, false) => String::new(),
        (true, false) => format!("seed {}", curve.spec.run.seed),
        (false, true) => "positions in the first round".into(),
        (true, true) => format!("seed {}, positions in the first round", curve.spec.run.seed),
    };
    Some(map)
}

/// The distribution of the SNRs of devices and rounds; none if no curve has any. A radio of several
/// curves occurs once. The series of a single radio are its groups of devices; several radios have a
/// series each, with the name and the look of the first curve that has it.
pub fn snr_chart(title: &str, curves: &[CurveResult]) -> Option<Lines> {
    type Groups = Vec<(String, Vec<f64>)>;
    let mut radios: Vec<(String, Look, Groups)> = Vec::new();
    for (curve, entry) in curves.iter().zip(legend(curves)) {
        let snrs = curve.snrs();
        if !snrs.is_empty() && radios.iter().all(|(_, _, known)| *known != snrs) && radios.len() < MAX_SERIES
        {
            radios.push((curve.label.clone(), entry.look, snrs));
        }
    }
    let series: Vec<(String, Option<Look>, Vec<f64>)> = match &mut radios[..] {
        [] => return None,
        [(_, _, groups)] => groups.drain(..).map(|(name, snrs)| (name, None, snrs)).collect(),
        several => several
            .iter_mut()
            .map(|(label, look, groups)| {
                let look = Some(Look { marker: None, ..*look });
                (label.clone(), look, groups.drain(..).flat_map(|(_, snrs)| snrs).collect())
            })
            .collect(),
    };
    Some(cdf(title, "SNR of a device in a round, if it is scheduled (dB)", &series))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink_study::example::{curve_of, with_units};

    #[test]
    fn a_bar_has_a_part_for_each_phase() {
        let chart = phases_chart("x", [("bc".to_owned(), [1.0; 4])].into_iter()).unwrap();
        assert_eq!((chart.key.len(), chart.bars[0].spans.len(), chart.bars[0].spans[3].high), (4, 4, 4.0));
        assert_eq!(energy_chart("x", std::iter::empty()), None);
    }

    #[test]
    fn curves_of_one_radio_share_their_snrs_and_a_curve_without_a_cell_has_no_map() {
        let mut curve = with_units(curve_of("bc", &[&[0.5]]));
        fedlink_study::example::change(&mut curve, |config| config.run.rounds = 5);
        let mut other = curve.clone();
        other.label = "bn2".into();
        let chart = snr_chart("", &[curve.clone(), other.clone()]).unwrap();
        let labels =
            |chart: &Lines| -> Vec<String> { chart.key.iter().map(|entry| entry.label.clone()).collect() };
        assert_eq!(labels(&chart), ["all devices"]);
        // Two corners for each of 5·40 SNRs.
        assert_eq!(chart.panels[0].series[0].runs[0].len(), 2 * 5 * 40);
        fedlink_study::example::change(&mut other, |config| config.radio.power_dbm = Some(10.0));
        let chart = snr_chart("", &[curve.clone(), other]).unwrap();
        assert_eq!(labels(&chart), ["bc", "bn2"]);
        assert_eq!(chart.key[1].look.color, Look::of(1).color);
        assert_eq!(cell_chart(&curve), None);
        fedlink_study::example::change(&mut curve, |config| {
            config.cell.layout = "disc".into();
            config.cell.pathloss = "3gpp-macro".into();
        });
        let map = cell_chart(&curve).unwrap();
        assert_eq!(map.dots.len(), 40);
        assert!(map.dots.iter().all(|dot| dot.gain_db.is_some() && dot.scheduled == Some(0.1)));
        // No device is farther from the server than 500 m or nearer than 35 m.
        let far: Vec<f64> = map.dots.iter().map(|dot| dot.east_m.hypot(dot.north_m)).collect();
        assert!(far.iter().all(|d| (34.9..500.1).contains(d)), "{far:?}");
        assert_eq!(snr_chart("", &[curve_of("bc", &[&[0.5]])]), None);
    }
}
