//! `register.json`: the claims of a folder at its first run, so that claims made after the results are known.

use super::freeze::frozen_source;
use super::process::now;
use crate::claims::{Claims, Register};
use crate::error::Error;
use crate::experiment::{Experiment, Sweep};
use crate::folder::disk::Disk;
use crate::folder::output::{FolderFiles, write_file_with};
use fedlink::parts::Parts;
use std::fs;
use std::path::Path;

/// The file of the register.
const NAME: &str = "register.json";

/// The register in `folder`; none if an earlier version wrote the folder.
pub(crate) fn read_register(folder: &Path) -> Result<Option<Register>, Error> {
    let path = folder.join(NAME);
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|_| Error::Damaged(path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("read", &path)(error)),
    }
}

/// The register of a sweep, of which runs may have `begun` in `folder`; none if the folder has it already. As
/// long as no run has begun, the claims may change. The folder's `config.toml` is still the one before.
pub(super) fn new_register(folder: &Path, sweep: &Sweep, begun: bool) -> Result<Option<Register>, Error> {
    let claims = sweep.experiment.all_claims();
    let before = read_register(folder)?;
    let mut register = match &before {
        _ if !begun => Register::new(claims, Some(now())),
        Some(register) => register.clone(),
        // An earlier version began the folder; its configuration has the claims of that time.
        None => Register::new(&claims_of(folder)?.unwrap_or_default(), None),
    };
    register.update(claims, &now());
    let same_claims = |before: Register| Register { first_run: register.first_run.clone(), ..before };
    let is_there = before.is_some_and(|before| same_claims(before) == register);
    Ok((!is_there).then_some(register))
}

/// Writes the register. The caller holds the lock of the folder.
pub(super) fn write_register(disk: &dyn Disk, folder: &Path, register: &Register) -> Result<(), Error> {
    FolderFiles::new(folder).note(NAME)?;
    write_file_with(disk, &folder.join(NAME), serde_json::to_string_pretty(register)? + "\n")
}

/// The claims of `config.toml` in `folder`; none if there is no such file.
fn claims_of(folder: &Path) -> Result<Option<Claims>, Error> {
    let Some(source) = frozen_source(folder)? else { return Ok(None) };
    Ok(Some(Experiment::read(&source, &Parts::default())?.all_claims().clone()))
}
