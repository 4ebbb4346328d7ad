//! The texts of custom parts in a folder, `parts/NAME/FILE`. They determine the behavior of a part, so that
//! runs of other texts are not mixed with those that are there.

use crate::error::Error;
use crate::experiment::Sweep;
use crate::folder::disk::Disk;
use crate::folder::output::{FolderFiles, write_file_with};
use fedlink::base::files;
use fedlink::parts::Parts;
use fedlink::record::hexadecimal;
use fedlink::spec::ConfigError;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use toml::Table;

/// The folder of the texts.
const PARTS: &str = "parts";

/// The most bytes of a text.
const MAX_TEXT: u64 = 16 << 20;

/// The texts of a part by the names of files.
type Texts = BTreeMap<String, String>;

/// A custom part in the manifest.
#[derive(Serialize)]
pub(super) struct PartEntry {
    origin: String,
    /// The digests of its texts by the names of files.
    files: BTreeMap<String, String>,
}

/// The custom parts that the configuration in a folder notes, with their origins.
fn noted(config: &str) -> BTreeMap<String, String> {
    let table: Table = toml::from_str(config).unwrap_or_default();
    let custom = table.get("custom").and_then(toml::Value::as_table).into_iter().flatten();
    custom.filter_map(|(name, origin)| Some((name.clone(), origin.as_str()?.to_owned()))).collect()
}

/// Checks that the parts whose texts `folder` stores are those of `parts`, as far as they are given and
/// `config`, its configuration, notes them. The error names the differences.
pub(super) fn check_parts(folder: &Path, config: &str, parts: &Parts) -> Result<(), Error> {
    let noted = noted(config);
    for (name, origin) in parts.origins() {
        let Some(before) = noted.get(name).filter(|before| *before != origin) else { continue };
        let there = stored(folder, name)?;
        if there.is_empty() {
            continue;
        }
        let here = parts.texts(name).map(|(file, text)| (file.to_owned(), text.to_owned())).collect();
        let difference = difference(&there, &here);
        return Err(Error::OtherPart {
            path: folder.into(),
            part: name.to_owned(),
            difference: difference.unwrap_or_else(|| format!("it is {before} there and {origin} here")),
        });
    }
    Ok(())
}

/// Checks the origins of the parts that the curves of `sweep`, which was read from `folder`, choose.
pub(super) fn check_origins(folder: &Path, sweep: &Sweep) -> Result<(), Error> {
    for (part, there) in sweep.curves.iter().flat_map(|curve| &curve.spec.custom) {
        let given = sweep.parts.origins().find(|(name, _)| name == part);
        if let Some((_, here)) = given.filter(|(_, here)| here != there) {
            let difference = format!("it is {there} there and {here} here");
            return Err(Error::OtherPart { path: folder.into(), part: part.clone(), difference });
        }
    }
    Ok(())
}

/// Stores the texts of the parts that the curves of `sweep` choose. The caller holds the lock of the folder.
pub(super) fn store_parts(disk: &dyn Disk, folder: &Path, sweep: &Sweep) -> Result<(), Error> {
    let files = FolderFiles::new(folder);
    for part in chosen(sweep) {
        let before = stored(folder, part)?;
        for (file, text) in sweep.parts.texts(part) {
            if before.get(file).map(String::as_str) == Some(text) {
                continue;
            }
            if !is_plain(part) || !is_plain(file) {
                let problem = format!("{part:?} with the text {file:?} cannot be the name of a file");
                return Err(ConfigError::new("parts", problem).into());
            }
            let name = format!("{PARTS}/{part}/{file}");
            let path = folder.join(&name);
            files.check_writable(&name)?;
            let inside = folder.join(PARTS).join(part);
            disk.create_dir(&inside).map_err(Error::file("make", &inside))?;
            for folder in [folder.join(PARTS), folder.to_owned()] {
                disk.sync_dir(&folder).map_err(Error::file("write", &folder))?;
            }
            files.note(&name)?;
            write_file_with(disk, &path, text)?;
        }
    }
    Ok(())
}

/// The custom parts that the curves of a sweep choose.
fn chosen(sweep: &Sweep) -> BTreeSet<&str> {
    sweep.curves.iter().flat_map(|curve| curve.spec.custom.keys().map(String::as_str)).collect()
}

/// The custom parts of a sweep with the texts that its folder stores.
pub(super) fn entries(folder: &Path, sweep: &Sweep) -> Result<BTreeMap<String, PartEntry>, Error> {
    let origins: BTreeMap<&str, &String> = sweep
        .curves
        .iter()
        .flat_map(|curve| curve.spec.custom.iter().map(|(name, origin)| (name.as_str(), origin)))
        .collect();
    let entry = |(name, origin): (&str, &String)| {
        let texts = stored(folder, name)?;
        let digest = |text: &String| hexadecimal(&Sha256::digest(text.as_bytes()));
        let files = texts.iter().map(|(file, text)| (file.clone(), digest(text))).collect();
        Ok((name.to_owned(), PartEntry { origin: origin.clone(), files }))
    };
    origins.into_iter().map(entry).collect()
}

/// Whether a name can be that of a file or folder anywhere.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain)
}

/// The texts that `folder` stores of a part; none if there are none.
fn stored(folder: &Path, part: &str) -> Result<Texts, Error> {
    let inside = folder.join(PARTS).join(part);
    if !is_plain(part) || folder.join(PARTS).is_symlink() || inside.is_symlink() {
        return Ok(Texts::new());
    }
    let entries = match fs::read_dir(&inside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Texts::new()),
        entries => entries.map_err(Error::file("read", &inside))?,
    };
    let mut texts = Texts::new();
    for entry in entries {
        let entry = entry.map_err(Error::file("read", &inside))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Half-written files of killed processes begin with a dot.
        if is_plain(&name) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let path = entry.path();
            let text = files::read(&path, MAX_TEXT).map_err(Error::file("read", &path))?;
            texts.insert(name, String::from_utf8_lossy(&text).into_owned());
        }
    }
    Ok(texts)
}

/// The first line that differs of each of a few texts; none if all are the same.
fn difference(there: &Texts, here: &Texts) -> Option<String> {
    const SHOWN: usize = 3;
    let names: BTreeSet<&String> = there.keys().chain(here.keys()).collect();
    let differing = |name: &&String| match (there.get(*name), here.get(*name)) {
        (Some(there), Some(here)) => first_difference(name, there, here),
        (Some(_), None) => Some(format!("{name} is there and not here")),
        (None, _) => Some(format!("{name} is here and not there")),
    };
    let found: Vec<String> = names.iter().filter_map(differing).collect();
    let more = if found.len() > SHOWN { ", …" } else { "" };
    (!found.is_empty()).then(|| format!("{}{more}", found[..found.len().min(SHOWN)].join(", ")))
}

/// The first line of a text that differs.
fn first_difference(name: &str, there: &str, here: &str) -> Option<String> {
    if there == here {
        return None;
    }
    let (mut there, mut here) = (there.lines(), here.lines());
    for number in 1usize.. {
        let pair = (there.next(), here.next());
        match pair {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => {
                let same = shared(a.unwrap_or_default(), b.unwrap_or_default());
                let [a, b] =
                    [a, b].map(|line| line.map_or_else(|| "nothing".into(), |line| quoted(line, same)));
                return Some(format!("{name}, line {number}: {a} there, {b} here"));
            }
        }
    }
    Some(format!("{name}: ends of lines"))
}

/// The characters with which two lines begin alike, but for the last few of them; 0 if they are few.
fn shared(a: &str, b: &str) -> usize {
    const KEPT: usize = 30;
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    same.saturating_sub(KEPT)
}

/// A line for a message, without its first characters.
fn quoted(line: &str, skip: usize) -> String {
    const MAX: usize = 80;
    let line = line.trim_end();
    let rest: String = line.chars().skip(skip).collect();
    let start = if skip > 0 { "…" } else { "" };
    let mut shown: String = rest.trim_start().chars().take(MAX).collect();
    if shown.len() < rest.trim_start().len() {
        shown.push('…');
    }
    format!("`{start}{}`", shown.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[(&str, &str)]) -> Texts {
        all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn the_first_line_that_differs_of_each_text_is_named() {
        let before = texts(&[("a.py", "x = 1\ny = 2\n"), ("arguments.txt", "argument beta = 0.0\n")]);
        assert_eq!(difference(&before, &before), None);
        let after = texts(&[("a.py", "x = 1\ny = 3\n"), ("arguments.txt", "argument beta = 3.0\n")]);
        let found = difference(&before, &after).unwrap();
        assert_eq!(
            found,
            "a.py, line 2: `y = 2` there, `y = 3` here, arguments.txt, line 1: `argument beta = 0.0` there, \
             `argument beta = 3.0` here"
        );
        let long = "x".repeat(200);
        let found = first_difference("a.py", &format!("{long}1"), &format!("{long}2")).unwrap();
        let kept = "x".repeat(30);
        assert_eq!(found, format!("a.py, line 1: `…{kept}1` there, `…{kept}2` here"));
        let more = texts(&[("a.py", "x = 1\ny = 2\nz = 3\n"), ("b.py", "")]);
        let found = difference(&before, &more).unwrap();
        assert_eq!(
            found,
            "a.py, line 3: nothing there, `z = 3` here, arguments.txt is there and not here, b.py is here \
             and not there"
        );
        let ends = (texts(&[("a.py", "x\n")]), texts(&[("a.py", "x\r\n")]));
        assert_eq!(difference(&ends.0, &ends.1).unwrap(), "a.py: ends of lines");
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        for name in ["..", ".hidden", "a/b", "", "a\\b", "a b"] {
            assert!(!is_plain(name), "{name}");
        }
        assert!(is_plain("pkg.helpers.py") && is_plain("norm-age"));
    }
}
