//! Small charts of one kind side by side, with common axes.

use super::axis::{Axis, Notation, shown};
use super::canvas::{Anchor, Canvas, GRID, INK, MUTED, Pixel, Style};
use super::frame::{EDGE, SMALL, SMALL_LINE, WIDTH, with_power};
use super::legend::{Legend, SeriesStyle};
use super::line_chart::Curve;
use super::reduce::reduce;
use super::text;

const TITLE: u32 = 17;
const PLOT: f64 = 190.0;
const GAP: f64 = 26.0;
/// Panels beyond these are left out: a page of more cannot be read.
const MAX_PANELS: usize = 24;

/// Panels of curves over common axes, row after row, with one legend for all. A curve keeps its style from
/// panel to panel by its label.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SmallMultiples {
    /// The heading; none if empty.
    pub title: String,
    /// What runs to the right, with its unit.
    pub x_label: String,
    /// What runs upwards, with its unit.
    pub y_label: String,
    /// Whether y values are shares, labeled in percent.
    pub percent_y: bool,
    /// A name and the curves of each panel; at most 24 are drawn.
    pub panels: Vec<(String, Vec<Curve>)>,
}

impl SmallMultiples {
    /// The curves of all panels, one for each label, in the order in which they appear.
    fn entries(&self) -> Vec<&Curve> {
        let mut entries: Vec<&Curve> = Vec::new();
        for curve in self.panels.iter().take(MAX_PANELS).flat_map(|(_, curves)| curves) {
            if entries.iter().all(|known| known.label != curve.label) {
                entries.push(curve);
            }
        }
        entries
    }

    pub(super) fn draw(&self) -> Canvas {
        let panels = &self.panels[..self.panels.len().min(MAX_PANELS)];
        let points = || panels.iter().flat_map(|(_, curves)| curves).flat_map(|curve| &curve.points);
        let x_axis = Axis::over(points().filter(|p| shown(p.1, false)).map(|p| p.0), false, 0.02);
        let mut y_axis = Axis::over(points().map(|p| p.1), false, 0.04);
        if self.percent_y && points().all(|p| !shown(p.1, false) || (0.0..=1.0).contains(&p.1)) {
            y_axis = y_axis.within(0.0, 1.0);
        }
        let notation = if self.percent_y { Notation::Percent } else { Notation::Plain };
        // Eight at most are three at least: steps are of 1, 2 and 5.
        let (y_ticks, y_power) = y_axis.ticks(8, notation);
        let entries = self.entries();
        let style = |curve: &Curve| {
            let index = entries.iter().position(|known| known.label == curve.label).unwrap_or(0);
            SeriesStyle::of_curve(index, curve.style.as_ref())
        };
        let legend = Legend::grouped(entries.iter().map(|curve| {
            let group = curve.style.as_ref().map_or("", |style| style.group.as_str());
            (group, style(curve), curve.label.clone())
        }));
        let columns = match panels.len() {
            0 | 1 => 1,
            2 | 4 => 2,
            _ => 3,
        };
        let rows = panels.len().max(1).div_ceil(columns);
        let left = EDGE + 22.0 + text::widest(y_ticks.iter().map(|t| &*t.label), SMALL) + 8.0;
        let width = (WIDTH - left - EDGE - GAP * (columns - 1) as f64) / columns as f64;
        let (x_ticks, x_power) = x_axis.ticks_across(width - 30.0, SMALL, Notation::Plain);
        let head = if self.title.is_empty() { EDGE } else { EDGE + 26.0 };
        let height = SMALL_LINE + PLOT + SMALL_LINE + 16.0;
        let foot = head + rows as f64 * height + 20.0;
        let mut canvas = Canvas::new(WIDTH, (foot + legend.height_across() + EDGE).ceil());
        canvas.bold((left, EDGE + 14.0), &self.title, Style::new(TITLE, Anchor::Start));
        for (index, (name, curves)) in panels.iter().enumerate() {
            let x0 = left + (index % columns) as f64 * (width + GAP);
            let top = head + (index / columns) as f64 * height + SMALL_LINE;
            let bottom = top + PLOT;
            canvas.bold(
                (x0, top - 6.0),
                &text::shorten(name, SMALL, true, width),
                Style::new(SMALL, Anchor::Start),
            );
            let up = |share: f64| bottom - share * PLOT;
            let across = |share: f64| x0 + share * width;
            for tick in &y_ticks {
                let Some(share) = y_axis.share(tick.at) else { continue };
                canvas.rule((x0, up(share)), (x0 + width, up(share)), GRID);
                if index % columns == 0 {
                    let at = (x0 - 6.0, up(share) + f64::from(SMALL) * 0.36);
                    canvas.text(at, &tick.label, Style::new(SMALL, Anchor::End));
                }
            }
            for tick in &x_ticks {
                let Some(share) = x_axis.share(tick.at) else { continue };
                canvas.rule((across(share), bottom), (across(share), bottom + 4.0), INK);
                let at = (across(share), bottom + 5.0 + f64::from(SMALL));
                canvas.text(at, &tick.label, Style::new(SMALL, Anchor::Middle));
            }
            canvas.rule((x0, top), (x0, bottom), INK);
            canvas.rule((x0, bottom), (x0 + width, bottom), INK);
            let mut empty = true;
            for curve in curves {
                let style = style(curve);
                let point = |&(x, y): &(f64, f64)| -> Option<Pixel> {
                    Some((across(x_axis.share(x)?), up(y_axis.share(y)?)))
                };
                let drawn: Vec<Option<Pixel>> = curve.points.iter().map(point).collect();
                for run in drawn.split(Option::is_none) {
                    style.draw_line(&mut canvas, &reduce(run.iter().flatten().copied()));
                }
                // The marker at the end tells curves apart that dashes do not.
                if let Some(at) = drawn.iter().rev().flatten().next() {
                    style.draw_marker(&mut canvas, *at);
                    empty = false;
                }
            }
            if empty {
                let at = (x0 + width / 2.0, f64::midpoint(top, bottom));
                canvas.text(at, "no data", Style { color: MUTED, ..Style::new(SMALL, Anchor::Middle) });
            }
        }
        let middle = f64::midpoint(left, WIDTH - EDGE);
        canvas.text(
            (middle, foot - 6.0),
            &with_power(&self.x_label, x_power),
            Style::new(SMALL, Anchor::Middle),
        );
        let label = with_power(&self.y_label, y_power);
        for row in 0..rows {
            let at = (EDGE + 10.0, head + row as f64 * height + SMALL_LINE + PLOT / 2.0);
            canvas.text(at, &label, Style { upwards: true, ..Style::new(SMALL, Anchor::Middle) });
        }
        legend.draw_across(&mut canvas, (EDGE + 20.0, foot));
        canvas
    }
}
