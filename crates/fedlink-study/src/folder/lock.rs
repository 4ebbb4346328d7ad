//! Locks: one process computes a run, and one process writes the tables of a folder. The operating system
//! releases a lock when its process ends for any reason, so that no lock is stale.

use crate::error::Error;
use crate::folder::own::open_lock;
use fedlink::base::files;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A lock that is held. Dropping it releases the lock and removes its file.
pub struct Lock {
    /// None if the file system has no locks.
    file: Option<File>,
    path: PathBuf,
}

/// The result of an attempt to lock.
pub enum Attempt {
    /// This process has it.
    Held(Lock),
    /// Another process has it.
    Busy,
}

impl Lock {
    /// Takes the lock at `path` if it is free.
    pub fn try_new(path: &Path) -> Result<Attempt, Error> {
        loop {
            let file = open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Attempt::Busy),
                Err(TryLockError::Error(error)) => return without(path, error).map(Attempt::Held),
            }
            if is_at(&file, path) {
                return Ok(Attempt::Held(Self { file: Some(file), path: path.into() }));
            }
        }
    }

    /// Waits for the lock at `path`.
    pub fn wait(path: &Path) -> Result<Self, Error> {
        loop {
            let file = open(path)?;
            if let Err(error) = file.lock() {
                return without(path, error);
            }
            if is_at(&file, path) {
                return Ok(Self { file: Some(file), path: path.into() });
            }
        }
    }

    /// Whether it excludes others; false if the file system has no locks.
    pub fn is_real(&self) -> bool {
        self.file.is_some()
    }

    /// Whether a process has the lock at `path`.
    pub fn is_held(path: &Path) -> bool {
        let Ok(file) = files::open(path) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The file is removed while the lock is held, so that no process can hold a removed file; a process
        // that has it open checks again.
        // In another folder that has taken the place of this one a file of the name is another lock.
        let is_own = self.file.as_ref().is_none_or(|file| is_at(file, &self.path));
        if cfg!(unix) && is_own {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn open(path: &Path) -> Result<File, Error> {
    open_lock(path).map_err(Error::file("lock", path))
}

/// A lock without effect, for file systems without locks.
fn without(path: &Path, error: io::Error) -> Result<Lock, Error> {
    if error.kind() == io::ErrorKind::Unsupported {
        return Ok(Lock { file: None, path: path.into() });
    }
    Err(Error::file("lock", path)(error))
}

/// Whether the open file is the one at `path`, not one that another process has removed.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same = || -> io::Result<bool> {
        let (open, there) = (file.metadata()?, fs::symlink_metadata(path)?);
        Ok((open.dev(), open.ino()) == (there.dev(), there.ino()))
    };
    same().unwrap_or(false)
}

/// On other systems the files of locks are not removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_keeps_others_out_until_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        assert!(!Lock::is_held(&path));
        let Attempt::Held(lock) = Lock::try_new(&path).unwrap() else { panic!("it is free") };
        assert!(lock.is_real() && Lock::is_held(&path));
        assert!(matches!(Lock::try_new(&path).unwrap(), Attempt::Busy));
        // One that waits gets it, although the file that it has open is removed under it.
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| Lock::wait(&path).map(|lock| lock.is_real()));
            std::thread::sleep(std::time::Duration::from_millis(50));
            drop(lock);
            assert!(waiting.join().unwrap().unwrap());
        });
        assert!(!path.exists() && matches!(Lock::try_new(&path).unwrap(), Attempt::Held(_)));
    }
}
