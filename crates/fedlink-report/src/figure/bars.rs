//! Draws bars, whole or made of parts.

use super::canvas::{Canvas, INK};
use super::frame::{EDGE, Frame, Names, Room, Texts, WIDTH, y_ticks};
use super::legend::{Legend, Sample, draw_line};
use crate::chart::{Bars, Entry, Look};

const PLOT: f64 = 340.0;
/// The longest name, in pixels.
const LONGEST_NAME: f64 = 150.0;

impl Bars {
    pub(super) fn draw(&self) -> Canvas {
        let reference = self.reference.as_ref().map(|(label, value)| {
            (Entry { label: label.clone(), look: Look::REFERENCE, ..Entry::default() }, *value)
        });
        let legend = match &reference {
            Some((entry, _)) => Legend::new(std::slice::from_ref(entry), Sample::Line),
            None => Legend::new(&self.key, Sample::Area),
        };
        let (ticks, left) = y_ticks(&self.y, PLOT);
        let names: Vec<String> = self.bars.iter().map(|bar| bar.name.clone()).collect();
        let names = Names::new(&names, LONGEST_NAME, WIDTH - left - 2.0 * EDGE - 60.0);
        let (title, x_label, y_label) = (&self.title, &self.x_label, &self.y.label);
        let texts = Texts { title, subtitle: "", x_label, y_label };
        let above = legend.height_across();
        let room = Room { plot: PLOT, above, below: names.height(), foot: 0.0, left, right: 0.0 };
        let (mut canvas, frame) = Frame::open(texts, &room);

        frame.draw_y_ticks(&mut canvas, &self.y, &ticks, true);
        let slot = frame.width() / self.bars.len().max(1) as f64;
        let free = (slot * 0.14).max((slot - 90.0) / 2.0);
        for (i, bar) in self.bars.iter().enumerate() {
            let left = frame.left + i as f64 * slot;
            for span in &bar.spans {
                if let (Some(low), Some(high)) = (self.y.share(span.low), self.y.share(span.high))
                    && high > low
                {
                    let color = Look::new(span.color, 0, 0).rgb();
                    canvas.rect((left + free, frame.y(high)), (left + slot - free, frame.y(low)), color);
                }
            }
        }
        let zero = frame.y(self.y.share(0.0).unwrap_or(0.0));
        canvas.rule((frame.left, frame.top), (frame.left, frame.bottom), INK);
        canvas.rule((frame.left, zero), (frame.right, zero), INK);
        if self.bars.iter().all(|bar| bar.spans.is_empty()) {
            frame.draw_no_data(&mut canvas);
        }
        if let Some(share) = reference.and_then(|(_, value)| self.y.share(value)) {
            let y = frame.y(share);
            draw_line(&mut canvas, Look::REFERENCE, &[(frame.left, y), (frame.right, y)]);
        }
        legend.draw_across(&mut canvas, (frame.left, frame.above));
        names.draw(&mut canvas, &frame);
        canvas
    }
}
