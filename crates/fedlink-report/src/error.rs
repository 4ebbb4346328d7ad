//! Errors of the presentation of results.

use crate::figure::FigureError;

/// The reasons why results could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The numbers or their files.
    #[error(transparent)]
    Study(#[from] fedlink_study::Error),
    /// A figure.
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// A table.
    #[error("{0}")]
    Table(String),
}

macro_rules! tables {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Error {
            fn from(error: $kind) -> Self {
                Self::Table(error.to_string())
            }
        }
    )*};
}
tables!(
    csv::Error,
    csv::IntoInnerError<csv::Writer<Vec<u8>>>,
    serde_json::Error,
    parquet::errors::ParquetError,
    std::num::ParseFloatError,
    std::num::ParseIntError
);
