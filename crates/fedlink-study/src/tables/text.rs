//! The table of curves for the terminal.

use super::results::{CurveResult, Status};
use crate::goals::{Cost, Goal, Unit};
use crate::statistics::Estimate;
use crate::table::{number, table as plain_table};
use fedlink::record::Outcome;
use fedlink::spec::Config;
use std::fmt::Write;

/// `bits to 80 %`: a target as tables call it.
pub fn percent_of(share: f64) -> String {
    let percent = format!("{:.2}", 100.0 * share);
    format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// The targets of the curves as a table's head has them: `80 %`, or `target` where they differ.
pub fn target_name(results: &[CurveResult]) -> String {
    let mut targets = results.iter().map(|curve| curve.spec.run.target);
    let first = targets.next().unwrap_or_else(|| Config::default().run.target);
    if targets.all(|target| target == first) { percent_of(first) } else { "target".into() }
}

/// The table at the end of a run. It has columns of seconds and joules if some run has them, and columns of
/// lost and late uploads if there are any.
///
/// A cost until the target, or until one of the goals of the experiment, is the median over the seeds; where
/// some of them did not reach it, their number is there too.
pub fn table(results: &[CurveResult]) -> String {
    let goals = results.first().map_or(&[][..], |curve| &curve.goals);
    let target = target_name(results);
    let costs = results.iter().any(CurveResult::has_costs);
    let lost: Vec<Lost> =
        LOST.into_iter().filter(|(_, lost)| results.iter().any(|c| c.mean_of(*lost) > 0.0)).collect();
    let worst_class = results.iter().any(|curve| curve.worst_class().is_some());
    let mut header = vec!["curve".to_owned(), "final".into(), "best".into()];
    header.extend(worst_class.then(|| "worst class".into()));
    header.push(format!("rounds to {target}"));
    if costs {
        header.extend([format!("seconds to {target}"), format!("joules to {target}")]);
    }
    header.extend(goals.iter().map(|(name, _)| name.clone()));
    header.extend(["trainings/round", "bits/round", "mean q", "highest power"].map(str::to_owned));
    if costs {
        header.extend(["seconds", "joules", "worst device"].map(str::to_owned));
    }
    header.extend(lost.iter().map(|(name, _)| (*name).to_owned()));
    let heard = results.iter().any(|curve| curve.heard_text().is_some());
    if heard {
        header.push("heard".into());
    }
    header.extend(["digest", "status"].map(str::to_owned));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let shown = Shown { costs, lost: &lost, heard, worst_class, goals };
    let rows: Vec<Vec<String>> = results.iter().map(|curve| table_row(curve, &shown)).collect();
    let mut text = plain_table(&header, &rows);
    let _ = writeln!(
        text,
        "highest power: average power of the device that {}, per seed, against {};\n  \
         P is charged for every whole round in which the device is scheduled",
        // Without units every device transmits with the same power.
        if results.iter().any(CurveResult::has_units) { "spent the most" } else { "was scheduled most" },
        power_key(results)
    );
    for (name, goal) in goals {
        let _ = writeln!(text, "{name}: {goal}");
    }
    if censored(results, goals, costs) {
        text += "rounds to a target and other costs: median over the seeds; (7/10): 7 of 10 seeds reached \
                 it; > 60: the median lies beyond\n";
    }
    if heard {
        text += "heard: devices that were scheduled at least once, of all; mean over the seeds\n";
    }
    if costs {
        text += "seconds, joules: totals over all rounds, joules over all devices; worst device: joules \
                 of the device that spent the most\n";
    }
    results.iter().for_each(|curve| text += &remarks(curve));
    text
}

/// Columns that are shown if some run has a value above 0: lost uploads by cause, and the cost of reports.
type Lost = (&'static str, fn(&Outcome) -> f64);

const LOST: [Lost; 3] = [
    ("outages", |outcome| outcome.outages as f64),
    ("late", |outcome| outcome.late as f64),
    ("report symbols/round", |outcome| outcome.report_symbols_per_round),
];

/// The columns that the table has.
struct Shown<'a> {
    costs: bool,
    lost: &'a [Lost],
    heard: bool,
    worst_class: bool,
    goals: &'a [(String, Goal)],
}

/// Whether some run did not reach a goal of the table.
fn censored(results: &[CurveResult], goals: &[(String, Goal)], costs: bool) -> bool {
    let targets = [Cost::Rounds, Cost::Seconds].into_iter().take(if costs { 2 } else { 1 }).map(Goal::target);
    let mut all = targets.chain(goals.iter().map(|(_, goal)| goal.clone()));
    all.any(|goal| {
        let medians = results.iter().filter_map(|curve| curve.median(&goal));
        medians.into_iter().any(|median| median.reached < median.of)
    })
}

/// The value of a goal in a table: the median of a cost, the mean of a metric, a dash where a seed has no
/// number.
pub fn goal_cell(curve: &CurveResult, goal: &Goal) -> String {
    let value = match goal.metric() {
        None => curve.median(goal).map(|median| match goal.unit() {
            Unit::Rounds => median.text(|rounds| format!("{rounds:.0}")),
            _ => median.text(number),
        }),
        Some(metric) => curve.estimate(goal).map(|mean| metric.unit().value(mean.mean)),
    };
    value.unwrap_or_else(|| "–".to_owned())
}

fn table_row(curve: &CurveResult, shown: &Shown) -> Vec<String> {
    let &Shown { costs, lost, heard, worst_class, goals } = shown;
    let dash = || "–".to_owned();
    let percent =
        |value: Option<Estimate>| value.map_or_else(dash, |share| format!("{:.2} %", 100.0 * share.mean));
    let spent = |value: Option<Estimate>| value.map_or_else(dash, |spent| number(spent.mean));
    let digest = match &curve.runs[..] {
        [run] => run.outcome.digest[..12].to_owned(),
        runs => format!("{} seeds", runs.len()),
    };
    let mut row = vec![
        curve.label.clone(),
        percent(curve.at_the_end(|run| run.outcome.final_accuracy)),
        percent(curve.at_the_end(|run| run.outcome.best_accuracy)),
    ];
    row.extend(worst_class.then(|| percent(curve.worst_class())));
    row.push(goal_cell(curve, &Goal::target(Cost::Rounds)));
    if costs {
        row.extend([Cost::Seconds, Cost::Joules].map(|cost| goal_cell(curve, &Goal::target(cost))));
    }
    row.extend(goals.iter().map(|(_, goal)| goal_cell(curve, goal)));
    row.extend([
        format!("{:.1}", curve.trainings_per_round()),
        format!("{:.0}", curve.mean_of(|outcome| outcome.bits_per_round)),
        format!("{:.0}", curve.mean_of(|outcome| outcome.mean_q)),
        curve.power_text(curve.highest_power().mean),
    ]);
    if costs {
        row.push(spent(curve.over_seeds(|run| run.outcome.seconds())));
        row.push(spent(curve.over_seeds(|run| run.outcome.joules())));
        row.push(spent(curve.over_seeds(|run| run.outcome.worst_device_joules())));
    }
    row.extend(lost.iter().map(|(_, lost)| format!("{:.1}", curve.mean_of(lost))));
    if heard {
        row.push(curve.heard_text().unwrap_or_else(|| "all".into()));
    }
    row.extend([digest, curve.status().name().to_owned()]);
    row
}

/// The key of P̄: `radio.power_dbm` where the radio has units.
fn power_key(results: &[CurveResult]) -> &'static str {
    let units = results.iter().filter(|curve| curve.has_units()).count();
    match units {
        0 => "radio.power",
        all if all == results.len() => "radio.power_dbm",
        _ => "radio.power or radio.power_dbm",
    }
}

/// Remarks on a curve, a line each.
fn remarks(curve: &CurveResult) -> String {
    let mut text = String::new();
    let lost = [
        ("could not be decoded", curve.mean_of(|outcome| outcome.undecodable_transmissions as f64)),
        (
            "contradicted reports and were dropped",
            curve.mean_of(|outcome| outcome.flagged_transmissions as f64),
        ),
    ];
    for (what, uploads) in lost.into_iter().filter(|(_, uploads)| *uploads > 0.0) {
        let _ = writeln!(text, "{}: {uploads:.1} uploads per run {what}", curve.label);
    }
    let excluded = curve.mean_of(|outcome| outcome.excluded.len() as f64);
    if excluded > 0.0 {
        let _ = writeln!(text, "{}: {excluded:.1} devices per run were excluded", curve.label);
    }
    if let Some(saturated) = curve.saturated() {
        let _ = writeln!(text, "{}: {saturated}", curve.label);
    }
    for line in curve.privacy() {
        let _ = writeln!(text, "{}: {line}", curve.label);
    }
    for (seed, warning) in curve.warnings() {
        let _ = writeln!(text, "{} (seed {seed}): {warning}", curve.label);
    }
    for run in &curve.runs {
        if let Status::Diverged(message) = &run.status {
            let _ = writeln!(text, "{} (seed {}): {message}", curve.label, run.seed);
        }
    }
    text
}
