//! Statistics of the evenness of a distribution.

/// The mean of the lowest tenth, rounded up to whole devices; sorts `values`.
pub(super) fn worst_tenth(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let worst = &values[..values.len().div_ceil(10)];
    worst.iter().sum::<f64>() / worst.len() as f64
}

/// The standard deviation of all `values`, with their number as divisor.
pub(super) fn deviation(values: &mut [f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (squares / values.len() as f64).sqrt()
}

/// The Gini coefficient; 0 if all values are 0. Sorts `values`.
pub(super) fn gini(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let (count, sum) = (values.len() as f64, values.iter().sum::<f64>());
    let ranked: f64 =
        values.iter().enumerate().map(|(i, value)| (2.0 * i as f64 + 1.0 - count) * value).sum();
    if sum > 0.0 { ranked / (count * sum) } else { 0.0 }
}

/// Jain's index, (Σx)²/(n·Σx²): 1 if all values are equal, 1/n if one has all; none if all are 0.
///
/// ```
/// use fedlink::learn::fairness::jain;
/// assert_eq!(jain([3.0, 3.0, 3.0, 3.0]), Some(1.0));
/// assert_eq!(jain([0.0, 7.0, 0.0, 0.0]), Some(0.25));
/// assert_eq!(jain([0.0, 0.0]), None);
/// ```
pub fn jain(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equal_counts_and_one_over_m_for_a_single_device() {
        for m in 1..50u32 {
            assert_eq!(jain((0..m).map(|_| 17.0)), Some(1.0));
            let alone = jain((0..m).map(|i| if i == m / 2 { 9.0 } else { 0.0 })).unwrap();
            assert!((alone - 1.0 / f64::from(m)).abs() < 1e-15, "{m}: {alone}");
        }
        assert_eq!((jain([0.0; 5]), jain([])), (None, None));
    }
}
