//! `fedlink check`: the contract of custom parts.

use crate::args::CheckPartOptions;
use crate::custom::PartLoader;
use crate::failure::Exit;
use anyhow::bail;
use fedlink_study::sweep::{check_part, own_table};
use std::path::{Path, PathBuf};

pub fn run(options: &CheckPartOptions, loader: &dyn PartLoader) -> anyhow::Result<Exit> {
    let (file, wanted) = target(&options.part);
    let parts = loader.load(&file.iter().cloned().collect::<Vec<_>>())?;
    let is_wanted = |name: &str, origin: &str| {
        let class = origin.split(',').next().unwrap_or(origin).rsplit('.').next();
        wanted.as_deref().is_none_or(|wanted| wanted == name || Some(wanted) == class)
    };
    let names: Vec<&str> =
        parts.origins().filter(|(name, origin)| is_wanted(name, origin)).map(|(name, _)| name).collect();
    if names.is_empty() {
        let known: Vec<&str> = parts.origins().map(|(name, _)| name).collect();
        let there = if known.is_empty() { "there are none".into() } else { known.join(", ") };
        bail!("{}: there is no such part; give FILE.py or FILE.py:CLASS ({there})", options.part);
    }
    if let Some(setting) = options.settings.iter().find(|setting| !setting.contains('=')) {
        bail!("--set {setting}: write --set KEY=VALUE with a key of the part, for example --set beta=0.5");
    }
    let own = own_table(&options.settings);
    let pool = rayon::ThreadPoolBuilder::new().build()?;
    let mut broken = 0;
    for name in names {
        let found = check_part(&parts, name, &own, &pool)?;
        if found.is_empty() {
            outln!("{name}: keeps its contract, and a run with it is the same when it is made twice")?;
        }
        for finding in &found {
            outln!("{name}: {finding}")?;
        }
        broken += usize::from(!found.is_empty());
    }
    Ok(if broken == 0 { Exit::Done } else { Exit::BadRequest })
}

/// The file of `FILE.py:CLASS`, and the part; a part of the program has no file.
fn target(text: &str) -> (Option<PathBuf>, Option<String>) {
    let is_script = |file: &str| Path::new(file).extension().is_some_and(|ending| ending == "py");
    match text.rsplit_once(':') {
        Some((file, class)) if is_script(file) => (Some(file.into()), Some(class.into())),
        _ if is_script(text) => (Some(text.into()), None),
        _ => (None, Some(text.into())),
    }
}
