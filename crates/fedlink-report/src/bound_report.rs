//! The presentation of curves of the bound: table, CSV, JSON, figure.

use crate::chart::{Curve, Lines, Look, Quantity};
use crate::error::Error;
use crate::looks::distinct;
use fedlink_study::results::guarded;
pub use fedlink_study::table::number;
use fedlink_study::table::table as plain_table;
use fedlink_theory::Estimate;
use fedlink_theory::bound::{BoundParameters, Parts};
use fedlink_theory::study::StudyCurve;
use serde::Serialize;

/// A curve in JSON.
#[derive(Serialize)]
pub struct CurveJson<'a> {
    label: &'a str,
    #[serde(flatten)]
    parameters: &'a BoundParameters,
    /// The last bound; its half width is null for a single draw.
    r#final: Estimate,
    floor: f64,
    near_floor: Option<usize>,
    shares: &'a Parts,
    /// The bound after 0, 1, … rounds.
    losses: Vec<f64>,
    /// Half widths of the 95 % intervals; left out for a single draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    half_widths: Option<Vec<f64>>,
    /// ρ of every round, the mean over the draws.
    rhos: &'a [f64],
}

impl<'a> CurveJson<'a> {
    /// The text of the curve.
    pub fn new(curve: &'a StudyCurve) -> Self {
        let widths = || curve.losses.iter().map(|loss| loss.half_width).collect();
        Self {
            label: &curve.label,
            parameters: &curve.parameters,
            r#final: curve.last(),
            floor: curve.floor,
            near_floor: curve.near_floor,
            shares: &curve.shares,
            losses: curve.losses.iter().map(|loss| loss.mean).collect(),
            half_widths: has_interval(curve).then(widths),
            rhos: &curve.rhos,
        }
    }
}

fn has_interval(curve: &StudyCurve) -> bool {
    curve.last().half_width.is_finite()
}

/// `12.3`, or `12.3 ± 0.4` where there is an interval.
pub fn estimate(value: Estimate) -> String {
    let (mean, width) = (number(value.mean), value.half_width);
    if width.is_finite() { format!("{mean} ± {}", number(width)) } else { mean }
}

/// The curves, a row each.
pub fn table(curves: &[StudyCurve]) -> String {
    let header = [
        "curve",
        "mean ρ",
        "final bound",
        "floor",
        "within 10 %",
        "start",
        "scheduling",
        "drift",
        "noise",
        "heterogeneity",
    ];
    let row = |curve: &StudyCurve| {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let mut row = vec![
            curve.label.clone(),
            number(curve.mean_rho()),
            estimate(curve.last()),
            number(curve.floor),
            curve.near_floor.map_or_else(|| "–".into(), |round| format!("round {round}")),
            percent(curve.shares.initial),
        ];
        row.extend(curve.shares.terms.array().map(percent));
        row
    };
    plain_table(&header, &curves.iter().map(row).collect::<Vec<_>>())
}

/// A line for each panel, curve and round.
pub fn csv(panels: &[(&str, &[StudyCurve])]) -> Result<Vec<u8>, Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["panel", "curve", "k", "tau", "round", "loss_bound", "half_width"])?;
    for (panel, curves) in panels {
        for curve in *curves {
            let (k, tau) = (curve.parameters.k.to_string(), curve.parameters.tau.to_string());
            for (round, loss) in curve.losses.iter().enumerate() {
                let width =
                    if loss.half_width.is_finite() { loss.half_width.to_string() } else { String::new() };
                let (round, mean) = (round.to_string(), loss.mean.to_string());
                let [panel, label] = [panel, curve.label.as_str()].map(guarded);
                writer.write_record([&*panel, &*label, &k, &tau, &round, &mean, &width])?;
            }
        }
    }
    Ok(writer.into_inner()?)
}

/// The looks of curves in all charts of a folder, by their labels.
pub struct Looks<'a>(Vec<&'a str>);

impl<'a> Looks<'a> {
    /// The looks of these curves.
    pub fn of(curves: impl IntoIterator<Item = &'a StudyCurve>) -> Self {
        Self(distinct(curves.into_iter().map(|curve| curve.label.as_str())))
    }

    fn look(&self, label: &str) -> Option<Look> {
        self.0.iter().position(|known| *known == label).map(Look::of)
    }
}

/// The curves by round on a logarithmic axis, as in the paper.
pub fn chart(title: &str, subtitle: &str, curves: &[StudyCurve], looks: &Looks) -> Lines {
    let curve = |curve: &StudyCurve| {
        let losses = || curve.losses.iter();
        let band =
            || losses().map(|loss| (loss.mean - loss.half_width, loss.mean + loss.half_width)).collect();
        Curve {
            label: curve.label.clone(),
            look: looks.look(&curve.label),
            points: losses().enumerate().map(|(round, loss)| (round as f64, loss.mean)).collect(),
            band: has_interval(curve).then(band),
            ..Curve::default()
        }
    };
    let (x, y) = (Quantity::plain("round").from_zero().margin(0.0), Quantity::plain("bound on E[F] − F*"));
    Lines::new(title, &x, &y.log(), curves.iter().map(curve).collect()).with_subtitle(subtitle)
}
