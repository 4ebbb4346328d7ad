//! From pen paths to gray bytes.

use super::SIDE;

/// A point of a pen path in pixels, with the width and darkness of the line there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dot {
    pub x: f32,
    pub y: f32,
    /// Half the width of the line.
    pub radius: f32,
    /// Darkness of the ink, in 0..=1.
    pub ink: f32,
}

/// The ink of one image before it becomes bytes: a number in 0..=1 per pixel.
pub(super) struct Canvas {
    ink: [f32; SIDE * SIDE],
    /// Distance over which an edge fades from full to no ink.
    edge: f32,
}

impl Canvas {
    /// A blank canvas on which edges fade over `edge` pixels.
    pub fn new(edge: f32) -> Self {
        Self { ink: [0.0; SIDE * SIDE], edge }
    }

    /// The distance that ink reaches from the middle of a line of the given radius.
    pub fn reach(radius: f32, edge: f32) -> f32 {
        radius + 0.5 * edge
    }

    /// Draws the line from `a` to `b`. Its width and ink change linearly from one end to the other.
    ///
    /// A pixel whose center is at distance δ from the nearest point of the line gets clamp(½ + (radius −
    /// δ)/edge, 0, 1)·ink, unless it has more already: the ink of crossing lines is not summed.
    pub fn line(&mut self, a: Dot, b: Dot) {
        let (dx, dy) = (b.x - a.x, b.y - a.y);
        let length2 = dx * dx + dy * dy;
        let inverse = if length2 > 0.0 { 1.0 / length2 } else { 0.0 };
        let reach = Self::reach(a.radius.max(b.radius), self.edge);
        let steepness = 1.0 / self.edge;
        let columns = pixels(a.x.min(b.x) - reach, a.x.max(b.x) + reach);
        for row in pixels(a.y.min(b.y) - reach, a.y.max(b.y) + reach) {
            let py = row as f32 + 0.5 - a.y;
            let row = &mut self.ink[row * SIDE..(row + 1) * SIDE];
            // No number depends on another, so that the compiler vectorizes the loop.
            for (pixel, center) in row[columns.clone()].iter_mut().zip(&CENTERS[columns.clone()]) {
                let px = center - a.x;
                let t = ((px * dx + py * dy) * inverse).clamp(0.0, 1.0);
                let (ox, oy) = (px - t * dx, py - t * dy);
                let distance = (ox * ox + oy * oy).sqrt();
                let radius = a.radius + t * (b.radius - a.radius);
                let cover = (0.5 + (radius - distance) * steepness).clamp(0.0, 1.0);
                let ink = cover * (a.ink + t * (b.ink - a.ink));
                *pixel = pixel.max(ink);
            }
        }
    }

    /// The image as bytes, each inked pixel passed through `grain` first.
    pub fn write(&self, image: &mut [u8], mut grain: impl FnMut(f32) -> f32) {
        for (byte, &ink) in image.iter_mut().zip(&self.ink) {
            *byte = if ink > 0.0 { (255.0 * grain(ink) + 0.5) as u8 } else { 0 };
        }
    }
}

/// The centers of the pixels of a row.
const CENTERS: [f32; SIDE] = {
    let mut centers = [0.5; SIDE];
    let mut i = 1;
    while i < SIDE {
        centers[i] = i as f32 + 0.5;
        i += 1;
    }
    centers
};

/// The pixels whose centers can lie between two coordinates.
fn pixels(low: f32, high: f32) -> std::ops::Range<usize> {
    // Conversion to integers saturates, so a negative coordinate gives pixel 0.
    let end = ((high + 0.5) as usize).min(SIDE);
    ((low - 0.5) as usize).min(end)..end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ink of a line by brute force: the best of ten thousand discs along it, on every pixel.
    fn discs(a: Dot, b: Dot, edge: f64, row: usize, column: usize) -> f64 {
        let mix = |from: f32, to: f32, t: f64| f64::from(from) * (1.0 - t) + f64::from(to) * t;
        let nearest = (0..=10_000)
            .map(|i| f64::from(i) / 10_000.0)
            .map(|t| {
                let (x, y) = (column as f64 + 0.5 - mix(a.x, b.x, t), row as f64 + 0.5 - mix(a.y, b.y, t));
                (x.hypot(y), t)
            })
            .min_by(|p, q| p.0.total_cmp(&q.0))
            .expect("there are points");
        let cover = 0.5 + (mix(a.radius, b.radius, nearest.1) - nearest.0) / edge;
        cover.clamp(0.0, 1.0) * mix(a.ink, b.ink, nearest.1)
    }

    #[test]
    fn lines_carry_the_ink_of_discs_along_them_on_every_pixel() {
        let dot = |x, y, radius, ink| Dot { x, y, radius, ink };
        let lines = [
            (dot(5.2, 6.1, 1.5, 1.0), dot(20.3, 17.9, 1.5, 0.6)),
            (dot(14.0, 3.0, 2.0, 0.9), dot(14.0, 24.5, 1.0, 0.9)),
            (dot(9.7, 9.7, 1.2, 0.8), dot(9.7, 9.7, 1.2, 0.8)),
            (dot(0.3, 27.5, 2.5, 1.0), dot(3.0, 27.9, 2.5, 1.0)),
        ];
        for edge in [0.9_f32, 1.4] {
            let mut canvas = Canvas::new(edge);
            for (a, b) in lines {
                canvas.line(a, b);
            }
            for (i, &ink) in canvas.ink.iter().enumerate() {
                let max = lines.iter().map(|&(a, b)| discs(a, b, f64::from(edge), i / SIDE, i % SIDE));
                let max = max.fold(0.0, f64::max);
                assert!((f64::from(ink) - max).abs() < 2e-3, "pixel {i}: {ink} is not {max}");
            }
        }
    }

    #[test]
    fn bytes_are_rounded_ink_and_grain_does_not_change_blank_pixels() {
        let mut canvas = Canvas::new(1.0);
        (canvas.ink[0], canvas.ink[1], canvas.ink[3]) = (1.0, 0.5, 0.001);
        let mut image = [7; SIDE * SIDE];
        let mut grains = 0;
        canvas.write(&mut image, |ink| {
            grains += 1;
            ink
        });
        assert_eq!((&image[..4], grains), (&[255, 128, 0, 0][..], 3));
        assert!(image[4..].iter().all(|&byte| byte == 0));
    }
}
