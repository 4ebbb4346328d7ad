//! The width of labels, and the shortening of labels that are too wide.
//!
//! The layout of a figure is complete before anything is drawn, so that no two texts overlap. The widths
//! are those of `DejaVu Sans`, the font of the PNG writer; an SVG names it first and falls back to fonts
//! that are no wider.

/// Advance of each printable ASCII character (from the space to the tilde) of `DejaVu Sans`, in thousandths
/// of the font size.
const ADVANCE: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636,
    636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295,
    295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838,
    500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521,
    392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];

/// The largest ratio of the width of a bold text to that of the regular text.
const BOLD: f64 = 1.16;

/// The width of one character in thousandths of the font size; an upper estimate outside ASCII.
fn advance(c: char) -> u32 {
    match c {
        ' '..='~' => u32::from(ADVANCE[c as usize - 0x20]),
        '⁰' | '¹' | '²' | '³' | '⁴'..='⁹' => 401,
        '⁻' => 528,
        '\u{300}'..='\u{36f}' => 0,
        '\u{a0}'..='\u{2e7f}' => 850,
        _ => 1000,
    }
}

/// Width in pixels of `text` at a font size of `size` pixels.
pub fn width(text: &str, size: u32, bold: bool) -> f64 {
    let thousandths: u32 = text.chars().map(advance).fold(0, u32::saturating_add);
    f64::from(thousandths) / 1000.0 * f64::from(size) * if bold { BOLD } else { 1.0 }
}

/// The widest of several texts, zero for none.
pub fn widest<'a>(texts: impl IntoIterator<Item = &'a str>, size: u32) -> f64 {
    texts.into_iter().map(|t| width(t, size, false)).fold(0.0, f64::max)
}

/// The text without characters that XML does not allow: line breaks and tabs become spaces, every other
/// control character or non-character the replacement sign.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// The text, or its longest beginning that fits in `room` pixels followed by an ellipsis.
pub fn shorten(text: &str, size: u32, bold: bool, room: f64) -> String {
    if width(text, size, bold) <= room {
        return text.to_owned();
    }
    let room = room - width("…", size, bold);
    let mut kept = String::new();
    let mut used = 0.0;
    for c in text.chars() {
        used += width(c.encode_utf8(&mut [0; 4]), size, bold);
        if used > room {
            break;
        }
        kept.push(c);
    }
    let end = kept.trim_end().len();
    kept.truncate(end);
    kept.push('…');
    kept
}

/// The text broken between words into at most `lines` lines of `room` pixels; a text that does not fit
/// ends in an ellipsis. An empty text has no line.
pub fn wrap(text: &str, size: u32, bold: bool, room: f64, lines: usize) -> Vec<String> {
    let mut words = text.split_whitespace().peekable();
    let mut broken: Vec<String> = Vec::new();
    while broken.len() < lines && words.peek().is_some() {
        let last = broken.len() + 1 == lines;
        let mut line = String::new();
        while let Some(&word) = words.peek() {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if !last && !line.is_empty() && width(&longer, size, bold) > room {
                break;
            }
            line = longer;
            words.next();
            // The rest would be invisible: a label of a megabyte takes no more time than one of a line.
            if last && width(&line, size, bold) > room {
                break;
            }
        }
        let more = last && words.peek().is_some();
        broken.push(shorten(&line, size, bold, if more { room - width("…", size, bold) } else { room }));
        if more && !broken[lines - 1].ends_with('…') {
            broken[lines - 1].push('…');
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_short_text_is_unchanged() {
        assert_eq!(shorten("BC-BN2", 12, false, 200.0), "BC-BN2");
        assert_eq!(wrap("BC-BN2", 12, false, 200.0, 2), ["BC-BN2"]);
        assert!(wrap("", 12, false, 200.0, 2).is_empty());
    }

    #[test]
    fn a_document_has_no_control_characters() {
        assert_eq!(printable("a\nb\tc\u{0}d\u{ffff}"), "a b c\u{fffd}d\u{fffd}");
    }

    #[test]
    fn a_text_is_broken_between_words_before_it_is_cut() {
        let lines = wrap("one two three four five six", 10, false, 60.0, 2);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], "one two");
        assert!(lines[1].starts_with("three") && lines[1].ends_with('…'));
    }

    proptest! {
        #[test]
        fn a_shortened_or_wrapped_text_fits(
            text in "\\PC{0,60}",
            room in 40.0..300.0f64,
            lines in 1usize..4,
        ) {
            prop_assert!(width(&shorten(&text, 12, false, room), 12, false) <= room);
            let broken = wrap(&text, 12, false, room, lines);
            prop_assert!(broken.len() <= lines);
            for line in broken {
                prop_assert!(width(&line, 12, false) <= room, "{line:?} does not fit {room}");
            }
        }
    }
}
