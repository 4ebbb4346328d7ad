//! The frame of the data: titles, axes, ticks and the space that they need.

use super::canvas::{Anchor, Canvas, GRID, INK, MUTED, Pixel, Style};
use super::text;
use crate::chart::{Axis, Tick};

/// Width of every figure, in pixels.
pub const WIDTH: f64 = 800.0;
/// Free space along the edges.
pub const EDGE: f64 = 14.0;
/// Font size of tick and legend labels.
pub const SMALL: u32 = 13;
/// Height of a line of small text.
pub const SMALL_LINE: f64 = 18.0;
const LABEL: u32 = 14;
const LABEL_LINE: f64 = 18.0;
const TITLE: u32 = 17;
const TITLE_LINE: f64 = 22.0;
const TICK: f64 = 5.0;

/// The texts around a figure; empty ones need no space.
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    pub title: &'a str,
    pub subtitle: &'a str,
    pub x_label: &'a str,
    pub y_label: &'a str,
}

/// The space for the parts of one figure, in pixels.
pub struct Room {
    /// The plot area's height.
    pub plot: f64,
    /// Above the plot area, below the titles.
    pub above: f64,
    /// Between the plot area and the label of the x axis: its tick labels.
    pub below: f64,
    /// Under the label of the x axis.
    pub foot: f64,
    /// To the left of the plot area: the tick labels of the y axis.
    pub left: f64,
    /// To the right of the plot area.
    pub right: f64,
}

/// The plot area on its page.
pub struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    /// The top of the space above the plot area.
    pub above: f64,
    /// The top of the space at the foot.
    pub foot: f64,
}

impl Frame {
    /// Lays a figure out and writes its titles and axis labels.
    pub fn open(texts: Texts<'_>, room: &Room) -> (Canvas, Self) {
        let y_lines = text::wrap(texts.y_label, LABEL, false, room.plot, 2);
        let left = EDGE + y_lines.len() as f64 * LABEL_LINE + room.left + TICK + 5.0;
        let right = WIDTH - room.right.max(EDGE);
        let across = WIDTH - left - EDGE;
        let title = text::wrap(texts.title, TITLE, true, across, 2);
        let subtitle = text::wrap(texts.subtitle, SMALL, false, across, 2);
        let x_lines = text::wrap(texts.x_label, LABEL, false, right - left, 2);

        let after_title = EDGE + title.len() as f64 * TITLE_LINE;
        let above = after_title + subtitle.len() as f64 * SMALL_LINE;
        let top = above + room.above + if above > EDGE { 8.0 } else { 4.0 };
        let bottom = top + room.plot;
        let labels = bottom + room.below;
        let foot = labels + x_lines.len() as f64 * LABEL_LINE + 6.0;

        let mut canvas = Canvas::new(WIDTH, (foot + room.foot + 6.0).ceil());
        for (i, line) in title.iter().enumerate() {
            let y = EDGE + i as f64 * TITLE_LINE + f64::from(TITLE) * 0.9;
            canvas.bold((left, y), line, Style::new(TITLE, Anchor::Start));
        }
        for (i, line) in subtitle.iter().enumerate() {
            let y = after_title + i as f64 * SMALL_LINE + f64::from(SMALL);
            canvas.text((left, y), line, Style { color: MUTED, ..Style::new(SMALL, Anchor::Start) });
        }
        for (i, line) in x_lines.iter().enumerate() {
            let at = (f64::midpoint(left, right), labels + i as f64 * LABEL_LINE + f64::from(LABEL));
            canvas.text(at, line, Style::new(LABEL, Anchor::Middle));
        }
        for (i, line) in y_lines.iter().enumerate() {
            let at = (EDGE + i as f64 * LABEL_LINE + f64::from(LABEL) * 0.8, f64::midpoint(top, bottom));
            canvas.text(at, line, Style { upwards: true, ..Style::new(LABEL, Anchor::Middle) });
        }
        (canvas, Self { left, right, top, bottom, above, foot })
    }

    /// The plot area's width.
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    /// The horizontal position at a share of the width.
    pub fn x(&self, share: f64) -> f64 {
        self.left + share * self.width()
    }

    /// The vertical position at a share of the height, counted upwards.
    pub fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }

    /// A point of the data, if both axes can show it.
    pub fn point(&self, x: &Axis, y: &Axis, (px, py): (f64, f64)) -> Option<Pixel> {
        Some((self.x(x.share(px)?), self.y(y.share(py)?)))
    }

    /// The left edge and the bottom edge.
    pub fn draw_edges(&self, canvas: &mut Canvas) {
        canvas.rule((self.left, self.top), (self.left, self.bottom), INK);
        canvas.rule((self.left, self.bottom), (self.right, self.bottom), INK);
    }

    /// Horizontal grid lines, with their labels to the left if `labels` is set.
    pub fn draw_y_ticks(&self, canvas: &mut Canvas, axis: &Axis, ticks: &[Tick], labeled: bool) {
        for tick in ticks {
            let Some(share) = axis.share(tick.at) else { continue };
            let y = self.y(share);
            canvas.rule((self.left, y), (self.right, y), GRID);
            self.draw_y_tick(canvas, y, TICK);
            let at = (self.left - TICK - 4.0, y + f64::from(SMALL) * 0.36);
            if labeled {
                canvas.text(at, &tick.label, Style::new(SMALL, Anchor::End));
            }
        }
        for v in &axis.minor {
            if let Some(share) = axis.share(*v) {
                self.draw_y_tick(canvas, self.y(share), TICK * 0.6);
            }
        }
    }

    /// Vertical grid lines with their labels below.
    pub fn draw_x_ticks(&self, canvas: &mut Canvas, axis: &Axis, ticks: &[Tick]) {
        for tick in ticks {
            let Some(share) = axis.share(tick.at) else { continue };
            let x = self.x(share);
            canvas.rule((x, self.top), (x, self.bottom), GRID);
            canvas.rule((x, self.bottom), (x, self.bottom + TICK), INK);
            self.draw_x_label(canvas, x, &tick.label);
        }
    }

    /// A horizontal label under a position.
    pub fn draw_x_label(&self, canvas: &mut Canvas, x: f64, label: &str) {
        let at = (x, self.bottom + TICK + 3.0 + f64::from(SMALL));
        canvas.text(at, label, Style::new(SMALL, Anchor::Middle));
    }

    /// Writes "no data" into the middle of the plot area.
    pub fn draw_no_data(&self, canvas: &mut Canvas) {
        let at = (self.x(0.5), self.y(0.5));
        canvas.text(at, "no data", Style { color: MUTED, ..Style::new(TITLE, Anchor::Middle) });
    }

    fn draw_y_tick(&self, canvas: &mut Canvas, y: f64, length: f64) {
        canvas.rule((self.left - length, y), (self.left, y), INK);
    }
}

/// Height of horizontal tick labels under the plot area.
pub const TICK_LABELS_BELOW: f64 = TICK + 3.0 + SMALL_LINE;

/// The ticks of a y axis of the given height, and the width of their labels.
pub fn y_ticks(axis: &Axis, height: f64) -> (Vec<Tick>, f64) {
    let ticks = axis.ticks((height / 50.0) as usize);
    let room = widest_label(&ticks);
    (ticks, room)
}

/// The ticks of an x axis: as many as fit on `length` pixels.
pub fn x_ticks(axis: &Axis, length: f64) -> Vec<Tick> {
    let fits =
        |ticks: &Vec<Tick>| (widest_label(ticks) + 1.5 * f64::from(SMALL)) * ticks.len() as f64 <= length;
    (2..=10).rev().map(|wanted| axis.ticks(wanted)).find(fits).unwrap_or_else(|| axis.ticks(1))
}

/// The width of the widest label.
pub fn widest_label(ticks: &[Tick]) -> f64 {
    text::widest(ticks.iter().map(|tick| &*tick.label), SMALL)
}

/// The layout of the names of `n` bars or columns under a plot area.
pub struct Names {
    names: Vec<String>,
    upwards: bool,
    widest: f64,
}

impl Names {
    /// Names of at most `longest` pixels under a plot area about `width` pixels wide. Names that do not
    /// fit are turned; numbers may be left out.
    pub fn new(names: &[String], longest: f64, width: f64) -> Self {
        let names: Vec<String> =
            names.iter().map(|name| text::shorten(name, SMALL, false, longest)).collect();
        let widest = text::widest(names.iter().map(|name| &**name), SMALL);
        let numbers = names.iter().all(|name| name.parse::<i64>().is_ok());
        let upwards = !numbers && widest + 8.0 > width / names.len().max(1) as f64;
        Self { names, upwards, widest }
    }

    /// Their height.
    pub fn height(&self) -> f64 {
        if self.upwards { self.widest + 15.0 } else { TICK_LABELS_BELOW }
    }

    /// Draws them; some are left out if not all fit.
    pub fn draw(&self, canvas: &mut Canvas, frame: &Frame) {
        let slot = frame.width() / self.names.len().max(1) as f64;
        let needed = if self.upwards { SMALL_LINE - 3.0 } else { self.widest + 8.0 };
        for (i, name) in self.names.iter().enumerate().step_by(nice((needed / slot).ceil() as usize)) {
            let x = frame.left + (i as f64 + 0.5) * slot;
            if self.upwards {
                let style = Style { upwards: true, ..Style::new(SMALL, Anchor::End) };
                canvas.text((x + f64::from(SMALL) * 0.36, frame.bottom + 8.0), name, style);
            } else {
                frame.draw_x_label(canvas, x, name);
            }
        }
    }
}

/// The next of 1, 2, 5, 10, 20, 50, …: the distance between labels.
pub fn nice(every: usize) -> usize {
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
