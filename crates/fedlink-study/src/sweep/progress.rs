//! The progress of a run, for other processes.

use super::process::now;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The progress of a run for other processes: a small file beside the lock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Progress {
    /// Number of the process.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// Rounds done.
    pub round: u64,
    /// Rounds that were done before this process began.
    pub from_round: u64,
    /// Test accuracy at the last evaluation, as a share.
    pub accuracy: Option<f64>,
    /// Seconds that this process has worked on the run.
    pub seconds: f64,
    /// When this was written, UTC.
    pub updated: String,
}

impl Progress {
    /// The progress in the file at `path`, if there is one.
    pub fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Writes the file. An error is ignored: the results do not depend on it.
    pub fn write(&mut self, path: &Path) {
        self.updated = now();
        let _ = fs::write(path, serde_json::to_vec(self).unwrap_or_default());
    }

    /// `pid 12 on node7`.
    pub fn holder(&self) -> String {
        format!("pid {} on {}", self.pid, self.host)
    }
}
