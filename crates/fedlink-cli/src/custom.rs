//! The source of custom parts.

use anyhow::bail;
use fedlink::parts::Parts;
use std::path::PathBuf;

/// Loads the custom parts of `--parts`.
pub trait PartLoader {
    /// The parts that `files` define.
    fn load(&self, files: &[PathBuf]) -> anyhow::Result<Parts>;
}

/// The plain command, which has no interpreter.
pub struct NoLoader;

impl PartLoader for NoLoader {
    fn load(&self, files: &[PathBuf]) -> anyhow::Result<Parts> {
        let Some(file) = files.first() else { return Ok(Parts::default()) };
        bail!(
            "--parts {}: this command cannot load Python; install the Python package (pip install fedlink), \
             whose fedlink command can, and run the same line again",
            file.display()
        )
    }
}
