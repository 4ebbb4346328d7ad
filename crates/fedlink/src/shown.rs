//! Texts of others in messages: file names, fields, labels. They may hold control characters, which a
//! terminal obeys, and may be of any length.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal may do something else with a character than show it: control characters but the end of
/// a line and the tab, and the characters that turn the direction of the text or have no width.
pub fn is_unsafe(c: char) -> bool {
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    );
    turns || (c.is_control() && !['\n', '\t'].contains(&c))
}

/// The text with [unsafe](is_unsafe) characters as `\u001b`, which JSON reads as the same character.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) {
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// The [escaped] text on one line, and no more than `max` characters of it.
pub fn one_line(text: &str, max: usize) -> String {
    let mut shown: String = text.chars().take(max).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    escaped(&shown).replace('\n', "\\n").replace('\t', " ")
}

/// The [escaped] text with at most `line` characters of each line and `max` of all: of a longer one the
/// beginning and the end.
pub fn bounded(text: &str, line: usize, max: usize) -> String {
    let cut = |part: &str| match part.char_indices().nth(line) {
        Some((end, _)) => format!("{}…", &part[..end]),
        None => part.to_owned(),
    };
    let shown = text.split('\n').take(max).map(cut).collect::<Vec<_>>().join("\n");
    let shown = escaped(&shown);
    let length = shown.chars().count();
    if length <= max {
        return shown.into_owned();
    }
    // The end has the remedy.
    let end = max / 4;
    let (first, last) = (shown.chars().take(max - end), shown.chars().skip(length - end));
    first.chain(" … ".chars()).chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(escaped("a\u{1b}[2Jb\u{202e}c\u{9b}\r\n\t✓é"), "a\\u001b[2Jb\\u202ec\\u009b\\u000d\n\t✓é");
        assert!(matches!(escaped("plain ✓\n"), Cow::Borrowed(_)));
        let json = serde_json::to_string("\u{202e}\u{7f}").unwrap();
        assert_eq!(serde_json::from_str::<String>(&escaped(&json)).unwrap(), "\u{202e}\u{7f}");
        assert_eq!(one_line("a\nfailed b\tc", 99), "a\\nfailed b c");
        assert_eq!(one_line("abc", 2), "ab…");
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        assert_eq!(bounded("ab\nabcd", 3, 99), "ab\nabc…");
        assert_eq!(
            bounded(&format!("begin {} end", "x".repeat(100)), 1000, 20),
            "begin xxxxxxxxx … x end".to_owned()
        );
        assert_eq!(bounded("short; remedy", 100, 100), "short; remedy");
    }

    proptest! {
        #[test]
        fn no_text_comes_through_unsafe_or_long(text: String) {
            prop_assert!(!escaped(&text).contains(is_unsafe));
            prop_assert!(!one_line(&text, 20).contains(|c| is_unsafe(c) || c == '\n'));
            prop_assert!(bounded(&text, 10, 50).chars().count() <= 53);
        }
    }
}
