//! The `fedlink` command in this process, with custom parts from Python files.

use crate::parts::{Part, Raised, collect};
use fedlink::parts::Parts;
use fedlink_cli::PartLoader;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;

/// Loads the parts of Python files by a function of the package.
struct Files {
    load: Py<PyAny>,
    raised: Raised,
}

impl PartLoader for Files {
    fn load(&self, files: &[PathBuf]) -> anyhow::Result<Parts> {
        if files.is_empty() {
            return Ok(Parts::default());
        }
        Python::attach(|py| {
            let files: Vec<&PathBuf> = files.iter().collect();
            let parts: Vec<Part<'_>> = self.load.bind(py).call1((files,))?.extract()?;
            collect(parts, &self.raised)
        })
        .map_err(|error| anyhow::anyhow!("{error}"))
    }
}

/// Runs the command with these arguments, the first being the program's name; `load` gives the parts of
/// `--parts`. Returns its exit code. Ctrl-C is the command's from now on: a run is saved and stopped.
#[pyfunction]
pub fn command(py: Python<'_>, arguments: Vec<OsString>, load: Py<PyAny>) -> u8 {
    fedlink_cli::quit_on_interrupt(|| std::process::exit(130));
    let loader = Files { load, raised: Raised::default() };
    let code = py.detach(|| fedlink_cli::run_to_code(arguments, &loader));
    // The exception that a part raised, with the lines of its file.
    if let Some(error) = loader.raised.take() {
        error.print(py);
    }
    code
}
