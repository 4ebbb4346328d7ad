//! How the data were split among the devices: a heat map.

use crate::error::Error;
use crate::figure::HeatMap;
use crate::plots::write_figure;
use fedlink::data::partition::SplitReport;
use fedlink_study::output::OutputFolder;
use fedlink_study::split::Splits;

/// Draws every split of an experiment.
pub fn write(splits: &Splits, folder: &OutputFolder) -> Result<(), Error> {
    for (name, whose, report) in splits.named() {
        let whose = whose.map_or_else(String::new, |label| format!(" for {label}"));
        write_figure(folder, &name, &heat_map(report, &whose))?;
    }
    Ok(())
}

fn heat_map(report: &SplitReport, whose: &str) -> HeatMap {
    let distance = report.heterogeneity;
    HeatMap {
        title: format!("Samples of each class{whose} (mean distance from the overall mix {distance:.3})"),
        x_label: "device".into(),
        y_label: "class".into(),
        rows: (0..report.train_counts.len())
            .map(|class| report.class_counts.iter().map(|counts| counts[class] as f64).collect())
            .collect(),
        value_label: "samples".into(),
        x_ticks: None,
        y_ticks: None,
    }
}
