//! The files of one run in the folder `runs/`: its checkpoints until it ends, its numbers afterwards.
//!
//! A file is named by the configuration of its run, not by the number of the run in the sweep:
//! `bc-k1-seed3-4f0c2a9b61de-r400.json` is the run of policy bc with K = 1 at seed 3 over 400 rounds, and the
//! twelve digits are the beginning of its [trajectory digest](fedlink::spec::identity::trajectory_digest). A
//! sweep can therefore grow and still find its runs.

use super::log::{LogRounds, LogSeal};
use super::process::Process;
use super::stored_run::StoredRun;
use crate::error::Error;
use crate::folder::disk::{Disk, DiskFile, parent, write_partial, write_synced};
use crate::folder::lock::{Attempt, Lock};
use crate::folder::names::{ENDINGS, runs_folder};
use crate::folder::own::{check_own, create_own};
use fedlink::base::{files, memory};
use fedlink::record::hexadecimal;
use fedlink::spec::Spec;
use fedlink::spec::identity::{digests, trajectory_digest};
use fedlink::system::checkpoint::CheckpointError;
use fedlink::system::simulation::Simulation;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The files of one run.
#[derive(Clone, Debug)]
pub struct RunFiles {
    /// `runs/NAME` without an ending.
    base: PathBuf,
    config_digest: String,
    seed: u64,
    rounds: u64,
    /// The most bytes of its file.
    max_bytes: u64,
}

/// The lines of a log at a round with a checkpoint, so that a log that was changed is not resumed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CheckpointSeal {
    log: String,
    round: u64,
    #[serde(flatten)]
    seal: LogSeal,
}

/// The most bytes of a small file: of the processes of a run, and of the seals of its logs.
const MAX_SMALL: u64 = 16 << 20;
/// The most bytes of the message of a failed run that are shown.
const MAX_MESSAGE: usize = 4096;

/// The endings of the files that are needed until the numbers of the run are on the disk.
const UNTIL_DONE: [&str; 5] = ["checkpoint", "checkpoint.previous", "makers", "seals", "failed"];

/// The name of a run in `runs/`.
pub fn run_name(spec: &Spec) -> String {
    name_of(spec, &trajectory_digest(spec))
}

fn name_of(spec: &Spec, trajectory: &[u8; 32]) -> String {
    format!("{}{}", family(spec, trajectory), spec.run.rounds)
}

/// The beginning of the names of all runs that differ only in the number of rounds.
fn family(spec: &Spec, trajectory: &[u8; 32]) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let policy: String = spec.schedule.policy.chars().take(40).map(safe).collect();
    let digest = hexadecimal(trajectory);
    // A name must not begin with a dot or a minus.
    let policy = policy.trim_start_matches(['.', '-']);
    format!("{policy}-k{}-seed{}-{}-r", spec.schedule.k, spec.run.seed, &digest[..12])
}

impl RunFiles {
    /// The files of the run with this configuration in the folder of an experiment.
    pub fn new(folder: &Path, spec: &Spec) -> Self {
        Self::within(&runs_folder(folder), spec)
    }

    /// The files of the run with this configuration in the folder of the runs.
    fn within(runs: &Path, spec: &Spec) -> Self {
        let (config, trajectory) = digests(spec);
        let run = &spec.run;
        // Many times the size that a run of this length can need: a larger file is not one of ours.
        let rows = 1 + run.rounds / run.evaluate_every.max(1);
        let numbers = rows.saturating_mul(1 << 14).saturating_add(spec.data.devices.saturating_mul(1 << 12));
        Self {
            base: runs.join(name_of(spec, &trajectory)),
            config_digest: hexadecimal(&config),
            seed: run.seed,
            rounds: run.rounds,
            max_bytes: numbers.saturating_add(64 << 20),
        }
    }

    fn file(&self, ending: &str) -> PathBuf {
        let mut path = self.base.clone().into_os_string();
        path.push(format!(".{ending}"));
        path.into()
    }

    /// The run's name.
    pub fn name(&self) -> String {
        self.base.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// The numbers of the finished run.
    pub fn finished(&self) -> PathBuf {
        self.file("json")
    }

    /// The log of rounds: that of all devices, or that of the transmissions.
    pub fn rounds(&self, which: LogRounds) -> PathBuf {
        self.file(which.ending())
    }

    /// The lock of the process that computes it.
    pub fn lock(&self) -> PathBuf {
        self.file("lock")
    }

    /// Its progress.
    pub fn progress(&self) -> PathBuf {
        self.file("progress")
    }

    /// Its progress until it is complete.
    pub fn progress_partial(&self) -> PathBuf {
        self.file("progress.partial")
    }

    /// The beginning of the error that ended it, if there is one.
    pub fn failure(&self) -> Option<String> {
        let mut bytes = Vec::new();
        let file = files::open(&self.file("failed")).ok()?;
        file.take(MAX_MESSAGE as u64).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Notes the error that ended it, for `status`.
    pub fn note_failure(&self, error: &Error) {
        // The error itself ends the sweep.
        let _ = create_own(&self.file("failed"))
            .and_then(|mut file| file.write_all(error.to_string().as_bytes()));
    }

    /// An error if one of the files is a link or a special file: nothing is written through them.
    pub fn check_own(&self) -> Result<(), Error> {
        ENDINGS.iter().try_for_each(|ending| {
            let path = self.file(ending);
            check_own(&path).map_err(Error::file("write", &path))
        })
    }

    /// Its final state, if it was kept.
    pub fn state(&self) -> PathBuf {
        self.file("state")
    }

    /// Whether an earlier process has left a checkpoint.
    pub fn was_begun(&self) -> bool {
        self.file("checkpoint").exists() || self.file("checkpoint.previous").exists()
    }

    /// Writes the numbers of a run that has ended, and its final state if it is given; removes its
    /// checkpoints. Returns the run as [`RunFiles::read`] gives it from now on.
    pub fn finish(
        &self,
        disk: &dyn Disk,
        spec: &Spec,
        run: &StoredRun,
        state: Option<&Simulation>,
    ) -> Result<StoredRun, Error> {
        if let Some(simulation) = state {
            self.write_state(disk, "state", simulation)?;
        }
        let text = run.to_text(spec)?;
        let path = self.finished();
        write_synced(disk, &path, &self.file("json.partial"), |file| file.write_all(text.as_bytes()))?;
        // After the numbers are on the disk.
        UNTIL_DONE.iter().try_for_each(|ending| remove(disk, &self.file(ending)))?;
        StoredRun::from_bytes(&path, text.as_bytes())
    }

    /// The numbers of the run if it is finished.
    pub fn read(&self) -> Result<Option<StoredRun>, Error> {
        let path = self.finished();
        let bytes = match files::read_up_to(&path, self.max_bytes) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(Error::Damaged(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::file("read", &path)(error)),
        };
        let stored = StoredRun::from_bytes(&path, &bytes)?;
        let is_own = (&stored.config_digest, stored.result.seed, stored.rounds)
            == (&self.config_digest, self.seed, self.rounds);
        if !is_own {
            return Err(Error::OtherConfig(path));
        }
        Ok(Some(stored))
    }

    /// Saves the state of the run.
    pub fn save(&self, disk: &dyn Disk, simulation: &Simulation) -> Result<(), Error> {
        let path = self.file("checkpoint");
        if path.exists() {
            let previous = self.file("checkpoint.previous");
            // The new checkpoint is complete before the last one is renamed, so that a power cut leaves one.
            let partial = self.file("checkpoint.partial");
            write_partial(disk, &path, &partial, |file| state_to(file, simulation))?;
            let swap = || disk.rename(&path, &previous).and_then(|()| disk.rename(&partial, &path));
            swap().and_then(|()| disk.sync_dir(&parent(&path))).map_err(Error::file("write", &path))
        } else {
            self.write_state(disk, "checkpoint", simulation)
        }
    }

    fn write_state(&self, disk: &dyn Disk, ending: &str, simulation: &Simulation) -> Result<(), Error> {
        let (path, partial) = (self.file(ending), self.file(&format!("{ending}.partial")));
        write_synced(disk, &path, &partial, |file| state_to(file, simulation))
    }

    /// Restores the run from its last good checkpoint; returns the errors of the others.
    pub fn restore(&self, simulation: &mut Simulation) -> Vec<String> {
        let mut problems = Vec::new();
        for ending in ["checkpoint", "checkpoint.previous"] {
            let path = self.file(ending);
            let restored = match open_state(&path) {
                Ok(file) => simulation.restore(file).map_err(|error| error.to_string()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => Err(error.to_string()),
            };
            match restored {
                Ok(()) => break,
                Err(problem) => problems.push(format!("{}: {problem}", path.display())),
            }
        }
        problems
    }

    /// The processes of the rounds so far, as far as they are recorded.
    pub fn processes(&self) -> Vec<Process> {
        let bytes = files::read(&self.file("makers"), MAX_SMALL).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    fn checkpoint_seals(&self) -> Vec<CheckpointSeal> {
        let bytes = files::read(&self.file("seals"), MAX_SMALL).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// The seal of the log at the checkpoint after `round` rounds, if it was noted.
    pub fn seal_at(&self, which: LogRounds, round: u64) -> Option<LogSeal> {
        let is_wanted = |noted: &CheckpointSeal| (noted.log.as_str(), noted.round) == (which.ending(), round);
        self.checkpoint_seals().into_iter().rfind(is_wanted).map(|noted| noted.seal)
    }

    /// Notes the seal of the log at a checkpoint, before the checkpoint is written.
    pub fn note_seal(
        &self,
        disk: &dyn Disk,
        which: LogRounds,
        round: u64,
        seal: LogSeal,
    ) -> Result<(), Error> {
        // The last two checkpoints are on the disk while the next one is written.
        const KEPT: usize = 2;
        let mut seals = self.checkpoint_seals();
        seals.retain(|noted| noted.log == which.ending() && noted.round < round);
        seals.drain(..seals.len().saturating_sub(KEPT));
        seals.push(CheckpointSeal { log: which.ending().into(), round, seal });
        let bytes = serde_json::to_vec(&seals)?;
        write_synced(disk, &self.file("seals"), &self.file("seals.partial"), |file| file.write_all(&bytes))
    }

    /// Records the processes of the run.
    pub fn note_processes(&self, disk: &dyn Disk, processes: &[Process]) -> Result<(), Error> {
        let bytes = serde_json::to_vec(processes)?;
        write_synced(disk, &self.file("makers"), &self.file("makers.partial"), |file| file.write_all(&bytes))
    }

    /// Removes the half-written files of a killed process. The run must be locked.
    pub fn sweep(&self, disk: &dyn Disk) -> Result<(), Error> {
        let partial = ENDINGS.iter().filter(|ending| ending.ends_with(".partial"));
        { partial }.try_for_each(|ending| remove(disk, &self.file(ending)))?;
        remove(disk, &self.progress())
    }

    /// Removes the files of a process that was killed after it had written the numbers of the run; no file if
    /// another process holds the lock of the run.
    pub fn sweep_done(&self, disk: &dyn Disk) -> Result<(), Error> {
        let partial = ENDINGS.iter().filter(|ending| ending.ends_with(".partial"));
        let mut left = UNTIL_DONE.iter().chain(&["lock", "progress"]).chain(partial);
        if !left.any(|ending| self.file(ending).exists()) {
            return Ok(());
        }
        let Attempt::Held(_lock) = Lock::try_new(&self.lock())? else { return Ok(()) };
        self.sweep(disk)?;
        UNTIL_DONE.iter().try_for_each(|ending| remove(disk, &self.file(ending)))
    }

    /// Removes every file of the run but its lock.
    pub fn remove(&self, disk: &dyn Disk) -> Result<(), Error> {
        ENDINGS
            .iter()
            .filter(|ending| **ending != "lock")
            .try_for_each(|ending| remove(disk, &self.file(ending)))
    }

    /// Copies the log of rounds of a shorter run, with whose rounds this run begins.
    pub fn copy_rounds(&self, disk: &dyn Disk, from: &Self, which: LogRounds) -> Result<(), Error> {
        let source = from.rounds(which);
        if !source.exists() {
            return Ok(());
        }
        let mut reader = files::open(&source).map_err(Error::file("read", &source))?;
        let partial = self.file(&format!("{}.partial", which.ending()));
        write_synced(disk, &self.rounds(which), &partial, |mut file| {
            io::copy(&mut reader, &mut file).map(drop)
        })
    }

    /// The finished runs in the folder that differ from this one only in having fewer rounds, the longest
    /// first.
    pub fn shorter(&self, spec: &Spec) -> Vec<(Self, StoredRun)> {
        let beginning = family(spec, &trajectory_digest(spec));
        let mut shorter = Vec::new();
        let Ok(entries) = fs::read_dir(parent(&self.base)) else { return shorter };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let rounds = name
                .strip_prefix(&beginning)
                .and_then(|rest| rest.strip_suffix(".json")?.parse::<u64>().ok());
            let Some(rounds) = rounds.filter(|&rounds| rounds < spec.run.rounds) else { continue };
            let spec = spec.with_rounds(rounds);
            let files = Self::within(&parent(&self.base), &spec);
            // A run that cannot be read is left alone.
            if let Ok(Some(stored)) = files.read() {
                shorter.push((files, stored));
            }
        }
        shorter.sort_by_key(|(_, stored)| std::cmp::Reverse(stored.rounds));
        shorter
    }
}

/// Opens the state of a run. One that exceeds the memory of the machine cannot be restored.
pub fn open_state(path: &Path) -> io::Result<File> {
    let file = files::open(path)?;
    let length = file.metadata()?.len();
    match memory::total() {
        Some(memory) if length > memory => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "it is longer than the memory of this machine"))
        }
        _ => Ok(file),
    }
}

/// Writes the state of a run.
fn state_to(file: &mut dyn DiskFile, simulation: &Simulation) -> io::Result<()> {
    simulation.checkpoint(file).map_err(|error| match error {
        CheckpointError::Io(error) => error,
        other => io::Error::other(other),
    })
}

/// Removes a file if it exists.
fn remove(disk: &dyn Disk, path: &Path) -> Result<(), Error> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    match disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::file("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::names::is_run_file;

    #[test]
    fn the_name_of_a_run_is_safe_and_its_files_are_recognized() {
        let mut config = fedlink::spec::Config::default();
        config.schedule.policy = "../my policy:é".into();
        config.custom.insert("../my policy:é".into(), "a test".into());
        let name = run_name(&config.resolve(&fedlink::parts::Parts::default()).unwrap());
        assert!(name.starts_with("_my_policy__-k") && name.ends_with("-r500"), "{name}");
        for ending in ENDINGS {
            assert!(is_run_file(&format!("{name}.{ending}")), "{ending}");
        }
        let base = "bc-k1-seed3-4f0c2a9b61de-r400";
        assert!(
            is_run_file(&format!("{base}.json")) && is_run_file(&format!("proportional-fair-{base}.lock"))
        );
        for other in
            ["notes.json", "a-k1-seed3-4f0c2a9b61de-r4.txt", "a-k1-seed3-4f0c-r4.json", base, ".json"]
        {
            assert!(!is_run_file(other), "{other}");
        }
    }
}
