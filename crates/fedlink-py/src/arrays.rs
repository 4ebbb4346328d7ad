//! NumPy arrays in and out.

use crate::arguments::MAX_DIM;
use numpy::{
    Element, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The entries of a one-dimensional array of exactly this type, all finite.
pub fn float32s(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    let array = one_dimension(name, value)?;
    let Ok(array) = array.cast::<PyArray1<f32>>() else {
        let kind = array.dtype().str()?;
        return Err(PyTypeError::new_err(format!(
            "{name}: must be an array of float32, but is of {kind}; write {name}.astype(numpy.float32)"
        )));
    };
    let values = array.try_readonly().map_err(|error| busy(name, &error))?.as_array().to_vec();
    finite(name, &values)?;
    if values.len() as u64 > MAX_DIM {
        let problem = format!("{name}: has {} entries, but at most {MAX_DIM} can be handled", values.len());
        return Err(PyValueError::new_err(problem));
    }
    Ok(values)
}

/// The entries of a one-dimensional array of real numbers, all finite.
pub fn reals(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let values = cast::<f64>(name, value, b"fiu", "real numbers", "float64")?;
    finite(name, &values)?;
    Ok(values)
}

/// As [`reals`], each at least 0.
pub fn not_negative(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let values = reals(name, value)?;
    match values.iter().position(|value| *value < 0.0) {
        Some(i) => Err(entry(name, i, &values[i].to_string(), "at least 0")),
        None => Ok(values),
    }
}

/// The entries of a one-dimensional array of whole numbers below 2³² (devices, indices).
pub fn indices(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let values = cast::<i64>(name, value, b"iu", "whole numbers", "int64")?;
    let index = |(i, &value): (usize, &i64)| {
        u32::try_from(value).map_err(|_| entry(name, i, &value.to_string(), "at least 0 and below 2**32"))
    };
    values.iter().enumerate().map(index).collect()
}

/// An array of devices or indices, fit to index other arrays with.
pub fn numbers(py: Python<'_>, values: impl IntoIterator<Item = u32>) -> Bound<'_, PyArray1<i64>> {
    PyArray1::from_vec(py, values.into_iter().map(i64::from).collect())
}

fn cast<T: Element + Copy>(
    name: &str,
    value: &Bound<'_, PyAny>,
    kinds: &[u8],
    what: &str,
    kind: &str,
) -> PyResult<Vec<T>> {
    let array = one_dimension(name, value)?;
    // An empty list has no type of its own.
    if array.len() == 0 {
        return Ok(Vec::new());
    }
    if !kinds.contains(&array.dtype().kind()) {
        let dtype = array.dtype().str()?;
        return Err(PyTypeError::new_err(format!("{name}: must be an array of {what}, but is of {dtype}")));
    }
    let array = array.call_method1("astype", (kind,))?;
    let array = array.cast::<PyArray1<T>>()?;
    Ok(array.try_readonly().map_err(|error| busy(name, &error))?.as_array().to_vec())
}

fn one_dimension<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let py = value.py();
    let array = if let Ok(array) = value.cast::<PyUntypedArray>() {
        array.clone()
    } else {
        let made = py.import("numpy")?.call_method1("asarray", (value,)).map_err(|error| {
            PyTypeError::new_err(format!("{name}: cannot be read as an array: {}", error.value(py)))
        })?;
        made.cast_into::<PyUntypedArray>()?
    };
    match array.ndim() {
        1 => Ok(array),
        many => Err(PyValueError::new_err(format!("{name}: must have one dimension, but has {many}"))),
    }
}

fn finite<T: Copy + Into<f64>>(name: &str, values: &[T]) -> PyResult<()> {
    match values.iter().position(|&value| !value.into().is_finite()) {
        Some(i) => Err(entry(name, i, &values[i].into().to_string(), "finite")),
        None => Ok(()),
    }
}

fn entry(name: &str, i: usize, value: &str, allowed: &str) -> PyErr {
    PyValueError::new_err(format!("{name}: entry {i} is {value}, but must be {allowed}"))
}

fn busy(name: &str, error: &dyn std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("{name}: {error}"))
}

/// The entries of an array of `rows` × `columns` float32 numbers, all finite, row after row.
pub fn float32_rows(name: &str, value: &Bound<'_, PyAny>, rows: usize, columns: usize) -> PyResult<Vec<f32>> {
    let array = value.py().import("numpy")?.call_method1("asarray", (value, "float32")).map_err(|error| {
        let problem = error.value(value.py());
        PyTypeError::new_err(format!("{name}: cannot be read as an array of float32: {problem}"))
    })?;
    let array = array.cast_into::<PyUntypedArray>()?;
    // No devices, or no requested numbers: any empty array will do.
    if array.len() == 0 && rows * columns == 0 {
        return Ok(Vec::new());
    }
    if array.shape() != [rows, columns] {
        let shape = array.shape();
        return Err(PyValueError::new_err(format!(
            "{name}: must have a row for each of {rows} devices and a column for each of {columns} reported \
             numbers, but its shape is {shape:?}"
        )));
    }
    let array = array.cast::<PyArray2<f32>>()?;
    let values: Vec<f32> =
        array.try_readonly().map_err(|error| busy(name, &error))?.as_array().iter().copied().collect();
    finite(name, &values)?;
    Ok(values)
}

/// The content of a bytes object.
pub fn bytes(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let bytes = value.cast::<PyBytes>().map_err(|_| {
        let kind = value.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("{name}: must be bytes, but is of type {kind}"))
    })?;
    Ok(bytes.as_bytes().to_vec())
}
