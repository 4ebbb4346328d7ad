//! Numbers and names as arguments, checked by name.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde::Deserialize;
use serde::de::value::{Error as NameError, StrDeserializer};
use std::ops::RangeInclusive;

/// Entries of an update are numbered by 32 bits.
pub const MAX_DIM: u64 = (1 << 31) - 1;

/// Whole numbers up to 2⁵³ are exact as floats.
pub const MAX_EXACT: u64 = 1 << 53;

/// A whole number in `range`.
pub fn whole(name: &str, value: &Bound<'_, PyAny>, range: RangeInclusive<u64>) -> PyResult<u64> {
    let outside = || {
        let text = value.str().map_or_else(|_| "too large".to_owned(), |text| text.to_string());
        let shown: String = text.chars().take(40).collect();
        PyValueError::new_err(format!(
            "{name}: must be in {}..={}, but is {shown}",
            range.start(),
            range.end()
        ))
    };
    match value.extract::<i64>() {
        Ok(number) => u64::try_from(number).ok().filter(|number| range.contains(number)).ok_or_else(outside),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Err(outside()),
        Err(_) => {
            let kind = value.get_type().name()?;
            Err(PyTypeError::new_err(format!("{name}: must be a whole number, but is of type {kind}")))
        }
    }
}

/// A number as a float; one that is too large for it is a `ValueError` like any other.
pub fn number(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract::<f64>().map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            return PyValueError::new_err("a number is too large for a float");
        }
        error
    })
}

/// A finite number for which `ok` holds; `allowed` is the range in words.
pub fn real(name: &str, value: f64, ok: impl Fn(f64) -> bool, allowed: &str) -> PyResult<f64> {
    if value.is_finite() && ok(value) {
        return Ok(value);
    }
    Err(PyValueError::new_err(format!("{name}: must be {allowed}, but is {value}")))
}

/// One of the names that a configuration accepts.
pub fn named<'de, T: Deserialize<'de>>(argument: &str, name: &'de str) -> PyResult<T> {
    T::deserialize(StrDeserializer::<NameError>::new(name))
        .map_err(|error| PyValueError::new_err(format!("{argument}: {error}")))
}

/// A TOML value as Python has it.
pub fn to_python<'py>(py: Python<'py>, value: &toml::Value) -> PyResult<Bound<'py, PyAny>> {
    use toml::Value;
    Ok(match value {
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Integer(whole) => whole.into_pyobject(py)?.into_any(),
        Value::Float(number) => number.into_pyobject(py)?.into_any(),
        Value::Boolean(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
        Value::Datetime(time) => time.to_string().into_pyobject(py)?.into_any(),
        Value::Array(values) => {
            let values = values.iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, values)?.into_any()
        }
        Value::Table(table) => {
            let dictionary = PyDict::new(py);
            for (key, value) in table {
                dictionary.set_item(key, to_python(py, value)?)?;
            }
            dictionary.into_any()
        }
    })
}
