//! Rounds on other people's nodes: the server's half and a node's half.

use crate::arguments::{number, real, whole};
use crate::arrays::{float32_rows, float32s, indices, not_negative, numbers};
use crate::config::read;
use crate::errors::exception;
use crate::links::Links;
use crate::parts::{Part, Raised, collect};
use crate::saved::{self, Saved};
use crate::simulation::{in_use, json};
use crate::table::{Table, rounds, transmissions};
use fedlink::base::state::Persist;
use fedlink::base::units::{Bits, DeviceId, Shape};
use fedlink::compress::{Encoded as Compressed, SparseUpdate, Spent, Values};
use fedlink::learn::task::Evaluation;
use fedlink::radio::{Known, Radio};
use fedlink::record::{History, Training};
use fedlink::schedule::{Ask, Reports, Share};
use fedlink::system::device::{self, Request, Sender};
use fedlink::system::server::Scheduled;
use fedlink::system::session::{Message, Session as Inner};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::sync::{Mutex, MutexGuard};

/// The server's half of rounds on nodes; `fedlink.Session` is made of it.
#[pyclass(frozen, module = "fedlink._fedlink", subclass)]
pub struct Session {
    raised: Raised,
    state: Mutex<State>,
}

struct State {
    inner: Inner,
    history: History,
}

/// A round that has begun: who must train and report what.
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

/// The grant of a scheduled device in a round.
#[pyclass(frozen, get_all, module = "fedlink._fedlink")]
pub struct Grant {
    /// The device.
    device: u32,
    /// Its share of the symbols.
    symbols: f64,
    /// Its transmit power while it sends; watts if radio.bandwidth_hz is set.
    power: f64,
    /// How long it sends, in durations of a symbol.
    airtime: f64,
    /// How long it sends, in seconds; None without radio.bandwidth_hz.
    seconds: Option<f64>,
    /// The bits that it may send.
    budget: f64,
    /// Bits a symbol that its link carries.
    capacity: f64,
    /// The bit weight: its share of the bits is proportional to it.
    weight: f64,
    /// The weight of its update; None: as learn.aggregate specifies.
    share: Option<f64>,
}

#[pymethods]
impl Grant {
    fn __repr__(&self) -> String {
        format!("Grant(device={}, symbols={:.2}, budget={:.1})", self.device, self.symbols, self.budget)
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
    /// Whether nothing arrived.
    lost: bool,
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

/// The upload of a node.
#[pyclass(frozen, module = "fedlink._fedlink")]
pub struct Encoded {
    inner: device::Message,
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

    /// The update as it is sent: None, (indices, values), or an array of all entries.
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

    /// The update as it is sent, written out as `dim` entries: what a node that keeps a residual takes off.
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

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (name, text, settings, theta0, samples, parts, layers))]
    #[expect(clippy::too_many_arguments, reason = "`fedlink.Session` has them as keywords")]
    fn new(
        py: Python<'_>,
        name: &str,
        text: &str,
        settings: &Bound<'_, PyDict>,
        theta0: &Bound<'_, PyAny>,
        samples: Option<&Bound<'_, PyAny>>,
        parts: Vec<Part<'_>>,
        layers: Vec<(usize, usize)>,
    ) -> PyResult<Self> {
        let raised = Raised::default();
        let parts = collect(parts, &raised)?;
        let spec = read(name, text, settings, &parts).map_err(|error| raised.or(error))?;
        let theta0 = float32s("theta0", theta0)?;
        let samples = samples.map(|samples| sample_counts(samples, spec.data.devices)).transpose()?;
        let shapes = shapes(&layers);
        check_layers(&shapes, theta0.len(), "theta0")?;
        let inner = py.detach(|| Inner::of(&spec, theta0, samples));
        let inner = inner.map_err(|error| raised.or(exception(error)))?.with_shapes(shapes);
        Ok(Self { raised, state: Mutex::new(State { inner, history: History::default() }) })
    }

    /// M, the number of devices.
    #[getter]
    fn devices(&self) -> PyResult<usize> {
        Ok(self.state()?.inner.server().radio.devices())
    }

    /// K, the largest number of devices scheduled in a round.
    #[getter]
    fn k(&self) -> PyResult<usize> {
        Ok(self.state()?.inner.server().radio.k())
    }

    /// d, the number of parameters.
    #[getter]
    fn dim(&self) -> PyResult<usize> {
        Ok(self.state()?.inner.theta().len())
    }

    /// n, channel symbols in a round.
    #[getter]
    fn symbols(&self) -> PyResult<u64> {
        Ok(self.state()?.inner.server().radio.band().symbols)
    }

    /// P, what a scheduled device sends with over a link of its mean gain: M·P̄/K unless radio.power_policy
    /// is another. Where devices differ it is the first one's; links(t).powers has all.
    #[getter]
    fn power(&self) -> PyResult<f64> {
        Ok(self.state()?.inner.server().radio.power().0)
    }

    /// Rounds done so far: the t of the next.
    #[getter]
    fn rounds_done(&self) -> PyResult<u64> {
        Ok(self.state()?.inner.rounds_done())
    }

    /// T.
    #[getter]
    fn rounds_to_do(&self) -> PyResult<u64> {
        Ok(self.state()?.inner.spec().run.rounds)
    }

    /// The reports that the policy requests of every candidate, in all rounds.
    #[getter]
    fn asks(&self) -> PyResult<Vec<&'static str>> {
        Ok(self.state()?.inner.server().asks().iter().map(|ask| ask.name()).collect())
    }

    /// θ now, a copy.
    #[getter]
    fn theta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        Ok(PyArray1::from_slice(py, self.state()?.inner.theta()))
    }

    /// Devices that the audit has excluded.
    #[getter]
    fn excluded(&self) -> PyResult<Vec<u32>> {
        Ok(self.state()?.inner.server().excluded().iter().map(|device| device.0).collect())
    }

    /// Warnings on the run so far.
    #[getter]
    fn warnings(&self) -> PyResult<Vec<String>> {
        Ok(self.state()?.inner.server().warnings())
    }

    /// The digest of the run so far.
    #[getter]
    fn digest(&self) -> PyResult<String> {
        Ok(self.state()?.inner.outcome().digest)
    }

    /// The run in numbers, as JSON.
    fn outcome_json(&self) -> PyResult<String> {
        json(&self.state()?.inner.outcome())
    }

    /// The configuration as JSON, every default written out.
    fn config_json(&self) -> PyResult<String> {
        json(&self.state()?.inner.spec().resolved())
    }

    /// The links of all devices in round `t` (from 0), as the radio is configured. It unpacks as what the
    /// server knows: gains, capacities.
    fn links(&self, py: Python<'_>, t: &Bound<'_, PyAny>) -> PyResult<Links> {
        let t = whole("t", t, 0..=u64::from(u32::MAX))?;
        let state = self.state()?;
        let links = Links::of(py, &state.inner.server().radio, t);
        match self.raised.take() {
            Some(error) => Err(error),
            None => links,
        }
    }

    /// Opens round `t`: who must train, and what is asked. `present` are the devices that are there; `gains`
    /// and `capacities` (bits a symbol) of all devices go before the configured radio. An
    /// open round is abandoned.
    #[pyo3(signature = (t = None, present = None, gains = None, capacities = None))]
    fn begin(
        &self,
        py: Python<'_>,
        t: Option<&Bound<'_, PyAny>>,
        present: Option<&Bound<'_, PyAny>>,
        gains: Option<&Bound<'_, PyAny>>,
        capacities: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Call> {
        let mut state = self.state()?;
        let State { inner, history } = &mut *state;
        let (devices, done) = (inner.server().radio.devices(), inner.rounds_done());
        let t = t.map_or(Ok(done), |t| whole("t", t, done..=done))?;
        let present = present.map(|present| presence(present, devices)).transpose()?;
        let known = given_links(inner, gains, capacities)?;
        let call = py.detach(|| {
            if let Some(record) = inner.last() {
                history.add(inner.round_row(record), record);
            }
            inner.close();
            let known = known.unwrap_or_else(|| inner.links(t).known);
            let is_there = |device: DeviceId| present.as_ref().is_none_or(|present| present[device.index()]);
            inner.begin(t, known, is_there)
        });
        let call = call.map_err(|error| self.raised.or(exception(error)))?;
        Ok(Call {
            t: call.t,
            k: call.k,
            candidates: numbers(py, call.candidates.iter().map(|device| device.0)).unbind(),
            asks: call.asks.iter().map(|ask| ask.name()).collect(),
            alone_bits: PyArray1::from_vec(py, call.alone.iter().map(|bits| bits.0).collect()).unbind(),
            acknowledged: call.acknowledged,
        })
    }

    /// Takes what candidates answered, a row of `answers` for each of `devices`; the scheduled ones are
    /// granted their shares. `samples` are training samples by device, of those that give them only now;
    /// `gains` and `capacities` of all devices go before those that the round began with.
    #[pyo3(signature = (devices, answers, samples = None, gains = None, capacities = None))]
    fn report(
        &self,
        py: Python<'_>,
        devices: &Bound<'_, PyAny>,
        answers: &Bound<'_, PyAny>,
        samples: Option<&Bound<'_, PyDict>>,
        gains: Option<&Bound<'_, PyAny>>,
        capacities: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Grant>> {
        let mut state = self.state()?;
        for (device, count) in samples.into_iter().flatten() {
            let count = whole("samples", &count, 1..=u64::from(u32::MAX))?;
            state.inner.set_samples(device_of(&device)?, count as usize);
        }
        if let Some(known) = given_links(&state.inner, gains, capacities)? {
            state.inner.relink(known).map_err(exception)?;
        }
        let asks = state.inner.server().asks().len();
        let devices: Vec<DeviceId> = indices("devices", devices)?.into_iter().map(DeviceId).collect();
        let values = float32_rows("answers", answers, devices.len(), asks)?;
        let reports = Reports::new(devices, asks, values);
        let inner = &mut state.inner;
        let granted = py.detach(move || inner.report(reports));
        let granted = granted.map_err(|error| self.raised.or(exception(error)))?;
        let radio = &state.inner.server().radio;
        Ok(granted.iter().map(|one| Grant::of(one, radio)).collect())
    }

    /// Offers the share of a scheduled device that failed before it sent to a candidate that has trained: the
    /// one with the largest first report that is not scheduled. None if there is none.
    fn substitute(&self, device: &Bound<'_, PyAny>) -> PyResult<Option<Grant>> {
        let mut state = self.state()?;
        let other = state.inner.substitute(device_of(device)?).map_err(exception)?;
        Ok(other.map(|one| Grant::of(&one, &state.inner.server().radio)))
    }

    /// Resets h_m of a device that has lost its own half (compress.feedback = "ef21"): both sides start again
    /// from zero.
    fn forget(&self, device: &Bound<'_, PyAny>) -> PyResult<()> {
        self.state()?.inner.forget(device_of(device)?).map_err(exception)
    }

    /// The mean of the training losses of devices, weighted as the server weighs updates; 0 without any.
    fn mean_loss(&self, losses: &Bound<'_, PyDict>) -> PyResult<f64> {
        let loss =
            |(device, loss): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((device_of(&device)?, number(&loss)?));
        let losses: Vec<(DeviceId, f64)> = losses.iter().map(loss).collect::<PyResult<_>>()?;
        Ok(self.state()?.inner.training(&losses).loss)
    }

    /// Takes what arrived of the scheduled devices; θ(t) becomes θ(t+1). Returns how each was handled, in the
    /// order of the grants: "used", "silent", "undecodable", "flagged" or "lost".
    #[pyo3(signature = (uploads, trained, loss))]
    fn deliver(
        &self,
        py: Python<'_>,
        uploads: Vec<Upload>,
        trained: usize,
        #[pyo3(from_py_with = number)] loss: f64,
    ) -> PyResult<Vec<&'static str>> {
        let loss = real("loss", loss, |_| true, "a finite number")?;
        let mut state = self.state()?;
        let messages: Vec<Message> =
            uploads.iter().filter(|upload| !upload.lost).map(Upload::message).collect();
        let training = Training::new(trained, loss);
        let inner = &mut state.inner;
        let arrivals = py.detach(|| inner.deliver_messages(&messages, training));
        let arrivals = arrivals.map_err(|error| self.raised.or(exception(error)))?;
        Ok(arrivals.into_iter().map(fedlink::record::Arrival::name).collect())
    }

    /// Attaches an evaluation to the round that was delivered last.
    #[pyo3(signature = (accuracy, loss, metrics = None))]
    fn evaluated(
        &self,
        #[pyo3(from_py_with = number)] accuracy: f64,
        #[pyo3(from_py_with = number)] loss: f64,
        metrics: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let mut evaluation = Evaluation::new(accuracy, loss);
        for (name, value) in metrics.into_iter().flatten() {
            evaluation = evaluation.with(name.extract::<String>()?, number(&value)?);
        }
        self.state()?.inner.evaluated(evaluation).map_err(exception)
    }

    /// One row for each round.
    fn rounds(&self) -> PyResult<Table> {
        rounds(&self.state()?.all().rounds)
    }

    /// One row for each transmission.
    fn transmissions(&self) -> PyResult<Table> {
        transmissions(&self.state()?.all().transmissions)
    }

    /// All that the rounds to come depend on, and the records so far. An open round is not part of it.
    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut state = self.state()?;
        let inner = &mut state.inner;
        let written = py.detach(move || {
            let mut checkpoint = Vec::new();
            inner.checkpoint(&mut checkpoint).map(|()| checkpoint)
        });
        let checkpoint = written.map_err(|error| self.raised.or(saved::exception(&error)))?;
        Ok(PyBytes::new(py, &saved::pack(checkpoint, &state.all(), None)))
    }

    /// Resumes from what `save` of a session with the same configuration returned.
    fn load(&self, py: Python<'_>, saved: &[u8]) -> PyResult<()> {
        let mut state = self.state()?;
        let Saved { checkpoint, history, .. } = saved::unpack(saved)?;
        let inner = &mut state.inner;
        let restored = py.detach(move || inner.restore(std::io::Cursor::new(checkpoint)));
        restored.map_err(|error| self.raised.or(saved::exception(&error)))?;
        state.history = history;
        Ok(())
    }
}

impl Session {
    fn state(&self) -> PyResult<MutexGuard<'_, State>> {
        in_use(&self.state, "this session is in use by another thread")
    }
}

impl State {
    /// Every round so far, the last one too.
    fn all(&self) -> History {
        let mut all = self.history.clone();
        if let Some(record) = self.inner.last() {
            all.add(self.inner.round_row(record), record);
        }
        all
    }
}

impl Grant {
    fn of(scheduled: &Scheduled, radio: &Radio) -> Self {
        let Scheduled { device, grant, capacity, bit_weight, share, .. } = *scheduled;
        Self {
            device: device.0,
            symbols: grant.symbols.0,
            power: grant.power.0,
            airtime: grant.airtime.0,
            seconds: radio.budget().symbol_s().map(|symbol_s| grant.airtime.0 * symbol_s),
            budget: grant.budget.0,
            capacity,
            weight: bit_weight,
            share: if let Share::Weight(weight) = share { Some(weight) } else { None },
        }
    }
}

impl Upload {
    fn message(&self) -> Message<'_> {
        Message {
            device: DeviceId(self.device),
            payload: self.payload.as_deref(),
            spent: Spent::new(Bits(self.bits), self.level),
            entries: self.entries,
        }
    }
}

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
    /// One answer for each ask.
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
    /// it is sent, and answers `asks`. `alone_bits` is what the device could send with the whole band,
    /// `acknowledged` the round, from 1, of its last upload that the server has in its state of the device
    /// (compress.feedback = "ef21"). After an error the state is undefined: load an earlier one.
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

/// Checks the configuration of a run on nodes, and gives it as JSON with every default written out.
#[pyfunction]
pub fn check_nodes(
    name: &str,
    text: &str,
    settings: &Bound<'_, PyDict>,
    parts: Vec<Part<'_>>,
) -> PyResult<String> {
    let raised = Raised::default();
    let parts = collect(parts, &raised)?;
    let spec = read(name, text, settings, &parts).map_err(|error| raised.or(error))?;
    fedlink::system::build::check_nodes(&spec).map_err(|error| raised.or(exception(error)))?;
    json(&spec.resolved())
}

/// A device in a round.
fn sender(t: &Bound<'_, PyAny>, device: &Bound<'_, PyAny>) -> PyResult<Sender> {
    Ok(Sender { t: whole("t", t, 0..=u64::from(u32::MAX))?, device: device_of(device)? })
}

/// A number of bits.
fn bits(name: &str, value: f64) -> PyResult<Bits> {
    Ok(Bits(real(name, value, |x| x >= 0.0, "a finite number of at least 0")?))
}

fn asks_named(names: &[String]) -> PyResult<Vec<Ask>> {
    names.iter().map(|ask| ask_named("asks", ask)).collect()
}

/// One of the things that a policy can ask.
pub fn ask_named(argument: &str, name: &str) -> PyResult<Ask> {
    Ask::named(name).ok_or_else(|| {
        let known: Vec<&str> = Ask::ALL.iter().map(|ask| ask.name()).collect();
        PyValueError::new_err(format!("{argument}: must be one of {known:?}, but is {name:?}"))
    })
}

/// The layers of a model, as they were given.
fn shapes(layers: &[(usize, usize)]) -> Vec<Shape> {
    layers.iter().map(|&(rows, cols)| Shape { rows, cols }).collect()
}

/// Refuses layers that are not those of a vector of `dim` numbers; no layers are those of any.
fn check_layers(shapes: &[Shape], dim: usize, name: &str) -> PyResult<()> {
    let numbers = shapes.iter().fold(0usize, |sum, shape| sum.saturating_add(shape.len()));
    if shapes.is_empty() || numbers == dim {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("layers: have {numbers} numbers together, but {name} has {dim}")))
}

fn device_of(value: &Bound<'_, PyAny>) -> PyResult<DeviceId> {
    whole("device", value, 0..=u64::from(u32::MAX)).map(|device| DeviceId(device as u32))
}

/// Links that go before those of the configured radio, if any are given.
fn given_links(
    session: &Inner,
    gains: Option<&Bound<'_, PyAny>>,
    capacities: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Known>> {
    let radio = &session.server().radio;
    match (gains, capacities) {
        (None, None) => Ok(None),
        (Some(gains), Some(capacities)) => {
            let [gains, capacities] = [("gains", gains), ("capacities", capacities)]
                .map(|(name, values)| one_each(name, not_negative(name, values)?, radio.devices()));
            Ok(Some(Known::new(gains?, capacities?, radio.power())))
        }
        _ => Err(PyValueError::new_err("gains, capacities: give both, or none of them")),
    }
}

fn one_each<T>(name: &str, values: Vec<T>, devices: usize) -> PyResult<Vec<T>> {
    if values.len() == devices {
        return Ok(values);
    }
    Err(PyValueError::new_err(format!("{name}: has {} entries, but data.devices is {devices}", values.len())))
}

fn sample_counts(samples: &Bound<'_, PyAny>, devices: u64) -> PyResult<Vec<usize>> {
    let samples = one_each("samples", indices("samples", samples)?, devices as usize)?;
    if let Some(m) = samples.iter().position(|count| *count == 0) {
        return Err(PyValueError::new_err(format!("samples: device {m} has none; each needs at least one")));
    }
    Ok(samples.into_iter().map(|count| count as usize).collect())
}

fn presence(present: &Bound<'_, PyAny>, devices: usize) -> PyResult<Vec<bool>> {
    let mut there = vec![false; devices];
    for device in indices("present", present)? {
        let Some(one) = there.get_mut(device as usize) else {
            return Err(PyValueError::new_err(format!(
                "present: there is no device {device} among {devices}"
            )));
        };
        *one = true;
    }
    Ok(there)
}
