//! Where in the text of a file something stands, for messages and for what is written back.

use crate::config::{KEYS, nearest};

/// Turns `name = …` of a section into a comment.
pub(super) fn comment_out(text: &str, section: &str, name: &str) -> String {
    let mut here = false;
    let line = |line: &str| {
        if line.starts_with('[') {
            here = line == format!("[{section}]");
        }
        let prefix = if here && line.starts_with(&format!("{name} = ")) { "# by rule: " } else { "" };
        format!("{prefix}{line}\n")
    };
    text.lines().map(line).collect()
}

/// The line (from 1) that sets `key` (`section.name`), in its section or in `[sweep]`.
pub(super) fn line_of(text: &str, key: &str) -> Option<usize> {
    let (section, name) = key.split_once('.')?;
    let mut inside = String::new();
    text.lines()
        .position(|line| {
            let line = line.trim();
            if line.starts_with('[') {
                line.clone_into(&mut inside);
            }
            let Some((left, _)) = line.split_once('=') else { return false };
            let left = left.trim();
            (inside == format!("[{section}]") && left == name)
                || (inside == "[sweep]" && left.trim_matches('"') == key)
        })
        .map(|place| place + 1)
}

/// "did you mean" for a file whose error at `offset` is a key nobody knows.
pub(super) fn unknown_key_hint(text: &str, offset: usize) -> Option<String> {
    let line_start = text[..offset].rfind('\n').map_or(0, |end| end + 1);
    let word = text[offset..].split(|c: char| !(c.is_alphanumeric() || "_-".contains(c))).next()?;
    let section =
        text[..line_start].lines().rev().find_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']'));
    let key = match section {
        Some(section) => format!("{section}.{word}"),
        None => word.to_owned(),
    };
    let names: Vec<&str> = KEYS.iter().map(|known| known.name).collect();
    let sections = [
        "data", "learn", "radio", "schedule", "compress", "run", "sweep", "exclude", "override", "quick",
        "expected", "claims",
    ];
    let is_section = text[line_start..].starts_with('[');
    if is_section && !sections.contains(&word) {
        return nearest(word, sections).map(|near| format!("\ndid you mean [{near}]?"));
    }
    if names.contains(&key.as_str()) {
        return None;
    }
    nearest(&key, names).map(|near| format!("\ndid you mean {near}?"))
}
