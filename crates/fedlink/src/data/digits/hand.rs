//! The random writer: everything random about one image, from the chosen form to dots in pixels.

use super::SIDE;
use super::render::{Canvas, Dot};
use super::skeletons::{FORMS, Form, Stroke};
use crate::base::rng::Stream;

/// The smallest distance of ink from the edge of the image, in pixels.
pub(super) const MARGIN: f32 = 1.0;
/// Straight pieces per span between two knots.
const PIECES: usize = 6;
/// Control points of the warp along each axis.
const LATTICE: usize = 5;

/// The variation between images of one digit.
///
/// Plain numbers are standard deviations, pairs are the ends of uniform ranges. Lengths are in units of
/// the skeletons' square unless the name has pixels. The values make the data set about as hard as MNIST,
/// with its density and brightness.
mod spread {
    /// Of every knot, along each axis.
    pub const KNOT: f32 = 0.038;
    /// Of every control point of the warp, along each axis; the B-spline's averaging at most halves it.
    pub const WARP: f32 = 0.18;
    /// Mean of the horizontal shift per unit of height: most people lean to the right.
    pub const SLANT_MEAN: f32 = 0.12;
    pub const SLANT: f32 = 0.18;
    /// In radians.
    pub const ROTATION: f64 = 0.12;
    /// Of the logarithm of width over height.
    pub const ASPECT: f64 = 0.12;
    /// Of the center of mass along each axis.
    pub const SHIFT_PIXELS: f32 = 0.55;
    /// Longer side of the box that holds the ink.
    pub const SIZE_PIXELS: (f64, f64) = (19.5, 21.5);
    /// Half the width of the line.
    pub const RADIUS_PIXELS: (f64, f64) = (0.9, 1.85);
    /// Width of the soft edge of a line.
    pub const EDGE_PIXELS: (f64, f64) = (0.9, 1.4);
    /// Ink before it saturates at 1.
    pub const INK: (f64, f64) = (0.9, 1.25);
    /// The part of a pixel's ink that grain may remove.
    pub const GRAIN: (f64, f64) = (0.0, 0.15);
    /// Largest part of its first and last span that a stroke may lack.
    pub const TRIM: f32 = 0.3;
    /// Of the width of the line along a stroke, relative to the width.
    pub const PRESSURE: f32 = 0.16;
    /// The rounding of corners at full haste; 1 would make a corner a curve.
    pub const ROUNDING: f32 = 0.7;
}

/// Draws `digit` into `image`.
pub(super) fn draw(digit: usize, random: &mut Stream, image: &mut [u8]) {
    let form = choose(FORMS[digit], random);
    let hand = Hand::new(random);
    let mut paths: Vec<Vec<Dot>> = form.strokes.iter().map(|stroke| hand.trace(stroke, random)).collect();
    let edge = within(spread::EDGE_PIXELS, random);
    position(&mut paths, edge, random);
    let mut canvas = Canvas::new(edge);
    for path in &paths {
        path.windows(2).for_each(|ends| canvas.line(ends[0], ends[1]));
    }
    let grain = within(spread::GRAIN, random);
    canvas.write(image, |ink| ink * (1.0 - grain * random.uniform() as f32));
}

/// A form drawn according to the forms' shares.
fn choose(forms: &'static [Form], random: &mut Stream) -> &'static Form {
    let mut ticket = random.below(forms.iter().map(|form| form.share).sum());
    for form in forms {
        if ticket < form.share {
            return form;
        }
        ticket -= form.share;
    }
    unreachable!("a ticket is below the sum of the shares")
}

/// A uniform number between the ends of a range.
fn within((low, high): (f64, f64), random: &mut Stream) -> f32 {
    random.between(low, high) as f32
}

/// A bell-shaped number of mean 0 and variance 1 within [−3, 3]: the scaled sum of three uniforms. It is
/// bounded, so that no image is an illegible outlier, and needs sums and products only.
fn bell(random: &mut Stream) -> f32 {
    (2.0 * (random.uniform() + random.uniform() + random.uniform()) - 3.0) as f32
}

/// The random traits of one image, common to all its strokes.
struct Hand {
    /// Displacements on the lattice of control points that bends the plane (cubic B-spline).
    warp: [[(f32, f32); LATTICE]; LATTICE],
    /// Slant, stretch and rotation as one matrix, row by row.
    matrix: [f32; 4],
    /// 0: corners stay sharp; 1: they are rounded as far as allowed.
    haste: f32,
    /// Half the width of the line at mean pressure, in pixels.
    radius: f32,
    /// Darkness of the ink at mean pressure.
    ink: f32,
}

impl Hand {
    fn new(random: &mut Stream) -> Self {
        let mut warp = [[(0.0, 0.0); LATTICE]; LATTICE];
        for point in warp.as_flattened_mut() {
            *point = (spread::WARP * bell(random), spread::WARP * bell(random));
        }
        let slant = spread::SLANT_MEAN + spread::SLANT * bell(random);
        let stretch = libm::exp(spread::ASPECT * f64::from(bell(random))) as f32;
        let angle = spread::ROTATION * f64::from(bell(random));
        let (sin, cos) = (libm::sin(angle) as f32, libm::cos(angle) as f32);
        // Rotation · diag(stretch, 1) · [1 −slant; 0 1]: y points down, so leaning right is a negative shear.
        let matrix =
            [cos * stretch, -cos * stretch * slant - sin, sin * stretch, cos - sin * stretch * slant];
        Self {
            warp,
            matrix,
            haste: random.uniform() as f32,
            radius: within(spread::RADIUS_PIXELS, random),
            ink: within(spread::INK, random),
        }
    }

    /// The path of a stroke: knots moved at random, joined by a curve, bent and turned.
    fn trace(&self, stroke: Stroke, random: &mut Stream) -> Vec<Dot> {
        let knots: Vec<(f32, f32)> = stroke
            .iter()
            .map(|knot| (knot.x + spread::KNOT * bell(random), knot.y + spread::KNOT * bell(random)))
            .collect();
        let last = knots.len() - 1;
        // The pen may start late and end early, by a part of the first and the last span.
        let late = spread::TRIM * random.uniform() as f32;
        let early = spread::TRIM * random.uniform() as f32;
        let mut pressure = bell(random);
        let mut path = Vec::with_capacity(last * PIECES + 1);
        for i in 0..last {
            let (p, q) = (knots[i], knots[i + 1]);
            let chord = (q.0 - p.0, q.1 - p.1);
            // Tangent at knot k: half the difference of its neighbors on a curve, along the chord at an
            // end, and between the two at a corner.
            let tangent = |k: usize| {
                if k == 0 || k == last {
                    return chord;
                }
                let (before, after) = (knots[k - 1], knots[k + 1]);
                let curve = (0.5 * (after.0 - before.0), 0.5 * (after.1 - before.1));
                let share = if stroke[k].corner { spread::ROUNDING * self.haste } else { 1.0 };
                (chord.0 + share * (curve.0 - chord.0), chord.1 + share * (curve.1 - chord.1))
            };
            let (m, n) = (tangent(i), tangent(i + 1));
            let from = if i == 0 { late } else { 0.0 };
            let to = if i + 1 == last { 1.0 - early } else { 1.0 };
            let next_pressure = 0.6 * pressure + 0.8 * bell(random);
            for piece in usize::from(i > 0)..=PIECES {
                let share = piece as f32 / PIECES as f32;
                let (x, y) = hermite(p, m, q, n, from + (to - from) * share);
                let (x, y) = self.bend(x, y);
                let push = spread::PRESSURE * (pressure + (next_pressure - pressure) * share);
                path.push(Dot {
                    x,
                    y,
                    radius: self.radius * (1.0 + push).max(0.5),
                    ink: (self.ink * (1.0 + 0.5 * push)).clamp(0.4, 1.0),
                });
            }
            pressure = next_pressure;
        }
        path
    }

    /// The image of a point of the unit square under the warp and then the matrix.
    fn bend(&self, x: f32, y: f32) -> (f32, f32) {
        let ((column, across), (row, down)) = (basis(x), basis(y));
        let (mut bx, mut by) = (x - 0.5, y - 0.5);
        for (line, v) in self.warp[row..].iter().zip(down) {
            for (shift, u) in line[column..].iter().zip(across) {
                bx += u * v * shift.0;
                by += u * v * shift.1;
            }
        }
        let [a, b, c, d] = self.matrix;
        (a * bx + b * by, c * bx + d * by)
    }
}

/// The first lattice point that affects coordinate `x`, and the weights of it and its three successors.
fn basis(x: f32) -> (usize, [f32; 4]) {
    const CELLS: usize = LATTICE - 3;
    let x = (x * CELLS as f32).clamp(0.0, CELLS as f32);
    let cell = (x as usize).min(CELLS - 1);
    let t = x - cell as f32;
    let s = 1.0 - t;
    let weights = [
        s * s * s / 6.0,
        (3.0 * t * t * t - 6.0 * t * t + 4.0) / 6.0,
        (3.0 * s * s * s - 6.0 * s * s + 4.0) / 6.0,
        t * t * t / 6.0,
    ];
    (cell, weights)
}

/// The cubic from `p` to `q` with tangents `m` and `n`, at `t`.
fn hermite(p: (f32, f32), m: (f32, f32), q: (f32, f32), n: (f32, f32), t: f32) -> (f32, f32) {
    let (t2, t3) = (t * t, t * t * t);
    let (a, b, c, d) = (2.0 * t3 - 3.0 * t2 + 1.0, t3 - 2.0 * t2 + t, 3.0 * t2 - 2.0 * t3, t3 - t2);
    (a * p.0 + b * m.0 + c * q.0 + d * n.0, a * p.1 + b * m.1 + c * q.1 + d * n.1)
}

/// Scales the paths so that the longer side of the ink's box has the drawn size, moves their center of
/// mass near the middle of the image, and keeps the ink `MARGIN` away from the edge.
fn position(paths: &mut [Vec<Dot>], edge: f32, random: &mut Stream) {
    let (mut low, mut high) = ((f32::MAX, f32::MAX), (f32::MIN, f32::MIN));
    let (mut mass, mut center) = (0.0, (0.0, 0.0));
    let mut reach = 0.0_f32;
    for path in &*paths {
        for dot in path {
            low = (low.0.min(dot.x), low.1.min(dot.y));
            high = (high.0.max(dot.x), high.1.max(dot.y));
            reach = reach.max(Canvas::reach(dot.radius, edge));
        }
        for ends in path.windows(2) {
            let (dx, dy) = (ends[1].x - ends[0].x, ends[1].y - ends[0].y);
            let length = (dx * dx + dy * dy).sqrt();
            mass += length;
            center.0 += 0.5 * length * (ends[0].x + ends[1].x);
            center.1 += 0.5 * length * (ends[0].y + ends[1].y);
        }
    }
    let size = within(spread::SIZE_PIXELS, random);
    let scale = (size - 2.0 * reach) / (high.0 - low.0).max(high.1 - low.1);
    let middle = 0.5 * SIDE as f32;
    let mut offset = |low: f32, high: f32, center: f32| {
        let wanted = middle + spread::SHIFT_PIXELS * bell(random) - scale * center / mass;
        // The ink is at most 21.5 of 26 pixels across, so the lower bound is below the upper one.
        wanted.clamp(MARGIN + reach - scale * low, SIDE as f32 - MARGIN - reach - scale * high)
    };
    let (x, y) = (offset(low.0, high.0, center.0), offset(low.1, high.1, center.1));
    for dot in paths.iter_mut().flatten() {
        (dot.x, dot.y) = (scale * dot.x + x, scale * dot.y + y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::{Purpose, stream};

    fn hand(random: &mut Stream) -> Hand {
        Hand { warp: [[(0.0, 0.0); LATTICE]; LATTICE], ..Hand::new(random) }
    }

    #[test]
    fn bell_shaped_numbers_have_mean_zero_variance_one_and_stay_within_three() {
        let mut random = stream(1, Purpose::Test, 0, 0);
        let draws: Vec<f64> = (0..100_000).map(|_| f64::from(bell(&mut random))).collect();
        assert!(draws.iter().all(|x| x.abs() <= 3.0));
        let mean = |power| draws.iter().map(|x: &f64| x.powi(power)).sum::<f64>() / draws.len() as f64;
        // Five standard errors; the fourth moment of three summed uniforms of variance 1/3 is 2.6.
        assert!(mean(1).abs() < 5.0 * 100_000_f64.powf(-0.5));
        assert!((mean(2) - 1.0).abs() < 5.0 * (1.6_f64 / 100_000.0).sqrt());
    }

    #[test]
    fn forms_are_chosen_according_to_their_shares() {
        let mut random = stream(2, Purpose::Test, 0, 0);
        for forms in FORMS {
            let total: u64 = forms.iter().map(|form| form.share).sum();
            let mut counts = vec![0_u32; forms.len()];
            for _ in 0..10_000 {
                let chosen = choose(forms, &mut random);
                counts[forms.iter().position(|form| std::ptr::eq(form, chosen)).expect("one of them")] += 1;
            }
            for (form, count) in forms.iter().zip(counts) {
                let p = form.share as f64 / total as f64;
                let slack = 5.0 * (10_000.0 * p * (1.0 - p)).sqrt();
                assert!((f64::from(count) - 10_000.0 * p).abs() < slack, "{count} of 10 000 at share {p}");
            }
        }
    }

    #[test]
    fn a_lattice_displaced_linearly_displaces_every_point_linearly() {
        // Cubic B-splines reproduce linear functions; the position of lattice point i is (i − 1)/2.
        for i in 0..=100_u8 {
            let x = f32::from(i) / 100.0;
            let (first, weights) = basis(x);
            assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-6);
            let at: f32 = (first..).zip(weights).map(|(k, w)| w * 0.5 * (k as f32 - 1.0)).sum();
            assert!((at - x).abs() < 1e-6, "{at} is not {x}");
        }
    }

    #[test]
    fn a_point_is_slanted_then_stretched_then_rotated() {
        let mut random = stream(3, Purpose::Test, 0, 0);
        for _ in 0..50 {
            let [a, b, c, d] = hand(&mut random).matrix.map(f64::from);
            // QR by hand: the first column is stretch·(cos, sin); the second has −stretch·slant along it
            // and exactly 1 across it.
            let stretch = a.hypot(c);
            let (cos, sin) = (a / stretch, c / stretch);
            let slant = -(cos * b + sin * d) / stretch;
            assert!((cos * d - sin * b - 1.0).abs() < 1e-6);
            assert!((slant - f64::from(spread::SLANT_MEAN)).abs() <= 3.0 * f64::from(spread::SLANT) + 1e-6);
            assert!(stretch.ln().abs() <= 3.0 * spread::ASPECT + 1e-6);
            assert!(sin.atan2(cos).abs() <= 3.0 * spread::ROTATION + 1e-6);
        }
    }

    #[test]
    fn curves_start_and_end_at_their_knots_and_follow_their_tangents() {
        let (p, m, q, n) = ((0.1, 0.2), (0.5, -0.3), (0.8, 0.9), (-0.4, 0.6));
        assert_eq!(hermite(p, m, q, n, 0.0), p);
        assert_eq!(hermite(p, m, q, n, 1.0), q);
        let (h, start, end) = (1e-3, hermite(p, m, q, n, 1e-3), hermite(p, m, q, n, 1.0 - 1e-3));
        assert!(((start.0 - p.0) / h - m.0).abs() < 1e-2 && ((start.1 - p.1) / h - m.1).abs() < 1e-2);
        assert!(((q.0 - end.0) / h - n.0).abs() < 1e-2 && ((q.1 - end.1) / h - n.1).abs() < 1e-2);
    }

    #[test]
    fn ink_stays_within_the_margin_and_fills_the_drawn_size() {
        let mut random = stream(4, Purpose::Test, 0, 0);
        for forms in FORMS {
            for form in forms.iter().cycle().take(200) {
                let hand = Hand::new(&mut random);
                let mut paths: Vec<_> = form.strokes.iter().map(|s| hand.trace(s, &mut random)).collect();
                let edge = within(spread::EDGE_PIXELS, &mut random);
                position(&mut paths, edge, &mut random);
                let dots = || paths.iter().flatten();
                let reach = dots().map(|dot| Canvas::reach(dot.radius, edge)).fold(0.0, f32::max);
                let ends = |of: fn(&Dot) -> f32| {
                    let low = dots().map(of).fold(f32::MAX, f32::min) - reach;
                    (low, dots().map(of).fold(f32::MIN, f32::max) + reach)
                };
                let (x, y) = (ends(|dot| dot.x), ends(|dot| dot.y));
                for (low, high) in [x, y] {
                    assert!(low >= MARGIN - 1e-4 && high <= SIDE as f32 - MARGIN + 1e-4, "{low}..{high}");
                }
                let size = f64::from((x.1 - x.0).max(y.1 - y.0));
                assert!(size > spread::SIZE_PIXELS.0 - 1e-3 && size < spread::SIZE_PIXELS.1 + 1e-3, "{size}");
            }
        }
    }
}
