//! `fedlink data check`: verify the files of data sets.

use super::known;
use crate::args::CheckOptions;
use crate::failure::Exit;
use crate::inspect::{self, Condition};
use crate::streams::OutputError;
use anyhow::bail;
use fedlink::data::catalog::{CATALOG, Entry, Files};
use fedlink_study::data_folders;
use std::path::PathBuf;

pub fn run(options: &CheckOptions) -> anyhow::Result<Exit> {
    let folders = data_folders(options.data_dir.as_deref());
    let Some(name) = &options.name else {
        let mut bad = Vec::new();
        let mut any = false;
        for entry in CATALOG.iter().filter(|entry| !matches!(entry.files, Files::Embedded)) {
            if folders.iter().any(|folder| inspect::holds_any(entry, &folder.join(entry.name))) {
                any = true;
                bad.extend((!check(entry, &folders)?).then_some(entry.name));
            }
        }
        if !any {
            outln!("no data set to check in {}", inspect::list(&folders))?;
        }
        if !bad.is_empty() {
            let repair: Vec<String> = bad.iter().map(|name| format!("`fedlink data get {name}`")).collect();
            bail!("not in order: {}; run {}", bad.join(", "), repair.join(", "));
        }
        return Ok(Exit::Done);
    };
    let entry = known(name)?;
    if matches!(entry.files, Files::Embedded) {
        outln!("{name} is embedded: there is no file to check")?;
        return Ok(Exit::Done);
    }
    if !folders.iter().any(|folder| inspect::holds_any(entry, &folder.join(entry.name))) {
        let looked_in: Vec<PathBuf> = folders.iter().map(|folder| folder.join(entry.name)).collect();
        bail!(
            "{name} is missing: no file of it in {}; run `fedlink data get {name}`",
            inspect::list(&looked_in)
        );
    }
    if !check(entry, &folders)? {
        bail!("{name} is not in order; run `fedlink data get {name}`");
    }
    Ok(Exit::Done)
}

/// Prints the state of every file in every folder that holds some, and returns whether the data set is in
/// order: nothing damaged, and some folder holds all.
fn check(entry: &Entry, folders: &[PathBuf]) -> Result<bool, OutputError> {
    let mut damaged = false;
    let mut complete = false;
    for folder in folders.iter().map(|folder| folder.join(entry.name)) {
        if !inspect::holds_any(entry, &folder) {
            continue;
        }
        outln!("{} in {}", entry.name, folder.display())?;
        let mut missing = false;
        for (file, condition) in entry.files.list().iter().zip(inspect::inspect(entry, &folder)) {
            match condition {
                Condition::Good(proof) => outln!("  ok       {}  {proof}", file.name)?,
                Condition::Damaged(why) => {
                    damaged = true;
                    outln!("  damaged  {}  {why}", file.name)?;
                }
                Condition::Missing => {
                    missing = true;
                    outln!("  missing  {}", file.name)?;
                }
            }
        }
        complete |= !missing;
    }
    Ok(complete && !damaged)
}
