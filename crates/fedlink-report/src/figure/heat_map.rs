//! A matrix of values as colors: label counts by device, accuracy by two parameters, …

use super::axis::{Axis, Notation, Tick, drawable};
use super::canvas::{ABSENT, Anchor, Canvas, INK, Rgb, Style, heat};
use super::frame::{EDGE, Frame, Room, SMALL, SMALL_LINE, TICK_LABELS_BELOW, Texts, WIDTH, with_power};
use super::text;

/// More rows or columns than this are averaged in blocks: finer cells could not be seen.
const MAX_CELLS: usize = 200;
/// Width of the color bar and its distance from the cells.
const BAR: f64 = 18.0;
const BAR_GAP: f64 = 20.0;
/// Steps of the color bar.
const SHADES: usize = 64;

/// Values in rows and columns, the first row on top, shown as colors from dark (low) to light (high).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    /// The heading; none if empty.
    pub title: String,
    /// What the columns are.
    pub x_label: String,
    /// What the rows are.
    pub y_label: String,
    /// The values, row by row. Values that are not finite, and those missing from rows shorter than the
    /// longest, are left gray. Of more than two hundred rows or columns, blocks are averaged.
    pub rows: Vec<Vec<f64>>,
    /// What the values are, with their unit.
    pub value_label: String,
    /// The columns' names, or else their numbers from zero.
    pub x_ticks: Option<Vec<String>>,
    /// The rows' names, or else their numbers from zero.
    pub y_ticks: Option<Vec<String>>,
}

impl HeatMap {
    pub(super) fn draw(&self) -> Canvas {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let rows = if columns == 0 { 0 } else { self.rows.len() };
        let plot = (rows as f64 * 13.0).clamp(260.0, 560.0);
        let values = self.rows.iter().flatten().copied().filter(|v| drawable(*v));
        let scale = Axis::over(values.clone(), false, 0.0);
        let bar = ColorBar::new(&scale, &self.value_label);
        let x_names = names(self.x_ticks.as_deref(), columns, 110.0);
        let y_names = names(self.y_ticks.as_deref(), rows, 150.0);

        let left = text::widest(y_names.iter().map(|n| &**n), SMALL);
        let right = bar.width();
        // A slot is at least this wide; labels too wide for it run upwards.
        let slot = (WIDTH - left - right - 60.0) / columns.max(1) as f64;
        let widest = text::widest(x_names.iter().map(|n| &**n), SMALL);
        let numbers = self.x_ticks.is_none();
        let upwards = !numbers && widest + 6.0 > slot;
        let below = if upwards { widest + 16.0 } else { TICK_LABELS_BELOW };
        let texts =
            Texts { title: &self.title, subtitle: "", x_label: &self.x_label, y_label: &self.y_label };
        let (mut canvas, frame) =
            Frame::open(texts, &Room { plot, above: 0.0, below, foot: 0.0, left, right });

        if values.clone().next().is_none() {
            frame.draw_edges(&mut canvas);
            frame.draw_no_data(&mut canvas);
            return canvas;
        }
        self.draw_cells(&mut canvas, &frame, &scale, (rows, columns));

        let every = (SMALL_LINE * rows as f64 / plot).ceil().max(1.0) as usize;
        for (i, name) in y_names.iter().enumerate().step_by(nice(every)) {
            let y = frame.top + (i as f64 + 0.5) / rows as f64 * plot + f64::from(SMALL) * 0.36;
            canvas.text((frame.left - 6.0, y), name, Style::new(SMALL, Anchor::End));
        }
        let slot = frame.width() / columns as f64;
        let needed = if upwards { SMALL_LINE } else { widest + 8.0 };
        for (j, name) in x_names.iter().enumerate().step_by(nice((needed / slot).ceil() as usize)) {
            let x = frame.left + (j as f64 + 0.5) * slot;
            if upwards {
                let style = Style { upwards: true, ..Style::new(SMALL, Anchor::End) };
                canvas.text((x + f64::from(SMALL) * 0.36, frame.bottom + 8.0), name, style);
            } else {
                frame.draw_x_label(&mut canvas, x, name);
            }
        }

        bar.draw(&mut canvas, &frame, &scale);
        canvas
    }

    fn draw_cells(&self, canvas: &mut Canvas, frame: &Frame, scale: &Axis, (rows, columns): (usize, usize)) {
        let (down, across) = (rows.min(MAX_CELLS), columns.min(MAX_CELLS));
        let block = |i: usize, of: usize, n: usize| i * n / of..(i + 1) * n / of;
        for i in 0..down {
            // Whole pixels: between edges that share a pixel, the paper would shine through.
            let edge = |i: usize| frame.y(1.0 - i as f64 / down as f64).round();
            let (top, bottom) = (edge(i), edge(i + 1));
            let color = |j: usize| {
                let columns = block(j, across, columns);
                let cells = self.rows[block(i, down, rows)].iter().flat_map(|row| {
                    let end = row.len();
                    &row[columns.start.min(end)..columns.end.min(end)]
                });
                // A running mean stays inside the range of its values, whatever their size.
                let (mean, n) = cells
                    .filter(|v| drawable(**v))
                    .fold((0.0, 0.0), |(mean, n), v| (mean + (v - mean) / (n + 1.0), n + 1.0));
                scale.share(if n > 0.0 { mean } else { f64::NAN }).map_or(ABSENT, heat)
            };
            let colors: Vec<Rgb> = (0..across).map(color).collect();
            // Neighbors of one color are one rectangle.
            let mut j = 0;
            while j < across {
                let fill = colors[j];
                let end = (j + 1..across).find(|&k| colors[k] != fill).unwrap_or(across);
                let at = |j: usize| frame.x(j as f64 / across as f64).round();
                canvas.rect((at(j), top), (at(end), bottom), fill);
                j = end;
            }
        }
    }
}

/// The key to the colors of values, to the right of the plot area.
pub(super) struct ColorBar {
    ticks: Vec<Tick>,
    label: String,
}

impl ColorBar {
    /// The key to the values on `scale`, which are called `label`.
    pub fn new(scale: &Axis, label: &str) -> Self {
        let (ticks, power) = scale.ticks(6, Notation::Plain);
        Self { ticks, label: with_power(label, power) }
    }

    /// Width it needs beside the plot area, with the space around it.
    pub fn width(&self) -> f64 {
        let labels = text::widest(self.ticks.iter().map(|t| &*t.label), SMALL);
        BAR_GAP + BAR + 6.0 + labels + 8.0 + SMALL_LINE + EDGE
    }

    /// Draws it as high as the plot area.
    pub fn draw(&self, canvas: &mut Canvas, frame: &Frame, scale: &Axis) {
        let bar = (frame.right + BAR_GAP).round();
        let shade = |i: usize| frame.y(i as f64 / SHADES as f64).round();
        for i in 0..SHADES {
            let color = heat((i as f64 + 0.5) / SHADES as f64);
            canvas.rect((bar, shade(i + 1)), (bar + BAR, shade(i)), color);
        }
        for tick in &self.ticks {
            let Some(y) = scale.share(tick.at).map(|s| frame.y(s)) else { continue };
            canvas.rule((bar + BAR, y), (bar + BAR + 4.0, y), INK);
            let at = (bar + BAR + 7.0, y + f64::from(SMALL) * 0.36);
            canvas.text(at, &tick.label, Style::new(SMALL, Anchor::Start));
        }
        let label = text::shorten(&self.label, SMALL, false, frame.bottom - frame.top);
        let at = (WIDTH - EDGE - 2.0, f64::midpoint(frame.top, frame.bottom));
        canvas.text(at, &label, Style { upwards: true, ..Style::new(SMALL, Anchor::Middle) });
    }
}

/// The names of `n` rows or columns, cut to `room` pixels; numbers from zero if there are none.
fn names(given: Option<&[String]>, n: usize, room: f64) -> Vec<String> {
    match given {
        Some(names) => names.iter().take(n).map(|name| text::shorten(name, SMALL, false, room)).collect(),
        None => (0..n).map(|i| i.to_string()).collect(),
    }
}

/// The next of 1, 2, 5, 10, 20, 50, …: every so many labels are written.
pub(super) fn nice(every: usize) -> usize {
    let mut decade = 1;
    loop {
        for step in [decade, 2 * decade, 5 * decade] {
            if step >= every {
                return step;
            }
        }
        decade *= 10;
    }
}
