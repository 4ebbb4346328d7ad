//! The lines of keys in the text of a file, for messages.

use super::ConfigError;
use crate::shown::bounded;
use toml::de::{DeTable, DeValue};

/// The line (from 1) that sets `key` (`section.name` or `section.part.name`), in its own section or in a
/// section of such keys (`[sweep]`, `[quick]`).
pub fn line_of(text: &str, key: &str) -> Option<usize> {
    let file = DeTable::parse(text).ok()?;
    let sections = file.get_ref().values().filter_map(|section| section.get_ref().as_table());
    let start = sections.chain([file.get_ref()]).filter_map(|table| start_of(table, key)).min()?;
    Some(text.get(..start)?.matches('\n').count() + 1)
}

/// The byte at which `table` sets `key`, whether its name is dotted or its tables are nested.
fn start_of(table: &DeTable, key: &str) -> Option<usize> {
    table.iter().find_map(|(name, value)| {
        let is_tables = value.get_ref().as_array().is_some_and(|values| {
            values.first().is_some_and(|first| matches!(first.get_ref(), DeValue::Table(_)))
        });
        match key.strip_prefix(name.get_ref().as_ref())? {
            // Of several `[[tables]]` of one name, the faulty one is unknown.
            "" => (!is_tables).then(|| name.span().start),
            rest => start_of(value.get_ref().as_table()?, rest.strip_prefix('.')?),
        }
    })
}

/// The same error with the file's name and the line before its key.
pub fn located(name: &str, text: &str, error: ConfigError) -> ConfigError {
    let line = line_of(text, &error.key).map_or_else(String::new, |line| format!(", line {line}"));
    ConfigError::new(format!("{name}{line}: {}", error.key), error.problem)
}

/// The most characters of a line of the file that are shown.
const SHOWN: usize = 160;

/// The error of text that is not TOML, with a hint at a word without quotes.
pub fn syntax_error(name: &str, text: &str, error: &toml::de::Error) -> ConfigError {
    let bare = error.span().and_then(|span| {
        let line = text.get(..span.start)?.rsplit('\n').next()?.len();
        let line = text.get(span.start - line..)?.lines().next()?;
        let value = line.split_once('=')?.1.trim();
        let word =
            value.starts_with(char::is_alphabetic) && !["true", "false", "inf", "nan"].contains(&value);
        word.then(|| format!("\nwrite text in quotes: \"{value}\""))
    });
    let message = bounded(&error.to_string(), SHOWN, 4 * SHOWN);
    let bare = bare.map(|bare| bounded(&bare, SHOWN, 4 * SHOWN));
    ConfigError::new(name, format!("{}{}", message.trim_end(), bare.unwrap_or_default()))
}
