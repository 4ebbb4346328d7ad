//! Errors of data sets: the file, the position in it, the problem, and the remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why a data set could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system refused to read the file.
    #[error("cannot read {path}: {source}; give the path of a file that you may read", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file was read, but its content is malformed.
    #[error("{path}: {flaw}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The problem and its position.
        flaw: Flaw,
    },
    /// The data under the name of a known data set differ from it.
    #[error("{path}: {flaw}", path = path.display())]
    Mismatch {
        /// The known data set.
        name: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The difference.
        flaw: Box<Flaw>,
    },
    /// A known data set is in none of the folders searched.
    #[error(
        "data set \"{name}\": {missing} is in none of the folders looked in ({folders})",
        folders = list(looked_in)
    )]
    Missing {
        /// The data set.
        name: String,
        /// The first file that was not found.
        missing: String,
        /// Every searched folder.
        looked_in: Vec<PathBuf>,
    },
    /// Neither the name of a data set nor a path that exists.
    #[error(
        "\"{name}\" is neither a known data set nor a path that exists{}; known are {known}, and your own \
         data is a .npz file or a folder, its path absolute or from the folder where this runs",
        nearest.map_or_else(String::new, |near| format!(" (did you mean \"{near}\"?)"))
    )]
    Unknown {
        /// The requested name.
        name: String,
        /// The known name nearest to it, if one is near.
        nearest: Option<&'static str>,
        /// All known names.
        known: String,
    },
}

/// A problem inside a file: its position, a description, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{position}{what}; {fix}")]
#[non_exhaustive]
pub struct Flaw {
    /// Its position.
    pub position: Position,
    /// The content found and the content expected.
    pub what: String,
    /// The remedy.
    pub fix: String,
}

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Position {
    /// The file as a whole.
    Whole,
    /// A byte offset, counted from 0 in the uncompressed content.
    Byte(u64),
    /// An array of an `.npz` archive, and a byte offset in its `.npy` file.
    Array(String, u64),
    /// A line and a column (a field), both counted from 1.
    Line(usize, usize),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Whole => Ok(()),
            Position::Byte(offset) => write!(f, "byte {offset}: "),
            Position::Array(name, offset) => write!(f, "array {name}, byte {offset}: "),
            Position::Line(line, column) => write!(f, "line {line}, column {column}: "),
        }
    }
}

impl Flaw {
    /// A flaw at `position`.
    pub(super) fn new(position: Position, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Flaw { position, what: what.into(), fix: fix.into() }
    }

    /// The flaw as the error of the file at `path`.
    pub(super) fn in_file(self, path: &Path) -> DataError {
        DataError::Malformed { path: path.to_owned(), flaw: self }
    }

    /// The flaw as the difference between `path` and the known data set `name`.
    pub(super) fn unlike(self, name: &'static str, path: &Path) -> DataError {
        DataError::Mismatch { name, path: path.to_owned(), flaw: Box::new(self) }
    }
}

fn list(folders: &[PathBuf]) -> String {
    if folders.is_empty() {
        return "none were given".into();
    }
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}
