//! Fetching the files of a data set: from mirrors over HTTP, or out of packages.
//!
//! From any source, a file comes to its location by [`Request::accept`] alone: it is verified where it was
//! written and then renamed, so that a file in its location is good or was never ours.

pub mod archive;
pub mod cifar_png;
#[cfg(feature = "download")]
mod http;
#[cfg(feature = "download")]
mod meter;
#[cfg(feature = "download")]
mod mirror;
mod package;

use crate::{inspect, interrupt};
use anyhow::{Context, bail};
use fedlink::data::catalog::Entry;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The data set to download, and its folder.
pub struct Request<'a> {
    /// The data set.
    pub entry: &'static Entry,
    /// The folder of its files.
    pub folder: &'a Path,
    /// The indices of the files to fetch.
    pub wanted: Vec<usize>,
    /// The base of the addresses to use instead of the public ones.
    pub mirror: Option<&'a str>,
    /// Whether to print nothing.
    pub quiet: bool,
}

/// A kind of source to fetch from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A mirror, over HTTP.
    Mirror,
    /// A package, with its client.
    Package,
}

impl Source {
    /// Downloads the missing files. Every file that arrives is verified and in its place, even if others
    /// fail.
    pub fn fetch(self, request: &Request) -> anyhow::Result<()> {
        match self {
            #[cfg(feature = "download")]
            Self::Mirror => mirror::fetch(request),
            #[cfg(not(feature = "download"))]
            Self::Mirror => bail!(
                "mirrors: this fedlink was built without the feature `download`{}",
                request.mirror.map_or_else(String::new, |mirror| format!(", so {mirror} was not used"))
            ),
            Self::Package => package::fetch(request),
        }
    }
}

impl Request<'_> {
    /// Prints a message, unless `--quiet` is given.
    fn print(&self, line: &str) {
        if !self.quiet {
            errln!("{line}");
        }
    }

    /// Makes the file at `fetched` the file `index` of the data set if it is that file. Then no file of
    /// another name takes precedence over it either.
    fn accept(&self, index: usize, fetched: &Path, name: &str) -> anyhow::Result<()> {
        if let Err(why) = inspect::verify(self.entry, index, fetched) {
            bail!("{name} is not the file it should be: {why}");
        }
        let location = self.folder.join(name);
        let cannot = || format!("cannot write {}", location.display());
        // On disk before it has its name: a power cut must not leave a good name on a bad file.
        File::open(fetched).and_then(|file| file.sync_all()).with_context(cannot)?;
        fs::rename(fetched, &location).with_context(cannot)?;
        for other in inspect::names(self.entry, index).into_iter().filter(|other| other != name) {
            let other = self.folder.join(other);
            if other.is_file() {
                fs::remove_file(&other).with_context(|| format!("cannot remove {}", other.display()))?;
            }
        }
        Ok(())
    }
}

/// A folder for files on their way, beside their location, gone with this value.
struct Staging(PathBuf);

impl Staging {
    fn new(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(".staging");
        // A file of a killed process: no other process works here, because `get` locks the folder.
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        fs::create_dir(&path).with_context(|| format!("cannot write to {}", folder.display()))?;
        interrupt::set_cleanup_dir(Some(path.clone()));
        Ok(Self(path))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        interrupt::set_cleanup_dir(None);
    }
}
