//! How the data were split among the devices: `split.json` in the output folder.

use crate::error::Error;
use crate::output::OutputFolder;
use fedlink::config::{Config, ConfigError};
use fedlink::data::Dataset;
use fedlink::data::partition::{SplitReport, describe};
use fedlink::parts::Parts;

/// The splits of an experiment, one for each `[data]` section among its curves, at the first seed.
#[derive(Default)]
pub struct Splits(Vec<(String, String, SplitReport)>);

impl Splits {
    /// Describes the split that `config` asks for, unless a curve before had the same, and returns how far it
    /// is from an even one.
    pub fn add(
        &mut self,
        label: &str,
        config: &Config,
        dataset: &Dataset,
        parts: &Parts,
    ) -> Result<f64, ConfigError> {
        let section =
            config.resolved().to_table().remove("data").map_or_else(String::new, |data| data.to_string());
        if let Some((_, _, report)) = self.0.iter().find(|(known, _, _)| *known == section) {
            return Ok(report.heterogeneity);
        }
        let split = parts.build_partition(config, dataset)?;
        let report = describe(&*split, dataset, config.data.devices as usize);
        let heterogeneity = report.heterogeneity;
        self.0.push((section, label.to_owned(), report));
        Ok(heterogeneity)
    }

    /// The first of them.
    pub fn first(&self) -> Option<&SplitReport> {
        self.0.first().map(|(_, _, report)| report)
    }

    /// Each of them with the name of its files, and whose it is: nobody's in particular if there is but one.
    pub fn named(&self) -> impl Iterator<Item = (String, Option<&str>, &SplitReport)> {
        let several = self.0.len() > 1;
        (1..).zip(&self.0).map(move |(number, (_, label, report))| {
            let name = if several { format!("split-{number}") } else { "split".to_owned() };
            (name, several.then_some(label.as_str()), report)
        })
    }

    /// Writes `split.json`, or `split-1.json`, … where there are several.
    pub fn write(&self, folder: &OutputFolder) -> Result<(), Error> {
        for (name, _, report) in self.named() {
            folder.write(&format!("{name}.json"), serde_json::to_string_pretty(report)? + "\n")?;
        }
        Ok(())
    }
}
