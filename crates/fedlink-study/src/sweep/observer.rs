//! The events of runs, for progress bars, logs and live pages.

use super::progress::Progress;
use crate::error::Error;
use crate::tables::results::RunResult;
use fedlink::record::{RoundRecord, Row};
use std::fmt;
use std::path::PathBuf;

/// An event of one run of a sweep. `run` is its index in [`Sweep::runs`](crate::experiment::Sweep::runs).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The run begins, or resumes after the rounds that an earlier process has done.
    Begun {
        /// The run.
        run: usize,
        /// Rounds that were done before.
        rounds_done: u64,
    },
    /// A round is done.
    Round {
        /// The run.
        run: usize,
        /// The record of the round.
        record: &'a RoundRecord,
    },
    /// The model was evaluated on the test set after a round; follows the [`Event::Round`] of that round.
    Evaluated {
        /// The run.
        run: usize,
        /// The round, counted from 1.
        round: u64,
        /// Test accuracy, as a share.
        accuracy: f64,
        /// The row of the evaluation.
        row: &'a Row,
    },
    /// The state of the run is on the disk.
    Checkpointed {
        /// The run.
        run: usize,
        /// The round, counted from 1.
        round: u64,
    },
    /// Another process computes the run, and no other run is left; repeated while that is the case.
    Waiting {
        /// The run.
        run: usize,
        /// Its label in the sweep.
        label: &'a str,
        /// The process that computes it and its progress, if that is known.
        progress: Option<&'a Progress>,
    },
    /// A file of an earlier process cannot be used, and the run continues without it.
    Warned {
        /// The run.
        run: usize,
        /// The problem.
        warning: &'a Warning,
    },
    /// The run does no more rounds in this process: it is finished, has diverged or was stopped.
    Finished {
        /// The run.
        run: usize,
        /// Its numbers.
        result: &'a RunResult,
    },
    /// The run cannot continue, which ends the sweep.
    Failed {
        /// The run.
        run: usize,
        /// The error.
        error: &'a Error,
    },
}

/// A problem with the files of an earlier process.
#[derive(Debug)]
#[non_exhaustive]
pub enum Warning {
    /// The numbers of a finished run cannot be used: the run is repeated.
    Repeated(Error),
    /// Checkpoints cannot be used: the run resumes from an earlier one or starts over.
    BadCheckpoints {
        /// The run.
        label: String,
        /// The problem of each.
        problems: Vec<String>,
        /// The round from which the run continues.
        rounds_done: u64,
    },
    /// The file system of this folder has no locks: processes that share it may do the same runs.
    NoLocks(PathBuf),
    /// The log of rounds lacks transmissions or was changed: the run starts over.
    LogGaps {
        /// The run.
        label: String,
    },
    /// Events could not be logged; the runs do not depend on them.
    NoEvents(Error),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Repeated(error) => write!(f, "{error}; the run is repeated"),
            Self::BadCheckpoints { label, problems, rounds_done } => {
                write!(f, "{label}: {}; continuing from round {rounds_done}", problems.join("; "))
            }
            Self::NoLocks(folder) => {
                let folder = folder.display();
                write!(
                    f,
                    "{folder}: its file system has no locks; processes that share it may do the same runs"
                )
            }
            Self::NoEvents(error) => {
                write!(
                    f,
                    "{error}; `fedlink watch` and the time left of `fedlink status` lack the later events"
                )
            }
            Self::LogGaps { label } => {
                write!(f, "{label}: its log of rounds has gaps or was changed; starting over")
            }
        }
    }
}

/// Receives every [`Event`], from several threads at once.
pub trait Observer: Sync {
    /// Receives an event. The run waits until it returns.
    fn observe(&self, event: Event<'_>);
}

/// An observer that ignores all events.
impl Observer for () {
    fn observe(&self, _: Event<'_>) {}
}
