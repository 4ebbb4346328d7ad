//! How the program ends.

use crate::streams::OutputError;
use fedlink_study::results::{CurveResult, Status};
use std::io;

/// What the machine could not do, though the request was fine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct MachineFault(pub String);

/// Whether a disk is full, or cannot be written to any more.
pub fn is_disk_fault(error: &anyhow::Error) -> bool {
    use io::ErrorKind::{
        FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StaleNetworkFileHandle, StorageFull,
    };
    let of_disk = |error: &io::Error| {
        let kinds = [FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StaleNetworkFileHandle, StorageFull];
        kinds.contains(&error.kind())
    };
    error.chain().any(|cause| cause.is::<MachineFault>() || cause.downcast_ref().is_some_and(of_disk))
}

/// The ways to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything that was asked for is there.
    Done,
    /// The machine could not do it: a full disk, a folder that cannot be written to. The request was fine.
    MachineFault,
    /// The request cannot be met as given.
    BadRequest,
    /// A curve's training diverged; the others are there.
    Diverged,
    /// Stopped by Ctrl-C; what was finished is saved.
    Interrupted,
}

impl Exit {
    /// How the program should end with this error.
    pub fn of(error: &anyhow::Error) -> Self {
        let study = error.chain().find_map(crate::remedy::study_error);
        let unwritten = error.chain().any(<dyn std::error::Error>::is::<OutputError>);
        let fault =
            unwritten || is_disk_fault(error) || study.is_some_and(fedlink_study::Error::is_machines_fault);
        if fault { Self::MachineFault } else { Self::BadRequest }
    }

    /// How the program should end after these results; `stopped` if it was asked to.
    pub fn after(results: &[CurveResult], stopped: bool) -> Self {
        let any = |wanted: fn(&Status) -> bool| {
            results.iter().flat_map(|curve| &curve.runs).any(|run| wanted(&run.status))
        };
        if stopped || any(|status| *status == Status::Interrupted) {
            Self::Interrupted
        } else if any(|status| matches!(status, Status::Diverged(_))) {
            Self::Diverged
        } else {
            Self::Done
        }
    }

    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::MachineFault => 1,
            Self::BadRequest => 2,
            Self::Diverged => 3,
            Self::Interrupted => 130,
        }
    }
}
