//! Data, devices and channel of a run without its loop, for rounds on nodes of the user.

use crate::arguments::whole;
use crate::arrays::float32s;
use crate::config::{load, read};
use crate::errors::exception;
use crate::links::Links;
use crate::simulation::json;
use fedlink::base::units::DeviceId;
use fedlink::parts::Parts;
use fedlink::radio::Radio;
use fedlink::spec::Spec;
use fedlink::system::fleet::Fleet;
use fedlink::system::simulation::Simulation;
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The content of `fedlink.System`.
#[pyclass(frozen, module = "fedlink._fedlink", subclass)]
pub struct System {
    spec: Spec,
    theta0: Vec<f32>,
    fleet: Fleet,
    radio: Radio,
}

#[pymethods]
impl System {
    #[new]
    fn new(py: Python<'_>, name: &str, text: &str, settings: &Bound<'_, PyDict>) -> PyResult<Self> {
        let spec = read(name, text, settings, &Parts::default())?;
        let dataset = load(py, &spec)?;
        let simulation = py.detach(|| Simulation::new(spec.with_work(dataset)?)).map_err(exception)?;
        let Simulation { server, fleet, .. } = simulation;
        let radio = fedlink::system::build::radio(&spec, server.theta().len()).map_err(exception)?;
        Ok(Self { spec, theta0: server.theta().to_vec(), fleet, radio })
    }

    /// d, the number of parameters.
    #[getter]
    fn dim(&self) -> usize {
        self.theta0.len()
    }

    /// M, the number of devices.
    #[getter]
    fn devices(&self) -> usize {
        self.spec.data.devices as usize
    }

    /// K, the largest number of devices scheduled in a round.
    #[getter]
    fn k(&self) -> usize {
        self.spec.schedule.k as usize
    }

    /// n, channel symbols in a round.
    #[getter]
    fn symbols(&self) -> u64 {
        self.radio.band().symbols
    }

    /// P, the power of a scheduled device over a link of its mean gain: M·P̄/K unless radio.power_policy is
    /// another. Where devices differ it is the first one's; links(t).powers has all.
    #[getter]
    fn power(&self) -> f64 {
        self.radio.power().0
    }

    /// The configuration as JSON, every default written out.
    fn config_json(&self) -> PyResult<String> {
        json(&self.spec.resolved())
    }

    /// θ(0).
    fn theta0<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.theta0)
    }

    /// The number of training samples of a device.
    fn samples(&self, device: &Bound<'_, PyAny>) -> PyResult<usize> {
        Ok(self.fleet.task().samples(self.device(device)?))
    }

    /// The links of all devices in round `t` (from 0): true gains and the server's estimates, powers, SNRs,
    /// bits per symbol, and positions of devices. It depends on the seed and `t` alone.
    fn links(&self, py: Python<'_>, t: &Bound<'_, PyAny>) -> PyResult<Links> {
        Links::of(py, &self.radio, whole("t", t, 0..=u64::from(u32::MAX))?)
    }

    /// The power gain of every device in a round (from 0), by the server's estimate.
    fn gains<'py>(&self, py: Python<'py>, round: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, self.radio.links(round_of(round)?).known.gains))
    }

    /// Bits per symbol that every device's link carries in a round (from 0).
    fn capacities<'py>(
        &self,
        py: Python<'py>,
        round: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, self.radio.links(round_of(round)?).known.capacities))
    }

    /// Δ of a device trained from `theta` in a round (from 0), and its training loss:
    /// those that `simulate` computes.
    fn train<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        round: &Bound<'py, PyAny>,
        device: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyArray1<f32>>, f64)> {
        if self.fleet.keeps_state() {
            return Err(PyValueError::new_err(
                "learn.state, compress.feedback: a device's update depends on its state from earlier rounds; \
                 set learn.state = \"reset\" and compress.feedback = \"off\" to train one device by itself",
            ));
        }
        let (theta, round, device) = (self.model("theta", theta)?, round_of(round)?, self.device(device)?);
        let (update, loss) = py.detach(|| self.fleet.update(&theta, round, device)).map_err(exception)?;
        if update.iter().any(|entry| !entry.is_finite()) {
            let remedy = "lower learn.rate".into();
            return Err(exception(fedlink::Error::Diverged { round: round + 1, device: device.0, remedy }));
        }
        Ok((PyArray1::from_vec(py, update), loss))
    }

    /// Accuracy and loss of `theta` on the test set.
    fn evaluate(&self, py: Python<'_>, theta: &Bound<'_, PyAny>) -> PyResult<(f64, f64)> {
        let theta = self.model("theta", theta)?;
        let evaluation = py.detach(|| self.fleet.task().evaluate(&theta));
        let evaluation = evaluation.map_err(|error| exception(fedlink::Error::Evaluation(error)))?;
        Ok((evaluation.accuracy, evaluation.loss))
    }
}

impl System {
    /// A vector of d entries.
    fn model(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
        let values = float32s(name, value)?;
        let (given, dim) = (values.len(), self.dim());
        if given == dim {
            return Ok(values);
        }
        Err(PyValueError::new_err(format!("{name}: has {given} entries, but the model has {dim} parameters")))
    }

    fn device(&self, value: &Bound<'_, PyAny>) -> PyResult<DeviceId> {
        whole("device", value, 0..=self.spec.data.devices - 1).map(|device| DeviceId(device as u32))
    }
}

fn round_of(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    whole("round", value, 0..=u64::from(u32::MAX))
}
