//! The live page: a study as its events describe it, in the parts that the page's script shows. The charts
//! are those of the report.

use super::charts::{PageCharts, color_style};
use super::html::{embedded_json, fill};
use super::scatter::{GroupRow, Point, group_rows, point};
use super::{CONTROLS, Data, Interval, Report, ReportCurve, STYLE};
use crate::looks::{Styled, looks_of};
use fedlink_study::events::{GroupUse, State, Study, WatchedRun};
use fedlink_study::goals::{Cost, Goal, Metrics, Reading, Standing};
use fedlink_study::statistics::{Estimate, estimate};
use serde::Serialize;
use std::collections::BTreeMap;

/// The most curves of which the page has the points; the table has all.
const MAX_CURVES: usize = 100;
/// The most runs in the list.
const MAX_RUNS: usize = 2000;
/// The most messages of a race in a list.
const MAX_MESSAGES: usize = 500;

/// The parts of the script, in the order in which they build on one another.
const LIVE_SCRIPT: &str = concat!(
    "(function () {\n\"use strict\";\n",
    include_str!("script/base.js"),
    include_str!("script/frame.js"),
    include_str!("script/lines.js"),
    include_str!("script/curves.js"),
    include_str!("script/scatter.js"),
    include_str!("script/download.js"),
    include_str!("script/live.js"),
    "})();\n",
);

/// The live page without any study. Its style and script are files of their own.
pub fn live_page() -> String {
    let report = Report::default();
    fill(include_str!("live.html"), |slot| {
        Some(match slot {
            "controls" => CONTROLS.replace("{{cost_axes}}", &super::cost_sections::cost_axes()),
            "data" => embedded_json(&Data { report: &report, charts: PageCharts::new(&report) }),
            _ => return None,
        })
    })
}

/// The style of the live page.
pub fn live_style() -> String {
    color_style() + STYLE + include_str!("live.css")
}

/// The script of the live page.
pub fn live_script() -> &'static str {
    LIVE_SCRIPT
}

/// The first part: the study in a line.
#[derive(Serialize)]
struct Head {
    name: String,
    kind: String,
    facts: String,
    goal: String,
    state: &'static str,
    runs: usize,
    done: usize,
    running: usize,
    waiting: usize,
    failed: usize,
    seconds_left: Option<f64>,
    last: f64,
    best: Option<(String, String)>,
    failures: Vec<(String, String)>,
    processes: Vec<(String, bool, f64)>,
}

/// A row of the table by the goals.
#[derive(Serialize)]
struct TableRow {
    /// The index of the curve.
    curve: usize,
    label: String,
    done: usize,
    of: usize,
    state: &'static str,
    accuracy: Option<Interval>,
    goals: Vec<Cell>,
    groups: Vec<GroupRow>,
    /// The metrics at the last evaluation, means over the runs.
    metrics: BTreeMap<String, f64>,
}

/// The value of a goal.
#[derive(Serialize)]
struct Cell {
    text: String,
    interval: String,
    reached: Option<(usize, usize)>,
    value: Option<f64>,
}

/// A curve with its runs.
struct LiveCurve<'a> {
    label: &'a str,
    runs: Vec<&'a WatchedRun>,
    /// The runs that count: those that have ended or, if none has, those that were evaluated.
    counted: Vec<&'a WatchedRun>,
}

impl Styled for LiveCurve<'_> {
    fn keys(&self) -> &[(String, String)] {
        self.runs.first().map_or(&[], |run| &run.facts.keys)
    }

    fn policy(&self) -> &str {
        self.runs.first().map_or("", |run| &run.facts.policy)
    }

    fn compressor(&self) -> &str {
        self.runs.first().map_or("", |run| &run.facts.compressor)
    }
}

impl<'a> LiveCurve<'a> {
    fn new(label: &'a str, runs: Vec<&'a WatchedRun>) -> Self {
        // Of a run that a longer one continues, the longer one counts.
        let mut longest: BTreeMap<u64, &WatchedRun> = BTreeMap::new();
        for &run in &runs {
            let own = longest.entry(run.facts.seed).or_insert(run);
            if (run.rows.len(), run.facts.rounds) > (own.rows.len(), own.facts.rounds) {
                *own = run;
            }
        }
        let has_ended = longest.values().any(|run| run.has_ended() && !run.rows.is_empty());
        let counts = |run: &&&WatchedRun| !run.rows.is_empty() && (run.has_ended() || !has_ended);
        let counted = longest.values().filter(counts).copied().collect();
        Self { label, runs, counted }
    }

    /// The value of a goal, a run that has not ended being censored where it is.
    fn standing(&self, goal: &Goal, target: f64) -> Standing {
        let reading = |run: &&WatchedRun| -> Reading {
            let known = run.symbols.iter().all(|symbols| symbols.is_finite());
            let metrics = match &run.state {
                State::Failed(reason) => Metrics::unfinished(&run.rows, target, reason.clone()),
                State::Done => Metrics::new(&run.rows, target),
                _ if goal.metric().is_none() => Metrics::new(&run.rows, target),
                _ => Metrics::unfinished(&run.rows, target, "it has not ended"),
            };
            let worst = run.rows.last().and_then(|row| row.worst_device_joules);
            let symbols = if known { run.symbols.clone() } else { Vec::new() };
            metrics.with_worst_device_joules(worst).with_symbols(symbols).read(goal)
        };
        let readings: Vec<Reading> = self.counted.iter().map(reading).collect();
        Standing::of(goal, &readings)
    }

    /// An estimate for every evaluation that all runs that count have.
    fn by_row(&self, value: impl Fn(&WatchedRun, usize) -> f64) -> Vec<Estimate> {
        let rows = self.counted.iter().map(|run| run.rows.len()).min().unwrap_or(0);
        (0..rows).map(|row| estimate(self.counted.iter().map(|run| value(run, row)))).collect()
    }

    fn means(&self, value: impl Fn(&WatchedRun, usize) -> f64) -> Vec<f64> {
        let means: Vec<f64> = self.by_row(value).iter().map(|estimate| estimate.mean).collect();
        if means.iter().any(|mean| mean.is_finite()) { means } else { Vec::new() }
    }

    fn report_curve(&self, scatter: Option<Point>, groups: Vec<GroupRow>) -> ReportCurve {
        let accuracy = self.by_row(|run, row| run.rows[row].test_accuracy);
        let ends = |estimate: &Estimate| {
            let known = estimate.half_width.is_finite();
            if known { estimate.ends_within(0.0, 1.0) } else { (estimate.mean, estimate.mean) }
        };
        let (low, high) = accuracy.iter().map(ends).unzip();
        let rounds = self.counted.first().map_or(&[][..], |run| &run.rows[..accuracy.len()]);
        let spent = |value: fn(&fedlink::record::Row) -> Option<f64>| {
            self.means(|run, row| value(&run.rows[row]).unwrap_or(f64::NAN))
        };
        let mut curve = ReportCurve {
            label: self.label.to_owned(),
            keys: self.keys().to_vec(),
            policy: self.policy().to_owned(),
            seeds: self.counted.len(),
            status: self.state().to_owned(),
            rounds: rounds.iter().map(|row| row.round).collect(),
            bits: spent(|row| Some(row.total_bits)),
            symbols: self.means(|run, row| run.symbols[row]),
            seconds: spent(|row| row.total_seconds),
            joules: spent(|row| row.total_joules),
            accuracy: accuracy.iter().map(|estimate| estimate.mean).collect(),
            low,
            high,
            loss: spent(|row| Some(row.test_loss)),
            scatter,
            groups,
            ..ReportCurve::default()
        };
        curve.thin();
        curve
    }

    fn state(&self) -> &'static str {
        let any = |wanted: fn(&State) -> bool| self.runs.iter().any(|run| wanted(&run.state));
        if any(|state| matches!(state, State::Failed(_))) {
            "failed"
        } else if any(|state| matches!(state, State::Running(_))) {
            "running"
        } else if self.runs.iter().all(|run| run.state == State::Done) {
            "done"
        } else if any(|state| *state == State::Stopped) {
            "stopped"
        } else {
            "waiting"
        }
    }

    /// The metrics at the last evaluation of the runs that count.
    fn metrics(&self) -> BTreeMap<String, f64> {
        let mut sums: BTreeMap<String, (f64, usize)> = BTreeMap::new();
        let mut add = |name: &str, value: f64| {
            let (sum, count) = sums.entry(name.to_owned()).or_default();
            (*sum, *count) = (*sum + value, *count + 1);
        };
        for row in self.counted.iter().filter_map(|run| run.rows.last()) {
            row.metrics.iter().for_each(|(name, value)| add(name, *value));
            row.empty.iter().for_each(|&devices| add("empty batteries", devices as f64));
        }
        sums.into_iter().map(|(name, (sum, count))| (name, sum / count as f64)).collect()
    }
}

/// The parts of a study, by name, as JSON. `now` is the time in seconds since 1970.
pub fn live_parts(study: &Study, now: f64) -> BTreeMap<String, String> {
    let target = study.head.target;
    let goals = goals(study);
    let all: Vec<LiveCurve> =
        study.curves().into_iter().map(|(label, runs)| LiveCurve::new(label, runs)).collect();
    let standings: Vec<Vec<Standing>> = all
        .iter()
        .map(|curve| goals.iter().map(|(_, goal)| curve.standing(goal, target)).collect())
        .collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| match (standings[a].first(), standings[b].first()) {
        (Some(a), Some(b)) => a.compare(b),
        _ => std::cmp::Ordering::Equal,
    });
    // The points of the best curves, if there are many; in their own order, as in the report.
    let mut shown: Vec<usize> = order.iter().copied().take(MAX_CURVES).collect();
    shown.sort_unstable();
    let curves: Vec<&LiveCurve> = shown.iter().map(|&i| &all[i]).collect();
    let groups: Vec<Vec<GroupRow>> = all.iter().map(groups_of).collect();
    let scatter_goal = goals.iter().find_map(|(_, goal)| match goal {
        Goal::Until(until) => Some(until),
        Goal::Plain(_) => None,
    });
    let looks = looks_of(&all);
    let report_curve = |&i: &usize| {
        let scatter = scatter_goal.and_then(|until| point(until, |goal| all[i].standing(goal, target)));
        let mut curve = all[i].report_curve(scatter, groups[i].clone());
        (curve.look, curve.family) = (Some(looks[i].0), looks[i].1.clone());
        curve
    };
    let report = Report {
        title: study.name.clone(),
        target,
        goals: goals.iter().map(|(name, goal)| (name.clone(), goal.to_string())).collect(),
        curves: shown.iter().map(report_curve).collect(),
        ..Report::default()
    };
    let place = |i: usize| shown.iter().position(|&own| own == i).unwrap_or(usize::MAX);
    let row = |&i: &usize| TableRow {
        curve: place(i),
        label: all[i].label.to_owned(),
        done: all[i].runs.iter().filter(|run| run.state == State::Done).count(),
        of: all[i].runs.len(),
        state: all[i].state(),
        accuracy: last_accuracy(&all[i]),
        goals: goals.iter().zip(&standings[i]).map(|((_, goal), standing)| cell(goal, standing)).collect(),
        groups: groups[i].clone(),
        metrics: all[i].metrics(),
    };
    let rows: Vec<TableRow> = order.iter().map(row).collect();
    let mut parts = BTreeMap::new();
    let mut put = |name: &str, value: &dyn erased::Json| {
        parts.insert(name.to_owned(), value.json());
    };
    put("head", &head(study, now, &goals, rows.first()));
    let names: Vec<(&str, String)> =
        goals.iter().map(|(name, goal)| (name.as_str(), goal.to_string())).collect();
    put("table", &(names, rows));
    put("charts", &(target, curves.len(), PageCharts::new(&report)));
    put("runs", &runs(study, now));
    let of_race = study.stages.len() + study.dropped.len() + study.decided.len();
    if of_race > 0 {
        put("race", &race(study));
    }
    for (i, curve) in report.curves.iter().enumerate() {
        put(&format!("curve/{i}"), curve);
    }
    parts
}

/// Values of several types as JSON.
mod erased {
    /// A value that has a JSON form.
    pub trait Json {
        /// Its JSON.
        fn json(&self) -> String;
    }

    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> String {
            serde_json::to_string(self).expect("plain data has a JSON form")
        }
    }
}

/// The goals of the table: those of the study, or costs until its target.
fn goals(study: &Study) -> Vec<(String, Goal)> {
    if !study.goals.is_empty() {
        return study.goals.clone();
    }
    let has_units =
        study.runs.iter().filter_map(|run| run.rows.last()).any(|row| row.total_seconds.is_some());
    let costs: &[Cost] =
        if has_units { &[Cost::Rounds, Cost::Seconds, Cost::Joules] } else { &[Cost::Rounds, Cost::Bits] };
    costs.iter().map(|&cost| (Goal::target(cost).to_string(), Goal::target(cost))).collect()
}

fn head(study: &Study, now: f64, goals: &[(String, Goal)], best: Option<&TableRow>) -> Head {
    let count = |wanted: &dyn Fn(&State) -> bool| study.runs.iter().filter(|run| wanted(&run.state)).count();
    let is_running = |state: &State| matches!(state, State::Running(process) if study.is_alive(process, now));
    let (done, running) = (count(&|state| *state == State::Done), count(&is_running));
    let failed = count(&|state| matches!(state, State::Failed(_)));
    let runs = study.known_runs.max(study.runs.len());
    let is_alive = study.processes.keys().any(|name| study.is_alive(name, now));
    let state = match (&study.closed, is_alive) {
        (_, true) => "running",
        (Some(state), false) if state == "finished" && done + failed == runs => "finished",
        (Some(_), false) => "stopped",
        (None, false) if study.processes.is_empty() => "no events yet",
        (None, false) => "silent",
    };
    let failures = study.runs.iter().filter_map(|run| match &run.state {
        State::Failed(reason) => Some((run.facts.label.clone(), reason.clone())),
        _ => None,
    });
    let best = best.and_then(|row| {
        let cell = row.goals.first()?;
        let is_reached = cell.reached.is_none_or(|(reached, _)| reached > 0);
        (is_reached && cell.text != "–").then(|| (row.label.clone(), cell.text.clone()))
    });
    Head {
        name: study.name.clone(),
        kind: study.kind.clone(),
        facts: study.head.text(),
        goal: goals.first().map_or_else(String::new, |(_, goal)| goal.to_string()),
        state,
        runs,
        done,
        running,
        waiting: runs.saturating_sub(done + running + failed),
        failed,
        seconds_left: study.seconds_left(now).map(f64::round),
        last: study.last,
        best,
        failures: failures.take(MAX_MESSAGES).collect(),
        processes: study
            .processes
            .iter()
            .map(|(name, own)| (name.clone(), study.is_alive(name, now), own.last.round()))
            .collect(),
    }
}

fn last_accuracy(curve: &LiveCurve) -> Option<Interval> {
    if curve.counted.iter().any(|run| matches!(run.state, State::Failed(_))) {
        return None;
    }
    let last = |run: &&WatchedRun| run.rows.last().map(|row| row.test_accuracy);
    let values: Option<Vec<f64>> = curve.counted.iter().map(last).collect();
    let values = values.filter(|values| !values.is_empty())?;
    Some(Interval::of_share(estimate(values)))
}

fn cell(goal: &Goal, standing: &Standing) -> Cell {
    let unit = goal.unit();
    let interval = match standing {
        Standing::Cost(median) => median.interval(|value| unit.value(value)),
        _ => match standing.ends() {
            (Some(low), Some(high)) => format!("[{}, {}]", unit.value(low), unit.value(high)),
            _ => String::new(),
        },
    };
    let reached = match standing {
        Standing::Cost(median) => Some((median.reached, median.of)),
        _ => None,
    };
    Cell { text: standing.text(unit), interval, reached, value: standing.value() }
}

fn groups_of(curve: &LiveCurve) -> Vec<GroupRow> {
    let ended: Vec<&[GroupUse]> =
        curve.counted.iter().map(|run| &run.groups[..]).filter(|groups| !groups.is_empty()).collect();
    group_rows(&ended)
}

/// Label, state, rounds done, rounds, accuracy and seconds of every run.
fn runs(study: &Study, now: f64) -> Vec<(String, String, u64, u64, Option<f64>)> {
    let row = |run: &WatchedRun| {
        let state = match &run.state {
            State::Waiting => "waiting",
            State::Running(process) if study.is_alive(process, now) => "running",
            State::Running(_) => "its process is silent",
            State::Done => "done",
            State::Stopped => "stopped",
            State::Failed(_) => "failed",
        };
        let accuracy = run.rows.last().map(|row| row.test_accuracy);
        (run.facts.label.clone(), state.to_owned(), run.round, run.facts.rounds, accuracy)
    };
    study.runs.iter().take(MAX_RUNS).map(row).collect()
}

/// The stages, the dropped candidates and the choices of a race, the last first.
fn race(study: &Study) -> serde_json::Value {
    let dropped: Vec<_> = { study.dropped.iter().rev().take(MAX_MESSAGES) }
        .map(|own| serde_json::json!([own.stage, own.candidate, own.reason, own.proven]))
        .collect();
    let decided: Vec<_> = { study.decided.iter().rev().take(MAX_MESSAGES) }
        .map(|own| serde_json::json!([own.stage, own.candidate, own.reason]))
        .collect();
    serde_json::json!({ "stages": study.stages, "dropped": dropped, "decided": decided })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedlink_study::events::{Event, Line, Quantities, RunFacts};

    #[test]
    fn a_run_that_a_longer_one_continues_is_not_a_second_seed() {
        let mut study = Study::default();
        for (name, rounds) in [("short", 20), ("long", 40)] {
            let mut facts = RunFacts::default();
            (facts.run, facts.label, facts.curve) = (name.into(), name.into(), "bc".into());
            (facts.rounds, facts.cost) = (rounds, 1.0);
            let mut events = vec![Event::Planned(facts)];
            events.extend((1..=rounds / 10).map(|i| Event::Evaluated {
                run: name.into(),
                round: 10 * i,
                accuracy: 0.1 * i as f64,
                quantities: Quantities::default(),
            }));
            events.push(Event::Finished {
                run: name.into(),
                status: "finished".into(),
                rounds,
                seconds: 1.0,
                groups: Vec::new(),
            });
            events.into_iter().for_each(|event| study.apply(Line { time: 1.0, process: "a".into(), event }));
        }
        let parts = live_parts(&study, 2.0);
        let curve: serde_json::Value = serde_json::from_str(&parts["curve/0"]).unwrap();
        assert_eq!((&curve["seeds"], &curve["rounds"]), (&1.into(), &serde_json::json!([10, 20, 30, 40])));
        assert!(!parts.contains_key("curve/1"));
    }
}
