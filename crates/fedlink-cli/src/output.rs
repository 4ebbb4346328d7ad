//! The output folder: written beside its place and moved there when it is complete.

use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder in the making.
pub struct OutputFolder {
    target: PathBuf,
    partial: PathBuf,
    replace: bool,
}

impl OutputFolder {
    /// Makes sure that `target` can be written; an existing one only if `replace`.
    pub fn create(target: &Path, replace: bool) -> anyhow::Result<Self> {
        if target.exists() && !replace {
            bail!(
                "--out {} exists already; choose another folder or add --force to replace it",
                target.display()
            );
        }
        if target.exists() && !target.is_dir() {
            bail!("--out {} is a file, not a folder", target.display());
        }
        let Some(name) = target.file_name() else {
            bail!("--out {}: name a folder to be made", target.display());
        };
        let parent = parent(target);
        let cannot = || format!("cannot write to {}", parent.display());
        fs::create_dir_all(&parent).with_context(cannot)?;
        let partial = parent.join(format!(".{}.partial-{}", name.to_string_lossy(), std::process::id()));
        fs::create_dir(&partial).with_context(cannot)?;
        Ok(Self { target: target.into(), partial, replace })
    }

    /// A new folder `base/name`, or `base/name-2`, … if that is there already.
    pub fn create_new(base: &Path, name: &str) -> anyhow::Result<Self> {
        let numbered = |i: u32| base.join(if i == 1 { name.to_owned() } else { format!("{name}-{i}") });
        let free = (1..=u32::MAX).map(numbered).find(|path| !path.exists()).expect("some number is free");
        Self::create(&free, false)
    }

    /// Writes one file.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
        let path = self.partial.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Moves the complete folder to its place and tells where that is.
    pub fn finish(self) -> anyhow::Result<PathBuf> {
        let old = self.partial.with_extension("old");
        let replacing = self.replace && self.target.exists();
        let cannot = || format!("cannot move the results to {}", self.target.display());
        if replacing {
            fs::rename(&self.target, &old).with_context(cannot)?;
        }
        fs::rename(&self.partial, &self.target).with_context(cannot)?;
        if replacing {
            fs::remove_dir_all(&old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
        Ok(self.target.clone())
    }
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

/// A folder that was not finished leaves nothing behind.
impl Drop for OutputFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.partial);
    }
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        _ => PathBuf::from("."),
    }
}
