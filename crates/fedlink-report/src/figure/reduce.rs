//! Leaving out the points of a line that cannot be seen.

use super::canvas::Pixel;

/// How far, in pixels, the drawn line may pass from a point that was left out.
const TOLERANCE: f64 = 0.3;

/// The line without the points that do not change its image: of those in one column of pixels, the first,
/// lowest, highest and last stay; of the rest, those that lie within [`TOLERANCE`] of the line through their
/// neighbors go (Douglas and Peucker). The number of points left is bounded by the length of the line, the
/// time by that of the input.
pub fn reduce(points: impl IntoIterator<Item = Pixel>) -> Vec<Pixel> {
    let columns = by_column(points);
    let Some(last) = columns.len().checked_sub(1) else { return columns };
    let mut kept = vec![false; columns.len()];
    kept[0] = true;
    kept[last] = true;
    let mut spans = vec![(0, last)];
    while let Some((a, b)) = spans.pop() {
        let far = (a + 1..b).map(|i| (distance(columns[i], columns[a], columns[b]), i));
        if let Some((d, i)) = far.max_by(|l, r| l.0.total_cmp(&r.0))
            && d > TOLERANCE
        {
            kept[i] = true;
            spans.push((a, i));
            spans.push((i, b));
        }
    }
    columns.into_iter().zip(kept).filter_map(|(p, k)| k.then_some(p)).collect()
}

/// Keeps the first, lowest, highest and last of consecutive points in one column of pixels, in their order.
fn by_column(points: impl IntoIterator<Item = Pixel>) -> Vec<Pixel> {
    let mut out = Vec::new();
    let mut column: Vec<Pixel> = Vec::new();
    for p in points {
        if column.first().is_some_and(|f| f.0.floor() != p.0.floor()) {
            out.append(&mut column);
        }
        column.push(p);
        // Of five points, an inner one that is neither the lowest nor the highest adds no ink.
        if column.len() == 5 {
            let by_height = |&a: &usize, &b: &usize| column[a].1.total_cmp(&column[b].1);
            let (low, high) = ((0..5).min_by(by_height), (0..5).max_by(by_height));
            let spare = (1..4).find(|&i| Some(i) != low && Some(i) != high).unwrap_or(2);
            column.remove(spare);
        }
    }
    out.append(&mut column);
    out
}

/// Distance of `p` from the segment between `a` and `b`.
fn distance(p: Pixel, a: Pixel, b: Pixel) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (px, py) = (p.0 - a.0, p.1 - a.1);
    let square = dx * dx + dy * dy;
    let along = if square == 0.0 { 0.0 } else { ((px * dx + py * dy) / square).clamp(0.0, 1.0) };
    libm::hypot(px - along * dx, py - along * dy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_straight_line_needs_its_ends_only() {
        let line = (0..1000).map(|i| (f64::from(i) * 0.6, f64::from(i) * 0.2));
        assert_eq!(reduce(line), [(0.0, 0.0), (999.0 * 0.6, 999.0 * 0.2)]);
        assert_eq!(reduce([]), []);
        assert_eq!(reduce([(1.0, 2.0)]), [(1.0, 2.0)]);
    }

    #[test]
    fn a_million_noisy_points_leave_four_per_column() {
        let noise =
            (0..1_000_000u64).map(|i| (i as f64 * 6e-4, (i.wrapping_mul(2_654_435_761) % 400) as f64));
        assert!(reduce(noise).len() <= 4 * 600);
    }

    proptest! {
        #[test]
        fn no_point_left_out_lies_far_from_the_line(ys in proptest::collection::vec(0.0..100.0f64, 1..80)) {
            let points: Vec<Pixel> = ys.iter().enumerate().map(|(i, &y)| (i as f64 * 1.5, y)).collect();
            let kept = reduce(points.iter().copied());
            for &p in &points {
                let near = kept.windows(2).map(|w| distance(p, w[0], w[1])).fold(f64::INFINITY, f64::min);
                prop_assert!(kept.len() < 2 || near <= TOLERANCE, "{p:?} is {near} away");
            }
        }

        #[test]
        fn peaks_inside_a_column_survive(ys in proptest::collection::vec(0.0..100.0f64, 1..200)) {
            let points: Vec<Pixel> = ys.iter().enumerate().map(|(i, &y)| (i as f64 * 0.05, y)).collect();
            let top = |p: &[Pixel]| p.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
            prop_assert!((top(&points) - top(&reduce(points.iter().copied()))).abs() <= TOLERANCE);
        }
    }
}
