//! The specification of the charts that the script of the page draws.

use super::scatter::ScatterAxes;
use super::{Report, ReportCurve};
use crate::chart::{
    Axis, COLORS, Curve, DARK_COLORS, DASHES, Entry, HeatMap, Lines, Look, MARKERS, MAX_BANDS, MAX_BARS,
    Quantity, Rgb, shade,
};
use crate::plots::{Across, Up};
use serde::Serialize;
use std::collections::BTreeMap;

/// Colors of the map of classes.
const SHADES: usize = 64;

/// Axes, looks and colors. The points of the curves are in the data of the curves, by the names of their
/// quantities: a reader chooses which are drawn.
#[derive(Serialize)]
pub struct PageCharts {
    /// The look of each curve.
    key: Vec<Entry>,
    x: BTreeMap<&'static str, Axis>,
    y: BTreeMap<&'static str, Axis>,
    /// The share of rounds in which a device was scheduled, of each curve.
    scheduled: Vec<Axis>,
    /// The average power of a device, of each curve.
    power: Vec<Axis>,
    /// Devices and classes, by number.
    devices: Axis,
    classes: Axis,
    split: Option<HeatMap>,
    /// Seconds and joules until the goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    scatter: Option<ScatterAxes>,
    max_bands: usize,
    max_bars: usize,
    dashes: [&'static [f64]; 5],
    markers: [&'static [(f64, f64)]; 6],
    shades: Vec<String>,
}

impl PageCharts {
    /// The charts of a report.
    pub fn new(report: &Report) -> Self {
        let curves = || report.curves.iter();
        let x = Across::ALL.map(|(name, x)| (name, x.quantity().axis(curves().flat_map(|c| across(c, x)))));
        let y =
            Up::PAGE.map(|(name, y)| (name, y.quantity().axis(curves().flat_map(|curve| upwards(curve, y)))));
        let label = match report.power_unit.as_str() {
            "" => "average power".to_owned(),
            unit => format!("average power ({unit})"),
        };
        let bars = |quantity: Quantity, values: &[f64], reference: f64| {
            quantity.from_zero().margin(0.08).axis(values.iter().copied().chain([reference]))
        };
        let share = |c: &ReportCurve| bars(Quantity::share("share of rounds"), &c.scheduled, c.fair_share);
        let power = |c: &ReportCurve| bars(Quantity::plain(&label), &c.power, report.average_power);
        let map = report.split.as_ref().map(|split| {
            let classes = split.classes.min(split.counts.iter().map(Vec::len).max().unwrap_or(0));
            let held = |counts: &Vec<u64>, class: usize| counts.get(class).map_or(0.0, |&n| n as f64);
            let rows =
                (0..classes).map(|class| split.counts.iter().map(|counts| held(counts, class)).collect());
            let samples = Quantity::count("samples").from_zero();
            HeatMap::new("", ("device", "class"), &samples, &rows.collect::<Vec<Vec<f64>>>())
        });
        let devices = curves().map(|curve| curve.scheduled.len()).chain(map.iter().map(|map| map.count[1]));
        let numbers = |name: &str, count: usize| {
            Quantity::plain(name).margin(0.0).axis([0.0, count.saturating_sub(1) as f64]).of_whole_numbers()
        };
        Self {
            key: key(report),
            x: x.into(),
            y: y.into(),
            scheduled: curves().map(share).collect(),
            power: curves().map(power).collect(),
            devices: numbers("device", devices.max().unwrap_or(0)),
            classes: numbers("class", map.as_ref().map_or(0, |map| map.count[0])),
            split: map,
            scatter: ScatterAxes::new(&report.curves),
            max_bands: MAX_BANDS,
            max_bars: MAX_BARS,
            dashes: DASHES,
            markers: MARKERS,
            shades: (0..SHADES).map(|i| hex(shade(i as f64 / (SHADES - 1) as f64))).collect(),
        }
    }
}

/// The legend of the curves.
fn key(report: &Report) -> Vec<Entry> {
    let entry = |(i, curve): (usize, &ReportCurve)| Entry {
        label: curve.label.clone(),
        group: curve.family.clone(),
        look: curve.look.unwrap_or_else(|| Look::of(i)),
    };
    report.curves.iter().enumerate().map(entry).collect()
}

fn across(curve: &ReportCurve, x: Across) -> Vec<f64> {
    match x {
        Across::Rounds => curve.rounds.iter().map(|&round| round as f64).collect(),
        Across::Bits => curve.bits.clone(),
        Across::Symbols => curve.symbols.clone(),
        Across::Seconds => curve.seconds.clone(),
        Across::Joules => curve.joules.clone(),
    }
}

fn upwards(curve: &ReportCurve, y: Up) -> Vec<f64> {
    match y {
        Up::Accuracy => [&curve.accuracy[..], &curve.low, &curve.high].concat(),
        Up::Loss | Up::TrainLoss => curve.loss.clone(),
        Up::MeanQ => curve.mean_q.clone(),
        Up::BitsPerRound => curve.bits_per_round.clone(),
    }
}

/// Accuracy by round as a static chart, for readers without JavaScript.
pub fn still_chart(report: &Report) -> Lines {
    let curve = |(curve, entry): (&ReportCurve, Entry)| {
        let rounds = curve.rounds.iter().map(|&round| round as f64);
        Curve {
            label: entry.label,
            group: entry.group,
            look: Some(entry.look),
            points: rounds.zip(curve.accuracy.iter().copied()).collect(),
            band: (curve.seeds > 1)
                .then(|| curve.low.iter().copied().zip(curve.high.iter().copied()).collect()),
        }
    };
    let curves = report.curves.iter().zip(key(report)).map(curve).collect();
    Lines::new("", &Across::Rounds.quantity(), &Up::Accuracy.quantity(), curves)
}

/// The colors of curves as the style of the page, on white and on dark paper.
pub fn color_style() -> String {
    let rule = |colors: [Rgb; 7]| -> String {
        let colors = colors.into_iter().enumerate().map(|(i, color)| format!(" --c{i}: {};", hex(color)));
        format!(":root {{{} }}", colors.collect::<String>())
    };
    let (light, dark) = (rule(COLORS), rule(DARK_COLORS));
    format!("{light}\n@media screen and (prefers-color-scheme: dark) {{ {dark} }}\n")
}

fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}
