//! Mean gains by device: all one, from a file, or by the positions in a cell.

use super::cell::Cell;
use crate::base::files;
use crate::base::rows::shortened;
use crate::parts::ConfigError;
use std::path::Path;

/// The mean power gains of the devices.
#[non_exhaustive]
pub enum MeanGains {
    /// 1 for all.
    One,
    /// Given for each device.
    Each(Vec<f64>),
    /// By the positions of the devices.
    Cell(Box<Cell>),
}

/// Bytes that a number and its separators and comments may take.
const BYTES_PER_NUMBER: u64 = 64;

/// Reads the mean power gain of each of `devices` devices (`radio.mean_gains`).
pub fn read(path: &Path, devices: usize) -> Result<Vec<f64>, ConfigError> {
    read_numbers(path, devices).map_err(|problem| ConfigError::new("radio.mean_gains", problem))
}

/// Reads a number ≥ 0 of each of `devices` devices; the error names the file and the line.
pub fn read_numbers(path: &Path, devices: usize) -> Result<Vec<f64>, String> {
    let refuse = |problem: String| format!("{}: {problem}", path.display());
    let max = BYTES_PER_NUMBER * (devices as u64 + 16);
    let bytes = files::read_up_to(path, max).map_err(|error| refuse(error.to_string()))?;
    let too_long = || refuse(format!("is longer than {max} bytes, which {devices} numbers cannot be"));
    let text =
        String::from_utf8(bytes.ok_or_else(too_long)?).map_err(|_| refuse("is not UTF-8 text".into()))?;
    parse(&text, devices).map_err(refuse)
}

/// The numbers of `text`, separated by white space or commas; a `#` begins a comment that ends with its line.
pub fn parse(text: &str, devices: usize) -> Result<Vec<f64>, String> {
    let mut gains = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let numbers = line.split('#').next().unwrap_or_default();
        for word in numbers.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty()) {
            let gain: Option<f64> = word.parse().ok().filter(|gain: &f64| gain.is_finite() && *gain >= 0.0);
            let problem =
                || format!("line {}: {} must be a finite number of at least 0", index + 1, shortened(word));
            gains.push(gain.ok_or_else(problem)?);
        }
    }
    match gains.len() {
        count if count == devices => Ok(gains),
        count => Err(format!("has {count} numbers, but data.devices is {devices}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_separated_by_white_space_or_commas_with_comments_between() {
        assert_eq!(parse("# near\n1, 2.5\n3e-2 0 # far\n", 4), Ok(vec![1.0, 2.5, 0.03, 0.0]));
    }

    #[test]
    fn errors_name_their_line() {
        let cases = [
            ("1 2", "has 2 numbers, but data.devices is 3"),
            ("1 2 3 4", "has 4 numbers, but data.devices is 3"),
            ("1\n-2\n3", "line 2: -2 must be a finite number of at least 0"),
            ("1\n2\nNaN", "line 3: NaN must be a finite number of at least 0"),
            ("gain\n1\n2\n3", "line 1: gain must be a finite number of at least 0"),
        ];
        for (text, problem) in cases {
            assert_eq!(parse(text, 3), Err(problem.to_owned()));
        }
    }

    #[test]
    fn a_file_that_is_missing_or_far_too_long_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gains.txt");
        assert!(read(&path, 2).unwrap_err().to_string().contains("gains.txt"));
        std::fs::write(&path, "1 ".repeat(10_000)).unwrap();
        assert!(read(&path, 2).unwrap_err().to_string().contains("is longer than"));
        std::fs::write(&path, "1 0.5").unwrap();
        assert_eq!(read(&path, 2), Ok(vec![1.0, 0.5]));
    }
}
