//! A run, round by round. The loop over rounds is Python's, so that Ctrl-C and progress bars work as they do there.

use crate::config::{load, read};
use crate::errors::exception;
use crate::parts::{PythonCompressor, PythonPolicy, PythonTask, Raised};
use crate::table::{Table, rounds, transmissions};
use fedlink::compress::Compressor;
use fedlink::config::Config;
use fedlink::learn::task::Work;
use fedlink::radio::link::transmit_power;
use fedlink::record::RoundRecord;
use fedlink::schedule::Policy;
use fedlink::simulation::{OwnParts, Simulation as Inner};
use fedlink::units::Power;
use numpy::PyArray1;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// What `fedlink.simulate` runs.
#[pyclass(frozen, module = "fedlink._fedlink")]
pub struct Simulation {
    config: Config,
    raised: Raised,
    state: Mutex<State>,
}

struct State {
    inner: Inner,
    records: Vec<RoundRecord>,
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (name, text, settings, policy = None, compressor = None, task = None))]
    fn new(
        py: Python<'_>,
        name: &str,
        text: &str,
        settings: &Bound<'_, PyDict>,
        policy: Option<&Bound<'_, PyAny>>,
        compressor: Option<&Bound<'_, PyAny>>,
        task: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let config = read(name, text, settings)?;
        let raised = Raised::default();
        let parts = OwnParts {
            policy: match policy {
                Some(object) => Some(Box::new(PythonPolicy::new(object, raised.clone())?) as Box<dyn Policy>),
                None => None,
            },
            compressor: compressor.map(|object| {
                let object = object.clone().unbind();
                Box::new(PythonCompressor { object, raised: raised.clone() }) as Box<dyn Compressor>
            }),
        };
        let work = match task {
            Some(object) => {
                let object = object.clone().unbind();
                Work::from(PythonTask { object, raised: raised.clone() })
            }
            None => Work::from(load(py, &config)?),
        };
        let inner = py.detach(|| Inner::with_parts(&config, work, parts));
        if let Some(error) = raised.take() {
            return Err(error);
        }
        let state = State { inner: inner.map_err(exception)?, records: Vec::new() };
        Ok(Self { config, raised, state: Mutex::new(state) })
    }

    /// Runs the next round; returns the accuracy on the test set if it was looked at.
    fn step(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let mut state = self.state()?;
        let State { inner, records } = &mut *state;
        let result = py.detach(|| inner.step());
        if let Some(error) = self.raised.take() {
            return Err(error);
        }
        let record = result.map_err(exception)?;
        let accuracy = record.evaluation.map(|evaluation| evaluation.accuracy);
        records.push(record);
        Ok(accuracy)
    }

    /// T.
    #[getter]
    fn rounds_to_do(&self) -> u64 {
        self.config.run.rounds
    }

    /// Rounds done so far.
    #[getter]
    fn rounds_done(&self) -> PyResult<u64> {
        Ok(self.state()?.inner.rounds_done())
    }

    /// θ now.
    fn theta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        Ok(PyArray1::from_slice(py, self.state()?.inner.theta()))
    }

    /// The run in numbers, as JSON.
    fn outcome_json(&self) -> PyResult<String> {
        json(&self.state()?.inner.outcome())
    }

    /// The configuration as JSON, every default written out.
    fn config_json(&self) -> PyResult<String> {
        json(&self.config.resolved())
    }

    /// One row for each round.
    fn rounds(&self) -> PyResult<Table> {
        rounds(&self.state()?.records)
    }

    /// One row for each transmission.
    fn transmissions(&self) -> PyResult<Table> {
        let (devices, k) = (self.config.data.devices as usize, self.config.schedule.k as usize);
        let power = transmit_power(devices, k, Power(self.config.radio.power));
        transmissions(&self.state()?.records, power)
    }
}

impl Simulation {
    fn state(&self) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(PyRuntimeError::new_err("this simulation is in the middle of a round"))
            }
        }
    }
}

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
