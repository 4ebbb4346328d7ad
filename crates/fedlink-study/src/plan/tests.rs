//! A plan of a small scenario, from the question to the files.

use super::*;
use crate::events::EventReader;
use crate::experiment::Experiment;
use fedlink::parts::Parts;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const SCENARIO: &str = "[data]\ndevices = 6\nsamples_per_device = 40\n[learn]\nmodel = \"softmax\"\n\
    state = \"reset\"\nlocal_steps = 2\nbatch = 20\n[schedule]\nk = 2\n\
    [run]\nrounds = 40\nevaluate_every = 2\n";

fn request(budget: &str) -> Request {
    let goal = "symbols until accuracy >= 0.5 for 2 evaluations".parse().unwrap();
    let mut request = Request::new(&[goal], budget.parse().unwrap()).unwrap();
    request.over = vec!["schedule.k=1,2,4".parse().unwrap(), "schedule.policy=bc,bn2".parse().unwrap()];
    request
}

fn plan(folder: &Path, request: &Request, stop: &(dyn Fn() -> bool + Sync)) -> Planned {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let planner =
        Planner { request, folder, folders: &[], parts: &Parts::default(), pool: &pool, observer: &(), stop };
    planner.plan(Experiment::parse("x", SCENARIO).unwrap(), false).unwrap()
}

fn answered(planned: Planned) -> (Answer, Option<Best>) {
    match planned {
        Planned::Answered(answer, best) => (*answer, best),
        other => panic!("{other:?}"),
    }
}

/// Without what a clock measures.
fn timeless(mut answer: Answer) -> String {
    answer.seconds = 0.0;
    serde_json::to_string_pretty(&answer).unwrap()
}

#[test]
fn a_plan_that_was_stopped_at_any_time_ends_with_the_same_answer() {
    let whole = tempfile::tempdir().unwrap();
    let request = request("30runs");
    let (answer, best) = answered(plan(whole.path(), &request, &|| false));
    let text = answer.text();
    let recommended = answer.recommended.as_ref().unwrap_or_else(|| panic!("{text}"));
    assert_eq!(recommended.costs[0].median.of, answer.finalists[0].costs[0].median.of);
    // The file is an experiment that has the recommended settings.
    let toml = best.unwrap().toml;
    let spec = Experiment::parse("best", &toml).unwrap().only_spec(&Parts::default()).unwrap();
    assert_eq!(serde_json::json!(spec.schedule.k), recommended.settings["schedule.k"]);
    assert_eq!(serde_json::json!(spec.schedule.policy), recommended.settings["schedule.policy"]);

    let stopped = tempfile::tempdir().unwrap();
    let mut processes = 0;
    let again = loop {
        let rounds = AtomicUsize::new(0);
        let stop = || rounds.fetch_add(1, Ordering::SeqCst) > 900;
        processes += 1;
        match plan(stopped.path(), &request, &stop) {
            Planned::Stopped => assert!(processes < 100),
            planned => break answered(planned).0,
        }
    };
    assert!(processes > 1);
    assert_eq!(timeless(again), timeless(answer));
    // No decision is in the stream twice.
    let events = EventReader::new(stopped.path()).read().unwrap();
    let decisions: Vec<String> = events
        .iter()
        .filter(|line| {
            matches!(line.event, crate::events::Event::Dropped { .. } | crate::events::Event::Decided { .. })
        })
        .map(|line| serde_json::to_string(&line.event).unwrap())
        .collect();
    let mut once = decisions.clone();
    once.sort();
    once.dedup();
    assert_eq!(decisions.len(), once.len());
}

#[test]
fn a_folder_answers_one_question() {
    let folder = tempfile::tempdir().unwrap();
    let planner = |request: &Request| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let planner = Planner {
            request,
            folder: folder.path(),
            folders: &[],
            parts: &Parts::default(),
            pool: &pool,
            observer: &(),
            stop: &|| true,
        };
        planner.plan(Experiment::parse("x", SCENARIO).unwrap(), false)
    };
    assert!(matches!(planner(&request("30runs")), Ok(Planned::Stopped)));
    let mut other = request("30runs");
    other.over.pop();
    let error = planner(&other).unwrap_err().to_string();
    assert!(error.contains("searched keys"), "{error}");
}

#[test]
fn a_goal_out_of_reach_is_answered_with_what_fails() {
    let folder = tempfile::tempdir().unwrap();
    let mut request = request("20runs");
    request.goals[0].conditions[0].level = crate::goals::Level::Number(0.999);
    let (answer, best) = answered(plan(folder.path(), &request, &|| false));
    assert!(best.is_none() && answer.recommended.is_none());
    assert!(answer.text().contains("accuracy >= 0.999 is missed by"), "{}", answer.text());
}
