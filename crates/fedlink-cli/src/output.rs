//! The output folder. It is in its place from the start, so that what is saved there survives a crash; every file in
//! it appears complete or not at all.

use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder that is being filled.
pub struct OutputFolder {
    place: PathBuf,
    /// Where what was there before is now; it goes when the new folder is complete.
    replaced: Option<PathBuf>,
}

impl OutputFolder {
    /// A new folder. An existing one is moved aside if `replace`, and goes when this one is finished.
    pub fn create(target: &Path, replace: bool) -> anyhow::Result<Self> {
        let replaced = replaceable(target, replace)?;
        if let Some(aside) = &replaced {
            let cannot = || format!("cannot move {} aside", target.display());
            fs::rename(target, aside).with_context(cannot)?;
        }
        let folder = Self { place: target.into(), replaced };
        folder.make()?;
        Ok(folder)
    }

    /// A folder that may be there already, with whatever it holds.
    pub fn open(target: &Path) -> anyhow::Result<Self> {
        if target.exists() && !target.is_dir() {
            bail!("--out {} is a file, not a folder", target.display());
        }
        let folder = Self { place: target.into(), replaced: None };
        folder.make()?;
        Ok(folder)
    }

    fn make(&self) -> anyhow::Result<()> {
        fs::create_dir_all(&self.place)
            .with_context(|| format!("cannot write to {}", parent(&self.place).display()))
    }

    /// `base/name`, or `base/name-2`, … if that is there already.
    pub fn free_name(base: &Path, name: &str) -> PathBuf {
        let numbered = |i: u32| base.join(if i == 1 { name.to_owned() } else { format!("{name}-{i}") });
        (1..=u32::MAX).map(numbered).find(|path| !path.exists()).expect("some number is free")
    }

    /// Where files are written now.
    pub fn path(&self) -> &Path {
        &self.place
    }

    /// Writes one file; `name` may have a folder in it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
        let path = self.place.join(name);
        fs::create_dir_all(parent(&path)).with_context(|| format!("cannot write {}", path.display()))?;
        write_file(&path, content)
    }

    /// The folder is complete: removes what it replaces, and tells where it is.
    pub fn finish(self) -> anyhow::Result<PathBuf> {
        if let Some(aside) = &self.replaced {
            fs::remove_dir_all(aside).with_context(|| format!("cannot remove {}", aside.display()))?;
        }
        Ok(self.place)
    }
}

/// An error if `target` is there and must stay: for who makes the folder only when all is computed.
pub fn check_free(target: &Path, replace: bool) -> anyhow::Result<()> {
    if target.exists() && !replace {
        bail!(
            "--out {} exists already; choose another folder or add --force to replace it",
            target.display()
        );
    }
    Ok(())
}

/// Where an existing `target` will be moved to; an error if it must stay.
fn replaceable(target: &Path, replace: bool) -> anyhow::Result<Option<PathBuf>> {
    if !target.exists() {
        return Ok(None);
    }
    if !replace {
        bail!(
            "--out {} exists already; choose another folder, or add --resume to go on with it or --force to replace it",
            target.display()
        );
    }
    if !target.is_dir() {
        bail!("--out {} is a file, not a folder", target.display());
    }
    beside(target, "replaced").map(Some)
}

/// A hidden name beside `target`, whose parent is made.
fn beside(target: &Path, what: &str) -> anyhow::Result<PathBuf> {
    let Some(name) = target.file_name() else {
        bail!("--out {}: name a folder to be made", target.display());
    };
    let parent = parent(target);
    fs::create_dir_all(&parent).with_context(|| format!("cannot write to {}", parent.display()))?;
    Ok(parent.join(format!(".{}.{what}-{}", name.to_string_lossy(), std::process::id())))
}

/// Writes one file so that it is there complete or not at all.
pub fn write_file(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let Some(name) = path.file_name() else { bail!("cannot write {}: it names no file", path.display()) };
    let partial = parent(path).join(format!(".{}.partial-{}", name.to_string_lossy(), std::process::id()));
    let written = fs::write(&partial, content).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written.with_context(cannot)
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        _ => PathBuf::from("."),
    }
}
