//! The progress of a run, for other processes.

use super::process::now;
use super::run_files::RunFiles;
use crate::folder::own::replace_own;
use fedlink::base::files;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The most bytes of the file.
const MAX_BYTES: u64 = 1 << 16;

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
    /// The time at which this was written, UTC.
    pub updated: String,
}

impl Progress {
    /// The progress in the file at `path`, if there is one.
    pub fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&files::read(path, MAX_BYTES).ok()?).ok()
    }

    /// Writes the file. An error is ignored: the results do not depend on it.
    pub(super) fn write(&mut self, files: &RunFiles) {
        self.updated = now();
        let content = serde_json::to_vec(self).unwrap_or_default();
        let _ = replace_own(&files.progress(), &files.progress_partial(), &content);
    }

    /// `pid 12 on node7`.
    pub fn holder(&self) -> String {
        format!("pid {} on {}", self.pid, self.host)
    }
}
