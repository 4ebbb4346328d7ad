//! Policies, compressors and tasks that are written in Python.

use crate::arrays::{float32s, numbers, places, reals};
use crate::primitives::report_of;
use fedlink::compress::{Compressor, Scratch, SparseUpdate, Values};
use fedlink::learn::task::Task;
use fedlink::record::Evaluation;
use fedlink::rng::Stream;
use fedlink::schedule::{Policy, ReportKind, Schedule};
use fedlink::units::{Bits, DeviceId};
use numpy::PyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// The first exception that a part written in Python raised. The library cannot carry it, so the part answers with
/// something that ends the round, and who runs the round looks here first.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// What `call` answers, or `otherwise` if it raises or somebody has raised before.
    fn ask<R>(&self, otherwise: R, call: impl FnOnce(Python<'_>) -> PyResult<R>) -> R {
        if self.lock().is_some() {
            return otherwise;
        }
        match Python::attach(call) {
            Ok(answer) => answer,
            Err(error) => {
                self.lock().get_or_insert(error);
                otherwise
            }
        }
    }

    /// The exception, if there is one.
    pub fn take(&self) -> Option<PyErr> {
        self.lock().take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the server knows of the uplink in one round: `gains` and `capacities` (bits a symbol) of all devices.
#[pyclass(frozen, module = "fedlink._fedlink")]
pub struct Channels {
    /// The power gain of every device.
    #[pyo3(get)]
    gains: Py<PyArray1<f64>>,
    /// Bits a symbol that every device's link carries.
    #[pyo3(get)]
    capacities: Py<PyArray1<f64>>,
    /// M, the number of devices.
    #[pyo3(get)]
    devices: usize,
}

impl Channels {
    fn of<'py>(py: Python<'py>, channels: &fedlink::radio::Channels) -> PyResult<Bound<'py, Self>> {
        let channels = Self {
            gains: PyArray1::from_slice(py, &channels.gains).unbind(),
            capacities: PyArray1::from_slice(py, &channels.capacities).unbind(),
            devices: channels.devices(),
        };
        Bound::new(py, channels)
    }
}

/// A policy written in Python.
pub struct PythonPolicy {
    pub object: Py<PyAny>,
    /// Asked for once: it is the same in all rounds.
    pub report: ReportKind,
    pub raised: Raised,
}

impl PythonPolicy {
    pub fn new(object: &Bound<'_, PyAny>, raised: Raised) -> PyResult<Self> {
        let kind = object.call_method0("report")?;
        let kind: String =
            kind.extract().map_err(|_| PyTypeError::new_err("policy.report: must return text"))?;
        let report = report_of("policy.report", &kind)?;
        Ok(Self { object: object.clone().unbind(), report, raised })
    }
}

impl Policy for PythonPolicy {
    fn candidates(&mut self, channels: &fedlink::radio::Channels, k: usize) -> Vec<DeviceId> {
        self.raised.ask(Vec::new(), |py| {
            let answer = self.object.bind(py).call_method1("candidates", (Channels::of(py, channels)?, k))?;
            Ok(places("policy.candidates", &answer)?.into_iter().map(DeviceId).collect())
        })
    }

    fn report(&self) -> ReportKind {
        self.report
    }

    fn select(
        &mut self,
        candidates: &[DeviceId],
        reports: &[f32],
        channels: &fedlink::radio::Channels,
        k: usize,
    ) -> Schedule {
        let nobody = Schedule { devices: Vec::new(), weights: Vec::new() };
        self.raised.ask(nobody, |py| {
            let candidates = numbers(py, candidates.iter().map(|device| device.0));
            let arguments = (candidates, PyArray1::from_slice(py, reports), Channels::of(py, channels)?, k);
            let answer = self.object.bind(py).call_method1("select", arguments)?;
            let (devices, weights) = answer
                .extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()
                .map_err(|_| PyTypeError::new_err("policy.select: must return a pair (devices, weights)"))?;
            let devices = places("policy.select: devices", &devices)?.into_iter().map(DeviceId).collect();
            Ok(Schedule { devices, weights: reals("policy.select: weights", &weights)? })
        })
    }
}

/// A compressor written in Python.
pub struct PythonCompressor {
    pub object: Py<PyAny>,
    pub raised: Raised,
}

impl Compressor for PythonCompressor {
    fn bits(&self, dim: usize, q: usize) -> Bits {
        self.raised.ask(Bits(0.0), |py| {
            let bits: f64 = self.object.bind(py).call_method1("bits", (dim, q))?.extract()?;
            if !(bits.is_finite() && bits >= 0.0) {
                let problem = format!("compressor.bits: must be finite and at least 0, but is {bits}");
                return Err(PyValueError::new_err(problem));
            }
            Ok(Bits(bits))
        })
    }

    fn largest_q(&self, dim: usize, budget: Bits) -> usize {
        self.raised.ask(0, |py| {
            let answer = self.object.bind(py).call_method1("largest_q", (dim, budget.0))?;
            crate::arguments::whole("compressor.largest_q", &answer, 0..=dim as u64).map(|q| q as usize)
        })
    }

    fn compress(
        &self,
        update: &[f32],
        q: usize,
        chance: &mut Stream,
        _: &mut Scratch,
        out: &mut SparseUpdate,
    ) {
        *out = self.raised.ask(SparseUpdate::default(), |py| {
            let arguments = (PyArray1::from_slice(py, update), q, chance.bits());
            let answer = self.object.bind(py).call_method1("compress", arguments)?;
            let (indices, values) =
                answer.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>().map_err(|_| {
                    PyTypeError::new_err("compressor.compress: must return a pair (indices, values)")
                })?;
            sparse("compressor.compress", &indices, &values, update.len())
        });
    }
}

/// An update of `dim` entries of which those at `indices` are `values`: an array, or one number for all.
pub fn sparse(
    name: &str,
    indices: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    dim: usize,
) -> PyResult<SparseUpdate> {
    let refuse = |problem: String| Err(PyValueError::new_err(format!("{name}: {problem}")));
    let indices = places(&format!("{name}: indices"), indices)?;
    if let Some([a, b]) = indices.array_windows().find(|[a, b]| a >= b) {
        return refuse(format!("index {b} follows {a}; indices must ascend"));
    }
    if let Some(last) = indices.last().filter(|last| **last as usize >= dim) {
        return refuse(format!("there is no entry {last} in an update of {dim}"));
    }
    let values = match values.extract::<f32>() {
        Ok(value) if value.is_finite() => Values::Shared(value),
        Ok(value) => return refuse(format!("the value is {value}, but must be finite")),
        Err(_) => Values::Each(float32s(&format!("{name}: values"), values)?),
    };
    if let Values::Each(each) = &values
        && each.len() != indices.len()
    {
        return refuse(format!("has {} values for {} indices", each.len(), indices.len()));
    }
    Ok(SparseUpdate { indices, values })
}

/// A task written in Python.
pub struct PythonTask {
    pub object: Py<PyAny>,
    pub raised: Raised,
}

impl Task for PythonTask {
    fn theta0(&self) -> Vec<f32> {
        self.raised
            .ask(Vec::new(), |py| float32s("task.theta0", &self.object.bind(py).call_method0("theta0")?))
    }

    fn size_of(&self, device: DeviceId) -> usize {
        self.raised.ask(1, |py| {
            let size = self.object.bind(py).call_method1("size_of", (device.0,))?;
            crate::arguments::whole("task.size_of", &size, 1..=u64::from(u32::MAX)).map(|size| size as usize)
        })
    }

    fn train(&self, theta: &[f32], round: u64, device: DeviceId, update: &mut [f32]) -> f64 {
        self.raised.ask(f64::NAN, |py| {
            let arguments = (PyArray1::from_slice(py, theta), round, device.0);
            let answer = self.object.bind(py).call_method1("train", arguments)?;
            let (delta, loss) = answer
                .extract::<(Bound<'_, PyAny>, f64)>()
                .map_err(|_| PyTypeError::new_err("task.train: must return a pair (update, loss)"))?;
            let delta = float32s("task.train: update", &delta)?;
            if delta.len() != update.len() {
                let (given, dim) = (delta.len(), update.len());
                let problem = format!("task.train: update has {given} entries, but theta0 has {dim}");
                return Err(PyValueError::new_err(problem));
            }
            update.copy_from_slice(&delta);
            Ok(loss)
        })
    }

    fn evaluate(&self, theta: &[f32]) -> Evaluation {
        self.raised.ask(Evaluation { accuracy: f64::NAN, loss: f64::NAN }, |py| {
            let answer = self.object.bind(py).call_method1("evaluate", (PyArray1::from_slice(py, theta),))?;
            let (accuracy, loss) = answer.extract::<(f64, f64)>().map_err(|_| {
                PyTypeError::new_err("task.evaluate: must return a pair of numbers (accuracy, loss)")
            })?;
            Ok(Evaluation { accuracy, loss })
        })
    }

    /// Python code may share what is not made to be shared, such as a global random generator.
    fn in_turn(&self) -> bool {
        true
    }
}
