//! Fading laws that are written in Python, and gains as an array.

use super::{Calls, method, type_of};
use crate::arguments::whole;
use crate::random::generator;
use fedlink::base::rng::{Purpose, stream};
use fedlink::base::units::DeviceId;
use fedlink::parts::Scope;
use fedlink::radio::fading::Fading;
use fedlink::spec::ConfigError;
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// A fading law written in Python.
pub struct PythonFading {
    object: Py<PyAny>,
    antennas: usize,
    /// The seed of the run, if `gain` takes a generator.
    seed: Option<u64>,
    calls: Calls,
}

impl PythonFading {
    pub fn new(object: Bound<'_, PyAny>, calls: Calls, scope: &Scope) -> PyResult<Self> {
        let antennas = whole(&method(&object, "antennas"), &object.getattr("antennas")?, 1..=1024)? as usize;
        let draws = object.py().import("fedlink._parts")?.call_method1("draws", (&object,))?.is_truthy()?;
        Ok(Self { object: object.unbind(), antennas, seed: draws.then_some(scope.seed), calls })
    }
}

impl Fading for PythonFading {
    fn gain(&self, t: u64, device: DeviceId) -> f64 {
        self.calls.ask(0.0, |py| {
            let object = self.object.bind(py);
            let answer = match self.seed {
                Some(seed) => {
                    let rng = generator(py, &mut stream(seed, Purpose::Channel, t, device.0.into()))?;
                    object.call_method1("gain", (t, device.0, rng))?
                }
                None => object.call_method1("gain", (t, device.0))?,
            };
            let gain = answer.extract::<f64>().map_err(|_| {
                let (name, given) = (method(object, "gain"), type_of(&answer));
                PyTypeError::new_err(format!("{name}: must return a number, but returned {given}"))
            })?;
            if !(gain.is_finite() && gain >= 0.0) {
                let name = method(object, "gain");
                return Err(PyValueError::new_err(format!(
                    "{name}: must return a finite number of at least 0, but returned {gain} for t = {t}, \
                     device {device}"
                )));
            }
            Ok(gain)
        })
    }

    fn antennas(&self) -> usize {
        self.antennas
    }

    fn failure(&self) -> Option<String> {
        self.calls.failure()
    }
}

/// Gains as an array of M × T or T × M numbers, perhaps of several seeds.
pub struct Trace {
    /// The gains of each seed, one after the other.
    gains: Vec<f64>,
    shape: [usize; 2],
    /// The number of seeds; none: all seeds have the same gains.
    seeds: Option<usize>,
}

impl Trace {
    pub fn new(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let wrong = || {
            PyTypeError::new_err(
                "fading: must be a fedlink.Fading or a float64 array of M × T or M × T × seeds gains",
            )
        };
        let array = array.cast::<PyArrayDyn<f64>>().map_err(|_| wrong())?;
        let read = array.try_readonly()?;
        let (shape, seeds) = match *array.shape() {
            [rows, columns] => ([rows, columns], None),
            [rows, columns, seeds] if seeds > 0 => ([rows, columns], Some(seeds)),
            _ => return Err(wrong()),
        };
        let all = read.as_array();
        if let Some((index, gain)) = all.indexed_iter().find(|(_, gain)| !(gain.is_finite() && **gain >= 0.0))
        {
            let index: Vec<String> =
                numpy::ndarray::Dimension::slice(&index).iter().map(ToString::to_string).collect();
            return Err(PyValueError::new_err(format!(
                "fading: entry ({}) is {gain}, but must be finite and at least 0",
                index.join(", ")
            )));
        }
        let gains = match seeds {
            None => all.iter().copied().collect(),
            Some(seeds) => {
                let of_seed = |seed: usize| all.index_axis(numpy::ndarray::Axis(2), seed);
                (0..seeds).flat_map(|seed| of_seed(seed).iter().copied().collect::<Vec<f64>>()).collect()
            }
        };
        Ok(Self { gains, shape, seeds })
    }

    /// Whether there is a gain for every device in every round.
    fn check(&self, scope: &Scope) -> Result<(), ConfigError> {
        let (devices, rounds) = (scope.devices as usize, scope.rounds as usize);
        let [rows, columns] = self.shape;
        let of = if rows == devices { columns } else { rows };
        if rows != devices && columns != devices {
            let problem = format!(
                "the array of gains is {rows} × {columns}, but must be {devices} × {rounds} (data.devices × \
                 run.rounds)"
            );
            return Err(ConfigError::new("fading", problem));
        }
        if let Some(seeds) = self.seeds.filter(|seeds| scope.seed >= *seeds as u64) {
            let problem = format!(
                "the array has gains for {seeds} seeds, 0 to {}, but run.seed is {}",
                seeds - 1,
                scope.seed
            );
            return Err(ConfigError::new("fading", problem));
        }
        if of < rounds {
            let problem = format!("the array of gains ends after {of} rounds, but run.rounds is {rounds}");
            return Err(ConfigError::new("fading", problem));
        }
        Ok(())
    }
}

/// M × T, also where T is M.
impl Fading for ArrayFading {
    fn gain(&self, t: u64, device: DeviceId) -> f64 {
        let [rows, columns] = self.trace.shape;
        // A run has no rounds beyond the last; a later round begins again at the first.
        let t = (t % if self.by_device { columns } else { rows } as u64) as usize;
        let (row, column) = if self.by_device { (device.index(), t) } else { (t, device.index()) };
        self.trace.gains[self.first + row * columns + column]
    }
}

/// The gains of one run.
pub struct ArrayFading {
    trace: Arc<Trace>,
    /// Whether a row is a device.
    by_device: bool,
    /// The index of the first gain of the seed.
    first: usize,
}

impl ArrayFading {
    pub fn new(trace: &Arc<Trace>, scope: &Scope) -> Result<Self, ConfigError> {
        trace.check(scope)?;
        let [rows, columns] = trace.shape;
        let first = trace.seeds.map_or(0, |_| scope.seed as usize * rows * columns);
        Ok(Self { trace: Arc::clone(trace), by_device: rows as u64 == scope.devices, first })
    }
}
