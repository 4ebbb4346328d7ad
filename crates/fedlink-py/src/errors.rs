//! The library's errors as Python's exceptions.

use fedlink::data::DataError;
use fedlink_study::Error;
use pyo3::exceptions::{PyArithmeticError, PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    fedlink,
    DivergedError,
    PyArithmeticError,
    "Training led to numbers that are not finite: lower `learn.rate`."
);

/// The exception for an error of the library.
pub fn exception(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    let message = error.to_string();
    match error {
        Error::System(fedlink::Error::Diverged { .. }) => DivergedError::new_err(message),
        Error::Data(DataError::Missing { .. }) => PyFileNotFoundError::new_err(message),
        Error::Data(DataError::Unreadable { .. }) => PyOSError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}
