//! The output folder. It has its final name from the start, so that its files survive a crash; every file in
//! it is complete or absent. `files.txt` lists the files that fedlink wrote, so that a folder can be replaced
//! without touching other files.

use crate::error::Error;
use crate::folder::disk::{Disk, RealDisk, parent, write_synced};
use crate::folder::lock::Lock;
use crate::folder::names::{is_run_file, is_runs_prefix, runs_folder};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{fs, mem};

/// The lock of the process that writes to the folder.
pub(crate) const LOCK: &str = ".lock";
/// The list of the files that fedlink wrote.
const FILES: &str = "files.txt";

/// The first files: a power cut may leave them half-written and not listed.
const FIRST: [&str; 2] = ["config.toml", "data.json"];

/// A folder that is being filled.
pub struct OutputFolder {
    folder: PathBuf,
    /// The replaced folder under its temporary name; it is removed when the new one is complete.
    replaced: Option<PathBuf>,
    files: FolderFiles,
    /// Whether the folder has no list, as those of early versions.
    is_unlisted: bool,
}

impl OutputFolder {
    /// A new folder. If `replace`, an existing one is moved aside, and its files by fedlink are removed when
    /// this one is finished. A folder with other files, or that a process is writing to, is refused before
    /// any change. A link is kept and leads to the new folder.
    pub fn create(target: &Path, replace: bool) -> Result<Self, Error> {
        check_free(target, replace)?;
        if !target.exists() {
            return Self::made(target, None);
        }
        let folder = linked(target)?;
        let aside = beside(&folder)?;
        fs::rename(&folder, &aside).map_err(Error::file("move aside", &folder))?;
        make_folder(&folder)?;
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
        let is_unlisted = files.noted()?.is_none();
        Ok(Self { folder: target.into(), replaced, files, is_unlisted })
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
        let below = |path: &&Path| path.starts_with(&self.folder) && **path != *self.folder;
        let leads_away = path.ancestors().take_while(below).any(Path::is_symlink);
        let is_noted = self.is_unlisted || self.files.noted()?.is_some_and(|noted| noted.contains(name));
        if leads_away || (path.exists() && !is_noted) {
            return Err(Error::NotOurs { path: self.folder.clone(), others: vec![name.to_owned()] });
        }
        fs::create_dir_all(parent(&path)).map_err(Error::file("write", &path))?;
        self.files.note(name)?;
        write_file(&path, content)
    }

    /// Completes the folder: removes the folder that it replaces and those that killed processes moved aside,
    /// and returns its path.
    pub fn finish(mut self) -> Result<PathBuf, Error> {
        if let Some(aside) = self.replaced.take() {
            FolderFiles::new(&aside).remove_all()?;
        }
        for aside in moved_aside(&linked(&self.folder)?)? {
            if check_free(&aside, true).is_ok() {
                FolderFiles::new(&aside).remove_all()?;
            }
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
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.lines().map(str::to_owned).collect())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::file("read", &path)(error)),
        }
    }

    /// Notes that the file `name` will be written.
    pub fn note(&self, name: &str) -> Result<(), Error> {
        if self.noted()?.is_some_and(|noted| noted.contains(name)) {
            return Ok(());
        }
        let path = self.folder.join(FILES);
        let open = || fs::OpenOptions::new().create(true).append(true).open(&path);
        // One write, so that lines of several processes do not mix.
        let note = || open()?.write_all(format!("{name}\n").as_bytes());
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
                let ours = [FILES, LOCK].contains(&name.as_str())
                    || noted.contains(&name)
                    || partial_of(&name)
                        .is_some_and(|whole| noted.contains(&whole) || FIRST.contains(&whole.as_str()))
                    || (is_runs_prefix(&prefix) && is_run_file(&file));
                let link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                files.push((name, ours && !link));
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

/// The folder that a link leads to; a path that is no link as it is.
fn linked(path: &Path) -> Result<PathBuf, Error> {
    if !path.is_symlink() {
        return Ok(path.into());
    }
    fs::canonicalize(path).map_err(Error::file("read", path))
}

/// A hidden name beside `folder`.
fn beside(folder: &Path) -> Result<PathBuf, Error> {
    let Some(name) = folder.file_name() else {
        return Err(Error::NotAFolder { path: folder.into(), what: "a path without a name" });
    };
    let name = name.to_string_lossy();
    Ok(parent(folder).join(format!(".{name}.replaced-{}", std::process::id())))
}

/// The folders that processes moved aside by the name of [`beside`], to be replaced by `folder`.
fn moved_aside(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let Some(name) = folder.file_name() else { return Ok(Vec::new()) };
    let start = format!(".{}.replaced-", name.to_string_lossy());
    let is_aside = |entry: &fs::DirEntry| {
        let file = entry.file_name().to_string_lossy().into_owned();
        let pid = file.strip_prefix(&start).unwrap_or_default();
        !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit())
    };
    let entries = fs::read_dir(parent(folder)).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(Error::file("read", folder))?;
    Ok(entries.iter().filter(|entry| is_aside(entry)).map(fs::DirEntry::path).collect())
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
    let partial = parent(path).join(format!(".{}.partial-{}", name.to_string_lossy(), std::process::id()));
    write_synced(disk, path, &partial, |file| file.write_all(content.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::names::RUNS;

    /// Every file under `folder`.
    fn listed(folder: &Path) -> Vec<String> {
        FolderFiles::new(folder).all().unwrap().into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_folder_is_replaced_only_if_fedlink_wrote_all_its_files() {
        let base = tempfile::tempdir().unwrap();
        let target = base.path().join("out");
        let folder = OutputFolder::create(&target, false).unwrap();
        folder.write("results.csv", "1").unwrap();
        folder.write("plots/a.svg", "1").unwrap();
        folder.finish().unwrap();
        assert!(matches!(check_free(&target, false), Err(Error::Exists(_))));
        // A run, and a partial file of a killed process.
        fs::create_dir(target.join(RUNS)).unwrap();
        fs::write(target.join("runs/bc-k1-seed3-4f0c2a9b61de-r400.json"), "x").unwrap();
        fs::write(target.join("plots/.a.svg.partial-77"), "x").unwrap();
        let before = listed(&target);
        let mine =
            ["thesis.tex", "plots/mine.svg", "runs/notes.json", ".results.csv.partial-x", "deep/er/file"];
        for name in mine {
            let path = target.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "precious").unwrap();
            let Err(Error::NotOurs { others, .. }) = OutputFolder::create(&target, true).map(drop) else {
                panic!("{name}")
            };
            assert_eq!(others, [name]);
            fs::remove_file(&path).unwrap();
        }
        fs::remove_dir(target.join("deep/er")).unwrap();
        fs::remove_dir(target.join("deep")).unwrap();
        assert_eq!(listed(&target), before);
        let folder = OutputFolder::create(&target, true).unwrap();
        let aside = folder.replaced().unwrap().to_owned();
        assert_eq!(listed(&aside), before);
        // A foreign file that appears at the last moment stays, and the error names it.
        fs::write(aside.join("late"), "precious").unwrap();
        let error = folder.finish().unwrap_err().to_string();
        assert!(error.contains(".out.replaced-"), "{error}");
        assert_eq!(listed(&aside), ["late"]);
        fs::remove_dir_all(&aside).unwrap();
        OutputFolder::create(&target, true).unwrap().finish().unwrap();
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
        fs::create_dir_all(target.join("my/own")).unwrap();
        let refused = OutputFolder::create(&target, true);
        assert!(matches!(refused, Err(Error::NotOurs { others, .. }) if others == ["my/own/"]));
        fs::remove_dir(target.join("my/own")).unwrap();
        fs::remove_dir(target.join("my")).unwrap();
        // An empty one.
        OutputFolder::create(&target, true).unwrap().finish().unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed_and_a_folder_in_use_is_left_alone() {
        let base = tempfile::tempdir().unwrap();
        let (target, other) = (base.path().join("out"), base.path().join("other"));
        OutputFolder::create(&target, false).unwrap().write("a.csv", "1").unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("b"), "precious").unwrap();
        fs::remove_file(target.join("a.csv")).unwrap();
        std::os::unix::fs::symlink(other.join("b"), target.join("a.csv")).unwrap();
        std::os::unix::fs::symlink(&other, target.join("linked")).unwrap();
        assert_eq!(FolderFiles::new(&target).others().unwrap(), ["a.csv", "linked"]);
        assert!(matches!(OutputFolder::create(&target, true), Err(Error::NotOurs { .. })));
        for name in ["a.csv", "linked"] {
            fs::remove_file(target.join(name)).unwrap();
        }
        let lock = OutputFolder::open(&target).unwrap().lock().unwrap();
        assert!(matches!(OutputFolder::create(&target, true), Err(Error::InUse { .. })));
        drop(lock);
        OutputFolder::create(&target, true).unwrap().finish().unwrap();
        assert_eq!(fs::read(other.join("b")).unwrap(), b"precious");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_folder_leads_to_its_replacement() {
        let base = tempfile::tempdir().unwrap();
        let (link, real) = (base.path().join("out"), base.path().join("disk/real"));
        OutputFolder::create(&real, false).unwrap().write("a.csv", "1").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let folder = OutputFolder::create(&link, true).unwrap();
        folder.write("b.csv", "2").unwrap();
        assert_eq!(folder.finish().unwrap(), link);
        assert!(link.is_symlink() && fs::read(real.join("b.csv")).unwrap() == b"2");
        assert_eq!(listed(&real), ["b.csv", FILES]);
        let names = |folder: &Path| fs::read_dir(folder).unwrap().count();
        assert_eq!((names(base.path()), names(&base.path().join("disk"))), (2, 1));
    }

    #[cfg(unix)]
    #[test]
    fn a_foreign_file_in_a_folder_is_not_overwritten() {
        let base = tempfile::tempdir().unwrap();
        let target = base.path().join("out");
        OutputFolder::create(&target, false).unwrap().write("results.csv", "1").unwrap();
        fs::write(target.join("results.tex"), "precious").unwrap();
        let (plots, plot) = (base.path().join("mine"), base.path().join("mine/a.svg"));
        fs::create_dir(&plots).unwrap();
        fs::write(&plot, "precious").unwrap();
        std::os::unix::fs::symlink(&plots, target.join("plots")).unwrap();
        std::os::unix::fs::symlink(&plot, target.join("b.svg")).unwrap();
        let folder = OutputFolder::open(&target).unwrap();
        for name in ["results.tex", "plots/a.svg", "plots/new.svg", "b.svg"] {
            let refused = folder.write(name, "2");
            assert!(matches!(refused, Err(Error::NotOurs { others, .. }) if others == [name]), "{name}");
        }
        folder.write("results.csv", "2").unwrap();
        assert_eq!(fs::read(target.join("results.tex")).unwrap(), b"precious");
        assert_eq!(
            (fs::read(&plot).unwrap(), fs::read_dir(&plots).unwrap().count()),
            (b"precious".to_vec(), 1)
        );
        // A folder of a version that kept no list.
        fs::remove_file(target.join(FILES)).unwrap();
        OutputFolder::open(&target).unwrap().write("results.csv", "3").unwrap();
    }

    #[test]
    fn a_completed_folder_removes_those_moved_aside_by_killed_processes_and_keeps_foreign_files() {
        let base = tempfile::tempdir().unwrap();
        let target = base.path().join("out");
        let aside = |pid: u32| base.path().join(format!(".out.replaced-{pid}"));
        for pid in [1, 2] {
            OutputFolder::create(&aside(pid), false).unwrap().write("a.csv", "1").unwrap();
        }
        fs::write(aside(2).join("mine"), "precious").unwrap();
        let named = base.path().join(".out.replaced-x");
        fs::create_dir(&named).unwrap();
        OutputFolder::open(&target).unwrap().finish().unwrap();
        assert!(!aside(1).exists() && named.exists());
        assert_eq!(listed(&aside(2)), ["a.csv", FILES, "mine"]);
    }

    #[test]
    fn the_next_lock_removes_half_written_files_of_killed_processes() {
        let base = tempfile::tempdir().unwrap();
        let folder = OutputFolder::open(base.path()).unwrap();
        folder.write("plots/a.svg", "1").unwrap();
        for name in ["plots/.a.svg.partial-77", "plots/.mine.partial-77"] {
            fs::write(base.path().join(name), "x").unwrap();
        }
        drop(folder.lock().unwrap());
        assert_eq!(listed(base.path()), [FILES, "plots/.mine.partial-77", "plots/a.svg"]);
    }
}
