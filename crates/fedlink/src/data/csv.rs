//! Custom data as text: one sample per line, the label first, then its features, separated by commas.
//!
//! ```text
//! label,petal length,petal width
//! 0,1.4,0.2
//! 2,6.0,2.5
//! ```
//!
//! * If the first field of the first line is not a number, the line is a header and is skipped.
//! * Labels are whole numbers from 0 to 255 (also written `3.0`). Every line has as many features as the
//!   first.
//! * Features are finite numbers. If all of them, in both files, are written as whole numbers from 0 to 255,
//!   they are pixels and stay bytes, which [`Scaling::Unit`] divides by 255. Otherwise they are floats.
//! * Lines end in LF or CRLF. Fields may be in double quotes. A byte-order mark at the start and blank lines
//!   at the end are allowed.
//!
//! [`Scaling::Unit`]: super::Scaling::Unit

use std::path::Path;

use crate::base::rows::{Rows, is_header, shortened};

use super::error::{DataError, Flaw, Position};
use super::source::read_file;
use super::{Dataset, Features, Samples};

/// The files of a data set in a folder.
pub const FILES: [&str; 2] = ["train.csv", "test.csv"];

/// Reads `train.csv` and `test.csv` from a folder as a data set named `name`.
pub fn read_csv_folder(folder: &Path, name: &str) -> Result<Dataset, DataError> {
    let [train_path, test_path] = FILES.map(|file| folder.join(file));
    let (width, mut train) = read_csv(&train_path)?;
    let (test_width, mut test) = read_csv(&test_path)?;
    if width != test_width {
        return Err(Flaw::new(
            Position::Line(1, 1),
            format!("samples have {test_width} features, but those of {} have {width}", FILES[0]),
            "give both files the same columns",
        )
        .in_file(&test_path));
    }
    let is_float = |part: &Samples| matches!(part.features, Features::Floats(_));
    if is_float(&train) != is_float(&test) {
        for part in [&mut train, &mut test] {
            let features = std::mem::replace(&mut part.features, Features::Bytes(Vec::new()));
            part.features = Features::Floats(features.into_floats());
        }
    }
    Ok(Dataset::custom(name.to_owned(), [1, width, 1], train, test))
}

/// Reads one file: the number of features, and the samples.
pub fn read_csv(path: &Path) -> Result<(usize, Samples), DataError> {
    parse(&read_file(path)?).map_err(|flaw| flaw.in_file(path))
}

/// Parses the bytes of one file: the number of features, and the samples.
pub fn parse(file: &[u8]) -> Result<(usize, Samples), Flaw> {
    let text = std::str::from_utf8(file).map_err(|error| not_text(&file[..error.valid_up_to()]))?;
    let mut rows = Rows::new(text);
    let mut columns = None;
    let mut samples = Samples { features: Features::Bytes(Vec::new()), labels: Vec::new() };
    while let Some((line, row)) = rows.next() {
        let expected = *columns.get_or_insert(row.len());
        if line == 1 && is_header(row) {
            continue;
        }
        let at = |column: usize| Position::Line(line as usize, column + 1);
        for (column, field) in row.iter().enumerate() {
            if column == 0 {
                samples.labels.push(label(field, at(0))?);
            } else {
                push(&mut samples.features, field, at(column))?;
            }
        }
        if row.len() != expected || row.len() < 2 {
            let what = match expected {
                0 | 1 => "a line needs a label and at least one feature".into(),
                _ => format!("the line has {} fields, but the first line has {expected}", row.len()),
            };
            return Err(Flaw::new(at(row.len().min(expected)), what, "give every line the same fields"));
        }
    }
    match columns {
        Some(columns) if !samples.is_empty() => Ok((columns - 1, samples)),
        _ => Err(Flaw::new(
            Position::Line(1, 1),
            "there is no sample",
            "write one sample per line, the label first",
        )),
    }
}

/// The flaw of a file that is text only up to the end of `before`.
fn not_text(before: &[u8]) -> Flaw {
    let line = before.split(|&byte| byte == b'\n').count() - 1;
    let fields = before.iter().rev().take_while(|&&byte| byte != b'\n').filter(|&&byte| byte == b',').count();
    Flaw::new(Position::Line(line + 1, fields + 1), "this is not UTF-8 text", "give a plain text file")
}

fn label(text: &str, position: Position) -> Result<u8, Flaw> {
    let number =
        text.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && (0.0..=255.0).contains(number));
    number.map(|number| number as u8).ok_or_else(|| {
        Flaw::new(
            position,
            format!("label \"{}\" is not a whole number from 0 to 255", shortened(text)),
            "number the classes from 0, at most 256 of them",
        )
    })
}

/// Appends a feature; the first one that is not a byte converts all before it to floats.
fn push(features: &mut Features, text: &str, position: Position) -> Result<(), Flaw> {
    if let Features::Bytes(values) = features {
        if let Ok(byte) = text.parse::<u8>() {
            values.push(byte);
            return Ok(());
        }
        let values = std::mem::take(values);
        *features = Features::Floats(Features::Bytes(values).into_floats());
    }
    let value = text.parse::<f32>().ok().filter(|value| value.is_finite()).ok_or_else(|| {
        Flaw::new(
            position,
            format!("\"{}\" is not a finite number", shortened(text)),
            "write numbers such as 0.5 or -3e-2",
        )
    })?;
    if let Features::Floats(values) = features {
        values.push(value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::super::test_files::damaged;
    use super::*;

    #[test]
    fn whole_numbers_below_256_are_bytes_and_others_floats() {
        let bytes = Samples { features: Features::Bytes(vec![0, 255, 7, 8]), labels: vec![5, 0] };
        assert_eq!(parse(b"5,0,255\n0,7,8\n").unwrap(), (2, bytes.clone()));
        assert_eq!(parse(b"\xef\xbb\xbflabel,a,b\r\n5, 0 ,255\r\n0.0,7,8\r\n\r\n").unwrap(), (2, bytes));
        let floats = Samples { features: Features::Floats(vec![0.0, 255.0, 7.5, -8e-1]), labels: vec![5, 0] };
        assert_eq!(parse(b"5,0,255\n0,7.5,-8e-1").unwrap(), (2, floats));
    }

    #[test]
    fn a_header_may_number_its_columns() {
        let (width, samples) = parse(b"label,0,1\n3,10,20\n").unwrap();
        assert_eq!((width, samples.labels), (2, vec![3]));
    }

    #[test]
    fn errors_name_the_line_and_the_column() {
        for (text, expected) in [
            (&b""[..], "line 1, column 1: "),
            (b"label,a\n", "line 1, column 1: there is no sample"),
            (b"1,2\n1,x\n", "line 2, column 2: \"x\" is not a finite number"),
            (b"1,2\n1,\n", "line 2, column 2: \"\" is not a finite number"),
            (b"1,2\n1,nan\n", "line 2, column 2: \"nan\" is not a finite number"),
            (b"1,2\n1,-inf\n", "line 2, column 2: \"-inf\" is not a finite number"),
            (b"1,2\n1,1e39\n", "line 2, column 2: \"1e39\" is not a finite number"),
            (b"1,2\n256,2\n", "line 2, column 1: label \"256\" is not a whole number from 0 to 255"),
            (b"1,2\n1.5,2\n", "line 2, column 1: label \"1.5\""),
            (b"1,2\n-1,2\n", "line 2, column 1: label \"-1\""),
            (b"1,2\ncat,2\n", "line 2, column 1: label \"cat\""),
            (b"1,2\n\n1,2\n", "line 2, column 1: label \"\""),
            (b"1,2,3\n1,2\n", "line 2, column 3: the line has 2 fields, but the first line has 3"),
            (b"1,2\n1,2,3\n", "line 2, column 3: the line has 3 fields, but the first line has 2"),
            (b"label,a,b\n1,2\n", "line 2, column 3: the line has 2 fields, but the first line has 3"),
            (b"1\n2\n", "line 1, column 2: a line needs a label and at least one feature"),
            (b"1,2\n1,\xff\n", "line 2, column 2: this is not UTF-8 text"),
            (b"\x1f\x8b\x08\0", "line 1, column 1: this is not UTF-8 text"),
            (b"1,\"2\n1,3\n", "line 1, column 2: \"2\\n1,3\" is not a finite number"),
            (b"1,\"2\n3\"\n1,x\n", "line 1, column 2: \"2\\n3\" is not a finite number"),
        ] {
            let flaw = parse(text).unwrap_err().to_string();
            assert!(flaw.contains(expected), "{flaw}\nshould contain\n{expected}");
        }
    }

    #[test]
    fn two_files_of_a_folder_are_one_data_set_and_floats_in_one_make_floats_in_both() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("train.csv"), "0,1,2\n3,4,5\n").unwrap();
        fs::write(folder.path().join("test.csv"), "0,1,2.5\n").unwrap();
        let dataset = read_csv_folder(folder.path(), "custom").unwrap();
        assert_eq!((dataset.shape, dataset.features, dataset.classes), ([1, 2, 1], 2, 4));
        assert_eq!(dataset.train.features, Features::Floats(vec![1.0, 2.0, 4.0, 5.0]));
        assert_eq!(dataset.test.features, Features::Floats(vec![1.0, 2.5]));
        fs::write(folder.path().join("test.csv"), "0,1\n").unwrap();
        let error = read_csv_folder(folder.path(), "custom").unwrap_err().to_string();
        assert!(error.contains("test.csv: line 1, column 1: samples have 1 features"), "{error}");
    }

    fn finite() -> impl Strategy<Value = f32> {
        any::<f32>().prop_filter("finite", |x| x.is_finite())
    }

    proptest! {
        #[test]
        fn numbers_written_out_are_read_back(
            rows in prop::collection::vec((any::<u8>(), prop::array::uniform3(finite())), 1..20),
            header: bool,
        ) {
            let lines = rows.iter().map(|(label, [a, b, c])| format!("{label},{a:?},{b:?},{c:?}\n"));
            let text = header.then(|| "y,a,b,c\n".to_owned()).into_iter().chain(lines).collect::<String>();
            let (width, samples) = parse(text.as_bytes()).unwrap();
            prop_assert_eq!(width, 3);
            prop_assert_eq!(samples.labels, rows.iter().map(|row| row.0).collect::<Vec<_>>());
            let expected: Vec<f32> = rows.iter().flat_map(|row| row.1).collect();
            prop_assert_eq!(samples.features.into_floats(), expected);
        }

        #[test]
        fn a_damaged_file_gives_an_error_or_samples_of_one_width(
            file in damaged(b"label,a,b\n5,0,255\n0,7.25,-8e-1\n12,1,2\n".to_vec()),
        ) {
            if let Ok((width, samples)) = parse(&file) {
                prop_assert!(width > 0 && !samples.is_empty());
                prop_assert_eq!(samples.features.len(), width * samples.len());
            }
        }
    }
}
