//! The convergence bound.

use crate::arguments::{MAX_DIM, MAX_EXACT, number, whole};
use crate::arrays::reals;
use crate::errors::exception;
use fedlink_theory::MAX_ROUNDS;
use fedlink_theory::bound::BoundParameters;
use fedlink_theory::plan::{Averaging, Goal, PlanRequest, Planner};
use fedlink_theory::rate::Rate;
use fedlink_theory::rho::{Choice, LinkParameters};
use fedlink_theory::study::{Mode, Study};
use numpy::PyArray1;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The bound on the loss, E[F(θ(t))] − F*, after 0, 1, …, `rounds` rounds.
///
/// `k` of `devices` devices send in each round, `tau` local steps each; `mu`, `l`, `g`, `gamma` and
/// `distance0` are the theorem's μ, L, G, Γ and ‖θ(0)−θ*‖². `rate` is η: a number, an array with one for each
/// round, or text such as "inverse-time" or "0.3*sqrt(100/(t+100))". `rho`, the share of entries that
/// arrives, is drawn from the channel of `seed` (the mean over `draws` of them) unless it is given as a
/// number or an array. `choice` is "best" or "uniform": the links that carry the updates. The defaults are
/// those of the paper's figure 3.
///
/// >>> losses = fedlink.bound(k=5, rounds=100)
/// >>> len(losses), float(losses[0])
/// (101, 1250.0)
#[pyfunction]
#[pyo3(signature = (
    *, k = None, tau = None, devices = None, rounds = None, mu = 1.0, l = 5.0, g = 1.0, gamma = 1.0,
    distance0 = 500.0, rate = None, rho = None, dim = None, symbols = None, power = 1.0, noise = 1.0,
    choice = "best", draws = None, seed = None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn bound<'py>(
    py: Python<'py>,
    k: Option<&Bound<'py, PyAny>>,
    tau: Option<&Bound<'py, PyAny>>,
    devices: Option<&Bound<'py, PyAny>>,
    rounds: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = number)] mu: f64,
    #[pyo3(from_py_with = number)] l: f64,
    #[pyo3(from_py_with = number)] g: f64,
    #[pyo3(from_py_with = number)] gamma: f64,
    #[pyo3(from_py_with = number)] distance0: f64,
    rate: Option<&Bound<'py, PyAny>>,
    rho: Option<&Bound<'py, PyAny>>,
    dim: Option<&Bound<'py, PyAny>>,
    symbols: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = number)] power: f64,
    #[pyo3(from_py_with = number)] noise: f64,
    choice: &str,
    draws: Option<&Bound<'py, PyAny>>,
    seed: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let link = link(devices, dim, symbols, power, noise, choice)?;
    let k = or("k", k, 1, link.devices)?;
    let tau = or("tau", tau, 3, 1_000_000)?;
    let rounds = or("rounds", rounds, 1000, MAX_ROUNDS as u64)? as usize;
    let mode = match rho {
        Some(rho) => Mode::Given(per_round("rho", rho, rounds)?),
        None => Mode::Draws(or("draws", draws, 1, 1_000_000)?),
    };
    let study = Study {
        problem: BoundParameters { devices: link.devices, k, tau, mu, l, g, gamma, distance0 },
        link,
        rate: rate.map(|rate| read_rate(rate, rounds)).transpose()?.unwrap_or_default(),
        ks: vec![k],
        taus: vec![tau],
        rounds,
        mode,
        seed: seed_of(seed)?,
    };
    let curves = py.detach(|| study.check().and_then(|()| study.run())).map_err(exception)?;
    let losses = curves[0].losses.iter().map(|loss| loss.mean).collect();
    Ok(PyArray1::from_vec(py, losses))
}

/// `fedlink.bound_plan` as JSON.
#[pyfunction]
#[pyo3(signature = (
    *, ks = None, taus = None, devices = None, rounds = None, mu = 0.25, l = 5.0, g = 1.0, gamma = 1.0,
    distance0 = 500.0, rate = None, dim = None, symbols = None, power = 1.0, noise = 1.0, choice = "best",
    target = None, samples = None, seed = None
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn bound_plan(
    py: Python<'_>,
    ks: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    taus: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    devices: Option<&Bound<'_, PyAny>>,
    rounds: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = number)] mu: f64,
    #[pyo3(from_py_with = number)] l: f64,
    #[pyo3(from_py_with = number)] g: f64,
    #[pyo3(from_py_with = number)] gamma: f64,
    #[pyo3(from_py_with = number)] distance0: f64,
    rate: Option<&Bound<'_, PyAny>>,
    dim: Option<&Bound<'_, PyAny>>,
    symbols: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = number)] power: f64,
    #[pyo3(from_py_with = number)] noise: f64,
    choice: &str,
    target: Option<&Bound<'_, PyAny>>,
    samples: Option<&Bound<'_, PyAny>>,
    seed: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let link = link(devices, dim, symbols, power, noise, choice)?;
    let range = |name: &str, ends: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>, default, max| match ends {
        None => Ok(1..=default),
        Some((first, last)) => {
            let last = whole(name, &last, 1..=max)?;
            Ok::<_, PyErr>(whole(name, &first, 1..=last)?..=last)
        }
    };
    let ks = range("ks", ks, link.devices, link.devices)?;
    let taus = range("taus", taus, 20, 1_000_000)?;
    let rounds = or("rounds", rounds, 1000, MAX_ROUNDS as u64)? as usize;
    let own_rate = rate.map(|rate| read_rate(rate, rounds)).transpose()?;
    let request = PlanRequest {
        problem: BoundParameters { devices: link.devices, k: 1, tau: 1, mu, l, g, gamma, distance0 },
        link,
        rate: own_rate.clone().unwrap_or_default(),
        ks,
        taus,
        rounds,
        goal: target.map(number).transpose()?.map_or(Goal::FinalLoss, Goal::RoundsTo),
        averaging: Averaging::Mean { samples: or("samples", samples, 1000, MAX_ROUNDS as u64)? as usize },
        seed: seed_of(seed)?,
    };
    let plan = py.detach(|| {
        let rates = if own_rate.is_some() { Vec::new() } else { request.shared_rates() };
        let mut planner = Planner::new(request)?;
        let plan = planner.plan_with_best_rate(&rates)?;
        Ok((plan, planner.request().rate.to_string()))
    });
    let (plan, rate) = plan.map_err(|error: fedlink_theory::TheoryError| exception(error))?;
    let json = serde_json::json!({ "rate": rate, "plan": plan });
    serde_json::to_string(&json).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

fn link(
    devices: Option<&Bound<'_, PyAny>>,
    dim: Option<&Bound<'_, PyAny>>,
    symbols: Option<&Bound<'_, PyAny>>,
    power: f64,
    noise: f64,
    choice: &str,
) -> PyResult<LinkParameters> {
    let defaults = LinkParameters::default();
    Ok(LinkParameters {
        devices: or("devices", devices, defaults.devices, 10_000_000)?,
        dim: or("dim", dim, defaults.dim, MAX_DIM)?,
        symbols: or("symbols", symbols, defaults.symbols, MAX_EXACT)?,
        power,
        noise,
        choice: crate::arguments::named::<Choice>("choice", choice)?,
    })
}

fn or(name: &str, value: Option<&Bound<'_, PyAny>>, default: u64, max: u64) -> PyResult<u64> {
    value.map_or(Ok(default.min(max)), |value| whole(name, value, 1..=max))
}

fn seed_of(value: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    value.map_or(Ok(0), |value| whole("seed", value, 0..=i64::MAX as u64))
}

/// η(t) as a number, an array or text.
fn read_rate(value: &Bound<'_, PyAny>, rounds: usize) -> PyResult<Rate> {
    if let Ok(text) = value.cast::<PyString>() {
        return text.to_str()?.parse().map_err(|error: fedlink_theory::TheoryError| exception(error));
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(Rate::Constant(number));
    }
    let table = reals("rate", value)?;
    if table.len() < rounds {
        return Err(PyValueError::new_err(format!("rate: has {} entries for {rounds} rounds", table.len())));
    }
    Ok(Rate::Table(table))
}

/// Numbers for every round, from one number or an array.
fn per_round(name: &str, value: &Bound<'_, PyAny>, rounds: usize) -> PyResult<Vec<f64>> {
    match value.extract::<f64>() {
        Ok(number) => Ok(vec![number; rounds]),
        Err(_) => reals(name, value),
    }
}
