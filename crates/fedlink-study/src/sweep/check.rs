//! The check of a custom part before it is used: the contract tests of its kind, and a short run made twice.

use super::plan::Plan;
use super::twice::make_twice;
use crate::error::Error;
use crate::experiment::Experiment;
use fedlink::parts::Parts;
use fedlink::spec::findings;
use toml::{Table, Value};

/// The run in which a part is tried.
const RUN: &str = "[data]\ndevices = 12\nsamples_per_device = 50\n[learn]\nmodel = \"softmax\"\n\
                   [schedule]\nk = 3\n[run]\nrounds = 6";

/// Checks the part `name` among `parts` with the keys `own` of its table: its contract, and that a short run
/// on the embedded data is the same when it is made twice. Each finding is a sentence that begins with the
/// fact. It is an error if there is no such part, or if it cannot be made.
pub fn check_part(
    parts: &Parts,
    name: &str,
    own: &Table,
    pool: &rayon::ThreadPool,
) -> Result<Vec<String>, Error> {
    let mut found = findings(parts, name, own)?;
    match in_a_run(parts, name, own, pool) {
        Ok(differences) => found.extend(differences),
        Err(Error::System(error)) => {
            let problem = error.to_string();
            // The contract test has found it already.
            if found.iter().all(|other| !same_problem(other, &problem)) {
                found.push(format!("run: {problem}"));
            }
        }
        Err(error) => return Err(error),
    }
    Ok(found)
}

/// The own table of a part of settings `KEY=VALUE`, the last word of a key being that of the table. A value
/// that is not TOML is text.
pub fn own_table(settings: &[String]) -> Table {
    let entry = |setting: &String| {
        let (key, value) = setting.split_once('=')?;
        let (key, value) = (key.trim().rsplit('.').next()?.to_owned(), value.trim());
        let parsed = toml::from_str::<Table>(&format!("value = {value}")).ok();
        let value = parsed.and_then(|mut table| table.remove("value")).unwrap_or_else(|| value.into());
        Some((key, value))
    };
    settings.iter().filter_map(entry).collect()
}

/// Whether a finding and the error of a run name the same problem.
fn same_problem(finding: &str, error: &str) -> bool {
    finding.split_once(": ").is_some_and(|(_, problem)| {
        let problem = problem.split(" (M = ").next().unwrap_or(problem);
        error.contains(problem)
    })
}

/// The findings of a short run with the part.
fn in_a_run(parts: &Parts, name: &str, own: &Table, pool: &rayon::ThreadPool) -> Result<Vec<String>, Error> {
    let mut experiment = Experiment::parse_with("check", RUN, parts)?;
    let keys: Vec<&str> = parts.named().filter(|(_, part)| *part == name).map(|(key, _)| key).collect();
    for key in keys {
        experiment.set_value(key, Value::from(name))?;
        let section = key.split('.').next().unwrap_or(key);
        for (own_key, value) in own {
            experiment.set_value(&format!("{section}.{name}.{own_key}"), value.clone())?;
        }
    }
    let plan = Plan::new(experiment.expand(parts)?, &[])?;
    let different = make_twice(&plan, &[0], pool)?;
    let mut found: Vec<String> =
        different.iter().map(|difference| format!("determinism: {difference}")).collect();
    let mut simulation = plan.simulation(&plan.sweep.runs[0])?;
    let outcome = pool.install(|| simulation.run(|_| ()))?;
    if outcome.heard() == 0 {
        found.push(format!("schedule: it schedules no device in any of {} rounds", outcome.rounds));
    }
    Ok(found)
}
