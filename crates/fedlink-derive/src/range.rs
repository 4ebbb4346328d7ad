//! The range of a key in the words of its reference: "> 0 and ≤ 1", "1 ..= 4", "≥ 0 (0: none)".

/// The bounds of a number.
#[derive(Debug, Default, PartialEq)]
pub struct Range {
    /// The lower bound and whether the number may equal it.
    pub min: Option<(f64, bool)>,
    /// The upper bound and whether the number may equal it.
    pub max: Option<(f64, bool)>,
}

/// The bounds that `words` state. A remark in parentheses or after a semicolon is ignored.
pub fn parse(words: &str) -> Result<Range, String> {
    let mut bare = String::new();
    let mut depth = 0;
    for c in words.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ';' if depth == 0 => break,
            c if depth == 0 => bare.push(c),
            _ => {}
        }
    }
    let mut range = Range::default();
    if bare.trim() == "a number" {
        return Ok(range);
    }
    if let Some((low, high)) = bare.split_once("..=") {
        range.min = Some((number(low)?, true));
        range.max = Some((number(high)?, true));
        return Ok(range);
    }
    for part in bare.split(" and ") {
        let part = part.trim();
        let mut signs = part.chars();
        let (sign, rest) = (signs.next(), signs.as_str());
        let bound = number(rest)?;
        match sign {
            Some('>') => range.min = Some((bound, false)),
            Some('≥') => range.min = Some((bound, true)),
            Some('<') => range.max = Some((bound, false)),
            Some('≤') => range.max = Some((bound, true)),
            _ => {
                return Err(format!(
                    "{part:?} is not a bound: write \"> 0\", \"≥ 0 and < 1\" or \"0 ..= 1\""
                ));
            }
        }
    }
    Ok(range)
}

fn number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_reference_are_bounds() {
        let range = |min, max| Ok(Range { min, max });
        assert_eq!(parse("> 0"), range(Some((0.0, false)), None));
        assert_eq!(parse("≥ 0 (0: none)"), range(Some((0.0, true)), None));
        assert_eq!(parse("≥ 0 and < 1"), range(Some((0.0, true)), Some((1.0, false))));
        assert_eq!(parse("> -1 and ≤ 1; a remark"), range(Some((-1.0, false)), Some((1.0, true))));
        assert_eq!(parse("1e-9 ..= 1e9"), range(Some((1e-9, true)), Some((1e9, true))));
        assert_eq!(parse("0 ..= 5 (0: f(g(x)))"), range(Some((0.0, true)), Some((5.0, true))));
        assert_eq!(parse("a number"), range(None, None));
        for wrong in ["", "0..5", "above 0", "> x", "a path"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
