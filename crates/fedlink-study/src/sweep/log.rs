//! The log of rounds: a line for every transmission of every round of a run.

use crate::error::Error;
use fedlink::record::{RoundRecord, TRANSMISSION_COLUMNS};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter};
use std::path::Path;

/// An open log.
pub struct RoundLog {
    writer: csv::Writer<BufWriter<File>>,
}

impl RoundLog {
    /// Opens the log of a run that has done `rounds` with so many `transmissions`, with what it has of later
    /// rounds removed. None if transmissions are missing: then the log cannot be resumed.
    pub fn open(path: &Path, rounds: u64, transmissions: u64) -> Result<Option<Self>, Error> {
        let mut lines = 0;
        let mut length = 0;
        if rounds > 0 && path.exists() {
            let mut reader = BufReader::new(File::open(path).map_err(Error::file("write", path))?);
            let mut line = Vec::new();
            loop {
                line.clear();
                let bytes = reader.read_until(b'\n', &mut line).map_err(Error::file("write", path))?;
                let round =
                    line.split(|byte| *byte == b',').next().and_then(|word| std::str::from_utf8(word).ok());
                let round = round.and_then(|word| word.parse::<u64>().ok());
                match round {
                    Some(round) if round <= rounds && line.ends_with(b"\n") => lines += 1,
                    _ => break,
                }
                length += bytes as u64;
            }
        }
        if lines != transmissions {
            return Ok(None);
        }
        let file =
            OpenOptions::new().create(true).append(true).open(path).map_err(Error::file("write", path))?;
        file.set_len(length).map_err(Error::file("write", path))?;
        let writer = csv::WriterBuilder::new().has_headers(false).from_writer(BufWriter::new(file));
        Ok(Some(Self { writer }))
    }

    /// Notes a round.
    pub fn add(&mut self, record: &RoundRecord) -> Result<(), Error> {
        for sent in &record.transmissions {
            self.writer
                .write_record(TRANSMISSION_COLUMNS.iter().map(|column| (column.value)(sent).text()))?;
        }
        Ok(())
    }

    /// Brings what was noted to the disk.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.writer.flush().map_err(|error| Error::Table(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of a log of `text` when a run resumes after so many rounds and transmissions.
    fn left(text: &str, rounds: u64, transmissions: u64) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rounds.csv");
        std::fs::write(&path, text).unwrap();
        let log = RoundLog::open(&path, rounds, transmissions).unwrap()?;
        drop(log);
        Some(std::fs::read_to_string(path).unwrap())
    }

    #[test]
    fn a_log_continues_where_the_run_does_also_after_rounds_in_which_nobody_sent() {
        assert_eq!(left("1,a\n1,b\n4,a\n", 4, 3).unwrap(), "1,a\n1,b\n4,a\n");
        assert_eq!(left("1,a\n1,b\n4,a\n", 9, 3).unwrap(), "1,a\n1,b\n4,a\n");
        assert_eq!(left("1,a\n1,b\n4,a\n6,a\n", 5, 3).unwrap(), "1,a\n1,b\n4,a\n");
        assert_eq!(left("1,a\n1,b\n4,a\n6,", 5, 3).unwrap(), "1,a\n1,b\n4,a\n");
        assert_eq!(left("1,a\n", 0, 0).unwrap(), "");
    }

    #[test]
    fn a_log_that_lacks_a_transmission_cannot_go_on() {
        for text in ["1,a\n1,b\n", "1,a\n1,b\n4,", "1,a\nnonsense\n4,a\n", ""] {
            assert_eq!(left(text, 4, 3), None, "{text}");
        }
    }
}
