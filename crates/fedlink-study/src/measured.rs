//! What claims and tables read off the results.

use crate::claims::{Metric, Metrics};
use crate::results::{CurveResult, RunResult, Status};
use crate::statistics::{Estimate, estimate, evenness};

impl RunResult {
    /// The run's curve, for any metric; `target` is its `run.target`.
    pub fn metrics(&self, target: f64) -> Metrics {
        let metrics = match &self.status {
            Status::Finished => Metrics::new(&self.rows, target),
            ended => Metrics::unfinished(&self.rows, target, ended.name()),
        };
        let jain = Some(evenness(&self.scheduled_shares())).filter(|index| !index.is_nan());
        metrics.with_worst_device_joules(self.outcome.worst_device_joules()).with_jain(jain)
    }
}

impl CurveResult {
    /// Mean and interval of a metric over the seeds; none if a seed has no number.
    pub fn estimate(&self, metric: Metric) -> Option<Estimate> {
        let target = self.config.run.target;
        let values: Option<Vec<f64>> =
            self.runs.iter().map(|run| run.metrics(target).value(metric)).collect();
        values.filter(|values| !values.is_empty()).map(estimate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::curve_of;

    #[test]
    fn jain_is_the_index_of_the_counts_of_the_outcome() {
        let mut curve = curve_of("bc", &[&[0.5, 0.8]]);
        curve.runs[0].outcome.scheduled = vec![0, 6, 0, 0];
        assert_eq!(curve.estimate(Metric::Jain).unwrap().mean, 0.25);
        curve.runs[0].outcome.scheduled = vec![3; 4];
        assert_eq!(curve.estimate(Metric::Jain).unwrap().mean, 1.0);
    }

    #[test]
    fn a_metric_is_the_mean_over_seeds_that_all_have_it() {
        let mut curve = curve_of("bc", &[&[0.5, 0.8], &[0.5, 0.9]]);
        let last = curve.estimate(Metric::Final).unwrap();
        // Two seeds 0.1 apart: standard error 0.05, one degree of freedom.
        assert!((last.mean - 0.85).abs() < 1e-12 && (last.half_width - 0.05 * 12.706_204_736).abs() < 1e-9);
        assert_eq!(curve.estimate(Metric::RoundsTo(0.8)).unwrap().mean, 20.0);
        assert_eq!(curve.estimate(Metric::RoundsTo(0.85)), None);
        assert_eq!(curve.estimate(Metric::RoundsToTarget).unwrap().mean, 20.0);
        curve.config.run.target = 0.45;
        assert_eq!(curve.estimate(Metric::RoundsToTarget).unwrap().mean, 10.0);
        curve.runs[1].status = Status::Diverged("in round 21".into());
        assert_eq!(curve.estimate(Metric::Final), None);
        curve.runs.clear();
        assert_eq!(curve.estimate(Metric::Final), None);
    }
}
