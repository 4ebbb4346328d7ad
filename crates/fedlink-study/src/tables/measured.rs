//! The measurements of runs for claims and tables, and the verdicts by them.

use super::link::symbols_until;
use crate::claims::{Measured, Subject, Verdicts};
use crate::error::Error;
use crate::experiment::Sweep;
use crate::goals::{EmptyBatteries, Goal, Median, Metrics, Reading, Standing, empty_batteries};
use crate::statistics::{Estimate, estimate, evenness};
use crate::tables::results::{CurveResult, RunResult, Status};
use fedlink::spec::Spec;

impl Verdicts {
    /// The claims of a sweep judged by runs, each with the index of its curve. `chance` gives the accuracy
    /// that a model without learning does not exceed, if it is known.
    pub fn new<'a>(
        sweep: &Sweep,
        chance: impl Fn(&Spec) -> Option<f64>,
        runs: impl IntoIterator<Item = (usize, &'a RunResult)>,
    ) -> Result<Self, Error> {
        let Sweep { experiment, curves, .. } = sweep;
        let mut measured: Vec<Measured> =
            curves.iter().map(|curve| Measured { keys: curve.keys.clone(), runs: Vec::new() }).collect();
        // A run that was stopped is ignored: its numbers would have changed until its end.
        for (index, run) in runs.into_iter().filter(|(_, run)| run.status.has_ended()) {
            let spec = &curves[index].spec;
            measured[index].runs.push((run.seed, run.metrics(spec).with_chance(chance(spec))));
        }
        let whole = sweep.shortened();
        let shortened = |index: usize, seeds: u64| curves[index].shortened(whole, seeds);
        let expected = experiment.expected().map(|expected| expected.compare(&measured, shortened));
        let of_curve = |(index, measured): (usize, &Measured)| shortened(index, measured.runs.len() as u64);
        let mut verdicts = Self {
            claims: experiment.all_claims().verdicts(Subject::Runs, &measured)?,
            expected: expected.collect::<Result<_, _>>()?,
            // The curve with the fewest seeds.
            shortened: measured
                .iter()
                .enumerate()
                .filter_map(of_curve)
                .min_by_key(|shortened| shortened.seeds),
            removed: Vec::new(),
            correction_changed: false,
        };
        verdicts.refuse_shortened();
        Ok(verdicts)
    }
}

impl RunResult {
    /// The batteries that were empty, with the round of the first by the outcome, where that has it.
    fn empty_batteries(&self, spec: &Spec) -> Option<EmptyBatteries> {
        let mut empty = empty_batteries(&self.rows, spec.energy.battery_j, spec.data.devices)?;
        empty.round = self.outcome.first_empty.unwrap_or(empty.round);
        Some(empty)
    }

    /// The measurements of the run, whose configuration is `spec`.
    pub fn metrics(&self, spec: &Spec) -> Metrics {
        let target = spec.run.target;
        let metrics = match &self.status {
            Status::Finished => Metrics::new(&self.rows, target),
            ended => Metrics::unfinished(&self.rows, target, ended.name()),
        };
        let jain = Some(evenness(&self.scheduled_shares())).filter(|index| !index.is_nan());
        metrics
            .with_worst_device_joules(self.outcome.worst_device_joules())
            .with_jain(jain)
            .with_symbols(symbols_until(&self.rows, spec))
            .with_empty_batteries(self.empty_batteries(spec))
    }
}

impl CurveResult {
    /// Mean and interval of a metric over the seeds; none if a seed has no number.
    pub fn estimate(&self, goal: &Goal) -> Option<Estimate> {
        let values: Option<Vec<f64>> =
            self.runs.iter().map(|run| run.metrics(&self.spec).value(goal)).collect();
        values.filter(|values| !values.is_empty()).map(estimate)
    }

    /// The seed of each run with its value of a goal.
    pub fn readings(&self, goal: &Goal) -> Vec<(u64, Reading)> {
        self.runs.iter().map(|run| (run.seed, run.metrics(&self.spec).read(goal))).collect()
    }

    /// The median of a cost over the seeds; none if a seed has no number.
    pub fn median(&self, goal: &Goal) -> Option<Median> {
        let readings: Vec<Reading> = self.readings(goal).into_iter().map(|(_, reading)| reading).collect();
        Median::of(&readings)
    }

    /// The value of a goal over the seeds.
    pub fn standing(&self, goal: &Goal) -> Standing {
        let readings: Vec<Reading> = self.readings(goal).into_iter().map(|(_, reading)| reading).collect();
        Standing::of(goal, &readings)
    }

    /// Accuracy of the worst class at the last evaluation; none without `run.fairness`, or if a run diverged.
    pub fn worst_class(&self) -> Option<Estimate> {
        let last = |run: &RunResult| {
            let metrics = &run.rows.last()?.metrics;
            metrics.iter().find(|(name, _)| name == "worst_class").map(|(_, value)| *value)
        };
        self.at_the_end(last)
    }

    /// Local trainings per round, mean over the rounds and seeds.
    pub fn trainings_per_round(&self) -> f64 {
        self.over_all(|run| {
            let rounds = run.rows.last().map_or(1, |row| row.round.max(1));
            run.rows.iter().map(|row| row.trained as f64).sum::<f64>() / rounds as f64
        })
        .mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::curve_of;
    use crate::goals::Cost;

    fn goal(text: &str) -> Goal {
        text.parse().unwrap()
    }

    #[test]
    fn jain_is_the_index_of_the_counts_of_the_outcome() {
        let mut curve = curve_of("bc", &[&[0.5, 0.8]]);
        curve.runs[0].outcome.scheduled = vec![0, 6, 0, 0];
        assert_eq!(curve.estimate(&goal("jain")).unwrap().mean, 0.25);
        curve.runs[0].outcome.scheduled = vec![3; 4];
        assert_eq!(curve.estimate(&goal("jain")).unwrap().mean, 1.0);
    }

    #[test]
    fn a_metric_is_the_mean_over_seeds_that_all_have_it() {
        let mut curve = curve_of("bc", &[&[0.5, 0.8], &[0.5, 0.9]]);
        let last = curve.estimate(&goal("final")).unwrap();
        // Two seeds 0.1 apart: standard error 0.05, one degree of freedom.
        assert!((last.mean - 0.85).abs() < 1e-12 && (last.half_width - 0.05 * 12.706_204_736).abs() < 1e-9);
        assert_eq!(curve.estimate(&goal("rounds-to-0.8")).unwrap().mean, 20.0);
        assert_eq!(curve.estimate(&goal("rounds-to-0.85")), None);
        let median = curve.median(&goal("rounds-to-0.85")).unwrap();
        assert_eq!(median.text(|rounds| rounds.to_string()), "> 20 (1/2)");
        assert_eq!(curve.estimate(&Goal::target(Cost::Rounds)).unwrap().mean, 20.0);
        crate::example::change(&mut curve, |config| config.run.target = 0.45);
        assert_eq!(curve.estimate(&Goal::target(Cost::Rounds)).unwrap().mean, 10.0);
        curve.runs[1].status = Status::Diverged("in round 21".into());
        assert_eq!(curve.estimate(&goal("final")), None);
        curve.runs.clear();
        assert_eq!(curve.estimate(&goal("final")), None);
    }
}
