//! The output folder. It exists under its final name from the start, so that what is saved there survives a
//! crash; every file in it appears complete or not at all.

use crate::error::Error;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A folder that is being filled.
pub struct OutputFolder {
    path: PathBuf,
    /// Where what was there before is now; it goes when the new folder is complete.
    replaced: Option<PathBuf>,
}

impl OutputFolder {
    /// A new folder. An existing one is moved aside if `replace`, and goes when this one is finished.
    pub fn create(target: &Path, replace: bool) -> Result<Self, Error> {
        let replaced = replaceable(target, replace)?;
        if let Some(aside) = &replaced {
            fs::rename(target, aside).map_err(Error::file("move aside", target))?;
        }
        let folder = Self { path: target.into(), replaced };
        folder.make()?;
        Ok(folder)
    }

    /// A folder that may be there already, with whatever it holds.
    pub fn open(target: &Path) -> Result<Self, Error> {
        if target.exists() && !target.is_dir() {
            return Err(Error::NotAFolder { path: target.into(), what: "a file" });
        }
        let folder = Self { path: target.into(), replaced: None };
        folder.make()?;
        Ok(folder)
    }

    fn make(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.path).map_err(Error::file("write to", &parent(&self.path)))
    }

    /// `base/name`, or `base/name-2`, … if that is there already.
    pub fn free_name(base: &Path, name: &str) -> PathBuf {
        let numbered = |i: u32| base.join(if i == 1 { name.to_owned() } else { format!("{name}-{i}") });
        (1..=u32::MAX).map(numbered).find(|path| !path.exists()).expect("some number is free")
    }

    /// Where files are written now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one file; `name` may have a folder in it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<(), Error> {
        let path = self.path.join(name);
        fs::create_dir_all(parent(&path)).map_err(Error::file("write", &path))?;
        write_file(&path, content)
    }

    /// The folder is complete: removes what it replaces, and returns where it is.
    pub fn finish(self) -> Result<PathBuf, Error> {
        if let Some(aside) = &self.replaced {
            fs::remove_dir_all(aside).map_err(Error::file("remove", aside))?;
        }
        Ok(self.path)
    }
}

/// An error if `target` is there and must stay: for who makes the folder only when all is computed.
pub fn check_free(target: &Path, replace: bool) -> Result<(), Error> {
    if target.exists() && !replace {
        return Err(Error::Exists(target.into()));
    }
    Ok(())
}

/// Where an existing `target` will be moved to; an error if it must stay.
fn replaceable(target: &Path, replace: bool) -> Result<Option<PathBuf>, Error> {
    if !target.exists() {
        return Ok(None);
    }
    if !replace {
        return Err(Error::Exists(target.into()));
    }
    if !target.is_dir() {
        return Err(Error::NotAFolder { path: target.into(), what: "a file" });
    }
    beside(target, "replaced").map(Some)
}

/// A hidden name beside `target`, whose parent is made.
fn beside(target: &Path, what: &str) -> Result<PathBuf, Error> {
    let Some(name) = target.file_name() else {
        return Err(Error::NotAFolder { path: target.into(), what: "a path without a name" });
    };
    let parent = parent(target);
    fs::create_dir_all(&parent).map_err(Error::file("write to", &parent))?;
    Ok(parent.join(format!(".{}.{what}-{}", name.to_string_lossy(), std::process::id())))
}

/// Writes one file so that it is there complete or not at all.
pub fn write_file(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Error> {
    let Some(name) = path.file_name() else {
        let problem = io::Error::new(io::ErrorKind::InvalidInput, "it names no file");
        return Err(Error::file("write", path)(problem));
    };
    let partial = parent(path).join(format!(".{}.partial-{}", name.to_string_lossy(), std::process::id()));
    let written = fs::write(&partial, content).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written.map_err(Error::file("write", path))
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        _ => PathBuf::from("."),
    }
}
