//! The plots of an experiment, as SVG and PNG in `plots/`.

use crate::costs::{curve_cell, device_energy_chart, energy_chart, phases_chart, snr_chart, snr_series};
use crate::error::Error;
use crate::families::{compared_key, styles, styles_without};
use crate::figure::{BarChart, Curve, CurveStyle, Figure, LineChart, SmallMultiples};
use crate::file_names::file_names;
use crate::panels::panels;
use fedlink::record::Row;
use fedlink_study::output::OutputFolder;
use fedlink_study::results::{CurveResult, RunResult};
use fedlink_study::statistics::Estimate;

/// A number of a row.
type Value = fn(&Row) -> f64;

/// What runs to the right: a number of a row, or one that follows from the radio of a curve.
#[derive(Clone, Copy)]
enum Across {
    Row(Value),
    Symbols,
}

const ROUND: Across = Across::Row(|row| row.round as f64);
const ACCURACY: Value = |row| row.test_accuracy;

/// A figure of curves: file, what runs to the right and upwards, each with its name.
type Chart = (&'static str, &'static str, Across, &'static str, Value);

const CHARTS: [Chart; 7] = [
    ("accuracy", "round", ROUND, "test accuracy", ACCURACY),
    ("accuracy-by-bits", "bits sent", Across::Row(|row| row.total_bits), "test accuracy", ACCURACY),
    ("accuracy-by-symbols", "channel symbols used", Across::Symbols, "test accuracy", ACCURACY),
    ("loss", "round", ROUND, "test loss", |row| row.test_loss),
    ("train-loss", "round", ROUND, "training loss", |row| row.train_loss),
    ("q", "round", ROUND, "q, mean since the evaluation before", |row| row.mean_q),
    ("bits", "round", ROUND, "bits a round, mean since the evaluation before", |row| row.bits),
];

/// Those of runs that have seconds and joules.
const COST_CHARTS: [Chart; 2] = [
    ("accuracy-by-seconds", "time (s)", Across::Row(seconds), "test accuracy", ACCURACY),
    ("accuracy-by-joules", "energy of all devices (J)", Across::Row(joules), "test accuracy", ACCURACY),
];

fn seconds(row: &Row) -> f64 {
    row.total_seconds.unwrap_or(f64::NAN)
}

fn joules(row: &Row) -> f64 {
    row.total_joules.unwrap_or(f64::NAN)
}

/// Curves by round, bits, symbols and, where the radio has units, seconds and joules; accuracy for each value
/// of each swept key; for each curve who was scheduled and what it spent; the cell and its SNRs where there
/// are any.
pub fn write(name: &str, results: &[CurveResult], folder: &OutputFolder) -> Result<(), Error> {
    let all: Vec<&CurveResult> = results.iter().collect();
    let costs = results.iter().any(CurveResult::has_costs);
    let cost_charts = if costs { &COST_CHARTS[..] } else { &[] };
    for &(file, x_label, x, y_label, y) in CHARTS.iter().chain(cost_charts) {
        write_figure(folder, file, &chart(name, &all, (x_label, x), (y_label, y)))?;
    }
    write_costs(name, results, folder)?;
    let panels = panels(results);
    let panel_names: Vec<&str> = panels.iter().map(|panel| panel.name.as_str()).collect();
    for (panel, file) in panels.iter().zip(file_names(&panel_names)) {
        let title = format!("{name}: {}", panel.name);
        let figure = chart(&title, &panel.curves, ("round", ROUND), ("test accuracy", ACCURACY));
        write_figure(folder, &format!("accuracy-{file}"), &figure)?;
    }
    let multiples = small_multiples(name, results);
    let names: Vec<&str> = multiples.iter().map(|(file, _)| file.as_str()).collect();
    for ((_, figure), file) in multiples.iter().zip(file_names(&names)) {
        write_figure(folder, &file, figure)?;
    }
    let labels: Vec<&str> = results.iter().map(|curve| curve.label.as_str()).collect();
    for (curve, label) in results.iter().zip(file_names(&labels)) {
        write_figure(folder, &format!("scheduled-{label}"), &scheduled(curve))?;
        write_figure(folder, &format!("power-{label}"), &power(curve))?;
        let devices = curve.device_energy();
        if !devices.is_empty() {
            let title = format!("Energy by device: {}", curve.label);
            let chart = device_energy_chart(&title, curve.runs.len(), &devices);
            write_figure(folder, &format!("energy-{label}"), &chart)?;
        }
        if let Some(map) = curve_cell(curve) {
            write_figure(folder, &format!("cell-{label}"), &map)?;
        }
    }
    Ok(())
}

/// Phases and energy of a round by curve, and the SNRs, where there are any.
fn write_costs(name: &str, results: &[CurveResult], folder: &OutputFolder) -> Result<(), Error> {
    fn parts<T>(results: &[CurveResult], of: fn(&CurveResult) -> Option<T>) -> Vec<(String, T)> {
        results.iter().filter_map(|curve| Some((curve.label.clone(), of(curve)?))).collect()
    }
    let phases = parts(results, CurveResult::phases_per_round);
    if !phases.is_empty() {
        write_figure(folder, "phases", &phases_chart(&format!("{name}: seconds of a round"), phases))?;
    }
    let energy = parts(results, CurveResult::energy_per_round);
    if !energy.is_empty() {
        write_figure(folder, "energy", &energy_chart(&format!("{name}: joules of a round"), energy))?;
    }
    let snrs = snr_series(results);
    if !snrs.is_empty() {
        write_figure(folder, "snr", &snr_chart(&format!("{name}: SNR"), &snrs))?;
    }
    Ok(())
}

/// One value by another, with what the axes are called.
fn chart(title: &str, curves: &[&CurveResult], x: (&str, Across), y: (&str, Value)) -> LineChart {
    let percent_y = y.0 == "test accuracy";
    let max = if percent_y { 1.0 } else { f64::INFINITY };
    LineChart {
        title: title.to_owned(),
        x_label: x.0.into(),
        y_label: y.0.into(),
        percent_y,
        curves: styled(curves, |curve| line(curve, x.1, y.1, max)),
        ..LineChart::default()
    }
}

/// What `line` makes of each curve; where there are many, in the colors of the families of their policies.
fn styled(curves: &[&CurveResult], line: impl Fn(&CurveResult) -> Curve) -> Vec<Curve> {
    let styles = styles(curves).map(|styles| styles.into_iter().map(Some).collect());
    let styles: Vec<Option<CurveStyle>> = styles.unwrap_or_else(|| vec![None; curves.len()]);
    curves.iter().zip(styles).map(|(curve, style)| Curve { style, ..line(curve) }).collect()
}

/// Accuracy by round, a panel for each value of a swept key; none where a chart of all curves can be read, or
/// nothing besides what the colors stand for is swept.
pub fn small_multiples(name: &str, results: &[CurveResult]) -> Vec<(String, SmallMultiples)> {
    let all: Vec<&CurveResult> = results.iter().collect();
    let Some(compared) = compared_key(&all) else { return Vec::new() };
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in results.iter().flat_map(|curve| &curve.keys) {
        if !keys.contains(&key.as_str()) && key != compared {
            keys.push(key);
        }
    }
    let mut figures = Vec::new();
    for key in keys {
        let mut values: Vec<&str> = Vec::new();
        for curve in results {
            if !values.contains(&curve.swept(key)) {
                values.push(curve.swept(key));
            }
        }
        if values.len() < 2 {
            continue;
        }
        let Some(styles) = styles_without(&all, key) else { return Vec::new() };
        // What the panel says already is left out of the labels: a curve has one label in all panels.
        let label = |curve: &CurveResult| {
            let rest = curve.keys.iter().filter(|(own, _)| own != key).map(|(_, value)| value.as_str());
            rest.collect::<Vec<&str>>().join(" ")
        };
        let short = key.rsplit('.').next().unwrap_or(key);
        let panel = |value: &&str| {
            let of_value = all.iter().zip(&styles).filter(|(curve, _)| curve.swept(key) == *value);
            let line = |(curve, style): (&&CurveResult, &CurveStyle)| Curve {
                label: label(curve),
                style: Some(style.clone()),
                ..line(curve, ROUND, ACCURACY, 1.0)
            };
            (format!("{short} = {value}"), of_value.map(line).collect())
        };
        let figure = SmallMultiples {
            title: if name.is_empty() { String::new() } else { format!("{name}: test accuracy") },
            x_label: "round".into(),
            y_label: "test accuracy".into(),
            percent_y: true,
            panels: values.iter().map(panel).collect(),
        };
        figures.push((format!("panels-{short}"), figure));
    }
    figures
}

/// Writes a figure as SVG and PNG.
pub fn write_figure(folder: &OutputFolder, name: &str, figure: &dyn Figure) -> Result<(), Error> {
    folder.write(&format!("plots/{name}.svg"), figure.svg())?;
    Ok(folder.write(&format!("plots/{name}.png"), figure.png()?)?)
}

/// Means over the seeds at every round that all of them have reached, with the 95 % band, which is cut at
/// zero and at `max`.
fn line(curve: &CurveResult, x: Across, y: Value, max: f64) -> Curve {
    let across: Vec<f64> = match x {
        Across::Row(value) => curve.by_row(value).iter().map(|estimate| estimate.mean).collect(),
        Across::Symbols => curve.symbols_by_row(),
    };
    let up = curve.by_row(y);
    let band = |estimate: &Estimate| estimate.ends_within(0.0, max);
    Curve {
        label: curve.label.clone(),
        band: (curve.runs.len() > 1).then(|| up.iter().map(band).collect()),
        points: across.iter().zip(&up).map(|(x, y)| (*x, y.mean)).collect(),
        style: None,
    }
}

/// How often each device was scheduled, against the fair share.
fn scheduled(curve: &CurveResult) -> BarChart {
    let (devices, k) = (curve.config.data.devices, curve.config.schedule.k);
    let reference = (format!("fair share {k}/{devices}"), k as f64 / devices as f64);
    bars(
        curve,
        format!("Who was scheduled: {}", curve.label),
        "share of rounds",
        RunResult::scheduled_shares,
        reference,
    )
}

/// The average power of each device, against what it is allowed.
fn power(curve: &CurveResult) -> BarChart {
    let allowed = curve.allowed_power();
    let powers = |run: &RunResult| run.outcome.average_power.clone();
    let title = format!("Average power: {}", curve.label);
    if curve.has_units() {
        let reference = format!("allowed {}", curve.power_text(allowed));
        return bars(curve, title, "power (W)", powers, (reference, allowed));
    }
    bars(curve, title, "power", powers, (format!("allowed {allowed}"), allowed))
}

/// A bar for each device of one seed; of several, for each rank among the devices of a seed, mean over the
/// seeds.
fn bars(
    curve: &CurveResult,
    title: String,
    y_label: &str,
    values: impl Fn(&RunResult) -> Vec<f64>,
    reference: (String, f64),
) -> BarChart {
    let (first, x_label) = match curve.runs.len() {
        1 => (0, "device".to_owned()),
        seeds => (1, format!("rank of a device in its seed, mean over {seeds} seeds")),
    };
    let bar = |(i, value): (usize, f64)| ((first + i).to_string(), value);
    BarChart {
        title,
        x_label,
        y_label: y_label.into(),
        bars: curve.by_device(values).into_iter().enumerate().map(bar).collect(),
        reference: Some(reference),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink_study::example::{curve_of, with_units};

    #[test]
    fn a_band_stays_within_what_its_number_can_be() {
        // 0.5 ± 12.7·0.4, and a loss of 2.3 that both seeds have.
        let wide = curve_of("bc", &[&[0.1], &[0.9]]);
        assert_eq!(line(&wide, ROUND, ACCURACY, 1.0).band, Some(vec![(0.0, 1.0)]));
        let loss = line(&wide, ROUND, |row| row.test_loss, f64::INFINITY);
        assert_eq!(loss.band, Some(vec![(2.3, 2.3)]));
    }

    #[test]
    fn seconds_and_joules_run_to_the_right_where_there_are_any() {
        let curve = with_units(curve_of("bc", &[&[0.5, 0.7]]));
        let points = |x| line(&curve, x, ACCURACY, 1.0).points;
        // A quarter of a second and 3 J a round, 5000 symbols of 5 ms at 1 MHz.
        assert_eq!(points(Across::Row(seconds)), [(2.5, 0.5), (5.0, 0.7)]);
        assert_eq!(points(Across::Row(joules)), [(30.0, 0.5), (60.0, 0.7)]);
        assert_eq!(points(Across::Symbols), [(50_000.0, 0.5), (100_000.0, 0.7)]);
        let without = line(&curve_of("bc", &[&[0.5]]), Across::Row(seconds), ACCURACY, 1.0);
        assert!(without.points[0].0.is_nan());
    }

    #[test]
    fn the_files_of_seconds_and_joules_are_there_for_runs_that_have_them() {
        let written = |curve: CurveResult| {
            let base = tempfile::tempdir().unwrap();
            let folder = OutputFolder::open(base.path()).unwrap();
            write("x", &[curve], &folder).unwrap();
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
        curve.config.cell.layout = "disc".into();
        curve.config.cell.pathloss = "3gpp-macro".into();
        assert_eq!(written(curve), more);
    }

    #[test]
    fn bars_stand_for_devices_of_one_seed_and_for_ranks_of_several() {
        let mut curve = curve_of("bn2", &[&[0.5], &[0.6]]);
        for (run, scheduled) in curve.runs.iter_mut().zip([vec![8, 2], vec![2, 8]]) {
            run.outcome.scheduled = scheduled;
        }
        let several = scheduled(&curve);
        assert_eq!(several.bars, [("1".into(), 0.8), ("2".into(), 0.2)]);
        assert!(several.x_label.contains("rank"));
        curve.runs.remove(0);
        let one = scheduled(&curve);
        assert_eq!(one.bars, [("0".into(), 0.2), ("1".into(), 0.8)]);
        assert_eq!(one.x_label, "device");
    }
}
