//! The numbers of runs and curves.

pub use super::csv::{csv, guarded, metric_columns, row_columns, swept_columns};
pub use super::text::{goal_cell, percent_of, table, target_name};

use crate::claims::CurveKeys;
use crate::claims::Shortened;
use crate::experiment::{Curve, Sweep};
use crate::goals::Goal;
use crate::statistics::{Estimate, estimate, evenness, instability, mean_height, median};
use fedlink::record::{Guarantee, Outcome, Row};
use fedlink::spec::Spec;
use serde::{Deserialize, Serialize};

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// All rounds done.
    Finished,
    /// Ended early by Ctrl-C.
    Interrupted,
    /// Ended early because its numbers were no longer finite; the message names the round and the device.
    Diverged(String),
}

/// One seed of a curve.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunResult {
    /// `run.seed` of this run.
    pub seed: u64,
    /// A row for each evaluated round.
    pub rows: Vec<Row>,
    /// The run in numbers.
    pub outcome: Outcome,
    /// The state at its end.
    pub status: Status,
    /// Wall-clock time in seconds, with other runs beside it.
    pub seconds: f64,
}

impl RunResult {
    /// The mean height of the accuracy curve.
    pub fn area(&self) -> Option<f64> {
        let points: Vec<(f64, f64)> =
            self.rows.iter().map(|row| (row.round as f64, row.test_accuracy)).collect();
        mean_height(&points)
    }

    /// The instability of the accuracy.
    pub fn instability(&self) -> Option<f64> {
        let accuracies: Vec<f64> = self.rows.iter().map(|row| row.test_accuracy).collect();
        instability(&accuracies)
    }

    /// The first evaluated round that meets the target, a share.
    pub fn at_target(&self, target: f64) -> Option<&Row> {
        self.rows.iter().find(|row| row.test_accuracy >= target)
    }

    /// The share of rounds in which each device was scheduled.
    pub fn scheduled_shares(&self) -> Vec<f64> {
        let rounds = self.outcome.rounds.max(1) as f64;
        self.outcome.scheduled.iter().map(|&times| f64::from(times) / rounds).collect()
    }

    /// Whether it has done all its rounds.
    pub fn is_finished(&self) -> bool {
        self.status == Status::Finished
    }
}

/// A run of a curve that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// The curve's label.
    pub curve: String,
    /// Its seed.
    pub seed: u64,
    /// Rounds done by this process.
    pub rounds: u64,
    /// Rounds to do.
    pub of: u64,
}

/// `bc k=1 seed 3 (round 20 of 500)`.
impl std::fmt::Display for Unfinished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { curve, seed, rounds, of } = self;
        match rounds {
            0 => write!(f, "{curve} seed {seed} (not finished)"),
            _ => write!(f, "{curve} seed {seed} (round {rounds} of {of})"),
        }
    }
}

/// A curve with its runs, one for each seed.
#[derive(Clone, Debug)]
pub struct CurveResult {
    /// The swept values that distinguish it from the other curves.
    pub label: String,
    /// Its value of every swept key.
    pub keys: CurveKeys,
    /// Its run at the first seed.
    pub spec: Spec,
    /// Mean distance of the devices' class mixes from the overall one, at the first seed; not a number for a
    /// custom task.
    pub heterogeneity: f64,
    /// The runs that have ended, one per seed; if none has, the runs that were begun. Means are over these,
    /// so that a stopped run is never averaged with one that has ended.
    pub runs: Vec<RunResult>,
    /// The seeds that are not among `runs`, or have not ended.
    pub unfinished: Vec<Unfinished>,
    /// The reductions of the curve, if there are any.
    pub shortened: Option<Shortened>,
    /// The goals of the experiment, by name.
    pub goals: Vec<(String, Goal)>,
}

/// The runs grouped by their curves, and every run that has not ended. A curve without a begun run is in the
/// second list only.
pub fn gather(
    sweep: &Sweep,
    heterogeneity: &[f64],
    runs: Vec<(usize, RunResult)>,
) -> (Vec<CurveResult>, Vec<Unfinished>) {
    let (curves, whole) = (&sweep.curves, sweep.shortened());
    let mut by_curve: Vec<Vec<RunResult>> = curves.iter().map(|_| Vec::new()).collect();
    for (curve, mut run) in runs {
        let target = curves[curve].spec.run.target;
        run.outcome.target = target;
        run.outcome.rounds_to_target = run.at_target(target).map(|row| row.round);
        by_curve[curve].push(run);
    }
    let (mut results, mut all_unfinished) = (Vec::new(), Vec::new());
    for ((curve, &heterogeneity), mut runs) in curves.iter().zip(heterogeneity).zip(by_curve) {
        let Curve { label, keys, spec } = curve;
        let unfinished: Vec<Unfinished> = (0..spec.run.seeds)
            .map(|i| spec.run.seed + i)
            .filter(|seed| !runs.iter().any(|run| run.seed == *seed && run.status.has_ended()))
            .map(|seed| {
                let begun = runs.iter().find(|run| run.seed == seed);
                let rounds = begun.map_or(0, |run| run.outcome.rounds);
                Unfinished { curve: label.clone(), seed, rounds, of: spec.run.rounds }
            })
            .collect();
        all_unfinished.extend(unfinished.iter().cloned());
        if runs.iter().any(|run| run.status.has_ended()) {
            runs.retain(|run| run.status.has_ended());
        }
        if runs.is_empty() {
            continue;
        }
        let ended = runs.iter().filter(|run| run.status.has_ended()).count() as u64;
        results.push(CurveResult {
            label: label.clone(),
            keys: keys.clone(),
            spec: spec.clone(),
            heterogeneity,
            shortened: curve.shortened(whole, ended),
            runs,
            unfinished,
            goals: sweep.experiment.goals().to_vec(),
        });
    }
    (results, all_unfinished)
}

impl Status {
    /// Whether the run does no more rounds.
    pub fn has_ended(&self) -> bool {
        *self != Self::Interrupted
    }

    /// Its name in `summary.json`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Diverged(_) => "diverged",
        }
    }
}

impl CurveResult {
    /// Mean and interval over the seeds; none if a seed has no value.
    pub fn over_seeds(&self, value: impl Fn(&RunResult) -> Option<f64>) -> Option<Estimate> {
        let values: Option<Vec<f64>> = self.runs.iter().map(value).collect();
        values.filter(|values| !values.is_empty()).map(estimate)
    }

    /// Mean and interval of a number that every run has.
    pub fn over_all(&self, value: impl Fn(&RunResult) -> f64) -> Estimate {
        estimate(self.runs.iter().map(value))
    }

    /// Mean and interval of a number at the end; none if a run diverged: the mean of the others would look
    /// better than the curve is.
    pub fn at_the_end(&self, value: impl Fn(&RunResult) -> Option<f64>) -> Option<Estimate> {
        self.over_seeds(|run| value(run).filter(|_| !matches!(run.status, Status::Diverged(_))))
    }

    /// The mean over the seeds; none if a seed has no value.
    pub(crate) fn mean(&self, value: impl Fn(&Outcome) -> Option<f64>) -> Option<f64> {
        self.over_seeds(|run| value(&run.outcome)).map(|estimate| estimate.mean)
    }

    pub(crate) fn mean_of(&self, value: impl Fn(&Outcome) -> f64) -> f64 {
        self.mean(|outcome| Some(value(outcome))).unwrap_or(f64::NAN)
    }

    /// An estimate over the seeds for every evaluated round that all of them have reached.
    pub fn by_row(&self, value: impl Fn(&Row) -> f64) -> Vec<Estimate> {
        let reached = self.runs.iter().map(|run| run.rows.len()).min().unwrap_or(0);
        (0..reached).map(|i| estimate(self.runs.iter().map(|run| value(&run.rows[i])))).collect()
    }

    /// A number of every device. Device m holds other data at every seed, so that a mean by device is
    /// meaningless. With several seeds the devices of each seed are sorted by descending number, and the
    /// means are by rank; with one seed the numbers are by device.
    pub fn by_device(&self, values: impl Fn(&RunResult) -> Vec<f64>) -> Vec<f64> {
        let mut runs: Vec<Vec<f64>> = self.runs.iter().map(values).collect();
        if let [run] = &mut runs[..] {
            return std::mem::take(run);
        }
        runs.iter_mut().for_each(|run| run.sort_by(|a, b| b.total_cmp(a)));
        let devices = runs.iter().map(Vec::len).min().unwrap_or(0);
        (0..devices).map(|rank| estimate(runs.iter().map(|run| run[rank])).mean).collect()
    }

    /// The use of the devices, per seed; mean and interval over the seeds.
    pub fn device_use(&self) -> DeviceUse {
        let sorted = |run: &RunResult| {
            let mut shares = run.scheduled_shares();
            shares.sort_by(f64::total_cmp);
            shares
        };
        let allowed = self.allowed_power() * (1.0 + 1e-9);
        DeviceUse {
            least: self.over_all(|run| sorted(run).first().copied().unwrap_or(f64::NAN)),
            median: self.over_all(|run| median(&sorted(run))),
            most: self.over_all(|run| sorted(run).last().copied().unwrap_or(f64::NAN)),
            evenness: self.over_all(|run| evenness(&run.scheduled_shares())),
            highest_power: self.over_all(|run| run.outcome.worst_average_power.0),
            above: self.over_all(|run| {
                run.outcome.average_power.iter().filter(|power| **power > allowed).count() as f64
            }),
        }
    }

    /// Average power of the device that spent most, per seed; mean over the seeds.
    pub fn highest_power(&self) -> Estimate {
        self.over_all(|run| run.outcome.worst_average_power.0)
    }

    /// The status of the run that ended worst.
    pub fn status(&self) -> &Status {
        let badness = |status: &Status| match status {
            Status::Finished => 0,
            Status::Interrupted => 1,
            Status::Diverged(_) => 2,
        };
        let left_out = (!self.unfinished.is_empty()).then_some(&Status::Interrupted);
        let statuses = self.runs.iter().map(|run| &run.status).chain(left_out);
        statuses.max_by_key(|status| badness(status)).unwrap_or(&Status::Interrupted)
    }

    /// The run's digest, or the digests of all seeds one after the other.
    pub(crate) fn digest(&self) -> String {
        let digests: Vec<&str> = self.runs.iter().map(|run| run.outcome.digest.as_str()).collect();
        digests.join("+")
    }
}

/// The use of the devices of a curve: means over the seeds with 95 % intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceUse {
    /// The smallest share of rounds in which a device was scheduled.
    pub least: Estimate,
    /// The median share.
    pub median: Estimate,
    /// The largest share.
    pub most: Estimate,
    /// Jain's index of the shares.
    pub evenness: Estimate,
    /// Average power of the device that spent most.
    pub highest_power: Estimate,
    /// Devices whose average power is above P̄ (`radio.power`, or `radio.power_dbm` where the radio has
    /// units).
    pub above: Estimate,
}

impl CurveResult {
    /// The text of the curve's value of a swept key.
    pub fn swept(&self, key: &str) -> &str {
        self.keys.iter().find(|(own, _)| own == key).map_or("", |(_, value)| value)
    }
}

impl CurveResult {
    /// The largest ε of the seeds; none without privacy, or if a seed has no guarantee.
    pub fn epsilon(&self) -> Option<f64> {
        let values: Option<Vec<f64>> =
            self.runs.iter().map(|run| run.outcome.privacy.as_ref()?.epsilon).collect();
        values?.into_iter().reduce(f64::max)
    }

    /// The privacy loss of a device in the runs, and the limits of that number; empty without
    /// `privacy.noise`. With several seeds, the largest loss.
    pub fn privacy(&self) -> Vec<String> {
        let known = self.runs.iter().filter_map(|run| run.outcome.privacy.as_ref());
        let of = |guarantee: &Guarantee| guarantee.epsilon.unwrap_or(f64::INFINITY);
        let Some(worst) = known.max_by(|a, b| of(a).total_cmp(&of(b))) else { return Vec::new() };
        let number = match (worst.epsilon, worst.tight_epsilon, worst.order) {
            (Some(epsilon), Some(tight), Some(order)) => format!(
                "ε = {epsilon:.3} at δ = {:e} (Rényi order {order}; {tight:.3} by a tighter conversion)",
                worst.delta
            ),
            _ => "no privacy guarantee".to_owned(),
        };
        std::iter::once(number).chain(worst.caveats.iter().cloned()).collect()
    }

    /// The warnings of the runs except the cautions of their configuration, with the first seed of each
    /// warning. Warnings that differ only in numbers are one.
    pub fn warnings(&self) -> Vec<(u64, &str)> {
        let cautions = self.spec.cautions();
        let kind = |warning: &str| warning.replace(|c: char| c.is_ascii_digit(), "");
        let mut found: Vec<(u64, &str)> = Vec::new();
        for run in &self.runs {
            for warning in run.outcome.warnings.iter().filter(|warning| !cautions.contains(warning)) {
                if found.iter().all(|(_, other)| kind(other) != kind(warning)) {
                    found.push((run.seed, warning));
                }
            }
        }
        found
    }

    /// Devices that were scheduled at least once, of all, mean over the seeds: `13/60`; none if all were in
    /// every seed.
    pub fn heard_text(&self) -> Option<String> {
        let devices = self.spec.data.devices as usize;
        let known = self.runs.iter().filter(|run| run.outcome.scheduled.len() == devices);
        known.clone().any(|run| run.outcome.heard() < devices).then(|| {
            let sum: usize = known.clone().map(|run| run.outcome.heard()).sum();
            let mean = sum as f64 / known.count() as f64;
            let decimals = usize::from(mean.fract() != 0.0);
            format!("{mean:.decimals$}/{devices}")
        })
    }

    /// A remark if the scheme was at its highest level in most uploads, so that the links could have carried
    /// more; none otherwise.
    pub fn saturated(&self) -> Option<String> {
        let highest = self.mean(|outcome| outcome.at_highest_level).filter(|share| *share > 0.5)?;
        // A budget without a link may be exceeded.
        let used = self.mean(|outcome| outcome.budget_used).filter(|used| *used <= 1.0)?;
        Some(format!(
            "{} was at its highest level in {:.0} % of the uploads, and used {:.0} % of the bits that the \
             links would have carried",
            self.spec.compress.scheme,
            100.0 * highest,
            100.0 * used
        ))
    }
}

#[cfg(test)]
mod tests;
