//! Draws a cell from above.

use super::canvas::{ABSENT, Anchor, Canvas, GRID, INK, Pixel, Style, WHITE};
use super::frame::{EDGE, Frame, Room, SMALL, Texts};
use super::heat_map::ColorBar;
use super::text;
use crate::chart::{CellMap, Dot, drawable, shade};

/// Height of the plot area.
const PLOT: f64 = 460.0;
/// Height of the key under the map.
const KEY: f64 = 34.0;
/// Radius of the largest device, and of a device that was never scheduled.
const LARGEST: f64 = 11.0;
const SMALLEST: f64 = 3.0;
/// Radius of every device without a share of rounds.
const PLAIN: f64 = 6.0;
/// Half the height of the server's triangle.
const SERVER: f64 = 8.0;

/// The projection from meters to pixels.
struct Projection {
    middle: Pixel,
    pixels_per_m: f64,
}

impl Projection {
    fn at(&self, (east, north): (f64, f64)) -> Pixel {
        (self.middle.0 + east * self.pixels_per_m, self.middle.1 - north * self.pixels_per_m)
    }
}

impl CellMap {
    pub(super) fn draw(&self) -> Canvas {
        let bar = ColorBar::new(&self.scale);
        let texts = Texts { title: &self.title, subtitle: &self.subtitle, x_label: "", y_label: "" };
        let room = Room { plot: PLOT, above: 0.0, below: 0.0, foot: KEY, left: 0.0, right: bar.width() };
        let (mut canvas, frame) = Frame::open(texts, &room);

        let reach = |part: fn(&Dot) -> f64| self.dots.iter().map(part).fold(0.0, f64::max);
        let (east, north) = (reach(|dot| dot.east_m.abs()), reach(|dot| dot.north_m.abs()));
        if self.dots.is_empty() {
            frame.draw_no_data(&mut canvas);
            return canvas;
        }
        let half = (frame.width() / 2.0 - LARGEST - 4.0, PLOT / 2.0 - LARGEST - 4.0);
        let tight = (half.0 / east.max(1e-3)).min(half.1 / north.max(1e-3));
        let map = Projection { middle: (frame.x(0.5), frame.y(0.5)), pixels_per_m: tight };

        let step_m = round_length(80.0 / map.pixels_per_m);
        self.draw_rings(&mut canvas, &map, step_m);
        self.draw_devices(&mut canvas, &map);
        draw_server(&mut canvas, map.middle);
        bar.draw(&mut canvas, &frame);
        self.draw_key(&mut canvas, &frame, (step_m, step_m * map.pixels_per_m));
        canvas
    }

    /// Circles around the server at the multiples of a distance that fit the page.
    fn draw_rings(&self, canvas: &mut Canvas, map: &Projection, step_m: f64) {
        let farthest = self.dots.iter().map(|dot| libm::hypot(dot.east_m, dot.north_m)).fold(0.0, f64::max);
        for i in 1..=8 {
            let radius = f64::from(i) * step_m;
            if radius * map.pixels_per_m > PLOT / 2.0 || radius > farthest + step_m {
                break;
            }
            let corner = |i: i32| {
                let angle = f64::from(i) * core::f64::consts::TAU / 96.0;
                map.at((radius * libm::cos(angle), radius * libm::sin(angle)))
            };
            let circle: Vec<Pixel> = (0..=96).map(corner).collect();
            canvas.polyline(&circle, GRID, 1.0, &[]);
        }
    }

    fn draw_devices(&self, canvas: &mut Canvas, map: &Projection) {
        let largest = self.largest_share();
        let radius = |dot: &Dot| dot.scheduled.map_or(PLAIN, |share| radius(share, largest));
        let mut order: Vec<&Dot> = self.dots.iter().collect();
        // Small devices are drawn over large ones, so that all are visible.
        order.sort_by(|a, b| radius(b).total_cmp(&radius(a)));
        for dot in order {
            let color = dot.gain_db.and_then(|gain| self.scale.share(gain)).map_or(ABSENT, shade);
            canvas.disc(map.at((dot.east_m, dot.north_m)), radius(dot), color, INK);
        }
    }

    fn largest_share(&self) -> f64 {
        self.dots.iter().filter_map(|dot| dot.scheduled).fold(0.0, f64::max).min(1.0)
    }

    /// The meaning of the triangle, the rings and the sizes, and the scale.
    fn draw_key(&self, canvas: &mut Canvas, frame: &Frame, (step_m, pixels): (f64, f64)) {
        let y = frame.foot + KEY / 2.0;
        let baseline = y + f64::from(SMALL) * 0.36;
        let style = Style::new(SMALL, Anchor::Start);
        let mut x = frame.left;
        let label = |canvas: &mut Canvas, x: f64, label: &str| {
            canvas.text((x, baseline), label, style);
            x + text::width(label, SMALL, false) + 26.0
        };
        canvas.polyline(&[(x, y - 4.0), (x, y + 4.0)], INK, 1.5, &[]);
        canvas.polyline(&[(x, y), (x + pixels, y)], INK, 1.5, &[]);
        canvas.polyline(&[(x + pixels, y - 4.0), (x + pixels, y + 4.0)], INK, 1.5, &[]);
        x = label(canvas, x + pixels + 8.0, &format!("{}, ring to ring", length(step_m)));
        draw_server(canvas, (x + SERVER, y));
        x = label(canvas, x + 2.0 * SERVER + 6.0, "server");
        let largest = self.largest_share();
        if largest > 0.0 {
            for share in [largest / 10.0, largest] {
                let r = radius(share, largest);
                canvas.disc((x + r, y), r, WHITE, INK);
                x = label(canvas, x + 2.0 * r + 6.0, &percent(share)) - 10.0;
            }
            let room = frame.right.max(x + 10.0) + EDGE - x;
            label(canvas, x - 8.0, &text::shorten("of the rounds", SMALL, false, room));
        }
    }
}

/// The radius of a device that was scheduled in a share of rounds: its area is proportional to the share.
fn radius(share: f64, largest: f64) -> f64 {
    let relative = if largest > 0.0 && drawable(share) { (share / largest).clamp(0.0, 1.0) } else { 0.0 };
    (LARGEST * libm::sqrt(relative)).max(SMALLEST)
}

fn draw_server(canvas: &mut Canvas, (x, y): Pixel) {
    let corners = [(x, y - SERVER), (x + SERVER, y + 0.75 * SERVER), (x - SERVER, y + 0.75 * SERVER)];
    canvas.polygon(&[corners[0], corners[1], corners[2], corners[0]], INK, 1.0, Some((1.5, WHITE)));
}

/// The largest of 1, 2 and 5 times a power of ten that is at most `length`, or the nearest one above 0.
fn round_length(length: f64) -> f64 {
    let length = length.clamp(1e-9, 1e101);
    let decade = libm::pow(10.0, libm::log10(length).floor());
    [5.0, 2.0].into_iter().find(|m| m * decade <= length).unwrap_or(1.0) * decade
}

/// A length in meters or kilometers, in text.
fn length(m: f64) -> String {
    let short = |v: f64| format!("{}", (v * 1e3).round() / 1e3);
    match m {
        m if m >= 1e9 => format!("{m:.0e} m"),
        m if m >= 1e3 => format!("{} km", short(m / 1e3)),
        m if m >= 1e-3 => format!("{} m", short(m)),
        m => format!("{m:.0e} m"),
    }
}

/// A share with two digits.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent >= 10.0 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_bar_has_a_round_length() {
        assert_eq!([7.9, 3.0, 1.9, 0.7].map(round_length), [5.0, 2.0, 1.0, 0.5]);
        assert_eq!(["200 m", "5 km", "0.5 m"], [200.0, 5000.0, 0.5].map(length));
    }

    #[test]
    fn the_area_of_a_device_grows_with_its_share() {
        assert_eq!(radius(0.4, 0.4), LARGEST);
        assert!((radius(0.2, 0.4).powi(2) * 2.0 - LARGEST * LARGEST).abs() < 1e-9);
        assert_eq!(radius(0.0, 0.4), SMALLEST);
        assert_eq!(radius(0.0, 0.0), SMALLEST);
    }
}
