//! The library's errors as Python's exceptions.

use fedlink::data::DataError;
use fedlink_study::Error;
use pyo3::exceptions::{PyArithmeticError, PyFileNotFoundError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    fedlink,
    DivergedError,
    PyArithmeticError,
    "Training led to numbers that are not finite: lower `learn.rate`."
);

/// The exception for an error in writing results.
pub fn report_exception(error: fedlink_report::Error) -> PyErr {
    match error {
        fedlink_report::Error::Study(error) => exception(error),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

/// The exception for an error of the library.
pub fn exception(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    let remedy = match error.data() {
        _ if matches!(error, Error::NotDeterministic(_)) => {
            "; take random numbers from view.rng() or the argument rng, keep nothing outside the object, or \
             give nondeterministic=True to run all the same"
                .to_owned()
        }
        Some(DataError::Missing { name, .. }) => {
            format!("; run `fedlink data get {name}`, or name the folder of its files as data.dataset")
        }
        Some(DataError::Mismatch { name, .. }) => format!("; `fedlink data get {name}` fetches the real one"),
        _ => String::new(),
    };
    let message = format!("{error}{remedy}");
    match error {
        Error::System(fedlink::Error::Diverged { .. }) => DivergedError::new_err(message),
        Error::Data(DataError::Missing { .. }) | Error::Dataset(DataError::Missing { .. }) => {
            PyFileNotFoundError::new_err(message)
        }
        Error::Data(DataError::Unreadable { .. }) | Error::Dataset(DataError::Unreadable { .. }) => {
            PyOSError::new_err(message)
        }
        // Calls in the wrong order are the program's mistake, not a wrong value.
        Error::System(fedlink::Error::Order(_) | fedlink::Error::Failed { .. }) => {
            PyRuntimeError::new_err(message)
        }
        Error::File { problem, .. } if problem.kind() == std::io::ErrorKind::NotFound => {
            PyFileNotFoundError::new_err(message)
        }
        Error::File { .. } => PyOSError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}
