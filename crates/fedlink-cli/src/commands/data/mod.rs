//! `fedlink data`: find, fetch, check and look at data sets.

mod check;
mod get;
mod list;
mod preview;

use crate::args::DataCommand;
use crate::failure::Exit;
use anyhow::bail;
use fedlink::config::nearest;
use fedlink::data::catalogue::{CATALOGUE, Entry, entry};
use std::path::{Path, PathBuf};

pub fn run(command: &DataCommand) -> anyhow::Result<Exit> {
    match command {
        DataCommand::List(options) => list::run(options),
        DataCommand::Get(options) => get::run(options),
        DataCommand::Check(options) => check::run(options),
        DataCommand::Preview(options) => preview::run(options),
    }
}

/// Where data sets are looked for, in this order: `given`, `FEDLINK_DATA`, the platform's cache folder.
pub fn folders(given: Option<&Path>) -> Vec<PathBuf> {
    let from = |variable| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = from("XDG_CACHE_HOME").or_else(|| from("HOME").map(|home| home.join(".cache")));
    let cache = cache.or_else(|| from("LOCALAPPDATA")).map(|cache| cache.join("fedlink"));
    given.map(Path::to_path_buf).into_iter().chain(from("FEDLINK_DATA")).chain(cache).collect()
}

/// The catalogue's entry of this name, or an error that tells the nearest one.
fn known(name: &str) -> anyhow::Result<&'static Entry> {
    if let Some(entry) = entry(name) {
        return Ok(entry);
    }
    let names: Vec<&str> = CATALOGUE.iter().map(|entry| entry.name).collect();
    let hint = nearest(name, names.iter().copied()).map(|near| format!(" (did you mean {near}?)"));
    bail!("{name} is not a known data set{}; known are {}", hint.unwrap_or_default(), names.join(", "));
}
