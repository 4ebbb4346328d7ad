//! The server of rounds on other people's nodes.

use crate::arguments::{number, real, whole};
use crate::arrays::{float32_rows, float32s, indices, not_negative};
use crate::config::read;
use crate::errors::exception;
use crate::links::Links;
use crate::messages::{Call, Grant, Upload, check_layers, device_of, shapes};
use crate::parts::{Part, Raised, collect};
use crate::saved::{self, Saved};
use crate::simulation::{in_use, json};
use crate::table::{Table, rounds, transmissions};
use fedlink::base::units::DeviceId;
use fedlink::learn::task::Evaluation;
use fedlink::radio::Known;
use fedlink::record::{History, Training};
use fedlink::schedule::Reports;
use fedlink::system::server::{self, Message};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, MutexGuard};

/// The server of rounds on nodes; `fedlink.Server` is made of it.
#[pyclass(frozen, module = "fedlink._fedlink", subclass)]
pub struct Server {
    raised: Raised,
    state: Mutex<State>,
}

struct State {
    inner: server::Server,
    history: History,
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (name, text, settings, theta0, samples, parts, layers))]
    #[expect(clippy::too_many_arguments, reason = "`fedlink.Server` has them as keywords")]
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
        let inner = py.detach(|| server::Server::of(&spec, theta0, samples));
        let inner = inner.map_err(|error| raised.or(exception(error)))?.with_shapes(shapes);
        Ok(Self { raised, state: Mutex::new(State { inner, history: History::default() }) })
    }

    /// M, the number of devices.
    #[getter]
    fn devices(&self) -> PyResult<usize> {
        Ok(self.state()?.inner.radio().devices())
    }

    /// K, the largest number of devices scheduled in a round.
    #[getter]
    fn k(&self) -> PyResult<usize> {
        Ok(self.state()?.inner.radio().k())
    }

    /// d, the number of parameters.
    #[getter]
    fn dim(&self) -> PyResult<usize> {
        Ok(self.state()?.inner.theta().len())
    }

    /// n, channel symbols in a round.
    #[getter]
    fn symbols(&self) -> PyResult<u64> {
        Ok(self.state()?.inner.radio().band().symbols)
    }

    /// P, the power of a scheduled device over a link of its mean gain: M·P̄/K unless radio.power_policy is
    /// another. Where devices differ it is the first one's; links(t).powers has all.
    #[getter]
    fn power(&self) -> PyResult<f64> {
        Ok(self.state()?.inner.radio().power().0)
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
        Ok(self.state()?.inner.asks().iter().map(|ask| ask.name()).collect())
    }

    /// θ now, a copy.
    #[getter]
    fn theta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        Ok(PyArray1::from_slice(py, self.state()?.inner.theta()))
    }

    /// Devices that the audit has excluded.
    #[getter]
    fn excluded(&self) -> PyResult<Vec<u32>> {
        Ok(self.state()?.inner.excluded().iter().map(|device| device.0).collect())
    }

    /// Warnings on the run so far.
    #[getter]
    fn warnings(&self) -> PyResult<Vec<String>> {
        Ok(self.state()?.inner.warnings())
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

    /// The links of all devices in round `t` (from 0), as the radio is configured. It unpacks as the server's
    /// knowledge: gains, capacities.
    fn links(&self, py: Python<'_>, t: &Bound<'_, PyAny>) -> PyResult<Links> {
        let t = whole("t", t, 0..=u64::from(u32::MAX))?;
        let state = self.state()?;
        let links = Links::of(py, state.inner.radio(), t);
        match self.raised.take() {
            Some(error) => Err(error),
            None => links,
        }
    }

    /// Opens round `t`: the devices that must train, and the numbers to report. `present` are the devices
    /// that are there; `gains` and `capacities` (bits per symbol) of all devices take precedence over the
    /// configured radio. An open round is abandoned.
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
        let (devices, done) = (inner.radio().devices(), inner.rounds_done());
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
        Ok(Call::of(py, call.map_err(|error| self.raised.or(exception(error)))?))
    }

    /// Receives the answers of candidates, a row of `answers` for each of `devices`; the scheduled ones are
    /// granted their part of the band. `samples` are training samples by device, of those that give them only
    /// now; `gains` and `capacities` of all devices take precedence over those that the round began with.
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
        let asks = state.inner.asks().len();
        let devices: Vec<DeviceId> = indices("devices", devices)?.into_iter().map(DeviceId).collect();
        let values = float32_rows("answers", answers, devices.len(), asks)?;
        let reports = Reports::new(devices, asks, values);
        let inner = &mut state.inner;
        let granted = py.detach(move || inner.report(reports));
        let granted = granted.map_err(|error| self.raised.or(exception(error)))?;
        let radio = state.inner.radio();
        Ok(granted.iter().map(|one| Grant::of(one, radio)).collect())
    }

    /// Offers the share of a scheduled device that failed before it sent to a candidate that has trained: the
    /// one with the largest first report that is not scheduled. None if there is none.
    fn substitute(&self, device: &Bound<'_, PyAny>) -> PyResult<Option<Grant>> {
        let mut state = self.state()?;
        let other = state.inner.substitute(device_of(device)?).map_err(exception)?;
        Ok(other.map(|one| Grant::of(&one, state.inner.radio())))
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

    /// Receives the uploads of the scheduled devices; θ(t) becomes θ(t+1). Returns how each was handled, in
    /// the order of the grants: "used", "silent", "undecodable", "flagged" or "lost".
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

    /// Resumes from the bytes that `save` of a server with the same configuration returned.
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

impl Server {
    fn state(&self) -> PyResult<MutexGuard<'_, State>> {
        in_use(&self.state, "this server is in use by another thread")
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

/// Links that go before those of the configured radio, if any are given.
fn given_links(
    server: &server::Server,
    gains: Option<&Bound<'_, PyAny>>,
    capacities: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Known>> {
    let radio = server.radio();
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
