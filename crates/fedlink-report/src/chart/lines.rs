//! Curves over a common axis: accuracy by round, bounds by round, distribution functions, …

use super::axis::{Axis, Quantity, drawable, shown};
use super::look::{Entry, Look};
use super::thin::kept_rows;
use serde::{Deserialize, Serialize};

/// More overlapping bands cannot be distinguished: a panel of more curves has none.
pub const MAX_BANDS: usize = 12;
/// Further panels are left out, since a page of more is unreadable.
const MAX_PANELS: usize = 24;
/// A curve with more points has markers at about [`MARKS`] of them.
const ALL_MARKED: usize = 26;
const MARKS: usize = 9;
/// A distribution of more values is drawn at this many quantiles, since finer steps would be invisible.
const MAX_STEPS: usize = 400;

/// The data of one curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Its name in the legend. Curves of one name, in different panels, have one look.
    pub label: String,
    /// The heading under which the legend lists it; none if empty.
    pub group: String,
    /// Its look; none: the look of its place in the legend.
    pub look: Option<Look>,
    /// Points (x, y) in drawing order. The line is interrupted at a point that is not finite, or not
    /// positive on a logarithmic axis.
    pub points: Vec<(f64, f64)>,
    /// The lower and upper end of a band around each point; points beyond its length have none.
    pub band: Option<Vec<(f64, f64)>>,
}

/// Curves in one panel or in several with common axes, and one legend for all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// The heading; none if empty.
    pub title: String,
    /// A smaller line under the heading; none if empty.
    pub subtitle: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The legend, in its order.
    pub key: Vec<Entry>,
    /// The panels.
    pub panels: Vec<Panel>,
}

/// One plot of a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// Its name; empty if it is the only one.
    pub name: String,
    /// Its curves.
    pub series: Vec<Series>,
}

/// One curve as drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its place in the legend.
    pub key: usize,
    /// Runs of joined points; the line is interrupted between two runs.
    pub runs: Vec<Vec<(f64, f64)>>,
    /// The points with a marker.
    pub marks: Vec<(f64, f64)>,
    /// Runs of x with the lower and the upper end of the band.
    pub bands: Vec<Vec<[f64; 3]>>,
}

impl Lines {
    /// A chart of one panel.
    pub fn new(title: impl Into<String>, x: &Quantity, y: &Quantity, curves: Vec<Curve>) -> Self {
        Self::in_panels(title, x, y, vec![(String::new(), curves)])
    }

    /// A chart of named panels; at most 24 are drawn.
    pub fn in_panels(
        title: impl Into<String>,
        x: &Quantity,
        y: &Quantity,
        mut panels: Vec<(String, Vec<Curve>)>,
    ) -> Self {
        panels.truncate(MAX_PANELS);
        for (_, curves) in &mut panels {
            if curves.len() > MAX_BANDS {
                curves.iter_mut().for_each(|curve| curve.band = None);
            }
        }
        let curves = || panels.iter().flat_map(|(_, curves)| curves);
        // A point with one coordinate that cannot be shown must not stretch the axis of the other.
        let seen = |&(x, y): &(f64, f64), log| drawable(x) && shown(y, log);
        let log = y.is_log();
        let x_axis = x.axis(curves().flat_map(|c| &c.points).filter(|p| seen(p, log)).map(|p| p.0));
        let y_axis = y.axis(curves().flat_map(|curve| {
            let at = |(i, p): (usize, &(f64, f64))| {
                let (low, high) = curve.band_at(i).unwrap_or((p.1, p.1));
                [p.1, low, high]
            };
            curve.points.iter().enumerate().filter(|(_, p)| drawable(p.0)).flat_map(at)
        }));
        let mut key: Vec<Entry> = Vec::new();
        let mut drawn: Vec<bool> = Vec::new();
        let mut panel = |(name, curves): (String, Vec<Curve>)| {
            let count = curves.len();
            let series = curves.into_iter().enumerate().map(|(i, curve)| {
                // A panel without a name is the only one, and two of its curves with one label are two
                // curves.
                let known = key.iter().position(|entry| entry.label == curve.label && !name.is_empty());
                let place = known.unwrap_or(key.len());
                if place == key.len() {
                    let look = curve.look.unwrap_or_else(|| Look::of(place));
                    key.push(Entry { label: curve.label.clone(), group: curve.group.clone(), look });
                    drawn.push(false);
                }
                let series = curve.series(place, i as f64 / count as f64, &y_axis);
                drawn[place] |= !series.runs.is_empty();
                series
            });
            Panel { series: series.collect(), name: name.clone() }
        };
        let panels = panels.into_iter().map(&mut panel).collect();
        for (entry, drawn) in key.iter_mut().zip(drawn) {
            if !drawn {
                entry.label += " (no data)";
            }
        }
        Self { title: title.into(), subtitle: String::new(), x: x_axis, y: y_axis, key, panels }
    }

    /// The same chart with a line under its heading.
    #[must_use]
    pub fn with_subtitle(self, subtitle: impl Into<String>) -> Self {
        Self { subtitle: subtitle.into(), ..self }
    }
}

impl Curve {
    fn band_at(&self, i: usize) -> Option<(f64, f64)> {
        let &(a, b) = self.band.as_ref()?.get(i)?;
        Some((a.min(b), a.max(b)))
    }

    /// The drawn curve. Curves of different `phase`, from 0 to 1, have markers at different points, so
    /// that the markers of close curves are all visible.
    fn series(self, key: usize, phase: f64, y: &Axis) -> Series {
        let ends = |row: usize, upper: bool| {
            let band = self.band_at(row)?;
            Some(if upper { band.1 } else { band.0 }).filter(|end| end.is_finite())
        };
        let height = |row: usize| self.points[row].1;
        let low = |row: usize| ends(row, false).unwrap_or(0.0);
        let high = |row: usize| ends(row, true).unwrap_or(0.0);
        let rows = match &self.band {
            Some(_) => kept_rows(self.points.len(), &[&height, &low, &high]),
            None => kept_rows(self.points.len(), &[&height]),
        };
        let seen: Vec<Option<(f64, f64)>> = rows
            .iter()
            .map(|&row| Some(self.points[row]).filter(|p| drawable(p.0) && shown(p.1, y.log)))
            .collect();
        let foot = if y.log { libm::pow(10.0, y.low) } else { f64::NEG_INFINITY };
        let banded = rows.iter().zip(&seen).map(|(&row, point)| {
            let (low, high) = (ends(row, false)?.max(foot), ends(row, true)?);
            ((*point)?.0.is_finite() && drawable(low) && shown(high, y.log))
                .then(|| [self.points[row].0, low, high])
        });
        // A point between two gaps has no line and always has a marker.
        let alone = |i: usize| {
            let gap = |j: Option<usize>| j.and_then(|j| seen.get(j)).copied().flatten().is_none();
            gap(i.checked_sub(1)) && gap(Some(i + 1))
        };
        let stride = if seen.len() <= ALL_MARKED { 1 } else { seen.len().div_ceil(MARKS) };
        let offset = (phase * stride as f64) as usize;
        let marked = (0..seen.len()).filter(|&i| i % stride == offset || alone(i));
        Series {
            key,
            marks: marked.filter_map(|i| seen[i]).collect(),
            runs: runs(seen.iter().copied()),
            bands: runs(banded),
        }
    }
}

/// Consecutive values without the gaps between them.
fn runs<T: Clone>(values: impl Iterator<Item = Option<T>>) -> Vec<Vec<T>> {
    let values: Vec<Option<T>> = values.collect();
    let runs = values.split(Option::is_none).filter(|run| !run.is_empty());
    runs.map(|run| run.iter().flatten().cloned().collect()).collect()
}

/// The empirical cumulative distribution function of each named series of values: the share of its values
/// that are at most x, as a step function. Values that are not finite are left out. `x_label` names the
/// values, with their unit; a series without a look has the look of its place.
///
/// ```
/// use fedlink_report::chart::cdf;
/// use fedlink_report::figure::Figure;
/// let near = ("near".to_owned(), None, vec![18.2, 21.5, 20.1]);
/// let far = ("far".to_owned(), None, vec![-1.3, 0.4, 2.2]);
/// let chart = cdf("SNR of the devices", "mean SNR (dB)", &[near, far]);
/// assert!(chart.svg().contains("mean SNR (dB)"));
/// ```
pub fn cdf(title: &str, x_label: &str, series: &[(String, Option<Look>, Vec<f64>)]) -> Lines {
    let curve = |(label, look, values): &(String, Option<Look>, Vec<f64>)| Curve {
        label: label.clone(),
        look: *look,
        points: steps(values),
        ..Curve::default()
    };
    let y = Quantity::share("cumulative share");
    Lines::new(title, &Quantity::plain(x_label).margin(0.02), &y, series.iter().map(curve).collect())
}

/// The corners of the step function: from 0 to 1, a rise of 1/n at each of the n values.
fn steps(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| drawable(*v)).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let drawn = n.min(MAX_STEPS);
    let step = |i: usize| {
        // The last value of the step's group, so that the drawn function is exact at every corner.
        let end = (i + 1) * n / drawn;
        let x = sorted[end - 1];
        [(x, (i * n / drawn) as f64 / n as f64), (x, end as f64 / n as f64)]
    };
    (0..drawn).flat_map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(curves: Vec<Curve>) -> Lines {
        Lines::new(
            "",
            &Quantity::plain("round").from_zero().margin(0.0),
            &Quantity::share("accuracy"),
            curves,
        )
    }

    #[test]
    fn a_chart_survives_a_trip_through_json() {
        let points: Vec<(f64, f64)> = (0..50).map(|i| (f64::from(i), 0.01 * f64::from(i))).collect();
        let band = Some(points.iter().map(|p| (p.1 - 0.1, f64::NAN.max(p.1 + 0.1))).collect());
        let gap = vec![(0.0, f64::NAN), (1.0, 0.5)];
        let curves = vec![
            Curve { label: "a".into(), points, band, ..Curve::default() },
            Curve { label: "b".into(), points: gap, look: Some(Look::REFERENCE), ..Curve::default() },
        ];
        let chart = chart(curves);
        let json = serde_json::to_string(&chart).unwrap();
        assert_eq!(serde_json::from_str::<Lines>(&json).unwrap(), chart);
    }

    #[test]
    fn a_curve_has_one_look_in_all_panels_and_one_entry_in_the_legend() {
        let curve = |label: &str| Curve { label: label.into(), points: vec![(0.0, 1.0)], ..Curve::default() };
        let panels = vec![("x".to_owned(), vec![curve("b")]), ("y".to_owned(), vec![curve("a"), curve("b")])];
        let chart = Lines::in_panels("", &Quantity::plain(""), &Quantity::plain(""), panels);
        let labels: Vec<&str> = chart.key.iter().map(|entry| entry.label.as_str()).collect();
        assert_eq!(labels, ["b", "a"]);
        assert_eq!([chart.panels[0].series[0].key, chart.panels[1].series[1].key], [0, 0]);
    }

    #[test]
    fn a_long_curve_keeps_its_ends_and_its_peak() {
        let height = |i: u32| if i == 4321 { 1.0 } else { 0.5 };
        let points: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i), height(i))).collect();
        let chart = chart(vec![Curve { points, ..Curve::default() }]);
        let run = &chart.panels[0].series[0].runs[0];
        assert!(run.len() <= 800 && run.contains(&(4321.0, 1.0)));
        assert_eq!((run[0].0, run[run.len() - 1].0), (0.0, 9999.0));
        assert!(chart.panels[0].series[0].marks.len() <= 10);
    }

    #[test]
    fn every_value_is_a_step_of_its_share() {
        let expected = [(1.0, 0.0), (1.0, 0.25), (2.0, 0.25), (2.0, 0.5), (2.0, 0.5), (2.0, 0.75)];
        let points = steps(&[2.0, 5.0, f64::NAN, 1.0, 2.0, f64::INFINITY]);
        assert_eq!(points[..6], expected);
        assert_eq!(points[6..], [(5.0, 0.75), (5.0, 1.0)]);
        assert!(steps(&[]).is_empty());
    }

    #[test]
    fn many_values_are_drawn_at_their_quantiles() {
        let values: Vec<f64> = (0..10_000).rev().map(f64::from).collect();
        let points = steps(&values);
        assert_eq!(points.len(), 2 * MAX_STEPS);
        for pair in points.chunks_exact(2) {
            // Of 0, 1, …, 9999 the share that is at most x is (x + 1)/10000.
            assert_eq!(pair[1].1, (pair[1].0 + 1.0) / 10_000.0);
        }
    }
}
