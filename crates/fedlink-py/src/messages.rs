//! The messages between a server and its nodes: calls, grants and uploads.

use crate::arguments::{number, whole};
use crate::arrays::numbers;
use fedlink::base::units::{Bits, DeviceId, Shape};
use fedlink::compress::{Encoded as Compressed, SparseUpdate, Spent, Values};
use fedlink::radio::Radio;
use fedlink::schedule::{Ask, Weight};
use fedlink::system::device;
use fedlink::system::server::{self, Message, Scheduled};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// A round that has begun: the devices that must train, and the numbers that they report.
#[pyclass(frozen, get_all, module = "fedlink._fedlink")]
pub struct Call {
    /// The round, counted from 0.
    t: u64,
    /// K.
    k: usize,
    /// The devices that must train and report.
    candidates: Py<PyArray1<i64>>,
    /// Their reports.
    asks: Vec<&'static str>,
    /// The bits that each candidate could send if it had the whole band.
    alone_bits: Py<PyArray1<f64>>,
    /// The round, from 1, of each candidate's last upload in the server's h_m, 0 without one; empty unless
    /// compress.feedback is "ef21".
    acknowledged: Vec<u64>,
}

impl Call {
    pub fn of(py: Python<'_>, call: server::Call) -> Self {
        Self {
            t: call.t,
            k: call.k,
            candidates: numbers(py, call.candidates.iter().map(|device| device.0)).unbind(),
            asks: call.asks.iter().map(|ask| ask.name()).collect(),
            alone_bits: PyArray1::from_vec(py, call.alone.iter().map(|bits| bits.0).collect()).unbind(),
            acknowledged: call.acknowledged,
        }
    }
}

/// The grant of a scheduled device in a round.
#[pyclass(frozen, get_all, module = "fedlink._fedlink")]
pub struct Grant {
    /// The device.
    device: u32,
    /// Its symbols.
    symbols: f64,
    /// Its transmit power while it sends; watts if radio.bandwidth_hz is set.
    power: f64,
    /// The time for which it sends, in durations of a symbol.
    airtime: f64,
    /// The time for which it sends, in seconds; None without radio.bandwidth_hz.
    seconds: Option<f64>,
    /// The bits that it may send.
    budget: f64,
    /// Bits per symbol that its link carries.
    capacity: f64,
    /// The bit weight: its bits are proportional to it.
    bit_weight: f64,
    /// The weight of its update; None: as learn.aggregate specifies.
    weight: Option<f64>,
}

#[pymethods]
impl Grant {
    fn __repr__(&self) -> String {
        format!("Grant(device={}, symbols={:.2}, budget={:.1})", self.device, self.symbols, self.budget)
    }
}

impl Grant {
    pub fn of(scheduled: &Scheduled, radio: &Radio) -> Self {
        let Scheduled { device, grant, capacity, bit_weight, weight, .. } = *scheduled;
        Self {
            device: device.0,
            symbols: grant.symbols.0,
            power: grant.power.0,
            airtime: grant.airtime.0,
            seconds: radio.budget().symbol_s().map(|symbol_s| grant.airtime.0 * symbol_s),
            budget: grant.budget.0,
            capacity,
            bit_weight,
            weight: if let Weight::Own(weight) = weight { Some(weight) } else { None },
        }
    }
}

/// The upload of a node as it arrived: its bytes, none if its budget was too small, and its report of
/// them.
#[pyclass(frozen, get_all, module = "fedlink._fedlink", from_py_object)]
#[derive(Clone)]
pub struct Upload {
    /// The sender.
    device: u32,
    /// The bytes; None if the budget held nothing.
    payload: Option<Vec<u8>>,
    /// The level of the compression; 0 means that the budget held nothing.
    level: usize,
    /// The sent bits by the scheme's count.
    bits: f64,
    /// Entries that were sent.
    entries: usize,
    /// Whether the upload is missing.
    pub lost: bool,
}

#[pymethods]
impl Upload {
    #[new]
    #[pyo3(signature = (device, payload = None, level = 0, bits = 0.0, entries = 0, lost = false))]
    fn new(
        device: &Bound<'_, PyAny>,
        payload: Option<Vec<u8>>,
        level: usize,
        #[pyo3(from_py_with = number)] bits: f64,
        entries: usize,
        lost: bool,
    ) -> PyResult<Self> {
        let device = whole("device", device, 0..=u64::from(u32::MAX))? as u32;
        Ok(Self { device, payload, level, bits, entries, lost })
    }
}

impl Upload {
    pub fn message(&self) -> Message<'_> {
        Message {
            device: DeviceId(self.device),
            payload: self.payload.as_deref(),
            spent: Spent::new(Bits(self.bits), self.level),
            entries: self.entries,
        }
    }
}

/// The upload of a node.
#[pyclass(frozen, module = "fedlink._fedlink")]
pub struct Encoded {
    pub inner: device::Message,
}

#[pymethods]
impl Encoded {
    /// The bytes; None if the budget held nothing.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.inner.payload.as_deref().map(|payload| PyBytes::new(py, payload))
    }

    /// The level of the compression; 0 means that the budget held nothing.
    #[getter]
    fn level(&self) -> usize {
        self.inner.spent.level
    }

    /// Its cost by the scheme's count.
    #[getter]
    fn bits(&self) -> f64 {
        self.inner.spent.bits.0
    }

    /// Entries that are sent.
    #[getter]
    fn entries(&self) -> usize {
        self.inner.own.entries()
    }

    /// The transmitted update: None, (indices, values), or an array of all entries.
    #[getter]
    fn own<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match &self.inner.own {
            Compressed::Sparse(SparseUpdate { indices, values }) => {
                let values = match values {
                    Values::Shared(value) => vec![*value; indices.len()],
                    Values::Each(values) => values.clone(),
                    Values::Grid(grid) => grid.values().collect(),
                };
                let pair = (numbers(py, indices.iter().copied()), PyArray1::from_vec(py, values));
                Some(PyTuple::new(py, [pair.0.into_any(), pair.1.into_any()])?.into_any())
            }
            Compressed::Dense(values) => Some(PyArray1::from_slice(py, values).into_any()),
            _ => None,
        })
    }

    /// The transmitted update, written out as `dim` entries: a node that keeps a residual subtracts it.
    fn dense<'py>(&self, py: Python<'py>, dim: usize) -> PyResult<Bound<'py, PyArray1<f32>>> {
        self.inner.own.check(dim).map_err(|problem| PyValueError::new_err(format!("dim: {problem}")))?;
        let mut dense = vec![0.0; dim];
        self.inner.own.add_to(&mut dense, 1.0);
        Ok(PyArray1::from_vec(py, dense))
    }

    /// The update as the server decodes it.
    fn upload(&self, device: &Bound<'_, PyAny>) -> PyResult<Upload> {
        let device = whole("device", device, 0..=u64::from(u32::MAX))? as u32;
        let (payload, Spent { bits, level, .. }) = (self.inner.payload.clone(), self.inner.spent);
        Ok(Upload { device, payload, level, bits: bits.0, entries: self.inner.own.entries(), lost: false })
    }
}

/// The number of a device.
pub fn device_of(value: &Bound<'_, PyAny>) -> PyResult<DeviceId> {
    whole("device", value, 0..=u64::from(u32::MAX)).map(|device| DeviceId(device as u32))
}

/// The reports called `names`.
pub fn asks_named(names: &[String]) -> PyResult<Vec<Ask>> {
    names.iter().map(|ask| ask_named("asks", ask)).collect()
}

/// The report called `name`.
pub fn ask_named(argument: &str, name: &str) -> PyResult<Ask> {
    Ask::named(name).ok_or_else(|| {
        let known: Vec<&str> = Ask::ALL.iter().map(|ask| ask.name()).collect();
        PyValueError::new_err(format!("{argument}: must be one of {known:?}, but is {name:?}"))
    })
}

/// The layers of a model, as given.
pub fn shapes(layers: &[(usize, usize)]) -> Vec<Shape> {
    layers.iter().map(|&(rows, cols)| Shape { rows, cols }).collect()
}

/// Refuses layers that are not those of a vector of `dim` numbers; no layers are those of any.
pub fn check_layers(shapes: &[Shape], dim: usize, name: &str) -> PyResult<()> {
    let numbers = shapes.iter().fold(0usize, |sum, shape| sum.saturating_add(shape.len()));
    if shapes.is_empty() || numbers == dim {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("layers: have {numbers} numbers together, but {name} has {dim}")))
}
