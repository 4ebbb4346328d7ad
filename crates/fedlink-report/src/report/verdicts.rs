//! Conclusions from the numbers: highlights, claims and paired differences.

use super::html::{MISSING, count, curve_name, ends, escape, percent, points, prefixed, significant, table};
use super::tables::{argmax, is_above, power, target_percent};
use super::{ClaimVerdict, Interval, Report, ReportCurve};
use fedlink_study::goals::Median;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Differences at least this large (five percentage points) have the full color.
const FULL_COLOR: f64 = 0.05;

/// The best curve by each measure, and the device that spent most.
pub fn highlights(report: &Report) -> String {
    let mut tiles = String::new();
    let mut tile = |name: &str, value: &str, detail: &str| {
        let _ = writeln!(tiles, "<div class=\"tile\"><dt>{name}</dt><dd>{value}</dd><dd>{detail}</dd></div>");
    };
    let target = target_percent(report.target);
    if let Some((i, minus)) = argmin(report, |curve| Some(-curve.final_accuracy.mean)) {
        tile("Highest final accuracy", &percent(-minus), &name(report, i));
    }
    let mut fewest =
        |what: &str, median: fn(&ReportCurve) -> Option<&Median>, show: &dyn Fn(f64) -> String| {
            if let Some((i, value)) = argmin(report, |curve| median(curve)?.value) {
                let missed = median(&report.curves[i]).filter(|median| median.reached < median.of);
                let missed = missed.map_or_else(String::new, |median| {
                    format!(", reached at {} of {} seeds", median.reached, median.of)
                });
                tile(&format!("Fewest {what} to {target} %"), &show(value), &(name(report, i) + &missed));
            }
        };
    fewest("rounds", |curve| curve.rounds_to_target.as_ref(), &count);
    fewest("bits", |curve| curve.bits_to_target.as_ref(), &|bits| prefixed(bits, "bit"));
    fewest("seconds", |curve| curve.costs.as_ref()?.seconds_to_target.as_ref(), &|seconds| {
        format!("{}\u{a0}s", significant(seconds, 4))
    });
    fewest("joules", |curve| curve.costs.as_ref()?.joules_to_target.as_ref(), &|joules| {
        format!("{}\u{a0}J", significant(joules, 4))
    });
    for (goal, (title, _)) in report.goals.iter().enumerate() {
        let cost = |curve: &ReportCurve| curve.goals.get(goal).filter(|goal| goal.is_cost)?.value;
        if let Some((i, _)) = argmin(report, cost) {
            let text = escape(&report.curves[i].goals[goal].text);
            tile(&format!("Lowest cost: {}", escape(title)), &text, &name(report, i));
        }
    }
    let powers: Vec<f64> = report.curves.iter().map(|curve| curve.devices.highest_power.mean).collect();
    if let Some(i) = argmax(&powers) {
        let above = if is_above(powers[i], report.average_power) { "above" } else { "within" };
        let allowed = power(report, report.average_power);
        let detail = format!("{}, {above} P̄ = {allowed}", name(report, i));
        tile("Highest average power of a device", &power(report, powers[i]), &detail);
    }
    if tiles.is_empty() { tiles } else { format!("<dl class=\"tiles\">\n{tiles}</dl>\n") }
}

fn name(report: &Report, index: usize) -> String {
    curve_name(index, &report.curves[index].label)
}

/// The curve with the smallest value, and the value.
fn argmin(report: &Report, value: impl Fn(&ReportCurve) -> Option<f64>) -> Option<(usize, f64)> {
    let values = report.curves.iter().enumerate().filter_map(|(i, curve)| Some((i, value(curve)?)));
    values.filter(|(_, value)| value.is_finite()).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The section of claims; nothing if there are none.
pub fn claims(report: &Report) -> String {
    if report.claims.is_empty() {
        return String::new();
    }
    let items: String = report.claims.iter().map(claim).collect();
    format!(
        "<section id=\"claims\" aria-labelledby=\"claims-heading\">\n<h2 id=\"claims-heading\">Claims</h2>\n\
         <ul class=\"claims\">\n{items}</ul>\n</section>\n"
    )
}

fn claim(claim: &ClaimVerdict) -> String {
    // The verdict may be followed by how the experiment was shortened, and when the claim was made.
    let (class, sign) = match claim.verdict.split([',', '(']).next().map(str::trim) {
        Some("holds") => ("good", "✓"),
        Some("does not hold") => ("bad", "✗"),
        _ => ("open", "?"),
    };
    let difference = claim.difference.map_or_else(String::new, |difference| {
        format!(
            "<p class=\"difference\">Difference {}{} percentage points</p>",
            points(difference.mean),
            ends(difference, points)
        )
    });
    format!(
        "<li class=\"claim {class}\"><p class=\"verdict\"><span aria-hidden=\"true\">{sign}</span> {}</p>\
         <div><p class=\"what\">{}</p>{difference}<p>{}</p></div></li>\n",
        escape(&claim.verdict),
        escape(&claim.claim),
        escape(&claim.detail)
    )
}

/// The section with the matrix of paired differences; nothing if there are none.
pub fn differences(report: &Report) -> String {
    if report.differences.is_empty() {
        return String::new();
    }
    let (mut labels, mut known) = (Vec::new(), BTreeMap::new());
    for pair in &report.differences {
        for label in [&pair.a, &pair.b] {
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        known.insert((&pair.a, &pair.b), pair.difference);
        let Interval { mean, low, high } = pair.difference;
        known.insert((&pair.b, &pair.a), Interval { mean: -mean, low: -high, high: -low });
    }
    let index = |label: &String| report.curves.iter().position(|curve| curve.label == *label);
    labels.sort_by_key(|label| index(label).unwrap_or(usize::MAX));
    let heading = |label: &String| match index(label) {
        Some(i) => curve_name(i, label),
        None => escape(label),
    };
    let header = labels.iter().fold("<th scope=\"col\">row − column</th>".to_owned(), |header, label| {
        header + &format!("<th scope=\"col\" class=\"number\">{}</th>", heading(label))
    });
    let mut body = String::new();
    for a in &labels {
        let _ = write!(body, "<tr><th scope=\"row\">{}</th>", heading(a));
        for b in &labels {
            body += &known.get(&(*a, *b)).map_or_else(
                || format!("<td class=\"number none\">{}</td>", if a == b { "·" } else { MISSING }),
                |difference| difference_cell(*difference),
            );
        }
        body += "</tr>\n";
    }
    let caption = "Final accuracy of the row’s curve less that of the column’s, in percentage points, on the \
                   same seeds, with 95 % confidence intervals";
    format!(
        "<section id=\"differences\" aria-labelledby=\"differences-heading\">\n\
         <h2 id=\"differences-heading\">Paired differences</h2>\n{}\
         <p class=\"key\"><b>▲</b> higher and <b>▼</b> lower: the interval excludes zero. <b>≈</b> the \
         interval holds zero. Without an interval (one seed) there is no mark. Intervals are not corrected \
         for multiple comparisons: of twenty comparisons of equals, one is expected to exclude zero at \
         random.</p>\n\
         </section>\n",
        table("differences-table", caption, &header, &body)
    )
}

/// A cell whose sign, mark and color agree; the color adds nothing to the text.
fn difference_cell(difference: Interval) -> String {
    let (class, mark, words) = match difference {
        d if d.excludes_zero() && d.low > 0.0 => ("higher", "▲", "higher"),
        d if d.excludes_zero() => ("lower", "▼", "lower"),
        d if d.is_known() => ("level", "≈", "undecided"),
        _ => ("unknown", "", "one seed"),
    };
    let strength = (difference.mean.abs() / FULL_COLOR).clamp(0.1, 1.0);
    let value = if difference.mean.is_finite() { difference.mean.to_string() } else { String::new() };
    format!(
        "<td class=\"number {class}\" style=\"--strength:{:.0}%\" data-value=\"{value}\">\
         <span class=\"mark\" aria-hidden=\"true\">{mark}</span> {}{}\
         <span class=\"unseen\"> {words}</span></td>",
        100.0 * if strength.is_finite() { strength } else { 0.0 },
        points(difference.mean),
        ends(difference, points),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::PairedDifference;

    fn cell(low: f64, mean: f64, high: f64) -> String {
        difference_cell(Interval { mean, low, high })
    }

    #[test]
    fn a_difference_is_marked_only_if_its_interval_excludes_zero() {
        assert!(cell(0.01, 0.02, 0.03).contains("▲"));
        assert!(cell(-0.03, -0.02, -0.01).contains("▼"));
        assert!(cell(-0.01, 0.02, 0.05).contains("≈"));
        assert!(cell(0.0, 0.02, 0.04).contains("≈"));
        assert!(cell(0.02, 0.02, 0.02).contains("one seed"));
        assert!(cell(f64::NAN, f64::NAN, f64::NAN).contains(MISSING));
    }

    #[test]
    fn the_matrix_is_antisymmetric() {
        let difference = Interval { mean: 0.02, low: 0.01, high: 0.04 };
        let pair = PairedDifference { a: "x".into(), b: "y".into(), difference };
        let section = differences(&Report { differences: vec![pair], ..Report::default() });
        let page = roxmltree::Document::parse(&section).unwrap();
        let cells = page.descendants().filter_map(|node| node.attribute("data-value"));
        assert_eq!(cells.collect::<Vec<_>>(), ["0.02", "-0.02"]);
        assert!(section.contains("[\u{2212}4.00, \u{2212}1.00]"));
    }
}
