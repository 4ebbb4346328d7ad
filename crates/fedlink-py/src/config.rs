//! A configuration from what Python has: a dictionary, TOML text, or a file.

use crate::errors::exception;
use fedlink::config::{Config, ConfigError};
use fedlink::data::Dataset;
use fedlink::parts::Parts;
use fedlink_study::experiment::Experiment;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString, PyTuple};
use std::fmt::Write;
use std::sync::{Arc, OnceLock};

/// Reads a configuration. `text` is TOML; `name` stands for it in messages; `settings` are keys
/// `section.name` that go before it, or dictionaries of them by section; `parts` are custom parts
/// that it may name.
pub fn read(name: &str, text: &str, settings: &Bound<'_, PyDict>, parts: &Parts) -> PyResult<Config> {
    let mut experiment = Experiment::parse_with(name, text, parts).map_err(exception)?;
    for (key, value) in flat(settings)? {
        experiment.set(&key, &value).map_err(exception)?;
    }
    let config = experiment.only_config().map_err(exception)?;
    if config.run.seeds != 1 {
        let problem =
            "must be 1 here: simulate once for each seed, with run.seed = 0, 1, …; or use fedlink.run";
        return Err(exception(ConfigError::new("run.seeds", problem)));
    }
    Ok(config)
}

/// The settings as `section.name` with values as TOML, in their order.
pub fn flat(settings: &Bound<'_, PyDict>) -> PyResult<Vec<(String, String)>> {
    fn add(path: &str, settings: &Bound<'_, PyDict>, flat: &mut Vec<(String, String)>) -> PyResult<()> {
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
    // What is custom before what names it, and names before the keys of their own tables,
    // whatever the order given.
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

/// A Python value as TOML.
fn toml_value(key: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(quoted(text.to_str()?));
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(if value.is_truthy()? { "true" } else { "false" }.to_owned());
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items =
            value.try_iter()?.map(|item| toml_value(key, &item?)).collect::<PyResult<Vec<String>>>()?;
        return Ok(format!("[{}]", items.join(", ")));
    }
    // Whole numbers of NumPy have an index, its floats a value.
    if !value.is_instance_of::<PyFloat>()
        && let Ok(whole) = value.extract::<i64>()
    {
        return Ok(whole.to_string());
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(if number.is_nan() { "nan".to_owned() } else { format!("{number:?}") });
    }
    if let Ok(path) = value.call_method0("__fspath__").and_then(|path| path.extract::<String>()) {
        return Ok(quoted(&path));
    }
    let kind = value.get_type().name()?;
    Err(PyValueError::new_err(format!(
        "{key}: a value of type {kind} cannot be part of a configuration; write text, a number or a list"
    )))
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", control as u32);
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}
