//! The section on classes and devices that a model serves worse than others, for runs with `run.fairness`.

use super::html::{count, headings, interval_cell, percent, significant, table};
use super::tables::rows;
use super::{CurveFairness, Report};

/// Whether a curve has recorded it.
pub fn has_fairness(report: &Report) -> bool {
    report.curves.iter().any(|curve| curve.fairness.is_some())
}

/// The section; nothing without `run.fairness`.
pub fn fairness(report: &Report) -> String {
    if !has_fairness(report) {
        return String::new();
    }
    format!(
        "<section id=\"fairness\" aria-labelledby=\"fairness-heading\">\n\
         <h2 id=\"fairness-heading\">Fairness</h2>\n{}{}</section>\n",
        devices_table(report),
        classes_table(report)
    )
}

/// The rows of a table; `cells` of a curve without fairness gets one without values.
fn fairness_rows(report: &Report, cells: impl Fn(&CurveFairness) -> String) -> String {
    let none = CurveFairness::default();
    rows(report, |curve| cells(curve.fairness.as_ref().unwrap_or(&none)))
}

fn devices_table(report: &Report) -> String {
    let names = [
        "Curve",
        "Worst class",
        "Worst tenth of devices",
        "Deviation of devices",
        "Jain index",
        "Max age",
        "Mean age",
    ];
    let body = fairness_rows(report, |fairness| {
        [
            interval_cell(fairness.worst_class, percent),
            interval_cell(fairness.worst_tenth, percent),
            interval_cell(fairness.device_deviation, |share| significant(100.0 * share, 3)),
            interval_cell(fairness.jain, |index| significant(index, 3)),
            interval_cell(fairness.max_age, count),
            interval_cell(fairness.mean_age, |age| significant(age, 3)),
        ]
        .concat()
    });
    let caption = "At the last evaluation: accuracy of the worst class, mean accuracy of the worst tenth of \
                   the devices (that of a device follows from its mix of classes) and standard deviation \
                   over the devices in percentage points; how evenly devices were scheduled, and rounds \
                   since then. Means over the seeds, with their 95 % confidence interval in brackets";
    table("fairness-table", caption, &headings(&names), &body)
}

/// The accuracy of each class; nothing if no curve has classes.
fn classes_table(report: &Report) -> String {
    let known = report.curves.iter().filter_map(|curve| curve.fairness.as_ref());
    let classes = known.map(|fairness| fairness.classes.len()).max().unwrap_or(0);
    if classes == 0 {
        return String::new();
    }
    let names: Vec<String> = std::iter::once("Curve".to_owned())
        .chain((0..classes).map(|class| format!("Class {class}")))
        .collect();
    let body = fairness_rows(report, |fairness| {
        let class = |i: usize| fairness.classes.get(i).copied().flatten();
        (0..classes).map(|i| interval_cell(class(i), percent)).collect()
    });
    let caption = "Accuracy on the test samples of each class at the last evaluation. Means over the seeds, \
                   with their 95 % confidence interval in brackets";
    table("classes-table", caption, &headings(&names), &body)
}
