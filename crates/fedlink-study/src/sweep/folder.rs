//! The folder of an experiment: which one it belongs to, and whether it is complete.

use super::manifest;
use crate::error::Error;
use crate::experiment::{AnyExperiment, Experiment};
use crate::output::write_file;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Makes `folder` that of `experiment`: `config.toml` is there, and `cells/` for its runs.
pub fn freeze(folder: &Path, experiment: &Experiment) -> Result<(), Error> {
    let cells = folder.join("cells");
    fs::create_dir_all(&cells).map_err(Error::file("make", &cells))?;
    write_file(&folder.join("config.toml"), experiment.to_toml()?)
}

/// The experiment with the system that `folder` belongs to, if any.
pub fn frozen(folder: &Path) -> Result<Option<Experiment>, Error> {
    match frozen_any(folder)? {
        None => Ok(None),
        Some(AnyExperiment::Simulation(experiment)) => Ok(Some(experiment)),
        Some(AnyExperiment::Bound(_) | AnyExperiment::Theorem(_)) => {
            Err(Error::NotASimulation(folder.join("config.toml")))
        }
    }
}

/// The experiment of any kind that `folder` belongs to, if any.
pub fn frozen_any(folder: &Path) -> Result<Option<AnyExperiment>, Error> {
    let path = folder.join("config.toml");
    if !path.exists() {
        return Ok(None);
    }
    let name = path.display().to_string();
    let text = fs::read_to_string(&path).map_err(Error::file("read", &path))?;
    let mut experiment = AnyExperiment::parse(&name, &text)?;
    // `.` has a name too, but not in its path.
    let whole = fs::canonicalize(folder).map_err(Error::file("read", folder))?;
    experiment.rename(whole.file_name().map_or_else(|| name, |name| name.to_string_lossy().into_owned()));
    Ok(Some(experiment))
}

/// Whether `folder` was begun by this very experiment (`false` if it was not begun at all); an error names
/// the keys in which another differs.
pub fn check_same(folder: &Path, experiment: &Experiment) -> Result<bool, Error> {
    let Some(before) = frozen(folder)? else {
        let empty = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
        if !empty {
            return Err(Error::OtherFiles(folder.into()));
        }
        return Ok(false);
    };
    let runs = |experiment: &Experiment| -> Result<Vec<_>, Error> {
        let curves = experiment.curves()?.into_iter();
        Ok(curves.map(|curve| (curve.label, curve.config.resolved())).collect())
    };
    if runs(&before)? == runs(experiment)? {
        return Ok(true);
    }
    let [there, here] =
        [&before, experiment].map(|experiment| experiment.to_toml().map(|text| flat_keys(&text)));
    let (there, here) = (there?, here?);
    let keys: std::collections::BTreeSet<&String> = there.keys().chain(here.keys()).collect();
    let missing = || "not set".to_owned();
    let differences: Vec<String> = keys
        .into_iter()
        .filter(|key| there.get(*key) != here.get(*key))
        .map(|key| {
            let [there, here] = [&there, &here].map(|keys| keys.get(key).cloned().unwrap_or_else(missing));
            format!("{key} ({there} there, {here} here)")
        })
        .collect();
    Err(Error::OtherExperiment { path: folder.into(), differences: differences.join(", ") })
}

/// Every `section.name` of a file with its value.
fn flat_keys(text: &str) -> BTreeMap<String, String> {
    fn add(path: &str, value: &toml::Value, keys: &mut BTreeMap<String, String>) {
        match value {
            toml::Value::Table(inner) => {
                let inside =
                    |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                inner.iter().for_each(|(name, value)| add(&inside(name), value, keys));
            }
            other => {
                keys.insert(path.to_owned(), other.to_string());
            }
        }
    }
    let mut keys = BTreeMap::new();
    add("", &toml::Value::Table(toml::from_str(text).unwrap_or_default()), &mut keys);
    keys
}

/// The newest unfinished folder `base/name` or `base/name-2`, ….
pub fn unfinished(base: &Path, name: &str) -> Option<PathBuf> {
    let numbered = |i: u32| base.join(if i == 1 { name.to_owned() } else { format!("{name}-{i}") });
    let folders = (1..=u32::MAX).map(numbered).take_while(|path| path.exists());
    folders.filter(|path| path.join("cells").is_dir() && !manifest::is_complete(path)).last()
}
