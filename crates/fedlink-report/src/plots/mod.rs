//! The charts of an experiment, as SVG and PNG in `plots/`.

mod devices;
mod panels;
mod quantities;
mod split;
mod units;

use crate::chart::{Curve, Entry, Lines};
use crate::error::Error;
use crate::figure::Figure;
use crate::file_names::file_names;
use crate::looks::{ColorKey, distinct, legend, panel_legend};
pub(crate) use devices::{device_energy_chart, power_chart, scheduled_chart};
use fedlink_study::output::OutputFolder;
use fedlink_study::results::CurveResult;
use fedlink_study::split::Splits;
use fedlink_study::statistics::Estimate;
pub(crate) use quantities::{Across, Up};
pub(crate) use split::split_chart;
pub(crate) use units::{cell_chart, energy_chart, phases_chart, snr_chart};

/// The charts of curves: file, horizontal quantity, vertical quantity.
const CHARTS: [(&str, Across, Up); 8] = [
    ("accuracy-by-bits", Across::Bits, Up::Accuracy),
    ("accuracy-by-symbols", Across::Symbols, Up::Accuracy),
    ("accuracy-by-seconds", Across::Seconds, Up::Accuracy),
    ("accuracy-by-joules", Across::Joules, Up::Accuracy),
    ("loss", Across::Rounds, Up::Loss),
    ("train-loss", Across::Rounds, Up::TrainLoss),
    ("q", Across::Rounds, Up::MeanQ),
    ("bits", Across::Rounds, Up::BitsPerRound),
];

/// With more curves there are no files of single curves.
const MAX_SINGLE: usize = 20;

/// Writes curves by round, bits, symbols and, with units, seconds and joules; accuracy for each value of
/// each swept key; for each curve the schedule and the energy of devices; the cell and its SNRs if there
/// are any; the splits of the data.
pub fn write(
    name: &str,
    results: &[CurveResult],
    splits: &Splits,
    folder: &OutputFolder,
) -> Result<(), Error> {
    let key = legend(results);
    let all: Vec<&CurveResult> = results.iter().collect();
    let costs = results.iter().any(CurveResult::has_costs);
    for AccuracyChart { file, chart, .. } in accuracy_charts(name, results) {
        write_figure(folder, &file, &chart)?;
    }
    for (file, x, y) in CHARTS.into_iter().filter(|(_, x, _)| costs || !x.needs_units()) {
        write_figure(folder, file, &chart(name, &all, &key, x, y))?;
    }
    let multiples = small_multiples(name, results);
    let names: Vec<&str> = multiples.iter().map(|(file, _)| file.as_str()).collect();
    for ((_, chart), file) in multiples.iter().zip(file_names(&names)) {
        write_figure(folder, &file, chart)?;
    }
    let phases = results.iter().filter_map(|curve| Some((curve.label.clone(), curve.phases_per_round()?)));
    if let Some(chart) = phases_chart(&format!("{name}: seconds per round"), phases) {
        write_figure(folder, "phases", &chart)?;
    }
    let energy = results.iter().filter_map(|curve| Some((curve.label.clone(), curve.energy_per_round()?)));
    if let Some(chart) = energy_chart(&format!("{name}: joules per round"), energy) {
        write_figure(folder, "energy", &chart)?;
    }
    if let Some(chart) = snr_chart(&format!("{name}: SNR"), results) {
        write_figure(folder, "snr", &chart)?;
    }
    let labels: Vec<&str> = results.iter().map(|curve| curve.label.as_str()).collect();
    // With more curves, the page draws the one that a reader chooses.
    let single = if results.len() > MAX_SINGLE { &[] } else { results };
    for (curve, label) in single.iter().zip(file_names(&labels)) {
        write_figure(folder, &format!("scheduled-{label}"), &scheduled_chart(curve))?;
        write_figure(folder, &format!("power-{label}"), &power_chart(curve))?;
        let energy = curve.device_energy();
        if !energy.is_empty() {
            let title = format!("Energy by device: {}", curve.label);
            let chart = device_energy_chart(&title, curve.runs.len(), &energy);
            write_figure(folder, &format!("energy-{label}"), &chart)?;
        }
        if let Some(map) = cell_chart(curve) {
            write_figure(folder, &format!("cell-{label}"), &map)?;
        }
    }
    for (file, curve, report) in splits.named() {
        write_figure(folder, &file, &split_chart(report, curve))?;
    }
    Ok(())
}

/// Accuracy by round of some curves.
pub(crate) struct AccuracyChart<'a> {
    /// The name of its files.
    pub file: String,
    /// The chart.
    pub chart: Lines,
    /// Its curves.
    pub curves: Vec<&'a CurveResult>,
}

/// Accuracy by round: of all curves, and of the curves of each value of each swept key.
pub(crate) fn accuracy_charts<'a>(name: &str, results: &'a [CurveResult]) -> Vec<AccuracyChart<'a>> {
    let key = legend(results);
    let of = |file: String, title: &str, places: &[usize]| {
        let curves: Vec<&CurveResult> = places.iter().map(|&i| &results[i]).collect();
        let key: Vec<Entry> = places.iter().map(|&i| key[i].clone()).collect();
        AccuracyChart { file, chart: chart(title, &curves, &key, Across::Rounds, Up::Accuracy), curves }
    };
    let all = of("accuracy".into(), name, &(0..results.len()).collect::<Vec<_>>());
    let panels = panels::panels(results);
    let names: Vec<&str> = panels.iter().map(|panel| panel.name.as_str()).collect();
    let panel = |(panel, file): (&panels::Panel, String)| {
        of(format!("accuracy-{file}"), &format!("{name}: {}", panel.name), &panel.curves)
    };
    let panels: Vec<AccuracyChart> = panels.iter().zip(file_names(&names)).map(panel).collect();
    std::iter::once(all).chain(panels).collect()
}

fn chart(title: &str, curves: &[&CurveResult], key: &[Entry], x: Across, y: Up) -> Lines {
    let curves = curves.iter().zip(key).map(|(curve, entry)| line(curve, entry, x, y)).collect();
    Lines::new(title, &x.quantity(), &y.quantity(), curves)
}

/// Accuracy by round, a panel for each value of a swept key; none if one chart of all curves is readable,
/// or nothing is swept besides the key of the colors.
pub(crate) fn small_multiples(name: &str, results: &[CurveResult]) -> Vec<(String, Lines)> {
    let Some(colors) = ColorKey::of(results) else { return Vec::new() };
    let keys = distinct(results.iter().flat_map(|curve| &curve.keys).map(|(key, _)| key));
    let mut charts = Vec::new();
    for key in keys.into_iter().filter(|key| **key != colors.key) {
        let mut values = distinct(results.iter().map(|curve| curve.swept(key)));
        // A curve without the key is in every panel, as a reference.
        values.retain(|value| !value.is_empty());
        if values.len() < 2 {
            continue;
        }
        let legend = panel_legend(results, &colors, key);
        let short = key.rsplit('.').next().unwrap_or(key);
        let panel = |value: &&str| {
            let of_value =
                results.iter().zip(&legend).filter(|(curve, _)| [value, ""].contains(&curve.swept(key)));
            let curves = of_value.map(|(curve, entry)| line(curve, entry, Across::Rounds, Up::Accuracy));
            (format!("{short} = {value}"), curves.collect())
        };
        let title = if name.is_empty() { String::new() } else { format!("{name}: test accuracy") };
        let (x, y) = (Across::Rounds.quantity(), Up::Accuracy.quantity());
        let chart = Lines::in_panels(title, &x, &y, values.iter().map(panel).collect());
        charts.push((format!("panels-{short}"), chart));
    }
    charts
}

/// Writes a chart as SVG and PNG.
fn write_figure(folder: &OutputFolder, name: &str, chart: &dyn Figure) -> Result<(), Error> {
    folder.write(&format!("plots/{name}.svg"), chart.svg())?;
    Ok(folder.write(&format!("plots/{name}.png"), chart.png()?)?)
}

/// Means over the seeds at every round that all of them have reached, with the 95 % band, limited to the
/// range of the quantity.
fn line(curve: &CurveResult, entry: &Entry, x: Across, y: Up) -> Curve {
    let up = curve.by_row(|row| y.value(row));
    let (low, high) = y.range();
    let band = |estimate: &Estimate| estimate.ends_within(low, high);
    Curve {
        label: entry.label.clone(),
        group: entry.group.clone(),
        look: Some(entry.look),
        band: (curve.runs.len() > 1).then(|| up.iter().map(band).collect()),
        points: x.values(curve).into_iter().zip(up.iter().map(|estimate| estimate.mean)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink_study::example::{curve_of, with_units};

    fn drawn(curve: &CurveResult, x: Across, y: Up) -> Curve {
        line(curve, &Entry::default(), x, y)
    }

    #[test]
    fn a_band_stays_within_the_range_of_its_quantity() {
        // 0.5 ± 12.7·0.4, and a loss of 2.3 that both seeds have.
        let wide = curve_of("bc", &[&[0.1], &[0.9]]);
        assert_eq!(drawn(&wide, Across::Rounds, Up::Accuracy).band, Some(vec![(0.0, 1.0)]));
        assert_eq!(drawn(&wide, Across::Rounds, Up::Loss).band, Some(vec![(2.3, 2.3)]));
    }

    #[test]
    fn seconds_and_joules_are_horizontal_axes_of_runs_that_have_them() {
        let curve = with_units(curve_of("bc", &[&[0.5, 0.7]]));
        let points = |x| drawn(&curve, x, Up::Accuracy).points;
        // A quarter of a second and 3 J per round, 5000 symbols of 5 ms at 1 MHz.
        assert_eq!(points(Across::Seconds), [(2.5, 0.5), (5.0, 0.7)]);
        assert_eq!(points(Across::Joules), [(30.0, 0.5), (60.0, 0.7)]);
        assert_eq!(points(Across::Symbols), [(50_000.0, 0.5), (100_000.0, 0.7)]);
        let without = drawn(&curve_of("bc", &[&[0.5]]), Across::Seconds, Up::Accuracy);
        assert!(without.points[0].0.is_nan());
    }

    #[test]
    fn panels_have_the_colors_of_all_curves_and_their_bands() {
        let pairs = [("bc", "1"), ("bc", "2"), ("bn2", "1"), ("bn2", "2")];
        let results = pairs.map(|(policy, k)| {
            let mut curve = curve_of(&format!("{policy} {k}"), &[&[0.5, 0.6], &[0.6, 0.7]]);
            fedlink_study::example::change(&mut curve, |config| config.schedule.policy = policy.into());
            curve.keys = vec![("schedule.policy".into(), policy.into()), ("schedule.k".into(), k.into())];
            curve
        });
        let charts = accuracy_charts("x", &results);
        assert_eq!(charts.len(), 1 + 2 + 2);
        let all = &charts[0].chart;
        for chart in charts.iter().map(|chart| &chart.chart) {
            assert!(chart.key.iter().all(|entry| all.key.contains(entry)), "{:?}", chart.key);
            assert!(chart.panels[0].series.iter().all(|series| series.bands.len() == 1));
            assert_eq!(chart.y.label, "test accuracy (%)");
        }
    }

    #[test]
    fn the_files_of_seconds_and_joules_are_there_for_runs_that_have_them() {
        let written = |curve: CurveResult| {
            let base = tempfile::tempdir().unwrap();
            let folder = OutputFolder::open(base.path()).unwrap();
            write("x", &[curve], &Splits::default(), &folder).unwrap();
            let files = std::fs::read_dir(base.path().join("plots")).unwrap();
            let mut files: Vec<std::path::PathBuf> = files.map(|file| file.unwrap().path()).collect();
            files.retain(|file| file.extension() == Some("svg".as_ref()));
            let mut files: Vec<String> =
                files.iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect();
            files.sort();
            files
        };
        let before = [
            "accuracy-by-bits.svg",
            "accuracy-by-symbols.svg",
            "accuracy.svg",
            "bits.svg",
            "loss.svg",
            "power-bc.svg",
            "q.svg",
            "scheduled-bc.svg",
            "train-loss.svg",
        ];
        assert_eq!(written(curve_of("bc", &[&[0.5]])), before);
        let mut more: Vec<&str> = before.to_vec();
        more.extend([
            "accuracy-by-joules.svg",
            "accuracy-by-seconds.svg",
            "cell-bc.svg",
            "energy-bc.svg",
            "energy.svg",
            "phases.svg",
            "snr.svg",
        ]);
        more.sort_unstable();
        let mut curve = with_units(curve_of("bc", &[&[0.5]]));
        fedlink_study::example::change(&mut curve, |config| {
            config.cell.layout = "disc".into();
            config.cell.pathloss = "3gpp-macro".into();
        });
        assert_eq!(written(curve), more);
    }
}
