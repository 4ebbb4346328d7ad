//! The server's audit of reports, for who runs rounds elsewhere.

use crate::arguments::{MAX_DIM, number, real, whole};
use crate::arrays::places;
use crate::primitives::report_of;
use fedlink::compress::{SchemeKind, SparseUpdate, Values};
use fedlink::defence::audit::Evidence;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Whether a device can have sent `value` in the places `indices` and have `reported` what it did: None, or what is
/// wrong in words.
///
/// `report` is "norm", "quantised-norm" or "nothing" (see `report_kind`), `q` what its budget held, `q_alone` what it
/// could have sent with the whole round to itself. No honest device is ever accused; a lie that no look at what was sent
/// can prove passes. The bounds and their proofs are in the documentation of `fedlink::defence::audit`.
///
/// >>> fedlink.audit("norm", 3.0, [4], 1.0, dim=9, q=1, q_alone=1)
/// >>> fedlink.audit("norm", 3.1, [4], 1.0, dim=9, q=1, q_alone=1)
/// 'it reported 3.1, but what it sent allows at most 3'
#[pyfunction]
pub fn audit(
    report: &str,
    #[pyo3(from_py_with = number)] reported: f64,
    indices: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number)] value: f64,
    dim: &Bound<'_, PyAny>,
    q: &Bound<'_, PyAny>,
    q_alone: &Bound<'_, PyAny>,
) -> PyResult<Option<String>> {
    let kind = report_of("report", report)?;
    let dim = whole("dim", dim, 1..=MAX_DIM)?;
    let q = whole("q", q, 1..=dim / 2)? as usize;
    let alone = whole("q_alone", q_alone, 1..=dim / 2)? as usize;
    let value = real("value", value, |_| true, "a finite number")? as f32;
    let indices = places("indices", indices)?;
    if indices.len() > q {
        return Err(PyValueError::new_err(format!("indices: has {} entries, but q = {q}", indices.len())));
    }
    let received = SparseUpdate { indices, values: Values::Shared(value) };
    let evidence = Evidence {
        scheme: SchemeKind::DSgd,
        kind,
        dim: dim as usize,
        q,
        exact: true,
        alone,
        received: &received,
    };
    if evidence.allows(reported as f32) {
        return Ok(None);
    }
    let range = evidence.reports();
    let (limit, bound) = if reported < *range.start() {
        ("takes at least", range.start())
    } else {
        ("allows at most", range.end())
    };
    // Six digits are enough to tell a lie from the truth, and more than a reader wants.
    Ok(Some(format!("it reported {}, but what it sent {limit} {}", short(reported), short(*bound))))
}

/// A number in six digits, without zeros at its end.
fn short(number: f64) -> String {
    let rounded = format!("{number:.5e}").parse().unwrap_or(number);
    if rounded == 0.0 || (1e-4..1e6).contains(&f64::abs(rounded)) {
        return format!("{rounded}");
    }
    format!("{rounded:e}")
}
