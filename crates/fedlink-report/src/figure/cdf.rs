//! Empirical distribution functions: the SNR of the devices, …

use super::axis::drawable;
use super::line_chart::{Curve, LineChart};

/// A series of more values is drawn at this many of its quantiles: finer steps could not be seen.
const MAX_STEPS: usize = 400;

/// The empirical cumulative distribution function of each named series of values: the share of its values
/// that are at most x, as a step function. Values that are not finite are left out. `x_label` is what the
/// values are, with their unit.
///
/// ```
/// use fedlink_report::figure::{Figure, cdf};
/// let near = ("near".to_owned(), vec![18.2, 21.5, 20.1]);
/// let far = ("far".to_owned(), vec![-1.3, 0.4, 2.2]);
/// let chart = cdf("SNR of the devices", "mean SNR (dB)", &[near, far]);
/// assert!(chart.svg().contains("mean SNR (dB)"));
/// ```
pub fn cdf(title: &str, x_label: &str, series: &[(String, Vec<f64>)]) -> LineChart {
    let curve = |(label, values): &(String, Vec<f64>)| Curve {
        label: label.clone(),
        points: steps(values),
        band: None,
        style: None,
    };
    LineChart {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        y_label: "share that is at most this (%)".into(),
        percent_y: true,
        curves: series.iter().map(curve).collect(),
        ..LineChart::default()
    }
}

/// The corners of the step function: from 0 to 1, a rise of 1/n at each of the n values.
fn steps(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| drawable(*v)).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let drawn = n.min(MAX_STEPS);
    let step = |i: usize| {
        // The last value of the step's group: so the drawn function is right at every corner.
        let end = (i + 1) * n / drawn;
        let x = sorted[end - 1];
        [(x, (i * n / drawn) as f64 / n as f64), (x, end as f64 / n as f64)]
    };
    (0..drawn).flat_map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_a_step_of_its_share() {
        let expected = [(1.0, 0.0), (1.0, 0.25), (2.0, 0.25), (2.0, 0.5), (2.0, 0.5), (2.0, 0.75)];
        let points = steps(&[2.0, 5.0, f64::NAN, 1.0, 2.0, f64::INFINITY]);
        assert_eq!(points[..6], expected);
        assert_eq!(points[6..], [(5.0, 0.75), (5.0, 1.0)]);
        assert!(steps(&[]).is_empty());
    }

    #[test]
    fn many_values_are_drawn_at_their_quantiles() {
        let values: Vec<f64> = (0..10_000).rev().map(f64::from).collect();
        let points = steps(&values);
        assert_eq!(points.len(), 2 * MAX_STEPS);
        for pair in points.chunks_exact(2) {
            // Of 0, 1, …, 9999 the share that is at most x is (x + 1)/10000.
            assert_eq!(pair[1].1, (pair[1].0 + 1.0) / 10_000.0);
        }
    }
}
