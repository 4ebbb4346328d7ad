//! Compression schemes that are written in Python.

use super::{Calls, method, type_of};
use crate::arrays::{float32s, indices};
use crate::random::generator;
use fedlink::base::rng::Stream;
use fedlink::base::units::Bits;
use fedlink::compress::bits::log2_choose;
use fedlink::compress::{
    Codec, Compressor, Context, Encoded, Evidence, Properties, Scratch, SparseUpdate, Spent, Values,
};
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ops::RangeInclusive;

/// Bits of a value and its sign, where the library counts.
const VALUE_BITS: f64 = 33.0;

/// A compression scheme written in Python.
pub struct PythonCompressor {
    object: Py<PyAny>,
    calls: Calls,
}

impl PythonCompressor {
    #[expect(clippy::unnecessary_wraps, reason = "all kinds of parts are made in the same way")]
    pub fn new(object: Bound<'_, PyAny>, calls: Calls) -> PyResult<Self> {
        Ok(Self { object: object.unbind(), calls })
    }
}

impl Compressor for PythonCompressor {
    fn encode(
        &self,
        update: &[f32],
        context: &Context,
        rng: &mut Stream,
        _: &mut Scratch,
        out: &mut Encoded,
    ) -> Spent {
        let (encoded, spent) = self.calls.ask((Encoded::Silent, Spent::default()), |py| {
            let object = self.object.bind(py);
            let arguments = (PyArray1::from_slice(py, update), context.budget.0, generator(py, rng)?);
            let answer = object.call_method1("encode", arguments)?;
            read(&method(object, "encode"), &answer, update.len())
        });
        *out = encoded;
        spent
    }

    fn codec(&self) -> Option<&dyn Codec> {
        None
    }

    fn properties(&self, _: usize, _: usize) -> Properties {
        Properties::UNKNOWN
    }

    fn honest_reports(&self, _: &Evidence) -> RangeInclusive<f64> {
        // Such a scheme has no known bounds, so no report is false; `defense.audit` is rejected with it.
        0.0..=f64::INFINITY
    }

    fn failure(&self) -> Option<String> {
        self.calls.failure()
    }
}

/// `(what, bits)`: nothing, (indices, values) or all entries, and their cost; None: the library counts it.
fn read(name: &str, answer: &Bound<'_, PyAny>, dim: usize) -> PyResult<(Encoded, Spent)> {
    let wrong = |what: &Bound<'_, PyAny>| {
        PyTypeError::new_err(format!(
            "{name}: must return (what, bits), what being None, (indices, values) or an array of {dim} \
             entries, but returned {}",
            type_of(what)
        ))
    };
    let pair = answer.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2).ok_or_else(|| wrong(answer))?;
    let (what, bits) = (pair.get_item(0)?, pair.get_item(1)?);
    let bits = bits.extract::<Option<f64>>().map_err(|_| {
        PyTypeError::new_err(format!(
            "{name}: bits must be a number or None, but is of type {}",
            type_of(&bits)
        ))
    })?;
    let encoded = if what.is_none() {
        Encoded::Silent
    } else if let Ok(pair) = what.cast::<PyTuple>() {
        if pair.len() != 2 {
            return Err(wrong(&what));
        }
        sparse(name, &pair.get_item(0)?, &pair.get_item(1)?)?
    } else {
        Encoded::Dense(float32s(&format!("{name}: entries"), &what)?)
    };
    let level = encoded.entries();
    if level == 0 {
        return Ok((Encoded::Silent, Spent::default()));
    }
    let bits = bits.unwrap_or_else(|| counted(&encoded, dim));
    Ok((encoded, Spent::new(Bits(bits), level)))
}

/// An update of which the entries at `indices` are `values`: an array, or one number for all.
fn sparse(name: &str, given: &Bound<'_, PyAny>, values: &Bound<'_, PyAny>) -> PyResult<Encoded> {
    let indices = indices(&format!("{name}: indices"), given)?;
    let values = match values.extract::<f32>() {
        Ok(value) => Values::Shared(value),
        Err(_) => Values::Each(float32s(&format!("{name}: values"), values)?),
    };
    Ok(Encoded::Sparse(SparseUpdate { indices, values }))
}

/// The cost of an update if the scheme does not define it: log2 C(d, q) for the indices, 33 for every
/// value.
fn counted(encoded: &Encoded, dim: usize) -> f64 {
    let q = encoded.entries();
    match encoded {
        Encoded::Sparse(SparseUpdate { values: Values::Shared(_), .. }) => {
            log2_choose(dim as u64, q as u64) + VALUE_BITS
        }
        Encoded::Sparse(_) => log2_choose(dim as u64, q as u64) + VALUE_BITS * q as f64,
        _ => VALUE_BITS * q as f64,
    }
}
