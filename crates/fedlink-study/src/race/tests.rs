//! The statistics of a race on cost tables whose truth is known.

use super::synthetic::Table;
use super::*;
use crate::goals::{Median, Reading};
use std::collections::BTreeMap;

/// The costs of every trial.
type Costs = BTreeMap<(Arm, usize, u64), (u64, Observed)>;

fn finish(table: &mut Table, budget: f64, error: f64) -> (Finished, Costs, f64) {
    let candidates: Vec<usize> = (0..table.means.len()).collect();
    let mut purse = Runs(budget);
    let mut race = Race {
        bench: table,
        purse: &mut purse,
        rungs: Rungs::new(200, (5, 1), true, false, 200.0),
        scenarios: 1,
        goals: 1,
        error,
        first_seed: 0,
        table: BTreeMap::new(),
        spent: 0.0,
    };
    match race.run(&candidates, 0.0).unwrap() {
        Ended::Finished(finished) => (finished, race.table, race.spent),
        Ended::Stopped => panic!("nobody stops it"),
    }
}

/// `count` candidates, each a share worse than the one before it.
fn ladder(count: usize, share: f64) -> Vec<f64> {
    // The best is not the first one.
    (0..count).map(|i| 4.0 + share * ((i + count / 2) % count) as f64).collect()
}

#[test]
fn the_same_budget_in_runs_gives_the_same_decisions() {
    let run = || {
        let (finished, _, spent) = finish(&mut Table::new(ladder(30, 0.05), 1), 100.0, 0.05);
        (finished.ranked, finished.finalists, finished.fresh, spent)
    };
    assert_eq!(run(), run());
}

#[test]
fn a_race_finds_the_best_at_a_fraction_of_the_exhaustive_cost() {
    // 40 candidates, 4 % apart; within 5 % of the best are two.
    let mut found = 0;
    let mut most = 0.0f64;
    for number in 0..40 {
        let mut table = Table::new(ladder(40, 0.04), number);
        let (finished, _, spent) = finish(&mut table, 160.0, 0.05);
        let best = table.means.iter().copied().fold(f64::INFINITY, f64::min);
        found += usize::from(table.means[finished.finalists[0].candidate] - best < 0.05);
        most = most.max(spent);
    }
    println!("within 5 % in {found} of 40 races; at most {most:.0} full runs; exhaustive with 20 seeds: 800");
    assert!(found >= 38, "{found} of 40");
    assert!(most <= 160.0, "{most}");
}

#[test]
fn the_best_is_proven_worse_in_at_most_the_stated_share_of_races() {
    // The hardest case: all are equal, so that nothing but chance orders them.
    for (case, means) in [vec![4.0; 12], ladder(12, 0.01), vec![4.0; 3], vec![5.2; 4]].into_iter().enumerate()
    {
        let (races, error) = (400, 0.2);
        let best = (0..means.len()).min_by(|&a, &b| means[a].total_cmp(&means[b])).unwrap();
        let mut dropped = 0;
        for number in 0..races {
            let mut table = Recorder { table: Table::new(means.clone(), 1000 + number), proven: Vec::new() };
            let candidates: Vec<usize> = (0..means.len()).collect();
            let mut purse = Runs(1e4);
            let mut race = Race {
                bench: &mut table,
                purse: &mut purse,
                rungs: Rungs::new(200, (5, 1), true, false, 200.0),
                scenarios: 1,
                goals: 1,
                error,
                first_seed: 0,
                table: BTreeMap::new(),
                spent: 0.0,
            };
            race.run(&candidates, 0.0).unwrap();
            dropped += usize::from(table.proven.contains(&best));
        }
        let share = dropped as f64 / races as f64;
        println!("case {case}: the best was proven worse in {share:.3} of races, stated {error}");
        // Three standard errors of 400 races.
        assert!(share <= error + 0.06, "case {case}: {share}");
    }
}

struct Recorder {
    table: Table,
    proven: Vec<usize>,
}

impl Bench for Recorder {
    fn observe(&mut self, trials: &[Trial]) -> Result<Option<Vec<Observed>>, crate::Error> {
        self.table.observe(trials)
    }

    fn decide(&mut self, decision: &Decision) -> Result<(), crate::Error> {
        if decision.verdict == Verdict::ProvenWorse {
            self.proven.push(decision.arm.candidate);
        }
        Ok(())
    }
}

#[test]
fn a_clearly_worse_candidate_is_proven_worse() {
    let mut means = vec![4.0; 6];
    means[3] = 6.0;
    let mut table = Recorder { table: Table::new(means, 7), proven: Vec::new() };
    let mut purse = Runs(500.0);
    let mut race = Race {
        bench: &mut table,
        purse: &mut purse,
        rungs: Rungs::new(200, (5, 1), true, false, 200.0),
        scenarios: 1,
        goals: 1,
        error: 0.05,
        first_seed: 0,
        table: BTreeMap::new(),
        spent: 0.0,
    };
    race.run(&[0, 1, 2, 3, 4, 5], 0.0).unwrap();
    assert!(table.proven.contains(&3));
}

#[test]
fn the_intervals_of_fresh_seeds_cover_the_truth() {
    // exp(mean) is the true median of a cost. Half of the tables end many runs before the goal.
    for (rounds_at_goal, name) in [(4.0f64, "none censored"), (5.15, "some censored")] {
        let (mut covered, mut all) = (0usize, 0usize);
        for number in 0..200 {
            let means: Vec<f64> = ladder(20, 0.03).iter().map(|mean| mean - 4.0 + rounds_at_goal).collect();
            let mut table = Table::new(means, 5000 + number);
            let (finished, costs, _) = finish(&mut table, 120.0, 0.05);
            for arm in &finished.finalists {
                let readings: Vec<Reading> = finished
                    .fresh
                    .clone()
                    .map(|seed| costs[&(*arm, 0, seed)].1.goals[0].last().unwrap().clone())
                    .collect();
                let median = Median::of(&readings).unwrap();
                let truth = table.means[arm.candidate].exp();
                let is_inside = median.low.is_some_and(|low| low <= truth)
                    && median.high.is_none_or(|high| truth <= high);
                covered += usize::from(is_inside);
                all += 1;
            }
        }
        let share = covered as f64 / all as f64;
        println!("{name}: {covered} of {all} intervals cover the median, {share:.3}");
        assert!((0.93..=0.97).contains(&share), "{name}: {share}");
    }
}
