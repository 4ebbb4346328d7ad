//! The errors of a study. They state facts; front ends add the remedy.

use fedlink::data::DataError;
use fedlink::spec::ConfigError;
use fedlink_theory::TheoryError;
use std::io;
use std::path::{Path, PathBuf};

/// Any failure of a study.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An experiment or a configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A data set could not be loaded.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The data set of an experiment could not be loaded.
    #[error("data.dataset: {0}")]
    Dataset(DataError),
    /// The parameters of the convergence bound are invalid.
    #[error(transparent)]
    Theory(#[from] TheoryError),
    /// The system failed.
    #[error(transparent)]
    System(fedlink::Error),
    /// The operating system refused a file or a folder.
    #[error("cannot {action} {path}: {problem}", path = path.display())]
    File {
        /// The action: "read", "write", …
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        problem: io::Error,
    },
    /// A name is neither that of a preset nor that of a file.
    #[error(
        "{name} is neither a preset ({presets}) nor a file{}",
        nearest.map_or_else(String::new, |near| format!("; did you mean {near}?"))
    )]
    UnknownExperiment {
        /// The name.
        name: String,
        /// The names of all presets.
        presets: String,
        /// The preset with the nearest name.
        nearest: Option<&'static str>,
    },
    /// An experiment is about the bound, but one that runs the system is required.
    #[error("{path} is about the bound; name an experiment that runs the system", path = .0.display())]
    NotASimulation(PathBuf),
    /// Of two experiments one runs the system and the other is about the bound.
    #[error(
        "{name} is an experiment of another kind than {path}; name claims of its kind",
        path = path.display()
    )]
    OtherKind {
        /// The file of the claims.
        name: String,
        /// The folder of the results.
        path: PathBuf,
    },
    /// A table of the bound differs from the one that its configuration gives.
    #[error("{path}: {what}; it was changed, or written by another version", path = path.display())]
    NotReproduced {
        /// The table.
        path: PathBuf,
        /// The first difference.
        what: String,
    },
    /// The folder for results exists already.
    #[error("{path} exists already", path = .0.display())]
    Exists(PathBuf),
    /// The folder for results is a file, or a path without a last name.
    #[error("{path} is {what}, not a folder", path = path.display())]
    NotAFolder {
        /// The path for the results.
        path: PathBuf,
        /// Its kind.
        what: &'static str,
    },
    /// The folder to be replaced holds files that fedlink did not write.
    #[error("{path} holds files that fedlink did not write: {}", named(others), path = path.display())]
    NotOurs {
        /// The folder.
        path: PathBuf,
        /// The files.
        others: Vec<String>,
    },
    /// A process is writing to the folder that is to be replaced.
    #[error("{path} is being written to by another process, which holds {lock}", path = path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
        /// The lock that is held.
        lock: String,
    },
    /// Runs were made with other data than those found here.
    #[error("{path} was made with other data than those found here: {differences}", path = path.display())]
    OtherData {
        /// The folder or the run.
        path: PathBuf,
        /// The differences.
        differences: String,
    },
    /// Runs were begun, but `data.json` is missing or damaged.
    #[error(
        "{path} has begun runs and no readable data.json, which names the data of their checkpoints",
        path = .0.display()
    )]
    UnknownData(PathBuf),
    /// A run that was made again or made longer differs from the stored one.
    #[error("{run} is not repeated: its {rounds} rounds have the digest {stored}, but now {repeated}")]
    NotRepeated {
        /// The run.
        run: String,
        /// The number of rounds that were compared.
        rounds: u64,
        /// The stored digest, and the processes behind it.
        stored: String,
        /// The new digest, and the processes behind it.
        repeated: String,
    },
    /// No experiment was run in the folder.
    #[error("{path} has no config.toml", path = .0.display())]
    NoExperiment(PathBuf),
    /// The folder holds other files.
    #[error("{path} holds other files and no config.toml; choose another folder", path = .0.display())]
    OtherFiles(PathBuf),
    /// The folder belongs to another experiment.
    #[error(
        "{path} was begun with another configuration; it differs in {differences}; choose another folder or \
         the same settings",
        path = path.display()
    )]
    OtherExperiment {
        /// The folder.
        path: PathBuf,
        /// The keys that differ, with both values.
        differences: String,
    },
    /// The folder was begun with another text of a custom part, or with other arguments of it.
    #[error(
        "{path} was begun with another \"{part}\": {difference}; choose another folder, or give the changed \
         part another name",
        path = path.display()
    )]
    OtherPart {
        /// The folder.
        path: PathBuf,
        /// The name of the part.
        part: String,
        /// The lines that differ.
        difference: String,
    },
    /// A run with custom parts was not the same when it was made twice.
    #[error("{0}")]
    NotDeterministic(String),
    /// The file of a run was changed after it was written.
    #[error("{path} is damaged", path = .0.display())]
    Damaged(PathBuf),
    /// The numbers of a run were written by another version.
    #[error("{path} was written by another version", path = .0.display())]
    OtherVersion(PathBuf),
    /// The numbers of a run are those of another configuration.
    #[error("{path} belongs to a run with another configuration", path = .0.display())]
    OtherConfig(PathBuf),
    /// A run has no log of its rounds.
    #[error("cannot read {path}: the run was made without a log of its rounds", path = .0.display())]
    NoRoundLog(PathBuf),
    /// The log of a run was changed, or is that of another run.
    #[error("{path} is not the log of its run: {problem}", path = path.display())]
    RoundLog {
        /// The log.
        path: PathBuf,
        /// The difference.
        problem: String,
    },
    /// The folder of an experiment was removed or replaced while its runs were computed.
    #[error("{path} was removed or replaced while its runs were computed", path = .0.display())]
    FolderChanged(PathBuf),
    /// Runs of an experiment are not in its folder.
    #[error(
        "{} of {of} runs are missing in {path}: {}",
        missing.len(),
        named(missing),
        path = path.display()
    )]
    MissingRuns {
        /// The folder.
        path: PathBuf,
        /// The labels of the missing runs.
        missing: Vec<String>,
        /// The number of runs of the experiment.
        of: usize,
    },
    /// The experiment has no claims.
    #[error("{path} claims nothing", path = .0.display())]
    ClaimsNothing(PathBuf),
    /// A share of a sweep is not written as `I/N`.
    #[error("write I/N with I from 1 to N, for example 3/10 for the third of ten shares")]
    Share,
    /// Results could not be written to a table or read from one.
    #[error("{0}")]
    Table(String),
}

impl Error {
    /// The error of the operating system at `action` with `path`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |problem| Self::File { action, path, problem }
    }

    /// Whether the machine is at fault and not the request: a full disk, or a folder that is gone or cannot
    /// be written to.
    pub fn is_machines_fault(&self) -> bool {
        use io::ErrorKind::{
            InvalidData, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound,
            PermissionDenied,
        };
        let Self::File { action, problem, .. } = self else {
            return matches!(self, Self::FolderChanged(_));
        };
        match problem.kind() {
            InvalidData | InvalidInput | InvalidFilename | IsADirectory | NotADirectory => false,
            // The user named the file that cannot be read.
            NotFound | PermissionDenied => *action != "read",
            _ => true,
        }
    }

    /// The error of a data set, if it is one.
    pub fn data(&self) -> Option<&DataError> {
        match self {
            Self::Data(error) | Self::Dataset(error) => Some(error),
            _ => None,
        }
    }
}

impl From<fedlink::Error> for Error {
    fn from(error: fedlink::Error) -> Self {
        match error {
            fedlink::Error::Config(error) => Self::Config(error),
            fedlink::Error::Data(error) => Self::Data(error),
            other => Self::System(other),
        }
    }
}

impl From<csv::Error> for Error {
    fn from(error: csv::Error) -> Self {
        Self::Table(error.to_string())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Table(error.to_string())
    }
}

/// The first few of a list of labels.
fn named(labels: &[String]) -> String {
    const NAMED: usize = 5;
    let more = if labels.len() > NAMED { ", …" } else { "" };
    format!("{}{more}", labels[..labels.len().min(NAMED)].join(", "))
}
