//! The exit codes of the program.

use crate::streams::OutputError;
use fedlink_study::results::{CurveResult, Status};
use std::io;

/// A failure of the machine at a valid request.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct MachineFault(pub String);

/// Whether a disk is full or can no longer be written to.
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
    /// The request is done.
    Done,
    /// A system or I/O error: a full disk, a folder that cannot be written to.
    MachineFault,
    /// The request cannot be met as given.
    BadRequest,
    /// A curve's training diverged; the others are there.
    Diverged,
    /// Stopped by Ctrl-C; finished work is saved.
    Interrupted,
}

impl Exit {
    /// The exit with this error.
    pub fn of(error: &anyhow::Error) -> Self {
        let study = error.chain().find_map(crate::remedy::study_error);
        let unwritten = error.chain().any(<dyn std::error::Error>::is::<OutputError>);
        let fault =
            unwritten || is_disk_fault(error) || study.is_some_and(fedlink_study::Error::is_machines_fault);
        if fault { Self::MachineFault } else { Self::BadRequest }
    }

    /// The exit after these results; `stopped` after Ctrl-C.
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
