//! A run, round by round. The loop over rounds is Python's, so that Ctrl-C and progress bars work
//! as they do there.

use crate::arrays::bytes;
use crate::config::{load, read};
use crate::errors::exception;
use crate::parts::{Part, PythonTask, Raised, collect};
use crate::saved::{self, Saved};
use crate::table::{Table, decisions, rounds, transmissions};
use fedlink::learn::task::Work;
use fedlink::record::{Decision, History, RoundRecord, Transmission};
use fedlink::system::simulation::Simulation as Inner;
use numpy::PyArray1;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// The simulation of `fedlink.simulate`.
#[pyclass(frozen, module = "fedlink._fedlink")]
pub struct Simulation {
    raised: Raised,
    rounds_to_do: u64,
    /// A task that keeps the state of its devices itself.
    keeper: Option<Py<PyAny>>,
    state: Mutex<State>,
}

struct State {
    inner: Inner,
    history: History,
    /// Every device in every round, if they are logged.
    logged: Option<Logged>,
}

/// The log of all devices.
#[derive(Default)]
struct Logged {
    lines: Vec<Transmission>,
    decisions: Vec<Decision>,
}

impl Logged {
    fn add(&mut self, record: &RoundRecord) {
        for line in record.transmissions.iter().chain(&record.others) {
            self.lines.push(*line);
            self.decisions.push(record.details.decision(line.device.index()));
        }
    }
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (name, text, settings, parts, task = None, data = None))]
    fn new(
        py: Python<'_>,
        name: &str,
        text: &str,
        settings: &Bound<'_, PyDict>,
        parts: Vec<Part<'_>>,
        task: Option<(Bound<'_, PyAny>, String)>,
        data: Option<&Bound<'_, crate::data::Dataset>>,
    ) -> PyResult<Self> {
        let raised = Raised::default();
        let parts = collect(parts, &raised)?;
        let mut spec = read(name, text, settings, &parts).map_err(|error| raised.or(error))?;
        let mut keeper = None;
        let work = match (&task, data) {
            (Some((object, name)), _) => {
                let settings = py.import("json")?.call_method1("loads", (json(&spec.resolved())?,))?;
                object.call_method1("begin", (settings,))?;
                let task = PythonTask::new(object, name, raised.clone())?;
                keeper = task.keeper(py);
                Work::from(task)
            }
            (None, Some(data)) => {
                let data = data.get();
                spec = spec.with_data(&data.inner.name, data.origin());
                Work::from(data.inner.clone())
            }
            (None, None) => Work::from(load(py, &spec)?),
        };
        let inner = py.detach(|| Inner::new(spec.with_work(work)?));
        let inner = inner.map_err(|error| raised.or(exception(error)))?;
        // An exception while the parts were made may not have stopped anything yet.
        if let Some(error) = raised.take() {
            return Err(error);
        }
        let state = State { inner, history: History::default(), logged: None };
        Ok(Self { raised, rounds_to_do: spec.run.rounds, keeper, state: Mutex::new(state) })
    }

    /// Runs the next round; returns the accuracy on the test set if it was evaluated.
    fn step(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let mut state = self.state()?;
        let State { inner, history, logged } = &mut *state;
        let record = py.detach(|| inner.step()).map_err(|error| self.raised.or(exception(error)))?;
        history.add(inner.round_row(&record), &record);
        if let Some(logged) = logged {
            logged.add(&record);
        }
        Ok(record.evaluation.map(|evaluation| evaluation.accuracy))
    }

    /// T.
    #[getter]
    fn rounds_to_do(&self) -> u64 {
        self.rounds_to_do
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
        json(&self.state()?.inner.spec().resolved())
    }

    /// One row for each round.
    fn rounds(&self) -> PyResult<Table> {
        rounds(&self.state()?.history.rounds)
    }

    /// One row for each transmission.
    fn transmissions(&self) -> PyResult<Table> {
        transmissions(&self.state()?.history.transmissions)
    }

    /// Logs every device of the rounds to come.
    fn log_all(&self) -> PyResult<()> {
        let mut state = self.state()?;
        state.inner.log_all_devices(true);
        state.logged = Some(Logged::default());
        Ok(())
    }

    /// One row for each device in each round, with the numbers that the policy decided by; None unless they
    /// are logged.
    fn devices(&self) -> PyResult<Option<Table>> {
        let state = self.state()?;
        state.logged.as_ref().map(|logged| decisions(&logged.lines, &logged.decisions)).transpose()
    }

    /// All that the rounds to come depend on, and the records so far.
    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.state()?;
        let inner = &mut state.inner;
        let written = py.detach(move || {
            let mut checkpoint = Vec::new();
            inner.checkpoint(&mut checkpoint).map(|()| checkpoint)
        });
        let checkpoint = written.map_err(|error| self.raised.or(saved::exception(&error)))?;
        let task = match &self.keeper {
            Some(task) => Some(bytes("Task.save", &task.bind(py).call_method0("save")?)?),
            None => None,
        };
        Ok(PyBytes::new(py, &saved::pack(checkpoint, &state.history, task)))
    }

    /// Resumes from the bytes that `save` returned.
    fn load(&self, py: Python<'_>, saved: &[u8]) -> PyResult<()> {
        let mut state = self.state()?;
        let Saved { checkpoint, history, task } = saved::unpack(saved)?;
        if task.is_some() != self.keeper.is_some() {
            let (has, does) = if task.is_some() { ("has", "keeps none") } else { ("has no", "keeps some") };
            let problem = format!("the checkpoint {has} state of a task, but this task {does}");
            return Err(PyValueError::new_err(problem));
        }
        let inner = &mut state.inner;
        let restored = py.detach(move || inner.restore(std::io::Cursor::new(checkpoint)));
        restored.map_err(|error| self.raised.or(saved::exception(&error)))?;
        if let (Some(object), Some(kept)) = (&self.keeper, task) {
            object.bind(py).call_method1("load", (PyBytes::new(py, &kept),))?;
        }
        state.history = history;
        Ok(())
    }
}

impl Simulation {
    fn state(&self) -> PyResult<MutexGuard<'_, State>> {
        in_use(&self.state, "this simulation is in the middle of a round")
    }
}

/// The content of a lock, unless another thread uses it.
pub fn in_use<'a, T>(lock: &'a Mutex<T>, busy: &'static str) -> PyResult<MutexGuard<'a, T>> {
    match lock.try_lock() {
        Ok(state) => Ok(state),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(busy)),
    }
}

pub fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
