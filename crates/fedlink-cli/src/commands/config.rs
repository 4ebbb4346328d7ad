//! `fedlink config`: a complete, commented configuration.

use super::experiment;
use crate::args::ConfigOptions;
use crate::failure::Exit;

pub fn run(options: &ConfigOptions) -> anyhow::Result<Exit> {
    let experiment = experiment(options.experiment.as_deref(), &options.settings)?;
    print!("{}", experiment.to_toml()?);
    Ok(Exit::Done)
}
