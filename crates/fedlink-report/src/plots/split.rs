//! The split of the data among the devices: a heat map.

use crate::chart::{HeatMap, Quantity};
use fedlink::data::partition::SplitReport;

/// The samples of each class on each device. `curve` names the curves of the split; empty: all.
pub fn split_chart(report: &SplitReport, curve: Option<&str>) -> HeatMap {
    let whose = curve.map_or_else(String::new, |label| format!(" for {label}"));
    let distance = report.heterogeneity;
    let title = format!("Samples of each class{whose} (mean distance from the overall mix {distance:.3})");
    let samples = |class: usize| report.class_counts.iter().map(|counts| counts[class] as f64).collect();
    let rows: Vec<Vec<f64>> = (0..report.train_counts.len()).map(samples).collect();
    HeatMap::new(title, ("device", "class"), &Quantity::plain("samples"), &rows)
}
