//! What can go wrong.

use crate::checkpoint::CheckpointError;
use crate::compress::wire::WireError;
use crate::config::ConfigError;
use crate::data::DataError;

/// Any failure of the library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration asks for something impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data set could not be had.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A run could not be taken up again.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A device's update was no longer a finite number.
    #[error(
        "training diverged in round {round}: the update of device {device} is not finite; lower learn.rate"
    )]
    Diverged {
        /// The round, counted from 1.
        round: u64,
        /// The first device (by index) with such an update.
        device: u32,
    },
    /// A device could not write its update to the wire.
    #[error("device {device} cannot encode its update in round {round}: {problem}")]
    Wire {
        /// The round, counted from 1.
        round: u64,
        /// The device.
        device: u32,
        /// Why.
        problem: WireError,
    },
    /// A policy broke the rules of [`crate::schedule::Policy`].
    #[error("the scheduling policy broke its contract in round {round}: {problem}")]
    Policy {
        /// The round, counted from 1.
        round: u64,
        /// What it did.
        problem: String,
    },
}
