//! Commands in the background of others.

use crate::step;
use anyhow::{Context, bail};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A command in the background that writes to a file. Dropping this value ends it.
pub struct Background {
    name: &'static str,
    log: PathBuf,
    child: Child,
}

impl Background {
    pub fn start(name: &'static str, command: &mut Command, log: PathBuf) -> anyhow::Result<Self> {
        step(&format!("{name}, in the background"));
        log.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self { name, log, child })
    }

    /// Waits for its end and shows its output; its failure is an error.
    pub fn finish(mut self) -> anyhow::Result<()> {
        let status = self.child.wait()?;
        step(self.name);
        eprint!("{}", String::from_utf8_lossy(&std::fs::read(&self.log)?));
        if !status.success() {
            bail!("{} failed: {status}", self.name);
        }
        Ok(())
    }
}

impl Drop for Background {
    /// Sends a termination signal, so that the command can end its own children.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = Command::new("kill").arg(self.child.id().to_string()).status();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn shell(folder: &TempDir, script: &str) -> Background {
        let log = folder.path().join("log");
        Background::start("a script", Command::new("sh").args(["-c", script]), log).unwrap()
    }

    #[test]
    fn a_failure_in_the_background_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(shell(&folder, "true").finish().is_ok());
        assert!(shell(&folder, "false").finish().is_err());
    }

    #[test]
    fn a_dropped_command_is_terminated_and_may_clean_up() {
        let script = "trap 'echo cleaned up; exit 1' TERM; echo ready; while true; do sleep 0.1; done";
        let folder = tempfile::tempdir().unwrap();
        let background = shell(&folder, script);
        let log = background.log.clone();
        while !std::fs::read_to_string(&log).unwrap().contains("ready") {}
        drop(background);
        assert!(std::fs::read_to_string(&log).unwrap().contains("cleaned up"));
    }
}
