//! Any bytes are one finite gain of at least 0 for each device, or an error.

use fedlink::radio::mean_gains::parse;
use std::fmt::Write as _;

pub fn run(file: &[u8]) {
    let Ok(text) = std::str::from_utf8(file) else { return };
    // As many devices as the text can have numbers, so that whole files are accepted too.
    let outside_comments = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let words = outside_comments.flat_map(|line| line.split(|c: char| c == ',' || c.is_whitespace()));
    let devices = words.filter(|word| !word.is_empty()).count();
    if let Ok(gains) = parse(text, devices) {
        assert_eq!(gains.len(), devices);
        assert!(gains.iter().all(|gain| gain.is_finite() && *gain >= 0.0));
        let mut again = String::new();
        gains.iter().for_each(|gain| writeln!(again, "{gain:e}").expect("memory takes all"));
        assert_eq!(parse(&again, devices), Ok(gains));
    }
    assert!(parse(text, devices + 1).is_err());
}
