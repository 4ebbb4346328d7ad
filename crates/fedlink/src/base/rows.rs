//! The rows of CSV text with the numbers of their lines.

use csv::{Reader, ReaderBuilder, StringRecord, Terminator, Trim};

/// Reads rows one by one; their lengths may differ. Fields may be in double quotes. White space around
/// fields is removed. An empty line is a row with one empty field. A byte-order mark at the start and
/// empty lines at the end are ignored.
pub(crate) struct Rows<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
    row: StringRecord,
    empty_row: StringRecord,
    /// Empty lines before `row` that have not been returned, and `row` itself.
    waiting: u64,
    line: u64,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_end();
        let mut builder = ReaderBuilder::new();
        // A carriage return before the end of a line is white space.
        builder.has_headers(false).flexible(true).trim(Trim::All).terminator(Terminator::Any(b'\n'));
        let reader = builder.from_reader(text.as_bytes());
        let empty_row = StringRecord::from(vec![""]);
        Self { text, reader, row: StringRecord::new(), empty_row, waiting: 0, line: 0 }
    }

    /// The next row and the number of its line, from 1.
    pub(crate) fn next(&mut self) -> Option<(u64, &StringRecord)> {
        if self.waiting == 0 {
            let start = self.reader.position().clone();
            if !self.reader.read_record(&mut self.row).expect("text in memory can be read") {
                return None;
            }
            // The reader skips empty lines before a row.
            let passed = &self.text.as_bytes()[start.byte() as usize..];
            self.waiting = 1 + passed.iter().take_while(|&&byte| byte == b'\n').count() as u64;
            self.line = start.line() - 1;
        }
        self.waiting -= 1;
        self.line += 1;
        Some((self.line, if self.waiting > 0 { &self.empty_row } else { &self.row }))
    }
}

/// Whether `row` is a row of names: its first field is neither empty nor a number.
pub(crate) fn is_header(row: &StringRecord) -> bool {
    row.get(0).is_some_and(|first| !first.is_empty() && first.parse::<f64>().is_err())
}

/// The start of a field for a message: at most 60 characters, on one line.
pub(crate) fn shortened(field: &str) -> String {
    const MAX: usize = 60;
    let mut shown: String = field.chars().take(MAX).flat_map(char::escape_debug).take(MAX).collect();
    if field.chars().nth(MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<(u64, Vec<String>)> {
        let (mut rows, mut all) = (Rows::new(text), Vec::new());
        while let Some((line, row)) = rows.next() {
            all.push((line, row.iter().map(str::to_owned).collect()));
        }
        all
    }

    #[test]
    fn every_line_is_a_row_with_its_number() {
        let expected = |rows: &[(u64, &[&str])]| {
            let row = |(line, row): &(u64, &[&str])| (*line, row.iter().map(|&s| s.to_owned()).collect());
            rows.iter().map(row).collect::<Vec<(u64, Vec<String>)>>()
        };
        let text = "\u{feff}a, b ,c\r\n\r\n1\n\n\n2,,\r\n3 4\n\n \n";
        let all: [(u64, &[&str]); 7] = [
            (1, &["a", "b", "c"]),
            (2, &[""]),
            (3, &["1"]),
            (4, &[""]),
            (5, &[""]),
            (6, &["2", "", ""]),
            (7, &["3 4"]),
        ];
        assert_eq!(rows(text), expected(&all));
        assert_eq!(rows("\n\n1"), expected(&[(1, &[""]), (2, &[""]), (3, &["1"])]));
        assert_eq!(rows("1,2"), expected(&[(1, &["1", "2"])]));
        assert!(rows("").is_empty() && rows("\n \r\n").is_empty());
    }

    #[test]
    fn fields_may_be_quoted() {
        let text = "\"petal, cm\",\"a \"\"b\"\"\"\r\n\"1\n2\",3\n4,5\n";
        let fields: Vec<(u64, Vec<String>)> = rows(text);
        assert_eq!(fields[0], (1, vec!["petal, cm".into(), "a \"b\"".into()]));
        // The second row takes two lines.
        assert_eq!(fields[1], (2, vec!["1\n2".into(), "3".into()]));
        assert_eq!(fields[2], (4, vec!["4".into(), "5".into()]));
    }

    #[test]
    fn a_long_field_is_shortened_in_messages() {
        assert_eq!(shortened("x\ty"), "x\\ty");
        assert_eq!(shortened(&"é".repeat(60)), "é".repeat(60));
        assert_eq!(shortened(&"é".repeat(61)), format!("{}…", "é".repeat(60)));
    }
}
