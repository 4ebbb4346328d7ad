//! Where in the text of a file something stands, for messages.

use super::ConfigError;

/// The line (from 1) that sets `key` (`section.name` or `section.part.name`), in its table or in a table of
/// such keys (`[sweep]`, `[quick]`).
pub fn line_of(text: &str, key: &str) -> Option<usize> {
    let mut inside = String::new();
    let is_it = |line: &str, inside: &mut String| {
        let line = line.trim();
        if let Some(heading) = line.strip_prefix('[') {
            let heading = heading.split(']').next().unwrap_or_default();
            heading.trim().replace('"', "").clone_into(inside);
            // One of several `[[tables]]` of a name keeps its bracket and is never the one that is meant.
            return inside == key;
        }
        let Some((left, _)) = line.split_once('=') else { return false };
        let left = left.trim().replace('"', "");
        left == key || format!("{inside}.{left}") == key
    };
    text.lines().position(|line| is_it(line, &mut inside)).map(|index| index + 1)
}

/// The same error with the file's name and the line before its key.
pub fn located(name: &str, text: &str, error: ConfigError) -> ConfigError {
    let line = line_of(text, &error.key).map_or_else(String::new, |line| format!(", line {line}"));
    ConfigError::new(format!("{name}{line}: {}", error.key), error.problem)
}

/// The error of text that is not TOML, with a hint where a word stands without quotes.
pub fn syntax_error(name: &str, text: &str, error: &toml::de::Error) -> ConfigError {
    let bare = error.span().and_then(|span| {
        let line = text.get(..span.start)?.rsplit('\n').next()?.len();
        let line = text.get(span.start - line..)?.lines().next()?;
        let value = line.split_once('=')?.1.trim();
        let word =
            value.starts_with(char::is_alphabetic) && !["true", "false", "inf", "nan"].contains(&value);
        word.then(|| format!("\ntext stands in quotes: \"{value}\""))
    });
    let message = error.to_string();
    ConfigError::new(name, format!("{}{}", message.trim_end(), bare.unwrap_or_default()))
}
