//! Tasks that are written in Python.

use super::{Raised, is_taken, method, type_of};
use crate::arguments::whole;
use crate::arrays::{bytes, float32s};
use crate::simulation::json;
use fedlink::base::units::DeviceId;
use fedlink::learn::task::{Cohorts, DeviceState, Evaluation, Job, Task, TaskError};
use fedlink::spec::Spec;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

/// A task written in Python.
pub struct PythonTask {
    object: Py<PyAny>,
    name: String,
    raised: Raised,
    /// Devices that `train_cohort` takes at a time; none if the task has no such method.
    cohort: Option<usize>,
    state: DeviceStates,
    everyone_trains: bool,
    /// The sizes that the task states.
    test_samples: Option<usize>,
    classes: Option<usize>,
    /// Whether a sweep has made it, which ends it with its run.
    in_sweep: bool,
}

/// The place of the devices' state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DeviceStates {
    /// There is none.
    None,
    /// With the library, which passes it to every training.
    Passed,
    /// With the task.
    Own,
}

impl PythonTask {
    /// The task `object`, called `name` in records.
    pub fn new(object: &Bound<'_, PyAny>, name: &str, raised: Raised) -> PyResult<Self> {
        let base = object.py().import("fedlink")?.getattr("Task")?;
        let defines =
            |name: &str| -> PyResult<bool> { Ok(!object.get_type().getattr(name)?.is(&base.getattr(name)?)) };
        let by_cohorts = defines("train_cohort")?;
        let size = || whole(&method(object, "cohort"), &object.getattr("cohort")?, 1..=u64::from(u32::MAX));
        let cohort = if by_cohorts { Some(size()? as usize) } else { None };
        let name = task_name(name);
        let state = match (object.getattr("keeps_state")?.is_truthy()?, defines("save")?) {
            (false, _) => DeviceStates::None,
            (true, false) => DeviceStates::Passed,
            (true, true) => DeviceStates::Own,
        };
        let everyone = object.getattr("everyone_trains")?;
        let everyone_trains =
            if everyone.is_none() { state != DeviceStates::None } else { everyone.is_truthy()? };
        let stated = |name: &str| -> PyResult<Option<usize>> {
            let value = object.getattr(name)?;
            if value.is_none() {
                return Ok(None);
            }
            whole(&method(object, name), &value, 1..=u64::from(u32::MAX)).map(|count| Some(count as usize))
        };
        let (test_samples, classes) = (stated("test_samples")?, stated("classes")?);
        let object = object.clone().unbind();
        let in_sweep = false;
        Ok(Self { object, name, raised, cohort, state, everyone_trains, test_samples, classes, in_sweep })
    }

    /// The task of one run of a sweep, which begins here and ends when it is dropped.
    pub fn of_sweep(object: &Bound<'_, PyAny>, name: &str, spec: &Spec, raised: Raised) -> PyResult<Self> {
        let settings = object.py().import("json")?.call_method1("loads", (json(&spec.resolved())?,))?;
        let class = object.get_type().qualname()?;
        let given = whole(&method(object, "devices"), &object.getattr("devices")?, 1..=u64::from(u32::MAX))?;
        if given != spec.data.devices {
            let problem = format!("{class}: has {given} devices, but data.devices is {}", spec.data.devices);
            return Err(PyValueError::new_err(problem));
        }
        object.call_method1("begin", (settings,))?;
        match Self::new(object, name, raised) {
            Ok(mut task) => {
                task.in_sweep = true;
                Ok(task)
            }
            Err(error) => {
                object.call_method0("end")?;
                Err(error)
            }
        }
    }

    /// The task, if it keeps the state of its devices itself.
    pub fn keeper(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        (self.state == DeviceStates::Own).then(|| self.object.clone_ref(py))
    }

    /// The job, without the state if the task keeps it.
    fn passed<'a>(&self, mut job: Job<'a>) -> Job<'a> {
        job.state = job.state.filter(|_| self.state == DeviceStates::Passed);
        job
    }

    /// The result of `call`; its exception is kept to be raised again.
    fn ask<R>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> Result<R, TaskError> {
        Python::attach(|py| {
            call(self.object.bind(py)).map_err(|error| {
                let problem = TaskError(error.to_string());
                self.raised.lock().get_or_insert(error);
                problem
            })
        })
    }
}

impl Drop for PythonTask {
    fn drop(&mut self) {
        if self.in_sweep {
            // Its exception is raised by the caller.
            let _ = self.ask(|object| object.call_method0("end").map(drop));
        }
    }
}

impl Task for PythonTask {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn theta0(&self) -> Vec<f32> {
        // An empty model is rejected, and the exception is raised in its place.
        self.ask(|object| float32s(&method(object, "theta0"), &object.call_method0("theta0")?))
            .unwrap_or_default()
    }

    fn samples(&self, device: DeviceId) -> usize {
        let samples = self.ask(|object| {
            let answer = object.call_method1("samples", (device.0,))?;
            whole(&method(object, "samples"), &answer, 1..=u64::from(u32::MAX))
        });
        samples.map_or(0, |samples| samples as usize)
    }

    fn train(&self, job: Job) -> Result<f64, TaskError> {
        self.ask(|object| train(object, self.passed(job)))
    }

    fn evaluate(&self, theta: &[f32]) -> Result<Evaluation, TaskError> {
        self.ask(|object| {
            let answer = object.call_method1("evaluate", (PyArray1::from_slice(object.py(), theta),))?;
            read_evaluation(&method(object, "evaluate"), &answer)
        })
    }

    /// Python code may share objects that are not made to be shared, such as a global random generator: one
    /// after the other.
    fn cohorts(&self) -> Cohorts {
        Cohorts::Of(self.cohort.unwrap_or(1))
    }

    fn train_cohort(&self, jobs: Vec<Job>) -> Vec<Result<f64, TaskError>> {
        if self.cohort.is_none() {
            return jobs.into_iter().map(|job| self.train(job)).collect();
        }
        let count = jobs.len();
        let jobs = jobs.into_iter().map(|job| self.passed(job)).collect();
        match self.ask(|object| train_cohort(object, jobs)) {
            Ok(losses) => losses.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error); count],
        }
    }

    fn state_vectors(&self) -> Option<usize> {
        (self.state != DeviceStates::None).then_some(0)
    }

    fn everyone_trains(&self) -> bool {
        self.everyone_trains
    }

    fn test_samples(&self) -> Option<usize> {
        self.test_samples
    }

    fn classes(&self) -> Option<usize> {
        self.classes
    }

    /// `fedlink.simulate` saves the states of a task beside the checkpoint.
    fn keeps_states_itself(&self) -> bool {
        self.in_sweep && self.state == DeviceStates::Own
    }

    fn save(&self) -> Result<Vec<u8>, TaskError> {
        self.ask(|object| bytes(&method(object, "save"), &object.call_method0("save")?))
    }

    fn load(&self, states: &[u8]) -> Result<(), TaskError> {
        self.ask(|object| object.call_method1("load", (PyBytes::new(object.py(), states),)).map(drop))
    }
}

/// The state of a device, as Python has it.
fn state_of<'py>(py: Python<'py>, state: &DeviceState) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &state.bytes)
}

fn train(object: &Bound<'_, PyAny>, job: Job) -> PyResult<f64> {
    let (py, name) = (object.py(), method(object, "train"));
    let Job { t, device, theta, state, update, .. } = job;
    let theta = PyArray1::from_slice(py, theta);
    let answer = match &state {
        None => object.call_method1("train", (theta, t, device.0))?,
        Some(state) => object.call_method1("train", (theta, t, device.0, state_of(py, state)))?,
    };
    let wanted = if state.is_some() { "(update, loss, state)" } else { "(update, loss)" };
    let wrong = || {
        let given = type_of(&answer);
        PyTypeError::new_err(format!("{name}: must return {wanted}, but returned {given}"))
    };
    let items = answer.cast::<PyTuple>().map_err(|_| wrong())?;
    if items.len() != if state.is_some() { 3 } else { 2 } {
        return Err(PyTypeError::new_err(format!(
            "{name}: must return {wanted}, but returned {} items",
            items.len()
        )));
    }
    let delta = float32s(&format!("{name}: update"), &items.get_item(0)?)?;
    if delta.len() != update.len() {
        let (given, dim) = (delta.len(), update.len());
        return Err(PyValueError::new_err(format!(
            "{name}: update has {given} entries, but theta0 has {dim}"
        )));
    }
    update.copy_from_slice(&delta);
    if let Some(state) = state {
        state.bytes = bytes(&format!("{name}: state"), &items.get_item(2)?)?;
    }
    loss(&name, &items.get_item(1)?)
}

fn loss(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract().map_err(|_| {
        PyTypeError::new_err(format!("{name}: the loss must be a number, but is of type {}", type_of(value)))
    })
}

/// θ in the array that the task has for it, or otherwise in a new one.
fn shown<'py>(object: &Bound<'py, PyAny>, theta: &[f32]) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let own = object.getattr("theta_buffer")?;
    if own.is_none() {
        return Ok(PyArray1::from_slice(object.py(), theta));
    }
    let name = method(object, "theta_buffer");
    let wrong =
        || PyTypeError::new_err(format!("{name}: must be an array of {} float32 or None", theta.len()));
    let array = own.cast_into::<PyArray1<f32>>().map_err(|_| wrong())?;
    {
        let mut array = array.try_readwrite()?;
        let entries = array.as_slice_mut().map_err(|_| wrong())?;
        if entries.len() != theta.len() {
            return Err(wrong());
        }
        entries.copy_from_slice(theta);
    }
    Ok(array)
}

fn train_cohort(object: &Bound<'_, PyAny>, jobs: Vec<Job>) -> PyResult<Vec<f64>> {
    let (py, name) = (object.py(), method(object, "train_cohort"));
    let Some(first) = jobs.first() else { return Ok(Vec::new()) };
    let (t, dim, keeps) = (first.t, first.theta.len(), first.state.is_some());
    let theta = shown(object, first.theta)?;
    let devices: Vec<u32> = jobs.iter().map(|job| job.device.0).collect();
    let answer = if keeps {
        let states = jobs.iter().filter_map(|job| job.state.as_ref().map(|state| state_of(py, state)));
        let states = PyList::new(py, states.collect::<Vec<_>>())?;
        object.call_method1("train_cohort", (theta, t, devices, states))?
    } else {
        object.call_method1("train_cohort", (theta, t, devices))?
    };
    let wanted = if keeps { "(updates, losses, states)" } else { "(updates, losses)" };
    let wrong =
        |given: String| PyTypeError::new_err(format!("{name}: must return {wanted}, but returned {given}"));
    let items = answer.cast::<PyTuple>().map_err(|_| wrong(type_of(&answer)))?;
    if items.len() != if keeps { 3 } else { 2 } {
        return Err(wrong(format!("{} items", items.len())));
    }
    let updates = items.get_item(0)?;
    let updates = updates
        .cast::<PyArray2<f32>>()
        .map_err(|_| {
            wrong(format!(
                "{} as updates, which must be a float32 array of one row a device",
                type_of(&updates)
            ))
        })?
        .try_readonly()?;
    let updates = updates.as_array();
    if updates.shape() != [jobs.len(), dim] {
        let problem = format!("{name}: updates must be {} × {dim}, but is {:?}", jobs.len(), updates.shape());
        return Err(PyValueError::new_err(problem));
    }
    let losses: Vec<Bound<'_, PyAny>> = items.get_item(1)?.try_iter()?.collect::<PyResult<_>>()?;
    let states: Vec<Bound<'_, PyAny>> =
        if keeps { items.get_item(2)?.try_iter()?.collect::<PyResult<_>>()? } else { Vec::new() };
    if losses.len() != jobs.len() || (keeps && states.len() != jobs.len()) {
        let problem =
            format!("{} losses and {} states for {} devices", losses.len(), states.len(), jobs.len());
        return Err(PyValueError::new_err(format!("{name}: returned {problem}")));
    }
    for (i, job) in jobs.into_iter().enumerate() {
        job.update.iter_mut().zip(updates.row(i)).for_each(|(to, from)| *to = *from);
        if let Some(state) = job.state {
            state.bytes = bytes(&format!("{name}: state"), &states[i])?;
        }
    }
    losses.iter().map(|value| loss(&name, value)).collect()
}

/// (accuracy, loss), or a dictionary with both and any other metrics.
fn read_evaluation(name: &str, answer: &Bound<'_, PyAny>) -> PyResult<Evaluation> {
    let wrong = |what: &str| {
        PyTypeError::new_err(format!(
            "{name}: must return (accuracy, loss) or a dictionary of numbers with \"accuracy\" and \"loss\", \
             but {what}"
        ))
    };
    if let Ok(metrics) = answer.cast::<PyDict>() {
        let mut metrics: Vec<(String, f64)> = metrics
            .iter()
            .map(|(name, value)| Ok((name.extract()?, value.extract()?)))
            .collect::<PyResult<_>>()
            .map_err(|_| wrong("the dictionary has other keys than text or other values than numbers"))?;
        let mut take = |wanted: &str| {
            let index = metrics.iter().position(|(name, _)| name == wanted);
            index
                .map(|index| metrics.remove(index).1)
                .ok_or_else(|| wrong(&format!("{wanted:?} is not in it")))
        };
        let (accuracy, loss) = (take("accuracy")?, take("loss")?);
        let evaluation = Evaluation::new(accuracy, loss);
        return Ok(metrics
            .into_iter()
            .fold(evaluation, |evaluation, (name, value)| evaluation.with(name, value)));
    }
    let (accuracy, loss) =
        answer.extract::<(f64, f64)>().map_err(|_| wrong(&format!("returned {}", type_of(answer))))?;
    Ok(Evaluation::new(accuracy, loss))
}

/// The name of a task in records: that of a part of the library is another's.
#[pyfunction]
pub fn task_name(name: &str) -> String {
    if is_taken(name) { format!("{name}-task") } else { name.to_owned() }
}
