//! Bars made of parts: the phases of a round, the energy of each device, …

use super::axis::{Axis, Notation, drawable};
use super::bar_chart::draw_names;
use super::canvas::{Anchor, Canvas, INK, Pixel, Style};
use super::frame::{EDGE, Frame, Room, SMALL, SMALL_LINE, TICK_LABELS_BELOW, Texts, WIDTH, y_ticks};
use super::legend::COLORS;
use super::text;

const PLOT: f64 = 340.0;
/// More bars than this are drawn in groups, each the mean of its bars: finer ones could not be seen.
const MAX_BARS: usize = 300;
/// Pixels that a name may be long.
const LONGEST_NAME: f64 = 150.0;
/// Pixels that the name of a part may be long.
const LONGEST_PART: f64 = 180.0;
/// Side of a part's color in the key.
const SWATCH: f64 = 13.0;

/// Bars from zero, each the sum of named parts that stand one upon the other in the given order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackedBars {
    /// The heading; none if empty.
    pub title: String,
    /// What the bars are.
    pub x_label: String,
    /// What their heights are, with its unit.
    pub y_label: String,
    /// The names of the parts, from the foot of a bar upwards; at most seven are told apart by their color.
    pub parts: Vec<String>,
    /// A name for each bar, and the value of each part. A value that is missing, negative or not finite
    /// counts as 0. Beyond three hundred bars, neighbors share one that is their mean.
    pub bars: Vec<(String, Vec<f64>)>,
}

impl StackedBars {
    pub(super) fn draw(&self) -> Canvas {
        let high =
            self.bars.iter().map(|(_, values)| values.iter().map(|v| part(*v)).sum()).fold(0.0, f64::max);
        let high = if drawable(high) { high } else { 0.0 };
        let axis = Axis::over([0.0, if high > 0.0 { high } else { 1.0 }].into_iter(), false, 0.05)
            .within(0.0, f64::INFINITY);
        let names: Vec<String> =
            self.bars.iter().map(|b| text::shorten(&b.0, SMALL, false, LONGEST_NAME)).collect();
        let widest = text::widest(names.iter().map(|n| &**n), SMALL);
        let (y_ticks, y_label, left) = y_ticks(&axis, PLOT, &self.y_label, Notation::Plain);
        let slot = (WIDTH - left - 2.0 * EDGE - 60.0) / names.len().max(1) as f64;
        // Numbers may be left out between others; names are turned first.
        let numbers = names.iter().all(|n| n.parse::<i64>().is_ok());
        let upwards = !numbers && widest + 8.0 > slot;
        let below = if upwards { widest + 14.0 } else { TICK_LABELS_BELOW };
        let texts = Texts { title: &self.title, subtitle: "", x_label: &self.x_label, y_label: &y_label };
        let key = self.key();
        let room = Room { plot: PLOT, above: key.height, below, foot: 0.0, left, right: 0.0 };
        let (mut canvas, frame) = Frame::open(texts, &room);

        frame.draw_y_ticks(&mut canvas, &axis, &y_ticks);
        if high > 0.0 {
            self.draw_bars(&mut canvas, &frame, &axis);
        } else {
            frame.draw_no_data(&mut canvas);
        }
        canvas.rule((frame.left, frame.top), (frame.left, frame.bottom), INK);
        canvas.rule((frame.left, frame.bottom), (frame.right, frame.bottom), INK);
        key.draw(&mut canvas, &frame);
        draw_names(&mut canvas, &frame, &names, upwards);
        canvas
    }

    fn draw_bars(&self, canvas: &mut Canvas, frame: &Frame, axis: &Axis) {
        let n = self.bars.len();
        let drawn = n.min(MAX_BARS);
        let slot = frame.width() / drawn.max(1) as f64;
        let free = (slot * 0.14).max((slot - 90.0) / 2.0);
        for i in 0..drawn {
            let group = &self.bars[i * n / drawn..(i + 1) * n / drawn];
            let left = frame.left + i as f64 * slot;
            let mut foot = 0.0;
            for index in 0..self.parts.len() {
                let values = group.iter().map(|(_, values)| part(values.get(index).copied().unwrap_or(0.0)));
                let head = foot + values.sum::<f64>() / group.len() as f64;
                if let (Some(low), Some(high)) = (axis.share(foot), axis.share(head))
                    && high > low
                {
                    let color = COLORS[index % COLORS.len()];
                    canvas.rect((left + free, frame.y(high)), (left + slot - free, frame.y(low)), color);
                }
                foot = head;
            }
        }
    }

    fn key(&self) -> Key {
        let labels: Vec<String> =
            self.parts.iter().map(|name| text::shorten(name, SMALL, false, LONGEST_PART)).collect();
        let mut entries = Vec::with_capacity(labels.len());
        let (mut x, mut line) = (0.0, 0.0);
        for label in labels {
            let width = SWATCH + 6.0 + text::width(&label, SMALL, false);
            if x > 0.0 && x + width > WIDTH - 160.0 {
                (x, line) = (0.0, line + 1.0);
            }
            entries.push(((x, (line + 0.5) * SMALL_LINE), label));
            x += width + 20.0;
        }
        let height = if entries.is_empty() { 0.0 } else { (line + 1.0) * SMALL_LINE + 8.0 };
        Key { entries, height }
    }
}

/// Which color is which part.
struct Key {
    /// Labels with where they begin, from the key's corner.
    entries: Vec<(Pixel, String)>,
    height: f64,
}

impl Key {
    fn draw(&self, canvas: &mut Canvas, frame: &Frame) {
        let half = SWATCH / 2.0;
        for (i, ((x, y), label)) in self.entries.iter().enumerate() {
            let (x, y) = (frame.left + x, frame.above + 4.0 + y);
            canvas.rect((x, y - half), (x + SWATCH, y + half), COLORS[i % COLORS.len()]);
            let at = (x + SWATCH + 6.0, y + f64::from(SMALL) * 0.36);
            canvas.text(at, label, Style::new(SMALL, Anchor::Start));
        }
    }
}

/// The height of a part.
fn part(value: f64) -> f64 {
    if drawable(value) { value.max(0.0) } else { 0.0 }
}
