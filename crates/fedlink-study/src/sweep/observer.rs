//! What happens during runs, for who wants to watch: progress bars, logs, live pages.

use super::progress::Progress;
use crate::error::Error;
use crate::results::RunResult;
use fedlink::record::RoundRecord;
use std::fmt;
use std::path::PathBuf;

/// Something that happened to one run of a sweep. `run` is its index in [`Plan::cells`](super::Plan::cells).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The run begins, or resumes after the rounds that an earlier process has done.
    Begun {
        /// Which run.
        run: usize,
        /// Rounds that were done before.
        rounds_done: u64,
    },
    /// A round is done.
    Round {
        /// Which run.
        run: usize,
        /// What was trained and sent in it.
        record: &'a RoundRecord,
    },
    /// The model was evaluated on the test set after a round; follows the [`Event::Round`] of that round.
    Evaluated {
        /// Which run.
        run: usize,
        /// After which round, counted from 1.
        round: u64,
        /// Test accuracy, as a share.
        accuracy: f64,
    },
    /// The state of the run is on the disk.
    Checkpointed {
        /// Which run.
        run: usize,
        /// After which round, counted from 1.
        round: u64,
    },
    /// Another process computes the run, and there is nothing else to do; told again and again while that is
    /// so.
    Waiting {
        /// Which run.
        run: usize,
        /// What tells it from the others.
        label: &'a str,
        /// Who computes it, and how far it is, if that is known.
        progress: Option<&'a Progress>,
    },
    /// Something was wrong with what an earlier process has left, and the run continues without it.
    Warned {
        /// Which run.
        run: usize,
        /// What was wrong.
        warning: &'a Warning,
    },
    /// The run will do no more rounds in this process: it is finished, has diverged or was stopped.
    Finished {
        /// Which run.
        run: usize,
        /// Its numbers.
        result: &'a RunResult,
    },
    /// The run cannot continue, and with it the sweep ends.
    Failed {
        /// Which run.
        run: usize,
        /// Why.
        error: &'a Error,
    },
}

/// What was wrong with the files of an earlier process.
#[derive(Debug)]
#[non_exhaustive]
pub enum Warning {
    /// The numbers of a finished run cannot be used: the run is repeated.
    Repeated(Error),
    /// Checkpoints cannot be used: the run resumes from an earlier one or starts over.
    BadCheckpoints {
        /// The run.
        label: String,
        /// What is wrong with each.
        problems: Vec<String>,
        /// From which round the run continues.
        rounds_done: u64,
    },
    /// The file system of this folder has no locks, so that processes that share it may do the same runs.
    NoLocks(PathBuf),
    /// The log of rounds lacks transmissions: the run starts over.
    LogGaps {
        /// The run.
        label: String,
    },
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
            Self::LogGaps { label } => write!(f, "{label}: its log of rounds has gaps; starting over"),
        }
    }
}

/// Receives every [`Event`], from several threads at once.
pub trait Observer: Sync {
    /// Takes notice of an event. Runs wait until it returns.
    fn observe(&self, event: Event<'_>);
}

/// Nobody watches.
impl Observer for () {
    fn observe(&self, _: Event<'_>) {}
}
