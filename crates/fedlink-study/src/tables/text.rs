//! The table of curves for the terminal.

use super::results::{CurveResult, Status};
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
pub fn table(results: &[CurveResult]) -> String {
    let target = target_name(results);
    let costs = results.iter().any(CurveResult::has_costs);
    let lost: Vec<Lost> =
        LOST.into_iter().filter(|(_, lost)| results.iter().any(|c| c.mean_of(*lost) > 0.0)).collect();
    let mut header = vec!["curve".to_owned(), "final".into(), "best".into(), format!("rounds to {target}")];
    if costs {
        header.extend([format!("seconds to {target}"), format!("joules to {target}")]);
    }
    header.extend(["bits/round", "mean q", "highest power"].map(str::to_owned));
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
    let rows: Vec<Vec<String>> = results.iter().map(|curve| table_row(curve, costs, &lost, heard)).collect();
    let mut text = plain_table(&header, &rows);
    let _ = writeln!(
        text,
        "highest power: average power of the device that {}, per seed, against {};\n  \
         P is charged for every whole round in which the device is scheduled",
        // Without units every device transmits with the same power.
        if results.iter().any(CurveResult::has_units) { "spent the most" } else { "was scheduled most" },
        power_key(results)
    );
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

fn table_row(curve: &CurveResult, costs: bool, lost: &[Lost], heard: bool) -> Vec<String> {
    let dash = || "–".to_owned();
    let percent =
        |value: Option<Estimate>| value.map_or_else(dash, |share| format!("{:.2} %", 100.0 * share.mean));
    let spent = |value: Option<Estimate>| value.map_or_else(dash, |spent| number(spent.mean));
    let target = curve.spec.run.target;
    let rounds = curve.over_seeds(|run| run.at_target(target).map(|row| row.round as f64));
    let digest = match &curve.runs[..] {
        [run] => run.outcome.digest[..12].to_owned(),
        runs => format!("{} seeds", runs.len()),
    };
    let mut row = vec![
        curve.label.clone(),
        percent(curve.at_the_end(|run| run.outcome.final_accuracy)),
        percent(curve.at_the_end(|run| run.outcome.best_accuracy)),
        rounds.map_or_else(dash, |rounds| format!("{:.0}", rounds.mean)),
    ];
    if costs {
        row.push(spent(curve.over_seeds(|run| run.at_target(target)?.total_seconds)));
        row.push(spent(curve.over_seeds(|run| run.at_target(target)?.total_joules)));
    }
    row.extend([
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
