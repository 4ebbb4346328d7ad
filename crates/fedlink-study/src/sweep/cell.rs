//! The files of one run in the folder `cells/`: its checkpoints while it runs, its numbers when it is done.

use crate::error::Error;
use crate::output::write_file;
use crate::results::{RunResult, Status};
use fedlink::checkpoint::{CheckpointError, config_digest};
use fedlink::config::Config;
use fedlink::record::{Outcome, Row};
use fedlink::simulation::Simulation;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The files of one run.
pub struct CellFiles {
    finished: PathBuf,
    checkpoint: PathBuf,
    /// The checkpoint before the last, in case the last is damaged.
    previous: PathBuf,
    /// The log of rounds, if there is one.
    pub rounds: PathBuf,
}

/// A finished run as it is kept.
#[derive(Serialize, Deserialize)]
struct Finished {
    config: [u8; 32],
    status: Status,
    rows: Vec<Row>,
    outcome: Outcome,
    seconds: f64,
}

impl CellFiles {
    /// The files of the run at `index` in the list of all runs; `folder` is the experiment's.
    pub fn new(folder: &Path, index: usize) -> Self {
        let file = |kind: &str| folder.join(format!("cells/{index:05}.{kind}"));
        Self {
            finished: file("cell"),
            checkpoint: file("checkpoint"),
            previous: file("checkpoint.previous"),
            rounds: file("rounds.csv"),
        }
    }

    /// Keeps the numbers of a run that will do no more rounds, and removes its checkpoints.
    pub fn finish(&self, config: &Config, run: &RunResult) -> Result<(), Error> {
        let finished = Finished {
            config: config_digest(config),
            status: run.status.clone(),
            rows: run.rows.clone(),
            outcome: run.outcome.clone(),
            seconds: run.seconds,
        };
        let mut bytes = postcard::to_stdvec(&finished).map_err(|error| Error::Table(error.to_string()))?;
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        write_file(&self.finished, bytes)?;
        for path in [&self.checkpoint, &self.previous] {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    /// The numbers of the run if it is done.
    pub fn finished(&self, config: &Config) -> Result<Option<RunResult>, Error> {
        let bytes = match fs::read(&self.finished) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::file("read", &self.finished)(error)),
        };
        let damaged = || Error::Damaged(self.finished.clone());
        let (content, sum) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        if crc32fast::hash(content) != u32::from_le_bytes(*sum) {
            return Err(damaged());
        }
        // The sum is right, so nothing was damaged.
        let finished: Finished =
            postcard::from_bytes(content).map_err(|_| Error::OtherVersion(self.finished.clone()))?;
        if finished.config != config_digest(config) {
            return Err(Error::OtherConfig(self.finished.clone()));
        }
        let Finished { status, rows, outcome, seconds, .. } = finished;
        Ok(Some(RunResult { seed: config.run.seed, rows, outcome, status, seconds }))
    }

    /// Saves where the run stands.
    pub fn save(&self, simulation: &Simulation) -> Result<(), Error> {
        let partial = self.checkpoint.with_extension(format!("partial-{}", std::process::id()));
        let write = || -> io::Result<()> {
            let file = File::create(&partial)?;
            simulation.checkpoint(&file).map_err(|error| match error {
                CheckpointError::Io(error) => error,
                other => io::Error::other(other),
            })?;
            // On the disk before the one before it goes: the power may fail at any time.
            file.sync_all()
        };
        if let Err(error) = write() {
            let _ = fs::remove_file(&partial);
            return Err(Error::file("write", &self.checkpoint)(error));
        }
        if self.checkpoint.exists() {
            fs::rename(&self.checkpoint, &self.previous).map_err(Error::file("write", &self.checkpoint))?;
        }
        fs::rename(&partial, &self.checkpoint).map_err(Error::file("write", &self.checkpoint))
    }

    /// Restores the run from its last good checkpoint; returns what is wrong with others.
    pub fn restore(&self, simulation: &mut Simulation) -> Vec<String> {
        let mut problems = Vec::new();
        for path in [&self.checkpoint, &self.previous] {
            let Ok(file) = File::open(path) else { continue };
            match simulation.restore(file) {
                Ok(()) => break,
                Err(error) => problems.push(format!("{}: {error}", path.display())),
            }
        }
        problems
    }
}
