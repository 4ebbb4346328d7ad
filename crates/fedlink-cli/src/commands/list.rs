//! `fedlink list`: the choices for a configuration.

use crate::args::ListOptions;
use crate::failure::Exit;
use fedlink_study::presets::{Choice, Choices, choices};
use std::collections::BTreeMap;

pub fn run(options: &ListOptions) -> anyhow::Result<Exit> {
    let wanted = |kind: &&Choices| options.kind.as_deref().is_none_or(|name| name == kind.plural);
    let all = choices();
    let kinds: Vec<&Choices> = all.iter().filter(wanted).collect();
    if options.json {
        let by_name: BTreeMap<&str, &[Choice]> =
            kinds.iter().map(|kind| (kind.plural, &kind.all[..])).collect();
        match (&options.kind, kinds.first()) {
            (Some(_), Some(only)) => outln!("{}", serde_json::to_string_pretty(&only.all)?)?,
            _ => outln!("{}", serde_json::to_string_pretty(&by_name)?)?,
        }
        return Ok(Exit::Done);
    }
    for (i, kind) in kinds.iter().enumerate() {
        let key = if kind.key.is_empty() { "fedlink run NAME".into() } else { format!("key {}", kind.key) };
        outln!("{}{} ({key})", if i > 0 { "\n" } else { "" }, kind.plural)?;
        let width = kind.all.iter().map(|part| part.name.chars().count()).max().unwrap_or(0);
        for part in &kind.all {
            let declared =
                if part.declared.is_empty() { String::new() } else { format!(" [{}]", part.declared) };
            outln!("  {:width$}  {}{declared}", part.name, part.meaning)?;
        }
    }
    Ok(Exit::Done)
}
