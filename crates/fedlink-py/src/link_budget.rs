//! The link budget of a configuration: the bits that each device's link carries, and the cost of a round
//! under each policy, before any training.

use crate::arguments::whole;
use crate::arrays::numbers as counts;
use crate::config::flat;
use crate::errors::exception;
use crate::links::reals;
use crate::parts::{Part, Raised, collect};
use crate::simulation::json;
use crate::study::source;
use crate::table::{Table, columns};
use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use fedlink::parts::Parts;
use fedlink::record::{Energy, Phases};
use fedlink_study::experiment::{Experiment, FileKind, Sweep};
use fedlink_study::link_budget::{DeviceLink, LinkBudgetOptions, LinkBudgetStudy, PolicyCost};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;
use toml::Value;

/// The most rounds that means are taken over.
const MAX_ROUNDS: u64 = 1_000_000;

/// The most seeds.
const MAX_SEEDS: u64 = 1000;

/// The content of `fedlink.LinkBudget`.
#[pyclass(frozen, get_all, module = "fedlink._fedlink")]
pub struct LinkBudget {
    /// The configuration as JSON.
    config: String,
    /// Its value of every key that the experiment sweeps.
    keys: Vec<(String, String)>,
    /// The results except the tables, as JSON.
    numbers: String,
    /// One row for each device.
    devices: Py<Table>,
    /// One row for each policy.
    policies: Py<Table>,
    /// One row for each policy and number that differs from seed to seed.
    spread: Py<Table>,
    /// The number of rounds in which each policy scheduled each device.
    scheduled: Vec<(String, Py<PyArray1<i64>>)>,
    /// Warnings about the configuration, for the user.
    warnings: Vec<String>,
}

/// The link budget of an experiment: `name` is a preset or the name of `text`. With `rounds` all means are
/// over this number of rounds.
#[pyfunction]
#[pyo3(signature = (
    name, text, settings, parts, rounds = None, data_dir = None, policies = Vec::new(), seeds = None
))]
#[expect(clippy::too_many_arguments, reason = "the signature of Python")]
pub fn link_budget(
    py: Python<'_>,
    name: &str,
    text: Option<&str>,
    settings: &Bound<'_, PyDict>,
    parts: Vec<Part<'_>>,
    rounds: Option<&Bound<'_, PyAny>>,
    data_dir: Option<PathBuf>,
    policies: Vec<String>,
    seeds: Option<&Bound<'_, PyAny>>,
) -> PyResult<LinkBudget> {
    let raised = Raised::default();
    let parts = collect(parts, &raised)?;
    let rounds = rounds.map(|rounds| whole("rounds", rounds, 1..=MAX_ROUNDS)).transpose()?;
    let mut sweep = opened(name, text, &flat(settings)?, &parts)?;
    let curve = sweep.curves.swap_remove(0);
    let folders = fedlink_study::data_folders(data_dir.as_deref());
    let seeds = seeds.map_or(Ok(1), |seeds| whole("seeds", seeds, 1..=MAX_SEEDS))?;
    let options = LinkBudgetOptions { rounds, policies, seeds };
    let found =
        py.detach(|| fedlink_study::link_budget::link_budget(&curve.spec, &parts, &folders, &options));
    let found = found.map_err(|error| raised.or(exception(error)))?;
    if let Some(error) = raised.take() {
        return Err(error);
    }
    Ok(LinkBudget {
        config: json(&curve.spec.resolved())?,
        keys: curve.keys,
        numbers: numbers(&found)?,
        devices: Py::new(py, columns(device_columns(&found))?)?,
        policies: Py::new(py, columns(policy_columns(&found))?)?,
        spread: Py::new(py, columns(spread_columns(&found))?)?,
        scheduled: (found.policies.iter().filter(|one| one.refused.is_none()))
            .map(|one| (one.policy.clone(), counts(py, one.scheduled.iter().copied()).unbind()))
            .collect(),
        warnings: found.cautions,
    })
}

/// The curves of the experiment, which must be one that trains.
fn opened(name: &str, text: Option<&str>, settings: &[(String, Value)], parts: &Parts) -> PyResult<Sweep> {
    let source = source(name, text)?;
    if source.kind() != FileKind::System {
        let problem = format!("experiment: {name} is about the bound, which has no radio");
        return Err(PyValueError::new_err(problem));
    }
    let mut experiment = Experiment::read(&source, parts).map_err(exception)?;
    for (key, value) in settings {
        experiment.set_value(key, value.clone()).map_err(exception)?;
    }
    experiment.add_unnamed(parts).map_err(exception)?;
    experiment.expand(parts).map_err(exception)
}

/// The results that all links have in common.
fn numbers(found: &LinkBudgetStudy) -> PyResult<String> {
    let mut numbers =
        serde_json::to_value(found).map_err(|error| PyValueError::new_err(error.to_string()))?;
    if let Some(numbers) = numbers.as_object_mut() {
        numbers.retain(|_, value| !value.is_array());
    }
    json(&numbers)
}

type Columns = Vec<(&'static str, ArrayRef)>;

/// The columns of the first groups of devices: their shares in uploads and in airtime.
const GROUP_COLUMNS: [[&str; 2]; 4] = [
    ["uploads_1", "airtime_1"],
    ["uploads_2", "airtime_2"],
    ["uploads_3", "airtime_3"],
    ["uploads_4", "airtime_4"],
];

/// A number that links may have.
type Number = fn(&DeviceLink) -> Option<f64>;

/// The table of the devices; columns that no device has a value of are left out.
fn device_columns(found: &LinkBudgetStudy) -> Columns {
    let links = &found.links;
    let real = |value: fn(&DeviceLink) -> f64| reals(&links.iter().map(value).collect::<Vec<f64>>());
    let device: ArrayRef = Arc::new(links.iter().map(|link| i64::from(link.device)).collect::<Int64Array>());
    let mut table: Columns = vec![("device", device)];
    if links.iter().any(|link| link.group.is_some()) {
        let group = links.iter().map(|link| link.group.map(|group| group as i64));
        table.push(("group", Arc::new(group.collect::<Int64Array>())));
    }
    let optional: [(&str, Number); 6] = [
        ("x_m", |link| link.x_m),
        ("y_m", |link| link.y_m),
        ("distance_m", |link| link.distance_m),
        ("path_loss_db", |link| link.loss_db),
        ("shadowing_db", |link| link.shadowing_db),
        ("rate_bps", |link| link.rate_bps),
    ];
    let mut known: Columns = Vec::new();
    for (name, value) in optional {
        if links.iter().any(|link| value(link).is_some()) {
            known.push((name, Arc::new(links.iter().map(value).collect::<Float64Array>())));
        }
    }
    let (rate, places): (Columns, Columns) = known.into_iter().partition(|(name, _)| *name == "rate_bps");
    table.extend(places);
    table.push(("power", real(|link| link.power)));
    table.push(("snr_db", real(|link| link.snr_db)));
    table.push(("capacity", real(|link| link.bits_per_symbol)));
    table.extend(rate);
    table.push(("bits_alone", real(|link| link.bits_alone)));
    table.push(("bits_shared", real(|link| link.bits_shared)));
    table.push(("silent", real(|link| link.silent)));
    table.push(("lost", real(|link| link.lost)));
    if links.iter().any(|link| link.upload_s.is_some()) {
        table.push(("upload_median_s", real(|link| link.upload_s.map_or(f64::NAN, |seconds| seconds[0]))));
        table.push(("upload_p90_s", real(|link| link.upload_s.map_or(f64::NAN, |seconds| seconds[1]))));
    }
    table
}

/// The table of the spread over seeds.
fn spread_columns(found: &LinkBudgetStudy) -> Columns {
    let each =
        || found.policies.iter().flat_map(|one| one.over_seeds.iter().map(move |number| (one, number)));
    let real = |value: fn(f64, f64) -> f64| -> ArrayRef {
        Arc::new(
            each().map(|(_, (_, number))| value(number.mean, number.half_width)).collect::<Float64Array>(),
        )
    };
    vec![
        ("policy", Arc::new(each().map(|(one, _)| Some(&one.policy)).collect::<StringArray>())),
        ("number", Arc::new(each().map(|(_, (name, _))| Some(name)).collect::<StringArray>())),
        ("mean", real(|mean, _| mean)),
        ("low", real(|mean, half| mean - half)),
        ("high", real(|mean, half| mean + half)),
    ]
}

/// The table of the policies.
fn policy_columns(found: &LinkBudgetStudy) -> Columns {
    let all = &found.policies;
    let text = |value: fn(&PolicyCost) -> Option<&str>| -> ArrayRef {
        Arc::new(all.iter().map(value).collect::<StringArray>())
    };
    let real = |value: &dyn Fn(&PolicyCost) -> f64| -> ArrayRef {
        let known = |one: &PolicyCost| one.refused.is_none().then(|| value(one));
        Arc::new(all.iter().map(known).collect::<Float64Array>())
    };
    let mut table: Columns = vec![("policy", text(|one| Some(&one.policy)))];
    table.push(("trained", real(&|one| one.trains)));
    table.push(("heard", real(&|one| one.heard as f64)));
    table.push(("bits", real(&|one| one.bits)));
    table.push(("silent", real(&|one| one.silent)));
    table.push(("lost", real(&|one| one.lost)));
    if found.bandwidth_hz.is_some() {
        let phase = |value: fn(&Phases) -> f64| real(&|one| one.phases.as_ref().map_or(f64::NAN, value));
        let joules = |value: fn(&Energy) -> f64| real(&|one| one.energy.as_ref().map_or(f64::NAN, value));
        table.push(("late", real(&|one| one.late)));
        table.push(("seconds", phase(Phases::total)));
        table.push(("down_s", phase(|phases| phases.down_s)));
        table.push(("train_s", phase(|phases| phases.train_s)));
        table.push(("report_s", phase(|phases| phases.report_s)));
        table.push(("up_s", phase(|phases| phases.up_s)));
        table.push(("joules", joules(Energy::total)));
        table.push(("compute_j", joules(|energy| energy.compute_j)));
        table.push(("report_j", joules(|energy| energy.report_j)));
        table.push(("transmit_j", joules(|energy| energy.transmit_j)));
        table.push(("receive_j", joules(|energy| energy.receive_j)));
        table.push(("idle_j", joules(|energy| energy.idle_j)));
    }
    let groups = all.iter().map(|one| one.groups.len()).max().unwrap_or(0).min(GROUP_COLUMNS.len());
    for (group, [uploads, airtime]) in GROUP_COLUMNS.into_iter().enumerate().take(groups) {
        let share = |one: &PolicyCost| one.groups.get(group).copied().unwrap_or_default();
        table.push((uploads, real(&|one| share(one).uploads)));
        table.push((airtime, real(&|one| share(one).airtime)));
    }
    if all.iter().any(|one| one.refused.is_some()) {
        table.push(("refused", text(|one| one.refused.as_deref())));
    }
    table
}
