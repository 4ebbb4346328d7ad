//! The measurements of runs for claims and tables, and the verdicts by them.

use crate::claims::{Measured, Metric, Metrics, Subject, Verdicts};
use crate::error::Error;
use crate::experiment::Sweep;
use crate::statistics::{Estimate, estimate, evenness};
use crate::tables::results::{CurveResult, RunResult, Status};

impl Verdicts {
    /// The claims of a sweep judged by runs, each with the index of its curve.
    pub fn new<'a>(
        sweep: &Sweep,
        runs: impl IntoIterator<Item = (usize, &'a RunResult)>,
    ) -> Result<Self, Error> {
        let Sweep { experiment, curves, .. } = sweep;
        let mut measured: Vec<Measured> =
            curves.iter().map(|curve| Measured { keys: curve.keys.clone(), runs: Vec::new() }).collect();
        // A run that was stopped is ignored: its numbers would have changed until its end.
        for (index, run) in runs.into_iter().filter(|(_, run)| run.status.has_ended()) {
            measured[index].runs.push((run.seed, run.metrics(curves[index].spec.run.target)));
        }
        let whole = sweep.shortened();
        let shortened = |index: usize, seeds: u64| curves[index].shortened(whole, seeds);
        let expected = experiment.expected().map(|expected| expected.compare(&measured, shortened));
        let of_curve = |(index, measured): (usize, &Measured)| shortened(index, measured.runs.len() as u64);
        Ok(Self {
            claims: experiment.all_claims().verdicts(Subject::Runs, &measured)?,
            expected: expected.collect::<Result<_, _>>()?,
            // The curve with the fewest seeds.
            shortened: measured
                .iter()
                .enumerate()
                .filter_map(of_curve)
                .min_by_key(|shortened| shortened.seeds),
        })
    }
}

impl RunResult {
    /// The measurements of the run; `target` is its `run.target`.
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
        let target = self.spec.run.target;
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
        crate::example::change(&mut curve, |config| config.run.target = 0.45);
        assert_eq!(curve.estimate(Metric::RoundsToTarget).unwrap().mean, 10.0);
        curve.runs[1].status = Status::Diverged("in round 21".into());
        assert_eq!(curve.estimate(Metric::Final), None);
        curve.runs.clear();
        assert_eq!(curve.estimate(Metric::Final), None);
    }
}
