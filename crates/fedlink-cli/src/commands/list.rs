//! `fedlink list`: the choices for a configuration.

use crate::args::ListOptions;
use crate::custom::PartLoader;
use crate::failure::Exit;
use fedlink_study::presets::{Choices, choices};
use serde::Serialize;
use std::collections::BTreeMap;

/// A choice as it is printed.
#[derive(Serialize)]
struct Row {
    name: String,
    meaning: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    declared: String,
}

pub fn run(options: &ListOptions, loader: &dyn PartLoader) -> anyhow::Result<Exit> {
    let custom = loader.load(&options.parts)?;
    let rows = |kind: &Choices| -> Vec<Row> {
        let own = kind.all.iter().map(|part| Row {
            name: part.name.to_owned(),
            meaning: part.meaning.to_owned(),
            declared: part.declared.clone(),
        });
        let given = custom.all().filter(|(key, ..)| *key == kind.key).map(|(_, name, origin)| Row {
            name: name.to_owned(),
            meaning: format!("a custom part: {origin}"),
            declared: String::new(),
        });
        own.chain(given).collect()
    };
    let all = choices();
    let wanted = |kind: &&Choices| options.kind.as_deref().is_none_or(|name| name == kind.plural);
    let kinds: Vec<(&Choices, Vec<Row>)> = all.iter().filter(wanted).map(|kind| (kind, rows(kind))).collect();
    if options.json {
        let by_name: BTreeMap<&str, &[Row]> =
            kinds.iter().map(|(kind, rows)| (kind.plural, &rows[..])).collect();
        match (&options.kind, kinds.first()) {
            (Some(_), Some((_, rows))) => outln!("{}", serde_json::to_string_pretty(rows)?)?,
            _ => outln!("{}", serde_json::to_string_pretty(&by_name)?)?,
        }
        return Ok(Exit::Done);
    }
    for (i, (kind, rows)) in kinds.iter().enumerate() {
        let key = if kind.key.is_empty() { "fedlink run NAME".into() } else { format!("key {}", kind.key) };
        outln!("{}{} ({key})", if i > 0 { "\n" } else { "" }, kind.plural)?;
        let width = rows.iter().map(|part| part.name.chars().count()).max().unwrap_or(0);
        for part in rows {
            let declared =
                if part.declared.is_empty() { String::new() } else { format!(" [{}]", part.declared) };
            outln!("  {:width$}  {}{declared}", part.name, part.meaning)?;
        }
    }
    Ok(Exit::Done)
}
