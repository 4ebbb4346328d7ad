//! The log of rounds: a line for every transmission of every round of a run, or for every device.

use crate::error::Error;
use crate::folder::disk::{Disk, DiskFile, parent};
use fedlink::base::files;
use fedlink::record::{Details, Outcome, RoundRecord, TRANSMISSION_COLUMNS, hexadecimal};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// The lines that are logged of every round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogRounds {
    /// No log.
    #[default]
    Off,
    /// Every transmission.
    Sent,
    /// Every device with its link and its reports; the scheduled ones come first.
    All,
}

impl LogRounds {
    /// Whether there is a log.
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

/// The lines of a log and their digest. The file of a finished run holds it, so that a log that was changed
/// is recognized.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogSeal {
    /// Its lines.
    pub lines: u64,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// Lines that are counted and hashed one after another.
#[derive(Clone, Default)]
pub(super) struct Lines {
    count: u64,
    digest: Sha256,
}

impl Lines {
    /// Adds whole lines.
    pub fn add(&mut self, lines: &[u8]) {
        self.count += lines.split(|byte| *byte == b'\n').skip(1).count() as u64;
        self.digest.update(lines);
    }

    /// Adds the lines of a round: those of the transmissions, and those of the other devices if `all`.
    pub fn add_round(&mut self, record: &RoundRecord, all: bool) -> Result<(), Error> {
        self.add(&round_lines(record, all)?);
        Ok(())
    }

    /// The lines so far.
    pub fn seal(&self) -> LogSeal {
        LogSeal { lines: self.count, sha256: hexadecimal(&self.digest.clone().finalize()) }
    }
}

/// The lines of a round.
fn round_lines(record: &RoundRecord, all: bool) -> Result<Vec<u8>, Error> {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    for sent in record.transmissions.iter().chain(record.others.iter().filter(|_| all)) {
        let details = if all { record.details.fields(sent.device.index()) } else { Vec::new() };
        let fields = TRANSMISSION_COLUMNS.iter().map(|column| (column.value)(sent).text());
        writer.write_record(fields.chain(details))?;
    }
    writer.into_inner().map_err(|error| Error::Table(error.to_string()))
}

/// The most bytes of a line: each number has some 330 characters at most, and seldom more than 25; with an
/// amplitude for each of 1000 blocks and 64 antennas it has two of them.
const MAX_LINE: u64 = 330 * 32 + 64 * 1000 * 2 * 25;

/// Reads the log at `path` line by line; `each` receives every line with its end and its round, and returns
/// whether to go on. A line that is too long, has no end, or has no round is the last one that is read.
fn read_lines(path: &Path, mut each: impl FnMut(&[u8], u64) -> bool) -> io::Result<bool> {
    let mut reader = BufReader::with_capacity(1 << 16, files::open(path)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(true);
        }
        let round = line.split(|byte| *byte == b',').next().and_then(|word| std::str::from_utf8(word).ok());
        let round = round.and_then(|word| word.parse::<u64>().ok()).filter(|_| line.ends_with(b"\n"));
        if !round.is_some_and(|round| each(&line, round)) {
            return Ok(false);
        }
    }
}

impl LogRounds {
    /// The columns of the log.
    pub(super) fn columns(self) -> Vec<&'static str> {
        let sent = TRANSMISSION_COLUMNS.iter().map(|column| column.name);
        sent.chain(Details::names().filter(|_| self == Self::All)).collect()
    }

    /// Whether a line has a field for each column. No field of ours contains a comma.
    fn has_all_columns(self, line: &[u8]) -> bool {
        fields(line) == self.columns().len()
    }

    /// The same, of a log that version 0.2 may have written.
    fn has_enough_columns(self, line: &[u8]) -> bool {
        self.has_all_columns(line) || fields(line) == TRANSMISSION_COLUMNS.len()
    }
}

fn fields(line: &[u8]) -> usize {
    line.split(|byte| *byte == b',').count()
}

/// Checks the log at `path` of a run with this outcome against its seal. Without a seal, as in folders of
/// earlier versions, only the lines are counted.
pub(super) fn check_log(
    path: &Path,
    which: LogRounds,
    outcome: &Outcome,
    seal: Option<&LogSeal>,
) -> Result<(), Error> {
    let bad = |problem: String| Error::RoundLog { path: path.into(), problem };
    let mut lines = Lines::default();
    let mut last = 0;
    let whole = read_lines(path, |line, round| {
        let fits = (last.max(1)..=outcome.rounds).contains(&round) && std::str::from_utf8(line).is_ok();
        last = round;
        lines.add(line);
        fits && which.has_enough_columns(line)
    });
    let whole = whole.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoRoundLog(path.into()),
        _ => Error::file("read", path)(error),
    })?;
    let (found, wanted) = (lines.seal(), which.lines(outcome));
    if !whole {
        return Err(bad(format!("line {} is not one of its rounds", found.lines.max(1))));
    }
    if found.lines != wanted {
        return Err(bad(format!("it has {} lines, but the run gives {wanted}", found.lines)));
    }
    match seal {
        Some(seal) if *seal != found => Err(bad("its content was changed".into())),
        _ => Ok(()),
    }
}

/// The lines of the file at `path`, with any content; none if it is longer than that number of lines can be.
pub(super) fn file_seal(path: &Path, lines: u64) -> Result<Option<LogSeal>, Error> {
    let mut found = Lines::default();
    let mut read = || -> io::Result<bool> {
        let max = lines.saturating_add(1).saturating_mul(MAX_LINE);
        let mut file = files::open(path)?.take(max);
        let mut buffer = vec![0; ENOUGH];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(file.limit() > 0),
                Ok(length) => found.add(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    };
    let is_whole = read().map_err(Error::file("read", path))?;
    Ok(is_whole.then(|| found.seal()))
}

/// An open log.
pub(super) struct RoundLog {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// The lines so far, those that are not written yet included.
    lines: Lines,
    /// Whether all lines are known to be those that were written.
    is_sealed: bool,
    all: bool,
    /// Lines that are not written yet.
    waiting: Vec<u8>,
}

/// The bytes of lines that are collected before they are written.
const ENOUGH: usize = 1 << 16;

impl RoundLog {
    /// Opens the log of a run that has done `rounds` rounds with `lines` lines, and removes the lines of
    /// later rounds. None if lines are missing or are not those of the `seal`: then the log cannot be
    /// resumed.
    pub fn open(
        disk: &dyn Disk,
        path: &Path,
        which: LogRounds,
        (rounds, lines): (u64, u64),
        seal: Option<&LogSeal>,
    ) -> Result<Option<Self>, Error> {
        let prefix = Self::prefix(path, which, rounds).map_err(Error::file("read", path))?;
        let Some((found, length)) = prefix else { return Ok(None) };
        if found.count != lines || seal.is_some_and(|seal| *seal != found.seal()) {
            return Ok(None);
        }
        let open = || -> io::Result<Box<dyn DiskFile>> {
            let file = disk.append(path, length)?;
            // A checkpoint must not survive the name of the log that it depends on.
            disk.sync_dir(&parent(path))?;
            Ok(file)
        };
        let file = open().map_err(Error::file("write", path))?;
        let is_sealed = rounds == 0 || seal.is_some();
        let all = which == LogRounds::All;
        Ok(Some(Self { path: path.into(), file, lines: found, is_sealed, all, waiting: Vec::new() }))
    }

    /// The lines of the first `rounds` and their bytes; none if they have other columns than this version
    /// writes.
    fn prefix(path: &Path, which: LogRounds, rounds: u64) -> io::Result<Option<(Lines, u64)>> {
        let (mut lines, mut length, mut fits) = (Lines::default(), 0, true);
        if rounds > 0 && path.exists() {
            read_lines(path, |line, round| {
                fits &= which.has_all_columns(line) || round > rounds;
                if round > rounds || !fits {
                    return false;
                }
                lines.add(line);
                length += line.len() as u64;
                true
            })?;
        }
        Ok(fits.then_some((lines, length)))
    }

    /// Adds the lines of a round.
    pub fn add(&mut self, record: &RoundRecord) -> Result<(), Error> {
        let lines = round_lines(record, self.all)?;
        self.lines.add(&lines);
        self.waiting.extend(lines);
        if self.waiting.len() >= ENOUGH { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<(), Error> {
        self.file.write_all(&self.waiting).map_err(Error::file("write", &self.path))?;
        self.waiting.clear();
        Ok(())
    }

    /// Writes the collected lines and syncs them to the disk. Returns the seal of the log; none if an earlier
    /// version began the log and did not seal it.
    pub fn sync(&mut self) -> Result<Option<LogSeal>, Error> {
        self.hand_over()?;
        self.file.sync().map_err(Error::file("write", &self.path))?;
        Ok(self.is_sealed.then(|| self.lines.seal()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::disk::RealDisk;
    use std::fs;

    /// A line of a round with the number of fields that a log has.
    fn line(round: &str, device: char) -> String {
        format!("{round},{device}{}\n", ",0".repeat(TRANSMISSION_COLUMNS.len() - 2))
    }

    /// The log of these rounds, with a device for each letter.
    fn log_of(rounds: &[(&str, &str)]) -> String {
        rounds.iter().flat_map(|(round, devices)| devices.chars().map(|device| line(round, device))).collect()
    }

    /// The rest of a log of `text` after a run has resumed at this number of rounds and transmissions.
    fn left(text: &str, rounds: u64, transmissions: u64, seal: Option<&LogSeal>) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rounds.csv");
        fs::write(&path, text).unwrap();
        let done = (rounds, transmissions);
        drop(RoundLog::open(&RealDisk, &path, LogRounds::Sent, done, seal).unwrap()?);
        Some(fs::read_to_string(path).unwrap())
    }

    fn seal_of(text: &str) -> LogSeal {
        let mut lines = Lines::default();
        lines.add(text.as_bytes());
        lines.seal()
    }

    #[test]
    fn a_log_continues_with_its_run_also_after_rounds_without_transmissions() {
        let log = log_of(&[("1", "ab"), ("4", "a")]);
        for (rounds, later) in [(4, String::new()), (9, String::new()), (5, line("6", 'a')), (5, "6,".into())]
        {
            assert_eq!(left(&(log.clone() + &later), rounds, 3, None).as_ref(), Some(&log));
            assert_eq!(left(&(log.clone() + &later), rounds, 3, Some(&seal_of(&log))).as_ref(), Some(&log));
        }
        assert_eq!(left(&line("1", 'a'), 0, 0, None).unwrap(), "");
    }

    #[test]
    fn a_log_that_lacks_a_transmission_or_was_changed_cannot_be_resumed() {
        let log = log_of(&[("1", "ab"), ("4", "a")]);
        let short = log_of(&[("1", "ab")]);
        let other = log_of(&[("1", "ac"), ("4", "a")]);
        for text in [&short, &format!("{short}4,"), &(line("1", 'a') + "nonsense\n" + &line("4", 'a')), ""] {
            assert_eq!(left(text, 4, 3, None), None, "{text}");
        }
        assert_eq!(left(&other, 4, 3, Some(&seal_of(&log))), None);
        // Columns of another version.
        assert_eq!(left("1,a\n1,b\n4,a\n", 4, 3, None), None);
    }

    #[test]
    fn a_finished_log_is_counted_and_if_it_is_sealed_compared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rounds.csv");
        let mut outcome = Outcome::default();
        (outcome.rounds, outcome.scheduled) = (4, vec![2, 1]);
        let log = log_of(&[("1", "ab"), ("4", "a")]);
        let check = |text: &[u8], seal: Option<&LogSeal>| {
            fs::write(&path, text).unwrap();
            check_log(&path, LogRounds::Sent, &outcome, seal).map_err(|error| error.to_string())
        };
        let seal = seal_of(&log);
        assert!(matches!(check_log(&path, LogRounds::Sent, &outcome, None), Err(Error::NoRoundLog(_))));
        assert_eq!((check(log.as_bytes(), Some(&seal)), check(log.as_bytes(), None)), (Ok(()), Ok(())));
        let other = log_of(&[("1", "ac"), ("4", "a")]);
        assert_eq!(check(other.as_bytes(), None), Ok(()));
        assert!(check(other.as_bytes(), Some(&seal)).unwrap_err().ends_with("its content was changed"));
        for (text, problem) in [
            (log_of(&[("1", "ab")]), "it has 2 lines, but the run gives 3"),
            (String::new(), "it has 0 lines, but the run gives 3"),
            (log_of(&[("1", "ab"), ("5", "a")]), "line 3 is not one of its rounds"),
            (log_of(&[("2", "ab"), ("1", "a")]), "line 3 is not one of its rounds"),
            (log_of(&[("1", "abcd")]), "it has 4 lines, but the run gives 3"),
            (log.trim_end().to_owned(), "line 2 is not one of its rounds"),
            ("1,2\n1,2\n1,2\n".into(), "line 1 is not one of its rounds"),
        ] {
            for seal in [None, Some(&seal)] {
                let found = check(text.as_bytes(), seal).unwrap_err();
                assert!(found.ends_with(problem), "{found}\n{problem}");
            }
        }
        let random: Vec<u8> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        assert!(check(&random, None).unwrap_err().contains("line 1 is not one of its rounds"));
        // An endless line takes no memory.
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(check_log(&path, LogRounds::Sent, &outcome, None).is_err());
    }
}
