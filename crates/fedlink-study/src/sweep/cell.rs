//! The files of one run in the folder `cells/`: its checkpoints while it runs, its numbers when it is done.
//!
//! Files are named by what the run is, not by its number in the sweep: `bc-k1-seed3-4f0c2a9b61de-r400.json`
//! is the run of policy bc with K = 1 at seed 3 over 400 rounds, and the twelve digits are the beginning of
//! its [trajectory digest](fedlink::identity::trajectory_digest). So a sweep can grow, and its runs are found
//! again.

use super::format::StoredCell;
use super::log::LogRounds;
use super::maker::Maker;
use crate::disk::{Disk, parent, write_synced};
use crate::error::Error;
use crate::lock::{Attempt, Lock};
use crate::names::{CELLS, ENDINGS};
use fedlink::checkpoint::CheckpointError;
use fedlink::config::Config;
use fedlink::identity::{config_digest, trajectory_digest};
use fedlink::record::hexadecimal;
use fedlink::simulation::Simulation;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The files of one run.
#[derive(Clone, Debug)]
pub struct CellFiles {
    /// `cells/NAME` without an ending.
    base: PathBuf,
    config_digest: String,
}

/// The endings of what a run needs until its numbers are on the disk.
const UNTIL_DONE: [&str; 4] = ["checkpoint", "checkpoint.previous", "makers", "failed"];

/// What a run is called in `cells/`.
pub fn cell_name(config: &Config) -> String {
    format!("{}{}", family(config), config.run.rounds)
}

/// The beginning of the names of all runs that differ in nothing but the number of rounds.
fn family(config: &Config) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let policy: String = config.schedule.policy.chars().take(40).map(safe).collect();
    let digest = hexadecimal(&trajectory_digest(config));
    // No name begins with a dot or a minus.
    let policy = policy.trim_start_matches(['.', '-']);
    format!("{policy}-k{}-seed{}-{}-r", config.schedule.k, config.run.seed, &digest[..12])
}

impl CellFiles {
    /// The files of the run with this configuration; `folder` is the experiment's.
    pub fn new(folder: &Path, config: &Config) -> Self {
        let base = folder.join(CELLS).join(cell_name(config));
        Self { base, config_digest: hexadecimal(&config_digest(config)) }
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

    /// The numbers of the run when it is done.
    pub fn finished(&self) -> PathBuf {
        self.file("json")
    }

    /// The log of rounds, if there is one: that of all devices, or that of the transmissions.
    pub fn rounds(&self, which: LogRounds) -> PathBuf {
        self.file(which.ending())
    }

    /// The lock of who computes it.
    pub fn lock(&self) -> PathBuf {
        self.file("lock")
    }

    /// How far it is.
    pub fn progress(&self) -> PathBuf {
        self.file("progress")
    }

    /// Why it ended with an error.
    pub fn failed(&self) -> PathBuf {
        self.file("failed")
    }

    /// Its state at the end, if it was kept.
    pub fn state(&self) -> PathBuf {
        self.file("state")
    }

    /// Whether an earlier process has left a checkpoint.
    pub fn was_begun(&self) -> bool {
        self.file("checkpoint").exists() || self.file("checkpoint.previous").exists()
    }

    /// Keeps the numbers of a run that will do no more rounds, and removes its checkpoints; the final state
    /// too, if it is given. Returns what [`CellFiles::read`] gives from now on.
    pub fn finish(
        &self,
        disk: &dyn Disk,
        config: &Config,
        run: &StoredCell,
        state: Option<&Simulation>,
    ) -> Result<StoredCell, Error> {
        if let Some(simulation) = state {
            self.write_state(disk, "state", simulation)?;
        }
        let text = run.to_text(config)?;
        let path = self.finished();
        write_synced(disk, &path, &self.file("json.partial"), |file| file.write_all(text.as_bytes()))?;
        // Only now: the numbers are on the disk.
        UNTIL_DONE.iter().try_for_each(|ending| remove(disk, &self.file(ending)))?;
        StoredCell::from_bytes(&path, text.as_bytes())
    }

    /// The numbers of the run if it is done.
    pub fn read(&self) -> Result<Option<StoredCell>, Error> {
        let path = self.finished();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::file("read", &path)(error)),
        };
        let cell = StoredCell::from_bytes(&path, &bytes)?;
        if cell.config_digest != self.config_digest {
            return Err(Error::OtherConfig(path));
        }
        Ok(Some(cell))
    }

    /// Saves where the run stands.
    pub fn save(&self, disk: &dyn Disk, simulation: &Simulation) -> Result<(), Error> {
        let path = self.file("checkpoint");
        if path.exists() {
            let previous = self.file("checkpoint.previous");
            // The new one is whole before the last one gets its other name, and both are there if the power
            // fails.
            let partial = self.file("checkpoint.partial");
            write_to(disk, &partial, simulation)?;
            let swap = || disk.rename(&path, &previous).and_then(|()| disk.rename(&partial, &path));
            swap().and_then(|()| disk.sync_dir(&parent(&path))).map_err(Error::file("write", &path))
        } else {
            self.write_state(disk, "checkpoint", simulation)
        }
    }

    fn write_state(&self, disk: &dyn Disk, ending: &str, simulation: &Simulation) -> Result<(), Error> {
        let (path, partial) = (self.file(ending), self.file(&format!("{ending}.partial")));
        write_to(disk, &partial, simulation)?;
        let rename = || disk.rename(&partial, &path).and_then(|()| disk.sync_dir(&parent(&path)));
        rename().map_err(Error::file("write", &path))
    }

    /// Restores the run from its last good checkpoint; returns what is wrong with others.
    pub fn restore(&self, simulation: &mut Simulation) -> Vec<String> {
        let mut problems = Vec::new();
        for ending in ["checkpoint", "checkpoint.previous"] {
            let path = self.file(ending);
            let Ok(file) = File::open(&path) else { continue };
            match simulation.restore(file) {
                Ok(()) => break,
                Err(error) => problems.push(format!("{}: {error}", path.display())),
            }
        }
        problems
    }

    /// Who has made the rounds so far, as far as it is written.
    pub fn makers(&self) -> Vec<Maker> {
        let bytes = fs::read(self.file("makers")).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Notes who makes the rounds from now on.
    pub fn note_makers(&self, disk: &dyn Disk, makers: &[Maker]) -> Result<(), Error> {
        let bytes = serde_json::to_vec(makers)?;
        write_synced(disk, &self.file("makers"), &self.file("makers.partial"), |file| file.write_all(&bytes))
    }

    /// Removes what a process that was killed has left half-written. The run must be locked.
    pub fn sweep(&self, disk: &dyn Disk) -> Result<(), Error> {
        let partial = ENDINGS.iter().filter(|ending| ending.ends_with(".partial"));
        { partial }.try_for_each(|ending| remove(disk, &self.file(ending)))?;
        remove(disk, &self.progress())
    }

    /// Removes what a process has left that was killed after the numbers of the run were on the disk, unless
    /// one that lives has the run's lock: it does so itself.
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

    /// Takes over the log of rounds of another run, which this one begins with.
    pub fn copy_rounds(&self, disk: &dyn Disk, from: &Self, which: LogRounds) -> Result<(), Error> {
        let source = from.rounds(which);
        if !source.exists() {
            return Ok(());
        }
        let mut reader = File::open(&source).map_err(Error::file("read", &source))?;
        let partial = self.file(&format!("{}.partial", which.ending()));
        write_synced(disk, &self.rounds(which), &partial, |mut file| {
            io::copy(&mut reader, &mut file).map(drop)
        })
    }

    /// The finished runs in the folder that differ from this one in nothing but that they have fewer rounds,
    /// the longest first.
    pub fn shorter(&self, config: &Config) -> Vec<(Self, StoredCell)> {
        let beginning = family(config);
        let mut shorter = Vec::new();
        let Ok(entries) = fs::read_dir(parent(&self.base)) else { return shorter };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let rounds = name
                .strip_prefix(&beginning)
                .and_then(|rest| rest.strip_suffix(".json")?.parse::<u64>().ok());
            let Some(rounds) = rounds.filter(|&rounds| rounds < config.run.rounds) else { continue };
            let mut config = config.clone();
            config.run.rounds = rounds;
            let base = parent(&self.base).join(cell_name(&config));
            let files = Self { base, config_digest: hexadecimal(&config_digest(&config)) };
            // One that cannot be read serves nobody, and is left alone.
            if let Ok(Some(cell)) = files.read() {
                shorter.push((files, cell));
            }
        }
        shorter.sort_by_key(|(_, cell)| std::cmp::Reverse(cell.rounds));
        shorter
    }
}

/// Writes the state of a run, which is on the disk when this returns.
fn write_to(disk: &dyn Disk, path: &Path, simulation: &Simulation) -> Result<(), Error> {
    let write = || -> io::Result<()> {
        let mut file = disk.create(path)?;
        simulation.checkpoint(&mut file).map_err(|error| match error {
            CheckpointError::Io(error) => error,
            other => io::Error::other(other),
        })?;
        file.sync()
    };
    write().map_err(|error| {
        let _ = disk.remove(path);
        Error::file("write", path)(error)
    })
}

/// Removes a file that may not be there.
fn remove(disk: &dyn Disk, path: &Path) -> Result<(), Error> {
    if !path.exists() {
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
    use crate::names::is_cell_file;

    #[test]
    fn a_file_is_known_by_its_name_and_a_name_is_safe() {
        let mut config = Config::default();
        config.schedule.policy = "../my policy:é".into();
        let name = cell_name(&config);
        assert!(name.starts_with("_my_policy__-k") && name.ends_with("-r500"), "{name}");
        for ending in ENDINGS {
            assert!(is_cell_file(&format!("{name}.{ending}")), "{ending}");
        }
        let base = "bc-k1-seed3-4f0c2a9b61de-r400";
        assert!(
            is_cell_file(&format!("{base}.json")) && is_cell_file(&format!("proportional-fair-{base}.lock"))
        );
        for other in
            ["notes.json", "a-k1-seed3-4f0c2a9b61de-r4.txt", "a-k1-seed3-4f0c-r4.json", base, ".json"]
        {
            assert!(!is_cell_file(other), "{other}");
        }
    }
}
