//! One bar per name: power by device, accuracy by policy, …

use super::axis::{Axis, Notation, drawable};
use super::canvas::{Anchor, Canvas, INK, Rgb, Style};
use super::frame::{EDGE, Frame, Room, SMALL, SMALL_LINE, TICK_LABELS_BELOW, Texts, WIDTH, y_ticks};
use super::heat_map::nice;
use super::legend::{Legend, SeriesStyle};
use super::text;

const PLOT: f64 = 340.0;
const FILL: Rgb = (0x56, 0xb4, 0xe9);
/// More bars than this are drawn in groups, each as the range of its bars: finer ones could not be seen.
const MAX_BARS: usize = 600;
/// Pixels that a name may be long.
const LONGEST_NAME: f64 = 130.0;

/// Bars from zero to their values, in the given order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarChart {
    /// The heading; none if empty.
    pub title: String,
    /// What the bars are.
    pub x_label: String,
    /// What their heights are, with its unit.
    pub y_label: String,
    /// A name and a value for each bar. A value that is not finite leaves its position empty. Beyond six
    /// hundred, neighboring bars share one that spans all of them.
    pub bars: Vec<(String, f64)>,
    /// A value to compare the bars with, and what it is: a dashed line.
    pub reference: Option<(String, f64)>,
}

impl BarChart {
    pub(super) fn draw(&self) -> Canvas {
        let values = || self.bars.iter().map(|b| b.1).filter(|v| drawable(*v));
        let reference = self.reference.as_ref().filter(|r| drawable(r.1));
        // Bars stand on zero, and nothing is drawn beyond it on a side without bars.
        let low = values().chain(reference.map(|r| r.1)).fold(0.0, f64::min);
        let high = values().chain(reference.map(|r| r.1)).fold(0.0, f64::max);
        let axis = Axis::over([low, if low == high { 1.0 } else { high }].into_iter(), false, 0.05).within(
            if low < 0.0 { f64::NEG_INFINITY } else { 0.0 },
            if high > 0.0 || low == 0.0 { f64::INFINITY } else { 0.0 },
        );

        let names: Vec<String> =
            self.bars.iter().map(|b| text::shorten(&b.0, SMALL, false, LONGEST_NAME)).collect();
        let widest = text::widest(names.iter().map(|n| &**n), SMALL);
        let (y_ticks, y_label, left) = y_ticks(&axis, PLOT, &self.y_label, Notation::Plain);
        let slot = (WIDTH - left - 2.0 * EDGE - 60.0) / names.len().max(1) as f64;
        // Numbers may be left out between others; names are turned first.
        let numbers = names.iter().all(|n| n.parse::<i64>().is_ok());
        let upwards = !numbers && widest + 8.0 > slot;
        let below = if upwards { widest + 14.0 } else { TICK_LABELS_BELOW };
        let legend = Legend::new(reference.map(|(label, _)| (SeriesStyle::reference(), label.clone())));
        let texts = Texts { title: &self.title, subtitle: "", x_label: &self.x_label, y_label: &y_label };
        let room = Room { plot: PLOT, above: legend.height_across(), below, foot: 0.0, left, right: 0.0 };
        let (mut canvas, frame) = Frame::open(texts, &room);

        frame.draw_y_ticks(&mut canvas, &axis, &y_ticks);
        self.draw_bars(&mut canvas, &frame, &axis);
        let zero = frame.y(axis.share(0.0).unwrap_or(0.0));
        canvas.rule((frame.left, frame.top), (frame.left, frame.bottom), INK);
        canvas.rule((frame.left, zero), (frame.right, zero), INK);
        if values().next().is_none() {
            frame.draw_no_data(&mut canvas);
        }
        if let Some(share) = reference.and_then(|r| axis.share(r.1)) {
            let y = frame.y(share);
            SeriesStyle::reference().draw_line(&mut canvas, &[(frame.left, y), (frame.right, y)]);
            legend.draw_across(&mut canvas, (frame.left, frame.above));
        }
        draw_names(&mut canvas, &frame, &names, upwards);
        canvas
    }

    fn draw_bars(&self, canvas: &mut Canvas, frame: &Frame, axis: &Axis) {
        let n = self.bars.len();
        let drawn = n.min(MAX_BARS);
        let slot = frame.width() / drawn.max(1) as f64;
        let free = (slot * 0.14).min(12.0);
        for i in 0..drawn {
            let group = self.bars[i * n / drawn..(i + 1) * n / drawn].iter().map(|b| b.1);
            let shares = group.filter(|v| drawable(*v)).chain([0.0]).filter_map(|v| axis.share(v));
            let (low, high) = shares.fold((1.0, 0.0), |(l, h): (f64, f64), s| (l.min(s), h.max(s)));
            if high > low {
                let left = frame.left + i as f64 * slot;
                canvas.rect((left + free, frame.y(high)), (left + slot - free, frame.y(low)), FILL);
            }
        }
    }
}

/// The names of the bars under them; some are left out where not all fit.
pub(super) fn draw_names(canvas: &mut Canvas, frame: &Frame, names: &[String], upwards: bool) {
    let slot = frame.width() / names.len().max(1) as f64;
    let widest = text::widest(names.iter().map(|n| &**n), SMALL);
    let needed = if upwards { SMALL_LINE - 3.0 } else { widest + 8.0 };
    for (i, name) in names.iter().enumerate().step_by(nice((needed / slot).ceil() as usize)) {
        let x = frame.left + (i as f64 + 0.5) * slot;
        if upwards {
            let style = Style { upwards, ..Style::new(SMALL, Anchor::End) };
            canvas.text((x + f64::from(SMALL) * 0.36, frame.bottom + 8.0), name, style);
        } else {
            frame.draw_x_label(canvas, x, name);
        }
    }
}
