//! The log of rounds: a line for every transmission of every round of a run, or for every device.

use crate::error::Error;
use crate::folder::disk::{Disk, DiskFile, parent};
use fedlink::record::{Outcome, RoundRecord, TRANSMISSION_COLUMNS};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// The lines that are logged of every round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogRounds {
    /// Nothing.
    #[default]
    Off,
    /// Every transmission.
    Sent,
    /// Every device with its link and its reports; the scheduled ones come first.
    All,
}

impl LogRounds {
    /// Whether anything is logged.
    pub fn is_on(self) -> bool {
        self != Self::Off
    }

    /// The ending of the log of a run.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Off | Self::Sent => "rounds.csv",
            Self::All => "rounds-all.csv",
        }
    }

    /// Lines of the log of a run so far.
    pub(super) fn lines(self, outcome: &Outcome) -> u64 {
        match self {
            Self::Off => 0,
            Self::Sent => outcome.scheduled.iter().map(|&times| u64::from(times)).sum(),
            Self::All => outcome.rounds * outcome.scheduled.len() as u64,
        }
    }
}

/// An open log.
pub struct RoundLog {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// Lines that are not written yet.
    waiting: Vec<u8>,
}

/// The bytes of lines that are collected before they are written.
const ENOUGH: usize = 1 << 16;

impl RoundLog {
    /// Opens the log of a run that has done `rounds` rounds with `lines` lines, and removes the lines of
    /// later rounds. None if lines are missing: then the log cannot be resumed.
    pub fn open(disk: &dyn Disk, path: &Path, rounds: u64, lines: u64) -> Result<Option<Self>, Error> {
        let Some(length) = Self::length(path, rounds, lines).map_err(Error::file("read", path))? else {
            return Ok(None);
        };
        let open = || -> io::Result<Box<dyn DiskFile>> {
            let file = disk.append(path, length)?;
            // A checkpoint must not survive the name of the log that it depends on.
            disk.sync_dir(&parent(path))?;
            Ok(file)
        };
        let file = open().map_err(Error::file("write", path))?;
        Ok(Some(Self { path: path.into(), file, waiting: Vec::new() }))
    }

    /// The byte after the lines of the first `rounds`; none if their number is not `wanted`.
    fn length(path: &Path, rounds: u64, wanted: u64) -> io::Result<Option<u64>> {
        let (mut lines, mut length) = (0, 0);
        if rounds > 0 && path.exists() {
            let mut reader = BufReader::new(File::open(path)?);
            let mut line = Vec::new();
            loop {
                line.clear();
                let bytes = reader.read_until(b'\n', &mut line)?;
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
        Ok((lines == wanted).then_some(length))
    }

    /// Adds the lines of a round.
    pub fn add(&mut self, record: &RoundRecord) -> Result<(), Error> {
        let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(&mut self.waiting);
        for sent in record.transmissions.iter().chain(&record.others) {
            writer.write_record(TRANSMISSION_COLUMNS.iter().map(|column| (column.value)(sent).text()))?;
        }
        writer.flush().map_err(|error| Error::Table(error.to_string()))?;
        drop(writer);
        if self.waiting.len() >= ENOUGH { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<(), Error> {
        self.file.write_all(&self.waiting).map_err(Error::file("write", &self.path))?;
        self.waiting.clear();
        Ok(())
    }

    /// Writes the collected lines and syncs them to the disk.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.hand_over()?;
        self.file.sync().map_err(Error::file("write", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::disk::RealDisk;

    /// The rest of a log of `text` after a run has resumed at so many rounds and transmissions.
    fn left(text: &str, rounds: u64, transmissions: u64) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rounds.csv");
        std::fs::write(&path, text).unwrap();
        let log = RoundLog::open(&RealDisk, &path, rounds, transmissions).unwrap()?;
        drop(log);
        Some(std::fs::read_to_string(path).unwrap())
    }

    #[test]
    fn a_log_continues_with_its_run_also_after_rounds_without_transmissions() {
        assert_eq!(left("1,a\n1,b\n4,a\n", 4, 3).unwrap(), "1,a\n1,b\n4,a\n");
        assert_eq!(left("1,a\n1,b\n4,a\n", 9, 3).unwrap(), "1,a\n1,b\n4,a\n");
        assert_eq!(left("1,a\n1,b\n4,a\n6,a\n", 5, 3).unwrap(), "1,a\n1,b\n4,a\n");
        assert_eq!(left("1,a\n1,b\n4,a\n6,", 5, 3).unwrap(), "1,a\n1,b\n4,a\n");
        assert_eq!(left("1,a\n", 0, 0).unwrap(), "");
    }

    #[test]
    fn a_log_that_lacks_a_transmission_cannot_be_resumed() {
        for text in ["1,a\n1,b\n", "1,a\n1,b\n4,", "1,a\nnonsense\n4,a\n", ""] {
            assert_eq!(left(text, 4, 3), None, "{text}");
        }
    }
}
