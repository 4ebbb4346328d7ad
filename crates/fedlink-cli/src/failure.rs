//! How the program ends.

use std::process::ExitCode;

/// The ways to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All done.
    Done,
    /// The request cannot be met as given.
    BadRequest,
    /// A curve's training diverged; the others are there.
    Diverged,
    /// Stopped by Ctrl-C; what was finished is saved.
    Interrupted,
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::BadRequest => 2,
            Self::Diverged => 3,
            Self::Interrupted => 130,
        })
    }
}
