//! The tables of the page.

use super::fairness_section::has_fairness;
use super::html::{
    MISSING, count, curve_name, escape, headings, interval_cell, median_cell, number_cell, percent, prefixed,
    significant, table,
};
use super::{DeviceTotals, GoalValue, Interval, Report, ReportCurve, SplitTable};
use std::fmt::Write;

/// More devices than this are counted together in the table of the split.
const MAX_DEVICES: usize = 200;

/// The line under the title.
pub fn facts(report: &Report) -> String {
    if !report.head.is_empty() {
        let curves = report.curves.len();
        let noun = if curves == 1 { "curve" } else { "curves" };
        return format!("{curves} {noun} · {}", escape(&report.head));
    }
    let curves = report.curves.len();
    let max = report.curves.iter().map(|curve| curve.seeds).max().unwrap_or(0);
    let min = report.curves.iter().map(|curve| curve.seeds).min().unwrap_or(0);
    let seeds = if min == max { max.to_string() } else { format!("{min} to {max}") };
    let rounds = report.curves.iter().filter_map(|curve| curve.rounds.last()).max().unwrap_or(&0);
    let several =
        |number: usize, one: &str, more: &str| format!("{number} {}", if number == 1 { one } else { more });
    format!(
        "{} · {} · {rounds} rounds · {seeds} {} per curve",
        several(curves, "curve", "curves"),
        several(report.devices, "device", "devices"),
        if max == 1 { "seed" } else { "seeds" },
    )
}

/// A target in percent with as many decimals as it has, two at most.
pub fn target_percent(share: f64) -> String {
    match (1e4 * share).round() / 1e2 {
        percent if percent.is_finite() => percent.to_string(),
        _ => MISSING.to_owned(),
    }
}

/// One row per curve: accuracy, rounds and bits to the target, and the state at the end.
pub fn results(report: &Report) -> String {
    let target = escape(&target_percent(report.target));
    let worst_class = has_fairness(report);
    let mut names = ["Curve", "Final accuracy", "95 % interval", "Best accuracy"].map(str::to_owned).to_vec();
    names.extend(worst_class.then(|| "Worst class".to_owned()));
    names.extend([format!("Rounds to {target} %"), format!("Bits to {target} %")]);
    names.extend(report.goals.iter().map(|(name, _)| escape(name)));
    names.extend(
        ["Trainings per round", "Area under curve", "Instability", "K", "Seeds", "Status"].map(str::to_owned),
    );
    let finals = report.curves.iter().map(|curve| curve.final_accuracy);
    let scale = Scale::over(finals.flat_map(|accuracy| [accuracy.mean, accuracy.low, accuracy.high]));
    let mut body = String::new();
    for (i, curve) in report.curves.iter().enumerate() {
        let _ = writeln!(
            body,
            "<tr data-curve=\"{i}\"><th scope=\"row\">{}<span class=\"policy\">{}</span></th>{}\
             <td class=\"whisker\">{}</td>\
             {}{}{}{}{}{}{}{}{}{}<td class=\"status {}\">{}</td></tr>",
            curve_name(i, &curve.label),
            // A label often is the policy's name in capitals: once is enough.
            if curve.label.eq_ignore_ascii_case(&curve.policy) {
                String::new()
            } else {
                escape(&curve.policy)
            },
            interval_cell(Some(curve.final_accuracy), percent),
            scale.whisker(curve.final_accuracy),
            interval_cell(Some(curve.best_accuracy), percent),
            if worst_class {
                let fairness = curve.fairness.as_ref();
                interval_cell(fairness.and_then(|fairness| fairness.worst_class), percent)
            } else {
                String::new()
            },
            median_cell(curve.rounds_to_target.as_ref(), count),
            median_cell(curve.bits_to_target.as_ref(), |bits| prefixed(bits, "bit")),
            (0..report.goals.len()).map(|i| goal_cell(curve, i)).collect::<String>(),
            number_cell(curve.trainings_per_round, &count(curve.trainings_per_round)),
            interval_cell(Some(curve.area_under_curve), |area| significant(area, 4)),
            interval_cell(Some(curve.instability), |jumps| significant(jumps, 3)),
            number_cell(curve.k as f64, &curve.k.to_string()),
            number_cell(curve.seeds as f64, &curve.seeds.to_string()),
            if curve.status == "finished" { "good" } else { "bad" },
            escape(&curve.status),
        );
    }
    let goals: Vec<String> =
        report.goals.iter().map(|(name, goal)| format!("; {}: {}", escape(name), escape(goal))).collect();
    let caption = format!(
        "Accuracy on the test set: mean over the seeds, with its 95 % confidence interval in brackets. Costs \
         to a target: median over the seeds, (7/10): 7 of 10 seeds reached it, &gt; 60: the median lies \
         beyond{}",
        goals.concat()
    );
    table("results-table", &caption, &headings(&names), &body)
}

/// The cell of a goal of the experiment.
fn goal_cell(curve: &ReportCurve, goal: usize) -> String {
    let none = GoalValue::default();
    let value = curve.goals.get(goal).unwrap_or(&none);
    let text = if value.text.is_empty() { MISSING.to_owned() } else { escape(&value.text) };
    let interval = match value.interval.as_str() {
        "" => String::new(),
        interval => format!(" <span class=\"ends\">{}</span>", escape(interval)),
    };
    number_cell(value.value.unwrap_or(f64::NAN), &(text + &interval))
}

/// A scale for the drawings of intervals, so that they can be compared down a column.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        Self { low, high }
    }

    fn x(&self, value: f64) -> String {
        let share = if self.high > self.low { (value - self.low) / (self.high - self.low) } else { 0.5 };
        format!("{:.1}", 6.0 + 84.0 * share)
    }

    /// A dot at the mean on a line from end to end. The numbers are beside it.
    fn whisker(&self, interval: Interval) -> String {
        if !interval.mean.is_finite() {
            return MISSING.to_owned();
        }
        let mut drawing =
            "<svg width=\"96\" height=\"14\" viewBox=\"0 0 96 14\" aria-hidden=\"true\">".to_owned();
        if interval.is_known() {
            let (low, high) = (self.x(interval.low), self.x(interval.high));
            let _ = write!(drawing, "<path d=\"M{low} 7H{high}M{low} 3V11M{high} 3V11\"/>");
        }
        let _ = write!(drawing, "<circle cx=\"{}\" cy=\"7\" r=\"3.5\"/></svg>", self.x(interval.mean));
        drawing
    }
}

/// A row for each curve: its name, and its cells.
pub fn rows(report: &Report, cells: impl Fn(&ReportCurve) -> String) -> String {
    let row = |(i, curve): (usize, &ReportCurve)| {
        format!("<tr><th scope=\"row\">{}</th>{}</tr>\n", curve_name(i, &curve.label), cells(curve))
    };
    report.curves.iter().enumerate().map(row).collect()
}

/// The digests of all runs, by which two machines see that they computed the same.
pub fn digests(report: &Report) -> String {
    let body = rows(report, |curve| {
        let digests: Vec<String> =
            curve.digest.iter().map(|digest| format!("<code>{}</code>", escape(digest))).collect();
        format!("<td class=\"digests\">{}</td>", digests.join(" "))
    });
    let header =
        "<th scope=\"col\">Curve</th><th scope=\"col\">SHA-256 of every record and the model, by seed</th>";
    table("digests-table", "Equal digests mean equal runs, to the last bit", header, &body)
}

/// The evenness of each curve's use of devices.
pub fn scheduling(report: &Report) -> String {
    let names = [
        "Curve",
        "Fair share K/M",
        "Least",
        "Median",
        "Most",
        "Evenness",
        "Highest average power",
        "Devices above P̄",
    ];
    let body = rows(report, |curve| {
        let DeviceTotals { least, median, most, evenness, highest_power, above } = curve.devices;
        let share = |value: Interval| interval_cell(Some(value), percent);
        [
            number_cell(curve.fair_share, &percent(curve.fair_share)),
            share(least),
            share(median),
            share(most),
            interval_cell(Some(evenness), |value| significant(value, 3)),
            interval_cell(Some(highest_power), |value| power(report, value)),
            interval_cell(Some(above), |devices| format!("{} of {}", count(devices), curve.power.len())),
        ]
        .concat()
    });
    let caption = format!(
        "Share of rounds in which a device was scheduled, and average power against P̄ = {}: measured in \
         each seed, then the mean over the seeds, with its 95 % confidence interval in brackets. A device’s \
         power counts for the whole of every round in which it is scheduled. Evenness is Jain’s index: 1 if \
         all devices were scheduled equally often, 1/M if only one was",
        power(report, report.average_power)
    );
    table("scheduling-table", &caption, &headings(&names), &body)
}

/// A power with its unit, if it has one.
pub fn power(report: &Report, value: f64) -> String {
    let number = significant(value, 3);
    if report.power_unit.is_empty() {
        number
    } else {
        format!("{number}\u{a0}{}", escape(&report.power_unit))
    }
}

/// Whether a device spends more than it is allowed; rounding of the sums is forgiven.
pub fn is_above(power: f64, allowed: f64) -> bool {
    power > allowed * (1.0 + 1e-9)
}

/// The index of the largest value, the first of equals.
pub fn argmax(values: &[f64]) -> Option<usize> {
    let finite = (0..values.len()).rev().filter(|&i| values[i].is_finite());
    finite.max_by(|&i, &j| values[i].total_cmp(&values[j]))
}

/// The section on the classes of the devices; empty if the report has no split.
pub fn split(report: &Report) -> String {
    let Some(split) = &report.split else { return String::new() };
    format!(
        "<section id=\"split\" aria-labelledby=\"split-heading\">\n\
         <h2 id=\"split-heading\">Data on the devices</h2>\n\
         <p>{} · heterogeneity {}</p>\n\
         <div class=\"chart\" id=\"split-chart\"></div>\n<p class=\"scripted\">The map needs JavaScript; \
         the table below holds its numbers.</p>\n\
         <details><summary>Samples of each class as a table</summary>\n{}</details>\n</section>\n",
        escape(&split.title),
        significant(split.heterogeneity, 3),
        split_table(split),
    )
}

fn split_table(split: &SplitTable) -> String {
    // No more columns than there are numbers, whatever number of classes is declared.
    let classes = split.classes.min(split.counts.iter().map(Vec::len).max().unwrap_or(0));
    let block = split.counts.len().div_ceil(MAX_DEVICES).max(1);
    let names: Vec<String> =
        ["Device".to_owned()].into_iter().chain((0..classes).map(|class| format!("Class {class}"))).collect();
    let mut body = String::new();
    for (i, devices) in split.counts.chunks(block).enumerate() {
        let first = i * block;
        let name = match devices.len() {
            1 => first.to_string(),
            more => format!("{first} to {}", first + more - 1),
        };
        let _ = write!(body, "<tr><th scope=\"row\">{name}</th>");
        for class in 0..classes {
            let held = devices.iter().filter_map(|counts| counts.get(class));
            let held = held.fold(0u64, |sum, &samples| sum.saturating_add(samples));
            let _ = write!(body, "<td class=\"number\">{held}</td>");
        }
        body += "</tr>\n";
    }
    let caption = if block == 1 {
        "Samples by device and class".to_owned()
    } else {
        format!("Samples by class, {block} devices to a row")
    };
    table("split-table", &caption, &headings(&names), &body)
}

/// The section of remarks; nothing if there are none.
pub fn notes(report: &Report) -> String {
    if report.notes.is_empty() {
        return String::new();
    }
    let mut notes = String::new();
    for note in &report.notes {
        let _ = writeln!(notes, "<li>{}</li>", escape(note));
    }
    format!(
        "<section id=\"notes\" aria-labelledby=\"notes-heading\">\n<h2 id=\"notes-heading\">Notes</h2>\n\
         <ul>\n{notes}</ul>\n</section>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_devices_is_the_most_scheduled() {
        assert_eq!(argmax(&[0.1, 0.3, f64::NAN, 0.3]), Some(1));
        assert_eq!(argmax(&[f64::NAN]), None);
    }

    #[test]
    fn many_devices_are_counted_together_without_losing_a_sample() {
        let split = SplitTable { classes: 2, counts: vec![vec![3, 4]; 1001], ..SplitTable::default() };
        let table = split_table(&split);
        let page = roxmltree::Document::parse(&table).unwrap();
        let numbers = page.descendants().filter(|node| node.attribute("class") == Some("number"));
        let sum: u64 = numbers
            .filter(|node| node.has_tag_name("td"))
            .map(|n| n.text().unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(sum, 7 * 1001);
        assert!(table.matches("<tr>").count() <= MAX_DEVICES + 1);
        assert!(table.contains("6 devices to a row") && table.contains("996 to 1000"));
    }
}
