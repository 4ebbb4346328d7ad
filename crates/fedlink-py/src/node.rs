//! A node's half of a round.

use crate::arguments::{number, real, whole};
use crate::arrays::float32s;
use crate::config::read;
use crate::errors::exception;
use crate::messages::{Encoded, asks_named, check_layers, device_of, shapes};
use crate::parts::{Part, Raised, collect};
use crate::simulation::in_use;
use fedlink::base::state::Persist;
use fedlink::base::units::{Bits, Shape};
use fedlink::system::device::{self, Request, Sender};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, MutexGuard};

/// A node's half of a round; `fedlink.Encoder` is made of it.
#[pyclass(frozen, module = "fedlink._fedlink", subclass)]
pub struct Encoder {
    raised: Raised,
    inner: device::Encoder,
    shapes: Vec<Shape>,
}

#[pymethods]
impl Encoder {
    #[new]
    fn new(
        name: &str,
        text: &str,
        settings: &Bound<'_, PyDict>,
        parts: Vec<Part<'_>>,
        layers: Vec<(usize, usize)>,
    ) -> PyResult<Self> {
        let raised = Raised::default();
        let parts = collect(parts, &raised)?;
        let spec = read(name, text, settings, &parts).map_err(|error| raised.or(error))?;
        let inner = device::Encoder::of(&spec).map_err(|error| raised.or(exception(error)))?;
        let shapes = shapes(&layers);
        Ok(Self { raised, inner: inner.with_shapes(shapes.clone()), shapes })
    }

    /// The reports of a device on its update and training loss in round `t` (from 0) for `asks`;
    /// `alone_bits` are the bits that it could send with the whole band.
    #[expect(clippy::too_many_arguments, reason = "a report is about all of them")]
    fn report<'py>(
        &self,
        py: Python<'py>,
        asks: Vec<String>,
        update: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = number)] loss: f64,
        #[pyo3(from_py_with = number)] alone_bits: f64,
        t: &Bound<'py, PyAny>,
        device: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let update = float32s("update", update)?;
        check_layers(&self.shapes, update.len(), "update")?;
        let asks = asks_named(&asks)?;
        let request = Request {
            sender: sender(t, device)?,
            asks: &asks,
            alone: bits("alone_bits", alone_bits)?,
            acknowledged: None,
        };
        let answers = py.detach(|| self.inner.answers(&request, &update, loss));
        let answers = answers.map_err(|error| self.raised.or(exception(error)))?;
        Ok(PyArray1::from_vec(py, answers))
    }

    /// The upload of a device for its update in round `t` (from 0) within `budget` bits.
    fn encode(
        &self,
        py: Python<'_>,
        update: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number)] budget: f64,
        t: &Bound<'_, PyAny>,
        device: &Bound<'_, PyAny>,
    ) -> PyResult<Encoded> {
        let update = float32s("update", update)?;
        check_layers(&self.shapes, update.len(), "update")?;
        let (budget, sender) = (bits("budget", budget)?, sender(t, device)?);
        let sent = py.detach(|| self.inner.message(&update, budget, sender));
        Ok(Encoded { inner: sent.map_err(|error| self.raised.or(exception(error)))? })
    }
}

/// The report of a device.
#[pyclass(frozen, get_all, module = "fedlink._fedlink")]
pub struct Report {
    /// One answer per requested number.
    answers: Py<PyArray1<f32>>,
    /// Whether the device has lost the state that the server acknowledged: the server must forget it too.
    lost_state: bool,
}

/// One device on a node; `fedlink.Device` is made of it.
#[pyclass(frozen, module = "fedlink._fedlink", subclass)]
pub struct Device {
    raised: Raised,
    inner: Mutex<device::Device>,
    shapes: Vec<Shape>,
}

#[pymethods]
impl Device {
    #[new]
    fn new(
        name: &str,
        text: &str,
        settings: &Bound<'_, PyDict>,
        parts: Vec<Part<'_>>,
        layers: Vec<(usize, usize)>,
    ) -> PyResult<Self> {
        let raised = Raised::default();
        let parts = collect(parts, &raised)?;
        let spec = read(name, text, settings, &parts).map_err(|error| raised.or(error))?;
        let shapes = shapes(&layers);
        let inner = device::Device::new(&spec, shapes.clone());
        let inner = Mutex::new(inner.map_err(|error| raised.or(exception(error)))?);
        Ok(Self { raised, inner, shapes })
    }

    /// The round (from 0) of the update that waits to be sent; None if no update waits.
    #[getter]
    fn waiting(&self) -> PyResult<Option<u64>> {
        Ok(self.state()?.waiting())
    }

    /// Adds error feedback to the update of device number `device` in round `t` (from 0), keeps the sum until
    /// it is sent, and answers `asks`. `alone_bits` are the bits that the device could send with the whole
    /// band, `acknowledged` the round, from 1, of its last upload that the server has in its state of the
    /// device (compress.feedback = "ef21"). After an error the state is undefined: load an earlier one.
    #[pyo3(signature = (asks, update, loss, alone_bits, t, device, acknowledged = None))]
    #[expect(clippy::too_many_arguments, reason = "a report is about all of them")]
    fn report(
        &self,
        py: Python<'_>,
        asks: Vec<String>,
        update: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number)] loss: f64,
        #[pyo3(from_py_with = number)] alone_bits: f64,
        t: &Bound<'_, PyAny>,
        device: &Bound<'_, PyAny>,
        acknowledged: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Report> {
        let update = float32s("update", update)?;
        check_layers(&self.shapes, update.len(), "update")?;
        let asks = asks_named(&asks)?;
        let round = |round| whole("acknowledged", round, 0..=u64::from(u32::MAX));
        let request = Request {
            sender: sender(t, device)?,
            asks: &asks,
            alone: bits("alone_bits", alone_bits)?,
            acknowledged: acknowledged.map(round).transpose()?,
        };
        let mut inner = self.state()?;
        let inner = &mut *inner;
        let report = py.detach(|| inner.report(&request, update, loss));
        let report = report.map_err(|error| self.raised.or(exception(error)))?;
        Ok(Report { answers: PyArray1::from_vec(py, report.answers).unbind(), lost_state: report.lost_state })
    }

    /// Compresses the update that waits, within `budget` bits.
    fn send(&self, py: Python<'_>, #[pyo3(from_py_with = number)] budget: f64) -> PyResult<Encoded> {
        let budget = bits("budget", budget)?;
        let mut inner = self.state()?;
        let inner = &mut *inner;
        let sent = py.detach(|| inner.send(budget));
        Ok(Encoded { inner: sent.map_err(|error| self.raised.or(exception(error)))? })
    }

    /// Notes whether the last upload arrived. If it did not, the device is as one that was not scheduled.
    /// With compress.feedback = "ef21" the next `acknowledged` decides in place of this.
    fn settle(&self, delivered: bool) -> PyResult<()> {
        self.state()?.settle(delivered);
        Ok(())
    }

    /// The state of the device between messages.
    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.state()?.save().0))
    }

    /// Resumes from the bytes that `save` of a device of the same run returned; empty bytes are a device that
    /// has sent nothing.
    fn load(&self, saved: &[u8]) -> PyResult<()> {
        let loaded = self.state()?.load(fedlink::base::state::State(saved.to_vec()));
        loaded.map_err(|error| PyValueError::new_err(format!("saved: is not the state of a device: {error}")))
    }
}

impl Device {
    fn state(&self) -> PyResult<MutexGuard<'_, device::Device>> {
        in_use(&self.inner, "this device is in use by another thread")
    }
}

/// A device in a round.
fn sender(t: &Bound<'_, PyAny>, device: &Bound<'_, PyAny>) -> PyResult<Sender> {
    Ok(Sender { t: whole("t", t, 0..=u64::from(u32::MAX))?, device: device_of(device)? })
}

/// A number of bits.
fn bits(name: &str, value: f64) -> PyResult<Bits> {
    Ok(Bits(real(name, value, |x| x >= 0.0, "a finite number of at least 0")?))
}
