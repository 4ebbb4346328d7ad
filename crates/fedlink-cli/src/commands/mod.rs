//! One file for each command.

pub mod bound;
pub mod config;
pub mod data;
pub mod list;
pub mod merge;
pub mod plan;
pub mod run;
pub mod theory_run;
pub mod verify;

use anyhow::{Context, bail};
use fedlink::config::nearest;
use fedlink_study::experiment::Experiment;
use fedlink_study::presets::kinds;
use std::path::Path;

/// The experiment called `name`, a preset or a file, with the settings of the command line.
fn experiment(name: Option<&str>, settings: &[String]) -> anyhow::Result<Experiment> {
    let mut experiment = match name {
        None => Experiment::default(),
        Some(name) => match Experiment::preset(name) {
            Some(preset) => preset,
            None => read(name)?,
        },
    };
    apply(&mut experiment, settings)?;
    Ok(experiment)
}

/// Makes the settings of the command line.
fn apply(experiment: &mut Experiment, settings: &[String]) -> anyhow::Result<()> {
    for (setting, key, value) in self::settings(settings)? {
        experiment.set(key, value).with_context(|| format!("--set {setting}"))?;
    }
    Ok(())
}

/// Every `--set KEY=VALUE` with its key and its value.
fn settings(all: &[String]) -> anyhow::Result<Vec<(&str, &str, &str)>> {
    let mut split = Vec::with_capacity(all.len());
    for setting in all {
        let Some((key, value)) = setting.split_once('=') else {
            bail!("--set {setting}: write --set KEY=VALUE, for example --set schedule.k=5");
        };
        split.push((setting.as_str(), key.trim(), value.trim()));
    }
    Ok(split)
}

fn read(name: &str) -> anyhow::Result<Experiment> {
    let path = Path::new(name);
    let looks_like_a_file = path.components().count() > 1 || path.extension().is_some();
    if !looks_like_a_file && !path.is_file() {
        let presets = kinds().into_iter().find(|kind| kind.name == "presets");
        let names: Vec<&str> =
            presets.iter().flat_map(|kind| &kind.parts).map(|preset| preset.name).collect();
        let hint = nearest(name, names.iter().copied()).map(|near| format!("; did you mean {near}?"));
        bail!("{name} is neither a preset ({}) nor a file{}", names.join(", "), hint.unwrap_or_default());
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let mut experiment = Experiment::parse(name, &text)?;
    experiment.name =
        path.file_stem().map_or_else(|| name.into(), |stem| stem.to_string_lossy().into_owned());
    Ok(experiment)
}
