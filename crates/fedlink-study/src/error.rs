//! What can go wrong in a study. Errors say what is the case; front ends add what to type instead.

use fedlink::config::ConfigError;
use fedlink::data::DataError;
use fedlink_theory::TheoryError;

/// Any failure of a study.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An experiment or a configuration asks for something impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A data set could not be loaded.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The convergence bound was asked something that it does not cover.
    #[error(transparent)]
    Theory(#[from] TheoryError),
    /// The system failed.
    #[error(transparent)]
    System(fedlink::Error),
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
