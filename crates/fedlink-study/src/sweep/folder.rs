//! The folder of an experiment: which one it belongs to, how it grows, and whether it is complete.

use super::cell::CellFiles;
use super::data::{DataFacts, differences, parse_data};
use super::manifest;
use super::plan::Plan;
use crate::disk::{Disk, RealDisk};
use crate::error::Error;
use crate::experiment::{AnyExperiment, Cell, Experiment, read_text};
use crate::lock::Lock;
use crate::names::CELLS;
use crate::output::{FolderFiles, LOCK, write_file_with};
use fedlink::identity::trajectory_digest;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What an experiment is to the folder that it is to run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The folder is empty or not there.
    New,
    /// The folder has the same runs.
    Same,
    /// The experiment has all runs of the folder and more, or more rounds of them.
    Grown,
}

/// Makes `folder` that of the experiment of `plan`: `config.toml` is there, which is replaced if the
/// experiment has grown or claims something else; then `data.json`, and `cells/` for its runs. It is an error
/// if the folder has other runs or other data, or if nothing says which data its begun runs have seen. Many
/// processes may do so at once.
pub fn freeze(folder: &Path, plan: &Plan) -> Result<Standing, Error> {
    freeze_on(&RealDisk, folder, plan)
}

/// As [`freeze`], on another disk.
pub fn freeze_on(disk: &dyn Disk, folder: &Path, plan: &Plan) -> Result<Standing, Error> {
    // Before anything is made in a folder that may be somebody else's.
    standing(folder, &plan.experiment)?;
    disk.create_dir(folder).map_err(Error::file("make", folder))?;
    let _lock = Lock::wait(&folder.join(LOCK))?;
    let standing = standing(folder, &plan.experiment)?;
    let data = read_data(folder)?;
    if let Some(differences) = differences(&data, &plan.data) {
        return Err(Error::OtherData { path: folder.into(), differences });
    }
    if data.is_empty() && has_begun(folder, &plan.cells) {
        return Err(Error::UnknownData(folder.into()));
    }
    let files = FolderFiles::new(folder);
    if standing == Standing::Grown {
        // It vouches for fewer runs than there are to be.
        let path = folder.join("manifest.json");
        if path.exists() {
            disk.remove(&path).map_err(Error::file("remove", &path))?;
            disk.sync_dir(folder).map_err(Error::file("write", folder))?;
        }
    }
    let (path, text) = (folder.join("config.toml"), plan.experiment.to_toml()?);
    if standing != Standing::Same || fs::read_to_string(&path).ok().as_ref() != Some(&text) {
        files.note("config.toml")?;
        write_file_with(disk, &path, text)?;
    }
    if plan.data.keys().any(|name| !data.contains_key(name)) {
        let all: DataFacts = data.into_iter().chain(plan.data.clone()).collect();
        files.note("data.json")?;
        write_file_with(disk, &folder.join("data.json"), serde_json::to_string_pretty(&all)? + "\n")?;
    }
    let cells = folder.join(CELLS);
    if !cells.is_dir() {
        disk.create_dir(&cells).map_err(Error::file("make", &cells))?;
        disk.sync_dir(folder).map_err(Error::file("write", folder))?;
    }
    Ok(standing)
}

/// Whether one of the runs has a checkpoint, which does not say by itself which data it has seen.
fn has_begun(folder: &Path, cells: &[Cell]) -> bool {
    cells.iter().any(|cell| CellFiles::new(folder, &cell.config).was_begun())
}

/// `data.json` of a folder; nothing if it is not there.
pub fn read_data(folder: &Path) -> Result<DataFacts, Error> {
    let path = folder.join("data.json");
    match fs::read(&path) {
        Ok(bytes) => parse_data(&bytes).ok_or(Error::Damaged(path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(DataFacts::new()),
        Err(error) => Err(Error::file("read", &path)(error)),
    }
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
    let text = read_text(&path)?;
    let mut experiment = AnyExperiment::parse(&name, &text)?;
    // `.` has a name too, but not in its path.
    let whole = fs::canonicalize(folder).map_err(Error::file("read", folder))?;
    experiment.rename(whole.file_name().map_or_else(|| name, |name| name.to_string_lossy().into_owned()));
    Ok(Some(experiment))
}

/// What `experiment` is to `folder`; an error names the keys in which another differs.
pub fn standing(folder: &Path, experiment: &Experiment) -> Result<Standing, Error> {
    if folder.exists() && !folder.is_dir() {
        return Err(Error::NotAFolder { path: folder.into(), what: "a file" });
    }
    let Some(before) = frozen(folder)? else {
        // A sibling may just have begun: what it makes before config.toml is no other file.
        let others = FolderFiles::new(folder).others()?;
        return if others.is_empty() { Ok(Standing::New) } else { Err(Error::OtherFiles(folder.into())) };
    };
    let (there, here) = (runs(&before)?, runs(experiment)?);
    if there == here {
        return Ok(Standing::Same);
    }
    // Every run that is there must be here, at least as long.
    let longest: BTreeMap<[u8; 32], u64> = here.iter().copied().collect();
    if there.iter().all(|(trajectory, rounds)| longest.get(trajectory).is_some_and(|here| here >= rounds)) {
        return Ok(Standing::Grown);
    }
    let [there, here] =
        [&before, experiment].map(|experiment| experiment.to_toml().map(|text| flat_keys(&text)));
    let (there, here) = (there?, here?);
    let keys: BTreeSet<&String> = there.keys().chain(here.keys()).collect();
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

/// The trajectories of an experiment's runs with their rounds, in order: a later one with more rounds comes
/// later.
fn runs(experiment: &Experiment) -> Result<BTreeSet<([u8; 32], u64)>, Error> {
    let cells = experiment.cells()?;
    Ok(cells.iter().map(|cell| (trajectory_digest(&cell.config), cell.config.run.rounds)).collect())
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
    folders.filter(|path| path.join(CELLS).is_dir() && !manifest::is_complete(path)).last()
}
