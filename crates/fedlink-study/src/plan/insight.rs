//! The facts of an answer, from the runs of a plan.

use super::answer::{Answer, CandidateRow, Cost, CurveFact, Lost, Priced, json};
use super::bench::RunBench;
use super::request::Request;
use crate::error::Error;
use crate::goals::{Goal, Paired, Reading, Until, paired};
use crate::race::{Arm, Finished};
use crate::statistics::estimate;
use crate::tables::results::RunResult;
use std::ops::Range;

/// The runs of a race that has ended.
pub(super) struct Insight<'a, 'b> {
    pub bench: &'a mut RunBench<'b>,
    pub finished: &'a Finished,
    pub request: &'a Request,
}

impl Insight<'_, '_> {
    /// Fills the answer with what the runs state, and returns the recommended arm, if there is one.
    pub fn fill(&mut self, answer: &mut Answer) -> Result<Option<Arm>, Error> {
        for &arm in &self.finished.finalists {
            let priced = self.priced(arm)?;
            answer.finalists.push(priced);
        }
        answer.curves =
            self.finished.finalists.iter().map(|&arm| self.curve(arm)).collect::<Result<_, _>>()?;
        answer.candidates = self.rows()?;
        let goals = self.request.goals.len();
        if goals > 1 {
            answer.pareto = pareto(&answer.finalists, goals);
        }
        answer.not_covered = self.not_covered();
        answer.lost = self.lost();
        // The choice is the race's; the fresh seeds only have to confirm that it reaches the goal.
        let reaches = |priced: &Priced| {
            priced.costs.first().is_some_and(|cost| 2 * cost.median.reached >= cost.median.of)
        };
        let Some(place) = answer.finalists.iter().position(reaches) else { return Ok(None) };
        let best = self.finished.finalists[place];
        answer.recommended = Some(answer.finalists[place].clone());
        answer.ties = self.ties(best)?;
        answer.next = next(answer);
        answer.conditions = self.conditions(best)?;
        answer.knobs = self.knobs(best)?;
        self.devices(best, answer)?;
        Ok(Some(best))
    }

    pub(super) fn fresh(&self, arm: Arm) -> Vec<&RunResult> {
        self.finished.fresh.clone().filter_map(|seed| self.bench.results.get(&(arm, seed))).collect()
    }

    pub(super) fn race_seeds(&self) -> Range<u64> {
        let first = self.bench.scenario().run.seed;
        first..first + crate::race::TUNE_SEEDS
    }

    /// The readings of a goal at the fresh seeds.
    pub(super) fn readings(&self, arm: Arm, until: &Until) -> Result<Vec<Reading>, Error> {
        let spec = self.bench.spec(arm)?;
        Ok(self.fresh(arm).iter().map(|result| self.bench.read(result, &spec, until)).collect())
    }

    fn priced(&self, arm: Arm) -> Result<Priced, Error> {
        let runs = self.fresh(arm);
        let mean = |of: &dyn Fn(&RunResult) -> Option<f64>| {
            let values: Option<Vec<f64>> = runs.iter().map(|run| of(run)).collect();
            values.filter(|values| !values.is_empty()).map(|values| estimate(values).mean)
        };
        let costs = self
            .request
            .goals
            .iter()
            .map(|until| Ok(Cost::of(until, &self.readings(arm, until)?)))
            .collect::<Result<Vec<_>, Error>>()?;
        let screened = &self.bench.candidates[arm.candidate].screened;
        Ok(Priced {
            label: self.bench.label(arm),
            settings: json(&self.bench.settings(arm)?),
            costs: costs.into_iter().flatten().collect(),
            accuracy: mean(&|run| run.rows.last().map(|row| row.test_accuracy)).unwrap_or(0.0),
            worst_class: mean(&|run| metric(run, "worst_class")),
            round_s: screened.round_s,
            round_j: screened.round_j,
            late: screened.late,
        })
    }

    fn curve(&self, arm: Arm) -> Result<CurveFact, Error> {
        let spec = self.bench.spec(arm)?;
        let until = &self.request.goals[0];
        let runs = self.fresh(arm);
        let length = runs.iter().map(|run| run.rows.len()).min().unwrap_or(0);
        let mean = |of: &dyn Fn(&RunResult, usize) -> f64, i: usize| {
            runs.iter().map(|run| of(run, i)).sum::<f64>() / runs.len().max(1) as f64
        };
        let cost = |run: &RunResult, i: usize| {
            let mut part = run.clone();
            part.rows.truncate(i + 1);
            // No accuracy is 2, so that the cost is that of the last row.
            let never = Until { conditions: vec![never()], evaluations: 1, ..until.clone() };
            match part.metrics(&spec).read(&Goal::Until(never)) {
                Reading::Known(cost) | Reading::Beyond(cost) => cost,
                Reading::Missing(_) => f64::NAN,
            }
        };
        let has_worst = runs.iter().all(|run| metric(run, "worst_class").is_some());
        let worst = |run: &RunResult, i: usize| {
            let found = run.rows[i].metrics.iter().find(|(name, _)| name == "worst_class");
            found.map_or(f64::NAN, |(_, value)| *value)
        };
        Ok(CurveFact {
            label: self.bench.label(arm),
            cost: (0..length).map(|i| mean(&cost, i)).collect(),
            accuracy: (0..length).map(|i| mean(&|run, i| run.rows[i].test_accuracy, i)).collect(),
            worst_class: if has_worst { (0..length).map(|i| mean(&worst, i)).collect() } else { Vec::new() },
        })
    }

    fn rows(&self) -> Result<Vec<CandidateRow>, Error> {
        let mut rows = Vec::new();
        for (index, candidate) in self.bench.candidates.iter().enumerate() {
            let arm = Arm { candidate: index, step: self.finished.steps.get(&index).copied().unwrap_or(0) };
            let own: Vec<&RunResult> =
                self.race_seeds().filter_map(|seed| self.bench.results.get(&(arm, seed))).collect();
            let is_finalist = self.finished.finalists.contains(&arm);
            let (stage, reason, proven) = match &candidate.lost {
                Some(lost) if !is_finalist => lost.clone(),
                _ if is_finalist => ("confirm".to_owned(), "a finalist".to_owned(), false),
                _ => ("race".to_owned(), "in the last rung, behind the finalists".to_owned(), false),
            };
            let mut costs = Vec::new();
            if !own.is_empty() {
                let spec = self.bench.spec(arm)?;
                for until in &self.request.goals {
                    let readings: Vec<Reading> =
                        own.iter().map(|run| self.bench.read(run, &spec, until)).collect();
                    costs.push(Cost::of(until, &readings));
                }
            }
            let most = |of: &dyn Fn(&RunResult) -> Option<f64>| {
                own.iter().filter_map(|run| of(run)).reduce(f64::max)
            };
            rows.push(CandidateRow {
                label: if own.is_empty() { candidate.label.clone() } else { self.bench.label(arm) },
                settings: match self.bench.settings(arm) {
                    Ok(settings) => json(&settings),
                    Err(_) => json(&self.bench.space.settings(&candidate.point)),
                },
                screened: candidate.screened.clone(),
                stage,
                reason,
                proven,
                seeds: own.len(),
                rounds: own.iter().map(|run| run.outcome.rounds).max().unwrap_or(0),
                costs,
                accuracy: most(&|run| run.outcome.best_accuracy),
                worst_class: most(&|run| {
                    let values = run
                        .rows
                        .iter()
                        .filter_map(|row| row.metrics.iter().find(|(name, _)| name == "worst_class"));
                    values.map(|(_, value)| *value).reduce(f64::max)
                }),
            });
        }
        Ok(rows)
    }

    /// For every value of a key of names, where its best candidate left.
    fn lost(&self) -> Vec<Lost> {
        let mut lost = Vec::new();
        let chosen =
            self.finished.finalists.first().map(|arm| self.bench.candidates[arm.candidate].point.clone());
        for (i, axis) in self.bench.space.axes.iter().enumerate().filter(|(_, axis)| !axis.is_ordered()) {
            for (value, name) in axis.values.iter().enumerate() {
                if chosen.as_ref().is_some_and(|point| point[i] == value) {
                    continue;
                }
                let own: Vec<usize> = (0..self.bench.candidates.len())
                    .filter(|&c| self.bench.candidates[c].point[i] == value)
                    .collect();
                let rung = |&candidate: &usize| {
                    let arms = self.finished.reached.iter().filter(|(arm, _)| arm.candidate == candidate);
                    arms.map(|(_, rung)| *rung + 1).max().unwrap_or(0)
                };
                let Some(best) = own.iter().copied().max_by_key(|c| (rung(c), std::cmp::Reverse(*c))) else {
                    continue;
                };
                let candidate = &self.bench.candidates[best];
                let reason = match &candidate.lost {
                    Some((stage, reason, _)) if stage == "screen" => {
                        format!("the link budget rules it out: {reason}")
                    }
                    Some((_, reason, true)) => format!("proven worse: {reason}"),
                    Some((_, reason, false)) => format!("set aside in rung {}: {reason}", rung(&best)),
                    None => "a finalist".to_owned(),
                };
                let name = name.as_str().unwrap_or_default().to_owned();
                let best = candidate.label.clone();
                lost.push(Lost {
                    class: format!("{} = {name}", axis.key),
                    candidates: own.len(),
                    best,
                    reason,
                });
            }
        }
        lost
    }

    fn not_covered(&self) -> Vec<String> {
        let spec = self.bench.scenario();
        let mut facts = vec![format!(
            "the data of the scenario ({}) stand for those of the deployment; its model is {}",
            spec.data.dataset, spec.learn.model
        )];
        facts.push(format!(
            "a run ends after {} rounds (run.rounds): cheaper rounds may need more",
            spec.run.rounds
        ));
        let searched: Vec<&str> = self.bench.space.axes.iter().map(|axis| axis.key.as_str()).collect();
        facts.push(format!(
            "keys other than {} and the step lengths keep the values of the scenario",
            searched.join(", ")
        ));
        let judged = self.bench.candidates.len() as f64;
        if judged < self.bench.space.size() {
            facts.push(format!(
                "{:.0} of {:.0} settings were not looked at",
                self.bench.space.size() - judged,
                self.bench.space.size()
            ));
        }
        facts.push("interference that the scenario does not have; the convergence bound is not used".into());
        facts
    }
}

/// A condition that never holds.
fn never() -> crate::goals::Condition {
    crate::goals::Condition {
        quantity: crate::goals::Quantity::Accuracy,
        level: crate::goals::Level::Number(2.0),
    }
}

/// A metric of the last evaluation.
pub(super) fn metric(run: &RunResult, name: &str) -> Option<f64> {
    run.rows.last()?.metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
}

/// The finalists that no other one beats in every goal.
fn pareto(finalists: &[Priced], goals: usize) -> Vec<String> {
    let value = |priced: &Priced, goal: usize| {
        priced.costs.get(goal).and_then(|cost| cost.median.value).unwrap_or(f64::INFINITY)
    };
    let beats = |a: &Priced, b: &Priced| {
        (0..goals).all(|goal| value(a, goal) <= value(b, goal))
            && (0..goals).any(|goal| value(a, goal) < value(b, goal))
    };
    let reaches = |priced: &Priced| (0..goals).all(|goal| value(priced, goal).is_finite());
    let best = |own: &&Priced| reaches(own) && !finalists.iter().any(|other| beats(other, own));
    finalists.iter().filter(best).map(|priced| priced.label.clone()).collect()
}

fn next(answer: &Answer) -> Vec<String> {
    let mut next: Vec<String> = Vec::new();
    for tie in &answer.ties {
        next.push(match tie.seeds_needed {
            Some(seeds) => format!(
                "{seeds} fresh seeds would distinguish {}, if its ratio is {:.2}",
                tie.label,
                tie.ratio.unwrap_or(1.0)
            ),
            None => format!("no affordable number of seeds distinguishes {}", tie.label),
        });
    }
    next
}

/// Two sides, seed by seed; none without a seed.
pub(super) fn compare(left: &[Reading], right: &[Reading]) -> Option<Paired> {
    let pairs: Vec<(Reading, Reading)> = left.iter().cloned().zip(right.iter().cloned()).collect();
    paired(&pairs).ok().filter(|_| !pairs.is_empty())
}
