//! NumPy's random numbers, seeded from the library's streams.

use fedlink::base::rng::Stream;
use pyo3::prelude::*;

/// A `numpy.random.Generator` seeded with 256 bits of `stream`.
pub fn generator<'py>(py: Python<'py>, stream: &mut Stream) -> PyResult<Bound<'py, PyAny>> {
    let words: [u64; 4] = std::array::from_fn(|_| stream.bits());
    py.import("numpy.random")?.call_method1("default_rng", (words.to_vec(),))
}
