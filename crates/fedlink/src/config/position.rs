//! Where in the text of a configuration something is written: line numbers and "did you mean" for messages.

use super::{ConfigError, KEYS, nearest};

/// The sections of a configuration file, in the order of [`KEYS`].
pub fn sections() -> Vec<&'static str> {
    let mut sections: Vec<&str> = Vec::new();
    for key in KEYS {
        let section = key.name.split_once('.').map_or(key.name, |(section, _)| section);
        if sections.last() != Some(&section) {
            sections.push(section);
        }
    }
    sections
}

/// The line (from 1) that sets `key` (`section.name`), in its section or, in quotes, in one of `tables`.
pub fn line_of(text: &str, key: &str, tables: &[&str]) -> Option<usize> {
    let (section, name) = key.split_once('.')?;
    let mut inside = "";
    text.lines()
        .position(|line| {
            let line = line.trim();
            if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                inside = header;
            }
            let Some((left, _)) = line.split_once('=') else { return false };
            let left = left.trim();
            (inside == section && left == name) || (tables.contains(&inside) && left.trim_matches('"') == key)
        })
        .map(|index| index + 1)
}

/// The error of a file called `name` that TOML refuses: with line and column and, for an unknown key or section, the
/// one that was probably meant. `more_sections` may stand in the file beside those of a configuration.
pub fn parse_error(name: &str, text: &str, error: &toml::de::Error, more_sections: &[&str]) -> ConfigError {
    let hint = error.span().and_then(|span| unknown_key_hint(text, span.start, more_sections));
    ConfigError::new(name, format!("{}{}", error.to_string().trim_end(), hint.unwrap_or_default()))
}

/// The error of a value of the file called `name`, with the line that sets it.
pub fn value_error(name: &str, text: &str, error: ConfigError, tables: &[&str]) -> ConfigError {
    let line = line_of(text, &error.key, tables).map_or_else(String::new, |line| format!(", line {line}"));
    ConfigError::new(format!("{name}{line}: {}", error.key), error.problem)
}

/// "did you mean" for a file whose error at `offset` is a key nobody knows.
fn unknown_key_hint(text: &str, offset: usize, more_sections: &[&str]) -> Option<String> {
    let line_start = text[..offset].rfind('\n').map_or(0, |end| end + 1);
    let word = text[offset..].split(|c: char| !(c.is_alphanumeric() || "_-".contains(c))).next()?;
    let section =
        text[..line_start].lines().rev().find_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']'));
    let key = match section {
        Some(section) => format!("{section}.{word}"),
        None => word.to_owned(),
    };
    let names: Vec<&str> = KEYS.iter().map(|known| known.name).collect();
    let sections: Vec<&str> = sections().into_iter().chain(more_sections.iter().copied()).collect();
    let is_section = text[line_start..].starts_with('[');
    if is_section && !sections.contains(&word) {
        return nearest(word, sections).map(|near| format!("\ndid you mean [{near}]?"));
    }
    if names.contains(&key.as_str()) {
        return None;
    }
    nearest(&key, names).map(|near| format!("\ndid you mean {near}?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn error(text: &str) -> String {
        Config::from_toml(text).unwrap_err().to_string()
    }

    #[test]
    fn errors_in_a_configuration_name_the_line_and_the_likely_key() {
        let message = error("[schedule]\nk = 1\npolcy = \"bc\"\n");
        assert!(message.contains("line 3") && message.contains("did you mean schedule.policy?"), "{message}");
        let message = error("[defense]\naudit = true\n");
        assert!(message.contains("line 1") && message.contains("did you mean [defence]?"), "{message}");
        let message = error("[schedule]\nk = \"many\"\n");
        assert!(message.contains("line 2") && message.contains("whole number"), "{message}");
        let message = error("[schedule\nk = 1\n");
        assert!(message.contains("line 1"), "{message}");
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_its_line() {
        let message = error("[radio]\nsymbols = 10\nnoise = -1\n");
        assert!(message.starts_with("config, line 3: radio.noise: is -1"), "{message}");
    }

    #[test]
    fn a_configuration_is_no_experiment() {
        let message = error("[sweep]\n\"schedule.k\" = [1, 2]\n");
        assert!(message.contains("line 1") && message.contains("sweep"), "{message}");
    }

    #[test]
    fn the_sections_are_those_of_the_configuration() {
        let table = toml::Table::try_from(Config::default()).unwrap();
        let own: Vec<&str> = table.keys().map(String::as_str).collect();
        assert_eq!(sections(), own);
    }
}
