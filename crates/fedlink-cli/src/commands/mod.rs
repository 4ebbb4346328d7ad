//! One file for each command.

pub mod bound;
pub mod bound_plan;
pub mod check;
pub mod completions;
pub mod config;
pub mod data;
pub mod link_budget;
pub mod list;
pub mod man;
pub mod merge;
pub mod plan;
pub mod resume;
pub mod run;
pub mod status;
pub mod theory_run;
pub mod verify;
pub mod watch;

use anyhow::{Context, anyhow, bail};
use fedlink_study::experiment::Experiment;
use fedlink_study::output::{self, OutputFolder};
use std::path::{Path, PathBuf};

/// The experiment `name`, a preset or a file that runs the system, with the settings of the command line.
fn experiment(name: Option<&str>, settings: &[String]) -> anyhow::Result<Experiment> {
    let mut experiment = match name {
        None => Experiment::default(),
        Some(name) => Experiment::open(name)?,
    };
    apply(settings, |key, value| experiment.set(key, value))?;
    Ok(experiment)
}

/// Applies the settings of the command line, every `--set KEY=VALUE`.
fn apply(
    settings: &[String],
    mut set: impl FnMut(&str, &str) -> Result<(), fedlink::spec::ConfigError>,
) -> anyhow::Result<()> {
    for setting in settings {
        let Some((key, value)) = setting.split_once('=') else {
            bail!("--set {setting}: write --set KEY=VALUE, for example --set schedule.k=5");
        };
        set(key.trim(), value.trim()).with_context(|| format!("--set {setting}"))?;
    }
    Ok(())
}

/// The folder of `--out`, new or replaced by `--force`.
fn create(target: &Path, force: bool) -> anyhow::Result<OutputFolder> {
    note_left_aside(target)?;
    OutputFolder::create(target, force).map_err(|error| out(error, ", or add --resume to resume it or"))
}

/// Fills the folder of `--out`, new or replaced by `--force`, and completes it.
fn filled(
    target: &Path,
    force: bool,
    fill: impl FnOnce(&OutputFolder) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let folder = create(target, force)?;
    let replaced = folder.replaced().map(Path::to_owned);
    naming(replaced, || {
        fill(&folder)?;
        Ok(folder.finish()?)
    })
}

/// Does `work`. If it fails, prints where the results are that it would have replaced.
fn naming<T>(replaced: Option<PathBuf>, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let result = work();
    if let (Err(_), Some(path)) = (&result, replaced.filter(|path| path.exists())) {
        errln!("note: the results that --force replaces are in {}", path.display());
    }
    result
}

/// Prints the location of results that an earlier `--force` set aside and did not replace.
fn note_left_aside(target: &Path) -> anyhow::Result<()> {
    for path in output::left_aside(target)? {
        errln!(
            "note: {} holds results that an unfinished --force set aside; move them back or remove them",
            path.display()
        );
    }
    Ok(())
}

/// An error if the folder of `--out` exists and must not be replaced.
fn check_free(target: &Path, force: bool) -> anyhow::Result<()> {
    output::check_free(target, force).map_err(|error| out(error, " or add"))
}

/// The error of the folder of `--out`, with the remedy; `or` leads to `--force`.
fn out(error: fedlink_study::Error, or: &str) -> anyhow::Error {
    match error {
        error @ fedlink_study::Error::Exists(_) => {
            anyhow!("--out {error}; choose another folder{or} --force to replace it")
        }
        error @ fedlink_study::Error::NotAFolder { .. } => anyhow!("--out {error}"),
        error @ (fedlink_study::Error::NotOurs { .. } | fedlink_study::Error::InUse { .. }) => {
            anyhow::Error::from(error).context("--force")
        }
        other => other.into(),
    }
}
