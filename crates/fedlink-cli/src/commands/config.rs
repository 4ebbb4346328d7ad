//! `fedlink config`: a complete, commented configuration.

use super::{any_experiment, experiment};
use crate::args::ConfigOptions;
use crate::failure::Exit;

pub fn run(options: &ConfigOptions) -> anyhow::Result<Exit> {
    let text = match &options.experiment {
        Some(name) => any_experiment(name, &options.settings)?.to_toml()?,
        None => experiment(None, &options.settings)?.to_toml()?,
    };
    out!("{text}")?;
    Ok(Exit::Done)
}
