//! `fedlink.plan`: the settings that reach a goal at the least cost.

use crate::config::flat;
use crate::errors::{exception, report_exception};
use crate::parts::{Part, Raised, collect};
use crate::study::{Watch, create, pool, source, watched};
use fedlink_report::plan_page;
use fedlink_study::data_folders;
use fedlink_study::experiment::Experiment;
use fedlink_study::output::OutputFolder;
use fedlink_study::plan::{PlanObserver, Planned, Planner, Request};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// An answer: its folder, `decision.json` and the text of the command; the latter two are empty if the user
/// stopped the plan.
#[pyclass(frozen, get_all, module = "fedlink._fedlink")]
pub struct PlanOutcome {
    folder: PathBuf,
    decision: String,
    text: String,
}

impl PlanObserver for Watch {
    fn stage(&self, _: &str, _: &str) {}

    fn runs(&self, done: usize, of: usize) {
        self.done.store(done as u64, Ordering::SeqCst);
        self.total.store(of as u64, Ordering::SeqCst);
    }
}

/// Plans: `name` is a preset or the name of `text`; `progress` is called with the runs of a stage that are
/// done and the number of all.
#[pyfunction]
#[pyo3(signature = (
    name, text, settings, parts, *, goals, subject_to, over, budget, error_rate, out, resume, force, threads,
    data_dir, progress
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn plan(
    py: Python<'_>,
    name: &str,
    text: Option<&str>,
    settings: &Bound<'_, PyDict>,
    parts: Vec<Part<'_>>,
    goals: Vec<String>,
    subject_to: Vec<String>,
    over: Vec<String>,
    budget: &str,
    error_rate: f64,
    out: Option<PathBuf>,
    resume: bool,
    force: bool,
    threads: Option<usize>,
    data_dir: Option<PathBuf>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PlanOutcome> {
    if resume && (force || out.is_none()) {
        return Err(PyValueError::new_err("resume: give out=, the folder of the plan, and no force="));
    }
    let raised = Raised::default();
    let parts = collect(parts, &raised)?;
    let settings = flat(settings)?;
    let request = Request::parse(&goals, &subject_to, &over, budget, error_rate).map_err(exception)?;
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let watch = Watch::default();
    let work = || -> PyResult<PlanOutcome> {
        let source = source(name, text)?;
        let mut scenario = Experiment::read(&source, &parts).map_err(exception)?;
        for (key, value) in settings {
            scenario.set_value(&key, value).map_err(exception)?;
        }
        fedlink_study::plan::check(&request, &scenario, &parts).map_err(exception)?;
        let free = || OutputFolder::free_name(Path::new("results"), &format!("{}-plan", scenario.name));
        let target = out.clone().unwrap_or_else(free);
        let folder =
            if resume { OutputFolder::open(&target).map_err(exception)? } else { create(&target, force)? };
        let pool = pool(threads.clamp(1, 1024))?;
        let stop = || watch.stop.load(Ordering::SeqCst);
        let planner = Planner {
            request: &request,
            folder: folder.path(),
            folders: &data_folders(data_dir.as_deref()),
            parts: &parts,
            pool: &pool,
            observer: &watch,
            stop: &stop,
        };
        match planner.plan(scenario, false).map_err(exception)? {
            Planned::Answered(answer, best) => {
                plan_page::write(&folder, &answer, best.as_ref()).map_err(report_exception)?;
                let decision = serde_json::to_string(&answer).unwrap_or_default();
                let folder = folder.finish().map_err(exception)?;
                Ok(PlanOutcome { folder, decision, text: answer.text() })
            }
            _ => Ok(PlanOutcome { folder: target, decision: String::new(), text: String::new() }),
        }
    };
    let ended = watched(py, work, &watch, progress)?.map_err(|error| raised.or(error))?;
    raised.take().map_or(Ok(ended), Err)
}
