//! The files of one run in the folder `cells/`: its checkpoints while it runs, its numbers when it is done.

use crate::output::write_file;
use crate::results::{RunResult, Status};
use anyhow::{Context, anyhow, bail};
use fedlink::checkpoint::config_digest;
use fedlink::config::Config;
use fedlink::record::{Outcome, Row};
use fedlink::simulation::Simulation;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
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
    /// The files of the run at `place` in the list of all runs; `folder` is the experiment's.
    pub fn new(folder: &Path, place: usize) -> Self {
        let file = |kind: &str| folder.join(format!("cells/{place:05}.{kind}"));
        Self {
            finished: file("cell"),
            checkpoint: file("checkpoint"),
            previous: file("checkpoint.previous"),
            rounds: file("rounds.csv"),
        }
    }

    /// Keeps the numbers of a run that will do no more rounds, and removes its checkpoints.
    pub fn finish(&self, config: &Config, run: &RunResult) -> anyhow::Result<()> {
        let finished = Finished {
            config: config_digest(config),
            status: run.status.clone(),
            rows: run.rows.clone(),
            outcome: run.outcome.clone(),
            seconds: run.seconds,
        };
        let mut bytes = postcard::to_stdvec(&finished)?;
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        write_file(&self.finished, bytes)?;
        for path in [&self.checkpoint, &self.previous] {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    /// The numbers of the run if it is done.
    pub fn finished(&self, config: &Config) -> anyhow::Result<Option<RunResult>> {
        let bytes = match fs::read(&self.finished) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", self.finished.display()));
            }
        };
        let damaged = || anyhow!("{} is damaged", self.finished.display());
        let (content, sum) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        if crc32fast::hash(content) != u32::from_le_bytes(*sum) {
            return Err(damaged());
        }
        // The sum is right, so nothing was damaged.
        let finished: Finished = postcard::from_bytes(content).map_err(|_| {
            anyhow!("{} was written by another version; --resume makes it again", self.finished.display())
        })?;
        if finished.config != config_digest(config) {
            bail!("{} belongs to a run with another configuration", self.finished.display());
        }
        let Finished { status, rows, outcome, seconds, .. } = finished;
        Ok(Some(RunResult { seed: config.run.seed, rows, outcome, status, seconds }))
    }

    /// Saves where the run stands.
    pub fn save(&self, simulation: &Simulation) -> anyhow::Result<()> {
        let cannot = || format!("cannot write {}", self.checkpoint.display());
        let partial = self.checkpoint.with_extension(format!("partial-{}", std::process::id()));
        let write = || -> anyhow::Result<()> {
            let file = File::create(&partial)?;
            simulation.checkpoint(&file)?;
            // On the disk before the one before it goes: the power may fail at any time.
            file.sync_all()?;
            Ok(())
        };
        if let Err(error) = write() {
            let _ = fs::remove_file(&partial);
            return Err(error.context(cannot()));
        }
        if self.checkpoint.exists() {
            fs::rename(&self.checkpoint, &self.previous).with_context(cannot)?;
        }
        fs::rename(&partial, &self.checkpoint).with_context(cannot)
    }

    /// Takes the run up where its last good checkpoint left it; returns what went wrong with others.
    pub fn restore(&self, simulation: &mut Simulation) -> Vec<String> {
        let mut complaints = Vec::new();
        for path in [&self.checkpoint, &self.previous] {
            let Ok(file) = File::open(path) else { continue };
            match simulation.restore(file) {
                Ok(()) => break,
                Err(error) => complaints.push(format!("{}: {error}", path.display())),
            }
        }
        complaints
    }
}
