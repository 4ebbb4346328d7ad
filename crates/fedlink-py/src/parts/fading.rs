//! Fading laws that are written in Python, and gains as an array.

use super::{Calls, method, type_of};
use crate::arguments::whole;
use fedlink::base::units::DeviceId;
use fedlink::parts::Scope;
use fedlink::radio::fading::Fading;
use fedlink::spec::ConfigError;
use numpy::{PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// A fading law written in Python.
pub struct PythonFading {
    object: Py<PyAny>,
    antennas: usize,
    calls: Calls,
}

impl PythonFading {
    pub fn new(object: Bound<'_, PyAny>, calls: Calls) -> PyResult<Self> {
        let antennas = whole(&method(&object, "antennas"), &object.getattr("antennas")?, 1..=1024)? as usize;
        Ok(Self { object: object.unbind(), antennas, calls })
    }
}

impl Fading for PythonFading {
    fn gain(&self, t: u64, device: DeviceId) -> f64 {
        self.calls.ask(0.0, |py| {
            let object = self.object.bind(py);
            let answer = object.call_method1("gain", (t, device.0))?;
            let gain = answer.extract::<f64>().map_err(|_| {
                let (name, given) = (method(object, "gain"), type_of(&answer));
                PyTypeError::new_err(format!("{name}: must return a number, but returned {given}"))
            })?;
            if !(gain.is_finite() && gain >= 0.0) {
                let name = method(object, "gain");
                return Err(PyValueError::new_err(format!(
                    "{name}: must return a finite number of at least 0, but returned {gain} for t = {t}, \
                     device {device}"
                )));
            }
            Ok(gain)
        })
    }

    fn antennas(&self) -> usize {
        self.antennas
    }

    fn failure(&self) -> Option<String> {
        self.calls.failure()
    }
}

/// Gains as an array of M × T or T × M numbers.
pub struct Trace {
    gains: Vec<f64>,
    shape: [usize; 2],
}

impl Trace {
    pub fn new(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let wrong =
            || PyTypeError::new_err("fading: must be a fedlink.Fading or a float64 array of M × T gains");
        let array = array.cast::<PyArray2<f64>>().map_err(|_| wrong())?;
        let shape = [array.shape()[0], array.shape()[1]];
        let gains: Vec<f64> = array.try_readonly()?.as_array().iter().copied().collect();
        if let Some(i) = gains.iter().position(|gain| !(gain.is_finite() && *gain >= 0.0)) {
            let (row, column) = (i / shape[1], i % shape[1]);
            return Err(PyValueError::new_err(format!(
                "fading: entry ({row}, {column}) is {}, but must be finite and at least 0",
                gains[i]
            )));
        }
        Ok(Self { gains, shape })
    }

    /// Whether there is a gain for every device in every round.
    fn check(&self, scope: &Scope) -> Result<(), ConfigError> {
        let (devices, rounds) = (scope.devices as usize, scope.rounds as usize);
        let [rows, columns] = self.shape;
        let of = if rows == devices { columns } else { rows };
        if rows != devices && columns != devices {
            let problem = format!(
                "the array of gains is {rows} × {columns}, but must be {devices} × {rounds} (data.devices × \
                 run.rounds)"
            );
            return Err(ConfigError::new("fading", problem));
        }
        if of < rounds {
            let problem = format!("the array of gains ends after {of} rounds, but run.rounds is {rounds}");
            return Err(ConfigError::new("fading", problem));
        }
        Ok(())
    }
}

/// M × T, also where T is M.
impl Fading for ArrayFading {
    fn gain(&self, t: u64, device: DeviceId) -> f64 {
        let [rows, columns] = self.trace.shape;
        // A run has no rounds beyond the last; a later round begins again at the first.
        let t = (t % if self.by_device { columns } else { rows } as u64) as usize;
        let (row, column) = if self.by_device { (device.index(), t) } else { (t, device.index()) };
        self.trace.gains[row * columns + column]
    }
}

/// The gains of one run.
pub struct ArrayFading {
    trace: Arc<Trace>,
    /// Whether a row is a device.
    by_device: bool,
}

impl ArrayFading {
    pub fn new(trace: &Arc<Trace>, scope: &Scope) -> Result<Self, ConfigError> {
        trace.check(scope)?;
        Ok(Self { trace: Arc::clone(trace), by_device: trace.shape[0] as u64 == scope.devices })
    }
}
