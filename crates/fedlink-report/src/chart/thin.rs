//! Thinning of long series.

/// The most points of one series.
pub const MAX_POINTS: usize = 800;

/// The rows of a table that a chart shows: all of them, or about [`MAX_POINTS`] of more. Every stretch of
/// rows keeps its first and its last one and, of each column, the lowest, the highest and the first
/// missing value, so that no peak and no gap is lost.
pub fn kept_rows(rows: usize, columns: &[&dyn Fn(usize) -> f64]) -> Vec<usize> {
    if rows <= MAX_POINTS {
        return (0..rows).collect();
    }
    let stretches = MAX_POINTS / (2 + 3 * columns.len());
    let mut kept = Vec::with_capacity(MAX_POINTS);
    for i in 0..stretches {
        let (first, end) = (i * rows / stretches, (i + 1) * rows / stretches);
        kept.extend([first, end - 1]);
        for value in columns {
            let by_value = |a: &usize, b: &usize| value(*a).total_cmp(&value(*b));
            let known = || (first..end).filter(|&row| value(row).is_finite());
            kept.extend(known().min_by(by_value));
            kept.extend(known().max_by(by_value));
            kept.extend((first..end).find(|&row| !value(row).is_finite()));
        }
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// The nearest number of seven significant decimal digits, finer than the resolution of any screen.
pub fn seven_digits(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_short_series_keeps_all_points() {
        assert_eq!(kept_rows(MAX_POINTS, &[&|row| row as f64]), (0..MAX_POINTS).collect::<Vec<_>>());
        assert!(kept_rows(0, &[&|_| 0.0]).is_empty());
    }

    proptest! {
        #[test]
        fn ends_peaks_and_gaps_of_every_column_survive(
            rows in MAX_POINTS + 1..20_000, peak in any::<prop::sample::Index>(),
            dip in any::<prop::sample::Index>(), gap in any::<prop::sample::Index>(),
        ) {
            let (peak, dip, gap) = (peak.index(rows), dip.index(rows), gap.index(rows));
            let one = |row: usize| if row == peak { 9.0 } else { (row % 7) as f64 };
            let other = |row: usize| if row == gap { f64::NAN } else if row == dip { -9.0 } else { 0.0 };
            let kept = kept_rows(rows, &[&one, &other]);
            prop_assert!(kept.len() <= MAX_POINTS && kept.windows(2).all(|pair| pair[0] < pair[1]));
            for row in [0, rows - 1, peak, gap] {
                prop_assert!(kept.contains(&row), "{}", row);
            }
            prop_assert!(dip == gap || kept.contains(&dip));
        }
    }
}
