//! Traces: measured or computed gains, signal-to-noise ratios or rates of devices over rounds or over time.
//!
//! A file is one of three, distinguished by its content:
//! * long CSV: a header `round,device,gain`, or `time_s` for `round`, or `snr_db` or `rate_bps` for `gain`;
//!   with a fourth column `rb` for resource blocks. One number per line; rounds, devices and blocks count
//!   from 0. Rows are in any order, those of a device in rising time if they have times; no cell of the
//!   table may be missing, and all devices have the same rounds or times.
//! * wide CSV: no header, a line for each round, a column for each device.
//! * NPY, or NPZ with one array named `gain`, `snr_db` or `rate_bps`: rounds × devices, or rounds × devices ×
//!   resource blocks, float32 or float64 in C order. An NPZ may have an array `dt_s` of one number, the time
//!   between rows in seconds, or `time_s`, the time of each row.
//!
//! Nothing here panics on bad input, and no allocation exceeds some ten times the file (NPZ: 2²⁶ numbers).

pub mod csv;
#[cfg(feature = "files")]
pub mod npy;

use crate::base::files;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Bytes that the file of a trace may have.
pub const MAX_FILE: u64 = 256 << 20;
/// Numbers that a trace may have.
pub const MAX_VALUES: u64 = 1 << 26;

/// The quantity that the numbers of a trace are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TraceKind {
    /// Power gains |h|², linear.
    Gain,
    /// Signal-to-noise ratios in dB, at the power and in the band of the measurement.
    SnrDb,
    /// Rates in bits per second.
    RateBps,
}

impl TraceKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Gain, Self::SnrDb, Self::RateBps];

    /// Its name in headers, as an array, and in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gain => "gain",
            Self::SnrDb => "snr_db",
            Self::RateBps => "rate_bps",
        }
    }

    /// The reason why a number cannot be one of this kind, if there is one.
    pub fn problem(self, value: f64) -> Option<String> {
        let (is_fine, allowed) = match self {
            Self::SnrDb => (value.abs() <= 300.0, "a number in −300..=300 dB"),
            Self::Gain | Self::RateBps => {
                (value.is_finite() && value >= 0.0, "a finite number of at least 0")
            }
        };
        (!is_fine).then(|| format!("{} is {value}, but must be {allowed}", self.name()))
    }
}

/// The times of a trace's rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Times {
    /// One row per round.
    Rounds,
    /// One row per this number of seconds.
    Step(f64),
    /// At these seconds, strictly rising.
    At(Vec<f64>),
}

/// The numbers of a file. Invariants: `values` has rows × devices × blocks finite numbers, in this order;
/// none of the three is zero.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trace {
    /// The quantity of the numbers, if the file states it.
    pub kind: Option<TraceKind>,
    /// The times of the rows.
    pub times: Times,
    /// The number of rounds or times.
    pub rows: usize,
    /// The number of devices.
    pub devices: usize,
    /// The number of resource blocks.
    pub blocks: usize,
    /// The numbers.
    pub values: Vec<f64>,
}

impl Trace {
    /// The numbers of `device` (an index below `devices`) in row `row` (below `rows`), one for each block.
    pub fn at(&self, row: usize, device: usize) -> &[f64] {
        let start = (row * self.devices + device) * self.blocks;
        &self.values[start..start + self.blocks]
    }
}

/// Reads the trace at `path`.
pub fn read(path: &Path) -> Result<Trace, String> {
    let refuse = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    let bytes = files::read_up_to(path, MAX_FILE).map_err(|error| refuse(&error))?;
    let too_long = || refuse(&format!("is longer than the {MAX_FILE} bytes that are read; use a part of it"));
    let bytes = bytes.ok_or_else(too_long)?;
    parse(&bytes).map_err(|problem| refuse(&problem))
}

/// Parses the bytes of a file of any of the three formats.
pub fn parse(file: &[u8]) -> Result<Trace, String> {
    if file.starts_with(b"\x93NUMPY") || file.starts_with(b"PK") {
        #[cfg(feature = "files")]
        return npy::parse(file);
        #[cfg(not(feature = "files"))]
        return Err(
            "this build does not read NPY and NPZ files; build fedlink with the feature `files`".into()
        );
    }
    csv::parse(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn a_file_is_read_by_its_content_and_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.csv");
        let problem = read(&path).unwrap_err();
        assert!(problem.contains("trace.csv: "), "{problem}");
        assert!(read(folder.path()).unwrap_err().ends_with("it is a folder"));
        fs::write(&path, "1,2\n3,4\n").unwrap();
        let trace = read(&path).unwrap();
        assert_eq!((trace.rows, trace.devices, trace.blocks, trace.kind), (2, 2, 1, None));
        assert_eq!((trace.at(0, 1), trace.at(1, 0)), (&[2.0][..], &[3.0][..]));
        fs::write(&path, "1,2\n3,NaN\n").unwrap();
        assert!(read(&path).unwrap_err().contains("trace.csv: line 2, column 2: "));
    }

    #[test]
    fn a_file_that_is_too_long_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.csv");
        // Sparse: takes no room on the disk.
        File::create(&path).unwrap().set_len(MAX_FILE + 1).unwrap();
        assert!(read(&path).unwrap_err().contains("is longer than the 268435456 bytes"));
    }

    #[test]
    fn every_kind_refuses_impossible_values() {
        assert_eq!(TraceKind::Gain.problem(0.0), None);
        assert_eq!(TraceKind::SnrDb.problem(-20.0), None);
        let problem = TraceKind::Gain.problem(-1.0);
        assert_eq!(problem.as_deref(), Some("gain is -1, but must be a finite number of at least 0"));
        let problem = TraceKind::SnrDb.problem(301.0);
        assert_eq!(problem.as_deref(), Some("snr_db is 301, but must be a number in −300..=300 dB"));
        assert!(TraceKind::RateBps.problem(f64::INFINITY).is_some());
        assert!(TraceKind::ALL.iter().all(|kind| kind.problem(f64::NAN).is_some()));
    }
}
