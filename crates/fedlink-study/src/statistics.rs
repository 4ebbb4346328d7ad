//! Means with 95 % intervals, and summaries of curves.

pub use fedlink_theory::statistics::{Estimate, Moments, estimate, estimate_at, p_of_mean};

/// The area under a curve through (x, y) by the trapezoidal rule, divided by the width: the mean height. A
/// curve of one point has that point's height; none if there is no point.
pub fn mean_height(points: &[(f64, f64)]) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    if last.0 <= first.0 {
        return Some(first.1);
    }
    let area: f64 = points.windows(2).map(|p| (p[1].0 - p[0].0) * 0.5 * (p[0].1 + p[1].1)).sum();
    Some(area / (last.0 - first.0))
}

/// The instability of a curve: the mean absolute change from one value to the next over its last third. None
/// if the last third has fewer than two values.
pub fn instability(values: &[f64]) -> Option<f64> {
    let last_third = &values[values.len() - values.len().div_ceil(3)..];
    let changes = last_third.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    (last_third.len() > 1).then(|| changes.sum::<f64>() / (last_third.len() - 1) as f64)
}

/// Jain's index of how evenly something is shared, (Σx)²/(n·Σx²): 1 if all have the same, 1/n if one has all;
/// not a number if all are zero.
pub fn evenness(values: &[f64]) -> f64 {
    fedlink::learn::fairness::jain(values.iter().copied()).unwrap_or(f64::NAN)
}

/// The median of ascending values, of an even number the mean of the two in the middle; not a number of none.
pub fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_height_is_the_area_over_the_width() {
        // A ramp from 0 to 1 over two units and a plateau over two more: (1 + 2)/4.
        assert_eq!(mean_height(&[(0.0, 0.0), (2.0, 1.0), (4.0, 1.0)]), Some(0.75));
        assert_eq!(mean_height(&[(3.0, 0.4)]), Some(0.4));
        assert_eq!(mean_height(&[]), None);
    }

    #[test]
    fn evenness_is_one_for_equal_shares_and_one_over_m_for_a_single_device() {
        assert_eq!(evenness(&[0.25; 4]), 1.0);
        assert_eq!(evenness(&[0.0, 1.0, 0.0, 0.0]), 0.25);
        assert!(evenness(&[]).is_nan() && evenness(&[0.0; 3]).is_nan());
        assert_eq!((median(&[1.0, 2.0, 9.0]), median(&[1.0, 2.0, 4.0, 9.0])), (2.0, 3.0));
    }

    #[test]
    fn instability_is_that_of_the_last_third_only() {
        assert_eq!(instability(&[0.0, 9.0, 0.0, 9.0, 1.0, 1.0, 2.0, 0.0, 1.0]), Some(1.5));
        assert_eq!(instability(&[0.0, 1.0, 2.0]), None);
        assert_eq!(instability(&[]), None);
    }
}
