//! Seconds and joules until the goal, and the use of groups of devices.

use super::Report;
use super::ReportCurve;
use super::html::{MISSING, count, escape, headings, number_cell, percent, significant, table};
use super::tables::rows;
use crate::chart::Axis;
use crate::plots::Across;
use fedlink_study::events::GroupUse;
use fedlink_study::goals::{Cost, Goal, Median, Standing, Until};
use serde::Serialize;
use std::fmt::Write as _;

/// The medians of seconds and joules until a goal.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Point {
    /// Seconds.
    pub seconds: f64,
    /// The ends of their interval; the median where an end is unknown.
    pub seconds_ends: (f64, f64),
    /// Joules.
    pub joules: f64,
    /// The ends of their interval.
    pub joules_ends: (f64, f64),
    /// Runs that reached the goal.
    pub reached: usize,
    /// All runs.
    pub of: usize,
}

/// Seconds and joules until the conditions of a goal hold; none if one of the medians is unknown.
pub fn point(until: &Until, standing: impl Fn(&Goal) -> Standing) -> Option<Point> {
    let median = |cost: Cost| -> Option<Median> {
        let mut own = until.clone();
        own.cost = cost;
        match standing(&Goal::Until(own)) {
            Standing::Cost(median) => Some(median),
            _ => None,
        }
    };
    let (seconds, joules) = (median(Cost::Seconds)?, median(Cost::Joules)?);
    let ends = |median: &Median, value: f64| (median.low.unwrap_or(value), median.high.unwrap_or(value));
    let (s, j) = (seconds.value?, joules.value?);
    Some(Point {
        seconds: s,
        seconds_ends: ends(&seconds, s),
        joules: j,
        joules_ends: ends(&joules, j),
        reached: seconds.reached,
        of: seconds.of,
    })
}

/// The axes of the chart of seconds and joules.
#[derive(Serialize)]
pub struct ScatterAxes {
    x: Axis,
    y: Axis,
}

impl ScatterAxes {
    /// The axes that show all points; none if there is none.
    pub fn new(curves: &[ReportCurve]) -> Option<Self> {
        let points: Vec<&Point> = curves.iter().filter_map(|curve| curve.scatter.as_ref()).collect();
        let axis = |x: Across, ends: fn(&Point) -> (f64, f64)| {
            let values = points.iter().flat_map(|point| [ends(point).0, ends(point).1]);
            x.quantity().margin(0.05).axis(values)
        };
        (!points.is_empty()).then(|| Self {
            x: axis(Across::Seconds, |point| point.seconds_ends),
            y: axis(Across::Joules, |point| point.joules_ends),
        })
    }
}

/// The use of a group of devices: means over the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GroupRow {
    /// The group.
    pub group: String,
    /// Its devices.
    pub devices: u64,
    /// Its devices that were scheduled at least once.
    pub heard: f64,
    /// Its share of the uploads.
    pub uploads: f64,
    /// Its share of the joules, where the radio has units.
    pub joules: Option<f64>,
}

/// The use of the groups, means over runs that all have the same groups; empty without groups.
pub fn group_rows(runs: &[&[GroupUse]]) -> Vec<GroupRow> {
    let Some(first) = runs.first() else { return Vec::new() };
    if runs.iter().any(|own| own.len() != first.len()) {
        return Vec::new();
    }
    let mean = |value: &dyn Fn(&[GroupUse]) -> f64| {
        runs.iter().map(|run| value(run)).sum::<f64>() / runs.len() as f64
    };
    let share = |run: &[GroupUse], value: &dyn Fn(&GroupUse) -> f64, group: usize| {
        value(&run[group]) / run.iter().map(value).sum::<f64>()
    };
    let joules = |own: &GroupUse| own.joules.unwrap_or(f64::NAN);
    (0..first.len())
        .map(|group| GroupRow {
            group: first[group].group.clone(),
            devices: first[group].devices,
            heard: mean(&|run| run[group].heard as f64),
            uploads: mean(&|run| share(run, &|own| own.uploads as f64, group)),
            joules: Some(mean(&|run| share(run, &joules, group))).filter(|share| share.is_finite()),
        })
        .collect()
}

/// The section on seconds and joules until the goal; nothing if no curve has both.
pub fn scatter(report: &Report) -> String {
    if report.curves.iter().all(|curve| curve.scatter.is_none()) {
        return String::new();
    }
    let body = rows(report, |curve| {
        let number = |value: Option<f64>| {
            number_cell(
                value.unwrap_or(f64::NAN),
                &value.map_or_else(|| MISSING.into(), |v| significant(v, 4)),
            )
        };
        let point = curve.scatter.as_ref();
        let reached =
            point.map_or_else(|| MISSING.into(), |point| format!("{} of {}", point.reached, point.of));
        number(point.map(|point| point.seconds))
            + &number(point.map(|point| point.joules))
            + &number_cell(point.map_or(f64::NAN, |point| point.reached as f64), &reached)
    });
    let names = ["Curve", "Seconds", "Joules", "Seeds that reached it"];
    let caption =
        "Medians over the seeds until the goal; a curve without a number did not reach it at enough seeds";
    format!(
        "<section id=\"trade\" aria-labelledby=\"trade-heading\">\n\
         <h2 id=\"trade-heading\">Seconds against joules</h2>\n<p>Until {}. Curves at the lower left cost \
         less of both.</p>\n<div class=\"needs-script\" hidden=\"\"><div class=\"chart\" \
         id=\"scatter-chart\"></div></div>\n<details><summary>The points as a table</summary>\n{}\
         </details>\n</section>\n",
        escape(&report.scatter_goal),
        table("scatter-table", caption, &headings(&names), &body)
    )
}

/// The section on the groups of devices; nothing without groups.
pub fn groups(report: &Report) -> String {
    if report.curves.iter().all(|curve| curve.groups.is_empty()) {
        return String::new();
    }
    let mut body = String::new();
    for (i, curve) in report.curves.iter().enumerate() {
        for row in &curve.groups {
            let cells = [
                format!("<td>{}</td>", escape(&row.group)),
                number_cell(row.heard, &format!("{} of {}", count(row.heard), row.devices)),
                number_cell(row.uploads, &percent(row.uploads)),
                number_cell(
                    row.joules.unwrap_or(f64::NAN),
                    &row.joules.map_or_else(|| MISSING.into(), percent),
                ),
            ];
            let name = super::html::curve_name(i, &curve.label);
            let _ = writeln!(body, "<tr><th scope=\"row\">{name}</th>{}</tr>", cells.concat());
        }
    }
    let names = ["Curve", "Group", "Devices scheduled at least once", "Share of uploads", "Share of joules"];
    let caption = "The groups of devices, such as near and far ones: means over the seeds";
    format!(
        "<section id=\"groups\" aria-labelledby=\"groups-heading\">\n\
         <h2 id=\"groups-heading\">Groups of devices</h2>\n{}</section>\n",
        table("groups-table", caption, &headings(&names), &body)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(group: &str, uploads: u64, joules: f64) -> GroupUse {
        let mut own = GroupUse::default();
        (own.group, own.devices, own.heard) = (group.into(), 4, uploads.min(4));
        (own.uploads, own.joules) = (uploads, Some(joules));
        own
    }

    #[test]
    fn shares_of_groups_are_means_over_runs_and_add_up_to_one() {
        let runs = [
            vec![used("near", 30, 1.0), used("far", 10, 3.0)],
            vec![used("near", 5, 1.0), used("far", 5, 1.0)],
        ];
        let runs: Vec<&[GroupUse]> = runs.iter().map(Vec::as_slice).collect();
        let rows = group_rows(&runs);
        assert_eq!((rows[0].uploads, rows[1].uploads), (0.625, 0.375));
        assert_eq!((rows[0].joules, rows[1].joules), (Some(0.375), Some(0.625)));
        assert!(group_rows(&[]).is_empty());
    }
}
