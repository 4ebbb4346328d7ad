//! The parts of a run one by one, for who runs rounds on nodes of their own.

use crate::arguments::{number, real, whole};
use crate::arrays::{float32s, numbers, places};
use crate::config::{load, read};
use crate::errors::exception;
use crate::parts::sparse;
use crate::primitives::report_of;
use fedlink::compress::Values;
use fedlink::config::Config;
use fedlink::round::System as Inner;
use fedlink::units::{Bits, DeviceId};
use numpy::PyArray1;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// What `fedlink.System` is made of.
#[pyclass(frozen, module = "fedlink._fedlink", subclass)]
pub struct System {
    config: Config,
    inner: Inner,
}

#[pymethods]
impl System {
    #[new]
    fn new(py: Python<'_>, name: &str, text: &str, settings: &Bound<'_, PyDict>) -> PyResult<Self> {
        let config = read(name, text, settings)?;
        let dataset = load(py, &config)?;
        let inner = py.detach(|| Inner::new(&config, dataset)).map_err(exception)?;
        Ok(Self { config, inner })
    }

    /// d, the number of parameters.
    #[getter]
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    /// M, the number of devices.
    #[getter]
    fn devices(&self) -> usize {
        self.inner.devices
    }

    /// K, devices scheduled in a round.
    #[getter]
    fn k(&self) -> usize {
        self.inner.k
    }

    /// n, channel symbols in a round.
    #[getter]
    fn symbols(&self) -> u64 {
        self.inner.symbols
    }

    /// P = M·P̄/K, what a scheduled device sends with.
    #[getter]
    fn power(&self) -> f64 {
        self.inner.power().0
    }

    /// The configuration as JSON, every default written out.
    fn config_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.config.resolved())
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// θ(0).
    fn theta0<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_vec(py, self.inner.theta0())
    }

    /// The power gain of every device in a round (from 0).
    fn gains<'py>(&self, py: Python<'py>, round: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, self.inner.channels(round_of(round)?).gains))
    }

    /// Bits a symbol that every device's link carries in a round (from 0).
    fn capacities<'py>(
        &self,
        py: Python<'py>,
        round: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, self.inner.channels(round_of(round)?).capacities))
    }

    /// Δ of a device trained from `theta` in a round (from 0): the one that `simulate` computes there.
    fn train<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        round: &Bound<'py, PyAny>,
        device: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        if self.inner.remembers() {
            return Err(PyValueError::new_err(
                "learn.state, compress.feedback: a device's update depends on what it did in earlier rounds; \
                 set learn.state = \"reset\" and compress.feedback = \"off\" to train one device by itself",
            ));
        }
        let (theta, round, device) = (self.model("theta", theta)?, round_of(round)?, self.device(device)?);
        let (update, loss) = py.detach(|| self.inner.update(&theta, round, device));
        if !loss.is_finite() || update.iter().any(|entry| !entry.is_finite()) {
            return Err(exception(fedlink::Error::Diverged { round: round + 1, device: device.0 }));
        }
        Ok(PyArray1::from_vec(py, update))
    }

    /// The number that a device reports of its update in a round (from 0): `kind` is what `report_kind` says.
    fn report(
        &self,
        py: Python<'_>,
        kind: &str,
        update: &Bound<'_, PyAny>,
        round: &Bound<'_, PyAny>,
        device: &Bound<'_, PyAny>,
    ) -> PyResult<f32> {
        let kind = report_of("kind", kind)?;
        let (update, round, device) = (self.model("update", update)?, round_of(round)?, self.device(device)?);
        Ok(py.detach(|| self.inner.report(kind, &update, round, device)))
    }

    /// `(q, indices, values)` of a device's update in a round (from 0), within `bits`; `values` is one number for
    /// D-SGD and an array for the other schemes.
    fn compress<'py>(
        &self,
        py: Python<'py>,
        update: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = number)] bits: f64,
        round: &Bound<'py, PyAny>,
        device: &Bound<'py, PyAny>,
    ) -> PyResult<(usize, Bound<'py, PyArray1<i64>>, Bound<'py, PyAny>)> {
        let bits = real("bits", bits, |x| x >= 0.0, "a finite number of at least 0")?;
        let (update, round, device) = (self.model("update", update)?, round_of(round)?, self.device(device)?);
        let (q, sent) = py.detach(|| self.inner.compress(&update, Bits(bits), round, device));
        let values = match sent.values {
            Values::Shared(value) => value.into_pyobject(py)?.into_any(),
            Values::Each(values) => PyArray1::from_vec(py, values).into_any(),
        };
        Ok((q, numbers(py, sent.indices), values))
    }

    /// θ(t+1): `theta` and what the scheduled devices sent, a list of `(indices, values)`, each with its share.
    fn aggregate<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        devices: &Bound<'py, PyAny>,
        sent: Vec<Bound<'py, PyTuple>>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let mut theta = self.model("theta", theta)?;
        let devices = places("devices", devices)?;
        if devices.len() != sent.len() || devices.is_empty() {
            return Err(PyValueError::new_err(format!(
                "sent: has {} updates for {} devices; there must be one for each, and one at least",
                sent.len(),
                devices.len()
            )));
        }
        if let Some(device) = devices.iter().find(|device| **device as usize >= self.inner.devices) {
            let most = self.inner.devices - 1;
            return Err(PyValueError::new_err(format!(
                "devices: must be in 0..={most}, but one is {device}"
            )));
        }
        let devices: Vec<DeviceId> = devices.into_iter().map(DeviceId).collect();
        let sent = sent
            .iter()
            .map(|update| {
                let (indices, values) = update.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
                sparse("sent", &indices, &values, theta.len())
            })
            .collect::<PyResult<Vec<_>>>()?;
        py.detach(|| self.inner.aggregate(&mut theta, &devices, &sent));
        Ok(PyArray1::from_vec(py, theta))
    }

    /// Accuracy and loss of `theta` on the test set.
    fn evaluate(&self, py: Python<'_>, theta: &Bound<'_, PyAny>) -> PyResult<(f64, f64)> {
        let theta = self.model("theta", theta)?;
        let evaluation = py.detach(|| self.inner.evaluate(&theta));
        Ok((evaluation.accuracy, evaluation.loss))
    }
}

impl System {
    /// A vector of d entries.
    fn model(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
        let values = float32s(name, value)?;
        let (given, dim) = (values.len(), self.inner.dim());
        if given == dim {
            return Ok(values);
        }
        Err(PyValueError::new_err(format!("{name}: has {given} entries, but the model has {dim} parameters")))
    }

    fn device(&self, value: &Bound<'_, PyAny>) -> PyResult<DeviceId> {
        whole("device", value, 0..=self.inner.devices as u64 - 1).map(|device| DeviceId(device as u32))
    }
}

fn round_of(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    whole("round", value, 0..=u64::from(u32::MAX))
}
