//! The splits of the data among the devices: `split.json` in the output folder.

use crate::error::Error;
use crate::folder::output::OutputFolder;
use fedlink::data::Dataset;
use fedlink::data::partition::{SplitReport, describe};
use fedlink::spec::{ConfigError, Spec};

/// The splits of an experiment, one for each `[data]` section among its curves, at the first seed.
#[derive(Default)]
pub struct Splits(Vec<(String, String, SplitReport)>);

impl Splits {
    /// Describes the split of `config`, unless an earlier curve had the same, and returns its heterogeneity.
    pub fn add(&mut self, label: &str, spec: &Spec, dataset: &Dataset) -> Result<f64, ConfigError> {
        let section =
            spec.resolved().to_table().remove("data").map_or_else(String::new, |data| data.to_string());
        if let Some((_, _, report)) = self.0.iter().find(|(known, _, _)| *known == section) {
            return Ok(report.heterogeneity);
        }
        let split = spec.partition(dataset)?;
        let report = describe(&*split, dataset, spec.data.devices as usize);
        let heterogeneity = report.heterogeneity;
        self.0.push((section, label.to_owned(), report));
        Ok(heterogeneity)
    }

    /// The first split.
    pub fn first(&self) -> Option<&SplitReport> {
        self.0.first().map(|(_, _, report)| report)
    }

    /// Each split with the name of its files, and the label of its curve if there are several.
    pub fn named(&self) -> impl Iterator<Item = (String, Option<&str>, &SplitReport)> {
        let several = self.0.len() > 1;
        (1..).zip(&self.0).map(move |(number, (_, label, report))| {
            let name = if several { format!("split-{number}") } else { "split".to_owned() };
            (name, several.then_some(label.as_str()), report)
        })
    }

    /// Writes `split.json`, or `split-1.json`, … if there are several.
    pub fn write(&self, folder: &OutputFolder) -> Result<(), Error> {
        for (name, _, report) in self.named() {
            folder.write(&format!("{name}.json"), serde_json::to_string_pretty(report)? + "\n")?;
        }
        Ok(())
    }
}
