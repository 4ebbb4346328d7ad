//! The output folder. It has its final name from the start, so that its files survive a crash; every file in
//! it is complete or absent. `files.txt` lists the files that fedlink wrote, so that a folder can be replaced
//! without touching other files.

pub use crate::folder::own::{append_own, create_own};

use crate::error::Error;
use crate::folder::disk::{Disk, RealDisk, parent, write_synced};
use crate::folder::lock::Lock;
use crate::folder::names::{is_run_file, is_runs_prefix, runs_folder};
use fedlink::base::files;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{fs, mem};

/// The lock of the process that writes to the folder.
pub(crate) const LOCK: &str = ".lock";
/// The list of the files that fedlink wrote.
const FILES: &str = "files.txt";
/// The most bytes of that list.
const MAX_LIST: u64 = 16 << 20;

/// The first files: a power cut may leave them half-written and not listed.
const FIRST: [&str; 2] = ["config.toml", "data.json"];

/// A folder that is being filled.
pub struct OutputFolder {
    folder: PathBuf,
    /// The replaced folder under its temporary name; it is removed when the new one is complete.
    replaced: Option<PathBuf>,
    files: FolderFiles,
}

impl OutputFolder {
    /// A new folder. If `replace`, an existing one is moved aside, and its files by fedlink are removed when
    /// this one is finished. A folder with other files, or that a process is writing to, is refused before
    /// any change. A link is kept and leads to the new folder, which has the permissions of the old one.
    pub fn create(target: &Path, replace: bool) -> Result<Self, Error> {
        check_free(target, replace)?;
        if !target.exists() {
            return Self::made(target, None);
        }
        let folder = linked(target)?;
        let there = |folder: &Path| -> io::Result<(fs::Permissions, bool)> {
            Ok((fs::metadata(folder)?.permissions(), fs::read_dir(folder)?.next().is_none()))
        };
        let (permissions, is_empty) = there(&folder).map_err(Error::file("read", &folder))?;
        if is_empty {
            return Self::made(target, None);
        }
        let aside = beside(&folder)?;
        fs::rename(&folder, &aside).map_err(Error::file("move aside", &folder))?;
        let make = || fs::create_dir(&folder).and_then(|()| fs::set_permissions(&folder, permissions));
        if let Err(error) = make() {
            // The old results keep their place if there is no room for new ones.
            let _ = fs::remove_dir(&folder).and_then(|()| fs::rename(&aside, &folder));
            return Err(Error::file("make", &folder)(error));
        }
        Self::made(target, Some(aside))
    }

    /// A folder that may exist already, with any content.
    pub fn open(target: &Path) -> Result<Self, Error> {
        if target.exists() && !target.is_dir() {
            return Err(Error::NotAFolder { path: target.into(), what: "a file" });
        }
        Self::made(target, None)
    }

    fn made(target: &Path, replaced: Option<PathBuf>) -> Result<Self, Error> {
        make_folder(target)?;
        let files = FolderFiles::new(target);
        files.noted()?;
        Ok(Self { folder: target.into(), replaced, files })
    }

    /// `base/name`, or `base/name-2`, … if that is there already.
    pub fn free_name(base: &Path, name: &str) -> PathBuf {
        let numbered = |i: u32| base.join(if i == 1 { name.to_owned() } else { format!("{name}-{i}") });
        (1..=u32::MAX).map(numbered).find(|path| !path.exists()).expect("some number is free")
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The temporary path of the replaced folder, until this one is finished.
    pub fn replaced(&self) -> Option<&Path> {
        self.replaced.as_deref()
    }

    /// Locks the folder against other writers, and removes the half-written files of killed processes.
    pub fn lock(&self) -> Result<Lock, Error> {
        let lock = Lock::wait(&self.folder.join(LOCK))?;
        if lock.is_real() {
            self.files.sweep()?;
        }
        // The runs of a sweep may have been copied from other machines.
        if runs_folder(&self.folder).is_dir() {
            let there = FIRST.iter().filter(|name| self.folder.join(name).exists());
            { there }.try_for_each(|name| self.files.note(name))?;
        }
        Ok(lock)
    }

    /// Writes one file; `name` may include a folder. A foreign file or a link of that name is an error.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<(), Error> {
        let path = self.folder.join(name);
        self.files.check_writable(name)?;
        fs::create_dir_all(parent(&path)).map_err(Error::file("write", &path))?;
        self.files.note(name)?;
        write_file(&path, content)
    }

    /// Completes the folder: removes the folder that it replaces, and returns its path. A folder that another
    /// process [moved aside](left_aside) stays: it may hold the only results that are complete.
    pub fn finish(mut self) -> Result<PathBuf, Error> {
        if let Some(aside) = self.replaced.take() {
            FolderFiles::new(&aside).remove_all()?;
        }
        Ok(mem::take(&mut self.folder))
    }
}

/// The files in a folder, and whether fedlink wrote them.
pub(crate) struct FolderFiles {
    folder: PathBuf,
}

impl FolderFiles {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.into() }
    }

    /// The files that fedlink wrote, by `files.txt`; none if there is no such file.
    fn noted(&self) -> Result<Option<BTreeSet<String>>, Error> {
        let path = self.folder.join(FILES);
        match files::read(&path, MAX_LIST) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::file("read", &path)(error)),
        }
    }

    /// An error if a foreign file or a link has the name of a file that is to be written.
    pub fn check_writable(&self, name: &str) -> Result<(), Error> {
        let path = self.folder.join(name);
        let below = |path: &&Path| path.starts_with(&self.folder) && **path != *self.folder;
        let leads_away = path.ancestors().take_while(below).any(Path::is_symlink);
        // Without a list every existing file may belong to the user.
        let is_noted = || Ok::<_, Error>(self.noted()?.is_some_and(|noted| noted.contains(name)));
        if leads_away || (path.symlink_metadata().is_ok() && !is_noted()?) {
            return Err(Error::NotOurs { path: self.folder.clone(), others: vec![name.to_owned()] });
        }
        Ok(())
    }

    /// Notes that the file `name` will be written.
    pub fn note(&self, name: &str) -> Result<(), Error> {
        if self.noted()?.is_some_and(|noted| noted.contains(name)) {
            return Ok(());
        }
        let path = self.folder.join(FILES);
        let partial = partial_path(&path, FILES);
        // One write, so that lines of several processes do not mix.
        let note = || append_own(&path, &partial)?.write_all(format!("{name}\n").as_bytes());
        note().map_err(Error::file("write", &path))
    }

    /// Every file in the folder by its path, and whether fedlink wrote it. A link is foreign, and so is an
    /// empty folder that is not for files of fedlink.
    fn all(&self) -> Result<Vec<(String, bool)>, Error> {
        let noted = self.noted()?.unwrap_or_default();
        let mut files = Vec::new();
        let mut folders = vec![(self.folder.clone(), String::new())];
        while let Some((path, prefix)) = folders.pop() {
            let entries = match fs::read_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(Error::file("read", &path))?,
            };
            let entries = entries.collect::<io::Result<Vec<_>>>().map_err(Error::file("read", &path))?;
            let known = prefix.is_empty()
                || is_runs_prefix(&prefix)
                || noted.iter().any(|name| name.starts_with(&prefix));
            if entries.is_empty() && !known {
                files.push((prefix.clone(), false));
            }
            for entry in entries {
                let file = entry.file_name().to_string_lossy().into_owned();
                let name = format!("{prefix}{file}");
                if entry.file_type().map_err(Error::file("read", &path))?.is_dir() {
                    folders.push((entry.path(), format!("{name}/")));
                    continue;
                }
                let whole = partial_of(&name);
                let is_first = |name: &str| name == FILES || FIRST.contains(&name);
                let is_empty = || entry.metadata().is_ok_and(|there| there.len() == 0);
                let ours = name == FILES
                    || (name == LOCK && is_empty())
                    || noted.contains(&name)
                    || whole.is_some_and(|whole| noted.contains(&whole) || is_first(&whole))
                    || (is_runs_prefix(&prefix) && is_run_file(&file));
                // Not a link, a pipe or a device.
                let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
                files.push((name, ours && is_file));
            }
        }
        files.sort();
        Ok(files)
    }

    /// The files that fedlink did not write.
    pub fn others(&self) -> Result<Vec<String>, Error> {
        Ok(self.all()?.into_iter().filter(|(_, ours)| !ours).map(|(name, _)| name).collect())
    }

    /// Removes the half-written files of killed processes. The folder must be locked.
    fn sweep(&self) -> Result<(), Error> {
        for (name, ours) in self.all()? {
            if ours && partial_of(&name).is_some() {
                let path = self.folder.join(&name);
                fs::remove_file(&path).map_err(Error::file("remove", &path))?;
            }
        }
        Ok(())
    }

    /// Removes the files that fedlink wrote and the folders that are then empty. Other files stay.
    fn remove_all(&self) -> Result<(), Error> {
        let mut folders = BTreeSet::from([self.folder.clone()]);
        for (name, ours) in self.all()? {
            let path = self.folder.join(&name);
            folders.extend(
                path.ancestors()
                    .skip(1)
                    .take_while(|above| above.starts_with(&self.folder))
                    .map(Path::to_owned),
            );
            if ours {
                fs::remove_file(&path).map_err(Error::file("remove", &path))?;
            }
        }
        folders.insert(runs_folder(&self.folder));
        // Deeper ones first.
        for folder in folders.iter().rev() {
            match fs::remove_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::file("remove", folder)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// An error if `target` exists and must not be replaced, for callers that make the folder after a
/// computation. A folder can be replaced if all its files are by fedlink.
pub fn check_free(target: &Path, replace: bool) -> Result<(), Error> {
    if !target.exists() {
        return Ok(());
    }
    if !replace {
        return Err(Error::Exists(target.into()));
    }
    if !target.is_dir() {
        return Err(Error::NotAFolder { path: target.into(), what: "a file" });
    }
    let files = FolderFiles::new(target);
    let others = files.others()?;
    if !others.is_empty() {
        return Err(Error::NotOurs { path: target.into(), others });
    }
    let busy = |(name, _): &(String, bool)| {
        name.rsplit('.').next() == Some("lock") && Lock::is_held(&target.join(name))
    };
    if let Some((lock, _)) = files.all()?.into_iter().find(busy) {
        return Err(Error::InUse { path: target.into(), lock });
    }
    Ok(())
}

/// The file that `.NAME.partial-PID` is to become.
fn partial_of(name: &str) -> Option<String> {
    let (folder, file) = name.rsplit_once('/').map_or(("", name), |(folder, file)| (folder, file));
    let (whole, pid) = file.strip_prefix('.')?.rsplit_once(".partial-")?;
    let is_pid = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    is_pid.then(|| if folder.is_empty() { whole.to_owned() } else { format!("{folder}/{whole}") })
}

/// The folder that a link leads to; a path that is no link is returned unchanged.
fn linked(path: &Path) -> Result<PathBuf, Error> {
    if !path.is_symlink() {
        return Ok(path.into());
    }
    fs::canonicalize(path).map_err(Error::file("read", path))
}

/// A hidden name beside `folder` that is free: several processes may have the same number, in containers.
fn beside(folder: &Path) -> Result<PathBuf, Error> {
    let Some(name) = folder.file_name() else {
        return Err(Error::NotAFolder { path: folder.into(), what: "a path without a name" });
    };
    let name = name.to_string_lossy();
    let first = parent(folder).join(format!(".{name}.replaced-{}", std::process::id()));
    let numbered = |i: u32| if i == 1 { first.clone() } else { with_ending(&first, &format!("-{i}")) };
    let is_free = |path: &PathBuf| path.symlink_metadata().is_err();
    Ok((1..=u32::MAX).map(numbered).find(is_free).expect("some number is free"))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut longer = path.as_os_str().to_owned();
    longer.push(ending);
    longer.into()
}

/// The folders with the results that processes moved aside to replace `target`, and that are still there
/// because those processes did not end well.
pub fn left_aside(target: &Path) -> Result<Vec<PathBuf>, Error> {
    if !target.exists() {
        return Ok(Vec::new());
    }
    let folder = &linked(target)?;
    let Some(name) = folder.file_name() else { return Ok(Vec::new()) };
    let start = format!(".{}.replaced-", name.to_string_lossy());
    let is_aside = |entry: &fs::DirEntry| {
        let file = entry.file_name().to_string_lossy().into_owned();
        let pid = file.strip_prefix(&start).unwrap_or_default();
        // With the number of a process, and perhaps a second one.
        !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    let entries = fs::read_dir(parent(folder)).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(Error::file("read", folder))?;
    let mut aside: Vec<PathBuf> =
        entries.iter().filter(|entry| is_aside(entry)).map(fs::DirEntry::path).collect();
    aside.sort();
    Ok(aside)
}

/// Makes a folder and those above it, if they are not there.
pub fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(Error::file("write to", path))
}

/// Writes one file so that it is there complete or not at all, and on the disk when this returns.
pub fn write_file(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Error> {
    write_file_with(&RealDisk, path, content)
}

/// As [`write_file`], on another disk.
pub(crate) fn write_file_with(disk: &dyn Disk, path: &Path, content: impl AsRef<[u8]>) -> Result<(), Error> {
    let Some(name) = path.file_name() else {
        let problem = io::Error::new(io::ErrorKind::InvalidInput, "it names no file");
        return Err(Error::file("write", path)(problem));
    };
    let partial = partial_path(path, &name.to_string_lossy());
    write_synced(disk, path, &partial, |file| file.write_all(content.as_ref()))
}

/// The name of the file at `path`, which is called `name`, until it is complete.
fn partial_path(path: &Path, name: &str) -> PathBuf {
    parent(path).join(format!(".{name}.partial-{}", std::process::id()))
}

#[cfg(test)]
mod tests;
