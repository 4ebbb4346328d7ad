//! The sections on seconds, joules and the cell, for runs in physical units.

use super::html::{count, escape, headings, interval_cell, median_cell, number_cell, significant, table};
use super::tables::{rows, target_percent};
use super::{CurveCosts, Report, ReportCurve, drawing};
use crate::plots::{device_energy_chart, energy_chart, phases_chart};
use std::fmt::Write;

/// Devices that the drawings by device of one page show in all; the first curve has its own in any case.
const MAX_DRAWN: usize = 4000;

/// Whether a curve has seconds and joules.
pub fn has_costs(report: &Report) -> bool {
    report.curves.iter().any(|curve| curve.costs.is_some())
}

/// Whether there is a map or a distribution of SNRs.
pub fn has_cell(report: &Report) -> bool {
    !report.cells.is_empty() || report.snr.is_some()
}

/// The choice of seconds and joules as the x axis; nothing without units.
pub fn axes(report: &Report) -> String {
    if has_costs(report) { cost_axes() } else { String::new() }
}

/// The choice of seconds and joules.
pub fn cost_axes() -> String {
    let choice = |value: &str, name: &str| {
        format!("<label><input type=\"radio\" name=\"x\" value=\"{value}\"/><span>{name}</span></label>\n")
    };
    choice("seconds", "Seconds") + &choice("joules", "Joules")
}

/// The section on seconds and joules; nothing without units.
pub fn costs(report: &Report) -> String {
    if !has_costs(report) {
        return String::new();
    }
    let known = || report.curves.iter().filter_map(|curve| Some((curve, curve.costs.as_ref()?)));
    let label = |curve: &ReportCurve| curve.label.clone();
    let phases = phases_chart("", known().map(|(curve, costs)| (label(curve), costs.phases_s)));
    let energy = energy_chart("", known().map(|(curve, costs)| (label(curve), costs.energy_j)));
    let mut devices = String::new();
    for (curve, costs) in within(known(), |(_, costs)| costs.device_energy_j.len()) {
        let seeds = if curve.ranked { curve.seeds } else { 1 };
        let chart = device_energy_chart("", seeds, &costs.device_energy_j);
        let what = format!("Energy by device: {}", curve.label);
        let _ = write!(
            devices,
            "<details><summary>{}</summary>\n{}</details>\n",
            escape(&what),
            drawing(&what, &chart)
        );
    }
    format!(
        "<section id=\"costs\" aria-labelledby=\"costs-heading\">\n\
         <h2 id=\"costs-heading\">Seconds and joules</h2>\n{}\
         <h3>Phases of a round</h3>\n{}<h3>Energy of a round</h3>\n{}{devices}</section>\n",
        costs_table(report),
        phases.map_or_else(String::new, |chart| {
            drawing("Mean seconds per round by phase, of each curve", &chart)
        }),
        energy.map_or_else(String::new, |chart| {
            drawing("Mean joules of all devices per round by kind, of each curve", &chart)
        }),
    )
}

fn costs_table(report: &Report) -> String {
    let target = target_percent(report.target);
    let names = [
        "Curve",
        &format!("Seconds to {target} %"),
        &format!("Joules to {target} %"),
        "Seconds",
        "Joules",
        "Worst device",
        "Outages",
        "Late",
    ];
    let seconds = |value: f64| format!("{}\u{a0}s", significant(value, 4));
    let joules = |value: f64| format!("{}\u{a0}J", significant(value, 4));
    let none = CurveCosts { outages: f64::NAN, late: f64::NAN, ..CurveCosts::default() };
    let body = rows(report, |curve| {
        let costs = curve.costs.as_ref().unwrap_or(&none);
        let uploads = |value: f64| number_cell(value, &count(value));
        [
            median_cell(costs.seconds_to_target.as_ref(), seconds),
            median_cell(costs.joules_to_target.as_ref(), joules),
            interval_cell(costs.total_seconds, seconds),
            interval_cell(costs.total_joules, joules),
            interval_cell(costs.worst_device_joules, joules),
            uploads(costs.outages),
            uploads(costs.late),
        ]
        .concat()
    });
    let caption = "Seconds of the simulated rounds and joules of all devices together, and of the device \
                   that spent the most; uploads of a run that the channel did not carry, and that came after \
                   the deadline. Costs to the target are medians over the seeds, (7/10): 7 of 10 seeds \
                   reached it, &gt; 60: the median lies beyond; the others are means. With their 95 % \
                   confidence intervals in brackets";
    table("costs-table", caption, &headings(&names), &body)
}

/// The section on the positions of the devices and their SNRs; nothing if there is neither.
pub fn cell(report: &Report) -> String {
    if !has_cell(report) {
        return String::new();
    }
    let mut section = "<section id=\"cell\" aria-labelledby=\"cell-heading\">\n\
                       <h2 id=\"cell-heading\">Cell</h2>\n"
        .to_owned();
    for (i, map) in within(report.cells.iter(), |map| map.dots.len()).into_iter().enumerate() {
        let what = format!("{}: devices by mean gain and by number of schedules", map.title);
        let figure = drawing(&what, map);
        if i == 0 {
            section += &figure;
        } else {
            let _ =
                write!(section, "<details><summary>{}</summary>\n{figure}</details>\n", escape(&map.title));
        }
    }
    if let Some(chart) = &report.snr {
        section += "<h3>SNR</h3>\n";
        section += &drawing("Cumulative distribution of the SNR", chart);
    }
    section + "</section>\n"
}

/// The first item, and the next ones while all of them together have no more devices than a page draws.
fn within<T>(items: impl Iterator<Item = T>, devices: impl Fn(&T) -> usize) -> Vec<T> {
    let mut drawn = 0;
    let fits = |(i, item): &(usize, T)| {
        drawn += devices(item);
        *i == 0 || drawn <= MAX_DRAWN
    };
    items.filter(|item| devices(item) > 0).enumerate().take_while(fits).map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_draws_the_first_and_no_more_than_its_limit() {
        let drawn = |sizes: &[usize]| within(sizes.iter().copied(), |size| *size);
        assert_eq!(drawn(&[9000, 1]), [9000]);
        assert_eq!(drawn(&[1000, 0, 2000, 1000, 1]), [1000, 2000, 1000]);
        assert!(drawn(&[0]).is_empty());
    }
}
