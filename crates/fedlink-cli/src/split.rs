//! How the data were split among the devices: a table and a heat map in the output folder.

use crate::figure::HeatMap;
use crate::output::OutputFolder;
use crate::plots::write_figure;
use fedlink::config::{Config, ConfigError, DataConfig};
use fedlink::data::Dataset;
use fedlink::data::partition::{SplitReport, describe, partition};

/// The splits of an experiment, one for each `[data]` section among its curves, at the first seed.
#[derive(Default)]
pub struct Splits(Vec<(DataConfig, String, SplitReport)>);

impl Splits {
    /// Describes the split that `config` asks for, unless a curve before had the same, and returns how far it is
    /// from an even one.
    pub fn add(&mut self, label: &str, config: &Config, dataset: &Dataset) -> Result<f64, ConfigError> {
        if let Some((_, _, report)) = self.0.iter().find(|(known, _, _)| *known == config.data) {
            return Ok(report.heterogeneity);
        }
        let report = describe(&*partition(config, dataset)?, dataset, config.data.devices as usize);
        let heterogeneity = report.heterogeneity;
        self.0.push((config.data.clone(), label.to_owned(), report));
        Ok(heterogeneity)
    }

    /// The first of them.
    pub fn first(&self) -> Option<&SplitReport> {
        self.0.first().map(|(_, _, report)| report)
    }

    /// Writes `split.json` and a plot of it, or `split-1.json`, … where there are several.
    pub fn write(&self, folder: &OutputFolder) -> anyhow::Result<()> {
        for (number, (_, label, report)) in (1..).zip(&self.0) {
            let (name, whose) = match self.0.len() {
                1 => ("split".to_owned(), String::new()),
                _ => (format!("split-{number}"), format!(" for {label}")),
            };
            let map = heat_map(report, &whose);
            folder.write(&format!("{name}.json"), serde_json::to_string_pretty(report)? + "\n")?;
            write_figure(folder, &name, &map)?;
        }
        Ok(())
    }
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
