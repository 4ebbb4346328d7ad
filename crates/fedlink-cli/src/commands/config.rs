//! `fedlink config`: a complete, commented configuration.

use super::apply;
use crate::args::ConfigOptions;
use crate::failure::Exit;
use fedlink::parts::Parts;
use fedlink_study::experiment::{Experiment, FileKind, Source};
use fedlink_study::theory::{BoundExperiment, TheoremExperiment};

pub fn run(options: &ConfigOptions) -> anyhow::Result<Exit> {
    let source = match &options.experiment {
        Some(name) => Source::open(name)?,
        None => Source::of_text("", ""),
    };
    match source.kind() {
        FileKind::System => {
            let mut experiment = Experiment::read(&source, &Parts::default())?;
            apply(&options.settings, |key, value| experiment.set(key, value))?;
            out!("{}", experiment.expand(&Parts::default())?.to_editable_toml())?;
        }
        FileKind::Bound => {
            let mut experiment = BoundExperiment::read(&source)?;
            apply(&options.settings, |key, value| experiment.set(key, value))?;
            out!("{}", experiment.to_toml())?;
        }
        FileKind::Theorem => {
            let mut experiment = TheoremExperiment::read(&source)?;
            apply(&options.settings, |key, value| experiment.set(key, value))?;
            out!("{}", experiment.to_toml())?;
        }
    }
    Ok(Exit::Done)
}
