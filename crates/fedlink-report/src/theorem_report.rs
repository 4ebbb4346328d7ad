//! The presentation of a check of the theorem: table, CSV, figure.

use crate::bound_report::{self, number};
use crate::chart::{Curve, Lines, Look, Quantity};
use crate::error::Error;
use fedlink_study::table::table as plain_table;
use fedlink_study::theory::TheoremResult;
use fedlink_theory::bound::BoundParameters;
use fedlink_theory::check::Check;
use std::fmt::Write;

/// A line for each problem, schedule and round.
pub fn csv(results: &[TheoremResult]) -> Result<Vec<u8>, Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["problem", "schedule", "round", "measured", "half_width", "bound"])?;
    for result in results {
        for check in &result.checks {
            for (round, (measured, bound)) in check.measured.iter().zip(&check.bound).enumerate() {
                let width = measured.half_width;
                writer.write_record([
                    result.problem,
                    check.schedule.name(),
                    &round.to_string(),
                    &measured.mean.to_string(),
                    &if width.is_finite() { width.to_string() } else { String::new() },
                    &bound.to_string(),
                ])?;
            }
        }
    }
    Ok(writer.into_inner()?)
}

/// Measured distances and bounds by round: a color for each schedule, a solid line with markers for its
/// measured distance and a dashed one for its bound.
pub fn chart(result: &TheoremResult) -> Lines {
    let mut curves = Vec::new();
    for (i, check) in result.checks.iter().enumerate() {
        let name = check.schedule.name();
        let outside = if check.breaks.is_some() { " (outside the theorem)" } else { "" };
        let bands = check.measured.iter().map(|m| (m.mean - m.half_width, m.mean + m.half_width)).collect();
        curves.push(Curve {
            label: format!("{name}, measured{outside}"),
            look: Some(Look::new(i, 0, i)),
            points: check.measured.iter().enumerate().map(|(t, m)| (t as f64, m.mean)).collect(),
            band: Some(bands),
            ..Curve::default()
        });
        curves.push(Curve {
            label: format!("{name}, bound{outside}"),
            look: Some(Look { marker: None, ..Look::new(i, 1, 0) }),
            points: check.bound.iter().enumerate().map(|(t, x)| (t as f64, *x)).collect(),
            ..Curve::default()
        });
    }
    let BoundParameters { devices, k, tau, .. } = result.checks[0].parameters;
    let seeds = result.checks[0].seeds;
    let (x, y) = (Quantity::plain("round").from_zero().margin(0.0), Quantity::plain("E‖θ − θ*‖²").log());
    Lines::new(format!("The theorem on a {} problem", result.problem), &x, &y, curves).with_subtitle(format!(
        "M = {devices}, K = {k}, τ = {tau}; mean over {seeds} seeds with its 95 % interval"
    ))
}

/// The last round and every term of the bound.
pub fn text(result: &TheoremResult) -> String {
    let last = |check: &Check| check.bound.len() - 1;
    let row = |check: &Check| {
        let t = last(check);
        vec![
            check.schedule.name().to_owned(),
            number(check.parameters.g),
            format!("{:.3}", check.mean_rho),
            bound_report::estimate(check.measured[t]),
            number(check.bound[t]),
            format!("{:.1}", check.looseness(t)),
            check.exceeded.map_or_else(|| "never".into(), |t| format!("round {t}")),
        ]
    };
    let header = ["schedule", "G", "mean ρ", "measured", "bound", "bound/measured", "above the bound"];
    let rows: Vec<Vec<String>> = result.checks.iter().map(row).collect();
    let parameters = result.checks[0].parameters;
    let mut text = format!(
        "{}: M = {}, K = {}, τ = {}, μ = {}, L = {}, Γ = {}, ‖θ(0) − θ*‖² = {}\n\n{}",
        result.problem,
        parameters.devices,
        parameters.k,
        parameters.tau,
        number(parameters.mu),
        number(parameters.l),
        number(parameters.gamma),
        number(parameters.distance0),
        plain_table(&header, &rows)
    );
    for check in &result.checks {
        if let Some(breaks) = check.breaks {
            let _ = writeln!(text, "{}: no promise is made here, {breaks}", check.schedule.name());
        }
    }
    for check in &result.checks {
        let _ = write!(text, "\n{}", terms(check));
    }
    text + "\n"
}

/// The looseness of the bound, term by term: over all rounds, and of the parts that remain at the end.
fn terms(check: &Check) -> String {
    let (promised, measured) = (check.promised_parts, check.measured_parts);
    let row = |name: &str, cells: [String; 5]| -> Vec<String> {
        std::iter::once(name.to_owned()).chain(cells).collect()
    };
    let none = String::new;
    let at_the_start = [none(), none(), none(), number(promised.initial), number(measured.initial)];
    let mut rows = vec![row("start", at_the_start)];
    let names = ["scheduling", "drift", "noise", "heterogeneity"];
    for (i, name) in names.into_iter().enumerate() {
        let [all, real, end, end_real] =
            [check.promised_terms, check.measured_terms, promised.terms, measured.terms]
                .map(|terms| terms.array()[i]);
        let ratio = if real > 0.0 { format!("{:.1}", all / real) } else { "–".into() };
        rows.push(row(name, [number(all), number(real), ratio, number(end), number(end_real)]));
    }
    let (bound, middle) = (promised.sum(), measured.sum());
    rows.push(row("together", [none(), none(), none(), number(bound), number(middle)]));
    let header =
        ["part", "all rounds: bound", "measured", "ratio", "at the end: bound", "with measured terms"];
    let last = check.measured.len() - 1;
    format!(
        "{}: the bound is {} times the measured value, {} for its terms times {} for the steps before\n{}",
        check.schedule.name(),
        number(check.looseness(last)),
        number(bound / middle),
        number(middle / check.measured[last].mean),
        plain_table(&header, &rows)
    )
}
