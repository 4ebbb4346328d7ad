//! `fedlink data`: find, fetch, check and preview data sets.

mod check;
mod get;
mod list;
mod preview;

use crate::args::DataCommand;
use crate::failure::Exit;
use anyhow::bail;
use fedlink::data::catalog::{CATALOG, Entry, entry};
use fedlink::spec::nearest;

pub fn run(command: &DataCommand) -> anyhow::Result<Exit> {
    match command {
        DataCommand::List(options) => list::run(options),
        DataCommand::Get(options) => get::run(options),
        DataCommand::Check(options) => check::run(options),
        DataCommand::Preview(options) => preview::run(options),
    }
}

/// The catalog's entry of this name, or an error that names the nearest one.
fn known(name: &str) -> anyhow::Result<&'static Entry> {
    if let Some(entry) = entry(name) {
        return Ok(entry);
    }
    let names: Vec<&str> = CATALOG.iter().map(|entry| entry.name).collect();
    let hint = nearest(name, names.iter().copied()).map(|near| format!(" (did you mean {near}?)"));
    bail!("{name} is not a known data set{}; known are {}", hint.unwrap_or_default(), names.join(", "));
}
