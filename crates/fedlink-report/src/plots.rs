//! The plots of an experiment, as SVG and PNG in `plots/`.

use crate::error::Error;
use crate::figure::{BarChart, Curve, Figure, LineChart};
use crate::file_names::file_names;
use crate::panels::panels;
use fedlink::record::Row;
use fedlink_study::output::OutputFolder;
use fedlink_study::results::{CurveResult, RunResult};
use fedlink_study::statistics::Estimate;

/// A number of a curve's row.
type Value = fn(&CurveResult, &Row) -> f64;

const ROUND: Value = |_, row| row.round as f64;
const ACCURACY: Value = |_, row| row.test_accuracy;

/// Curves by round, bits and symbols, accuracy for each value of each swept key, and for each curve who was
/// scheduled and what it spent.
pub fn write(name: &str, results: &[CurveResult], folder: &OutputFolder) -> Result<(), Error> {
    let all: Vec<&CurveResult> = results.iter().collect();
    let symbols: Value = |curve, row| row.round as f64 * curve.config.radio.symbols as f64;
    let charts: [(&str, &str, Value, &str, Value); 7] = [
        ("accuracy", "round", ROUND, "test accuracy", ACCURACY),
        ("accuracy-by-bits", "bits sent", |_, row| row.total_bits, "test accuracy", ACCURACY),
        ("accuracy-by-symbols", "channel symbols used", symbols, "test accuracy", ACCURACY),
        ("loss", "round", ROUND, "test loss", |_, row| row.test_loss),
        ("train-loss", "round", ROUND, "training loss", |_, row| row.train_loss),
        ("q", "round", ROUND, "q, mean since the evaluation before", |_, row| row.mean_q),
        ("bits", "round", ROUND, "bits a round, mean since the evaluation before", |_, row| row.bits),
    ];
    for (file, x_label, x, y_label, y) in charts {
        write_figure(folder, file, &chart(name, &all, (x_label, x), (y_label, y)))?;
    }
    let panels = panels(results);
    let panel_names: Vec<&str> = panels.iter().map(|panel| panel.name.as_str()).collect();
    for (panel, file) in panels.iter().zip(file_names(&panel_names)) {
        let title = format!("{name}: {}", panel.name);
        let figure = chart(&title, &panel.curves, ("round", ROUND), ("test accuracy", ACCURACY));
        write_figure(folder, &format!("accuracy-{file}"), &figure)?;
    }
    let labels: Vec<&str> = results.iter().map(|curve| curve.label.as_str()).collect();
    for (curve, label) in results.iter().zip(file_names(&labels)) {
        write_figure(folder, &format!("scheduled-{label}"), &scheduled(curve))?;
        write_figure(folder, &format!("power-{label}"), &power(curve))?;
    }
    Ok(())
}

/// One value by another, with what the axes are called.
fn chart(title: &str, curves: &[&CurveResult], x: (&str, Value), y: (&str, Value)) -> LineChart {
    let percent_y = y.0 == "test accuracy";
    let max = if percent_y { 1.0 } else { f64::INFINITY };
    LineChart {
        title: title.to_owned(),
        x_label: x.0.into(),
        y_label: y.0.into(),
        percent_y,
        curves: curves.iter().map(|curve| line(curve, x.1, y.1, max)).collect(),
        ..LineChart::default()
    }
}

/// Writes a figure as SVG and PNG.
pub fn write_figure(folder: &OutputFolder, name: &str, figure: &dyn Figure) -> Result<(), Error> {
    folder.write(&format!("plots/{name}.svg"), figure.svg())?;
    Ok(folder.write(&format!("plots/{name}.png"), figure.png()?)?)
}

/// Means over the seeds at every round that all of them have reached, with the 95 % band, which is cut at
/// zero and at `max`.
fn line(curve: &CurveResult, x: Value, y: Value, max: f64) -> Curve {
    let by_row = |value: Value| curve.by_row(|row| value(curve, row));
    let (across, up) = (by_row(x), by_row(y));
    let band = |estimate: &Estimate| estimate.ends_within(0.0, max);
    Curve {
        label: curve.label.clone(),
        band: (curve.runs.len() > 1).then(|| up.iter().map(band).collect()),
        points: across.iter().zip(&up).map(|(x, y)| (x.mean, y.mean)).collect(),
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
    let allowed = curve.config.radio.power;
    let powers = |run: &RunResult| run.outcome.average_power.clone();
    let title = format!("Average power: {}", curve.label);
    bars(curve, title, "power", powers, (format!("allowed {allowed}"), allowed))
}

/// A bar for each device of one seed; of several, for each rank among the devices of a seed, mean over the seeds.
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
    use fedlink_study::example::curve_of;

    #[test]
    fn a_band_stays_within_what_its_number_can_be() {
        // 0.5 ± 12.7·0.4, and a loss of 2.3 that both seeds have.
        let wide = curve_of("bc", &[&[0.1], &[0.9]]);
        assert_eq!(line(&wide, ROUND, ACCURACY, 1.0).band, Some(vec![(0.0, 1.0)]));
        let loss = line(&wide, ROUND, |_, row| row.test_loss, f64::INFINITY);
        assert_eq!(loss.band, Some(vec![(2.3, 2.3)]));
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
