//! Charts with one bar per device.

use crate::chart::Bars;
use fedlink_study::costs::KINDS;
use fedlink_study::results::{CurveResult, RunResult};

/// The share of rounds in which each device was scheduled, with the fair share.
pub fn scheduled_chart(curve: &CurveResult) -> Bars {
    let (devices, k) = (curve.spec.data.devices, curve.spec.schedule.k);
    let reference = (format!("fair share {k}/{devices}"), k as f64 / devices as f64);
    let title = format!("Devices scheduled: {}", curve.label);
    by_device(curve, title, "share of rounds", RunResult::scheduled_shares, reference)
}

/// The average power of each device, with the power limit.
pub fn power_chart(curve: &CurveResult) -> Bars {
    let allowed = curve.allowed_power();
    let title = format!("Average power: {}", curve.label);
    let (label, reference) = if curve.has_units() {
        ("power (W)", curve.power_text(allowed))
    } else {
        ("power", allowed.to_string())
    };
    let powers = |run: &RunResult| run.outcome.average_power.clone();
    by_device(curve, title, label, powers, (format!("allowed {reference}"), allowed))
}

/// The joules of each device in all rounds; for several seeds, of each rank.
pub fn device_energy_chart(title: &str, seeds: usize, devices: &[[f64; 5]]) -> Bars {
    let names = names(seeds, devices.len());
    let bars: Vec<(String, Vec<f64>)> =
        names.into_iter().zip(devices).map(|(name, energy)| (name, energy.to_vec())).collect();
    Bars::stacked(title, &x_label(seeds), "energy of a device in all rounds (J)", &KINDS, &bars)
}

/// A bar per device for one seed; for several, a bar per rank among the devices of a seed, mean over the
/// seeds.
fn by_device(
    curve: &CurveResult,
    title: String,
    y_label: &str,
    values: impl Fn(&RunResult) -> Vec<f64>,
    reference: (String, f64),
) -> Bars {
    let values = curve.by_device(values);
    let bars: Vec<(String, f64)> = names(curve.runs.len(), values.len()).into_iter().zip(values).collect();
    Bars::whole(title, &x_label(curve.runs.len()), y_label, &bars, Some(reference))
}

/// Devices from zero, or ranks from one.
fn names(seeds: usize, devices: usize) -> Vec<String> {
    let first = usize::from(seeds > 1);
    (first..first + devices).map(|number| number.to_string()).collect()
}

fn x_label(seeds: usize) -> String {
    match seeds {
        0 | 1 => "device".to_owned(),
        seeds => format!("rank of a device in its seed, mean over {seeds} seeds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink_study::example::curve_of;

    fn heights(chart: &Bars) -> Vec<(&str, f64)> {
        chart.bars.iter().map(|bar| (bar.name.as_str(), bar.spans[0].high)).collect()
    }

    #[test]
    fn a_bar_is_a_device_of_one_seed_or_a_rank_of_several() {
        let mut curve = curve_of("bn2", &[&[0.5], &[0.6]]);
        for (run, scheduled) in curve.runs.iter_mut().zip([vec![8, 2], vec![2, 8]]) {
            run.outcome.scheduled = scheduled;
        }
        let several = scheduled_chart(&curve);
        assert_eq!(heights(&several), [("1", 0.8), ("2", 0.2)]);
        assert!(several.x_label.contains("rank"));
        curve.runs.remove(0);
        let one = scheduled_chart(&curve);
        assert_eq!(heights(&one), [("0", 0.2), ("1", 0.8)]);
        assert_eq!(one.x_label, "device");
    }

    #[test]
    fn a_bar_of_a_device_is_its_energy_by_kind() {
        let chart = device_energy_chart("x", 1, &[[1.0, 2.0, 3.0, 4.0, 5.0]]);
        let ends: Vec<(f64, f64)> = chart.bars[0].spans.iter().map(|span| (span.low, span.high)).collect();
        assert_eq!(ends, [(0.0, 1.0), (1.0, 3.0), (3.0, 6.0), (6.0, 10.0), (10.0, 15.0)]);
        assert_eq!((chart.bars[0].name.as_str(), chart.key.len()), ("0", 5));
        assert_eq!(device_energy_chart("x", 3, &[[0.0; 5]]).bars[0].name, "1");
    }
}
