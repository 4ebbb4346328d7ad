//! Custom parts that are written in Python.

mod compressor;
mod fading;
mod policy;
mod task;

pub use policy::{Record, Reports, View};
pub use task::{PythonTask, task_name};

use crate::arguments::to_python;
use crate::config::flat;
use compressor::PythonCompressor;
use fading::{ArrayFading, PythonFading, Trace};
use fedlink::compress::Compressor;
use fedlink::learn::task::Task;
use fedlink::parts::{Parts, Provenance, Scope};
use fedlink::radio::fading::Fading;
use fedlink::schedule::Policy;
use fedlink::spec::{ConfigError, Spec, kinds};
use policy::PythonPolicy;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toml::Table;

/// A part as Python passes it, a `Registered` of the package.
#[derive(FromPyObject)]
pub struct Part<'py> {
    /// "policy", "compressor", "fading", "trace", "data", "partition" or "task".
    kind: String,
    name: String,
    /// Where it comes from.
    origin: String,
    /// The function that makes it from its own table, or its data.
    make: Bound<'py, PyAny>,
    /// The keys of its own table; none: any.
    keys: Option<Vec<String>>,
    /// The defaults of those keys that a configuration can hold.
    defaults: Bound<'py, PyDict>,
    /// The texts that determine its behavior.
    texts: BTreeMap<String, String>,
    /// Whether it is made with the seed of the run, as the keyword `seed`.
    by_seed: bool,
    /// Whether all seeds get the same from it.
    ignores_seed: bool,
}

/// The first exception that any part of a run, or of several, raised. The library carries its text; the
/// caller that runs the rounds raises it again unchanged.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// The exception, if there is one.
    pub fn take(&self) -> Option<PyErr> {
        self.lock().take()
    }

    /// The exception, or else `otherwise`.
    pub fn or(&self, otherwise: PyErr) -> PyErr {
        self.take().unwrap_or(otherwise)
    }

    fn lock(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calls of one part of one run. After the first that fails none is made any more.
pub struct Calls {
    raised: Raised,
    failure: Mutex<Option<String>>,
}

impl Calls {
    pub fn new(raised: Raised) -> Self {
        Self { raised, failure: Mutex::new(None) }
    }

    /// The result of `call`, or `otherwise` if it fails or one has failed before.
    pub fn ask<R>(&self, otherwise: R, call: impl FnOnce(Python<'_>) -> PyResult<R>) -> R {
        if self.failure().is_some() {
            return otherwise;
        }
        Python::attach(|py| {
            call(py).unwrap_or_else(|error| {
                *self.lock() = Some(error.to_string());
                self.raised.lock().get_or_insert(error);
                otherwise
            })
        })
    }

    /// The reason why a call failed.
    pub fn failure(&self) -> Option<String> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parts that Python passes, each made anew for every run.
pub fn collect(given: Vec<Part<'_>>, raised: &Raised) -> PyResult<Parts> {
    let mut parts = Parts::default();
    for Part { kind, name, origin, make, keys, defaults, texts, by_seed, ignores_seed } in given {
        check_name(&kind, &name)?;
        let maker = Maker { make: Arc::new(make.clone().unbind()), by_seed, raised: raised.clone() };
        parts = match kind.as_str() {
            "policy" => parts.policy(&name, origin, move |own, scope| {
                let policy =
                    maker.make(own, scope, |object, calls| PythonPolicy::new(object, calls, scope))?;
                Ok(Box::new(policy) as Box<dyn Policy>)
            }),
            "compressor" => parts.compressor(&name, origin, move |own, scope| {
                let compressor = maker.make(own, scope, PythonCompressor::new)?;
                Ok(Box::new(compressor) as Box<dyn Compressor>)
            }),
            "fading" => parts.fading(&name, origin, move |own, scope| {
                let fading =
                    maker.make(own, scope, |object, calls| PythonFading::new(object, calls, scope))?;
                Ok(Box::new(fading) as Box<dyn Fading>)
            }),
            "trace" => {
                let trace = Arc::new(Trace::new(&make)?);
                parts.fading(&name, origin, move |_, scope: &Scope| {
                    Ok(Box::new(ArrayFading::new(&trace, scope)?) as Box<dyn Fading>)
                })
            }
            "data" => {
                let dataset: PyRef<'_, crate::data::Dataset> = make.extract()?;
                parts.dataset(&name, dataset.origin(), Arc::clone(&dataset.inner))
            }
            "task" => {
                let (raised, called) = (raised.clone(), name.clone());
                parts.task(&name, origin, move |spec: &Spec| {
                    let task = maker.make(&Table::new(), &spec.scope(), |object, _| {
                        PythonTask::of_sweep(&object, &called, spec, raised.clone())
                    })?;
                    Ok(Arc::new(task) as Arc<dyn Task>)
                })
            }
            "partition" => parts.partition(&name, origin, lists(&make)?),
            _ => return Err(PyValueError::new_err(format!("parts: there is no kind {kind:?}"))),
        };
        let mut stated = Provenance::default();
        (stated.keys, stated.defaults, stated.texts) = (keys, flat(&defaults)?.into_iter().collect(), texts);
        stated.ignores_seed = ignores_seed;
        parts = parts.stating(&name, &stated);
    }
    Ok(parts)
}

/// The training samples of every device.
fn lists(given: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<u32>>> {
    let list = |(m, list): (usize, PyResult<Bound<'_, PyAny>>)| {
        crate::arrays::indices(&format!("partition: device {m}"), &list?)
    };
    given.try_iter()?.enumerate().map(list).collect()
}

/// Checks that a name is valid in a configuration and is not the name of a part of the library.
fn check_name(kind: &str, name: &str) -> PyResult<()> {
    let kind = if kind == "trace" { "fading" } else { kind };
    let plain = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        let problem = "must consist of letters, digits, - and _";
        return Err(PyValueError::new_err(format!("{kind}: the name {name:?} {problem}")));
    }
    if is_taken(name) {
        return Err(PyValueError::new_err(format!(
            "{kind}: {name:?} is the name of one of the library's own; give yours another: an attribute \
             `name` of its class, or a key of parts={{…}}"
        )));
    }
    Ok(())
}

/// Whether some part of the library, of any kind, has the name `name`: a configuration identifies custom
/// parts by their names alone.
pub fn is_taken(name: &str) -> bool {
    kinds().iter().any(|kind| kind.parts.iter().any(|part| part.name == name))
}

/// Makes the part of one run.
struct Maker {
    make: Arc<Py<PyAny>>,
    /// Whether it takes the seed of the run.
    by_seed: bool,
    raised: Raised,
}

impl Maker {
    fn make<T>(
        &self,
        own: &Table,
        scope: &Scope,
        wrap: impl FnOnce(Bound<'_, PyAny>, Calls) -> PyResult<T>,
    ) -> Result<T, ConfigError> {
        Python::attach(|py| {
            let call = || {
                let own = keywords(py, own)?;
                if self.by_seed {
                    own.set_item("seed", scope.seed)?;
                }
                self.make.bind(py).call1((own,))
            };
            let made = call().and_then(|object| wrap(object, Calls::new(self.raised.clone())));
            made.map_err(|error| {
                let problem = ConfigError::new("parts", error.to_string());
                self.raised.lock().get_or_insert(error);
                problem
            })
        })
    }
}

/// A part's own table as keywords.
fn keywords<'py>(py: Python<'py>, own: &Table) -> PyResult<Bound<'py, PyDict>> {
    let keywords = PyDict::new(py);
    for (key, value) in own {
        keywords.set_item(key, to_python(py, value)?)?;
    }
    Ok(keywords)
}

/// `Class.method` of an object, for messages.
fn method(object: &Bound<'_, PyAny>, name: &str) -> String {
    let class = object.get_type().qualname().map_or_else(|_| "?".into(), |class| class.to_string());
    format!("{class}.{name}")
}

/// The type of a wrong answer, for messages.
fn type_of(answer: &Bound<'_, PyAny>) -> String {
    answer.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string())
}
