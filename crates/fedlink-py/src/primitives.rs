//! The system's formulas one by one.

use crate::arguments::{MAX_DIM, MAX_EXACT, number, real, whole};
use crate::arrays::{float32s, not_negative, numbers};
use crate::errors::exception;
use fedlink::base::rng::{Purpose, stream};
use fedlink::base::units::{Bits, Power};
use fedlink::compress::wire::{Coder, Format, Layout};
use fedlink::compress::{Compressor, Scratch, SparseBinary, SparseScheme, SparseUpdate, Values};
use fedlink::parts::Parts;
use fedlink::radio::Known;
use fedlink::radio::access::slots::SlotKind;
use fedlink::schedule::Reports;
use fedlink::spec::{Config, ConfigError};
use fedlink::system::server::Server;
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// Devices at most; more gains do not fit into memory.
const MAX_DEVICES: u64 = 100_000_000;

type Indices<'py> = Bound<'py, PyArray1<i64>>;
type Reals<'py> = Bound<'py, PyArray1<f64>>;

/// D-SGD: the indices that are kept of an update, and the one value that all of them get.
///
/// Of the `q` largest and the `q` smallest entries the side with the larger mean magnitude is kept: entries
/// of one sign, all replaced by their mean. Ties go to the lower index.
///
/// >>> indices, value = fedlink.dsgd(numpy.float32([0.5, -4, 1.5, 0, -2]), 2)
/// >>> indices.tolist(), value
/// ([1, 4], -3.0)
#[pyfunction]
pub fn dsgd<'py>(
    py: Python<'py>,
    update: &Bound<'py, PyAny>,
    q: &Bound<'py, PyAny>,
) -> PyResult<(Indices<'py>, f32)> {
    let sent = compress(py, update, q)?.1;
    Ok((numbers(py, sent.indices), shared(&sent.values)))
}

/// As `dsgd`, written out: an array of the update's size with zeros everywhere else.
///
/// >>> fedlink.dsgd_dense(numpy.float32([0.5, -4, 1.5, 0, -2]), 2).tolist()
/// [0.0, -3.0, 0.0, 0.0, -3.0]
#[pyfunction]
pub fn dsgd_dense<'py>(
    py: Python<'py>,
    update: &Bound<'py, PyAny>,
    q: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let (update, sent) = compress(py, update, q)?;
    let mut dense = vec![0.0; update.len()];
    sent.add_to(&mut dense, 1.0);
    Ok(PyArray1::from_vec(py, dense))
}

fn compress(
    py: Python<'_>,
    update: &Bound<'_, PyAny>,
    q: &Bound<'_, PyAny>,
) -> PyResult<(Vec<f32>, SparseUpdate)> {
    let update = float32s("update", update)?;
    let q = whole("q", q, 0..=update.len() as u64 / 2)? as usize;
    let sent = py.detach(|| {
        let mut sent = SparseUpdate::default();
        // D-SGD draws nothing.
        let mut unused = stream(0, Purpose::Sparsify, 0, 0);
        if q > 0 {
            SparseBinary {}.compress(&update, q, &mut unused, &mut Scratch::default(), &mut sent);
        }
        sent
    });
    Ok((update, sent))
}

fn shared(values: &Values) -> f32 {
    match values {
        Values::Shared(value) => *value,
        Values::Each(values) => values.first().copied().unwrap_or(0.0),
        Values::Grid(grid) => grid.values().next().unwrap_or(0.0),
    }
}

/// The bits that `dsgd` takes for `q` entries out of `dim`: log2 C(dim, q) + 33.
///
/// >>> fedlink.dsgd_bits(10, 2)  # 45 ways to choose, and a value with its sign
/// 38.49185309632967
#[pyfunction]
pub fn dsgd_bits(dim: &Bound<'_, PyAny>, q: &Bound<'_, PyAny>) -> PyResult<f64> {
    let dim = whole("dim", dim, 1..=MAX_DIM)? as usize;
    let q = whole("q", q, 0..=dim as u64 / 2)? as usize;
    Ok(SparseBinary {}.bits(dim, q).0)
}

/// The largest level whose cost by the scheme's formula is within `bits`; 0 means that nothing can be sent.
///
/// `scheme` is one of `fedlink list compressors`, with the defaults of its keys. The level is q, the number
/// of entries, for "d-sgd", "stc", "top-k", "random-sparse" and "rand-k"; the most entries that can be sent
/// for "ternary"; the entries whose signs are sent for "sign"; the coded entries for "eden". The uploads of
/// "qsgd" and "low-rank" depend on the update: `fedlink.Encoder` encodes one, and ValueError is raised here.
///
/// >>> fedlink.largest_q(203530, 20000)
/// 2582
#[pyfunction]
#[pyo3(signature = (dim, bits, scheme = "d-sgd"))]
pub fn largest_q(
    dim: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number)] bits: f64,
    scheme: &str,
) -> PyResult<usize> {
    let dim = whole("dim", dim, 1..=MAX_DIM)? as usize;
    let bits = real("bits", bits, |x| x >= 0.0, "a finite number of at least 0")?;
    let compressor = scheme_named(scheme).map_err(exception)?;
    compressor.largest_level(dim, Bits(bits)).ok_or_else(|| {
        PyValueError::new_err(format!(
            "scheme: the level of {scheme:?} depends on the update, not on the bits alone; \
             fedlink.Encoder(config) encodes one, and the result has its level"
        ))
    })
}

/// ‖update‖₂, as a device reports it.
///
/// >>> fedlink.norm(numpy.float32([3, -4]))
/// 5.0
#[pyfunction]
pub fn norm(py: Python<'_>, update: &Bound<'_, PyAny>) -> PyResult<f32> {
    let update = float32s("update", update)?;
    Ok(py.detach(|| fedlink::base::kernels::norm(&update) as f32))
}

/// The power gains of all devices in a round (from 0): those that `simulate` draws from the same seed.
///
/// `fading` is one of `fedlink list "fading laws"`.
///
/// >>> fedlink.gains(3, 0, seed=1).shape
/// (3,)
#[pyfunction]
#[pyo3(signature = (devices, round, seed = None, fading = "rayleigh"))]
pub fn gains<'py>(
    py: Python<'py>,
    devices: &Bound<'py, PyAny>,
    round: &Bound<'py, PyAny>,
    seed: Option<&Bound<'py, PyAny>>,
    fading: &str,
) -> PyResult<Reals<'py>> {
    let devices = whole("devices", devices, 1..=MAX_DEVICES)? as usize;
    let round = whole("round", round, 0..=u64::from(u32::MAX))?;
    let seed = seed.map_or(Ok(0), |seed| whole("seed", seed, 0..=i64::MAX as u64))?;
    let mut config = Config::default();
    (config.data.devices, config.run.seed, config.radio.fading) = (devices as u64, seed, fading.to_owned());
    let radio = fedlink::system::build::radio(&config.resolve(&Parts::default()).map_err(exception)?, 1)
        .map_err(exception)?;
    Ok(PyArray1::from_vec(py, py.detach(|| radio.links(round).gains)))
}

/// log2(1 + gains·power/noise), bits per symbol.
///
/// >>> fedlink.capacity([3.0, 0.0], power=5.0, noise=1.0).tolist()
/// [4.0, 0.0]
#[pyfunction]
pub fn capacity<'py>(
    py: Python<'py>,
    gains: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = number)] power: f64,
    #[pyo3(from_py_with = number)] noise: f64,
) -> PyResult<Reals<'py>> {
    let gains = not_negative("gains", gains)?;
    let power = real("power", power, |x| x > 0.0, "a finite number above 0")?;
    let noise = real("noise", noise, |x| x > 0.0, "a finite number above 0")?;
    let capacity = |&gain: &f64| fedlink::radio::link::capacity(gain, Power(power), noise);
    let capacities: Vec<f64> = gains.iter().map(capacity).collect();
    match capacities.iter().position(|capacity| !capacity.is_finite()) {
        Some(i) => {
            Err(PyValueError::new_err(format!("gains: entry {i} times power/noise is too large for a float")))
        }
        None => Ok(PyArray1::from_vec(py, capacities)),
    }
}

/// Splits the symbols of a round so that the bits of each device are in proportion to its bit weight.
///
/// `whole=True` gives whole symbols that add up to `symbols`.
///
/// >>> fedlink.split_slots([1, 1], [1, 3], 100).tolist()  # the slow link needs three times the symbols
/// [75.0, 25.0]
#[pyfunction]
#[pyo3(signature = (weights, capacities, symbols, whole = false))]
pub fn split_slots<'py>(
    py: Python<'py>,
    weights: &Bound<'py, PyAny>,
    capacities: &Bound<'py, PyAny>,
    symbols: &Bound<'py, PyAny>,
    whole: bool,
) -> PyResult<Reals<'py>> {
    let weights = not_negative("weights", weights)?;
    let capacities = not_negative("capacities", capacities)?;
    let symbols = crate::arguments::whole("symbols", symbols, 1..=MAX_EXACT)?;
    if weights.len() != capacities.len() {
        let (given, needed) = (capacities.len(), weights.len());
        return Err(PyValueError::new_err(format!(
            "capacities: has {given} entries, but weights has {needed}"
        )));
    }
    if weights.is_empty() {
        return Err(PyValueError::new_err("weights: is empty, but at least one device must send"));
    }
    let kind = if whole { SlotKind::Whole } else { SlotKind::Real };
    let slots = fedlink::radio::access::slots::split_slots(&weights, &capacities, symbols, kind);
    Ok(PyArray1::from_vec(py, slots.into_iter().map(|slot| slot.0).collect()))
}

/// The devices that must train and report before `select`, judged by the channel alone.
///
/// For "bc" these are the `k` winners, for "bc-bn2" the `kc` best channels, for "bn2" and "bn2-c" all.
///
/// >>> fedlink.candidates("bc-bn2", 1, [0.1, 2.0, 0.7, 3.0], kc=2).tolist()
/// [1, 3]
#[pyfunction]
#[pyo3(signature = (policy, k, gains, kc = None))]
pub fn candidates<'py>(
    py: Python<'py>,
    policy: &str,
    k: &Bound<'py, PyAny>,
    gains: &Bound<'py, PyAny>,
    kc: Option<&Bound<'py, PyAny>>,
) -> PyResult<Indices<'py>> {
    let mut round = Selection::new(policy, k, gains, kc)?;
    let candidates = round.candidates()?;
    Ok(numbers(py, candidates))
}

/// The numbers that a candidate reports under a policy: some of "norm", "compressed-norm", "loss" and
/// "rms-loss".
///
/// `fedlink.asks("bn2-c")` is `["compressed-norm"]`.
#[pyfunction]
pub fn asks(policy: &str) -> PyResult<Vec<&'static str>> {
    let mut config = Config::default();
    policy.clone_into(&mut config.schedule.policy);
    let server = Server::of(&config.resolve(&Parts::default()).map_err(exception)?, vec![0.0], None)
        .map_err(exception)?;
    Ok(server.asks().iter().map(|ask| ask.name()).collect())
}

/// The scheduled devices and their bit weights.
///
/// `norms` are the reports of all devices (‖Δ‖₂, for "bn2-c" ‖Δ̂(q*)‖₂), as float32, as they are sent; "bc"
/// needs none, and "bc-bn2" reads those of the `kc` best channels only. `kc` is by default max(10, 2k), kept
/// within the number of devices. Ties go to the lower device number.
///
/// >>> devices, weights = fedlink.select("bn2", 2, [0.1, 2.0, 0.7], norms=[5, 1, 3])
/// >>> devices.tolist(), weights.tolist()
/// ([0, 2], [5.0, 3.0])
#[pyfunction]
#[pyo3(signature = (policy, k, gains, norms = None, kc = None))]
pub fn select<'py>(
    py: Python<'py>,
    policy: &str,
    k: &Bound<'py, PyAny>,
    gains: &Bound<'py, PyAny>,
    norms: Option<&Bound<'py, PyAny>>,
    kc: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Indices<'py>, Reals<'py>)> {
    let mut round = Selection::new(policy, k, gains, kc)?;
    let devices = round.known.devices();
    let asks = round.server.asks().len();
    let norms = match norms {
        Some(norms) => not_negative("norms", norms)?,
        None if asks == 0 => vec![0.0; devices],
        None => {
            return Err(PyValueError::new_err(format!(
                "norms: {policy} chooses by the reports of devices; give one number for each"
            )));
        }
    };
    if norms.len() != devices {
        let given = norms.len();
        return Err(PyValueError::new_err(format!("norms: has {given} entries, but gains has {devices}")));
    }
    let candidates = round.candidates()?;
    let report = |&device: &u32| norms[device as usize] as f32;
    let reports: Vec<f32> = candidates.iter().flat_map(|device| vec![report(device); asks]).collect();
    if let Some(report) = reports.iter().find(|report| !report.is_finite()) {
        return Err(PyValueError::new_err(format!("norms: an entry is {report} as float32")));
    }
    let candidates = candidates.into_iter().map(fedlink::base::units::DeviceId).collect();
    let scheduled = round.server.report(Reports::new(candidates, asks, reports)).map_err(exception)?;
    let devices = numbers(py, scheduled.iter().map(|one| one.device.0));
    Ok((devices, PyArray1::from_vec(py, scheduled.iter().map(|one| one.bit_weight).collect())))
}

/// A server whose policy chooses in one round.
struct Selection {
    server: Server,
    known: Known,
}

impl Selection {
    fn new(
        policy: &str,
        k: &Bound<'_, PyAny>,
        gains: &Bound<'_, PyAny>,
        kc: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let gains = not_negative("gains", gains)?;
        let devices = gains.len() as u64;
        if devices == 0 {
            return Err(PyValueError::new_err("gains: is empty, but there must be a device to choose"));
        }
        let k = whole("k", k, 1..=devices)?;
        let mut config = Config::default();
        (config.data.devices, config.schedule.k) = (devices, k);
        policy.clone_into(&mut config.schedule.policy);
        if let Some(kc) = kc {
            let kc = whole("kc", kc, k..=devices)?;
            config.set("schedule.bc-bn2.kc", kc as i64).map_err(exception)?;
        }
        let server = Server::of(&config.resolve(&Parts::default()).map_err(exception)?, vec![0.0], None)
            .map_err(exception)?;
        let capacity = |&gain: &f64| fedlink::radio::link::capacity(gain, Power(1.0), 1.0);
        let capacities = gains.iter().map(capacity).collect();
        Ok(Self { server, known: Known::new(gains, capacities, Power(1.0)) })
    }

    fn candidates(&mut self) -> PyResult<Vec<u32>> {
        let call = self.server.begin(0, self.known.clone(), |_| true).map_err(exception)?;
        Ok(call.candidates.iter().map(|device| device.0).collect())
    }
}

/// The compression scheme called `name`.
pub fn scheme_named(name: &str) -> Result<Arc<dyn Compressor>, ConfigError> {
    let mut config = Config::default();
    name.clone_into(&mut config.compress.scheme);
    fedlink::system::build::compressor(&config.resolve(&Parts::default())?)
}

/// `dsgd(update, q)` as the bytes that a device sends.
///
/// >>> payload = fedlink.encode(numpy.float32([0.5, -4, 1.5, 0, -2]), 2)
/// >>> indices, value = fedlink.decode(payload, dim=5, q=2)
/// >>> indices.tolist(), value
/// ([1, 4], -3.0)
#[pyfunction]
pub fn encode<'py>(
    py: Python<'py>,
    update: &Bound<'py, PyAny>,
    q: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (update, sent) = compress(py, update, q)?;
    let q = whole("q", q, 0..=update.len() as u64 / 2)? as usize;
    let payload = py.detach(|| {
        let format = Format::new(Layout::Shared, update.len(), q)?;
        let mut payload = Vec::new();
        Coder::default().encode(&format, &sent, &mut payload).map(|_| payload)
    });
    let payload = payload.map_err(|error| PyValueError::new_err(format!("update: {error}")))?;
    Ok(PyBytes::new(py, &payload))
}

/// The indices and the value in a payload of `encode`; both ends know `dim` and `q`.
///
/// Any bytes give a valid update or a `ValueError`.
#[pyfunction]
pub fn decode<'py>(
    py: Python<'py>,
    payload: &[u8],
    dim: &Bound<'py, PyAny>,
    q: &Bound<'py, PyAny>,
) -> PyResult<(Indices<'py>, f32)> {
    let dim = whole("dim", dim, 1..=MAX_DIM)?;
    let q = whole("q", q, 0..=dim / 2)? as usize;
    let sent = py.detach(|| {
        let format = Format::new(Layout::Shared, dim as usize, q)?;
        let mut sent = SparseUpdate::default();
        Coder::default().decode(&format, payload, &mut sent).map(|()| sent)
    });
    let sent = sent.map_err(|error| PyValueError::new_err(format!("payload: {error}")))?;
    Ok((numbers(py, sent.indices), shared(&sent.values)))
}
