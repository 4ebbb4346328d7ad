//! Policies that are written in Python, and the values that they read.

use super::{Calls, method, type_of};
use crate::arrays::{indices, numbers, reals};
use crate::random::generator;
use crate::table::{Table, transmissions};
use fedlink::base::rng::{Purpose, stream};
use fedlink::base::state::{Persist, State, StateError};
use fedlink::base::units::DeviceId;
use fedlink::parts::Scope;
use fedlink::record::{Quantity, RoundRecord};
use fedlink::schedule::{self, Ask, Entries, Pick, Policy, Schedule, Weight};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::sync::{Mutex, PoisonError};

/// The view of a round for a policy.
#[pyclass(frozen, module = "fedlink._fedlink")]
pub struct View {
    /// The round, counted from 0.
    #[pyo3(get)]
    t: u64,
    /// K, the largest number of devices that may be scheduled.
    #[pyo3(get)]
    k: usize,
    /// M, the number of devices.
    #[pyo3(get)]
    devices: usize,
    /// d, the entries of an update.
    #[pyo3(get)]
    dim: usize,
    /// n, the symbols of a round.
    #[pyo3(get)]
    symbols: u64,
    /// P̄, the average power that a device may spend, in the unit of the noise variance.
    #[pyo3(get)]
    average_power: f64,
    /// P, the power of a scheduled device; the mean of `powers` where devices differ.
    #[pyo3(get)]
    power: f64,
    /// P of every device.
    #[pyo3(get)]
    powers: Py<PyArray1<f64>>,
    /// σ², the noise variance.
    #[pyo3(get)]
    noise: f64,
    /// The power gain of every device's link; 0 if it may not send.
    #[pyo3(get)]
    gains: Py<PyArray1<f64>>,
    /// Bits per symbol that every device's link carries; 0 if it may not send.
    #[pyo3(get)]
    capacities: Py<PyArray1<f64>>,
    /// The SNR that the rate of every device's link is chosen for, a ratio; 0 if it may not send, NaN where
    /// nodes declare their rates.
    #[pyo3(get)]
    snrs: Py<PyArray1<f64>>,
    /// The number of rounds in which each device was scheduled so far.
    #[pyo3(get)]
    scheduled: Py<PyArray1<i64>>,
    /// Rounds since each device was scheduled: 0 if that was the round before, t if it never was.
    #[pyo3(get)]
    ages: Py<PyArray1<i64>>,
    /// The training loss that each device reported last; NaN if it has reported none.
    #[pyo3(get)]
    losses: Py<PyArray1<f64>>,
    /// Whether each device may send: it is there, not excluded, and within its participation cap.
    #[pyo3(get)]
    may_send: Py<PyArray1<bool>>,
    seed: u64,
    samples: Vec<u64>,
    /// C of every device for k = 1, 2 …, K, one after another; empty unless the policy sets the number of
    /// devices that share a round.
    capacities_at: Vec<f64>,
    /// The numbers that the policy has noted: a quantity with a value for each device.
    noted: Mutex<Vec<(Quantity, Vec<f64>)>>,
}

/// More numbers are not computed for `capacity_at`.
const MAX_CAPACITIES: usize = 10_000_000;

impl View {
    fn of<'py>(py: Python<'py>, view: &schedule::View, seed: u64, at: bool) -> PyResult<Bound<'py, Self>> {
        let devices = view.links.devices();
        let all = || DeviceId::all(devices);
        let table = view.devices;
        let last_loss = |device| table.last_loss(device).map_or(f64::NAN, f64::from);
        let view = Self {
            t: view.t,
            k: view.k,
            devices,
            dim: view.dim,
            symbols: view.symbols,
            average_power: view.average_power.0,
            power: mean(&view.links.powers),
            powers: PyArray1::from_slice(py, &view.links.powers).unbind(),
            noise: view.noise,
            gains: PyArray1::from_slice(py, &view.links.gains).unbind(),
            capacities: PyArray1::from_slice(py, &view.links.capacities).unbind(),
            snrs: PyArray1::from_vec(py, all().map(|m| view.links.snr(m).unwrap_or(f64::NAN)).collect())
                .unbind(),
            scheduled: numbers(py, table.all_scheduled().iter().copied()).unbind(),
            ages: PyArray1::from_vec(py, all().map(|m| table.age(m, view.t) as i64).collect()).unbind(),
            losses: PyArray1::from_vec(py, all().map(last_loss).collect()).unbind(),
            may_send: PyArray1::from_vec(py, all().map(|m| table.may_send(m)).collect()).unbind(),
            seed,
            samples: all().map(|device| view.samples(device) as u64).collect(),
            capacities_at: if at && devices.saturating_mul(view.k) <= MAX_CAPACITIES {
                (1..=view.k).flat_map(|k| all().map(move |device| view.capacity_at(device, k))).collect()
            } else {
                Vec::new()
            },
            noted: Mutex::default(),
        };
        Bound::new(py, view)
    }

    /// Passes on what the policy has noted; a device without a number has NaN.
    fn pass_notes(&self, view: &schedule::View) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        for (quantity, values) in noted.drain(..) {
            let known = DeviceId::all(values.len()).zip(values).filter(|(_, value)| !value.is_nan());
            view.note(quantity, known);
        }
    }
}

/// The mean of some numbers, the number itself if all are the same.
fn mean(numbers: &[f64]) -> f64 {
    match numbers {
        [first, rest @ ..] if rest.iter().all(|number| number == first) => *first,
        _ => numbers.iter().sum::<f64>() / numbers.len().max(1) as f64,
    }
}

#[pymethods]
impl View {
    /// All devices that may send, ascending.
    #[getter]
    fn eligible<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let may_send = self.may_send.bind(py).try_readonly()?;
        let devices = may_send
            .as_array()
            .iter()
            .enumerate()
            .filter(|(_, may)| **may)
            .map(|(m, _)| m as u32)
            .collect::<Vec<_>>();
        Ok(numbers(py, devices))
    }

    /// The number of training samples of a device.
    fn samples(&self, device: usize) -> PyResult<u64> {
        self.samples.get(device).copied().ok_or_else(|| {
            PyIndexError::new_err(format!("device: must be below {}, but is {device}", self.samples.len()))
        })
    }

    /// Bits per symbol that a device's link would carry if `k` devices, 1 to view.k, shared the power of the
    /// round; for policies that define round_k.
    fn capacity_at(&self, device: usize, k: usize) -> PyResult<f64> {
        if self.capacities_at.is_empty() {
            let known = format!("at most {MAX_CAPACITIES} devices times view.k");
            return Err(PyValueError::new_err(format!(
                "capacity_at: is there for policies that define round_k(self, view), and for {known}"
            )));
        }
        let index = (k.wrapping_sub(1)).checked_mul(self.devices).and_then(|start| start.checked_add(device));
        let found = index.filter(|_| device < self.devices && (1..=self.k).contains(&k));
        found.and_then(|index| self.capacities_at.get(index)).copied().ok_or_else(|| {
            PyIndexError::new_err(format!(
                "capacity_at: device must be below {} and k in 1..={}, but they are {device} and {k}",
                self.devices, self.k
            ))
        })
    }

    /// Notes numbers that the policy decides by in this round, one for each of the M devices (NaN: none) or
    /// one for all: `--log-rounds all` and `simulate(log_rounds="all")` have them. `name` is one of "score",
    /// "probability", "threshold", "queue" and "order".
    fn note(&self, name: &str, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(quantity) = Quantity::ALL.into_iter().find(|quantity| quantity.name() == name) else {
            let known = Quantity::ALL.map(Quantity::name);
            return Err(PyValueError::new_err(format!(
                "note: name must be one of {known:?}, but is {name:?}"
            )));
        };
        let values = match values.extract::<f64>() {
            Ok(value) => vec![value; self.devices],
            Err(_) => reals("note: values", values)?,
        };
        if values.len() != self.devices {
            return Err(PyValueError::new_err(format!(
                "note: values must be one number, or one for each of the {} devices, but are {}",
                self.devices,
                values.len()
            )));
        }
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).push((quantity, values));
        Ok(())
    }

    /// A numpy.random.Generator for this round, a function of (run.seed, t, label): another
    /// label is another stream.
    #[pyo3(signature = (label = 0))]
    fn rng<'py>(&self, py: Python<'py>, label: u64) -> PyResult<Bound<'py, PyAny>> {
        generator(py, &mut stream(self.seed, Purpose::Schedule, self.t, label))
    }

    /// A numpy.random.Generator that is the same in all rounds of a run, a function of (run.seed, label).
    #[pyo3(signature = (label = 0))]
    fn fixed_rng<'py>(&self, py: Python<'py>, label: u64) -> PyResult<Bound<'py, PyAny>> {
        generator(py, &mut stream(self.seed, Purpose::Schedule, u64::MAX, label))
    }
}

/// The reports of the candidates: `reports["norm"]` is a column, `values` the table of one row for each
/// of `devices`.
#[pyclass(frozen, module = "fedlink._fedlink")]
pub struct Reports {
    /// The candidates that reported.
    #[pyo3(get)]
    devices: Py<PyArray1<i64>>,
    /// The requested quantities.
    #[pyo3(get)]
    asks: Vec<&'static str>,
    /// The answers: a row for each device, a column for each requested number.
    #[pyo3(get)]
    values: Py<PyArray2<f32>>,
}

impl Reports {
    fn of<'py>(py: Python<'py>, reports: &schedule::Reports, asks: &[Ask]) -> PyResult<Bound<'py, Self>> {
        let values: Vec<f32> = (0..reports.len()).flat_map(|row| reports.row(row).iter().copied()).collect();
        let values = PyArray1::from_vec(py, values).reshape([reports.len(), asks.len()])?;
        let devices = numbers(py, reports.devices.iter().map(|device| device.0));
        let asks = asks.iter().map(|ask| ask.name()).collect();
        Bound::new(py, Self { devices: devices.unbind(), asks, values: values.unbind() })
    }
}

#[pymethods]
impl Reports {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.devices.bind(py).as_any().len()
    }

    /// The answers to one request, in the order of the devices.
    fn __getitem__<'py>(&self, py: Python<'py>, ask: &str) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let column = self.asks.iter().position(|known| *known == ask).ok_or_else(|| {
            PyKeyError::new_err(format!("{ask:?} was not requested; asks() returns {:?}", self.asks))
        })?;
        let values = self.values.bind(py).try_readonly()?;
        Ok(PyArray1::from_vec(py, values.as_array().column(column).to_vec()))
    }
}

/// A round as a policy's `observe` gets it.
#[pyclass(frozen, module = "fedlink._fedlink")]
pub struct Record {
    /// Rounds done, this one included.
    #[pyo3(get)]
    round: u64,
    /// Devices that trained.
    #[pyo3(get)]
    trained: usize,
    /// Their mean training loss.
    #[pyo3(get)]
    loss: f64,
    /// The transmissions and their results: one row for each scheduled device.
    #[pyo3(get)]
    transmissions: Py<Table>,
    /// The devices that were not scheduled, with their links and reports, in the same columns.
    #[pyo3(get)]
    others: Py<Table>,
}

/// A policy written in Python.
pub struct PythonPolicy {
    object: Py<PyAny>,
    calls: Calls,
    asks: Vec<Ask>,
    observes: bool,
    receives: bool,
    sets_k: bool,
    dim: usize,
    seed: u64,
}

impl PythonPolicy {
    pub fn new(object: Bound<'_, PyAny>, calls: Calls, scope: &Scope) -> PyResult<Self> {
        let py = object.py();
        let asks = asks(&object)?;
        let base = py.import("fedlink")?.getattr("Policy")?;
        let defines = |name: &str| -> PyResult<bool> {
            // An object that is no subclass may lack optional methods.
            let Ok(own) = object.get_type().getattr(name) else { return Ok(false) };
            Ok(!own.is(&base.getattr(name)?))
        };
        let (observes, receives, sets_k) = (defines("observe")?, defines("receive")?, defines("round_k")?);
        let (object, seed) = (object.unbind(), scope.seed);
        Ok(Self { asks, observes, receives, sets_k, dim: 0, object, calls, seed })
    }
}

/// The reports that a policy requests of every candidate.
fn asks(object: &Bound<'_, PyAny>) -> PyResult<Vec<Ask>> {
    let name = method(object, "asks");
    let answer = object.call_method0("asks")?;
    let names: Vec<String> = match answer.extract::<String>() {
        Ok(one) => vec![one],
        Err(_) => answer.extract().map_err(|_| {
            let given = type_of(&answer);
            PyTypeError::new_err(format!("{name}: must return a list of text, but returned {given}"))
        })?,
    };
    let ask = |ask: &String| {
        Ask::named(ask).ok_or_else(|| {
            let known: Vec<&str> = Ask::ALL.iter().map(|ask| ask.name()).collect();
            PyValueError::new_err(format!("{name}: must return some of {known:?}, but returned {ask:?}"))
        })
    };
    names.iter().map(ask).collect()
}

impl Policy for PythonPolicy {
    fn round_k(&mut self, view: &schedule::View) -> usize {
        if !self.sets_k {
            return view.k;
        }
        self.calls.ask(view.k, |py| {
            let object = self.object.bind(py);
            let answer = object.call_method1("round_k", (View::of(py, view, self.seed, true)?,))?;
            Ok(crate::arguments::whole(&method(object, "round_k"), &answer, 1..=view.k as u64)? as usize)
        })
    }

    fn candidates(&mut self, view: &schedule::View) -> Vec<DeviceId> {
        self.dim = view.dim;
        self.calls.ask(Vec::new(), |py| {
            let object = self.object.bind(py);
            let shown = View::of(py, view, self.seed, self.sets_k)?;
            let answer = object.call_method1("candidates", (&shown,))?;
            shown.get().pass_notes(view);
            Ok(indices(&method(object, "candidates"), &answer)?.into_iter().map(DeviceId).collect())
        })
    }

    fn asks(&self) -> &[Ask] {
        &self.asks
    }

    fn select(&mut self, view: &schedule::View, reports: &schedule::Reports) -> Schedule {
        self.calls.ask(Schedule::default(), |py| {
            let object = self.object.bind(py);
            let shown = View::of(py, view, self.seed, self.sets_k)?;
            let answer = object.call_method1("select", (&shown, Reports::of(py, reports, &self.asks)?))?;
            shown.get().pass_notes(view);
            read_schedule(&method(object, "select"), &answer)
        })
    }

    fn receive(&mut self, device: DeviceId, update: &dyn Entries) {
        if !self.receives {
            return;
        }
        let mut dense = vec![0.0f32; self.dim];
        update.visit(&mut |index, value| {
            if let Some(entry) = dense.get_mut(index as usize) {
                *entry = value;
            }
        });
        self.calls.ask((), |py| {
            let update = PyArray1::from_vec(py, dense);
            self.object.bind(py).call_method1("receive", (device.0, update)).map(drop)
        });
    }

    fn observes_all(&self) -> bool {
        self.observes
    }

    fn observe(&mut self, record: &RoundRecord) {
        if !self.observes {
            return;
        }
        self.calls.ask((), |py| {
            let record = Record {
                round: record.round,
                trained: record.training.devices,
                loss: record.training.loss,
                transmissions: Py::new(py, transmissions(&record.transmissions)?)?,
                others: Py::new(py, transmissions(&record.others)?)?,
            };
            self.object.bind(py).call_method1("observe", (record,)).map(drop)
        });
    }

    fn failure(&self) -> Option<String> {
        self.calls.failure()
    }
}

/// A schedule: (devices, bit weights), (devices, bit weights, weights), or picks.
fn read_schedule(name: &str, answer: &Bound<'_, PyAny>) -> PyResult<Schedule> {
    let wrong = |what: String| {
        Err(PyTypeError::new_err(format!(
            "{name}: must return (devices, bit_weights), (devices, bit_weights, weights) or a list of \
             fedlink.Pick, but returned {what}"
        )))
    };
    let items: Vec<Bound<'_, PyAny>> = match answer.extract() {
        Ok(items) if answer.is_instance_of::<PyTuple>() || answer.is_instance_of::<PyList>() => items,
        _ => return wrong(type_of(answer)),
    };
    let pick_class = answer.py().import("fedlink")?.getattr("Pick")?;
    if items.iter().all(|item| item.is_instance(&pick_class).unwrap_or(false)) {
        let pick = |item: &Bound<'_, PyAny>| {
            let device = crate::arguments::whole(name, &item.getattr("device")?, 0..=u64::from(u32::MAX))?;
            let weight = item.getattr("weight")?.extract::<Option<f64>>()?;
            let bit_weight = item.getattr("bit_weight")?.extract()?;
            let weight = weight.map_or(Weight::Rule, Weight::Own);
            Ok(Pick::new(DeviceId(device as u32), bit_weight).with_weight(weight))
        };
        return Ok(Schedule::new(items.iter().map(pick).collect::<PyResult<_>>()?));
    }
    let (devices, bit_weights, weights) = match &items[..] {
        [devices, bit_weights] => (devices, bit_weights, None),
        [devices, bit_weights, weights] => (devices, bit_weights, Some(weights)),
        _ => return wrong(format!("{} of {} items", type_of(answer), items.len())),
    };
    let devices = indices(&format!("{name}: devices"), devices)?;
    let bit_weights = reals(&format!("{name}: bit weights"), bit_weights)?;
    let weights = weights.map(|weights| reals(&format!("{name}: weights"), weights)).transpose()?;
    for (what, given) in
        [("bit weights", bit_weights.len()), ("weights", weights.as_ref().map_or(devices.len(), Vec::len))]
    {
        if given != devices.len() {
            return wrong(format!("{given} {what} for {} devices", devices.len()));
        }
    }
    let weight = |i: usize| weights.as_ref().map_or(Weight::Rule, |weights| Weight::Own(weights[i]));
    let pick = |(i, (device, bit_weight))| Pick::new(DeviceId(device), bit_weight).with_weight(weight(i));
    Ok(Schedule::new(devices.into_iter().zip(bit_weights).enumerate().map(pick).collect()))
}

impl Persist for PythonPolicy {
    fn save(&self) -> State {
        self.calls.ask(State::default(), |py| {
            let object = self.object.bind(py);
            let answer = object.call_method0("save")?;
            let bytes = answer.cast::<PyBytes>().map_err(|_| {
                let (name, given) = (method(object, "save"), type_of(&answer));
                PyTypeError::new_err(format!("{name}: must return bytes, but returned {given}"))
            })?;
            Ok(State(bytes.as_bytes().to_vec()))
        })
    }

    fn load(&mut self, state: State) -> Result<(), StateError> {
        let result = self.calls.ask(Ok(()), |py| {
            let object = self.object.bind(py);
            match object.call_method1("load", (PyBytes::new(py, &state.0),)) {
                Ok(_) => Ok(Ok(())),
                // A state that does not fit is no failure of the policy.
                Err(error) => Ok(Err(StateError(error.to_string()))),
            }
        });
        result.and_then(|()| self.calls.failure().map_or(Ok(()), |problem| Err(StateError(problem))))
    }
}
