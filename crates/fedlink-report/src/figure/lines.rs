//! Draws curves, in one panel or in several side by side.

use super::canvas::{Anchor, Canvas, Pixel, Style};
use super::frame::{
    EDGE, Frame, Room, SMALL, SMALL_LINE, TICK_LABELS_BELOW, Texts, WIDTH, widest_label, x_ticks, y_ticks,
};
use super::legend::{Legend, Sample, draw_line, draw_marker};
use super::text;
use crate::chart::{Lines, Series, Tick};

/// Height of the plot area.
const PLOT: f64 = 370.0;
/// The largest height, beside a long legend.
const MAX_PLOT: f64 = 640.0;
/// Height of one of several panels.
const PANEL: f64 = 190.0;
/// Opacity of a band; several may overlap.
const BAND: f64 = 0.15;

/// The ticks of both axes.
struct Ticks {
    x: Vec<Tick>,
    y: Vec<Tick>,
}

impl Lines {
    pub(super) fn draw(&self) -> Canvas {
        let legend = Legend::new(&self.key, Sample::Line);
        let columns = match self.panels.len() {
            0 | 1 => 1,
            2 | 4 => 2,
            _ => 3,
        };
        let rows = self.panels.len().max(1).div_ceil(columns);
        // The head of a named panel, and the gap between two rows of them.
        let head = if self.panels.iter().any(|panel| !panel.name.is_empty()) { SMALL_LINE } else { 0.0 };
        let gap = TICK_LABELS_BELOW + 10.0;
        let height = if self.panels.len() > 1 {
            PANEL
        } else if self.key.iter().any(|entry| !entry.group.is_empty()) {
            // A legend in groups is beside the curves: the chart has the height of the legend, up to a
            // limit.
            PLOT.max(legend.height_beside().min(MAX_PLOT))
        } else {
            PLOT
        };
        let plot = rows as f64 * (head + height + gap) - gap;
        let beside = columns == 1 && legend.fits_beside(plot);
        // With at most eight ticks there are at least three: steps are 1, 2 and 5.
        let (y, left) = y_ticks(&self.y, height.max(400.0));
        let right = if beside { legend.width_beside() } else { 0.0 };
        // The plot has at least this width with any labels; the ticks are chosen to fit.
        let x = x_ticks(&self.x, (WIDTH - left - right - 80.0) / columns as f64);
        let ticks = Ticks { x, y };
        // A tick may be at either end of the axis, with half its label beyond.
        let beyond = widest_label(&ticks.x) / 2.0 + 2.0;
        let (left, right) = (left.max(beyond - EDGE), right.max(beyond));
        let (x_label, y_label) = (&self.x.label, &self.y.label);
        let texts = Texts { title: &self.title, subtitle: &self.subtitle, x_label, y_label };
        let foot = if beside { 0.0 } else { legend.height_across() };
        let room = Room { plot, above: 0.0, below: TICK_LABELS_BELOW, foot, left, right };
        let (mut canvas, frame) = Frame::open(texts, &room);

        let space = (2.0 * beyond + 8.0).max(26.0);
        let width = (frame.width() - space * (columns - 1) as f64) / columns as f64;
        for index in 0..self.panels.len().max(1) {
            let (left, top) = (
                frame.left + (index % columns) as f64 * (width + space),
                frame.top + (index / columns) as f64 * (head + height + gap) + head,
            );
            let cell = Frame { left, right: left + width, top, bottom: top + height, ..frame };
            let (name, series) =
                self.panels.get(index).map_or(("", &[][..]), |panel| (&panel.name, &panel.series));
            let name = text::shorten(name, SMALL, true, width);
            canvas.bold((left, top - 6.0), &name, Style::new(SMALL, Anchor::Start));
            self.draw_panel(&mut canvas, &cell, series, &ticks, index % columns == 0);
        }
        if beside {
            legend.draw_beside(&mut canvas, (frame.right + 16.0, frame.top));
        } else {
            legend.draw_across(&mut canvas, (frame.left.min(60.0), frame.foot));
        }
        canvas
    }

    fn draw_panel(
        &self,
        canvas: &mut Canvas,
        frame: &Frame,
        series: &[Series],
        ticks: &Ticks,
        labeled: bool,
    ) {
        frame.draw_y_ticks(canvas, &self.y, &ticks.y, labeled);
        frame.draw_x_ticks(canvas, &self.x, &ticks.x);
        frame.draw_edges(canvas);
        // Bands first, so that no band covers a line.
        for (one, run) in series.iter().flat_map(|one| one.bands.iter().map(move |run| (one, run))) {
            let end = |at: &[f64; 3], end: usize| -> Pixel {
                let share = |axis: &crate::chart::Axis, v| axis.share(v).unwrap_or(0.0);
                (frame.x(share(&self.x, at[0])), frame.y(share(&self.y, at[end])))
            };
            let upper = run.iter().map(|at| end(at, 2));
            let outline: Vec<Pixel> = upper.chain(run.iter().rev().map(|at| end(at, 1))).collect();
            canvas.polygon(&outline, self.key[one.key].look.rgb(), BAND, None);
        }
        for one in series {
            let look = self.key[one.key].look;
            let pixels = |points: &[(f64, f64)]| -> Vec<Pixel> {
                points.iter().filter_map(|&point| frame.point(&self.x, &self.y, point)).collect()
            };
            one.runs.iter().for_each(|run| draw_line(canvas, look, &pixels(run)));
            pixels(&one.marks).into_iter().for_each(|at| draw_marker(canvas, look, at));
        }
        if series.iter().all(|one| one.runs.is_empty()) {
            frame.draw_no_data(canvas);
        }
    }
}
