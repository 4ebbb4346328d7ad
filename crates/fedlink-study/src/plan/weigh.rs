//! Comparisons of the recommended settings: ties, conditions, the worth of each setting.

use super::answer::{ConditionFact, Cost, KnobFact, Tie};
use super::insight::{Insight, compare};
use crate::error::Error;
use crate::goals::Reading;
use crate::race::{Arm, LEVELS};
use crate::tables::results::RunResult;
use fedlink::spec::Spec;

/// How far a condition is relaxed.
const RELAXED: f64 = 0.1;

impl Insight<'_, '_> {
    /// The finalists that a paired test on the fresh seeds does not tell from the best, by Holm's correction.
    pub(super) fn ties(&self, best: Arm) -> Result<Vec<Tie>, Error> {
        let until = &self.request.goals[0];
        let own = self.readings(best, until)?;
        let mut others = Vec::new();
        for &arm in self.finished.finalists.iter().filter(|arm| **arm != best) {
            if let Some(all) = compare(&self.readings(arm, until)?, &own) {
                others.push((arm, all));
            }
        }
        others.sort_by(|a, b| a.1.p.unwrap_or(1.0).total_cmp(&b.1.p.unwrap_or(1.0)));
        let tests = others.len();
        let mut ties = Vec::new();
        let mut is_open = false;
        for (rank, (arm, all)) in others.into_iter().enumerate() {
            let p = all.p.unwrap_or(1.0);
            is_open |= p > self.request.error / (tests - rank) as f64;
            if !is_open {
                continue;
            }
            let seeds =
                all.ratio.and_then(|ratio| seeds_needed(ratio.mean, ratio.low?, ratio.high?, own.len()));
            ties.push(Tie {
                label: self.bench.label(arm),
                ratio: all.ratio.map(|ratio| ratio.mean),
                low: all.ratio.and_then(|ratio| ratio.low),
                high: all.ratio.and_then(|ratio| ratio.high),
                p,
                seeds_needed: seeds,
            });
        }
        Ok(ties)
    }

    pub(super) fn conditions(&self, best: Arm) -> Result<Vec<ConditionFact>, Error> {
        let until = &self.request.goals[0];
        let whole = self.readings(best, until)?;
        let spec = self.bench.spec(best)?;
        let mut facts = Vec::new();
        for (index, condition) in until.conditions.iter().enumerate() {
            let alone = self.readings(best, &until.only(index))?;
            let same = alone.iter().zip(&whole).filter(|(alone, whole)| alone == whole).count();
            let by = if condition.is_share() {
                RELAXED
            } else {
                RELAXED * condition.number(spec.run.target).abs()
            };
            let easier = until.relaxed(index, by, spec.run.target);
            let mut costs: Vec<(Arm, Cost)> = Vec::new();
            for &arm in &self.finished.finalists {
                costs.extend(Cost::of(&easier, &self.readings(arm, &easier)?).map(|cost| (arm, cost)));
            }
            let value = |cost: &Cost| cost.median.value.unwrap_or(f64::INFINITY);
            let cheapest = costs.iter().min_by(|a, b| value(&a.1).total_cmp(&value(&b.1)));
            let own = costs.iter().find(|(arm, _)| *arm == best).map(|(_, cost)| cost.clone());
            facts.push(ConditionFact {
                condition: condition.to_string(),
                alone: Cost::of(until, &alone),
                binds: 2 * same >= whole.len(),
                relaxed: own.as_ref().map(|cost| format!("at {}: {}", easier.conditions[index], cost.text)),
                relaxed_best: cheapest.filter(|(arm, _)| *arm != best).map(|(arm, _)| self.bench.label(*arm)),
                relaxed_cost: cheapest.map(|(_, cost)| cost.clone()).or(own),
            });
        }
        Ok(facts)
    }

    /// For every value of every axis, the candidate with it that stayed longest, against the best.
    pub(super) fn knobs(&self, best: Arm) -> Result<Vec<KnobFact>, Error> {
        let own = self.bench.candidates[best.candidate].point.clone();
        let mut facts = Vec::new();
        for (i, axis) in self.bench.space.axes.iter().enumerate() {
            for value in 0..axis.values.len() {
                let mut with: Vec<(usize, Arm)> = self
                    .finished
                    .reached
                    .iter()
                    .filter(|(arm, _)| self.bench.candidates[arm.candidate].point[i] == value)
                    .map(|(arm, rung)| (*rung, *arm))
                    .collect();
                let rank = |arm: &Arm| {
                    self.finished.ranked.iter().position(|other| other == arm).unwrap_or(usize::MAX)
                };
                with.sort_by(|a, b| b.0.cmp(&a.0).then(rank(&a.1).cmp(&rank(&b.1))));
                let text = match &axis.values[value] {
                    toml::Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let Some(&(_, rival)) = with.first() else { continue };
                let (ratio, seeds, share) =
                    if rival == best { (Some(1.0), 0, 1.0) } else { self.against(rival, best)? };
                facts.push(KnobFact {
                    key: axis.key.clone(),
                    value: text,
                    is_chosen: own[i] == value,
                    best: self.bench.label(if own[i] == value { best } else { rival }),
                    ratio: if own[i] == value { Some(1.0) } else { ratio },
                    seeds,
                    share,
                });
            }
        }
        Ok(facts)
    }

    /// The ratio of the cost of an arm to that of the best at the hardest level that both reach somewhere, on
    /// the race seeds that both have.
    fn against(&self, rival: Arm, best: Arm) -> Result<(Option<f64>, usize, f64), Error> {
        let (rival_spec, best_spec) = (self.bench.spec(rival)?, self.bench.spec(best)?);
        let pairs: Vec<(&RunResult, &RunResult)> = self
            .race_seeds()
            .filter_map(|seed| {
                Some((self.bench.results.get(&(rival, seed))?, self.bench.results.get(&(best, seed))?))
            })
            .collect();
        for &share in LEVELS.iter().rev() {
            let classes = self.bench.classes();
            let until = self.request.goals[0].eased(share, classes, best_spec.run.target);
            let read = |run: &RunResult, spec: &Spec| self.bench.read(run, spec, &until);
            let left: Vec<Reading> = pairs.iter().map(|(run, _)| read(run, &rival_spec)).collect();
            let right: Vec<Reading> = pairs.iter().map(|(_, run)| read(run, &best_spec)).collect();
            if left.iter().any(|reading| matches!(reading, Reading::Known(_))) {
                let ratio = compare(&left, &right).and_then(|all| all.ratio).map(|ratio| ratio.mean);
                return Ok((ratio, pairs.len(), share));
            }
        }
        Ok((None, pairs.len(), 0.0))
    }
}

/// The seeds after which the interval of a ratio, which narrows with their root, leaves out 1.
fn seeds_needed(mean: f64, low: f64, high: f64, seeds: usize) -> Option<u64> {
    let (log, half) = (libm::log(mean).abs(), 0.5 * (libm::log(high) - libm::log(low)));
    let factor = half / log;
    (log > 0.0 && factor.is_finite() && factor < 100.0)
        .then(|| libm::ceil(seeds as f64 * factor * factor) as u64)
}
