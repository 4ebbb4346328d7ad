//! The names of the files of runs.

use crate::error::Error;
use std::path::{Path, PathBuf};

/// The folder of the runs.
pub const RUNS: &str = "runs";

/// The folder of the runs in folders that versions before 0.3 began.
const OLD_RUNS: &str = "cells";

/// The folder of the runs in `folder`. A folder of an earlier version keeps its layout.
pub fn runs_folder(folder: &Path) -> PathBuf {
    let old = folder.join(OLD_RUNS);
    if old.is_dir() { old } else { folder.join(RUNS) }
}

/// An error if the folder of the runs is a link, under either name: runs would be written somewhere else.
pub fn check_runs_folder(folder: &Path) -> Result<(), Error> {
    let links = [RUNS, OLD_RUNS].into_iter().filter(|name| folder.join(name).is_symlink());
    let others: Vec<String> = links.map(str::to_owned).collect();
    if others.is_empty() { Ok(()) } else { Err(Error::NotOurs { path: folder.into(), others }) }
}

/// Whether `prefix`, which ends with a slash, is the folder of the runs.
pub fn is_runs_prefix(prefix: &str) -> bool {
    prefix.strip_suffix('/').is_some_and(|name| [RUNS, OLD_RUNS].contains(&name))
}

/// Every ending of a file of a run.
pub const ENDINGS: [&str; 19] = [
    "json",
    "json.partial",
    "checkpoint",
    "checkpoint.partial",
    "checkpoint.previous",
    "state",
    "state.partial",
    "rounds.csv",
    "rounds.csv.partial",
    "rounds-all.csv",
    "rounds-all.csv.partial",
    "makers",
    "makers.partial",
    "seals",
    "seals.partial",
    "lock",
    "progress",
    "progress.partial",
    "failed",
];

/// Whether a file of this name belongs to a run.
pub fn is_run_file(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let stem = ENDINGS.iter().filter_map(|ending| name.strip_suffix(ending)?.strip_suffix('.'));
    { stem }.any(|stem| {
        let mut words = stem.rsplitn(5, '-');
        let mut word = || words.next().unwrap_or_default();
        let (rounds, digest, seed, k) = (word(), word(), word(), word());
        rounds.strip_prefix('r').is_some_and(digits)
            && digest.len() == 12
            && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
            && seed.strip_prefix("seed").is_some_and(digits)
            && k.strip_prefix('k').is_some_and(digits)
    })
}
