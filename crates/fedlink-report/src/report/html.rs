//! Text and numbers in the form of the page.

use super::Interval;
use fedlink_study::goals::Median;
use serde::Serialize;

/// The sign of a missing number.
pub const MISSING: &str = "–";
/// Keeps a number and its unit on one line.
const SPACE: char = '\u{a0}';

/// Text as it is written between tags and inside quoted attributes. Control characters that neither HTML nor
/// XML can hold become the replacement character.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\t' | '\n' | '\r' => escaped.push(character),
            _ if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {
                escaped.push(char::REPLACEMENT_CHARACTER);
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

/// JSON that can neither end its script element nor open a comment there.
pub fn embedded_json(value: &impl Serialize) -> String {
    // `<` occurs in JSON only inside strings, where it may be written as an escape.
    serde_json::to_string(value).expect("plain data has a JSON form").replace('<', "\\u003c")
}

/// The template with every `{{slot}}` replaced by its value. An inserted value is not scanned again, and a
/// slot without a value stays as it is.
pub fn fill(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut page = String::new();
    let mut rest = template;
    while let Some((before, slot, after)) = rest
        .split_once("{{")
        .and_then(|(before, from)| from.split_once("}}").map(|(slot, after)| (before, slot, after)))
    {
        page += before;
        page += &value(slot).unwrap_or_else(|| format!("{{{{{slot}}}}}"));
        rest = after;
    }
    page + rest
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{}{SPACE}%", minus(&format!("{:.2}", 100.0 * share))) } else { missing() }
}

/// A difference of shares in percentage points, with its sign.
pub fn points(difference: f64) -> String {
    if difference.is_finite() { minus(&format!("{:+.2}", 100.0 * difference)) } else { missing() }
}

/// A number with this number of significant digits.
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return missing();
    }
    let exponent = exponent(value, digits);
    let text = if value == 0.0 || (-4..7).contains(&exponent) {
        let decimals = digits as i32 - 1 - if value == 0.0 { digits as i32 - 1 } else { exponent };
        format!("{value:.*}", decimals.max(0) as usize)
    } else {
        format!("{value:.*e}", digits - 1)
    };
    minus(&text)
}

/// A count with a prefix: 12 345 bits as 12.3 k.
pub fn prefixed(value: f64, unit: &str) -> String {
    const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    if !value.is_finite() {
        return missing();
    }
    let thousands = (exponent(value, 3).div_euclid(3)).clamp(0, PREFIXES.len() as i32 - 1);
    let scaled = value / 1000f64.powi(thousands);
    format!("{}{SPACE}{}{unit}", significant(scaled, 3), PREFIXES[thousands as usize])
}

/// A whole number unchanged, any other with one decimal.
pub fn count(value: f64) -> String {
    if !value.is_finite() {
        missing()
    } else if value.fract() == 0.0 {
        minus(&format!("{value:.0}"))
    } else {
        minus(&format!("{value:.1}"))
    }
}

/// The decimal exponent after rounding to this number of digits.
fn exponent(value: f64, digits: usize) -> i32 {
    let text = format!("{value:.*e}", digits - 1);
    text.rsplit_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

fn missing() -> String {
    MISSING.to_owned()
}

fn minus(text: &str) -> String {
    text.replace('-', "\u{2212}")
}

/// The text of an interval's ends, or nothing if there is no interval.
pub fn ends(interval: Interval, show: impl Fn(f64) -> String) -> String {
    if !interval.is_known() {
        return String::new();
    }
    // The unit follows the mean; a prefix such as k is part of the number and stays.
    let bare = |value: f64| show(value).trim_end_matches("bit").trim_end_matches(['%', SPACE]).to_owned();
    format!(" <span class=\"ends\">[{}, {}]</span>", bare(interval.low), bare(interval.high))
}

/// A table cell of a mean and its interval, sortable by the mean.
pub fn interval_cell(interval: Option<Interval>, show: impl Fn(f64) -> String) -> String {
    match interval.filter(|interval| interval.mean.is_finite()) {
        Some(interval) => number_cell(interval.mean, &(show(interval.mean) + &ends(interval, &show))),
        None => number_cell(f64::NAN, MISSING),
    }
}

/// A table cell of a cost: its median with its interval, and the number of seeds that reached the goal where
/// some did not; sortable by the median.
pub fn median_cell(median: Option<&Median>, show: impl Fn(f64) -> String) -> String {
    let Some(median) = median else { return number_cell(f64::NAN, MISSING) };
    // No number of a report is shown that is not finite.
    let known = [median.value, median.beyond].into_iter().flatten().all(f64::is_finite);
    if !known {
        return number_cell(f64::NAN, MISSING);
    }
    let interval = match median.interval(&show) {
        text if text.is_empty() => text,
        text => format!("<span class=\"ends\"> {}</span>", escape(&text)),
    };
    number_cell(median.value.unwrap_or(f64::NAN), &(escape(&median.text(&show)) + &interval))
}

/// A table cell of a number, shown as `text`.
pub fn number_cell(value: f64, text: &str) -> String {
    let value = if value.is_finite() { value.to_string() } else { String::new() };
    format!("<td class=\"number\" data-value=\"{value}\">{text}</td>")
}

/// A place for the line sample of a curve, drawn by the script, and its label.
pub fn curve_name(index: usize, label: &str) -> String {
    let label = escape(label);
    format!(
        "<span class=\"curve-name\" title=\"{label}\"><span class=\"swatch\" data-curve=\"{index}\"></span>\
         <span class=\"label\">{label}</span></span>"
    )
}

/// A table that scrolls by itself where the page is too narrow for it.
pub fn table(id: &str, caption: &str, header: &str, body: &str) -> String {
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"{id}-caption\">\
         <table id=\"{id}\"><caption id=\"{id}-caption\"><span>{caption}</span></caption>\
         <thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>\n"
    )
}

/// Column headings; those after the first are above numbers.
pub fn headings<T: AsRef<str>>(names: &[T]) -> String {
    let cell = |(i, name): (usize, &T)| {
        let class = if i == 0 { "" } else { " class=\"number\"" };
        format!("<th scope=\"col\"{class}>{}</th>", escape(name.as_ref()))
    };
    names.iter().enumerate().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_is_only_text() {
        assert_eq!(escape("a<b>&\"'\u{1}é"), "a&lt;b&gt;&amp;&quot;&#39;\u{fffd}é");
    }

    #[test]
    fn embedded_json_holds_no_tag_and_reads_back() {
        let text = "</script><!-- <script>";
        let json = embedded_json(&text);
        assert!(!json.contains('<'), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    #[test]
    fn a_slot_inside_a_value_is_left_alone() {
        let page = fill("a {{x}} {{y}} {{z}} {{", |slot| match slot {
            "x" => Some("{{y}}".into()),
            "y" => Some("b".into()),
            _ => None,
        });
        assert_eq!(page, "a {{y}} b {{z}} {{");
    }

    #[test]
    fn numbers_have_sensible_digits() {
        assert_eq!(percent(0.93124), "93.12\u{a0}%");
        assert_eq!(points(-0.00816), "\u{2212}0.82");
        assert_eq!(points(0.01), "+1.00");
        assert_eq!(significant(0.012_345, 3), "0.0123");
        assert_eq!(significant(9.9996, 4), "10.00");
        assert_eq!(significant(0.0, 3), "0");
        assert_eq!(significant(1.5e-7, 3), "1.50e\u{2212}7");
        assert_eq!(prefixed(12_345.0, "bit"), "12.3\u{a0}kbit");
        assert_eq!(prefixed(999_600.0, "bit"), "1.00\u{a0}Mbit");
        assert_eq!(prefixed(0.0, "bit"), "0\u{a0}bit");
        assert_eq!(prefixed(7.0, ""), "7.00\u{a0}");
        assert_eq!(count(120.0), "120");
        assert_eq!(count(123.25), "123.2");
        for text in [percent(f64::NAN), points(f64::INFINITY), significant(f64::NAN, 3), count(f64::NAN)] {
            assert_eq!(text, MISSING);
        }
    }

    #[test]
    fn one_seed_has_no_interval() {
        let at = |low, high| ends(Interval { mean: 0.5, low, high }, percent);
        assert_eq!(at(0.5, 0.5), "");
        assert_eq!(at(f64::NAN, 0.6), "");
        assert_eq!(at(0.25, 0.75), " <span class=\"ends\">[25.00, 75.00]</span>");
    }
}
