//! `data.json`: the data of the runs in a folder, so that runs with different data are never mixed.

use crate::error::Error;
use crate::goals::chance_level;
use fedlink::base::files;
use fedlink::base::units::DeviceId;
use fedlink::data::Dataset;
use fedlink::learn::task::Task;
use fedlink::record::hexadecimal;
use fedlink::spec::Spec;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The data sets and other files that runs depend on, by name.
pub type DataFacts = BTreeMap<String, DataFact>;

/// The identity of a data set or of a file that runs depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DataFact {
    /// SHA-256 of the loaded arrays, or of the file.
    pub sha256: String,
    /// Training samples; 0 for other files.
    pub train: usize,
    /// Test samples.
    pub test: usize,
    /// Classes.
    pub classes: usize,
    /// Rows, columns and channels of a sample.
    pub shape: Vec<usize>,
}

/// The accuracy that a model without learning does not exceed on the test set of a run; none if it is
/// unknown.
pub(super) fn chance(facts: &DataFacts, spec: &Spec) -> Option<f64> {
    let fact = facts.get(&spec.data.dataset)?;
    chance_level(fact.classes, fact.test)
}

impl DataFact {
    /// The identity of a data set.
    pub fn new(dataset: &Dataset) -> Self {
        Self {
            sha256: dataset.digest(),
            train: dataset.train.len(),
            test: dataset.test.len(),
            classes: dataset.classes,
            shape: dataset.shape.to_vec(),
        }
    }

    /// The identity of a custom task with these texts, and its sizes as far as it states them.
    pub fn of_task<'a>(
        task: &dyn Task,
        spec: &Spec,
        texts: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let mut sha256 = Sha256::new();
        for (name, text) in texts {
            sha256.update(format!("{name}\n{}\n{text}", text.len()));
        }
        let devices = DeviceId::all(spec.data.devices as usize);
        Self {
            sha256: hexadecimal(&sha256.finalize()),
            train: devices.map(|device| task.samples(device)).sum(),
            test: task.test_samples().unwrap_or(0),
            classes: task.classes().unwrap_or(0),
            shape: Vec::new(),
        }
    }

    /// The identity of another file that a run reads.
    pub fn of_file(path: &Path) -> Result<Self, Error> {
        let digest = || -> io::Result<String> {
            let mut reader = BufReader::new(files::open(path)?);
            let mut sha256 = Sha256::new();
            loop {
                let bytes = reader.fill_buf()?;
                if bytes.is_empty() {
                    return Ok(hexadecimal(&sha256.finalize()));
                }
                sha256.update(bytes);
                let length = bytes.len();
                reader.consume(length);
            }
        };
        Ok(Self { sha256: digest().map_err(Error::file("read", path))?, ..Self::default() })
    }

    fn text(&self) -> String {
        // A changed file may hold other text than a digest, with characters of several bytes.
        let digest: String = self.sha256.chars().take(12).collect();
        match self.train {
            0 => format!("sha256 {digest}…"),
            train => format!("{train} training and {} test samples, sha256 {digest}…", self.test),
        }
    }
}

/// The content of `data.json`; none if it cannot be read.
pub fn parse_data(content: &[u8]) -> Option<DataFacts> {
    serde_json::from_slice(content).ok()
}

/// The data in `here` that differ from those of the same name in `there`, in words; none if none differ.
pub fn differences(there: &DataFacts, here: &DataFacts) -> Option<String> {
    let differing: Vec<String> = here
        .iter()
        .filter_map(|(name, here)| {
            let there = there.get(name).filter(|there| there.sha256 != here.sha256)?;
            Some(format!("{name} ({} there; {} here)", there.text(), here.text()))
        })
        .collect();
    (!differing.is_empty()).then(|| differing.join(", "))
}

/// As [`differences`], for digests alone.
pub fn digest_differences(
    there: &BTreeMap<String, String>,
    here: &BTreeMap<String, String>,
) -> Option<String> {
    let fact = |(name, sha256): (&String, &String)| {
        (name.clone(), DataFact { sha256: sha256.clone(), ..DataFact::default() })
    };
    differences(&there.iter().map(fact).collect(), &here.iter().map(fact).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_data_of_the_same_name_can_differ_and_the_difference_is_named() {
        let fact =
            |sha256: &str, train| DataFact { sha256: sha256.into(), train, test: 5, ..DataFact::default() };
        let there =
            DataFacts::from([("a".into(), fact("1111111111111111", 10)), ("b".into(), fact("2", 20))]);
        assert_eq!(differences(&there, &there), None);
        assert_eq!(differences(&there, &DataFacts::from([("c".into(), fact("9", 1))])), None);
        let here = DataFacts::from([("a".into(), fact("3333333333333333", 11)), ("b".into(), fact("2", 20))]);
        let text = differences(&there, &here).unwrap();
        assert!(
            text.starts_with("a (10 training and 5 test samples, sha256 111111111111… there; 11 "),
            "{text}"
        );
        assert!(!text.contains("b ("), "{text}");
        // A changed file may hold other text than a digest.
        let odd = DataFacts::from([("a".into(), fact("1234567890é…", 10))]);
        assert!(differences(&odd, &there).unwrap().contains("sha256 1234567890é…… there"));
    }
}
