//! `fedlink config`: a complete, commented configuration.

use super::{experiment, theory_run};
use crate::args::ConfigOptions;
use crate::failure::Exit;

pub fn run(options: &ConfigOptions) -> anyhow::Result<Exit> {
    if let Some(name) = &options.experiment
        && let Some(file) = theory_run::file(name, &options.settings)?
    {
        print!("{file}");
        return Ok(Exit::Done);
    }
    let experiment = experiment(options.experiment.as_deref(), &options.settings)?;
    print!("{}", experiment.to_toml()?);
    Ok(Exit::Done)
}
