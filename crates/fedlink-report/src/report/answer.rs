//! The answer of the page: the best curve by the first goal, and the curves whose intervals overlap with its.

use super::html::{curve_name, escape};
use super::{GoalValue, Report};

/// The most curves that are named as ties.
const MAX_TIES: usize = 5;

/// The answer; nothing without a goal, or with one curve only.
pub fn answer(report: &Report) -> String {
    let Some((name, goal)) = report.goals.first() else { return String::new() };
    if report.curves.len() < 2 {
        return String::new();
    }
    let named = if name == goal { escape(goal) } else { format!("{}: {}", escape(name), escape(goal)) };
    let known = report.curves.iter().enumerate();
    let known =
        known.filter_map(|(i, curve)| Some((i, curve.goals.first().filter(|own| own.value.is_some())?)));
    let better = |own: &GoalValue| own.value.map_or(f64::INFINITY, |v| if own.rises { -v } else { v });
    let best = known.clone().min_by(|(_, a), (_, b)| better(a).total_cmp(&better(b)));
    let text = match best {
        None => {
            format!("<p><b>No curve has an answer.</b> None reached the goal at enough seeds: {named}.</p>")
        }
        Some((i, best)) => {
            let interval = match best.interval.as_str() {
                "" => ", too few seeds for an interval".to_owned(),
                interval => format!(", interval {}", escape(interval)),
            };
            let ties: Vec<usize> = known
                .filter(|(other, own)| *other != i && overlap(best, own))
                .map(|(other, _)| other)
                .collect();
            let named_ties: Vec<String> =
                { ties.iter().take(MAX_TIES) }.map(|&tie| escape(&report.curves[tie].label)).collect();
            let more = match ties.len().saturating_sub(MAX_TIES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let ties = if best.interval.is_empty() {
                "<p>Five seeds or more give an interval, which tells whether another curve is as good.</p>"
                    .to_owned()
            } else if ties.is_empty() {
                "<p>The interval of no other curve overlaps with it.</p>".to_owned()
            } else {
                format!(
                    "<p>The intervals of these curves overlap with it, so that they may be as good: \
                     {}{more}.</p>",
                    named_ties.join(", ")
                )
            };
            format!(
                "<p class=\"best\">{} <b>{}</b>{interval}</p>{ties}",
                curve_name(i, &report.curves[i].label),
                escape(&best.text)
            )
        }
    };
    format!(
        "<section id=\"answer\" aria-labelledby=\"answer-heading\">\n<h2 id=\"answer-heading\">Answer</h2>\n\
         <p class=\"key\">{named}</p>\n{text}\n</section>\n"
    )
}

/// Whether the intervals of two values overlap; an end that is not known is open.
fn overlap(a: &GoalValue, b: &GoalValue) -> bool {
    let range = |own: &GoalValue| match own.ends {
        (None, None) => (f64::NEG_INFINITY, f64::INFINITY),
        (low, high) => (low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY)),
    };
    let ((low, high), (other_low, other_high)) = (range(a), range(b));
    low <= other_high && other_low <= high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ReportCurve;

    fn report(values: &[(f64, f64, f64)]) -> Report {
        let curve = |(i, &(low, value, high)): (usize, &(f64, f64, f64))| ReportCurve {
            label: format!("curve {i}"),
            goals: vec![GoalValue {
                value: Some(value),
                text: format!("{value} s"),
                interval: format!("[{low}, {high}]"),
                ends: (Some(low), Some(high)),
                is_cost: true,
                rises: false,
            }],
            ..ReportCurve::default()
        };
        Report {
            goals: vec![("fast".into(), "seconds until accuracy >= 0.8".into())],
            curves: values.iter().enumerate().map(curve).collect(),
            ..Report::default()
        }
    }

    #[test]
    fn the_answer_names_the_cheapest_curve_and_those_whose_intervals_overlap() {
        let page = answer(&report(&[(20.0, 30.0, 40.0), (8.0, 10.0, 12.0), (11.0, 14.0, 19.0)]));
        assert!(
            page.contains("curve 1") && page.contains("<b>10 s</b>") && page.contains("[8, 12]"),
            "{page}"
        );
        assert!(page.contains("may be as good: curve 2.") && !page.contains("curve 0"), "{page}");
        let page = answer(&report(&[(20.0, 30.0, 40.0), (8.0, 10.0, 12.0)]));
        assert!(page.contains("The interval of no other curve overlaps"), "{page}");
    }
}
