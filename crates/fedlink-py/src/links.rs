//! The uplink of a round, device by device: the true channel, and the server's knowledge of it.

use crate::table::{Table, columns};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array};
use fedlink::base::units::DeviceId;
use fedlink::radio::Radio;
use numpy::{Complex64, PyArray1, PyArray2, PyArray3, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};
use std::sync::Arc;

type Reals = Py<PyArray1<f64>>;

/// The links of all devices in one round. Arrays have an entry for each device.
///
/// With `radio.bandwidth_hz` powers and noise are in watts, otherwise in a unit of their own. Iterating gives
/// `estimates` and `capacities`: the arguments of `Server.begin`.
#[pyclass(frozen, get_all, module = "fedlink._fedlink")]
pub struct Links {
    /// The round, counted from 0.
    t: u64,
    /// σ², with the interference.
    noise: f64,
    /// β·g, the true power gains.
    gains: Reals,
    /// β, the mean gains.
    mean_gains: Reals,
    /// β·ĝ, the gains as the server estimates them; those that are, if radio.csi_error and radio.csi_delay_s
    /// are 0.
    estimates: Reals,
    /// P, the power of each device if it is scheduled.
    powers: Reals,
    /// The SNR that the rate is chosen for: b·β·ĝ·P/σ², a ratio, with the back-off b.
    snrs: Reals,
    /// C, bits per symbol that the server grants for: the rate at `snrs` with the whole band.
    capacities: Reals,
    /// The true SNR, β·g·P/σ².
    true_snrs: Reals,
    /// Bits per symbol that the true channel carries; less than `capacities` is an outage.
    true_capacities: Reals,
    /// β·g of each resource block as it is, a row for each device; None where the band is not made of blocks.
    block_gains: Option<Py<PyArray2<f64>>>,
    /// √β·h, complex, by device, antenna and resource block (one where the band is flat); None where the
    /// fading law draws powers alone.
    amplitudes: Option<Py<PyArray3<Complex64>>>,
    /// Meters east of the server; None without a cell, as all that follow.
    x_m: Option<Reals>,
    /// Meters north of the server.
    y_m: Option<Reals>,
    /// Distance over ground, meters.
    distance_m: Option<Reals>,
    /// PL, dB.
    path_loss_db: Option<Reals>,
    /// X, dB; positive: a stronger signal.
    shadowing_db: Option<Reals>,
    /// Whether the server is in sight.
    line_of_sight: Option<Py<PyArray1<bool>>>,
    /// All of it as a table.
    table: Py<Table>,
}

/// The terms of a link in a cell, by device.
#[derive(Default)]
pub struct Places {
    pub x_m: Vec<f64>,
    pub y_m: Vec<f64>,
    pub distance_m: Vec<f64>,
    pub path_loss_db: Vec<f64>,
    pub shadowing_db: Vec<f64>,
    pub line_of_sight: Vec<bool>,
}

impl Places {
    /// The places in round `t`; none without a cell.
    pub fn of(radio: &Radio, t: u64) -> Option<Self> {
        let cell = radio.cell()?;
        let mut places = Self::default();
        for device in DeviceId::all(radio.devices()) {
            let (position, link) = (cell.position(t, device), cell.path(t, device));
            places.x_m.push(position.x_m);
            places.y_m.push(position.y_m);
            places.distance_m.push(link.path.distance_2d_m);
            places.path_loss_db.push(link.loss_db);
            places.shadowing_db.push(link.shadowing_db);
            places.line_of_sight.push(link.path.line_of_sight);
        }
        Some(places)
    }

    /// As columns of a table.
    pub fn columns(&self) -> Vec<(&'static str, ArrayRef)> {
        vec![
            ("x_m", reals(&self.x_m)),
            ("y_m", reals(&self.y_m)),
            ("distance_m", reals(&self.distance_m)),
            ("path_loss_db", reals(&self.path_loss_db)),
            ("shadowing_db", reals(&self.shadowing_db)),
            ("line_of_sight", Arc::new(BooleanArray::from(self.line_of_sight.clone()))),
        ]
    }
}

/// A column of real numbers.
pub fn reals(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

/// A column that numbers devices, from 0.
pub fn numbered(devices: usize) -> ArrayRef {
    Arc::new((0..devices as i64).collect::<Int64Array>())
}

/// A round's links in numbers.
pub struct LinkColumns {
    pub gains: Vec<f64>,
    pub mean_gains: Vec<f64>,
    pub estimates: Vec<f64>,
    pub powers: Vec<f64>,
    pub snrs: Vec<f64>,
    pub capacities: Vec<f64>,
    pub true_snrs: Vec<f64>,
    pub true_capacities: Vec<f64>,
}

impl LinkColumns {
    /// The links of `radio` in round `t`.
    pub fn of(radio: &Radio, t: u64) -> Self {
        let links = radio.links(t);
        let (known, noise) = (links.known, radio.noise());
        let all = || DeviceId::all(radio.devices());
        let snr = |m: DeviceId, gain: f64| gain * known.power(m).0 / noise;
        let true_snrs: Vec<f64> = all().map(|m| snr(m, links.gains[m.index()])).collect();
        let careful = radio.csi().backoff < 1.0;
        let true_capacity = |m: DeviceId| {
            let i = m.index();
            if known.gain(m) == links.gains[i] && !careful {
                return known.capacity(m);
            }
            let symbols = radio.band().symbols as f64;
            let flat = || radio.rate().bits(true_snrs[i], symbols) / symbols;
            radio.rate().slope(true_snrs[i]).unwrap_or_else(flat)
        };
        Self {
            mean_gains: all().map(|m| radio.mean_gain(t, m)).collect(),
            snrs: all().map(|m| known.snr(m).unwrap_or_else(|| snr(m, known.gain(m)))).collect(),
            true_capacities: all().map(true_capacity).collect(),
            gains: links.gains,
            estimates: known.gains,
            powers: known.powers,
            capacities: known.capacities,
            true_snrs,
        }
    }
}

/// The gains of the resource blocks and the complex amplitudes, as far as there are any.
type Channel = (Option<Py<PyArray2<f64>>>, Option<Py<PyArray3<Complex64>>>);

/// The channel of all devices in round `t` in detail.
fn channel(py: Python<'_>, radio: &Radio, t: u64) -> PyResult<Channel> {
    let devices = radio.devices();
    let all = || DeviceId::all(devices);
    let gains: Vec<f64> = all().flat_map(|device| radio.block_gains(t, device)).collect();
    let amplitudes: Vec<Complex64> =
        all().flat_map(|device| radio.amplitudes(t, device)).map(|[re, im]| Complex64::new(re, im)).collect();
    let blocks = gains.len() / devices;
    let each = amplitudes.len() / devices;
    let per_antenna = if blocks > 0 && each > 0 && each.is_multiple_of(blocks) { blocks } else { 1 };
    let gains = (blocks > 0)
        .then(|| PyArray1::from_vec(py, gains).reshape([devices, blocks]).map(Bound::unbind))
        .transpose()?;
    let amplitudes = (each > 0)
        .then(|| {
            let shape = [devices, each / per_antenna, per_antenna];
            PyArray1::from_vec(py, amplitudes).reshape(shape).map(Bound::unbind)
        })
        .transpose()?;
    Ok((gains, amplitudes))
}

impl Links {
    /// The links of `radio` in round `t`.
    pub fn of(py: Python<'_>, radio: &Radio, t: u64) -> PyResult<Self> {
        let (links, places) = py.detach(|| (LinkColumns::of(radio, t), Places::of(radio, t)));
        let mut table = vec![("device", numbered(radio.devices()))];
        table.extend(places.as_ref().map(Places::columns).unwrap_or_default());
        table.extend([
            ("mean_gain", reals(&links.mean_gains)),
            ("gain", reals(&links.gains)),
            ("estimate", reals(&links.estimates)),
            ("power", reals(&links.powers)),
            ("snr", reals(&links.snrs)),
            ("capacity", reals(&links.capacities)),
            ("true_snr", reals(&links.true_snrs)),
            ("true_capacity", reals(&links.true_capacities)),
        ]);
        let (blocks, amplitudes) = channel(py, radio, t)?;
        let array = |values: Vec<f64>| PyArray1::from_vec(py, values).unbind();
        let Places { x_m, y_m, distance_m, path_loss_db, shadowing_db, line_of_sight } =
            places.unwrap_or_default();
        let placed = |values: Vec<f64>| (!values.is_empty()).then(|| array(values));
        Ok(Self {
            t,
            noise: radio.noise(),
            gains: array(links.gains),
            mean_gains: array(links.mean_gains),
            estimates: array(links.estimates),
            powers: array(links.powers),
            snrs: array(links.snrs),
            capacities: array(links.capacities),
            true_snrs: array(links.true_snrs),
            true_capacities: array(links.true_capacities),
            block_gains: blocks,
            amplitudes,
            x_m: placed(x_m),
            y_m: placed(y_m),
            distance_m: placed(distance_m),
            path_loss_db: placed(path_loss_db),
            shadowing_db: placed(shadowing_db),
            line_of_sight: (!line_of_sight.is_empty())
                .then(|| PyArray1::from_vec(py, line_of_sight).unbind()),
            table: Py::new(py, columns(table)?)?,
        })
    }

    fn known(&self, py: Python<'_>) -> [Py<PyArray1<f64>>; 2] {
        [self.estimates.clone_ref(py), self.capacities.clone_ref(py)]
    }
}

#[pymethods]
impl Links {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.gains.bind(py).as_any().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyTuple::new(py, self.known(py))?.try_iter()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let table = self.table.bind(py).repr()?.to_string();
        let (_, rows) = table.split_once('\n').unwrap_or_default();
        Ok(format!("<fedlink.Links of {} devices in round t = {}>\n{rows}", self.__len__(py)?, self.t))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.table.bind(py).call_method0("_repr_html_")?.extract()
    }
}
