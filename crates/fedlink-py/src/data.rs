//! Data sets as arrays, in and out.

use crate::arrays::indices;
use crate::config::{load, read};
use crate::errors::exception;
use crate::parts::{Part, Raised, collect};
use fedlink::base::units::DeviceId;
use fedlink::data::{Dataset as Inner, Features, Samples};
use numpy::{
    PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

/// Classes at most.
const MAX_CLASSES: u32 = 256;

/// Channels of an image at most, where the last axis is to be distinguished from a width.
const MAX_CHANNELS: usize = 4;

/// Training and test samples; `fedlink.dataset` gives one, `simulate(data=…)` takes one.
#[pyclass(frozen, module = "fedlink._fedlink")]
pub struct Dataset {
    pub inner: Arc<Inner>,
    custom: bool,
}

impl Dataset {
    /// The origin of the data, for the record of a run.
    pub fn origin(&self) -> String {
        let from = if self.custom { "NumPy arrays" } else { "the library" };
        format!("{from}, sha256 {}", &self.inner.digest()[..16])
    }

    fn features<'py>(&self, py: Python<'py>, samples: &Samples) -> PyResult<Bound<'py, PyAny>> {
        let [height, width, channels] = self.inner.shape;
        let count = samples.len();
        let shape = match (height, channels) {
            (1, 1) => vec![count, width],
            (_, 1) => vec![count, height, width],
            _ => vec![count, height, width, channels],
        };
        Ok(match &samples.features {
            Features::Bytes(values) => PyArray1::from_slice(py, values).reshape(shape)?.into_any(),
            Features::Floats(values) => PyArray1::from_slice(py, values).reshape(shape)?.into_any(),
        })
    }
}

#[pymethods]
impl Dataset {
    /// The data set `name` of these arrays.
    #[new]
    fn new(
        name: &str,
        x_train: &Bound<'_, PyAny>,
        y_train: &Bound<'_, PyAny>,
        x_test: &Bound<'_, PyAny>,
        y_test: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let (shape, train) = samples(["x_train", "y_train"], x_train, y_train)?;
        let (test_shape, test) = samples(["x_test", "y_test"], x_test, y_test)?;
        if shape != test_shape {
            return Err(PyValueError::new_err(format!(
                "x_test: samples are {test_shape:?} (height, width, channels), but those of x_train {shape:?}"
            )));
        }
        if matches!(train.features, Features::Bytes(_)) != matches!(test.features, Features::Bytes(_)) {
            return Err(PyTypeError::new_err(
                "x_test: one of x_train and x_test is uint8, the other float32",
            ));
        }
        let classes =
            train.labels.iter().chain(&test.labels).max().map_or(0, |&label| usize::from(label) + 1);
        let features = shape.iter().product();
        let inner = Inner { name: name.to_owned(), features, shape, classes, train, test };
        Ok(Self { inner: Arc::new(inner), custom: true })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// The number of classes.
    #[getter]
    fn classes(&self) -> usize {
        self.inner.classes
    }

    /// SHA-256 of shape, classes and every sample.
    #[getter]
    fn digest(&self) -> String {
        self.inner.digest()
    }

    /// The training samples: N × F, N × height × width or N × height × width × channels.
    #[getter]
    fn x_train<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.features(py, &self.inner.train)
    }

    /// Their classes.
    #[getter]
    fn y_train<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        PyArray1::from_slice(py, &self.inner.train.labels)
    }

    /// The test samples.
    #[getter]
    fn x_test<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.features(py, &self.inner.test)
    }

    /// Their classes.
    #[getter]
    fn y_test<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        PyArray1::from_slice(py, &self.inner.test.labels)
    }

    fn __repr__(&self) -> String {
        let Inner { name, shape: [height, width, channels], classes, train, test, .. } = &*self.inner;
        format!(
            "<fedlink.Dataset {name}: {} training and {} test samples of {height} × {width} × {channels}, \
             {classes} classes>",
            train.len(),
            test.len()
        )
    }
}

/// Samples and their labels, checked; the names are for messages.
fn samples(
    [x_name, y_name]: [&str; 2],
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
) -> PyResult<([usize; 3], Samples)> {
    let (dimensions, features) = features(x_name, x)?;
    let refuse = |problem: String| Err(PyValueError::new_err(format!("{x_name}: {problem}")));
    let shape = match dimensions[..] {
        [_, length] => [1, length, 1],
        [_, height, width] => [height, width, 1],
        [_, height, width, channels] if channels <= MAX_CHANNELS => [height, width, channels],
        [_, first, ..] if dimensions.len() == 4 && first <= MAX_CHANNELS => {
            return refuse(format!(
                "has shape {dimensions:?}, its channels first; put them last: {x_name}.transpose(0, 2, 3, 1)"
            ));
        }
        _ => {
            return refuse(format!(
                "has shape {dimensions:?}, but must be N × F, N × height × width, or N × height × width × \
                 channels (at most {MAX_CHANNELS})"
            ));
        }
    };
    let labels = indices(y_name, y)?;
    if labels.len() != dimensions[0] || labels.is_empty() {
        let (labels, samples) = (labels.len(), dimensions[0]);
        return Err(PyValueError::new_err(format!(
            "{y_name}: has {labels} labels for the {samples} samples of {x_name}; there must be one for each"
        )));
    }
    if let Some(i) = labels.iter().position(|label| *label >= MAX_CLASSES) {
        let problem = format!(
            "label {} of sample {i} is not below {MAX_CLASSES}; number the classes from 0",
            labels[i]
        );
        return Err(PyValueError::new_err(format!("{y_name}: {problem}")));
    }
    Ok((shape, Samples { features, labels: labels.into_iter().map(|label| label as u8).collect() }))
}

fn features(name: &str, x: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, Features)> {
    let array = x.py().import("numpy")?.call_method1("ascontiguousarray", (x,))?;
    let array = array.cast_into::<PyUntypedArray>()?;
    let dimensions = array.shape().to_vec();
    if let Ok(bytes) = array.cast::<PyArrayDyn<u8>>() {
        return Ok((dimensions, Features::Bytes(bytes.try_readonly()?.as_array().iter().copied().collect())));
    }
    let Ok(floats) = array.cast::<PyArrayDyn<f32>>() else {
        let dtype = array.dtype().str()?;
        return Err(PyTypeError::new_err(format!(
            "{name}: must be an array of uint8 (pixels from 0 to 255) or float32, but is of {dtype}; write \
             {name}.astype(numpy.float32)"
        )));
    };
    debug_assert!(floats.dtype().kind() == b'f', "float32 is a float");
    let values: Vec<f32> = floats.try_readonly()?.as_array().iter().copied().collect();
    match values.iter().position(|value| !value.is_finite()) {
        Some(i) => {
            Err(PyValueError::new_err(format!("{name}: number {i} is {}, but must be finite", values[i])))
        }
        None => Ok((dimensions, Features::Floats(values))),
    }
}

/// The data set of a configuration.
#[pyfunction]
pub fn dataset(py: Python<'_>, name: &str, text: &str, settings: &Bound<'_, PyDict>) -> PyResult<Dataset> {
    let config = read(name, text, settings, &fedlink::parts::Parts::default())?;
    Ok(Dataset { inner: load(py, &config)?, custom: false })
}

/// The training samples of every device in a configuration.
#[pyfunction]
#[pyo3(signature = (name, text, settings, parts, data = None))]
pub fn split<'py>(
    py: Python<'py>,
    name: &str,
    text: &str,
    settings: &Bound<'py, PyDict>,
    parts: Vec<Part<'py>>,
    data: Option<&Bound<'py, Dataset>>,
) -> PyResult<Vec<Bound<'py, PyArray1<i64>>>> {
    let parts = collect(parts, &Raised::default())?;
    let config = read(name, text, settings, &parts)?;
    let dataset = match data {
        Some(data) => Arc::clone(&data.get().inner),
        None => load(py, &config)?,
    };
    let partition = config.partition(&dataset).map_err(exception)?;
    let mut samples = Vec::new();
    let mut of = |device| {
        partition.samples_of(device, &mut samples);
        crate::arrays::numbers(py, samples.iter().copied())
    };
    Ok(DeviceId::all(config.data.devices as usize).map(&mut of).collect())
}
