//! Curves over a common axis: accuracy by round, bounds by round, …

use super::axis::{Axis, Notation, shown};
use super::canvas::{Canvas, Pixel};
use super::frame::{EDGE, Frame, Room, SMALL, TICK_LABELS_BELOW, Texts, WIDTH, with_power, y_ticks};
use super::legend::{Legend, SeriesStyle};
use super::reduce::reduce;
use super::text;

/// Height of the plot area.
const PLOT: f64 = 370.0;
/// The highest one, where a long legend stands beside it.
const MAX_PLOT: f64 = 640.0;
/// Opacity of a band: several may lie upon one another.
const BAND: f64 = 0.15;
/// More bands upon one another cannot be distinguished: a chart of more curves has none.
pub const MAX_BANDS: usize = 12;
/// A curve of more points is marked at about [`MARKS`] of them.
const ALL_MARKED: usize = 26;
const MARKS: usize = 9;

/// One series of a [`LineChart`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// What the legend calls it.
    pub label: String,
    /// Points (x, y) in the order in which they are joined. The line is interrupted where a point is not
    /// finite, or not positive on a logarithmic axis.
    pub points: Vec<(f64, f64)>,
    /// The lower and upper end of a band around each point; points beyond its length have none. On a
    /// logarithmic axis, a lower end that is not positive is drawn at the foot of the plot. Not drawn in a
    /// chart of more than [`MAX_BANDS`] curves.
    pub band: Option<Vec<(f64, f64)>>,
    /// How it looks; none: by its index.
    pub style: Option<CurveStyle>,
}

/// How a curve looks, by indices into the lists of colors, dash patterns and markers, which repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CurveStyle {
    /// The color.
    pub color: usize,
    /// The dash pattern.
    pub dash: usize,
    /// The marker.
    pub marker: usize,
    /// The heading under which the legend has it; none if empty.
    pub group: String,
}

/// Curves, distinguished by color, dash pattern and marker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineChart {
    /// The heading; none if empty.
    pub title: String,
    /// A smaller line under the heading; none if empty.
    pub subtitle: String,
    /// What runs to the right, with its unit.
    pub x_label: String,
    /// What runs upwards, with its unit.
    pub y_label: String,
    /// Whether y is spread by its logarithm.
    pub log_y: bool,
    /// Whether y values are shares, labeled in percent: 0.93 as 93. Has no effect on a logarithmic axis.
    pub percent_y: bool,
    /// The curves, in the order of the legend.
    pub curves: Vec<Curve>,
}

impl LineChart {
    pub(super) fn draw(&self) -> Canvas {
        let every = || self.curves.iter().flat_map(|c| (0..c.points.len()).map(move |i| (c, i)));
        // A point of which one coordinate cannot be shown must not stretch the axis of the other.
        let x_axis = Axis::over(
            every().map(|(c, i)| c.points[i]).filter(|&(_, y)| self.shows(y)).map(|p| p.0),
            false,
            0.02,
        );
        let heights = every().filter(|(c, i)| x_axis.share(c.points[*i].0).is_some()).flat_map(|(c, i)| {
            let band = if self.has_bands() { c.band_at(i) } else { None };
            let (low, high) = band.unwrap_or((f64::NAN, f64::NAN));
            [c.points[i].1, low, high]
        });
        let mut y_axis = Axis::over(heights.clone(), self.log_y, 0.04);
        let notation = if self.percent_y { Notation::Percent } else { Notation::Plain };
        // No free space beyond 0 or 100 %, unless there are values beyond.
        if self.percent_y && heights.filter(|&v| self.shows(v)).all(|v| (0.0..=1.0).contains(&v)) {
            y_axis = y_axis.within(0.0, 1.0);
        }

        let legend = Legend::grouped(self.curves.iter().enumerate().map(|(i, c)| {
            let drawn = c.points.iter().any(|&(x, y)| x_axis.share(x).is_some() && self.shows(y));
            let group = c.style.as_ref().map_or("", |style| style.group.as_str());
            let label = if drawn { c.label.clone() } else { format!("{} (no data)", c.label) };
            (group, self.style(i), label)
        }));
        // A legend in groups is read beside the curves: the chart is as high as that takes, within reason.
        let plot = if self.curves.iter().any(|c| c.style.is_some()) {
            PLOT.max(legend.height_beside().min(MAX_PLOT))
        } else {
            PLOT
        };
        let beside = legend.fits_beside(plot);
        let (y_ticks, y_label, left) = y_ticks(&y_axis, plot, &self.y_label, notation);
        let right = if beside { legend.width_beside() } else { 0.0 };
        // The plot is at least this wide whatever its labels; the ticks are chosen to fit.
        let (x_ticks, x_power) = x_axis.ticks_across(WIDTH - left - right - 80.0, SMALL, Notation::Plain);
        // A tick may stand at either end of the axis, with half its label beyond.
        let beyond = text::widest(x_ticks.iter().map(|t| &*t.label), SMALL) / 2.0 + 2.0;
        let (left, right) = (left.max(beyond - EDGE), right.max(beyond));
        let x_label = with_power(&self.x_label, x_power);
        let texts =
            Texts { title: &self.title, subtitle: &self.subtitle, x_label: &x_label, y_label: &y_label };
        let foot = if beside { 0.0 } else { legend.height_across() };
        let room = Room { plot, above: 0.0, below: TICK_LABELS_BELOW, foot, left, right };
        let (mut canvas, frame) = Frame::open(texts, &room);

        frame.draw_y_ticks(&mut canvas, &y_axis, &y_ticks);
        frame.draw_x_ticks(&mut canvas, &x_axis, &x_ticks);
        frame.draw_edges(&mut canvas);
        if self.has_bands() {
            for (i, curve) in self.curves.iter().enumerate() {
                curve.draw_band(&mut canvas, &frame, &x_axis, &y_axis, self.style(i));
            }
        }
        let mut empty = true;
        for (i, curve) in self.curves.iter().enumerate() {
            let phase = i as f64 / self.curves.len() as f64;
            empty &= !curve.draw_line(&mut canvas, &frame, &x_axis, &y_axis, (self.style(i), phase));
        }
        if empty {
            frame.draw_no_data(&mut canvas);
        }
        if beside {
            legend.draw_beside(&mut canvas, (frame.right + 16.0, frame.top));
        } else {
            legend.draw_across(&mut canvas, (frame.left.min(60.0), frame.foot));
        }
        canvas
    }

    fn style(&self, index: usize) -> SeriesStyle {
        SeriesStyle::of_curve(index, self.curves[index].style.as_ref())
    }

    /// Whether bands are drawn.
    fn has_bands(&self) -> bool {
        self.curves.len() <= MAX_BANDS
    }

    fn shows(&self, y: f64) -> bool {
        shown(y, self.log_y)
    }
}

impl Curve {
    fn band_at(&self, i: usize) -> Option<(f64, f64)> {
        let &(a, b) = self.band.as_ref()?.get(i)?;
        Some((a.min(b), a.max(b)))
    }

    /// Draws the line and its markers; returns whether there was anything to draw.
    fn draw_line(
        &self,
        canvas: &mut Canvas,
        frame: &Frame,
        x: &Axis,
        y: &Axis,
        (style, phase): (SeriesStyle, f64),
    ) -> bool {
        let points: Vec<Option<Pixel>> = self.points.iter().map(|&p| frame.point(x, y, p)).collect();
        for run in points.split(Option::is_none) {
            let run = reduce(run.iter().flatten().copied());
            style.draw_line(canvas, &run);
        }
        // Curves are marked at different indices, so that the markers of close ones can all be seen. A point
        // between two gaps has no line and is always marked, unless the last such mark hides it.
        let stride = if points.len() <= ALL_MARKED { 1 } else { points.len().div_ceil(MARKS) };
        let offset = (phase * stride as f64) as usize;
        let mut lone: Option<Pixel> = None;
        for (i, at) in points.iter().enumerate() {
            let Some(at) = *at else { continue };
            let gap = |j: Option<usize>| j.and_then(|j| points.get(j)).copied().flatten().is_none();
            let alone = gap(i.checked_sub(1)) && gap(Some(i + 1));
            let hidden = lone.is_some_and(|(lx, ly)| (lx - at.0).abs() < 1.0 && (ly - at.1).abs() < 1.0);
            if i % stride == offset || (alone && !hidden) {
                style.draw_marker(canvas, at);
            }
            if alone && !hidden {
                lone = Some(at);
            }
        }
        points.iter().any(Option::is_some)
    }

    fn draw_band(&self, canvas: &mut Canvas, frame: &Frame, x: &Axis, y: &Axis, style: SeriesStyle) {
        let ends: Vec<Option<(Pixel, Pixel)>> = (0..self.points.len())
            .map(|i| {
                let (low, high) = self.band_at(i)?;
                frame.point(x, y, self.points[i])?;
                let (px, high) = frame.point(x, y, (self.points[i].0, high))?;
                let low = if low.is_finite() {
                    y.share(low).map_or(frame.bottom, |s| frame.y(s))
                } else {
                    return None;
                };
                Some(((px, low), (px, high)))
            })
            .collect();
        for run in ends.split(Option::is_none) {
            let mut outline = reduce(run.iter().flatten().map(|e| e.1));
            outline.extend(reduce(run.iter().flatten().map(|e| e.0)).into_iter().rev());
            canvas.polygon(&outline, style.color, BAND, None);
        }
    }
}
