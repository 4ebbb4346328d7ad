//! The file operations of stored results behind one interface: writes, syncs, renames and removals in their
//! order. A test records the operations of a run and replays every prefix of them, as a power cut would leave
//! it.
//!
//! A power cut leaves the content of files up to their last [sync](DiskFile::sync), with or without
//! parts of later writes, and the names in a folder up to its last [sync](Disk::sync_dir), with or without
//! later changes.

use crate::error::Error;
use crate::folder::own::{append_own, check_own, create_own};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is being written.
pub trait DiskFile: Write + Send {
    /// Returns when the content is on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file system.
pub trait Disk: Send + Sync {
    /// Makes a file, empty if it was there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file to append to, cut to `length` bytes; makes it if it is not there.
    fn append(&self, path: &Path, length: u64) -> io::Result<Box<dyn DiskFile>>;
    /// Gives a file another name, in place of the file that had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder and those above it.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Returns when the names in a folder are on the disk.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl DiskFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(create_own(path)?))
    }

    fn append(&self, path: &Path, length: u64) -> io::Result<Box<dyn DiskFile>> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let file = append_own(path, Path::new(&partial))?;
        file.set_len(length)?;
        Ok(Box::new(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        // On other systems folders cannot be opened, and names are written with the files.
        if !cfg!(unix) {
            return Ok(());
        }
        match File::open(path)?.sync_all() {
            // Some network file systems do not support it.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
            {
                Ok(())
            }
            result => result,
        }
    }
}

/// Writes a file so that it is complete or absent, and on the disk when this returns. `partial` is its name
/// until then.
pub fn write_synced(
    disk: &dyn Disk,
    path: &Path,
    partial: &Path,
    fill: impl FnOnce(&mut dyn DiskFile) -> io::Result<()>,
) -> Result<(), Error> {
    check_own(path).map_err(Error::file("write", path))?;
    write_partial(disk, path, partial, fill)?;
    let rename = || disk.rename(partial, path).and_then(|()| disk.sync_dir(&parent(path)));
    rename().map_err(|error| {
        // If the removal fails too, the next writer removes the partial file.
        let _ = disk.remove(partial);
        Error::file("write", path)(error)
    })
}

/// Writes and syncs the file `partial`, which is to become `path`.
pub fn write_partial(
    disk: &dyn Disk,
    path: &Path,
    partial: &Path,
    fill: impl FnOnce(&mut dyn DiskFile) -> io::Result<()>,
) -> Result<(), Error> {
    let mut file = disk.create(partial).map_err(Error::file("write", partial))?;
    let write = || fill(&mut *file).and_then(|()| file.sync());
    write().map_err(|error| {
        let _ = disk.remove(partial);
        Error::file("write", path)(error)
    })
}

/// The folder that a path is in.
pub fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        _ => PathBuf::from("."),
    }
}
