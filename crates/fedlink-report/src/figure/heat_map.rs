//! Draws a matrix of values as colors.

use super::canvas::{ABSENT, Anchor, Canvas, INK, Style};
use super::frame::{EDGE, Frame, Names, Room, SMALL, SMALL_LINE, Texts, WIDTH, nice, widest_label};
use super::text;
use crate::chart::{Axis, HeatMap, Rgb, Tick, shade};

/// Width of the color bar and its distance from the cells.
const BAR: f64 = 18.0;
const BAR_GAP: f64 = 20.0;
/// Steps of the color bar.
const SHADES: usize = 64;

impl HeatMap {
    pub(super) fn draw(&self) -> Canvas {
        let rows = self.cells.len();
        let columns = self.cells.first().map_or(0, Vec::len);
        let plot = (rows as f64 * 13.0).clamp(260.0, 560.0);
        let bar = ColorBar::new(&self.scale);
        let names = |given: &Option<Vec<String>>, n: usize, block: usize| {
            let numbers = || (0..n).map(|i| (i * block).to_string()).collect();
            given
                .as_ref()
                .map_or_else(numbers, |given| -> Vec<String> { given.iter().take(n).cloned().collect() })
        };
        let y_names: Vec<String> = names(&self.y_names, rows, self.block[0])
            .iter()
            .map(|name| text::shorten(name, SMALL, false, 150.0))
            .collect();
        let left = text::widest(y_names.iter().map(|name| &**name), SMALL);
        let right = bar.width();
        let x_names = names(&self.x_names, columns, self.block[1]);
        let x_names = Names::new(&x_names, 110.0, WIDTH - left - right - 60.0);
        let texts =
            Texts { title: &self.title, subtitle: "", x_label: &self.x_label, y_label: &self.y_label };
        let room = Room { plot, above: 0.0, below: x_names.height(), foot: 0.0, left, right };
        let (mut canvas, frame) = Frame::open(texts, &room);

        if !self.cells.iter().flatten().any(Option::is_some) {
            frame.draw_edges(&mut canvas);
            frame.draw_no_data(&mut canvas);
            return canvas;
        }
        for (i, row) in self.cells.iter().enumerate() {
            // Whole pixels: the background would be visible between edges inside a pixel.
            let edge = |i: usize| frame.y(1.0 - i as f64 / rows as f64).round();
            let at = |j: usize| frame.x(j as f64 / columns as f64).round();
            let color = |cell: &Option<f64>| cell.and_then(|v| self.scale.share(v)).map_or(ABSENT, shade);
            let colors: Vec<Rgb> = row.iter().map(color).collect();
            // Neighbors of one color are one rectangle.
            let mut j = 0;
            for same in colors.chunk_by(|a, b| a == b) {
                canvas.rect((at(j), edge(i)), (at(j + same.len()), edge(i + 1)), same[0]);
                j += same.len();
            }
        }
        let every = (SMALL_LINE * rows as f64 / plot).ceil().max(1.0) as usize;
        for (i, name) in y_names.iter().enumerate().step_by(nice(every)) {
            let y = frame.top + (i as f64 + 0.5) / rows as f64 * plot + f64::from(SMALL) * 0.36;
            canvas.text((frame.left - 6.0, y), name, Style::new(SMALL, Anchor::End));
        }
        x_names.draw(&mut canvas, &frame);
        bar.draw(&mut canvas, &frame);
        canvas
    }
}

/// The key to the colors of values, to the right of the plot area.
pub(super) struct ColorBar<'a> {
    scale: &'a Axis,
    ticks: Vec<Tick>,
}

impl<'a> ColorBar<'a> {
    /// The key to the values on `scale`.
    pub fn new(scale: &'a Axis) -> Self {
        Self { scale, ticks: scale.ticks(6) }
    }

    /// Its width beside the plot area, with the space around it.
    pub fn width(&self) -> f64 {
        BAR_GAP + BAR + 6.0 + widest_label(&self.ticks) + 8.0 + SMALL_LINE + EDGE
    }

    /// Draws it with the height of the plot area.
    pub fn draw(&self, canvas: &mut Canvas, frame: &Frame) {
        let bar = (frame.right + BAR_GAP).round();
        let edge = |i: usize| frame.y(i as f64 / SHADES as f64).round();
        for i in 0..SHADES {
            let color = shade((i as f64 + 0.5) / SHADES as f64);
            canvas.rect((bar, edge(i + 1)), (bar + BAR, edge(i)), color);
        }
        for tick in &self.ticks {
            let Some(y) = self.scale.share(tick.at).map(|s| frame.y(s)) else { continue };
            canvas.rule((bar + BAR, y), (bar + BAR + 4.0, y), INK);
            let at = (bar + BAR + 7.0, y + f64::from(SMALL) * 0.36);
            canvas.text(at, &tick.label, Style::new(SMALL, Anchor::Start));
        }
        let label = text::shorten(&self.scale.label, SMALL, false, frame.bottom - frame.top);
        let at = (WIDTH - EDGE - 2.0, f64::midpoint(frame.top, frame.bottom));
        canvas.text(at, &label, Style { upwards: true, ..Style::new(SMALL, Anchor::Middle) });
    }
}
