//! The race itself: rungs, decisions, fresh seeds.

use super::bench::{Arm, Bench, Decision, LEVELS, Observed, Trial, Verdict};
use super::budget::{Purse, Rung, Rungs};
use super::compare::{Costs, Ranking, beaten, ranking};
use crate::error::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The seeds on which step lengths are tuned, from the first seed of the race: one for each rung.
pub const TUNE_SEEDS: u64 = 900;
/// The fresh seeds of the confirmation, from the first seed of the race.
pub const CONFIRM_SEEDS: u64 = 1000;
/// The fewest and the most fresh seeds.
const FRESH: Range<u64> = 6..24;
/// The fresh seeds of a confirmation that the budget allows.
const FRESH_WANTED: u64 = 12;
/// The fewest pairs of a test.
const TESTED: usize = 6;
/// Neighbors enter the rungs before this one.
const NEW: usize = 3;
/// The leaders whose neighbors enter the next rung.
const LEADERS: usize = 3;

/// A race that is in progress.
pub struct Race<'a, B: Bench> {
    /// The runs.
    pub bench: &'a mut B,
    /// The budget.
    pub purse: &'a mut dyn Purse,
    /// The rungs.
    pub rungs: Rungs,
    /// The number of scenarios.
    pub scenarios: usize,
    /// The number of goals; the first ranks alone, further ones keep their own leaders in the race.
    pub goals: usize,
    /// The probability with which the best candidate may be dropped as proven worse.
    pub error: f64,
    /// The first seed.
    pub first_seed: u64,
    /// All costs so far.
    pub table: BTreeMap<(Arm, usize, u64), (u64, Observed)>,
    /// Full runs that were spent.
    pub spent: f64,
}

/// How a race ended.
#[derive(Clone, Debug)]
pub enum Ended {
    /// With finalists.
    Finished(Finished),
    /// The user stopped it.
    Stopped,
}

/// The result of a race.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The candidates of the last rung that were not dropped, by the first goal, the best first.
    pub ranked: Vec<Arm>,
    /// The finalists with fresh seeds, the best by the race first: the choice is made before the fresh seeds
    /// are run.
    pub finalists: Vec<Arm>,
    /// The fresh seeds.
    pub fresh: Range<u64>,
    /// The rung in which each arm last ran.
    pub reached: BTreeMap<Arm, usize>,
    /// The step length with which each candidate last ran.
    pub steps: BTreeMap<usize, usize>,
}

impl<B: Bench> Race<'_, B> {
    /// Runs the race of these candidates, the numbers of the bench. `extra` runs are kept for later.
    pub fn run(&mut self, candidates: &[usize], extra: f64) -> Result<Ended, Error> {
        let mut known: BTreeSet<usize> = candidates.iter().copied().collect();
        let mut steps: BTreeMap<usize, usize> = known.iter().map(|&candidate| (candidate, 0)).collect();
        let mut reached: BTreeMap<Arm, usize> = BTreeMap::new();
        let mut alive: Vec<usize> = candidates.to_vec();
        let last = self.rungs.list.len() - 1;
        let mut order: Vec<Arm> = Vec::new();
        for rung in 0..=last {
            let left = self.purse.left(self.spent) - extra;
            // The first rung takes all that it is given; later ones keep the best.
            let width = self.rungs.width(rung, left, self.scenarios);
            if rung > 0 {
                let leaders: Vec<Arm> = order.iter().take(LEADERS).copied().collect();
                // New ones enter while runs are short.
                let room = if rung < NEW { width / 3 } else { 0 };
                let entering = self.bench.neighbors(&leaders, room)?;
                let entering: Vec<usize> = entering.into_iter().filter(|new| known.insert(*new)).collect();
                self.set_aside(&mut order, width.saturating_sub(entering.len()).max(1))?;
                alive = order.iter().map(|arm| arm.candidate).collect();
                for &candidate in &entering {
                    let leader = leaders.first().map_or(0, |leader| steps[&leader.candidate]);
                    steps.insert(candidate, leader);
                    let arm = Arm { candidate, step: leader };
                    self.decide("race", arm, Verdict::Entered, "it differs from a leader in one key".into())?;
                }
                alive.extend(entering);
            }
            let text = self.text(rung, &alive);
            self.bench.begin("race", &text, alive.len())?;
            if !self.tune(rung, &alive, &mut steps)? {
                return Ok(Ended::Stopped);
            }
            let arms: Vec<Arm> =
                alive.iter().map(|&candidate| Arm { candidate, step: steps[&candidate] }).collect();
            let seeds = self.first_seed..self.first_seed + self.rungs.list[rung].seeds;
            if !self.observe(&self.trials(&arms, seeds.clone(), rung))? {
                return Ok(Ended::Stopped);
            }
            reached.extend(arms.iter().map(|&arm| (arm, rung)));
            order = self.drop_beaten(&arms, seeds, rung)?;
        }
        let left = self.purse.left(self.spent) - extra;
        let (count, fresh) = fresh_seeds(left / self.scenarios as f64, order.len());
        let fresh = self.first_seed + CONFIRM_SEEDS..self.first_seed + CONFIRM_SEEDS + fresh;
        let finalists: Vec<Arm> = self.interleaved(&order).into_iter().take(count).collect();
        let text = format!(
            "{} finalists on {} fresh seeds, which chose nothing",
            finalists.len(),
            fresh.end - fresh.start
        );
        self.bench.begin("confirm", &text, finalists.len())?;
        if !self.observe(&self.trials(&finalists, fresh.clone(), last))? {
            return Ok(Ended::Stopped);
        }
        for &arm in &finalists {
            self.decide("confirm", arm, Verdict::Confirmed, text.clone())?;
        }
        Ok(Ended::Finished(Finished { ranked: order, finalists, fresh, reached, steps }))
    }

    fn text(&self, rung: usize, alive: &[usize]) -> String {
        let own = self.rungs.list[rung];
        format!("{} candidates, {} rounds, {} paired seeds", alive.len(), own.rounds, own.seeds)
    }

    fn decide(
        &mut self,
        stage: &'static str,
        arm: Arm,
        verdict: Verdict,
        reason: String,
    ) -> Result<(), Error> {
        self.bench.decide(&Decision { stage, arm, verdict, reason })
    }

    fn trials(&self, arms: &[Arm], seeds: Range<u64>, rung: usize) -> Vec<Trial> {
        let rounds = self.rungs.list[rung].rounds;
        let mut trials = Vec::new();
        // Seed by seed, so that a race that is stopped has compared all arms on some.
        for seed in seeds {
            for scenario in 0..self.scenarios {
                trials.extend(arms.iter().map(|&arm| Trial { arm, scenario, seed, rounds }));
            }
        }
        trials
    }

    /// Runs the trials that are not known: a run that has reached every goal needs no more rounds. False if
    /// the user stops the race.
    pub fn observe(&mut self, trials: &[Trial]) -> Result<bool, Error> {
        let is_known = |trial: &Trial| {
            let known = self.table.get(&(trial.arm, trial.scenario, trial.seed));
            known.is_some_and(|(rounds, seen)| *rounds >= trial.rounds || seen.is_complete())
        };
        let open: Vec<Trial> = trials.iter().filter(|trial| !is_known(trial)).copied().collect();
        if open.is_empty() {
            return Ok(true);
        }
        let Some(observed) = self.bench.observe(&open)? else { return Ok(false) };
        for (trial, seen) in open.iter().zip(observed) {
            let key = (trial.arm, trial.scenario, trial.seed);
            let before = self.table.insert(key, (trial.rounds, seen)).map_or(0, |(rounds, _)| rounds);
            self.spent += trial.rounds.saturating_sub(before) as f64 / self.rungs.full as f64;
        }
        Ok(true)
    }

    fn costs(&self, arm: Arm, seeds: Range<u64>) -> Costs<'_> {
        let pairs = seeds.flat_map(|seed| (0..self.scenarios).map(move |scenario| (arm, scenario, seed)));
        pairs.filter_map(|key| self.table.get(&key)).map(|(_, observed)| observed).collect()
    }

    /// Chooses the step length of each candidate by one run per step length on the tuning seed of the rung.
    fn tune(
        &mut self,
        rung: usize,
        alive: &[usize],
        steps: &mut BTreeMap<usize, usize>,
    ) -> Result<bool, Error> {
        if self.rungs.list[rung].steps <= 1 {
            return Ok(true);
        }
        let seed = self.first_seed + TUNE_SEEDS + rung as u64;
        let mut tried: BTreeMap<usize, Vec<Arm>> = BTreeMap::new();
        for &candidate in alive {
            let mut own = self.bench.steps(candidate, steps[&candidate], rung);
            own.truncate(self.rungs.list[rung].steps);
            if own.len() > 1 {
                tried.insert(candidate, own.into_iter().map(|step| Arm { candidate, step }).collect());
            }
        }
        let arms: Vec<Arm> = tried.values().flatten().copied().collect();
        if !self.observe(&self.trials(&arms, seed..seed + 1, rung))? {
            return Ok(false);
        }
        for (candidate, arms) in tried {
            let costs: Vec<Costs> = arms.iter().map(|&arm| self.costs(arm, seed..seed + 1)).collect();
            let Ranking { order, level, .. } = ranking(&costs, 0, 1);
            let best = arms[order[0]];
            steps.insert(candidate, best.step);
            let reason =
                format!("the best of {} step lengths on seed {seed} by {}", arms.len(), level_text(level));
            self.decide("tune", best, Verdict::Tuned, reason)?;
        }
        Ok(true)
    }

    /// Drops the arms that a test proves worse than the leader of every goal, and returns the others in the
    /// order of the first goal.
    fn drop_beaten(&mut self, arms: &[Arm], seeds: Range<u64>, rung: usize) -> Result<Vec<Arm>, Error> {
        let costs: Vec<Costs> = arms.iter().map(|&arm| self.costs(arm, seeds.clone())).collect();
        let wanted = 1 + arms.len() / 4;
        let rankings: Vec<Ranking> = (0..self.goals).map(|goal| ranking(&costs, goal, wanted)).collect();
        // Fewer seeds cannot reject anything, so that nothing is tested.
        let enough = |rung: &Rung| rung.seeds as usize * self.scenarios >= TESTED;
        let rungs = self.rungs.list.iter().filter(|rung| enough(rung)).count();
        let tests = rungs * arms.len().saturating_sub(1);
        let is_tested = enough(&self.rungs.list[rung]);
        let mut kept = Vec::new();
        let mut dropped = Vec::new();
        for &index in &rankings[0].order {
            let against = |goal: usize| {
                let leader = rankings[goal].order[0];
                let beaten = beaten(&costs[index], &costs[leader], goal, self.error, tests)?;
                Some((leader, beaten))
            };
            let verdicts: Option<Vec<_>> =
                if is_tested { (0..self.goals).map(against).collect() } else { None };
            match verdicts.as_deref() {
                Some([(leader, all), ..]) => {
                    let ratio = all
                        .ratio
                        .map_or_else(String::new, |ratio| format!("{:.2} times the cost, ", ratio.mean));
                    let reason = format!(
                        "{ratio}later at {} of {} seeds than {}, one-sided p = {:.2e}, error rate {} of the \
                         race",
                        all.later,
                        all.later + all.sooner + all.tied + all.open,
                        self.bench.name(arms[*leader]),
                        0.5 * all.p.unwrap_or(1.0),
                        self.error,
                    );
                    dropped.push((arms[index], reason));
                }
                _ => kept.push(arms[index]),
            }
        }
        for (arm, reason) in dropped {
            self.decide("race", arm, Verdict::ProvenWorse, reason)?;
        }
        let level = rankings[0].level;
        for (place, &arm) in kept.iter().enumerate().take(1) {
            let score = rankings[0].scores[arms.iter().position(|other| *other == arm).unwrap_or(0)];
            let reason = format!(
                "place {} in rung {} by {}, geometric mean cost {score:.4}",
                place + 1,
                rung + 1,
                level_text(level)
            );
            self.decide("race", arm, Verdict::Kept, reason)?;
        }
        Ok(kept)
    }

    /// Keeps so many arms: the best of every goal in turn.
    fn set_aside(&mut self, order: &mut Vec<Arm>, keep: usize) -> Result<(), Error> {
        let all = self.interleaved(order);
        let of = all.len();
        for (place, &arm) in all.iter().enumerate().skip(keep) {
            let reason = format!("place {} of {of}; the budget continues {keep}", place + 1);
            self.decide("race", arm, Verdict::SetAside, reason)?;
        }
        let kept: BTreeSet<Arm> = all.into_iter().take(keep).collect();
        order.retain(|arm| kept.contains(arm));
        Ok(())
    }

    /// The arms, ordered by the first goal, with the leaders of the other goals in between.
    fn interleaved(&self, order: &[Arm]) -> Vec<Arm> {
        if self.goals < 2 {
            return order.to_vec();
        }
        // Every pair that all arms have.
        let seeds = self.first_seed..self.first_seed + TUNE_SEEDS;
        let costs: Vec<Costs> = order.iter().map(|&arm| self.costs(arm, seeds.clone())).collect();
        let rankings: Vec<Ranking> =
            (0..self.goals).map(|goal| ranking(&costs, goal, 1 + order.len() / 4)).collect();
        let mut chosen: Vec<Arm> = Vec::new();
        for place in 0..order.len() {
            for ranking in &rankings {
                let arm = order[ranking.order[place]];
                if !chosen.contains(&arm) {
                    chosen.push(arm);
                }
            }
        }
        chosen
    }
}

fn level_text(level: usize) -> String {
    match LEVELS[level] {
        1.0 => "the goal".into(),
        share => format!("{:.0} % of the way to the goal", 100.0 * share),
    }
}

/// The finalists and their fresh seeds: up to four with 12 seeds each and more where the budget allows it.
fn fresh_seeds(left: f64, most: usize) -> (usize, u64) {
    let count = ((left / FRESH_WANTED as f64) as usize).clamp(2, 4).min(most.max(1));
    let seeds = (left / count as f64).max(0.0) as u64;
    (count, seeds.clamp(FRESH.start, FRESH.end))
}
