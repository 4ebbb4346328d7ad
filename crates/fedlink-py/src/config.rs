//! A configuration from a Python value: a dictionary, TOML text, or a file.

use crate::errors::exception;
use fedlink::data::Dataset;
use fedlink::parts::Parts;
use fedlink::spec::{Config, ConfigError, Spec};
use fedlink_study::experiment::Experiment;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString, PyTuple};
use std::sync::{Arc, OnceLock};
use toml::Value;

/// Reads a configuration. `text` is TOML; `name` is its name in messages; `settings` are keys `section.name`
/// that take precedence, or dictionaries of them by section; `parts` are custom parts that it may name.
pub fn read(name: &str, text: &str, settings: &Bound<'_, PyDict>, parts: &Parts) -> PyResult<Spec> {
    let mut experiment = Experiment::parse_with(name, text, parts).map_err(exception)?;
    for (key, value) in flat(settings)? {
        experiment.set_value(&key, value).map_err(exception)?;
    }
    let spec = experiment.only_spec(parts).map_err(exception)?;
    if spec.run.seeds != 1 {
        let problem =
            "must be 1 here: simulate once for each seed, with run.seed = 0, 1, …; or use fedlink.run";
        return Err(exception(ConfigError::new("run.seeds", problem)));
    }
    Ok(spec)
}

/// The settings as `section.name` with their values, in their order.
pub fn flat(settings: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Value)>> {
    fn add(path: &str, settings: &Bound<'_, PyDict>, flat: &mut Vec<(String, Value)>) -> PyResult<()> {
        for (key, value) in settings {
            let key: String = key.extract().map_err(|_| PyTypeError::new_err("config: keys must be text"))?;
            let key = if path.is_empty() { key } else { format!("{path}.{key}") };
            match value.cast::<PyDict>() {
                Ok(section) => add(&key, section, flat)?,
                Err(_) => flat.push((key.clone(), toml_value(&key, &value)?)),
            }
        }
        Ok(())
    }
    let mut all = Vec::new();
    add("", settings, &mut all)?;
    // Custom parts come before the keys that name them, and names before the keys of their own tables, in
    // whatever order they are given.
    all.sort_by_key(|(key, _)| (!key.starts_with("custom."), key.matches('.').count()));
    Ok(all)
}

/// The embedded data set. It is drawn anew at every start, which takes longer than many a run on it.
static DIGITS: OnceLock<Arc<Dataset>> = OnceLock::new();

/// The data set of a configuration, from where the command line looks for it too.
pub fn load(py: Python<'_>, config: &Config) -> PyResult<Arc<Dataset>> {
    let embedded = config.data.dataset == "digits";
    if let Some(digits) = DIGITS.get().filter(|_| embedded) {
        return Ok(Arc::clone(digits));
    }
    let folders = fedlink_study::data_folders(None);
    let dataset = py.detach(|| fedlink::data::load(&config.data.dataset, &folders)).map_err(exception)?;
    if embedded {
        let _ = DIGITS.set(Arc::clone(&dataset));
    }
    Ok(dataset)
}

/// A Python value as one of a configuration.
fn toml_value(key: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::from(text.to_str()?));
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::from(value.is_truthy()?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| toml_value(key, &item?));
        return items.collect::<PyResult<Vec<Value>>>().map(Value::Array);
    }
    // Whole numbers of NumPy have an index, its floats a value.
    if !value.is_instance_of::<PyFloat>()
        && let Ok(whole) = value.extract::<i64>()
    {
        return Ok(Value::from(whole));
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(Value::from(number));
    }
    if let Ok(path) = value.call_method0("__fspath__").and_then(|path| path.extract::<String>()) {
        return Ok(Value::from(path));
    }
    let kind = value.get_type().name()?;
    Err(PyValueError::new_err(format!(
        "{key}: a value of type {kind} cannot be part of a configuration; write text, a number or a list"
    )))
}
