//! The errors of the library.

use crate::base::state::CheckpointError;
use crate::compress::wire::WireError;
use crate::data::DataError;
use crate::learn::task::TaskError;
use crate::parts::ConfigError;
use std::borrow::Cow;

/// Any failure of the library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data set could not be loaded.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A run could not be saved or resumed.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A device's update was no longer a finite number.
    #[error("training diverged in round {round}: the update of device {device} is not finite; {remedy}")]
    Diverged {
        /// The round, counted from 1.
        round: u64,
        /// The first device (by index) with such an update.
        device: u32,
        /// The change of the configuration that most likely helps.
        remedy: String,
    },
    /// A device could not write its update to the wire.
    #[error("device {device} cannot encode its update in round {round}: {problem}")]
    Wire {
        /// The round, counted from 1.
        round: u64,
        /// Its number, counted from 0.
        device: u32,
        /// Why.
        problem: WireError,
    },
    /// A custom fading law failed.
    #[error("the fading law failed in round {round}: {problem}")]
    Fading {
        /// The round, counted from 1.
        round: u64,
        /// Why.
        problem: String,
    },
    /// A fading law or a measurement gave a link that cannot be.
    #[error(
        "device {device} has no valid link in round {round}: {problem}, but must be finite and at least 0"
    )]
    Link {
        /// The round, counted from 1.
        round: u64,
        /// Its number, counted from 0.
        device: u32,
        /// The contradiction or the invalid value.
        problem: String,
    },
    /// A report is not a finite number.
    #[error("device {device} reported {value} in round {round}; a report must be a finite number")]
    Report {
        /// The round, counted from 1.
        round: u64,
        /// The device.
        device: u32,
        /// The reported value.
        value: f32,
    },
    /// A policy broke the rules of [`crate::schedule::Policy`].
    #[error("policy {name} broke its contract in round {round}: {problem}")]
    Policy {
        /// The name of the policy in the configuration.
        name: String,
        /// The round, counted from 1.
        round: u64,
        /// The rule that the policy broke.
        problem: String,
    },
    /// A custom compressor broke the rules of [`crate::compress::Compressor`].
    #[error("compressor {name} broke its contract in round {round}, device {device}: {problem}")]
    Compressor {
        /// The name of the compressor in the configuration.
        name: String,
        /// The round, counted from 1.
        round: u64,
        /// Its number, counted from 0.
        device: u32,
        /// The rule that the compressor broke.
        problem: String,
    },
    /// A task could not train or evaluate.
    #[error("the task failed in round {round}, device {device}: {problem}")]
    Task {
        /// The round, counted from 1.
        round: u64,
        /// Its number, counted from 0.
        device: u32,
        /// Why.
        problem: TaskError,
    },
    /// A model could not be evaluated.
    #[error("the task cannot evaluate the model: {0}")]
    Evaluation(TaskError),
    /// A call of a server or of a device came in the wrong order, or does not fit the calls before it.
    #[error("{0}")]
    Order(Cow<'static, str>),
    /// A run that failed before cannot continue.
    #[error("this run failed in round {round} and cannot continue; restore a checkpoint, or start it again")]
    Failed {
        /// The round, counted from 1.
        round: u64,
    },
}

impl Error {
    /// The error of a call that comes in the wrong order.
    pub(crate) fn order(problem: &'static str) -> Self {
        Self::Order(problem.into())
    }
}
