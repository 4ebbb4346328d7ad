//! The folder of an experiment: its identity and its growth.

use super::data::{DataFact, DataFacts, differences, parse_data};
use super::manifest;
use super::plan::Plan;
use super::register::{new_register, write_register};
use super::run_files::RunFiles;
use super::sources::{check_origins, check_parts, store_parts};
use crate::error::Error;
use crate::experiment::{Experiment, Run, Source, Sweep, read_text, with_names_of_today};
use crate::folder::disk::{Disk, RealDisk};
use crate::folder::lock::Lock;
use crate::folder::names::{check_runs_folder, runs_folder};
use crate::folder::output::{FolderFiles, LOCK, write_file_with};
use fedlink::base::files;
use fedlink::parts::Parts;
use fedlink::spec::identity::trajectory_digest;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The content of a folder compared with a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderState {
    /// The folder is empty or does not exist.
    New,
    /// The folder has the same runs.
    Same,
    /// The sweep has all runs of the folder and further ones, or more rounds of them.
    Grown,
}

/// Prepares `folder` for the sweep of `plan`: writes `config.toml`, or replaces it if the sweep has grown or
/// its claims have changed; then `data.json`, and the folder of the runs. It is an error if `folder` has
/// other runs or other data, or begun runs without `data.json`. Several processes may call it at once.
pub fn freeze(folder: &Path, plan: &Plan) -> Result<FolderState, Error> {
    freeze_on(&RealDisk, folder, plan)
}

/// As [`freeze`], on another disk.
pub fn freeze_on(disk: &dyn Disk, folder: &Path, plan: &Plan) -> Result<FolderState, Error> {
    // Before anything is written into a folder that may belong to the user.
    folder_state(folder, &plan.sweep)?;
    check_runs_folder(folder)?;
    disk.create_dir(folder).map_err(Error::file("make", folder))?;
    let _lock = Lock::wait(&folder.join(LOCK))?;
    let state = folder_state(folder, &plan.sweep)?;
    let (data, is_damaged) = match read_data(folder) {
        // The files of its runs state their data.
        Err(Error::Damaged(_)) => (data_of_runs(folder, &plan.sweep.runs), true),
        data => (data?, false),
    };
    if let Some(differences) = differences(&data, &plan.data) {
        return Err(Error::OtherData { path: folder.into(), differences });
    }
    if (data.is_empty() || is_damaged) && has_begun(folder, &plan.sweep.runs) {
        return Err(Error::UnknownData(folder.into()));
    }
    let files = FolderFiles::new(folder);
    if state == FolderState::Grown {
        // The manifest records fewer runs than the sweep now has.
        let path = folder.join("manifest.json");
        if path.symlink_metadata().is_ok() {
            disk.remove(&path).map_err(Error::file("remove", &path))?;
            disk.sync_dir(folder).map_err(Error::file("write", folder))?;
        }
    }
    // Before `config.toml` names them.
    store_parts(disk, folder, &plan.sweep)?;
    // Before `config.toml` is replaced, which holds the claims of a folder without a register.
    let register = new_register(folder, &plan.sweep, any_begun(folder))?;
    let (path, text) = (folder.join("config.toml"), plan.sweep.to_toml());
    if state != FolderState::Same || read_text(&path).ok().as_deref() != Some(text) {
        files.note("config.toml")?;
        write_file_with(disk, &path, text)?;
    }
    if let Some(register) = register {
        write_register(disk, folder, &register)?;
    }
    if is_damaged || plan.data.keys().any(|name| !data.contains_key(name)) {
        let all: DataFacts = data.into_iter().chain(plan.data.clone()).collect();
        files.note("data.json")?;
        write_file_with(disk, &folder.join("data.json"), serde_json::to_string_pretty(&all)? + "\n")?;
    }
    let runs = runs_folder(folder);
    if !runs.is_dir() {
        disk.create_dir(&runs).map_err(Error::file("make", &runs))?;
        disk.sync_dir(folder).map_err(Error::file("write", folder))?;
    }
    Ok(state)
}

/// The data of the finished runs, by their own files.
fn data_of_runs(folder: &Path, runs: &[Run]) -> DataFacts {
    let stored = runs.iter().filter_map(|run| RunFiles::new(folder, &run.spec).read().ok().flatten());
    let fact = |(name, sha256)| (name, DataFact { sha256, ..DataFact::default() });
    stored.flat_map(|run| run.data).map(fact).collect()
}

/// Whether any run in the folder has begun: it has ended, has a checkpoint, or has shown its progress.
fn any_begun(folder: &Path) -> bool {
    let entries = fs::read_dir(runs_folder(folder)).into_iter().flatten().flatten();
    let begun = |name: &str| {
        [".json", ".checkpoint", ".checkpoint.previous", ".progress"].iter().any(|end| name.ends_with(end))
    };
    entries.map(|entry| entry.file_name()).any(|name| begun(&name.to_string_lossy()))
}

/// Whether one of the runs has a checkpoint. A checkpoint does not record its data.
fn has_begun(folder: &Path, runs: &[Run]) -> bool {
    runs.iter().any(|run| RunFiles::new(folder, &run.spec).was_begun())
}

/// The most bytes of `data.json`.
const MAX_DATA: u64 = 16 << 20;

/// `data.json` of a folder; empty if there is no such file.
pub fn read_data(folder: &Path) -> Result<DataFacts, Error> {
    let path = folder.join("data.json");
    match files::read_up_to(&path, MAX_DATA) {
        Ok(bytes) => bytes.and_then(|bytes| parse_data(&bytes)).ok_or(Error::Damaged(path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(DataFacts::new()),
        Err(error) => Err(Error::file("read", &path)(error)),
    }
}

/// `config.toml` of `folder`, if it is there. Its results are named by the folder.
pub fn frozen_source(folder: &Path) -> Result<Option<Source>, Error> {
    let path = folder.join("config.toml");
    if !path.exists() {
        return Ok(None);
    }
    let given = path.display().to_string();
    let text = with_names_of_today(&read_text(&path)?);
    // It has every default, so that an empty one is not ours.
    if text.trim().is_empty() {
        return Err(Error::Damaged(path));
    }
    // The path `.` has no file name before it is canonical.
    let whole = fs::canonicalize(folder).map_err(Error::file("read", folder))?;
    let name = whole.file_name().map_or_else(|| given.clone(), |name| name.to_string_lossy().into_owned());
    Ok(Some(Source { given, name, text }))
}

/// The sweep in `folder`, whose custom parts are among `parts` or unknown. It is an error if there is none,
/// or if a part of that name has another origin there.
pub fn frozen(folder: &Path, parts: &Parts) -> Result<Sweep, Error> {
    let source = frozen_source(folder)?.ok_or_else(|| Error::NoExperiment(folder.into()))?;
    check_parts(folder, &source.text, parts)?;
    let sweep = Experiment::read(&source, &Parts::default())?.expand(parts)?;
    check_origins(folder, &sweep)?;
    Ok(sweep)
}

/// Compares `folder` with `sweep`; the error names the keys in which another experiment differs, or the
/// difference of a custom part.
pub fn folder_state(folder: &Path, sweep: &Sweep) -> Result<FolderState, Error> {
    if folder.exists() && !folder.is_dir() {
        return Err(Error::NotAFolder { path: folder.into(), what: "a file" });
    }
    let source = match frozen_source(folder) {
        // It is made again, as if it was missing.
        Err(Error::Damaged(_)) => None,
        source => source?,
    };
    let Some(source) = source else {
        // Another process may just have begun: its files before config.toml are not foreign ones.
        let others = FolderFiles::new(folder).others()?;
        return if others.is_empty() { Ok(FolderState::New) } else { Err(Error::OtherFiles(folder.into())) };
    };
    if source.text == sweep.to_toml() {
        return Ok(FolderState::Same);
    }
    check_parts(folder, &source.text, &sweep.parts)?;
    // Without the current custom parts: the folder records the origin of its own.
    let before = Experiment::read(&source, &Parts::default())?.expand(&Parts::default())?;
    let (there, here) = (trajectories(&before), trajectories(sweep));
    if there == here {
        return Ok(FolderState::Same);
    }
    // Every run that is there must be here, at least as long.
    let longest: BTreeMap<[u8; 32], u64> = here.iter().copied().collect();
    if there.iter().all(|(trajectory, rounds)| longest.get(trajectory).is_some_and(|here| here >= rounds)) {
        return Ok(FolderState::Grown);
    }
    let [there, here] = [&before, sweep].map(|sweep| flat_keys(sweep.to_toml()));
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

/// Whether the experiment in `folder` has all runs of `sweep`, perhaps among others.
pub fn has_all_runs(folder: &Path, sweep: &Sweep) -> Result<bool, Error> {
    let Some(source) = frozen_source(folder)? else { return Ok(false) };
    let there = Experiment::read(&source, &Parts::default())?.expand(&Parts::default())?;
    let there: BTreeMap<[u8; 32], u64> = trajectories(&there).into_iter().collect();
    let is_there =
        |(trajectory, rounds): &([u8; 32], u64)| there.get(trajectory).is_some_and(|there| there >= rounds);
    Ok(trajectories(sweep).iter().all(is_there))
}

/// The trajectories of the runs of a sweep with their rounds, in order: of one trajectory, the run with the
/// most rounds comes last.
fn trajectories(sweep: &Sweep) -> BTreeSet<([u8; 32], u64)> {
    sweep.runs.iter().map(|run| (trajectory_digest(&run.spec), run.spec.run.rounds)).collect()
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
    folders.filter(|path| runs_folder(path).is_dir() && !manifest::is_complete(path)).last()
}
