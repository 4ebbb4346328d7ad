//! `fedlink list`: what a configuration can choose from.

use crate::args::ListOptions;
use crate::failure::Exit;
use fedlink::parts::{Kind, Part};
use fedlink_study::presets::kinds;
use std::collections::BTreeMap;

pub fn run(options: &ListOptions) -> anyhow::Result<Exit> {
    let wanted = |kind: &&Kind| options.kind.as_deref().is_none_or(|name| name == kind.name);
    let all = kinds();
    let kinds: Vec<&Kind> = all.iter().filter(wanted).collect();
    if options.json {
        let by_name: BTreeMap<&str, &[Part]> =
            kinds.iter().map(|kind| (kind.name, &kind.parts[..])).collect();
        match (&options.kind, kinds.first()) {
            (Some(_), Some(only)) => println!("{}", serde_json::to_string_pretty(&only.parts)?),
            _ => println!("{}", serde_json::to_string_pretty(&by_name)?),
        }
        return Ok(Exit::Done);
    }
    for (i, kind) in kinds.iter().enumerate() {
        let key = if kind.key.is_empty() { "fedlink run NAME".into() } else { format!("key {}", kind.key) };
        println!("{}{} ({key})", if i > 0 { "\n" } else { "" }, kind.name);
        let width = kind.parts.iter().map(|part| part.name.chars().count()).max().unwrap_or(0);
        for part in &kind.parts {
            println!("  {:width$}  {}", part.name, part.meaning);
        }
    }
    Ok(Exit::Done)
}
