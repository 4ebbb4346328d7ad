//! The server's audit of reports, for rounds that run elsewhere.

use crate::arguments::{MAX_DIM, number, real, whole};
use crate::arrays::indices;
use crate::errors::exception;
use crate::messages::ask_named;
use crate::primitives::scheme_named;
use fedlink::base::units::{Bits, DeviceId};
use fedlink::compress::{Context, Encoded, Evidence, SparseUpdate, Values};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Whether a device can have sent `values` at `indices` and have `reported` this number: None, or a
/// description of the contradiction.
///
/// `ask` is the kind of report, "norm" or "compressed-norm"; `budget` are the bits that the device was
/// granted, `alone_bits` those that the whole band would have carried for it. No honest device is ever
/// accused; a false report that the upload cannot disprove passes. The bounds and their proofs are in the
/// documentation of each scheme. Schemes whose two ends draw alike ("rand-k", "sign") are audited with the
/// draw of (`seed`, `t`, `device`): `run.seed`, the round from 0, and the sender.
///
/// >>> bits = fedlink.dsgd_bits(9, 1)
/// >>> fedlink.audit("norm", 3.0, [4], 1.0, dim=9, budget=bits, alone_bits=bits)
/// >>> fedlink.audit("norm", 3.1, [4], 1.0, dim=9, budget=bits, alone_bits=bits)
/// 'it reported 3.1, but its upload allows at most 3'
#[pyfunction]
#[pyo3(signature = (
    ask, reported, indices, values, dim, budget, alone_bits, scheme = "d-sgd", *, seed = 0, t = 0, device = 0
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn audit(
    ask: &str,
    #[pyo3(from_py_with = number)] reported: f64,
    indices: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    dim: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number)] budget: f64,
    #[pyo3(from_py_with = number)] alone_bits: f64,
    scheme: &str,
    seed: u64,
    t: u64,
    device: u32,
) -> PyResult<Option<String>> {
    let ask = ask_named("ask", ask)?;
    let dim = whole("dim", dim, 1..=MAX_DIM)? as usize;
    let reported = real("reported", reported, |_| true, "a finite number")?;
    let bits = |name, bits| real(name, bits, |x| x >= 0.0, "a finite number of at least 0").map(Bits);
    let (budget, alone) = (bits("budget", budget)?, bits("alone_bits", alone_bits)?);
    let compressor = scheme_named(scheme).map_err(exception)?;
    let indices = self::indices("indices", indices)?;
    let values = match values.extract::<f32>() {
        Ok(value) => Values::Shared(value),
        Err(_) => Values::Each(crate::arrays::float32s("values", values)?),
    };
    let received = Encoded::Sparse(SparseUpdate { indices, values });
    received.check(dim).map_err(|problem| PyValueError::new_err(format!("indices, values: {problem}")))?;
    let context = Context::new(dim, budget).of(seed, (t, DeviceId(device)));
    let evidence = Evidence::new(ask, context, alone, true, &received);
    if evidence.allows(&*compressor, reported as f32) {
        return Ok(None);
    }
    let range = compressor.honest_reports(&evidence);
    let (limit, bound) = if reported < *range.start() {
        ("takes at least", range.start())
    } else {
        ("allows at most", range.end())
    };
    // Six digits separate a false report from a true one.
    Ok(Some(format!("it reported {}, but its upload {limit} {}", short(reported), short(*bound))))
}

/// A number in six digits, without zeros at its end.
fn short(number: f64) -> String {
    let rounded = format!("{number:.5e}").parse().unwrap_or(number);
    if rounded == 0.0 || (1e-4..1e6).contains(&f64::abs(rounded)) {
        return format!("{rounded}");
    }
    format!("{rounded:e}")
}
